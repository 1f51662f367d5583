"""Ising, QUBO, Potts, Bernoulli and Categorical against the formulas in their docstrings."""

import itertools

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.special

from discrax import exact, targets

EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [1, 4]])
WEIGHTS = np.array([0.5, -1.25, 2.0, 0.75, -0.3])
N = 5


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def value(target, x) -> float:
    return float(target.log_prob(target.space.embed(jnp.asarray(x, target.space.dtype))))


def every_state(num_sites: int, num_levels: int):
    return map(np.array, itertools.product(range(num_levels), repeat=num_sites))


def as_networkx(weighted: bool):
    graph = nx.Graph()
    graph.add_nodes_from(range(N))
    for (i, j), weight in zip(EDGES.tolist(), WEIGHTS, strict=True):
        graph.add_edge(i, j, **({"weight": weight} if weighted else {}))
    return graph


def as_scipy(kind):
    half = scipy.sparse.coo_array((WEIGHTS, EDGES.T), shape=(N, N))
    return kind(half + half.T)


# A graph, the coupling that goes with it, and the weight of each edge that results.
GRAPHS = {
    "networkx": (lambda: as_networkx(False), 0.7, np.full(len(EDGES), 0.7)),
    "networkx-weighted": (lambda: as_networkx(True), 2.0, 2 * WEIGHTS),
    "scipy-csr": (lambda: as_scipy(scipy.sparse.csr_array), 1.0, WEIGHTS),
    "scipy-coo": (lambda: as_scipy(scipy.sparse.coo_array), 0.5, WEIGHTS / 2),
    "scipy-matrix": (lambda: as_scipy(scipy.sparse.csc_matrix), 1.0, WEIGHTS),
    "edge-array": (lambda: EDGES, WEIGHTS, WEIGHTS),
    "edge-list": (lambda: EDGES.tolist(), -1.0, np.full(len(EDGES), -1.0)),
}
graphs = pytest.mark.parametrize("name", list(GRAPHS))


@graphs
def test_ising_on_a_graph(name, rng):
    build, coupling, weights = GRAPHS[name]
    field = rng.normal(size=N)
    target = targets.Ising.graph(build(), coupling, field)
    for x in itertools.islice(every_state(N, 2), 0, None, 5):
        s = 2 * x - 1
        expected = sum(w * s[i] * s[j] for (i, j), w in zip(EDGES, weights, strict=True)) + field @ s
        assert value(target, x) == pytest.approx(expected, abs=1e-5)


@graphs
def test_potts_on_a_graph(name, rng):
    build, coupling, weights = GRAPHS[name]
    field = rng.normal(size=(N, 3))
    target = targets.Potts.graph(build(), 3, coupling, field)
    for x in itertools.islice(every_state(N, 3), 0, None, 40):
        same = sum(w * (x[i] == x[j]) for (i, j), w in zip(EDGES, weights, strict=True))
        assert value(target, x) == pytest.approx(same + field[np.arange(N), x].sum(), abs=1e-5)


def test_networkx_nodes_may_have_any_names(rng):
    graph = nx.relabel_nodes(as_networkx(True), dict(enumerate("abcde")))
    numbered = targets.Ising.graph(as_networkx(True))
    named = targets.Ising.graph(graph)
    x = rng.integers(0, 2, N)
    assert value(named, x) == pytest.approx(value(numbered, x))


def test_a_diagonal_in_a_sparse_matrix_is_a_quadratic_term():
    J = scipy.sparse.csr_array(np.array([[1.0, 0.5], [0.5, -2.0]]))
    target = targets.Quadratic(targets.Ising.dense(np.zeros((2, 2))).space, targets.Ising.graph(J).coupling)
    x = np.array([0, 1])
    s = 2 * x - 1
    assert value(target, x) == pytest.approx(0.5 * s @ J.toarray() @ s, abs=1e-6)


@pytest.mark.parametrize("periodic", [False, True], ids=["free", "periodic"])
def test_ising_on_a_lattice(periodic, rng):
    """Each edge once, different couplings along the two axes, a field per site."""
    shape, field = (3, 4), rng.normal(size=(3, 4))
    target = targets.Ising.lattice(shape, (0.4, -0.9), field, periodic=periodic)
    x = rng.integers(0, 2, shape)
    s = 2 * x - 1
    if periodic:
        along = [(s * np.roll(s, -1, axis)).sum() for axis in (0, 1)]
    else:
        along = [(s[1:] * s[:-1]).sum(), (s[:, 1:] * s[:, :-1]).sum()]
    expected = 0.4 * along[0] - 0.9 * along[1] + (field * s).sum()
    assert value(target, x) == pytest.approx(expected, abs=1e-5)


def test_potts_on_a_lattice(rng):
    target = targets.Potts.lattice((2, 3), 4, 0.8)
    x = rng.integers(0, 4, (2, 3))
    same = (x[1:] == x[:-1]).sum() + (x[:, 1:] == x[:, :-1]).sum()
    assert value(target, x) == pytest.approx(0.8 * same, abs=1e-5)


def test_ising_with_all_pairs_coupled(rng):
    J = rng.normal(size=(N, N))
    J = (J + J.T) / 2
    np.fill_diagonal(J, 0)
    field = rng.normal(size=N)
    target = targets.Ising.dense(J, field)
    for x in itertools.islice(every_state(N, 2), 0, None, 7):
        s = 2 * x - 1
        pairs = sum(J[i, j] * s[i] * s[j] for i in range(N) for j in range(i))
        assert value(target, x) == pytest.approx(pairs + field @ s, abs=1e-5)


@pytest.mark.parametrize(
    "convert",
    [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_matrix],
    ids=["numpy", "csr", "coo", "csc-matrix"],
)
@pytest.mark.parametrize("kind", ["general", "upper", "no-diagonal", "integer"])
def test_qubo_is_minus_the_quadratic_form(convert, kind, rng):
    Q = rng.normal(size=(N, N)) * (rng.random((N, N)) < 0.6)
    if kind == "upper":
        Q = np.triu(Q)
    if kind == "no-diagonal":
        np.fill_diagonal(Q, 0)
    if kind == "integer":
        Q = np.rint(3 * Q).astype(int)
    target = targets.Quadratic.from_qubo(convert(Q))
    for x in itertools.islice(every_state(N, 2), 0, None, 3):
        assert value(target, x) == pytest.approx(-x @ Q @ x, abs=1e-5)


@pytest.mark.parametrize("form", ["probs", "logits"])
def test_bernoulli_sites_have_their_probabilities(form):
    probs = np.array([[0.1, 0.5], [0.7, 0.99]])
    given = {"probs": probs} if form == "probs" else {"logits": scipy.special.logit(probs)}
    target = targets.Bernoulli(**given)
    states = target.space.enumerate()
    marginals = np.tensordot(exact.law(target), states, axes=1)
    np.testing.assert_allclose(marginals, probs, rtol=1e-5)


def test_categorical_sites_have_their_probabilities(rng):
    logits = rng.normal(size=(2, 2, 3))
    target = targets.Independent(logits)
    states = target.space.enumerate()
    law = exact.law(target)
    marginals = np.stack([np.tensordot(law, states == level, axes=1) for level in range(3)], axis=-1)
    np.testing.assert_allclose(marginals, scipy.special.softmax(logits, axis=-1), rtol=1e-5)


def test_independent_sites_have_exact_ratios():
    target = targets.Bernoulli(logits=np.array([1.0, -2.0, 3.0]))
    ratios = target.evaluate(jnp.array([0, 0, 1], jnp.int8)).ratios
    np.testing.assert_allclose(ratios, [1.0, -2.0, -3.0])
