"""Graphs of conflicts that come from formulas: which they are, and that sets come back."""

import itertools

import jax
import networkx as nx
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, Graph
from discrax.solving.clause_graphs import recognise

KEY = jax.random.key(0)


def random_formula(seed: int, num_variables: int, num_clauses: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows = [1 + generator.choice(num_variables, 3, replace=False) for _ in range(num_clauses)]
    return np.array(rows) * generator.choice([-1, 1], (num_clauses, 3))


def conflicts(clauses: np.ndarray) -> Graph:
    """Node 3 i + j is literal j of clause i, but nodes have other numbers in the end."""
    literals, clause = clauses.ravel(), np.repeat(np.arange(len(clauses)), 3)
    are_joined = (clause[:, None] == clause) | (literals[:, None] == -literals)
    mixed = np.random.default_rng(0).permutation(len(literals))
    return Graph.from_edges(mixed[np.argwhere(np.triu(are_joined, 1))], num_nodes=len(literals))


def most_true(clauses: np.ndarray) -> int:
    n = int(np.abs(clauses).max())
    x = np.array(list(itertools.product([-1, 1], repeat=n)))
    return int((x[:, np.abs(clauses) - 1] * clauses > 0).any(axis=2).sum(axis=1).max())


@pytest.mark.parametrize("seed", range(5))
def test_a_formula_is_recognised_and_its_sets_come_back(seed):
    graph = conflicts(random_formula(seed, 8, 40))
    found = recognise(graph.num_nodes, graph.edges)
    assert found is not None
    formula = found.formula
    assert formula.num_terms == 40
    x = np.random.default_rng(seed).integers(0, 2, (50, formula.num_sites)).astype(np.int8)
    sets = found.lift(x)
    assert np.array_equal(sets.sum(axis=1), formula.value(x))
    assert not (sets[:, graph.edges[:, 0]] & sets[:, graph.edges[:, 1]]).any()
    assert (formula.value(found.project(sets)) >= formula.value(x)).all()


@pytest.mark.parametrize("seed", range(3))
def test_as_many_nodes_as_clauses_can_be_true(seed):
    clauses = random_formula(seed, 6, 70)
    found = dx.solve(KEY, MIS(conflicts(clauses)), num_steps=200)
    assert found.search == "sets"
    assert found.is_feasible
    assert found.objective == most_true(clauses) < 70


def test_a_set_with_a_node_of_every_clause_ends_the_search():
    clauses = random_formula(1, 20, 40)
    found = dx.solve(KEY, MIS(conflicts(clauses)), seconds=30)
    assert found.objective == 40
    assert found.is_proved_optimal
    assert found.seconds < 15


def test_first_states_are_kept():
    graph = conflicts(random_formula(2, 6, 30))
    best = dx.solve(KEY, MIS(graph), num_steps=200)
    again = dx.solve(KEY, MIS(graph), init=best, num_steps=1)
    assert again.objective == best.objective


@pytest.mark.parametrize("change", ["an edge less", "an edge more"])
def test_other_graphs_are_not(change):
    graph = conflicts(random_formula(0, 8, 40))
    edges = graph.edges
    if change == "an edge less":
        edges = edges[1:]
    else:
        there = set(map(tuple, np.sort(edges, axis=1).tolist()))
        new = next(pair for pair in itertools.combinations(range(graph.num_nodes), 2) if pair not in there)
        edges = np.concatenate([edges, [new]])
    assert recognise(graph.num_nodes, edges) is None


@pytest.mark.parametrize("graph", [nx.path_graph(6), nx.complete_graph(5), nx.empty_graph(4), nx.cycle_graph(5)])
def test_small_graphs(graph):
    found = dx.solve(KEY, MIS(graph), num_steps=20)
    assert found.objective == {6: 3, 4: 4}.get(len(graph), 1 if graph.number_of_edges() == 10 else 2)


def test_weighted_nodes_are_searched_as_they_are():
    graph = conflicts(random_formula(0, 8, 40))
    weights = 1.0 + np.arange(graph.num_nodes) % 3
    weighted = Graph(graph.num_nodes, graph.edges, graph.weights, weights)
    found = dx.solve(KEY, MIS(weighted, weighted=True), num_steps=300)
    assert found.is_feasible
    assert found.objective > 40
