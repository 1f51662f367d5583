"""Weights of any scale, first states that are the best, and time that is short."""

import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import discrax as dx
from discrax import problems
from discrax.problems.problem import is_rounding
from discrax.solving import solve
from discrax.solving.clock import Blocks, Clock, SearchBudget
from discrax.solving.finishing import Finish
from discrax.solving.searches import Sets, Sites, choose_search
from discrax.solving.sites import search_by_sites

KEY = jax.random.key(0)
UNEVEN = problems.Partition({(0, 1): 3.0, (1, 3): 4.0, (3, 5): 9.0, 2: 1.0, 4: 1.0}, 3, balance=0.1)
BEST = np.array([0, 0, 1, 2, 1, 2], np.int8)  # cuts 4: the penalised objective has a better state, of unequal parts


# --- Partitions ------------------------------------------------------------------------------------------------------


def test_first_states_that_are_the_best_are_kept():
    assert UNEVEN.objective(BEST) == 4
    clock = Clock(SearchBudget(num_steps=1))
    for init, kept in ((BEST, 4.0), (np.array([0, 0, 0, 0, 0, 0], np.int8), None)):
        finish = Finish([UNEVEN], [init[None]], clock, is_given=True)
        assert [each.objective for each in finish._first[0]] == ([] if kept is None else [kept])
    for search in ("sites", "anneal"):
        assert solve(KEY, UNEVEN, search, init=BEST, num_steps=10, progress=False).objective == 4


def test_states_of_equal_parts_are_reported_beside_the_others():
    """Of this problem the best states by the penalised objective are of unequal parts."""
    budget = SearchBudget(num_steps=50)
    *_, last = search_by_sites(UNEVEN.model, num_chains=3, seed=0, init=None, budget=budget)
    best, even = np.split(last.best_states, 2)
    assert not UNEVEN.is_feasible(best).any()
    assert UNEVEN.is_feasible(even).all()
    assert UNEVEN.objective(even).min() == 4


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_equal_sizes_are_kept_beside_the_others(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(9, 0.6, seed=seed)
    nx.set_edge_attributes(graph, {edge: float(rng.integers(1, 12)) for edge in graph.edges}, "weight")
    problem = problems.Partition(graph, 2)
    states = np.array([x for x in itertools.product((0, 1), repeat=9) if sum(x) in (4, 5)], np.int8)
    assert solve(KEY, problem, num_steps=1000, progress=False).objective == problem.objective(states).min()


def test_the_price_of_unequal_parts_is_that_of_an_edge():
    graph = nx.random_geometric_graph(40, 0.3, seed=1)
    found = []
    for weight in (1.0, 1000.0):
        nx.set_edge_attributes(graph, weight, "weight")
        problem = problems.Partition(graph, 3)
        assert problem.model.size_cost == weight
        x = np.random.default_rng(0).integers(0, 3, 40).astype(np.int8)
        target = problem.target
        assert target.log_prob(target.space.embed(jnp.asarray(x))) == pytest.approx(
            -2 * problem.objective(x) - weight * ((40 / 3 - problem.sizes(x)) ** 2).sum(), rel=1e-5
        )
        found.append(solve(KEY, problem, num_steps=500, progress=False).objective / weight)
    assert found[0] == found[1]


# --- Proofs ----------------------------------------------------------------------------------------------------------


def test_whole_numbers_are_never_rounding():
    assert is_rounding(1e11 + 54, 1e11 + 54)
    assert not is_rounding(1e11 + 54, 1e11 + 53)
    assert not is_rounding(1e14 + 1, 1e14)
    assert is_rounding(0.1 + 0.2, 0.3)
    assert not is_rounding(1e11 + 0.5, 1e11)
    assert not is_rounding(np.inf, 1.0)


def test_a_heavy_edge_proves_nothing_of_the_light_ones():
    graph = nx.random_regular_graph(3, 40, seed=1)
    nx.set_edge_attributes(graph, 1.0, "weight")
    graph.add_edge("x", "y", weight=1e11)
    light = solve(KEY, problems.MaxCut(graph), seconds=0, progress=False)
    assert light.objective < 1e11 + 54
    assert not light.is_proved_optimal
    assert solve(KEY, problems.MaxCut(graph), num_steps=1000, progress=False).objective == 1e11 + 54


def test_sets_whose_light_nodes_would_all_weigh_the_same_are_searched_site_by_site():
    graph = nx.gnp_random_graph(20, 0.2, seed=0)
    for heavy, search in ((99.0, Sets), (1e12, Sites)):
        weights = {node: float(1 + node % 7) if node < 15 else heavy for node in graph}
        nx.set_node_attributes(graph, weights, "weight")
        assert isinstance(choose_search(problems.MIS(graph, weighted=True), is_spread=False), search)
    floats = problems.MIS(nx.set_node_attributes(graph, {n: 0.1 + n for n in graph}, "weight") or graph, weighted=True)
    assert isinstance(choose_search(floats, is_spread=False), Sets)


# --- Time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
def test_repair_that_has_no_time_is_quick_and_feasible(count):
    """After `count` single moves the rest is done at once."""
    graph = nx.random_regular_graph(4, 3_000, seed=1)
    price = {i: -float(x) for i, x in enumerate(np.random.default_rng(0).random(3_000))}
    few = problems.ConstrainedQUBO(price, [(dict.fromkeys(range(3000), 1.0), "<=", 10.0)])
    for problem in (problems.Partition(graph, 3), few):
        looks = iter(range(10**6))
        x = problem.repair_in_time(np.ones(3_000, np.int8), lambda looks=looks: next(looks) >= count)
        assert problem.is_feasible(x)
        assert next(looks) < count + 60


def test_many_constraints_at_once():
    rng = np.random.default_rng(0)
    for _ in range(20):
        some = [
            ({int(i): float(rng.integers(1, 4)) for i in rng.choice(12, 5, replace=False)}, sense, 5.0)
            for sense in ("<=", ">=", "<=")
        ]
        problem = problems.ConstrainedQUBO({(i,): float(rng.normal()) for i in range(12)}, some)
        x = rng.integers(0, 2, 12).astype(np.int8)
        assert problem.violations(problem.repair_in_time(x, lambda: True)) <= problem.violations(x)


def test_a_folder_that_has_made_more_steps_than_are_asked_for_is_the_answer(tmp_path):
    problem = problems.Custom(lambda e: -((e.sum() - 3.0) ** 2), dx.Binary(8))
    settings = {"folder": tmp_path / "run", "progress": False}
    solve(KEY, problem, "anneal", num_steps=100, callback=lambda report: report.num_steps >= 30, **settings)
    assert solve(jax.random.key(1), problem, "anneal", num_steps=20, **settings).objective == 0
    assert (
        Blocks(Clock(SearchBudget(num_steps=0)), count=4, longest=8, most_turns=2, first_guess=1.0).next_block(0)
        is None
    )
