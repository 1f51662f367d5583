"""ArviZ opens what we give it, without a warning."""

import warnings

import arviz_plots
import arviz_stats
import jax
import matplotlib
import numpy as np
import pytest

import discrax as dx


@pytest.fixture(scope="module")
def tree():
    matplotlib.use("agg")
    target = dx.targets.Bernoulli(np.array([0.3, 0.6]))
    return dx.sample(jax.random.key(0), target, "gibbs", num_samples=200, num_warmup=0, progress=False).to_arviz()


@pytest.mark.slow
@pytest.mark.parametrize("group", ["posterior", "sample_stats"])
@pytest.mark.parametrize("plot", ["plot_dist", "plot_trace", "plot_rank", "plot_autocorr", "plot_forest"])
def test_plots(tree, plot, group):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = ["x"] if group == "posterior" else ["lp"]
        assert getattr(arviz_plots, plot)(tree, group=group, var_names=names, backend="matplotlib")
    matplotlib.pyplot.close("all")


@pytest.mark.slow
def test_its_means_are_ours(tree):
    found = arviz_stats.summary(tree, var_names=["x"], round_to="none")
    np.testing.assert_allclose(found["mean"], tree["posterior"]["x"].mean(["chain", "draw"]))
