"""`solve`: what it finds and what it returns. How it ends is in `test_endings.py`.

The instances are larger than repair can manage: a search that returns its first states fails the same assertions.
"""

import typing

import jax
import numpy as np
import pytest

from discrax.problems import MIS, Graph, MaxCut, Partition
from discrax.problems.generators import erdos_renyi, rb_model
from discrax.solving import annealing, sites, solve, solve_many, tempering
from discrax.solving.engine import Report
from discrax.solving.padding import pad
from discrax.solving.schedules import KINDS, BetaSchedule, make_schedule, suitable_betas
from discrax.solving.searches import Anneal, Sites, Temper

from .instances import BY_SAMPLER, CHECKERBOARD, KEY, PROBLEM, PROBLEMS, SITES, STEPS

pytestmark = pytest.mark.usefixtures("in_turns_of_five_steps", "hands")


def idle_report(states):
    values = np.zeros(len(states))
    return Report(1, 1.0, 1.0, values, values, states)


def idle_anneal(key, targets, sampler, x, schedules, clock, **_):
    yield [idle_report(states) for states in x]


def idle_temper(key, target, sampler, x, schedule, clock, *_):
    yield idle_report(x[0])


def idle_sites(model, *, num_chains, seed, init, **_):
    n, levels = (model.num_nodes, model.num_labels) if hasattr(model, "num_nodes") else (model.num_sites, 2)
    yield idle_report(np.random.default_rng(seed).integers(0, levels, (num_chains, n)).astype(np.int8))


@pytest.fixture
def idle(monkeypatch):
    """Searches that do nothing."""
    monkeypatch.setattr(annealing, "anneal", idle_anneal)
    monkeypatch.setattr(tempering, "temper", idle_temper)
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)


def assert_solved(name, search, num_steps=200):
    problem, best = PROBLEMS[name]
    solution = solve(KEY, problem, search, num_steps=num_steps)
    assert solution.objective == pytest.approx(best)
    assert solution.is_feasible
    assert solution.is_complete
    assert solution.objective == pytest.approx(float(problem.objective(solution.state)))
    if solution.bound is not None:
        assert not problem.is_better(solution.objective, solution.bound + (1e-9 if problem.sense == "max" else -1e-9))
    return solution


TEMPER = Temper(num_chains=4, sampler="pas", num_rungs=4)
SEARCHES = [  # by samplers and by sites; replicas are in test_searches.py
    pytest.param(name, search, marks=pytest.mark.slow if (name, search) in slow else [], id=f"{name}-{search.name}")
    for slow in [[("partition", TEMPER), ("custom", TEMPER)]]
    for search in (BY_SAMPLER, TEMPER, SITES)
    for name in PROBLEMS
    if (name, search) != ("custom", SITES)
]


@pytest.mark.parametrize(("name", "search"), SEARCHES)
def test_the_optimum_is_found(name, search):
    assert_solved(name, search)


@pytest.mark.parametrize(("name", "search"), [each.values for each in SEARCHES])
def test_the_optimum_is_not_found_by_a_search_that_does_nothing(name, search, idle):
    with pytest.raises(AssertionError):
        assert_solved(name, search)


def test_a_function_has_no_sites_to_search_one_by_one():
    with pytest.raises(ValueError, match=r"Only a problem with a plain model .* has none; use"):
        solve(KEY, PROBLEMS["custom"][0], "sites", num_steps=10)


@pytest.mark.parametrize(
    "sampler", ["dmala", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rwm", "gwg", "dlmc", "gibbs"))]
)
def test_any_sampler_anneals(sampler):
    solution = assert_solved("mis", Anneal(num_chains=4, sampler=sampler), 600 if sampler == "dmala" else 3000)
    assert (solution.search, solution.sampler) == ("anneal", sampler)


def assert_all_solved(sizes):
    problems = [MIS(rb_model(size, 4, 0.25, seed=1, is_planted=True)) for size in sizes]
    solutions = solve_many(KEY, problems, BY_SAMPLER, num_steps=600)
    assert [s.objective for s in solutions] == sizes
    assert [len(s.state) for s in solutions] == [4 * size for size in sizes]
    assert all(s.is_feasible for s in solutions)


def test_instances_of_different_size_share_a_program_and_are_solved_each():
    assert_all_solved([5, 7, 8])


def test_instances_are_not_solved_by_a_search_that_does_nothing(idle):
    with pytest.raises(AssertionError):
        assert_all_solved([5, 7, 8])


def test_sites_that_are_added_to_smaller_instances_are_frozen(monkeypatch):
    from discrax.core.target import log_prob

    problems = [MIS(rb_model(size, 4, 0.25, seed=1, is_planted=True)) for size in (5, 7, 8)]
    init = [problem.init(np.random.default_rng(0), 4) for problem in problems]
    targets, x = pad(problems, init)
    for problem, target, states in zip(problems, targets, x, strict=True):
        np.testing.assert_array_equal(target.space.frozen.mask, np.arange(32) >= problem.space.num_sites)
        np.testing.assert_allclose(
            jax.vmap(lambda x, target=target: log_prob(target, x))(states),
            problem.model.value(states[:, : problem.space.num_sites]),
            rtol=1e-5,
        )
    whole, seen = annealing.anneal, []

    def watched(*arguments, **settings):
        for reports in whole(*arguments, **settings):
            seen.extend(reports)
            yield reports

    monkeypatch.setattr(annealing, "anneal", watched)
    solve_many(KEY, problems, BY_SAMPLER, **STEPS)
    assert [report.best_states[:, 20:].any() for report in seen[-3:]] == [False, True, True]
    assert not seen[-2].best_states[:, 28:].any()


@pytest.mark.slow
def test_sparse_instances_of_different_size_share_a_program():
    sparse = [MaxCut(Graph.from_edges(np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))) for n in (30, 40)]
    cuts = solve_many(KEY, sparse, Anneal(num_chains=8, sampler="pas"), num_steps=1500)
    assert [s.objective for s in cuts] == [30, 40]


def test_the_same_key_gives_the_same_solution():
    keys = (KEY, KEY, jax.random.key(7))
    first, second, other = (solve(key, PROBLEMS["maxcut"][0], BY_SAMPLER, num_steps=2).state for key in keys)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_history_grows_and_is_draw(tmp_path, reports_often):
    solution = solve(KEY, PROBLEM, BY_SAMPLER, **STEPS)
    history = solution.history
    assert len(history) >= 3
    assert (np.diff(history.best) >= 0).all()
    assert (np.diff(history.num_steps) > 0).all()
    assert (np.diff(history.seconds) > 0).all()
    assert history.best[-1] > history.best[0]
    assert history.num_steps[-1] == solution.num_steps == 200
    assert history.beta[-1] > history.beta[0]
    assert ((history.feasible_share >= 0) & (history.feasible_share <= 1)).all()
    history.plot(tmp_path / "history.png")
    assert (tmp_path / "history.png").stat().st_size > 5_000
    with pytest.raises(AttributeError, match="A history has seconds, num_steps"):
        history.energy  # noqa: B018


def test_first_states_are_taken():
    problem, best = PROBLEMS["maxcut"]
    init = np.stack([CHECKERBOARD, 1 - CHECKERBOARD, CHECKERBOARD]).astype(np.int8)
    solution = solve(KEY, problem, "anneal", seconds=0, init=init)
    assert solution.num_chains == 3
    assert solution.objective == best
    assert solve(KEY, problem, Anneal(num_chains=3), seconds=0).objective < best


def test_schedules_end_where_they_should():
    for kind in KINDS:
        schedule = BetaSchedule(0.5, 8.0, kind)
        assert schedule.beta(0) == pytest.approx(0.5)
        assert schedule.beta(1) == pytest.approx(8.0)
        betas = [schedule.beta(p) for p in np.linspace(0, 1, 20)]
        assert (np.diff(betas) > 0).all()
    problem = MIS(erdos_renyi(200, 0.15, seed=0))
    hot, cold = suitable_betas(problem)
    x = problem.init(np.random.default_rng(1), 1)
    gains = problem.model.value(x ^ np.eye(200, dtype=x.dtype)) - problem.model.value(x)
    assert hot * np.sqrt((gains**2).mean()) == pytest.approx(1, abs=0.2)  # what a flip gains somewhere
    assert 4 < cold < 100  # where a node hardly ever leaves a set
    # Weights in other units move both ends with them.
    graph = erdos_renyi(14, 0.35, seed=3)
    light = Graph.from_edges(graph.edges, np.full(graph.num_edges, 0.01))
    scaled = np.array(suitable_betas(MaxCut(light))) / np.array(suitable_betas(MaxCut(graph)))
    np.testing.assert_allclose(scaled, 100, rtol=0.05)  # ties of gains fall differently
    with pytest.raises(ValueError, match="0 < hot < cold"):
        make_schedule(PROBLEM, betas=(2.0, 1.0))


def test_tempering_begins_at_init(monkeypatch):
    def stopped(key, target, sampler, x, *_):
        begun.append(x)
        yield from ()

    begun = []
    monkeypatch.setattr(tempering, "temper", stopped)
    init = np.random.default_rng(0).integers(0, 2, (3, 32)).astype(np.int8)
    solve(KEY, PROBLEM, Temper(sampler="pas", num_rungs=4), num_steps=1, init=init)
    np.testing.assert_array_equal(begun[0], np.stack([init] * 4))


def test_codes_beyond_127_are_kept():
    problem = Partition(erdos_renyi(300, 0.02, seed=0), 200)
    init = np.stack([np.random.default_rng(i).permutation(300) % 200 for i in range(2)])
    for search in ("anneal", "sites"):
        solution = solve(KEY, problem, search, seconds=0, init=init)
        assert any(np.array_equal(solution.state, states) for states in init)


@pytest.mark.slow
def test_codes_beyond_127_are_searched():  # compiles the loops of all labels once more
    problem = Partition(erdos_renyi(300, 0.02, seed=0), 200)
    assert solve(KEY, problem, Sites(num_chains=2), num_steps=3).state.max() > 127


def test_partitions_are_solved_one_after_the_other():
    problems = [PROBLEMS["partition"][0], PROBLEMS["partition"][0]]
    assert all(s.is_feasible for s in solve_many(KEY, problems, "anneal", seconds=0))


def test_every_schedule_that_is_offered_is_taken_by_every_search():
    from discrax.solving.commands import solve_file

    literal, _ = typing.get_args(typing.get_type_hints(solve_file)["schedule"])  # or None
    offered = typing.get_args(literal)
    assert "linear" in offered
    for schedule in offered:
        assert solve(KEY, PROBLEM, Sites(schedule=schedule, num_chains=2), num_steps=20).is_feasible
        if schedule != "tempering":
            assert solve(KEY, PROBLEM, Anneal(schedule=schedule), seconds=0).is_feasible
            make_schedule(PROBLEM, schedule)
