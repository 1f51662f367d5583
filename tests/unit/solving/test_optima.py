"""All best states, the proof that nothing is better, searches that end where it is found, and warm starts."""

import jax
import numpy as np
import pytest

from discrax.problems import MIS, QUBO, Graph, MaxCut, Partition
from discrax.problems.generators import rb_model
from discrax.solving import Solution, annealing, finishing, sites, solve, solve_many, solver
from discrax.solving.engine import Report
from discrax.solving.searches import Anneal, Sites
from discrax.solving.sites_chains import BinaryChains

from .clocks import Hands

KEY = jax.random.key(5)
# Paths of three nodes 0-1-2, 3-4-5, ...: of each the ends are in the set, or the middle alone.
PATHS = np.concatenate([3 * i + np.array([[0, 1], [1, 2]]) for i in range(6)])
# Pairs whose spins are opposite: 2^4 ground states.
PAIRS = QUBO({}, {(2 * i, 2 * i + 1): 1.0 for i in range(4)}, vartype="SPIN")
PLANTED = MIS(rb_model(8, 4, 0.25, seed=1, is_planted=True))
_SITE = np.arange(144).reshape(12, 12)
TORUS = Graph.from_edges(
    np.concatenate([np.stack([_SITE, np.roll(_SITE, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
)
CHECKERBOARD = (_SITE // 12 + _SITE).ravel() % 2


def assert_finds_all(problem, best, count):
    solution = solve(KEY, problem, Sites(num_chains=16), num_steps=2000)
    assert solution.objective == best
    assert len(solution.states) == count
    assert (problem.objective(solution.states) == best).all()
    np.testing.assert_array_equal(solution.states, np.unique(solution.states, axis=0))
    assert (solution.states == solution.state).all(axis=1).any()


def test_all_distinct_best_states_are_returned():
    assert_finds_all(MaxCut(TORUS), 288, 2)


def test_they_are_not_found_by_a_search_that_does_nothing(monkeypatch):
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)
    with pytest.raises(AssertionError):
        assert_finds_all(MaxCut(TORUS), 288, 2)


def test_one_chain_has_one_best_state():
    solution = solve(KEY, PAIRS, Sites(num_chains=1), num_steps=20)
    np.testing.assert_array_equal(solution.states, solution.state[None])


def test_states_that_are_not_as_good_are_left_out(monkeypatch):
    monkeypatch.setattr(QUBO, "repair", lambda self, x: np.array(x))
    states = np.array([[0, 1, 0, 1, 0, 1, 0, 1], [0] * 8, [1, 0] * 4, [1, 0] * 4, [0, 1, 0, 1, 0, 1, 0, 0]], np.int8)
    report = Report(1, 1.0, 1.0, np.zeros(5), -PAIRS.objective(states), states)
    monkeypatch.setattr(sites, "search_by_sites", lambda *_, **__: iter([report]))
    np.testing.assert_array_equal(solve(KEY, PAIRS, Sites(num_chains=5), num_steps=1).states, states[[0, 2]])


def test_states_are_few_and_the_best_is_among_them(monkeypatch):
    monkeypatch.setattr(finishing, "_MOST_STATES", 5)
    solution = solve(KEY, PAIRS, Sites(num_chains=64), num_steps=20)
    assert len(solution.states) == 5
    assert (solution.states == solution.state).all(axis=1).any()


def test_what_is_not_feasible_stands_alone():
    alone, other = (finishing.Candidate(np.array([i, 1]), 3.0, False, 1.0) for i in (0, 1))
    np.testing.assert_array_equal(alone.join([other]).states, [[0, 1]])
    feasible = finishing.Candidate(np.array([1, 0]), 3.0, True, 0.0)
    np.testing.assert_array_equal(feasible.join([other, other]).states, [[1, 0]])


def test_a_folder_keeps_the_states_and_adds_to_them(tmp_path, monkeypatch):
    begin = np.array([[0, 1] * 4, [1, 0] * 4], np.int8)
    for num_steps, state in enumerate(begin, 1):
        report = Report(1, 1.0, 1.0, np.zeros(1), np.full(1, 4.0), state[None])
        monkeypatch.setattr(sites, "search_by_sites", lambda *_, report=report, **__: iter([report]))
        found = solve(KEY, PAIRS, Sites(num_chains=1), num_steps=num_steps, folder=tmp_path)
        np.testing.assert_array_equal(found.states, begin[:num_steps])
        np.testing.assert_array_equal(Solution.load(tmp_path, PAIRS).states, found.states)


@pytest.mark.parametrize(
    ("problem", "is_proved"),
    [
        (MIS(Graph.from_edges(PATHS)), True),
        (MIS(Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])), False),  # covered by three cliques, not two
        (MaxCut(TORUS), True),
        (PAIRS, True),
        (QUBO(np.diag([-1.5, 2.5])), True),
        (Partition(Graph.from_edges([[0, 1], [2, 3]]), 2), True),
    ],
    ids=str,
)
def test_a_bound_that_is_met_proves_that_nothing_is_better(problem, is_proved):
    solution = solve(KEY, problem, Sites(num_chains=4), num_steps=400)
    assert solution.is_proved_optimal == is_proved
    assert ("proved optimal" in repr(solution)) == is_proved
    assert solution.to_dict()["is_proved_optimal"] == is_proved
    worse = np.zeros_like(solution.state)
    assert not problem.meets_bound(
        float(problem.objective(worse)) + (1 if problem.sense == "min" else -1), solution.bound
    )


def test_rounding_does_not_hide_a_proof():
    rng = np.random.default_rng(0)
    weights, signs = rng.uniform(0.1, 1.0, TORUS.num_edges), rng.choice([-1, 1], 144)
    problem = QUBO(np.zeros(144), TORUS.edges, -weights * signs[TORUS.edges].prod(1), vartype="SPIN")
    planted = (signs > 0).astype(np.int8)
    assert problem.meets_bound(float(problem.objective(planted)), problem.bound())
    planted[0] = 1 - planted[0]
    assert not problem.meets_bound(float(problem.objective(planted)), problem.bound())


@pytest.fixture
def hands(monkeypatch):
    """A sweep, or a look at the clock, takes a millisecond."""
    hands, anneal = Hands(tick=1e-3), BinaryChains.anneal

    def slow(self, betas, low, high):
        hands.time += 1e-3 * len(betas)
        anneal(self, betas, low, high)

    monkeypatch.setattr(BinaryChains, "anneal", slow)
    monkeypatch.setattr(solver, "Clock", hands.make)
    return hands


def test_seconds_are_not_spent_once_nothing_is_better(hands):
    solution = solve(KEY, MaxCut(TORUS), Sites(num_chains=1), seconds=1000.0)
    assert solution.objective == 288
    assert solution.is_proved_optimal
    assert solution.is_complete
    assert solution.seconds < 500


def test_seconds_are_spent_where_the_bound_is_not_met(hands):
    solution = solve(KEY, PLANTED, Sites(num_chains=1), seconds=2.0)
    assert solution.seconds > 1.5
    assert solution.is_proved_optimal == (solution.bound == 8)


def test_all_problems_of_a_search_must_be_proved():
    proof = finishing._Proof([MaxCut(TORUS), MaxCut({("a", "b"): 1.0})])
    assert not proof.holds([CHECKERBOARD, np.zeros(2, np.int8)])
    assert proof.holds([CHECKERBOARD, np.array([0, 1])])
    one_without = finishing._Proof([MaxCut(TORUS), MaxCut(Graph.from_edges([[0, 1], [1, 2], [2, 0]]))])
    assert not one_without.holds([CHECKERBOARD, np.array([0, 1, 1])])  # cuts two of three, and no bound says so


def test_steps_are_spent_in_any_case(hands):
    assert solve(KEY, MaxCut(TORUS), Sites(num_chains=1), num_steps=3000).num_steps == 3000


def test_a_proof_needs_a_feasible_state():
    """An overfull set passes the bound of sizes, and is none."""
    problem = MIS(Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]))
    proof = finishing._Proof([problem])
    assert problem.meets_bound(float(problem.objective(np.ones(5, np.int8))), problem.quick_bound())
    assert not proof.holds([np.ones(5, np.int8)])


def idle_sites(model, *, num_chains, seed, init, **_):
    """Finds nothing, and knows what it was given."""
    given = np.random.default_rng(seed).integers(0, 2, (num_chains, model.num_sites)) if init is None else init
    yield Report(1, 1.0, 1.0, np.zeros(num_chains), np.zeros(num_chains), given.astype(np.int8))


def idle_anneal(key, targets, sampler, x, *_, **__):
    yield [Report(1, 1.0, 1.0, np.zeros(len(states)), np.zeros(len(states)), states) for states in x]


@pytest.mark.parametrize(
    "search", [Sites(), Sites(num_chains=3), Anneal(sampler="pas"), Anneal(num_chains=3, sampler="pas")], ids=str
)
def test_one_state_or_a_solution_begins_a_search(search, monkeypatch):
    problem = MaxCut(TORUS)
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)
    monkeypatch.setattr(annealing, "anneal", idle_anneal)
    cold = solve(KEY, problem, search, num_steps=1)
    warm = solve(KEY, problem, search, num_steps=1, init=CHECKERBOARD)
    again = solve(KEY, problem, search, num_steps=1, init=warm)
    assert cold.objective < warm.objective == again.objective == 288
    assert warm.num_chains == again.num_chains == cold.num_chains
    np.testing.assert_array_equal(warm.states, CHECKERBOARD[None])
    (many,) = solve_many(KEY, [problem], search, num_steps=1, init=[warm])
    assert many.objective == 288


def test_the_states_of_a_solution_are_dealt_to_the_chains(monkeypatch):
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)
    begin = np.array([[0, 1] * 4, [1, 0] * 4], np.int8)
    first = solve(KEY, PAIRS, num_steps=1, init=begin)
    assert first.num_chains == 2
    second = solve(KEY, PAIRS, Sites(num_chains=5), num_steps=1, init=first)
    assert second.num_chains == 5
    np.testing.assert_array_equal(second.states, begin)


def test_a_solution_of_another_problem_is_refused(as_a_user):
    solution = solve(KEY, PAIRS, Sites(num_chains=1), num_steps=1)
    with pytest.raises(ValueError, match=r"init has one state a chain, shape \(chains, 144\), but its shape is"):
        solve(KEY, MaxCut(TORUS), num_steps=1, init=solution)
