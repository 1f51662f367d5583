"""Samplers that want the Hessian of the target: where they get it, and what they say of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx

W = -0.3 * np.eye(6) - 0.2
SPACE = dx.Ordinal(6, np.linspace(-2, 2, 5))


def log_prob(e):
    return e @ jnp.asarray(W) @ e / 2 + 0.1 * jnp.sum(e)


FUNCTION = dx.Target.from_log_prob(log_prob, SPACE)
QUADRATIC = dx.targets.Quadratic(SPACE, W, 0.1)


def sample(target, sampler, **settings):
    settings = {"num_chains": 10, "num_warmup": 150, "num_samples": 20} | settings
    return dx.sample(jax.random.key(0), target, sampler, **settings)


@pytest.fixture(scope="module")
def estimated():
    return sample(FUNCTION, "ab_trace", keep_warmup=True)


def test_a_burn_in_estimates_it_where_the_target_is_a_function(estimated):
    burn_in, how, tuning = estimated.reports
    assert set(burn_in.chosen) == set(tuning.chosen) == {"sigma", "alpha"}
    assert (burn_in.num_steps, tuning.num_steps) == (50, 100)
    assert "W by least squares from" in how
    assert "trace diagonal of 6 sites" in how
    metric = estimated.kernel.metric
    found = np.asarray(metric.matrix) - np.diag(np.asarray(metric.diagonal))
    np.testing.assert_allclose(found, W, atol=0.02)
    assert how in estimated.summary().adaptation


def test_warm_up_is_whole_whatever_its_parts(estimated):
    assert estimated.warmup_stats["jump"].shape == (10, 150)
    assert estimated.warmup_draws.shape == (10, 150, 6)
    assert estimated.is_complete


def test_a_quadratic_target_hands_it_over():
    result = sample(QUADRATIC, "ab_trace", num_warmup=600)  # after 150 sigma may still be small
    how, tuning = result.reports
    assert how.startswith("W exact")
    assert tuning.num_steps == 600
    assert float(result.stats["accept_prob"].mean()) > 0.9


@pytest.mark.slow
def test_it_is_estimated_of_a_quadratic_target_too_where_asked():
    result = sample(QUADRATIC, dx.samplers.ab_shift(W="estimate"))
    assert "W by least squares from" in result.reports[1]
    assert result.kernel.is_prepared
    with pytest.raises(ValueError, match=r'W is a matrix, "estimate" or None .* but got \'fitted\''):
        dx.samplers.ab_trace(W="fitted")


def test_a_matrix_that_was_given_is_taken():
    result = sample(FUNCTION, dx.samplers.ab_shift(np.inf, 1.0, W=W), adaptation=None, num_warmup=0)
    assert result.reports == ()
    assert float(result.stats["accept_prob"].mean()) > 0.99


@pytest.mark.slow
def test_step_sizes_per_site_come_from_it_too():
    steep = dx.targets.Quadratic(SPACE, np.diag([-8.0, -4.0, -2.0, -1.0, -0.5, -0.1]) - 0.2 * (1 - np.eye(6)), 0.1)
    flat = dx.targets.Ising.graph(np.array([(0, 1), (0, 2), (0, 3), (4, 5)]), 0.5)
    assert sample(steep, "dlp_trace", num_samples=2).kernel.diagonal.shape == (6,)
    diagonal = np.asarray(sample(flat, "dlp_trace", num_samples=2).kernel.diagonal)
    assert diagonal[0] == pytest.approx(3 * diagonal[1], rel=1e-3)  # the hub of a star has three neighbours


@pytest.mark.slow
def test_pavg_estimates_a_multiple_of_covariance_or_precision():
    result = sample(FUNCTION, "pavg")
    assert "x precision" in result.reports[1] or "x covariance" in result.reports[1]
    assert set(result.report.chosen) == {"step_size", "gamma"}


def test_without_warm_up_there_is_nothing_to_estimate_it_from():
    with pytest.raises(ValueError, match="takes at least 30 steps, but num_warmup is 10; raise it or pass the matrix"):
        sample(FUNCTION, "ab_trace", num_warmup=10)


def test_a_matrix_too_large_for_eigenvectors_is_named():
    big = dx.targets.Ising.lattice((70, 70), 0.2)
    with pytest.raises(ValueError, match=r"at most 4,000 rows, but M has 4,900; ab_shift and ab_trace keep"):
        sample(big, "pavg")


def test_other_targets_of_one_shape_need_no_second_compilation():
    sample(QUADRATIC, "ab_trace")
    other = sample(dx.targets.Quadratic(SPACE, 0.5 * W, 0.2), "ab_trace")
    assert other.compile_seconds == 0
    assert sample(QUADRATIC, "ab_trace", num_chains=9).compile_seconds > 0  # the measure can tell


@pytest.mark.slow
def test_a_step_size_per_site_is_found_for_one_hot_sites_too():
    """The Hessian is of sites times levels; the step sizes are of the sites."""
    slopes = np.random.default_rng(0).normal(size=(4, 3))
    target = dx.Target.from_log_prob(lambda e: jnp.sum(slopes * e) + jnp.sum(e[0] * e[1]), dx.Categorical(4, 3))
    result = sample(target, "dlp_trace", num_warmup=60)
    assert result.kernel.diagonal.shape == (4,)
    assert float(result.stats["accept_prob"].mean()) > 0.2
