"""Where W comes from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.curvature.hessian import Hessian, MoveSums, estimated_hessian, exact_hessian
from discrax.curvature.matrices import checked_matrix

W = np.array([[0.3, 0.5, 0.0, -0.2], [0.5, -0.4, 0.7, 0.1], [0.0, 0.7, 0.2, -0.6], [-0.2, 0.1, -0.6, 0.5]])
QUADRATIC = {
    "dense": lambda: dx.targets.Quadratic(dx.Spin(4), W, 0.2),
    "lattice": lambda: dx.targets.Ising.lattice((3, 5), (0.4, -0.3), 0.1),
    "periodic": lambda: dx.targets.Ising.lattice((3, 4), 0.4, periodic=True),
    "graph": lambda: dx.targets.Ising.graph(np.array([(0, 1), (1, 2), (0, 4), (3, 4)]), [0.1, 0.2, -0.3, 0.4]),
    "independent": lambda: dx.targets.Bernoulli(np.full(5, 0.3)),
}


@pytest.mark.parametrize(
    "name", [name if i < 2 else pytest.param(name, marks=pytest.mark.slow) for i, name in enumerate(QUADRATIC)]
)
def test_the_hessian_of_a_quadratic_target(name):
    target = dx.Tempered(QUADRATIC[name](), 0.7)
    found = exact_hessian(target)
    matrix = found.matrix.todense() if hasattr(found.matrix, "todense") else found.matrix
    n = target.space.num_sites
    e = target.space.embed(jnp.zeros(target.space.shape, target.space.dtype))
    np.testing.assert_allclose(matrix, jax.hessian(target.log_prob)(e).reshape(n, n), atol=1e-6)
    assert found.is_exact


def test_other_targets_have_none():
    assert exact_hessian(dx.Target.from_log_prob(jnp.sum, dx.Spin(3))) is None


def draws_of(target, num=60):
    kernel = dx.samplers.rwm(1.0)
    result = dx.sample(jax.random.key(0), target, kernel, num_chains=20, num_warmup=0, num_samples=num, adaptation=None)
    return result.draws


def test_least_squares_recover_the_hessian_of_a_quadratic_function():
    def log_prob(e):
        return e @ jnp.asarray(W) @ e / 2 + jnp.sum(e)

    target = dx.Tempered(dx.Target.from_log_prob(log_prob, dx.Ordinal(4, [0.0, 0.5, 1.0, 2.0])), 0.5)
    found = estimated_hessian(target, draws_of(target), "least squares")
    np.testing.assert_allclose(found.matrix, 0.5 * W, atol=1e-3)
    assert "explaining 100%" in found.origin
    assert not found.is_exact


def test_every_step_of_a_burn_in_counts_however_it_is_cut(monkeypatch):
    target = dx.Target.from_log_prob(lambda e: e @ jnp.asarray(W) @ e / 2, dx.Ordinal(4, [0.0, 0.5, 1.0, 2.0]))
    draws = draws_of(target).copy()
    draws[..., 2] = 1
    whole = MoveSums(target).add(draws)
    z = np.diff(np.asarray(target.space.embed(draws)), axis=1).reshape(-1, 4)
    np.testing.assert_allclose(whole.S, z.T @ z, rtol=1e-5)
    assert whole.moved == np.any(z != 0, axis=1).sum()
    assert "moves of 3 of 4 sites" in whole.hessian().origin
    monkeypatch.setattr("discrax.curvature.hessian._BLOCK", 140)
    pieces = MoveSums(target).add(draws[:, :13]).add(draws[:, 13:])
    np.testing.assert_allclose(pieces.C, whole.C, rtol=1e-4, atol=1e-4)
    apart = sum(MoveSums(target).add(each).moved for each in (draws[:, :13], draws[:, 13:]))  # a twin that forgets
    assert apart < pieces.moved == whole.moved


def test_moments_are_scaled_to_the_second_order_of_the_target():
    """Independent Gaussian-like sites: precision is the answer, with a negative sign."""
    precision = np.array([0.5, 1.0, 2.0])
    target = dx.Target.from_log_prob(
        lambda e: -jnp.sum(jnp.asarray(precision) * e**2) / 2, dx.Ordinal(3, np.arange(-6.0, 7.0))
    )
    found = estimated_hessian(target, draws_of(target, 400), "moments")
    assert "precision" in found.origin
    np.testing.assert_allclose(np.diag(found.matrix), -precision, rtol=0.25)


def test_a_burn_in_that_did_not_move_is_an_error():
    target = dx.Target.from_log_prob(jnp.sum, dx.Spin(3))
    with pytest.raises(ValueError, match="its chains moved 0 times"):
        estimated_hessian(target, np.zeros((2, 5, 3), np.int8), "least squares")


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 3)), "must be a square matrix, but got shape"),
        (np.array([[0.0, 1.0], [0.5, 0.0]]), "must be symmetric, but it differs from its transpose by up to 0.5"),
        (np.array([[np.nan, 1.0], [1.0, 0.0]]), "must be finite"),
    ],
)
def test_matrices_that_are_none(matrix, words):
    for build in (
        lambda: checked_matrix(matrix),
        lambda: dx.samplers.ab_trace(W=matrix),
        lambda: dx.samplers.pavg(M=matrix),
    ):
        with pytest.raises(ValueError, match=words):
            build()


@pytest.mark.parametrize("matrix", [np.zeros(0), np.zeros((0, 0)), np.zeros((2, 3)), np.triu(np.ones((2, 2)))])
def test_a_hessian_is_a_symmetric_matrix(matrix):
    with pytest.raises(ValueError, match=r"matrix must be (a square matrix|symmetric), but"):
        Hessian(matrix, "mine")
