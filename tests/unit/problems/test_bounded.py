"""Quadratic forms whose totals are bounded: states, repair, and what a search finds."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discrax as dx
from discrax.exact.enumeration import chi_square
from discrax.problems import BinaryQuadratic, BoundedQuadratic
from discrax.solving.clock import SearchBudget
from discrax.solving.sites import search_by_sites
from discrax.solving.sites_swaps import SwapChains
from repeats import repeats


def normal(n: int, seed: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(n, n))
    return (matrix + matrix.T) / 2


def optimum(problem: dx.problems.QUBO) -> float:
    return float(problem.objective(problem.space.enumerate()).min())


ONE_HOT = {"groups": np.repeat(np.arange(4), 3), "exactly": 1}
PROBLEMS = {
    "exactly": lambda: dx.problems.QUBO(normal(14, 0), exactly=4),
    "one-hot": lambda: dx.problems.QUBO(normal(12, 1), offset=5.0, **ONE_HOT),
    "at most": lambda: dx.problems.QUBO(
        -normal(12, 2), groups=[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, -1, -1], at_most=[2, 1, 1]
    ),
    "at least": lambda: dx.problems.QUBO(np.round(9 * np.abs(normal(12, 3))), at_least=3, at_most=7),  # integers
    "spins": lambda: dx.problems.QUBO(
        np.zeros(8), [(i, i + 1) for i in range(7)], -np.ones(7), vartype="SPIN", exactly=4
    ),
    "one state": lambda: dx.problems.QUBO(normal(6, 4), exactly=6),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_search_finds_the_optimum_within_bounds(name):
    problem = PROBLEMS[name]()
    solution = dx.solve(jax.random.key(0), problem, dx.searches.Sites(num_chains=2), num_steps=200)
    assert solution.is_feasible
    assert solution.search == "sites"
    assert solution.objective == pytest.approx(optimum(problem))
    assert solution.history.best[-1] == pytest.approx(solution.objective)
    problem.space.check(solution.state)


def test_a_search_that_does_nothing_does_not():
    problem = dx.problems.QUBO(normal(60, 0), exactly=10)
    idle = dx.solve(jax.random.key(0), problem, seconds=0)
    assert idle.is_feasible
    found = dx.solve(jax.random.key(0), problem, dx.searches.Sites(num_chains=2), num_steps=300)
    assert found.objective < idle.objective - 1


def test_sixty_variables_of_which_ten_are_on():
    """What thousands of restarts of a search by best swaps found, in numpy; penalties ended at half of it."""
    problem = dx.problems.QUBO(-normal(60, 0), exactly=10)
    found = dx.solve(jax.random.key(1), problem, dx.searches.Sites(num_chains=2), num_steps=500)
    assert found.state.sum() == 10
    assert -found.objective == pytest.approx(57.15151232525529)


@pytest.mark.slow
@pytest.mark.parametrize("search", [dx.searches.Anneal(num_chains=8), dx.searches.Temper(num_chains=8)])
def test_a_search_with_a_sampler_finds_it_too(search):
    problem = PROBLEMS["exactly"]()
    solution = dx.solve(jax.random.key(0), problem, search, num_steps=300)
    assert solution.sampler == "swap"
    assert solution.objective == pytest.approx(optimum(problem))
    assert (solution.history.feasible_share == 1).all()
    assert solution.history.best[-1] == pytest.approx(solution.objective, rel=1e-4)


def test_chains_follow_the_law_of_states_within_bounds():
    """At one temperature, against the exact law: the loops' moves are symmetric, and their values do not drift."""
    form = BinaryQuadratic(np.linspace(-1, 1, 6), np.array([(1, 0), (4, 2), (1, 3)]), np.array([0.9, -1.1, 0.7]))
    space = dx.Binary(6, groups=[0, 0, 0, 1, 1, 1], at_least=[1, 2], at_most=[2, 2])
    chains = SwapChains(BoundedQuadratic(form, space), 2000, seed=0)
    chains.begin(None, 0, 2000)
    chains.anneal(np.full(30, 0.8), 0, 2000)
    codes = chains.codes(chains.states)
    space.check(codes)
    np.testing.assert_allclose(chains.current_values(), chains.exact_values(codes), atol=1e-9)
    counts = np.bincount(space.index(codes), minlength=len(space.enumerate()))
    law = dx.exact.law(dx.Tempered(BoundedQuadratic(form, space).target(), 0.8))
    assert chi_square(counts, law) > 1e-6
    assert chi_square(counts, dx.exact.law(dx.Tempered(chains.bounded.target(), 0.4))) < 1e-6


def test_a_search_keeps_what_it_was_given():
    problem = PROBLEMS["one-hot"]()
    states = problem.space.enumerate()
    best = states[np.argmin(problem.objective(states))]
    solution = dx.solve(jax.random.key(0), problem, num_steps=1, init=best[None])
    assert solution.objective == optimum(problem)
    with pytest.raises(ValueError, match="init holds states of the problem, but: The codes of group 0 must total 1"):
        dx.solve(jax.random.key(0), problem, num_steps=1, init=np.zeros((1, 12), np.int8))


def test_violations_count_what_repair_changes_at_least():
    problem = PROBLEMS["at most"]()
    assert (problem.violations(problem.space.enumerate()) == 0).all()
    x = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0])
    assert problem.violations(x) == 3
    assert problem.violations(np.stack([x, x])).tolist() == [3, 3]
    assert problem.is_feasible(problem.repair(x))


@pytest.mark.parametrize("name", PROBLEMS)
def test_repair_ends_within_bounds_and_makes_nothing_worse(name):
    problem, rng = PROBLEMS[name](), np.random.default_rng(0)
    for state in problem.init(rng, 5):
        problem.space.check(state)
        assert problem.objective(problem.repair(state)) <= problem.objective(state) + 1e-9
    for state in rng.integers(0, 2, (5, problem.space.num_sites)).astype(np.int8):
        problem.space.check(problem.repair(state))


def test_a_function_on_a_bounded_space_is_a_problem_too():
    space = dx.Ordinal(5, np.arange(4), exactly=7)
    problem = dx.problems.Custom(lambda e: (e * np.arange(5)).sum() - (e**2).sum(), space)
    rng = np.random.default_rng(0)
    space.check(problem.init(rng, 20))
    state = problem.init(rng, 1)[0]
    np.testing.assert_array_equal(problem.repair(state), state)


@pytest.mark.slow
def test_a_search_for_the_best_sum_keeps_it():
    space = dx.Ordinal(5, np.arange(4), exactly=7)
    problem = dx.problems.Custom(lambda e: (e * np.arange(5)).sum() - (e**2).sum(), space)
    solution = dx.solve(jax.random.key(0), problem, dx.searches.Anneal(num_chains=8), num_steps=200)
    assert solution.state.sum() == 7
    assert solution.objective == problem.objective(space.enumerate()).max()


def test_the_form_and_the_space_have_as_many_sites():
    form = BinaryQuadratic(np.zeros(3), np.zeros((0, 2), int), np.zeros(0))
    for space in (dx.Binary(3), dx.Binary(4, exactly=1)):
        with pytest.raises(ValueError, match="must have 3 sites in one axis and bounds"):
            BoundedQuadratic(form, space)


def random_problem(seed: int, n: int, density: float, has_integers: bool, num_groups: int) -> dx.problems.QUBO:
    """Of any size, density and bounds, with integers or floats."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    matrix = np.round(5 * matrix) if has_integers else matrix
    labels = rng.integers(-1, num_groups, n)
    present = np.unique(labels[labels >= 0])
    if not len(present):
        return dx.problems.QUBO(matrix, exactly=rng.integers(n + 1))
    labels = np.where(labels >= 0, np.searchsorted(present, labels), -1)
    sizes = np.bincount(labels[labels >= 0])
    low, high = np.sort(rng.integers(0, sizes + 1, (2, len(sizes))), axis=0)
    return dx.problems.QUBO(matrix, groups=labels, at_least=low, at_most=high)


SETTINGS = st.tuples(
    st.integers(0, 2**32), st.integers(1, 24), st.sampled_from([0.0, 0.2, 1.0]), st.booleans(), st.integers(1, 5)
)


def assert_feasible(problem: dx.problems.QUBO) -> None:
    """Of what the loops find, and of what repair makes of it."""
    budget = SearchBudget(num_steps=8)
    *_, last = search_by_sites(problem.model, num_chains=2, seed=0, init=None, budget=budget, num_threads=1)
    problem.space.check(last.best_states)
    np.testing.assert_allclose(-problem.objective(last.best_states), last.best_values + problem.model.offset, atol=1e-6)
    for state in last.best_states:
        repaired = problem.repair(state)
        assert problem.violations(repaired) == 0
        assert problem.objective(repaired) <= problem.objective(state) + 1e-9


@given(SETTINGS)
@settings(max_examples=50, deadline=None)
def test_solutions_of_random_problems_are_feasible(problem):
    assert_feasible(random_problem(*problem))


@pytest.mark.slow
@given(SETTINGS)
@settings(max_examples=repeats(150, 10_000), deadline=None)
def test_solutions_of_many_random_problems_are_feasible(problem):
    assert_feasible(random_problem(*problem))
