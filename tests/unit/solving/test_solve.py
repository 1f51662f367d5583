"""`solve`: what it finds, what it returns, and how it ends."""

import itertools
import json
import os
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, QUBO, Custom, Graph, MaxClique, MaxCut, Partition
from discrax.problems.generators import erdos_renyi
from discrax.solving import solve, solve_many
from discrax.solving.schedules import KINDS, Schedule, make_schedule, suitable_betas

KEY = jax.random.key(0)
GRAPH = erdos_renyi(14, 0.35, seed=3)
ROW = np.arange(10)
Q = np.random.default_rng(0).normal(size=(10, 10))
PROBLEMS = {
    "mis": MIS(GRAPH),
    "clique": MaxClique(GRAPH),
    "maxcut": MaxCut(GRAPH),
    "partition": Partition(erdos_renyi(9, 0.4, seed=1), 3),
    "qubo": QUBO(Q + Q.T),
    "custom": Custom(lambda e: -((e.sum() - 4.0) ** 2) + e[0], dx.Binary(8)),
}


def best_by_enumeration(problem):
    space = problem.space
    states = np.array(list(itertools.product(range(space.num_levels), repeat=space.num_sites)), np.int8)
    states = states[problem.is_feasible(states)]
    values = problem.objective(states)
    return float(values.max() if problem.sense == "max" else values.min())


SEARCHES = [
    pytest.param(name, method, marks=[] if method == "sites" or name in quick else pytest.mark.slow)
    for method, quick in {"anneal": ("mis", "partition"), "temper": ("maxcut",), "sites": ()}.items()
    for name in PROBLEMS
]


@pytest.mark.parametrize(("name", "method"), SEARCHES)
def test_the_optimum_of_small_problems_is_found(name, method):
    problem = PROBLEMS[name]
    if method == "sites" and problem.model is None:
        with pytest.raises(ValueError, match="Only a problem with a quadratic or labelling model"):
            solve(KEY, problem, num_steps=10, method=method)
        return
    rungs = {"num_rungs": 4} if method == "temper" else {}
    solution = solve(KEY, problem, num_steps=400, method=method, num_chains=8, **rungs)
    assert solution.objective == pytest.approx(best_by_enumeration(problem))
    assert solution.is_feasible
    assert solution.is_complete
    assert solution.objective == pytest.approx(float(problem.objective(solution.state)))
    if solution.bound is not None:
        assert not problem.is_better(solution.objective, solution.bound + (1e-9 if problem.sense == "max" else -1e-9))


@pytest.mark.parametrize(
    "sampler", ["dmala", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rwm", "gwg", "dlmc", "gibbs"))]
)
def test_any_sampler_anneals(sampler):
    problem = PROBLEMS["mis"]
    solution = solve(KEY, problem, num_steps=300, sampler=sampler, num_chains=8)
    assert solution.objective == best_by_enumeration(problem)
    assert (solution.method, solution.sampler) == ("anneal", sampler)


def test_instances_of_different_size_share_a_program_and_are_solved_each():
    problems = [MIS(erdos_renyi(n, 0.3, seed=n)) for n in (9, 12, 14)]
    solutions = solve_many(KEY, problems, num_steps=400, method="anneal", num_chains=8)
    assert [s.objective for s in solutions] == [best_by_enumeration(p) for p in problems]
    assert [len(s.state) for s in solutions] == [9, 12, 14]
    assert all(s.is_feasible for s in solutions)


@pytest.mark.slow
def test_sparse_instances_of_different_size_share_a_program():
    sparse = [MaxCut(Graph.from_edges(np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))) for n in (30, 40)]
    cuts = solve_many(KEY, sparse, num_steps=1500, method="anneal", num_chains=8)
    assert [s.objective for s in cuts] == [30, 40]


def test_the_same_key_gives_the_same_solution():
    first, second = (solve(KEY, PROBLEMS["maxcut"], num_steps=50, method="anneal", num_chains=4) for _ in range(2))
    np.testing.assert_array_equal(first.state, second.state)
    assert first.objective == second.objective  # the reports on the way come by the clock, so their number may differ


def test_history_grows_and_is_drawn(tmp_path):
    solution = solve(KEY, PROBLEMS["mis"], seconds=0.7, method="anneal", num_chains=4)
    history = solution.history
    assert len(history) >= 2
    assert (np.diff(history.best) >= 0).all()
    assert (np.diff(history.num_steps) > 0).all()
    assert history.num_steps[-1] == solution.num_steps
    assert history.beta[-1] > history.beta[0]
    assert ((history.feasible_share >= 0) & (history.feasible_share <= 1)).all()
    history.plot(tmp_path / "history.png")
    assert (tmp_path / "history.png").stat().st_size > 5_000
    with pytest.raises(AttributeError, match="A history has seconds, num_steps"):
        history.energy  # noqa: B018


def test_seconds_are_kept():
    solution = solve(KEY, PROBLEMS["mis"], seconds=1.0, num_chains=2)
    assert 0.8 < solution.seconds < 1.5


@pytest.mark.parametrize("method", ["anneal", "sites"])
def test_no_time_at_all_gives_the_repaired_start(method):
    solution = solve(KEY, PROBLEMS["mis"], seconds=0, method=method)
    assert solution.is_feasible
    assert solution.num_steps == 0
    assert len(solution.history) == 0


def test_an_interruption_keeps_the_best_so_far(monkeypatch, tmp_path):
    from discrax.solving import solver

    whole = solver.anneal

    def interrupted(*arguments, **settings):
        for count, reports in enumerate(whole(*arguments, **settings)):
            if count == 2:
                raise KeyboardInterrupt
            yield reports

    monkeypatch.setattr(solver, "anneal", interrupted)
    solution = solve(KEY, PROBLEMS["mis"], seconds=30, method="anneal", num_chains=4)
    assert not solution.is_complete
    assert solution.is_feasible
    assert len(solution.history) == 2
    written = json.loads(solution.save(tmp_path / "deep" / "solution.json").read_text())
    assert written["objective"] == solution.objective
    assert written["is_complete"] is False


def test_start_states_are_taken():
    problem = PROBLEMS["maxcut"]
    start = np.zeros((3, 14), np.int8)
    start[:, 0] = 1
    solution = solve(KEY, problem, seconds=0, method="anneal", start=start)
    assert solution.num_chains == 3
    assert float(problem.objective(start[0])) <= solution.objective


def test_schedules_end_where_they_should():
    for kind in KINDS:
        schedule = Schedule(0.5, 8.0, kind)
        assert schedule.beta(0) == pytest.approx(0.5)
        assert schedule.beta(1) == pytest.approx(8.0)
        betas = [schedule.beta(p) for p in np.linspace(0, 1, 20)]
        assert (np.diff(betas) > 0).all()
    hot, cold = suitable_betas(MIS(erdos_renyi(200, 0.15, seed=0)))
    assert 0.2 < hot < 3
    assert 5 < cold < 100
    # Weights in other units move both ends with them.
    light = Graph.from_edges(GRAPH.edges, np.full(GRAPH.num_edges, 0.01))
    scaled = np.array(suitable_betas(MaxCut(light))) / np.array(suitable_betas(MaxCut(GRAPH)))
    np.testing.assert_allclose(scaled, 100, rtol=0.05)  # ties of gains fall differently
    with pytest.raises(ValueError, match="0 < hot < cold"):
        make_schedule(PROBLEMS["mis"], betas=(2.0, 1.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": -1}, "seconds must be at least 0, but got -1"),
        ({"seconds": 1, "num_steps": 5}, "by seconds or by num_steps, not by both"),
        ({"num_steps": 0}, "num_steps must be at least 1"),
        ({"num_chains": 0}, "num_chains must be at least 1"),
        ({"method": "magic"}, "Unknown method 'magic'; known: auto, sites"),
        ({"schedule": "slow", "method": "anneal"}, "Unknown schedule 'slow'"),
        ({"method": "temper", "num_rungs": 1}, "num_rungs must be at least 2"),
        ({"num_rounds": 0}, "num_rounds must be at least 1"),
        ({"method": "sites", "sampler": "pas"}, "has no sampler"),
        ({"sampler": "pass"}, "Unknown sampler 'pass'"),
        ({"sampler": 3}, "sampler must be a name or a kernel"),
        ({"start": np.zeros((2, 3), np.int8)}, "start has one state a chain"),
        ({"start": 5}, "start has one state a chain"),
        ({"start": np.full((2, 14), 7)}, r"start holds states of the problem, but: Codes must lie in 0\.\.1"),
        ({"start": np.zeros((2, 14))}, "start holds states of the problem, but: A state holds integer codes"),
        ({"start": np.zeros((2, 14), np.int8), "num_chains": 3}, r"start has one state a chain, shape \(3, 14\)"),
        ({"seconds": np.nan}, "seconds must be finite"),
        ({"seconds": "long"}, "seconds must be real numbers"),
        ({"num_steps": 2.5}, "num_steps must be a whole number"),
        ({"num_chains": True}, "num_chains must be a whole number"),
        ({"method": ["anneal"]}, "Unknown method"),
        ({"schedule": None}, "Unknown schedule None"),
        # what a method has no use for is not dropped
        ({"num_rungs": 8}, "num_rungs is for method='temper', but the method here is 'sites'"),
        ({"num_rungs": 8, "method": "anneal"}, "num_rungs is for method='temper', but the method here is 'anneal'"),
        ({"num_rounds": 2, "method": "temper"}, "num_rounds and reheat are for annealing, methods 'sites' and"),
        ({"num_rounds": 2, "schedule": "tempering"}, "num_rounds and reheat are for annealing"),
        ({"reheat": 0.5}, "reheat is where the rounds after the first begin, so it needs num_rounds"),
        ({"reheat": 1.0, "num_rounds": 2}, "reheat must be at least 0 and less than 1"),
        ({"reheat": np.nan, "num_rounds": 2}, "reheat must be finite"),
        ({"schedule": "tempering", "method": "anneal"}, "'sites'; method='temper' tempers with a sampler"),
        *(({"betas": betas}, "betas are two inverse temperatures, 0 < hot < cold, but got")
          for betas in ((2.0, 1.0), (np.nan, 1.0), (1.0, np.inf), (0.0, 1.0), (1.0,), 3.0, "ab", (1j, 2))),
        *(({"num_chains": 10**11, "method": method}, r"about [\d,]+ GiB, but there are [\d,]+ GiB; use fewer")
          for method in ("sites", "anneal", "temper")),
        ({"num_rungs": 10**9, "method": "temper"}, "on 1,000,000,000 rungs on 14 sites would take about"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(settings, message, as_a_user):
    with pytest.raises((ValueError, TypeError), match=message):
        solve(KEY, PROBLEMS["mis"], **settings)


@pytest.mark.parametrize("key", [0, np.int64(3), 1.5, None, "key", jax.random.split(KEY, 3)], ids=type)
def test_keys_of_the_wrong_kind(key, as_a_user):
    with pytest.raises(TypeError, match="key must be one JAX key, such as"):
        solve(key, PROBLEMS["mis"], num_steps=1)


def test_what_is_no_problem(as_a_user):
    wanted = "must be a problem, such as discrax.problems.MIS"
    for given in (GRAPH, MIS, "mis", None, Q):
        with pytest.raises(TypeError, match=wanted):
            solve(KEY, given)
    with pytest.raises(TypeError, match="use solve_many"):
        solve(KEY, [PROBLEMS["mis"]])
    with pytest.raises(TypeError, match="use solve"):
        solve_many(KEY, PROBLEMS["mis"])
    with pytest.raises(TypeError, match=wanted):
        solve_many(KEY, [PROBLEMS["mis"], GRAPH])
    with pytest.raises(ValueError, match="start has an array of states for each problem, but got 1 for 2 problems"):
        solve_many(KEY, [PROBLEMS["mis"]] * 2, start=[np.zeros((2, 14), np.int8)])


def test_tempering_begins_where_it_is_told_to(monkeypatch):
    from discrax.solving import solver

    def stopped(key, target, sampler, x, schedule, clock):
        begun.append(x)
        yield from ()

    begun = []
    monkeypatch.setattr(solver, "temper", stopped)
    start = np.random.default_rng(0).integers(0, 2, (3, 14)).astype(np.int8)
    solve(KEY, PROBLEMS["mis"], num_steps=1, method="temper", start=start, num_rungs=4)
    np.testing.assert_array_equal(begun[0], np.stack([start] * 4))


def test_codes_beyond_127_are_kept():
    problem = Partition(erdos_renyi(300, 0.02, seed=0), 200)
    start = np.stack([np.random.default_rng(i).permutation(300) % 200 for i in range(2)])
    for method in ("anneal", "sites"):
        solution = solve(KEY, problem, seconds=0, method=method, start=start)
        assert any(np.array_equal(solution.state, states) for states in start)
    assert solve(KEY, problem, num_steps=3, num_chains=2).state.max() > 127


def test_partitions_are_solved_one_after_the_other():
    problems = [PROBLEMS["partition"], PROBLEMS["partition"]]
    assert all(s.is_feasible for s in solve_many(KEY, problems, seconds=0, method="anneal"))


def test_every_schedule_that_is_offered_is_taken_by_every_method():
    from discrax.solving.commands import solve_file

    (offered,) = [p.__args__ for name, p in solve_file.__annotations__.items() if name == "schedule"]
    for schedule in offered:
        assert solve(KEY, PROBLEMS["mis"], num_steps=20, method="sites", schedule=schedule, num_chains=2).is_feasible
        if schedule != "tempering":
            assert solve(KEY, PROBLEMS["mis"], seconds=0, method="anneal", schedule=schedule).is_feasible
            make_schedule(PROBLEMS["mis"], schedule)


def test_states_without_a_number_are_no_solutions():
    problem = Custom(lambda e: jnp.where(e[0] > 0.5, jnp.nan, e.sum()), dx.Binary(6))
    solution = solve(KEY, problem, seconds=0, num_chains=4)
    assert np.isfinite(solution.objective)
    assert solution.is_feasible
    assert solution.state[0] == 0
    for nowhere in (jnp.nan, jnp.inf):
        with pytest.raises(
            ValueError, match="The objective must be a finite number somewhere, but at 80 random states"
        ):
            solve(KEY, Custom(lambda e: e.sum() * nowhere, dx.Binary(6)), num_chains=4)  # noqa: B023
    with pytest.raises(ValueError, match="at the states of `start`, but at some it is not"):
        solve(KEY, problem, start=np.ones((2, 6), np.int8))


def test_a_signal_ends_the_search_with_what_it_has(monkeypatch):
    from discrax.solving.history import History

    add, before = History.add, signal.getsignal(signal.SIGTERM)

    def told_to_end(self, *arguments):
        add(self, *arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(History, "add", told_to_end)
    for method in ("sites", "anneal"):
        solution = solve(KEY, PROBLEMS["mis"], seconds=300, method=method, num_chains=4)
        assert not solution.is_complete
        assert solution.is_feasible
        assert len(solution.history) == 2  # the one with the signal, and the last
    assert signal.getsignal(signal.SIGTERM) == before


def test_signals_in_repair_lose_nothing(monkeypatch):
    repair = MaxCut.repair
    for times in (1, 2):  # the second does not wait for repair

        def repaired(self, x, times=times):
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGTERM)
            return repair(self, x)

        monkeypatch.setattr(MaxCut, "repair", repaired)
        solution = solve(KEY, PROBLEMS["maxcut"], num_steps=5, method="sites", num_chains=2)
        assert not solution.is_complete
        assert solution.objective == PROBLEMS["maxcut"].objective(solution.state) > 0


def test_a_second_signal_in_the_search_keeps_the_last_report(monkeypatch):
    from discrax.solving import solver

    whole = solver.anneal

    def impatient(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(solver, "anneal", impatient)
    solution = solve(KEY, PROBLEMS["mis"], seconds=300, method="anneal", num_chains=4)
    assert not solution.is_complete
    assert solution.num_steps > 0


def test_memory_that_runs_out_on_the_way_ends_the_search(monkeypatch):
    from discrax.solving import solver

    whole = solver.anneal

    def growing(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        raise MemoryError

    monkeypatch.setattr(solver, "anneal", growing)
    with pytest.warns(UserWarning, match="does not fit into memory; use fewer num_chains, or method='sites'"):
        solution = solve(KEY, PROBLEMS["mis"], seconds=300, method="anneal", num_chains=4)
    assert not solution.is_complete

    def too_large(*_, **__):
        raise MemoryError
        yield

    monkeypatch.setattr(solver, "anneal", too_large)
    with pytest.raises(ValueError, match="A search of 4 chains does not fit into memory"):
        solve(KEY, PROBLEMS["mis"], seconds=300, method="anneal", num_chains=4)


def test_an_objective_that_takes_long_gets_fewer_chains(monkeypatch):
    from discrax.solving import solver

    def slow(self, x):
        time.sleep(0.05)
        return np.zeros(np.shape(x)[:-1])

    monkeypatch.setattr(Custom, "objective", slow)
    monkeypatch.setattr(solver, "anneal", lambda *arguments, **settings: iter(()))
    assert solve(KEY, PROBLEMS["custom"], seconds=10.0).num_chains == 1
    assert solve(KEY, PROBLEMS["custom"], seconds=10.0, num_chains=7).num_chains == 7


def test_a_ladder_moves_rungs_to_where_swaps_are_rare():
    from discrax.solving.tempering import tuned

    betas = np.array([1.0, 2.0, 4.0, 8.0])
    moved = tuned(betas, np.array([0.9, 0.5, 0.1]), gain=0.5)
    gaps = np.diff(np.log(moved))
    assert gaps[0] > gaps[1] > gaps[2]
    assert moved[0] == 1.0
    assert moved[-1] == pytest.approx(8.0)


def test_swaps_leave_the_law_of_all_rungs_alone():
    """Independent rungs of a two-state model, swapped: each rung keeps its own law."""
    from discrax.core.kernel import State
    from discrax.solving.population import _exchange

    betas, chains = np.array([0.3, 1.0, 2.5], np.float32), 40_000
    chance = 1 / (1 + np.exp(-betas))  # of state 1, whose value is 1
    x = (np.random.default_rng(0).random((3, chains)) < chance[:, None]).astype(np.int8)
    state = State(x[..., None], x.astype(np.float32), ())
    for turn in range(4):
        state, rates = _exchange(jax.random.key(turn), state, betas, turn % 2)
    assert ((rates > 0) & (rates < 1)).all()
    counts = np.asarray(state.x[..., 0]).mean(axis=1)
    assert np.abs(counts - chance).max() < 5 * np.sqrt(0.25 / chains)
    assert not np.array_equal(np.asarray(state.x[..., 0]), x)  # they did move


def test_an_interruption_ends_all_that_is_left(monkeypatch):
    from discrax.solving import sites

    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(sites, "search_by_sites", interrupted)
    solutions = solve_many(KEY, [PROBLEMS["mis"], PROBLEMS["maxcut"], PROBLEMS["mis"]], seconds=30, method="sites")
    assert [s.is_complete for s in solutions] == [False, False, False]
    assert all(s.is_feasible and s.num_steps == 0 for s in solutions)
