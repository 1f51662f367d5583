"""Lattice Gaussians against the formula in their docstring."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from discrax import Ordinal
from discrax.core.target import evaluate
from discrax.targets import Sparse
from discrax.targets.gaussian import LatticeGaussian, random_orthogonal

from ..helpers import brute_force_ratios


def precision(target: LatticeGaussian) -> np.ndarray:
    edges, weights = target.hessian()
    H = np.zeros((target.space.num_sites,) * 2)
    H[edges[:, 0], edges[:, 1]] = weights
    return -(H + np.triu(H, 1).T)


def density(Q, b):
    return lambda x: float(-(x - b) @ Q @ (x - b) / 2)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_log_prob_and_ratios_are_those_of_the_formula(kind):
    rng = np.random.default_rng(0)
    n, levels, b = 5, 7, rng.uniform(1, 5, 5)
    Q = np.diag(np.full(n, 1.0)) + np.diag(np.full(n - 1, 0.3), 1) + np.diag(np.full(n - 1, 0.3), -1)
    target = LatticeGaussian.from_matrix(Q if kind == "dense" else scipy.sparse.csr_array(Q), levels, b)
    assert isinstance(target.space, Ordinal)
    np.testing.assert_array_equal(target.space.values, np.arange(levels))
    formula, x = density(Q, b), rng.integers(0, levels, (6, n))
    found = jax.jit(jax.vmap(lambda x: evaluate(target, x)))(jnp.asarray(x, target.space.dtype))
    np.testing.assert_allclose(found.log_prob - found.log_prob[0], [formula(y) - formula(x[0]) for y in x], atol=1e-4)
    np.testing.assert_allclose(found.ratios, [brute_force_ratios(formula, y, levels) for y in x], atol=1e-4)


@pytest.mark.parametrize("condition", [2.0, 50.0])
def test_the_rotation_has_the_spectrum_of_the_paper(condition):
    target = LatticeGaussian.rotation(3, 20, condition, num_levels=4)
    eigenvalues = np.linalg.eigvalsh(precision(target))[::-1]
    np.testing.assert_allclose(eigenvalues, np.sqrt(condition) / (1 + (condition - 1) * np.arange(20) / 19), rtol=1e-4)
    assert not np.asarray(target.linear).any()


def test_the_sparse_one_is_a_cycle_with_the_spectrum_on_its_diagonal():
    target = LatticeGaussian.sparse(3, 12, 9.0, num_levels=4, centre=1.5)
    assert isinstance(target.coupling, Sparse)
    assert target.coupling.blocks[0].weights.shape == (12, 3)
    Q, i = precision(target), np.arange(12)
    np.testing.assert_allclose(np.diag(Q), 1 / (1 + 8 * i / 11), rtol=1e-6)
    assert {tuple(pair) for pair in np.argwhere(np.triu(Q, 1))} == {(k, k + 1) for k in range(11)} | {(0, 11)}
    assert np.linalg.eigvalsh(Q)[0] > 0
    np.testing.assert_allclose(target.linear, Q @ np.full(12, 1.5), atol=1e-5)


def test_the_links_of_the_cycle_have_a_standard_deviation_of_a_fifth():
    Q = precision(LatticeGaussian.sparse(0, 400, 1.0))
    links = Q[np.arange(399), np.arange(1, 400)]
    assert links.std() == pytest.approx(0.2, rel=0.15)
    assert abs(links.mean()) < 0.04


def test_a_seed_is_an_instance():
    for build in (LatticeGaussian.rotation, LatticeGaussian.sparse):
        one, again, other = (precision(build(seed, 6)) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        assert not np.allclose(one, other)


def test_random_orthogonal_matrices_have_no_preferred_signs():
    rng = np.random.default_rng(0)
    P = np.stack([random_orthogonal(rng, 3) for _ in range(400)])
    np.testing.assert_allclose(P @ P.transpose(0, 2, 1), np.broadcast_to(np.eye(3), P.shape), atol=1e-12)
    assert np.abs(P.mean(axis=0)).max() < 5 / np.sqrt(3 * 400)


def test_bad_input(as_a_user):
    with pytest.raises(ValueError, match="check the sign of Q"):
        LatticeGaussian.from_matrix(-np.eye(3))
    with pytest.raises(ValueError, match="one per site"):
        LatticeGaussian.from_matrix(np.eye(3), 4, np.zeros(2))
    with pytest.raises(ValueError, match="at least 1"):
        LatticeGaussian.rotation(0, 4, 0.5)
    with pytest.raises(ValueError, match="at least 3 sites"):
        LatticeGaussian.sparse(0, 2)
