"""Searches of sets: planted sets are found, every report is feasible, results depend on seeds and steps alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discrax.problems import MIS, QUBO, Graph, MaxClique
from discrax.problems.generators import erdos_renyi, rb_model
from discrax.problems.problem import BinaryQuadratic
from discrax.solving import covers
from discrax.solving.clock import SearchBudget
from discrax.solving.covers import is_set_model, search_sets
from discrax.solving.engine import Report
from discrax.solving.reductions import reduce_graph
from repeats import repeats

from .clocks import Hands
from .test_reductions import optimum, random_graph

KINDS = {"both": (0.2, 0.2), "cover": (0.0, 0.0), "swaps": (1.0, 1.0)}


def all_reports(model: BinaryQuadratic, num_steps: int = 100, **options) -> list[Report]:
    told = {"num_chains": 2, "seed": 0, "init": None, "budget": SearchBudget(num_steps=num_steps)} | options
    return list(search_sets(model, **told))


def last(model: BinaryQuadratic, num_steps: int = 100, **options) -> Report:
    return all_reports(model, num_steps, **options)[-1]


def weighted_mis(n: int, edges: np.ndarray, weights: np.ndarray) -> MIS:
    return MIS(Graph.from_edges(edges, num_nodes=n, node_weights=weights), weighted=True)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(covers, "_SHARES_OF_SWAPS", KINDS[request.param])
    monkeypatch.setattr(covers, "_ROUND", 2000)
    return request.param


@pytest.fixture(params=["matrix", "lists"])
def storage(request, monkeypatch):
    monkeypatch.setattr(covers, "_MOST_NODES_OF_A_MATRIX", 4096 if request.param == "matrix" else 0)
    return request.param


def assert_planted(problem_of):
    graph = rb_model(15, 9, 0.25, seed=3, is_planted=True)
    problem = problem_of(graph)
    report = last(problem.model, 300)
    assert report.best_values.max() == 15
    assert (problem.violations(report.best_states) == 0).all()
    assert (problem.objective(report.best_states) == report.best_values).all()


@pytest.mark.parametrize("problem_of", [MIS, lambda graph: MaxClique(graph.complement())])
def test_finds_planted_sets(problem_of, kind, storage):
    assert_planted(problem_of)


def test_an_idle_search_does_not_find_planted_sets(monkeypatch):
    """It takes in what fits, and that is all."""
    for each in (covers._Cover, covers._Swaps):

        def idle(self, count, run=each.run):
            run(self, min(count, max(0, 15 - int(self.numbers[covers.covers.CLOCK]))))

        monkeypatch.setattr(each, "run", idle)
    with pytest.raises(AssertionError):
        assert_planted(MIS)


def test_optima_of_small_weighted_graphs(storage):
    for seed in range(40):
        n, edges, weights = random_graph(seed, is_weighted=True)
        weights = weights + np.random.default_rng(seed).uniform(0, 0.5, n) * (seed % 2)
        report = last(weighted_mis(n, edges, weights).model, 100)
        assert np.isclose(report.best_values.max(), optimum(n, edges, weights))


def assert_feasible_reports(seed, density, is_weighted, is_clique, has_init, num_steps):
    generator = np.random.default_rng(seed)
    graph = erdos_renyi(int(generator.integers(1, 60)), density, seed)
    weights = generator.integers(1, 9, graph.num_nodes) if is_weighted else None
    graph = Graph.from_edges(graph.edges, num_nodes=graph.num_nodes, node_weights=weights)
    problem = (MaxClique if is_clique else MIS)(graph, weighted=is_weighted)
    init = generator.integers(0, 2, (2, graph.num_nodes)) if has_init else None
    hands = Hands(tick=0.05)  # every look finds that a report is due
    budget = SearchBudget(num_steps=num_steps)
    for report in all_reports(problem.model, init=init, seed=seed, budget=budget, clock=hands.make(budget)):
        assert (problem.violations(report.best_states) == 0).all()
        assert np.allclose(problem.objective(report.best_states), report.best_values)


@settings(max_examples=repeats(15, 40), deadline=None)
@given(st.integers(0, 10**6), st.floats(0.02, 0.9), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 20))
def test_every_reported_state_is_feasible(seed, density, is_weighted, is_clique, has_init, num_steps):
    assert_feasible_reports(seed, density, is_weighted, is_clique, has_init, num_steps)


def test_sets_that_are_not_lifted_back_are_not_feasible(monkeypatch):
    monkeypatch.setattr(covers.Kernel, "lift", lambda self, x: np.ones((len(x), self.num_nodes), np.uint8))
    with pytest.raises(AssertionError):
        assert_feasible_reports(0, 0.3, False, False, False, 10)


def test_tracked_keys_are_those_of_the_sets(storage):
    graph = erdos_renyi(150, 0.3, 1)
    kernel = reduce_graph(150, graph.edges)
    stored = covers._Graph(kernel)
    streams = covers.streams(0, 2)
    cover, swaps = covers._Cover(stored, streams[0], None), covers._Swaps(stored, streams[1], None)
    for search in (cover, swaps):
        search.run(3000)
    w = np.zeros((150, 150), np.int64)
    w[kernel.edges[:, 0], kernel.edges[:, 1]] = 1
    x = np.zeros(150, bool)
    x[swaps.members[: swaps.numbers[0]]] = True
    held = covers.covers.HELD * ((swaps.key[:150] >= covers.covers.HELD // 2) & ~x)
    assert (swaps.key[:150] - covers.covers.IN * x - held == (w + w.T) @ x - 1).all()
    if storage == "matrix":
        w = cover.matrix[:, :150].astype(np.int64)
    else:
        ends = np.repeat(np.arange(150), np.diff(stored.start))
        w = np.zeros((150, 150), np.int64)
        w[ends, stored.others] = cover.weights
    x = np.zeros(150, bool)
    x[cover.members[: cover.numbers[0]]] = True
    assert (w == w.T).all()
    assert w.max() > 2
    assert (cover.key[:150] - covers.covers.IN * x == w @ x).all()


def test_weights_that_are_forgotten_keep_the_keys_right(storage, monkeypatch):
    """A few nodes: half their number is soon passed by the mean weight."""
    graph = rb_model(4, 3, 0.5, seed=1)
    stored = covers._Graph(covers.Kernel(np.arange(12), graph.edges, np.ones(12), 0.0, np.zeros((0, 4), np.int32), 12))
    cover = covers._Cover(stored, covers.streams(0, 1)[0], None)
    cover.run(20_000)
    assert cover.numbers[covers.covers.TOTAL] < 7 * graph.num_edges + 10
    assert cover.best_value == optimum(12, graph.edges, np.ones(12))


def test_results_do_not_depend_on_threads_or_slices(kind, monkeypatch):
    model = MIS(erdos_renyi(120, 0.1, 5)).model
    expected = last(model, 10, num_chains=3, num_threads=1)
    assert expected.num_steps == 10
    assert not (expected.best_states == last(model, 10, num_chains=3, seed=1).best_states).all()
    monkeypatch.setattr(covers, "_SLICE", 1e-3)
    for num_threads in (2, 3):
        again = last(model, 10, num_chains=3, num_threads=num_threads)
        assert (again.best_states == expected.best_states).all()


def test_seconds_are_held(monkeypatch):
    hands, run = Hands(tick=1e-4), covers._Chain.run

    def timed(self, count):
        run(self, count)
        hands.time += 1e-5 * count

    monkeypatch.setattr(covers._Chain, "run", timed)
    budget = SearchBudget(seconds=1.0)
    report = last(MIS(erdos_renyi(80, 0.2, 0)).model, budget=budget, clock=hands.make(budget), num_chains=1)
    assert report.fraction == 1
    assert report.num_steps > 500
    assert hands.time < 1.1


def test_init_is_kept_and_begun_from():
    graph = rb_model(12, 8, 0.25, seed=3, is_planted=True)
    model = MIS(graph).model
    best = last(model, 300).best_states[0]
    assert best.sum() == 12
    assert last(model, 0, init=best).best_values.tolist() == [12, 12]
    assert last(model, 0).best_values.max() < 12
    everything = np.ones((2, graph.num_nodes), np.int8)
    assert (MIS(graph).violations(last(model, 0, init=everything).best_states) == 0).all()


def test_ends_at_the_target_or_when_nothing_can_be_better():
    planted = MIS(rb_model(12, 8, 0.25, seed=3, is_planted=True)).model
    assert last(planted, 10**9, target=12).best_values.max() == 12
    alone = MIS(Graph.from_edges(np.zeros((0, 2), np.int64), num_nodes=5)).model
    assert last(alone, 10**9).best_values.tolist() == [5, 5]


def test_which_models_are_sets():
    graph = erdos_renyi(10, 0.4, 0)
    assert is_set_model(MIS(graph).model)
    assert is_set_model(MaxClique(graph, penalty=1.0).model)
    assert is_set_model(weighted_mis(10, graph.edges, np.arange(1, 11)).model)
    assert not is_set_model(QUBO(np.eye(3)).model)
    assert not is_set_model(BinaryQuadratic(np.ones(2), np.array([[0, 1]]), np.array([-0.5])))
    assert not is_set_model(None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_chains": 0}, "at least one chain"),
        ({"num_threads": 0}, "at least one thread"),
        ({"budget": SearchBudget()}, "seconds or of steps"),
        ({"budget": SearchBudget(seconds=-1)}, "not negative"),
        ({"init": np.zeros(3, int)}, "init has shape"),
        ({"init": np.full(10, 2)}, "codes 0 and 1"),
    ],
)
def test_arguments_that_make_no_sense(options, said):
    with pytest.raises(ValueError, match=said):
        all_reports(MIS(erdos_renyi(10, 0.4, 0)).model, **options)
    with pytest.raises(ValueError, match="positive weight"):
        all_reports(QUBO(np.eye(3)).model)
