"""Mixtures on grids against their formulas, and what is known exactly against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import discrax
from discrax.targets.mixtures import PolynomialMixture, QuarticMixture

from ..helpers import P_VALUE, Z_SCORE, chi_square_p_value


def values_and_gradients(target, x) -> tuple[np.ndarray, np.ndarray]:
    x = jnp.asarray(x, target.space.dtype)
    found = jax.jit(jax.vmap(lambda x: jax.value_and_grad(target.log_prob)(target.space.embed(x))))(x)
    return np.asarray(found[0], np.float64), np.asarray(found[1], np.float64)


@pytest.mark.parametrize("printed", [False, True])
def test_quartic_mixture(printed):
    n, K, levels = 4, 6, 11
    target = QuarticMixture.simulated(0, n, K, levels, printed_centres=printed)
    x = np.random.default_rng(1).integers(0, levels, (10, n))
    P = np.asarray(target.rotation, np.float64)
    np.testing.assert_allclose(P @ P.T, np.eye(n), atol=1e-6)
    s = 10 * np.exp(-0.5 + np.arange(n) / (n - 1))
    expected = []
    for state in x:
        terms = []
        for k in range(K):
            b = k / (K - 1)
            u = P @ ((state - (b if printed else 10 * b)) / s)
            terms.append(-np.sum((u + 1) * (u**2 + 0.5) * (u - 2)))
        expected.append(scipy.special.logsumexp(terms))
    found, slopes = values_and_gradients(target, x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert np.isfinite(slopes).all()
    assert np.abs(slopes).max() > 0.1


def test_quartic_mixture_of_the_paper():
    target = QuarticMixture.simulated(0)
    assert target.space.shape == (20,)
    assert target.centres.shape == (50,)
    np.testing.assert_array_equal(target.space.values, np.arange(21))
    assert float(target.centres[-1]) == 20


G = {
    "poly2": (lambda t: -2 * t - 6 * t**2, lambda t: -2 - 12 * t, 2.0),
    "poly4": (lambda t: 2 * (-t + t**2 - t**3 - t**4), lambda t: 2 * (-1 + 2 * t - 3 * t**2 - 4 * t**3), 3.0),
}


@pytest.mark.parametrize("name", list(G))
def test_polynomial_mixture(name):
    g, slope, last = G[name]
    n, K, levels = 3, 4, 9
    target = getattr(PolynomialMixture, name)(n, K, levels)
    v, c = np.linspace(-1.5, 3, levels), np.linspace(0, last, K)
    log_p = g(v - c[:, None])
    log_p -= scipy.special.logsumexp(log_p, axis=1, keepdims=True)
    x = target.space.enumerate()
    found, slopes = values_and_gradients(target, x)
    by_component = log_p[:, x].sum(axis=-1)
    np.testing.assert_allclose(found, scipy.special.logsumexp(by_component, axis=0) - np.log(K), atol=2e-4)
    weights = scipy.special.softmax(by_component, axis=0)
    expected = np.einsum("kx,kxi->xi", weights, slope(v[x] - c[:, None, None]))
    np.testing.assert_allclose(slopes, expected, atol=1e-2, rtol=1e-4)

    p = np.exp(found)
    assert p.sum() == pytest.approx(1, abs=1e-5)  # it is normalised
    marginal = target.exact_marginal()
    np.testing.assert_allclose(marginal, [p[x[:, 1] == level].sum() for level in range(levels)], atol=1e-5)
    mean, covariance = target.exact_mean_and_covariance()
    np.testing.assert_allclose(mean, p @ v[x], atol=1e-5)
    np.testing.assert_allclose(covariance, np.cov(v[x].T, aweights=p, ddof=0), atol=1e-5)


@pytest.mark.parametrize("name", list(G))
def test_exact_draws_follow_the_law(name):
    target = getattr(PolynomialMixture, name)(2, 3, 4)
    draws = target.exact_draws(0, 20_000)
    assert draws.dtype == np.int8
    p = np.exp(values_and_gradients(target, target.space.enumerate())[0])
    counts = np.bincount(target.space.index(jnp.asarray(draws)), minlength=len(p))
    often = p * len(draws) >= 5
    assert chi_square_p_value(counts[often], p[often]) > P_VALUE
    rare = p[~often].sum() * len(draws)
    assert abs(counts[~often].sum() - rare) < Z_SCORE * (np.sqrt(rare) + 1)
    np.testing.assert_array_equal(draws, target.exact_draws(0, 20_000))


@pytest.mark.parametrize(("name", "correlation"), [("poly2", 0.81), ("poly4", 0.90)])
def test_the_mixtures_of_the_paper(name, correlation):
    target = getattr(PolynomialMixture, name)()
    assert target.space.shape == (20,)
    assert target.space.num_levels == 50
    mean, covariance = target.exact_mean_and_covariance()
    assert covariance[0, 1] / covariance[0, 0] == pytest.approx(correlation, abs=0.005)
    assert target.exact_marginal().sum() == pytest.approx(1)
    e = np.asarray(target.space.values)[target.exact_draws(0, 20_000)]
    np.testing.assert_allclose(e.mean(0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(e.T), covariance, atol=0.04)


def test_a_first_order_sampler_runs():
    target = PolynomialMixture.poly2(3, 4, 9)
    result = discrax.sample(
        jax.random.key(0), target, "dmala", num_chains=2, num_warmup=0, num_samples=50, progress=False
    )
    assert np.isfinite(result.stats["lp"]).all()
    assert result.stats["accept_prob"].mean() > 0


def test_bad_input(as_a_user):
    with pytest.raises(ValueError, match="one centre per component"):
        QuarticMixture(np.eye(3), np.ones(2), np.ones(4))
    with pytest.raises(ValueError, match="list of coefficients"):
        PolynomialMixture(np.ones((2, 2)), np.ones(3), np.arange(4), 2)
