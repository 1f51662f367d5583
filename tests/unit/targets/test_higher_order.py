"""Spins with interactions of three against the formula in their docstring."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Spin, exact
from discrax.targets import Ising
from discrax.targets.higher_order import CubicIsing

from .reference import lattice_matrix, symmetric


@pytest.mark.parametrize("coding", ["binary", "spin"])
def test_log_prob_gradient_and_hessian(coding):
    rng = np.random.default_rng(0)
    J, triples = symmetric(rng, 6, diagonal=False), rng.integers(0, 6, (9, 3))
    target = CubicIsing(J, triples, 0.4, coding=coding)
    assert isinstance(target.space, Binary if coding == "binary" else Spin)
    x = rng.integers(0, 2, (12, 6))
    s = 2.0 * x - 1
    slopes = 2 * s @ J
    for i, j, k in triples:
        for one, others in ((i, s[:, j] * s[:, k]), (j, s[:, i] * s[:, k]), (k, s[:, i] * s[:, j])):
            slopes[:, one] += 0.4 * others
    slopes *= 2 if coding == "binary" else 1
    embed = target.space.embed
    found = jax.jit(jax.vmap(lambda x: jax.value_and_grad(target.log_prob)(embed(x))))(jnp.asarray(x, jnp.int8))
    expected = np.einsum("xi,ij,xj->x", s, J, s) + 0.4 * s[:, triples].prod(-1).sum(-1)
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
    np.testing.assert_allclose(found[1], slopes, atol=1e-4)


@pytest.mark.parametrize("coding", ["binary", "spin"])
def test_the_quadratic_matrix_is_the_hessian_without_triples(coding):
    rng = np.random.default_rng(0)
    target = CubicIsing(symmetric(rng, 6, diagonal=False), rng.integers(0, 6, (9, 3)), 0.0, coding=coding)
    e = jnp.asarray(rng.normal(size=(2, 6)), jnp.float32)
    slopes = jax.vmap(jax.grad(target.log_prob))(e)
    np.testing.assert_allclose(target.quadratic_matrix() @ np.asarray(e[1] - e[0]), slopes[1] - slopes[0], atol=1e-4)


def test_without_triples_the_lattice_is_ising_with_twice_the_coupling():
    target, ising = CubicIsing.lattice(3, 0.2, 0.0), Ising.lattice((3, 3), 0.4, periodic=True)
    np.testing.assert_allclose(exact.law(target), exact.law(ising), rtol=1e-4)


def test_the_lattice_of_the_paper():
    target = CubicIsing.lattice(seed=3)
    np.testing.assert_allclose(target.couplings, lattice_matrix((4, 4), (0.2, 0.2), periodic=True), rtol=1e-6)
    assert target.triples.shape == (50, 3)
    np.testing.assert_array_equal(target.triples, CubicIsing.lattice(seed=3).triples)
    np.testing.assert_allclose(target.quadratic_matrix(), 8 * np.asarray(target.couplings))


def test_bad_input(as_a_user):
    with pytest.raises(ValueError, match="symmetric"):
        CubicIsing(np.triu(np.ones((3, 3))), [[0, 1, 2]], 1.0)
    with pytest.raises(ValueError, match=r"sites 0\.\.2"):
        CubicIsing(np.eye(3), [[0, 1, 3]], 1.0)
    with pytest.raises(ValueError, match="shape"):
        CubicIsing(np.eye(3), [[0, 1]], 1.0)
    with pytest.raises(ValueError, match="'binary' or 'spin'"):
        CubicIsing(np.eye(3), [[0, 1, 2]], 1.0, coding="ternary")
    with pytest.raises(ValueError, match="at least 3 sites"):
        CubicIsing.lattice(2)
