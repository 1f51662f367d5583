"""Coupling matrices: products, neighbours and colourings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.targets import Dense, Lattice, Sparse, Uncoupled
from discrax.targets.coupling import as_edges

from .reference import lattice_matrix, structure, symmetric

LATTICES = [
    ((5,), False),
    ((5,), True),
    ((3, 4), False),
    ((5, 3), True),
    ((3, 2, 3), False),
    ((3, 4, 3), True),
    ((2, 1, 3, 2), False),
    ((3, 3, 3, 3), True),
]
lattices = pytest.mark.parametrize(
    ("shape", "periodic"),
    LATTICES,
    ids=["x".join(map(str, shape)) + ("-periodic" if periodic else "-free") for shape, periodic in LATTICES],
)


@lattices
@pytest.mark.parametrize("per_edge", [False, True], ids=["per-axis", "per-edge"])
def test_lattice_product_is_the_matrix_product(shape, periodic, per_edge):
    rng = np.random.default_rng(0)
    weights = tuple(rng.normal(size=shape) if per_edge else float(rng.normal()) for _ in shape)
    J = lattice_matrix(shape, weights, periodic)
    e = rng.normal(size=shape)
    lattice = Lattice(shape, weights, periodic)
    ours = jax.jit(lambda e: lattice.product(e))(jnp.asarray(e, jnp.float32))
    np.testing.assert_allclose(np.asarray(ours).reshape(-1), J @ e.reshape(-1), atol=1e-5)


@pytest.mark.parametrize("name", ["lattice free", "lattice edges periodic", "sparse diagonal", "dense"])
def test_neighbours_hold_a_row_of_the_matrix(name):
    shape = (3, 5)
    coupling, J = structure(name, shape)
    sites = jnp.array([0, 7, 14], jnp.int32)
    indices, weights = coupling.neighbours(sites)
    rows = np.zeros((3, 15))
    for row, (where, value) in enumerate(zip(np.asarray(indices), np.asarray(weights), strict=True)):
        np.add.at(rows[row], where, value)
    np.testing.assert_allclose(rows, J[np.asarray(sites)], atol=1e-6)


def is_proper(colours: np.ndarray, J: np.ndarray) -> bool:
    """No two coupled sites share a colour."""
    flat = np.asarray(colours).reshape(-1)
    i, j = np.nonzero(J - np.diag(np.diag(J)))
    return bool((flat[i] != flat[j]).all())


@lattices
def test_lattice_colouring_is_proper(shape, periodic):
    """Odd periodic lattices are not bipartite: two colours would couple sites of one colour."""
    colours = Lattice(shape, 1.0, periodic).colours()
    J = lattice_matrix(shape, (1.0,) * len(shape), periodic)
    assert is_proper(colours, J)
    bipartite = not periodic or all(size % 2 == 0 for size in shape)
    assert (colours.max() + 1 == 2) == bipartite
    assert not is_proper(np.zeros(shape), J)  # the test has teeth


@pytest.mark.parametrize("name", ["sparse diagonal", "dense", "uncoupled"])
def test_colouring_is_proper(name):
    coupling, J = structure(name, (4, 4))
    colours = coupling.colours()
    assert colours.shape == (4, 4)
    assert is_proper(colours, J)
    if name == "uncoupled":
        assert colours.max() == 0
    if name == "dense":
        assert len(np.unique(colours)) == 16  # every pair is coupled


def test_greedy_colouring_of_a_star_takes_two_colours():
    colours = Sparse(np.array([[0, 1], [0, 2], [0, 3], [0, 4]]), 1.0, (5,)).colours()
    assert colours[0] not in colours[1:]
    assert len(set(colours.tolist())) == 2


def test_sparse_ignores_padding_and_adds_repeated_edges():
    coupling = Sparse(np.array([[0, 1], [1, 0], [2, 2]]), np.array([0.5, 0.25, 3.0]), (4,))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.75
    expected[2, 2] = 3
    np.testing.assert_allclose(coupling.among(jnp.arange(4)), expected)
    np.testing.assert_allclose(coupling.product(jnp.ones(4)), expected.sum(1))


def test_sparse_without_edges():
    coupling = Sparse(np.zeros((0, 2), int), 1.0, (3,))
    np.testing.assert_array_equal(coupling.product(jnp.ones(3)), np.zeros(3))
    assert coupling.diagonal() is None


def test_a_dense_matrix_has_a_diagonal_whatever_stands_there():
    J = symmetric(np.random.default_rng(0), 4, diagonal=False)
    np.testing.assert_array_equal(Dense(J).diagonal(), np.zeros(4))
    np.testing.assert_allclose(Dense(J + np.eye(4)).diagonal(), np.ones(4))
    assert Uncoupled((4,)).diagonal() is None


def test_edges_of_an_array_number_the_nodes():
    edges, weights, n = as_edges(np.array([[0, 3], [1, 2]]))
    assert (edges.tolist(), weights, n) == ([[0, 3], [1, 2]], None, 4)


def test_both_directions_of_a_directed_graph_are_one_edge():
    networkx = pytest.importorskip("networkx")
    both = networkx.DiGraph([(0, 1), (1, 0), (2, 1)])
    edges, weights, n = as_edges(both)
    assert (sorted(map(tuple, edges.tolist())), weights, n) == ([(0, 1), (2, 1)], None, 3)
    both.add_weighted_edges_from([(0, 1, 2.0), (1, 0, 3.0)])
    with pytest.raises(ValueError, match="Couplings are symmetric, but the directed graph joins nodes 0 and 1 with"):
        as_edges(both)
