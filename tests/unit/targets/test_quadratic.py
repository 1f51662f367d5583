"""Quadratic targets of every structure on every space against one dense double-precision reference."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Categorical, Ordinal, Spin, Target
from discrax.core.target import evaluate
from discrax.targets import Quadratic

from ..helpers import brute_force_ratios
from .reference import embed, quadratic_form, structure

SHAPE, N = (3, 4), 12
SPACES = {
    "binary": lambda: Binary(SHAPE),
    "spin": lambda: Spin(SHAPE),
    "ordinal": lambda: Ordinal(SHAPE, [-1.5, 0.0, 0.25]),
    "categorical": lambda: Categorical(SHAPE, 3),
    "ordinal of two": lambda: Ordinal(SHAPE, [-0.5, 0.75]),
    "categorical of two": lambda: Categorical(SHAPE, 2),
}
# Each structure meets each kind of space in one of its variants: with or without a diagonal, free or periodic.
MET = {
    "binary": ["uncoupled", "dense diagonal", "sparse", "lattice free", "lattice edges periodic"],
    "spin": ["uncoupled", "dense", "sparse diagonal", "lattice periodic", "lattice edges free"],
    "ordinal": ["uncoupled", "dense diagonal", "sparse diagonal", "lattice free", "lattice edges periodic"],
    "categorical": ["uncoupled", "dense diagonal", "sparse diagonal", "lattice periodic", "lattice edges free"],
    "ordinal of two": ["dense diagonal", "sparse diagonal"],
    "categorical of two": ["dense", "dense diagonal", "sparse diagonal"],
}
CASES = [(space, name) for space, names in MET.items() for name in names]


class Case(NamedTuple):
    target: Quadratic
    J: np.ndarray
    b: np.ndarray
    log_prob: object  # the reference, of codes
    x: np.ndarray  # a batch of states
    y: np.ndarray  # the states with two sites changed
    ours: dict[str, np.ndarray]


@pytest.fixture(scope="module", params=CASES, ids=[f"{space}-{name}".replace(" ", "-") for space, name in CASES])
def case(request) -> Case:
    """Everything the target offers, in one compiled program for a batch of states."""
    space_name, structure_name = request.param
    space = SPACES[space_name]()
    rng = np.random.default_rng(11)
    coupling, J = structure(structure_name, SHAPE)
    b = rng.normal(size=(*SHAPE, 3 if space_name == "categorical" else 2) if "categorical" in space_name else SHAPE)
    target = Quadratic(space, coupling, b)
    batch, q = 4, space.num_levels
    x = rng.integers(0, q, (batch, *SHAPE))
    sites = np.stack([rng.permutation(N)[:2] for _ in range(batch)])
    y = x.copy().reshape(batch, N)
    for row, where in zip(y, sites, strict=True):
        row[where] = (row[where] + rng.integers(1, q, 2)) % q
    y = y.reshape(x.shape)

    def everything(x, sites, y):
        here = target.evaluate(x)
        padded = jnp.concatenate([sites, jnp.full(1, N, sites.dtype)])  # an index beyond the sites is ignored
        return {
            "log_prob": target.log_prob(space.embed(x)),
            "evaluation": here,
            "change": target.change(x, sites, y.reshape(-1)[sites]),
            "ratios at": jax.vmap(lambda site: target.ratios_at(x, site))(jnp.arange(N)),
            "update": target.update(x, here, y, padded),
            "gradient": jax.grad(target.log_prob)(space.embed(x)),
        }

    arrays = [jnp.asarray(x, space.dtype), jnp.asarray(sites, jnp.int32), jnp.asarray(y, space.dtype)]
    ours = jax.tree.map(np.asarray, jax.jit(jax.vmap(everything))(*arrays))
    return Case(target, J, b, quadratic_form(space, J, b), x, y, ours)


def close(ours, expected):
    np.testing.assert_allclose(ours, np.array(expected), atol=2e-5)


def test_log_prob(case):
    close(case.ours["log_prob"], [case.log_prob(x) for x in case.x])
    close(case.ours["evaluation"].log_prob, [case.log_prob(x) for x in case.x])


def test_ratios_of_all_single_site_changes(case):
    q = case.target.space.num_levels
    close(case.ours["evaluation"].ratios, [brute_force_ratios(case.log_prob, x, q) for x in case.x])


def test_change_of_several_sites(case):
    close(case.ours["change"], [case.log_prob(y) - case.log_prob(x) for x, y in zip(case.x, case.y, strict=True)])


def test_ratios_of_one_site(case):
    q = case.target.space.num_levels
    expected = [brute_force_ratios(case.log_prob, x, q).reshape(N, *(() if q == 2 else (q,))) for x in case.x]
    close(case.ours["ratios at"], expected)


def test_update_gives_the_evaluation_at_the_new_state(case):
    q = case.target.space.num_levels
    close(case.ours["update"].log_prob, [case.log_prob(y) for y in case.y])
    close(case.ours["update"].ratios, [brute_force_ratios(case.log_prob, y, q) for y in case.y])


def test_gradient_of_log_prob(case):
    """J e + b, with the reference's J and b."""
    for x, gradient in zip(case.x, case.ours["gradient"], strict=True):
        e = embed(case.target.space, x).reshape(N, -1)
        close(gradient.reshape(N, -1), case.J @ e + case.b.reshape(N, -1))


def test_coupling_among_sites_is_the_matrix(case):
    close(case.target.coupling.among(jnp.arange(N)), case.J)
    diagonal = case.target.coupling.diagonal()
    close(np.diag(case.J), np.zeros(N) if diagonal is None else np.asarray(diagonal).reshape(-1))


@pytest.mark.parametrize("space", ["spin", "ordinal", "categorical"])
def test_gradient_ratios_are_exact_without_a_diagonal(space):
    """A function target sees first-order ratios; without a diagonal there is no second order in one site."""
    coupling, _ = structure("lattice periodic", SHAPE)
    target = Quadratic(SPACES[space](), coupling, 0.3)
    function = Target.from_log_prob(target.log_prob, target.space)
    x = jnp.asarray(np.random.default_rng(0).integers(0, target.space.num_levels, SHAPE), target.space.dtype)
    exact, first_order = (eqx.filter_jit(evaluate)(each, x) for each in (target, function))
    np.testing.assert_allclose(first_order.ratios, exact.ratios, atol=1e-5)
    np.testing.assert_allclose(first_order.log_prob, exact.log_prob, atol=1e-5)


def test_linear_term_broadcasts_from_a_number():
    target = Quadratic(Spin(SHAPE), structure("uncoupled", SHAPE).coupling, 0.25)
    x = jnp.ones(SHAPE, jnp.int8)
    assert float(target.log_prob(target.space.embed(x))) == pytest.approx(0.25 * N)


def test_a_plain_matrix_is_a_dense_coupling():
    J = structure("dense", SHAPE).matrix
    target = Quadratic(Spin(SHAPE), J)
    x = np.random.default_rng(3).integers(0, 2, SHAPE)
    expected = quadratic_form(target.space, J, np.zeros(SHAPE))(x)
    assert float(target.log_prob(target.space.embed(jnp.asarray(x)))) == pytest.approx(expected, abs=1e-5)


def test_many_updates_of_a_dense_target_do_not_drift():
    """2,000 updates of single sites: the carried log-probability and ratios stay those of a fresh evaluation."""
    rng = np.random.default_rng(0)
    coupling, _ = structure("dense diagonal", SHAPE)
    target = Quadratic(Spin(SHAPE), coupling, 0.1)
    x = jnp.asarray(rng.integers(0, 2, SHAPE), jnp.int8)

    def flip(carry, site):
        x, evaluation = carry
        y = x.reshape(-1).at[site].add(1 - 2 * x.reshape(-1)[site]).reshape(SHAPE)
        return (y, target.update(x, evaluation, y, site[None])), None

    sites = jnp.asarray(rng.integers(0, N, 2000), jnp.int32)
    y, carried = jax.jit(lambda x, sites: jax.lax.scan(flip, (x, target.evaluate(x)), sites)[0])(x, sites)
    fresh = target.evaluate(y)
    np.testing.assert_allclose(carried.log_prob, fresh.log_prob, atol=1e-3)
    np.testing.assert_allclose(carried.ratios, fresh.ratios, atol=1e-3)


def test_double_precision():
    """With JAX's 64-bit mode on, log-probabilities and ratios have 64 bits of float."""
    with jax.enable_x64(True):
        coupling, J = structure("lattice edges periodic", SHAPE)
        b = np.random.default_rng(2).normal(size=SHAPE)
        target = Quadratic(Spin(SHAPE), coupling, b)
        x = np.random.default_rng(3).integers(0, 2, SHAPE)
        log_prob = quadratic_form(target.space, J, b)
        ours = eqx.filter_jit(evaluate)(target, jnp.asarray(x, jnp.int8))
        assert ours.log_prob.dtype == jnp.float64
        np.testing.assert_allclose(ours.log_prob, log_prob(x), rtol=1e-13)
        np.testing.assert_allclose(ours.ratios, brute_force_ratios(log_prob, x, 2), rtol=1e-11)
