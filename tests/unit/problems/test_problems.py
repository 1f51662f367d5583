"""The problems: penalised objectives against plain formulas on all states of small graphs, repair, bounds, errors."""

import itertools
import json

import dimod
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discrax as dx
from discrax.core.target import evaluate
from discrax.problems import MIS, QUBO, Custom, Graph, MaxClique, MaxCut, Partition, Problem

from ..helpers import brute_force_ratios

quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def parts_of_a_graph(draw, min_nodes: int = 1, max_nodes: int = 7) -> dict:
    """What `Graph.from_edges` takes. Tests call it: type checks draw random numbers, which strategies may not."""
    n = draw(st.integers(min_nodes, max_nodes))
    pairs = list(itertools.combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weights = draw(st.lists(st.integers(-3, 4), min_size=len(edges), max_size=len(edges)))
    node_weights = draw(st.lists(st.sampled_from([0.25, 1, 2.5, 3, 7]), min_size=n, max_size=n))
    return {"edges": edges, "weights": weights, "num_nodes": n, "node_weights": node_weights}


def states(n: int, k: int = 2) -> np.ndarray:
    return np.array(list(itertools.product(range(k), repeat=n)), np.int8)


def random_graph(seed: int = 0, n: int = 7, density: float = 0.5) -> Graph:
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]
    weights = rng.integers(-3, 6, len(edges))
    return Graph.from_edges(edges, weights, num_nodes=n, node_weights=rng.choice([0.5, 1.0, 2.0, 3.5], n))


PROBLEMS = {
    "mis": MIS,
    "weighted mis": lambda graph: MIS(graph, weighted=True, penalty=1.5),
    "clique": MaxClique,
    "weighted clique": lambda graph: MaxClique(graph, weighted=True, penalty=1),
    "cut": MaxCut,
    "partition": lambda graph: Partition(graph, 3, balance=0.5),
    "bipartition": lambda graph: Partition(graph, 2),
    "qubo": lambda graph: QUBO(graph.node_weights - 2, graph.edges, graph.weights, offset=1.5),
    "ising": lambda graph: QUBO(graph.node_weights - 2, graph.edges, graph.weights, offset=1.5, vartype="SPIN"),
    "custom": lambda graph: Custom(
        lambda e: jnp.sum(e * jnp.arange(1.0, graph.num_nodes + 1)),
        dx.Binary(graph.num_nodes),
        violations=lambda e: jnp.maximum(jnp.sum(e) - 2, 0),
        penalty=10,
    ),
}
on_graphs = [name for name in PROBLEMS if name != "custom"]  # every example would compile anew
problems = pytest.mark.parametrize("name", list(PROBLEMS))


def plain_value(name: str, graph: Graph, x: np.ndarray) -> float:
    """The penalised objective by the book: more is better."""
    x = x.astype(int)
    edges = {tuple(edge): weight for edge, weight in zip(graph.edges.tolist(), graph.weights, strict=True)}
    pairs = list(itertools.combinations(range(graph.num_nodes), 2))
    cut = sum(weight for (i, j), weight in edges.items() if x[i] != x[j])
    w = graph.node_weights if "weighted" in name else np.ones(graph.num_nodes)
    match name.split()[-1]:
        case "mis" | "clique":
            penalty = {"mis": 1.0001, "weighted mis": 1.5, "clique": 1.0001, "weighted clique": 1}[name]
            bad = [pair for pair in pairs if (pair in edges) == ("mis" in name)]
            return w @ x - penalty * sum(min(w[i], w[j]) for i, j in bad if x[i] and x[j])
        case "cut":
            return cut
        case "partition" | "bipartition":
            k, balance = (3, 0.5) if name == "partition" else (2, 1)
            sizes = np.bincount(x, minlength=k)
            price = balance * (np.abs(graph.weights).mean() if graph.weights.any() else 1)
            return -(2 * cut + price * np.square(graph.num_nodes / k - sizes).sum())
        case "qubo" | "ising":
            s = 2 * x - 1 if name == "ising" else x
            pairs = sum(weight * s[i] * s[j] for (i, j), weight in edges.items())
            return -(1.5 + (graph.node_weights - 2) @ s + pairs)
    return x @ np.arange(1, graph.num_nodes + 1) - 10 * max(x.sum() - 2, 0)


def model_value(problem: Problem, x: np.ndarray) -> np.ndarray:
    model = problem.model
    if isinstance(model, dx.problems.BinaryQuadratic):
        return model.value(x)
    assert isinstance(model, dx.problems.Labelling)
    cut = (x[:, model.edges[:, 0]] != x[:, model.edges[:, 1]]) @ model.weights
    sizes = (x[..., None] == np.arange(model.num_labels)).sum(axis=1)
    misfit = np.square(model.num_nodes / model.num_labels - sizes).sum(axis=1)
    return -model.cut_cost * cut - model.size_cost * misfit


@pytest.mark.parametrize("name", on_graphs)
@quickly
@given(parts=parts_of_a_graph(min_nodes=3))
def test_the_model_is_the_penalised_objective(name, parts):
    graph = Graph.from_edges(**parts)
    problem = PROBLEMS[name](graph)
    x = states(graph.num_nodes, problem.model.num_labels if "partition" in name else 2)[::3]
    expected = [plain_value(name, graph, state) for state in x]
    np.testing.assert_allclose(model_value(problem, x), expected, rtol=1e-13, atol=1e-13)
    sign = 1 if problem.sense == "max" else -1
    feasible = problem.is_feasible(x)
    if "partition" not in name:  # whose misfit is not 0 where the parts cannot be equal
        np.testing.assert_allclose(sign * problem.objective(x)[feasible], np.array(expected)[feasible], atol=1e-12)
        assert (np.array(expected) <= sign * problem.objective(x) + 1e-12).all()


@problems
def test_the_target_is_the_penalised_objective_with_exact_ratios(name):
    graph = random_graph()
    problem = PROBLEMS[name](graph)
    space, target = problem.space, problem.target
    x = states(space.num_sites, space.num_levels)[:: 40 if space.num_levels == 3 else 3]
    offset = 0 if name not in ("qubo", "ising") else problem.model.offset
    ours = jax.jit(jax.vmap(lambda x: evaluate(target, x)))(jnp.asarray(x, space.dtype))
    value = lambda x: plain_value(name, graph, x)  # noqa: E731
    np.testing.assert_allclose(np.asarray(ours.log_prob) + offset, [value(state) for state in x], atol=2e-4)
    if name != "custom":  # whose ratios are those of a gradient
        ratios = [brute_force_ratios(value, state, space.num_levels) for state in x]
        np.testing.assert_allclose(ours.ratios, np.array(ratios), atol=2e-4)


@pytest.mark.parametrize("name", on_graphs)
@quickly
@given(parts=parts_of_a_graph(min_nodes=3), seed=st.integers(0, 10**6))
def test_repair_is_feasible_and_never_makes_a_state_worse(name, parts, seed):
    graph = Graph.from_edges(**parts)
    problem = PROBLEMS[name](graph)
    x = np.random.default_rng(seed).integers(0, problem.space.num_levels, graph.num_nodes, dtype=np.int8)
    before = x.copy()
    repaired = problem.repair(x)
    assert (x == before).all(), "repair changed its argument"
    assert repaired.dtype == x.dtype
    assert problem.is_feasible(repaired)
    sign = 1 if problem.sense == "max" else -1
    if "partition" not in name:  # repair never loses against the penalised value, feasible or not
        assert sign * problem.objective(repaired) >= model_value(problem, x[None])[0] - 1e-12
    again = problem.repair(repaired)
    assert sign * problem.objective(again) >= sign * problem.objective(repaired)
    if "partition" in name:
        assert (again == repaired).all()


@pytest.mark.parametrize("name", on_graphs)
@quickly
@given(parts=parts_of_a_graph(min_nodes=3, max_nodes=6))
def test_the_best_feasible_state_is_the_maximum_and_within_the_bound(name, parts):
    """Nothing infeasible beats the optimum, and what is best with the penalty is best once repaired."""
    graph = Graph.from_edges(**parts)
    problem = PROBLEMS[name](graph)
    x = states(graph.num_nodes, problem.space.num_levels)
    objective, feasible = problem.objective(x), problem.is_feasible(x)
    best = float(max(objective[feasible]) if problem.sense == "max" else min(objective[feasible]))
    bound = problem.bound()
    assert bound is None or bound == pytest.approx(best) or problem.is_better(bound, best)
    if "partition" not in name:
        values = model_value(problem, x)
        assert values.max() == pytest.approx(best if problem.sense == "max" else -best)
        assert problem.objective(problem.repair(x[values.argmax()])) == pytest.approx(best)


@quickly
@given(parts=parts_of_a_graph(), seed=st.integers(0, 10**6))
def test_a_clique_is_an_independent_set_of_the_complement(parts, seed):
    graph = Graph.from_edges(**parts)
    clique, mis = MaxClique(graph, weighted=True), MIS(graph.complement(), weighted=True)
    x = states(graph.num_nodes)
    np.testing.assert_array_equal(clique.violations(x), mis.violations(x))
    np.testing.assert_array_equal(clique.objective(x), mis.objective(x))
    np.testing.assert_allclose(clique.model.value(x), mis.model.value(x))
    start = x[seed % len(x)]
    np.testing.assert_array_equal(clique.repair(start), mis.repair(start))
    assert clique.bound() == mis.bound()
    chosen = np.flatnonzero(clique.repair(start)).tolist()
    joined = set(map(tuple, graph.edges.tolist()))
    assert all(pair in joined for pair in itertools.combinations(chosen, 2))


@quickly
@given(parts=parts_of_a_graph(), seed=st.integers(0, 10**6))
def test_a_repaired_independent_set_is_maximal(parts, seed):
    graph = Graph.from_edges(**parts)
    problem = MIS(graph)
    x = problem.repair(np.random.default_rng(seed).integers(0, 2, graph.num_nodes))
    for node in np.flatnonzero(x == 0):
        assert problem.violations(np.where(np.arange(len(x)) == node, 1, x)) > 0


def test_the_bound_of_larger_independent_sets():
    for seed in range(20):
        graph = nx.random_regular_graph(3, 14, seed)
        size = len(nx.max_weight_clique(nx.complement(graph), weight=None)[0])
        assert size <= MIS(graph).bound() < 14


def test_violations_count_edges_inside():
    triangle_and_tail = MIS(np.array([[0, 1], [1, 2], [0, 2], [2, 3]]))
    np.testing.assert_array_equal(triangle_and_tail.violations(np.array([[1, 1, 1, 1], [1, 0, 0, 1]])), [4, 0])
    assert MaxClique(triangle_and_tail.graph).violations(np.array([1, 1, 0, 1])) == 2


def test_repair_drops_the_most_conflicting_node():
    star = MIS(nx.star_graph(5))
    np.testing.assert_array_equal(star.repair(np.ones(6, int)), [0, 1, 1, 1, 1, 1])


def test_repair_of_a_weighted_set_keeps_what_is_heavy():
    star = nx.star_graph(3)
    nx.set_node_attributes(star, {0: 10.0, 1: 1.0, 2: 1.0, 3: 1.0}, "weight")
    np.testing.assert_array_equal(MIS(star, weighted=True).repair(np.ones(4, int)), [1, 0, 0, 0])


def test_objectives_of_integers_are_exact():
    """2^53 - 1 is the largest odd integer of a float; a float32 would round it."""
    heavy = 2.0**53 - 1
    graph = Graph.from_edges([[0, 1]], [heavy], node_weights=[heavy, 1])
    assert MIS(graph, weighted=True).objective(np.array([1, 0])) == heavy
    assert MaxCut(graph).objective(np.array([1, 0], np.int8)) == heavy
    assert QUBO(np.diag([heavy, 0])).objective(np.array([1, 0])) == heavy
    assert Custom(lambda e: heavy * e[0], dx.Binary(2)).objective(np.array([1, 0])) == heavy


@problems
def test_batches_and_descriptions(name):
    problem = PROBLEMS[name](random_graph(3))
    x = problem.init(np.random.default_rng(0), 6)
    assert x.shape == (6, 7)
    problem.space.check(x)
    batch = x.reshape(2, 3, 7)
    for of_states in (problem.objective, problem.violations, problem.is_feasible):
        together, single = of_states(batch), of_states(x[4])
        assert together.shape == (2, 3)
        assert single == together[1, 1]
    assert json.loads(json.dumps(problem.describe(x[0])))
    assert len(repr(problem)) < 100
    assert "7" in repr(problem)


def test_problems_are_frozen():
    problem = MIS(nx.path_graph(3))
    with pytest.raises(AttributeError):
        problem.penalty = 2.0
    assert problem.target is problem.target, "built once"


# What users pass


@pytest.mark.parametrize("name", [name for name in on_graphs if name not in ("qubo", "ising")])
def test_every_kind_of_graph_is_taken(name):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    matrix = scipy.sparse.coo_array((np.ones(4), edges.T), shape=(4, 4))
    x = np.array([[0, 1, 0, 1], [1, 1, 0, 0]])
    values = [PROBLEMS[name](graph).objective(x) for graph in (nx.cycle_graph(4), matrix, edges, edges.tolist())]
    for value in values[1:]:
        np.testing.assert_array_equal(value, values[0])


def test_solutions_are_described_in_the_names_of_the_source():
    graph = nx.Graph([("ada", "bob"), ("bob", (1, 2))])
    assert MIS(graph).describe(np.array([1, 0, 1])) == {"nodes": ["ada", "(1, 2)"], "size": 2}
    assert MaxCut(graph).describe(np.array([1, 0, 1]))["sides"] == [["bob"], ["ada", "(1, 2)"]]
    assert Partition(graph, 2).describe(np.array([1, 1, 0]))["parts"] == [["(1, 2)"], ["ada", "bob"]]


def test_a_graph_without_edges():
    empty = Graph.from_edges([], num_nodes=4)
    nothing, everything = np.zeros(4, int), np.ones(4, int)
    np.testing.assert_array_equal(MIS(empty).repair(nothing), everything)
    assert MIS(empty).bound() == 4
    assert MaxClique(empty).objective(MaxClique(empty).repair(everything)) == 1
    assert MaxClique(empty).bound() == 1
    assert MaxCut(empty).objective(everything) == 0
    assert MaxCut(empty).bound() == 0
    partition = Partition(empty, 3)
    assert partition.edge_cut_ratio(np.array([0, 1, 2, 0])) == 0
    for problem in (MIS(empty), MaxClique(empty), MaxCut(empty), partition):
        x = jnp.asarray(problem.init(np.random.default_rng(0), 1)[0])
        assert np.isfinite(problem.target.log_prob(problem.space.embed(x)))


@pytest.mark.parametrize("problem", [MIS, MaxClique, MaxCut, Partition])
def test_an_empty_graph_is_refused(problem, as_a_user):
    with pytest.raises(ValueError, match="at least one node, but this one is empty"):
        problem(nx.Graph())


REFUSED = {
    "penalty must be at least 1": lambda: MIS(nx.path_graph(3), penalty=0.5),
    "penalty must be finite": lambda: MaxClique(nx.path_graph(3), penalty=np.nan),
    "that of node b is -1; leave such nodes out": lambda: MIS(
        Graph.from_edges([[0, 1]], node_weights=[1, -1], names=["a", "b"]), weighted=True
    ),
    "num_parts must lie in 2..3, the number of nodes, but is 4": lambda: Partition(nx.path_graph(3), 4),
    "num_parts must lie in 2..3, the number of nodes, but is 1": lambda: Partition(nx.path_graph(3), 1),
    "needs at least two nodes": lambda: Partition(nx.path_graph(1), 2),
    "num_parts must be a whole number": lambda: Partition(nx.path_graph(3), 2.5),
    "balance must be at least 0": lambda: Partition(nx.path_graph(3), 2, balance=-1),
    "not joined, of which there may be 100,000,000": lambda: MaxClique(Graph.from_edges([[0, 1]], num_nodes=20_000)),
    "but got an array of shape": lambda: QUBO(np.zeros((2, 3))),
    "but got object": lambda: QUBO(object()),
    "at least one variable": lambda: QUBO(np.zeros((0, 0))),
    "must be finite": lambda: QUBO([[np.inf]]),
    "one names variable 5": lambda: QUBO(np.zeros(3), [[0, 5]], [1.0]),
    "Edges need `weights`": lambda: QUBO(np.zeros(3), [[0, 1]]),
    "There must be 1 weights, one per edge": lambda: QUBO(np.zeros(3), [[0, 1]], [1.0, 2.0]),
    "no edges were given": lambda: QUBO(np.zeros((3, 3)), weights=[1.0]),
    "Edges are pairs of integers": lambda: QUBO(np.zeros(3), [[0.5, 1]], [1.0]),
    "There are 2 variables, but 3 names": lambda: QUBO(np.eye(2), names="abc"),
    "vartype must be": lambda: QUBO(np.eye(2), vartype="spin"),
    "A dimod model comes alone": lambda: QUBO(dimod.BQM({0: 1}, {}, 0, "BINARY"), offset=1.0),
    "one axis of sites": lambda: Custom(jnp.sum, dx.Binary((2, 2))),
    'sense must be "max" or "min"': lambda: Custom(jnp.sum, dx.Binary(3), sense="maximise"),
    "penalty must be greater than 0": lambda: Custom(jnp.sum, dx.Binary(3), penalty=0),
    "must be a discrax space": lambda: Custom(jnp.sum, 3),
    "The objective must be a function of the embedding": lambda: Custom(3, dx.Binary(3)),
    "The objective must be a function that JAX can trace": lambda: Custom(
        lambda e: 1.0 if e[0] > 0 else 0.0, dx.Binary(3)
    ),
    "The violations must be a function that JAX can trace": lambda: Custom(
        jnp.sum, dx.Binary(3), violations=lambda e: float(np.asarray(e).sum())
    ),
    "The objective must return one number": lambda: Custom(lambda e: e, dx.Binary(3)),
    "it returns NoneType": lambda: Custom(lambda e: None, dx.Binary(3)),
    "must return a real number, but it returns complex64": lambda: Custom(lambda e: 1j * e.sum(), dx.Binary(3)),
    "but got the class itself": lambda: Custom(jnp.sum, dx.Binary),
    "repair must be a function": lambda: Custom(jnp.sum, dx.Binary(3), repair=3),
    "The terms of a QUBO must be real numbers": lambda: QUBO(np.eye(2) * 1j),
    "The weights of a QUBO must be real numbers": lambda: QUBO(scipy.sparse.coo_array(np.eye(2) * 1j)),
    "The terms of a QUBO must fit float32": lambda: QUBO([[1e308, 1e308], [0, 1e308]]),
    "The terms of a QUBO must add up to less than 1e+30": lambda: QUBO([[1e30, 1e30], [0, 1e30]]),
    "one of them is too large": lambda: QUBO([[10**400]]),
    "The weights of the edges and those of the nodes must add up to": lambda: MaxCut([[0, 1, 2e30]]),
    "would have 1,000,000,000 nodes": lambda: QUBO(scipy.sparse.coo_array(([1.0], ([0], [1])), shape=(10**9,) * 2)),
}


@pytest.mark.parametrize("message", list(REFUSED))
def test_bad_input_meets_a_sentence(message, as_a_user):
    with pytest.raises((ValueError, TypeError)) as caught:
        REFUSED[message]()
    assert message in str(caught.value)
    assert str(caught.value).endswith((".", "if)."))


# Partition


@quickly
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), k=st.integers(2, 6))
def test_sizes_of_parts_are_equal_up_to_one(seed, n, k):
    k = min(n, k)
    problem = Partition(Graph.from_edges([], num_nodes=n), k)
    rng = np.random.default_rng(seed)
    x = rng.integers(0, k, n)
    assert np.ptp(problem.sizes(problem.repair(x))) <= 1
    assert (problem.violations(x) == 0) == (np.ptp(problem.sizes(x)) <= 1)
    assert (x != problem.repair(x)).sum() == problem.violations(x), "no more nodes move than have to"
    assert problem.is_feasible(problem.init(rng, 4)).all()


def test_repair_of_a_partition_cuts_little():
    """Two cliques, one node on the wrong side: it is the one that goes back."""
    graph = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4))
    problem = Partition(graph, 2)
    np.testing.assert_array_equal(problem.repair(np.array([0, 0, 0, 1, 1, 1, 1, 1])), [0] * 4 + [1] * 4)


def test_repair_of_a_partition_counts_what_has_moved():
    """u goes first, for nothing; then v, which is joined to u, gains 1 where w would cost 1."""
    u, v, w, y, z = range(5)
    edges = [[u, v], [u, z], [v, y], [y, z], [w, y]]
    problem = Partition(Graph.from_edges(edges, [3, -3, 2, 10, 1]), 2)
    np.testing.assert_array_equal(np.flatnonzero(problem.repair(np.zeros(5, int))), [u, v])


def test_measures_of_a_partition():
    problem = Partition(Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]], [1, 5, 1, 1]), 2)
    x = np.array([0, 0, 1, 1, 1])
    assert problem.objective(x) == 5
    assert problem.edge_cut_ratio(x) == 0.25
    assert problem.balanceness(x) == pytest.approx(2 * (1 - 0.4**2 - 0.6**2))
    assert problem.balanceness_by_error(x) == pytest.approx(1 - 0.01)
    assert problem.balanceness(np.zeros(5, int)) == 0
