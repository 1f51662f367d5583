"""Pairs of indicators and coefficients: moves keep laws that quadrature knows, and in NumPyro posteriors are exact."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

from discrax.core import random
from discrax.core.metropolis import Decision
from discrax.exact import chi_square
from discrax.interop import pairs
from discrax.interop.numpyro import DiscraxGibbs
from repeats import repeats

from .five_columns import X, Y, exact_means

ODDS = jnp.array([0.3, -0.7])
STATES = np.array(list(itertools.product([0.0, 1.0], repeat=2)), np.float32)
GRID = np.linspace(-6, 6, 121, dtype=np.float32)
POINTS = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1).reshape(-1, 2)
EDGES = np.array([-0.55, 0.45, 1.35])  # where squares about the points of the grid meet


@pytest.fixture(autouse=True)
def _ranks_as_numpyro_has_them():
    with jax.numpy_rank_promotion("allow"):
        yield


def gaussian(g, s):
    u = g * s
    return ODDS @ g - s @ (jnp.array([1.0, 0.5]) * s) / 2 + 0.2 * s[0] + u @ jnp.array([1.5, -1.0]) - jnp.sum(u) ** 2


def quartic(g, s):
    return gaussian(g, s) + 0.5 * g[0] * g[1] - 0.05 * jnp.sum((g * s) ** 4)


def cells(g: np.ndarray, s: np.ndarray) -> np.ndarray:
    """State and intervals of both coefficients as one number."""
    places = np.searchsorted(EDGES, s)
    return ((2 * g[:, 0] + g[:, 1]).astype(int) * 4 + places[:, 0]) * 4 + places[:, 1]


def p_value(f, redraws: bool = False, center=(0.0, 0.0), num_chains: int = 20_000) -> float:
    """Of where chains are that began with draws of the law and made two moves of three flips or of four."""
    log_law = jax.vmap(lambda g: jax.vmap(lambda s: f(g, s))(jnp.asarray(POINTS)))(jnp.asarray(STATES))
    weights = np.exp(np.asarray(log_law, np.float64) - np.max(log_law))
    law = (weights / weights.sum()).reshape(-1)
    places = np.random.default_rng(1).choice(law.size, num_chains, p=law)
    # On the grid the law is a sum: what is drawn from it is moved within its own square.
    g, s = jnp.asarray(STATES[places // len(POINTS)]), POINTS[places % len(POINTS)]
    s = jnp.asarray(s + np.random.default_rng(2).uniform(-0.05, 0.05, s.shape).astype(np.float32))
    second_order = pairs.expand(f, ODDS, jnp.array(center))

    def chain(key, g, s):
        for each in random.split(key, 2):
            g, s, _ = pairs.move(each, f, second_order, g, s, 3, redraws)
        return g, s

    keys = random.split(jax.random.key(3), num_chains)
    g, s = (np.asarray(each) for each in jax.jit(jax.vmap(chain))(keys, g, s))
    states, points = np.repeat(STATES, len(POINTS), axis=0), np.tile(POINTS, (len(STATES), 1))
    masses = np.bincount(cells(states, points), law, 64)
    return chi_square(np.bincount(cells(g, s), minlength=64), masses)


@pytest.mark.parametrize("redraws", [False, True])
@pytest.mark.parametrize(("f", "center"), [(gaussian, (0.0, 0.0)), (quartic, (0.8, -0.5))])
def test_moves_keep_the_law(f, center, redraws):
    assert p_value(f, redraws, center) > 1e-3


def test_where_a_gaussian_law_is_expanded_makes_no_difference():
    about = [pairs.expand(gaussian, ODDS, jnp.array(center)) for center in ((0.0, 0.0), (0.7, -1.2))]
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-5), *about)


def test_the_proof_fails_coefficients_that_are_drawn_anew_without_the_field(monkeypatch):
    redraw = pairs.redraw
    monkeypatch.setattr(pairs, "redraw", lambda law, *rest: redraw(law._replace(h=0.3 * law.h), *rest))
    assert p_value(gaussian, redraws=True) < 1e-6


@pytest.mark.parametrize("f", [gaussian, quartic])
def test_the_proof_fails_moves_that_accept_whatever_comes(f, monkeypatch):
    always = lambda key, *_: Decision(jnp.ones(()), jnp.ones((), bool), jnp.zeros((), bool))  # noqa: E731
    monkeypatch.setattr(pairs, "decide", always)
    assert p_value(f) < 1e-6


def regression(flips=0.0):
    with numpyro.plate("columns", 5):
        on = numpyro.sample("on", dist.Bernoulli(0.3))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.5))
    coin = numpyro.sample("coin", dist.Bernoulli(0.4))
    numpyro.factor("elsewhere", flips * slope[0] * on[1])
    numpyro.sample("y", dist.Normal(X @ (on * slope) + 0.3 * coin, 1.0), obs=Y)


@pytest.mark.slow
@pytest.mark.parametrize("chain_method", ["vectorized", *repeats([], ["sequential"])])
def test_a_regression_has_its_posterior_where_the_inner_kernel_rests(chain_method):
    kernel = DiscraxGibbs(NUTS(regression), "gibbs", num_steps=3, pairs={"on": "slope"}, inner_every=3)
    num_chains, num_samples, off = (30, 600, 0.03) if chain_method == "vectorized" else (4, 1500, 0.06)
    mcmc = MCMC(kernel, num_warmup=100, num_samples=num_samples, num_chains=num_chains,
                chain_method=chain_method, progress_bar=False)  # fmt: skip
    mcmc.run(jax.random.key(0), extra_fields=("pairs_accept_prob", "hmc_state.i"))
    draws = mcmc.get_samples(group_by_chain=True)
    of_chains = np.concatenate([np.asarray(draws["on"]).mean(1), np.asarray(draws["coin"]).mean(1)[:, None]], axis=1)
    if chain_method == "vectorized":
        errors = of_chains.std(axis=0, ddof=1) / np.sqrt(num_chains)
        assert np.abs((of_chains.mean(axis=0) - exact_means()) / errors).max() < 4.5
    np.testing.assert_allclose(of_chains.mean(axis=0), exact_means(), atol=off)
    assert mcmc.get_extra_fields()["pairs_accept_prob"].min() > 0.99
    steps = np.asarray(mcmc.get_extra_fields(group_by_chain=True)["hmc_state.i"])
    assert (np.diff(steps[0])[:6] == [0, 0, 1, 0, 0, 1]).all()


def logistic():
    with numpyro.plate("columns", 5):
        on = numpyro.sample("on", dist.Bernoulli(0.3))
        slope = numpyro.sample("slope", dist.Normal(0.0, 3.0))
    numpyro.sample("y", dist.Bernoulli(logits=4 * X @ (on * slope)), obs=jnp.asarray(Y > 0, int))


@pytest.mark.slow
def test_another_model_accepts_where_pairs_were_in_warm_up():
    kernel = DiscraxGibbs(NUTS(logistic), num_steps=10, pairs={"on": "slope"})
    accepted = []
    for num_warmup in (0, 200):
        mcmc = MCMC(kernel, num_warmup=num_warmup, num_samples=200, num_chains=2, chain_method="vectorized",
                    progress_bar=False)  # fmt: skip
        mcmc.run(jax.random.key(0), extra_fields=("pairs_accept_prob",))
        accepted.append(float(mcmc.get_extra_fields()["pairs_accept_prob"].mean()))
    assert accepted[0] < 0.2
    assert accepted[1] > max(0.25, 3 * accepted[0])  # 0.4 to 0.76 by key and machine, and 0.07 without


@pytest.mark.parametrize(
    ("model", "given", "sentence"),
    [
        (regression, {"of": "slope"}, "has the discrete sites 'coin', 'on' and the continuous ones 'slope', and got"),
        (regression, {"coin": "slope"}, r"one coefficient, but 'coin' has the shape \(\) and 'slope' \(5,\)"),
        (lambda: regression(1.0), {"on": "slope"}, r"as in on . slope, but the log-density is up to"),
    ],
)
def test_models_without_such_pairs_are_told(model, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiscraxGibbs(NUTS(model), "gibbs", pairs=given).init(jax.random.key(0), 10, None, (), {})


def test_other_arguments_that_cannot_be_are_told():
    with pytest.raises(TypeError, match=r"pairs must be .discrete site: continuous site., but got 'on'"):
        DiscraxGibbs(NUTS(regression), pairs="on")
    with pytest.raises(ValueError, match="inner_every"):
        DiscraxGibbs(NUTS(regression), inner_every=0)
