"""Balanced labels against the formula in their docstring, for every structure and for two labels or more."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.targets import BalancedLabels, Dense, Sparse, Uncoupled

from ..helpers import brute_force_ratios

N, CUT_COST, SIZE_COST = 9, 1.75, 0.3
EDGES = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [4, 5], [3, 5], [5, 6], [6, 7], [1, 8]])
WEIGHTS = np.array([1.0, 2.0, -0.5, 1.0, 3.0, 0.25, 1.0, 2.0, 1.0, 0.5])


def matrix() -> np.ndarray:
    A = np.zeros((N, N))
    A[EDGES[:, 0], EDGES[:, 1]] = A[EDGES[:, 1], EDGES[:, 0]] = WEIGHTS
    return A


COUPLINGS = {
    "dense": lambda: Dense(matrix()),
    "sparse": lambda: Sparse(EDGES, WEIGHTS, (N,)),
    "uncoupled": lambda: Uncoupled((N,)),
}
CASES = [("dense", 2), ("dense", 3), ("sparse", 2), ("sparse", 4), ("uncoupled", 3)]


class Case(NamedTuple):
    num_labels: int
    log_prob: object  # the reference, of codes
    x: np.ndarray
    y: np.ndarray  # the states with two nodes moved
    ours: dict


@pytest.fixture(scope="module", params=CASES, ids=[f"{name}-{k}" for name, k in CASES])
def case(request) -> Case:
    """Everything the target offers, in one compiled program for a batch of states."""
    name, k = request.param
    target = BalancedLabels(COUPLINGS[name](), k, CUT_COST, SIZE_COST)
    weights = np.zeros(len(WEIGHTS)) if name == "uncoupled" else WEIGHTS

    def log_prob(x):
        cut = weights[x[EDGES[:, 0]] != x[EDGES[:, 1]]].sum()
        return -(CUT_COST * cut + SIZE_COST * np.square(N / k - np.bincount(x, minlength=k)).sum())

    rng = np.random.default_rng(5)
    x = rng.integers(0, k, (6, N))
    sites = np.stack([rng.permutation(N)[:2] for _ in x])
    y = x.copy()
    for row, where in zip(y, sites, strict=True):
        row[where] = (row[where] + rng.integers(1, k, 2)) % k

    def everything(x, sites, y):
        here = target.evaluate(x)
        first = sites.at[1].set(N)  # an index beyond the sites is ignored
        one_moved = x.at[sites[0]].set(y[sites[0]])
        return {
            "log_prob": target.log_prob(target.space.embed(x)),
            "evaluation": here,
            "change": target.change(x, sites, y[sites]),
            "ratios at": jax.vmap(lambda site: target.ratios_at(x, site))(jnp.arange(N)),
            "update": (target.update(x, here, one_moved, first), target.update(x, here, y, sites)),
            "moved": (one_moved, y),
        }

    arrays = [jnp.asarray(x, jnp.int8), jnp.asarray(sites, jnp.int32), jnp.asarray(y, jnp.int8)]
    ours = jax.tree.map(np.asarray, jax.jit(jax.vmap(everything))(*arrays))
    return Case(k, log_prob, x, y, ours)


def close(ours, expected):
    np.testing.assert_allclose(ours, np.array(expected), atol=2e-5)


def test_log_prob(case):
    close(case.ours["log_prob"], [case.log_prob(x) for x in case.x])
    close(case.ours["evaluation"].log_prob, [case.log_prob(x) for x in case.x])


def test_ratios_of_all_single_site_changes(case):
    expected = [brute_force_ratios(case.log_prob, x, case.num_labels) for x in case.x]
    close(case.ours["evaluation"].ratios, expected)
    close(case.ours["ratios at"], expected)


def test_change_of_two_nodes(case):
    close(case.ours["change"], [case.log_prob(y) - case.log_prob(x) for x, y in zip(case.x, case.y, strict=True)])


def test_update_gives_the_evaluation_at_the_new_state(case):
    for update, moved in zip(case.ours["update"], case.ours["moved"], strict=True):
        close(update.log_prob, [case.log_prob(y) for y in moved.astype(int)])
        close(update.ratios, [brute_force_ratios(case.log_prob, y, case.num_labels) for y in moved.astype(int)])


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_hessian_is_that_of_log_prob(name):
    target = BalancedLabels(COUPLINGS[name](), 3, CUT_COST, SIZE_COST)
    (i, j), entries = (target.hessian()[0].T, target.hessian()[1])
    expected = jax.jit(jax.hessian(target.log_prob))(jnp.ones((N, 3)))
    for level in range(3):
        close(entries, expected[i, level, j, level])
    close(expected[:, 0, :, 1], np.zeros((N, N)))
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == N * (N + 1) // 2


def test_gradient_samplers_run_on_it_and_find_a_balanced_cut():
    """Two cliques joined by one edge: at a low temperature the parts are the cliques."""
    A = np.kron(np.eye(2), np.ones((5, 5)) - np.eye(5))
    A[4, 5] = A[5, 4] = 1
    target, kernel = BalancedLabels(A, 2), dx.samplers.dmala(0.5)

    def chain(key):
        first = kernel.init(target, target.space.random(key))
        step = lambda state, key: (kernel.step(key, target, state)[0], None)  # noqa: E731
        return jax.lax.scan(step, first, jax.random.split(key, 300))[0]

    last = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 8))
    assert np.max(last.log_prob) == pytest.approx(-2.0, abs=1e-4)


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (lambda: Dense(np.eye(4)), "No node is joined to itself"),
        (lambda: Uncoupled((2, 2)), "have one axis"),
    ],
)
def test_what_is_not_a_graph_is_refused(coupling, message):
    with pytest.raises(ValueError, match=message):
        BalancedLabels(coupling(), 2)
