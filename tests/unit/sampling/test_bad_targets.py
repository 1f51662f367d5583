"""Spaces and targets that cannot be: one sentence, with what was expected and what came."""

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from discrax import Binary, Categorical, Ordinal, Spin, targets
from discrax.targets import Dense, Lattice, Quadratic, Sparse, Uncoupled

from .test_bad_input import by_name, says

pytestmark = pytest.mark.usefixtures("as_a_user")

# --- spaces ---


SPACES = {
    "zero": (lambda: Binary(0), ["shape of positive sizes, but got 0"]),
    "negative": (lambda: Spin((3, -1)), ["shape of positive sizes, but got (3, -1)"]),
    "empty": (lambda: Binary(()), ["shape of positive sizes, but got ()"]),
    "one-level": (lambda: Categorical(3, 1), ["num_levels must be at least 2", "but got 1"]),
    "unsorted": (lambda: Ordinal(3, [0, 2, 1]), ["at least two increasing values", "[0. 2. 1.]"]),
    "repeated": (lambda: Ordinal(3, [0, 0, 1]), ["at least two increasing values", "[0. 0. 1.]"]),
    "single": (lambda: Ordinal(3, [1]), ["at least two increasing values", "shape (1,)"]),
    "nan": (lambda: Ordinal(3, [0, np.nan]), ["values must be finite, but holds nan"]),
    "matrix": (lambda: Ordinal(3, np.zeros((2, 2))), ["at least two increasing values", "shape (2, 2)"]),
    "mask-shape": (
        lambda: Binary(3, frozen=np.array([True, False])),
        ["frozen must be a boolean mask of shape (3,)", "(2,)"],
    ),
    "mask-type": (
        lambda: Binary(3, frozen=np.array([1, 0, 0])),
        ["frozen must be a boolean mask of shape (3,)", "int64"],
    ),
    "all-frozen": (lambda: Binary(3, frozen=np.ones(3, bool)), ["All sites are frozen"]),
    "no-mask": (lambda: Binary(3, frozen_codes=np.ones(3, int)), ["frozen_codes was given without `frozen`"]),
    "codes-outside": (
        lambda: Binary(3, frozen=np.arange(3) < 1, frozen_codes=np.full(3, 2)),
        ["frozen_codes", "(3,)", "0..1"],
    ),
    "codes-shape": (lambda: Binary(3, frozen=np.arange(3) < 1, frozen_codes=np.ones(2, int)), ["frozen_codes", "(3,)"]),
    "codes-float": (
        lambda: Binary(3, frozen=np.arange(3) < 1, frozen_codes=np.full(3, 0.7)),
        ["frozen_codes", "float64"],
    ),
    "values-equal-in-float32": (lambda: Ordinal(3, [1e8, 1e8 + 1]), ["increasing values", "float32"]),
}


@by_name(SPACES)
def test_spaces(build, parts):
    says(build, *parts)


@pytest.mark.parametrize(
    "build", [lambda: Binary(2.5), lambda: Spin((2.5, 3)), lambda: Categorical(3, 2.7)], ids=["size", "sizes", "levels"]
)
def test_sizes_are_whole_numbers(build):
    says(build, "whole number", "2.", error=TypeError)


# --- targets ---

SQUARE = np.arange(9.0).reshape(3, 3)


TARGETS = {
    "dense": (lambda: Dense(SQUARE), ["must be symmetric", "pass (J + J.T) / 2"]),
    "ising": (lambda: targets.Ising.dense(SQUARE), ["must be symmetric"]),
    "sparse": (lambda: targets.Ising.graph(scipy.sparse.csr_array(SQUARE)), ["must be symmetric", "(J + J.T) / 2"]),
    "not-square": (lambda: Dense(np.zeros((2, 3))), ["must be square, but got shape (2, 3)"]),
    "rows": (lambda: Dense(np.eye(3), (2, 2)), ["shape (2, 2) needs 4 rows, but J has 3"]),
    "matrix-rows": (lambda: Quadratic(Spin(4), np.eye(3)), ["shape (4,) needs 4 rows, but J has 3"]),
    "coupling-sites": (lambda: Quadratic(Spin(4), Uncoupled((3,))), ["sites of shape (3,), but the space has (4,)"]),
    "coupling-shape": (
        lambda: Quadratic(Spin((2, 2)), Uncoupled((4,))),
        ["sites of shape (4,), but the space has (2, 2)"],
    ),
    "axes": (lambda: Lattice((3, 3), (1.0, 2.0, 3.0)), ["(3, 3) has 2 axes, but got 3 couplings"]),
    "edge-weights": (lambda: Lattice((3, 3), np.ones(3)), ["a number or an array of shape (3, 3), but got shape (3,)"]),
    "periodic": (
        lambda: targets.Ising.lattice((2, 5), periodic=True),
        ["at least 3 sites along each axis, but the shape is (2, 5)"],
    ),
    "edge-above": (lambda: Sparse(np.array([[0, 3]]), 1.0, (3,)), ["sites 0..2", "names site 3"]),
    "edge-below": (lambda: Sparse(np.array([[-1, 0]]), 1.0, (3,)), ["sites 0..2", "names site -1"]),
    "graph": (
        lambda: targets.Ising.graph(np.zeros((3, 3))),
        ["A graph is a networkx graph", "integer array of edges (m, 2)", "(3, 3)"],
    ),
    "per-edge": (lambda: targets.Ising.graph(np.array([[0, 1]]), np.ones(2)), ["one per edge (1), but has shape (2,)"]),
    "graph-field": (
        lambda: targets.Ising.graph(nx.path_graph(3), 1.0, np.zeros(4)),
        ["must broadcast to (3,), but has shape (4,)"],
    ),
    "lattice-field": (
        lambda: targets.Ising.lattice((3, 4), 1.0, np.zeros((4, 3))),
        ["must broadcast to (3, 4), but has shape (4, 3)"],
    ),
    "potts-field": (
        lambda: targets.Potts.lattice((3, 4), 5, 1.0, np.zeros((3, 4))),
        ["last axis of levels", "(3, 4, 5)"],
    ),
    "neither": (lambda: targets.Bernoulli(), ["either probs or logits"]),
    "both": (lambda: targets.Bernoulli(np.full(2, 0.5), logits=np.zeros(2)), ["either probs or logits"]),
    "certain": (lambda: targets.Bernoulli(np.array([0.5, 1.0])), ["strictly between 0 and 1", "freeze a site"]),
    "nan": (lambda: targets.Bernoulli(np.array([0.5, np.nan])), ["probs must be finite, but holds nan"]),
    "logits": (lambda: targets.Independent(np.zeros(3)), ["last axis of levels", "(3,)"]),
    "qubo": (lambda: targets.Quadratic.from_qubo(np.zeros((2, 3))), ["square", "(2, 3)"]),
}


@by_name(TARGETS)
def test_targets(build, parts):
    says(build, *parts)


def test_a_list_of_lists_is_a_matrix():
    target = targets.Quadratic.from_qubo([[1.0, 2.0], [0.0, -1.0]])
    assert float(target.log_prob(jnp.ones(2))) == -2
