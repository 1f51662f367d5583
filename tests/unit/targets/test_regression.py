"""Regressions with binary unknowns against their formulas, and exact marginals against enumeration."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import exact
from discrax.targets.regression import LogisticRegression, SparseLinearRegression


def values(target, x) -> np.ndarray:
    embed = target.space.embed
    return np.asarray(jax.jit(jax.vmap(lambda x: target.log_prob(embed(x))))(jnp.asarray(x, target.space.dtype)))


def gradients(target, e) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(jax.grad(target.log_prob)))(jnp.asarray(e, jnp.float32)))


# --- logistic ---


def test_logistic_log_prob_and_gradient():
    target = LogisticRegression.simulated(0, num_rows=12, dimension=9)
    X, y = np.asarray(target.X, np.float64), np.asarray(target.y)
    assert X.shape == (12, 9)
    assert set(y) <= {0, 1}
    x = np.random.default_rng(1).integers(0, 2, (20, 9))
    p = 1 / (1 + np.exp(-(x @ X.T)))
    np.testing.assert_allclose(values(target, x), (y * np.log(p) + (1 - y) * np.log(1 - p)).sum(1), rtol=1e-5)
    np.testing.assert_allclose(gradients(target, x), (y - p) @ X, atol=1e-4)


def test_logistic_covariates_have_the_covariance_of_the_paper():
    target = LogisticRegression.simulated(0, num_rows=20_000, dimension=8)
    scales = np.exp(-0.25 + np.arange(8) / 7)
    expected = 0.25 * np.outer(scales, scales) * (np.eye(8) + 0.25)
    np.testing.assert_allclose(np.cov(np.asarray(target.X).T), expected, atol=0.05)
    on = np.asarray(target.X)[:, :7].sum(1)  # the first seven coefficients are on
    assert np.mean(np.asarray(target.y)) == pytest.approx(np.mean(1 / (1 + np.exp(-on))), abs=0.02)


# --- sparse linear, with the multivariate t distribution of y as reference ---


def log_posterior(X, y, s, g=20.0, lam=0.001, alpha=0.1, beta=0.1) -> float:
    """y is t-distributed with scale S = I + g X_s (A + lam I)^-1 X_s'."""
    N, D = X.shape
    Xs = X * s
    S = np.eye(N) + g * Xs @ np.linalg.solve(Xs.T @ Xs + lam * np.eye(D), Xs.T)
    t = -np.linalg.slogdet(S)[1] / 2 - (alpha + N / 2) * np.log(2 * beta + y @ np.linalg.solve(S, y))
    return t + math.lgamma(s.sum() + 0.001) + math.lgamma(D - s.sum() + 10)


def data(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    if kind == "copies":  # of different numbers, and a column of zeros
        F = rng.integers(0, 3, (8, 3)).astype(float)
        return np.concatenate([F, F[:, :2], F[:, :1], np.zeros((8, 1))], axis=1), F.sum(axis=1)
    X = rng.normal(size=(9, 5))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=9)


@pytest.fixture(scope="module", params=["copies", "distinct"])
def case(request):
    X, y = data(request.param)
    states = np.array(list(itertools.product((0, 1), repeat=X.shape[1])))
    expected = np.array([log_posterior(X, y, s) for s in states.astype(float)])
    return SparseLinearRegression(X, y, num_extra=2), states, expected


def test_sparse_linear_log_prob(case):
    target, states, expected = case
    zeros = np.zeros((len(states), 2), int)
    off = values(target, np.concatenate([states, zeros], axis=1))
    np.testing.assert_allclose(off, expected, atol=2e-4, rtol=1e-5)
    on = values(target, np.concatenate([states, zeros + np.array([0, 1])], axis=1))
    np.testing.assert_allclose(on - off, math.log(0.001 / 0.999), atol=1e-4)


def test_exact_marginals_are_those_of_enumeration(case):
    target, states, expected = case
    weights = np.exp(expected - expected.max())
    weights /= weights.sum()
    marginals, pairwise = target.exact_marginals()
    D = states.shape[1]
    assert marginals.shape == (D + 2,)
    np.testing.assert_allclose(marginals[:D], weights @ states, atol=1e-6)
    np.testing.assert_allclose(marginals[D:], 0.001, rtol=1e-5)
    for i, j, k, m in itertools.product(range(D), range(D), (0, 1), (0, 1)):
        p = weights[(states[:, i] == k) & (states[:, j] == m)].sum()
        assert pairwise[i, j, k, m] == pytest.approx(p, abs=1e-6)


def test_exact_marginals_are_those_of_the_law(case):
    target, _, _ = case
    law = exact.law(target)
    np.testing.assert_allclose(target.exact_marginals()[0], law @ target.space.enumerate(), atol=2e-4)


def test_gradients_are_finite_and_right_at_the_corners():
    """At sum s = 0 the prior's slope is digamma(0.001), about -1000; elsewhere the likelihood adds next to nothing."""
    target = SparseLinearRegression.simulated(0, num_extra=1, num_rows=10, num_covariates=3, num_copies=2)
    corners = np.array([[0] * 7, [1] * 7, [0, 1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0, 1]], float)
    slopes = gradients(target, corners)
    assert np.isfinite(slopes).all()
    np.testing.assert_allclose(slopes[:, 6], math.log(0.001 / 0.999), rtol=1e-5)
    assert slopes[0, 0] == pytest.approx(-1000, rel=0.01)
    h = 1e-2  # a difference in double precision, inside the corner
    F = np.random.default_rng(0).integers(0, 3, (10, 3)).astype(float)
    X, y = np.tile(F, 2), F.sum(1)
    for corner, slope in zip(corners[1:], slopes[1:], strict=True):
        s = corner[:6]
        for i in range(6):
            step = h * np.eye(6)[i]
            expected = (log_posterior(X, y, s + step) - log_posterior(X, y, s - step)) / (2 * h)
            assert slope[i] == pytest.approx(expected, abs=0.05)


def test_the_data_of_the_paper():
    target = SparseLinearRegression.simulated(0)
    assert target.space.shape == (100,)
    assert target.num_columns == 20
    assert target.gram.shape == (5, 5)
    np.testing.assert_allclose(np.asarray(target.projection), np.asarray(target.gram).sum(axis=0))  # y is the sum
    np.testing.assert_array_equal(np.asarray(target.copies)[:, 5:], np.asarray(target.copies)[:, :-5])
    marginals, pairwise = target.exact_marginals()
    np.testing.assert_allclose(pairwise.sum((2, 3)), 1)
    np.testing.assert_allclose(pairwise[:, :, 1].sum(2), np.repeat(marginals[:20, None], 20, 1))
    assert (marginals[:20] > 0.2).all()  # one of four copies suffices
    assert (marginals[:20] < 0.4).all()


def test_bad_input(as_a_user):
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.raises(ValueError, match="X of shape"):
        LogisticRegression(X, np.zeros(3))
    with pytest.raises(ValueError, match="0 or 1"):
        LogisticRegression(X, np.arange(4))
    with pytest.raises(ValueError, match="nearly dependent"):
        SparseLinearRegression(3 * X, np.ones(4))
    with pytest.raises(ValueError, match="g must be positive"):
        SparseLinearRegression(X, np.ones(4), g=0.0)
    with pytest.raises(ValueError, match="finite"):
        SparseLinearRegression(X * np.nan, np.ones(4))
    with pytest.raises(ValueError, match="at most 8 states"):
        SparseLinearRegression(X[:, :4], np.ones(4), lam=1.0).exact_marginals(limit=8)
