"""`solve`: what it finds, what it returns, and how it ends.

The instances are larger than repair can manage: a search that returns its first states fails the same assertions.
"""

import json
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, QUBO, Custom, Graph, MaxClique, MaxCut, Partition
from discrax.problems.generators import erdos_renyi, rb_model
from discrax.solving import annealing, clock, search, sites, solve, solve_many, solver
from discrax.solving.engine import Report
from discrax.solving.padding import pad
from discrax.solving.schedules import KINDS, BetaSchedule, make_schedule, suitable_betas
from discrax.solving.sites_chains import BinaryChains

from .clocks import Hands

KEY = jax.random.key(2)
STEPS = {"num_steps": 200, "num_chains": 4}  # few chains: of many first states, repair makes an optimum of one
PLANTED = rb_model(8, 4, 0.25, seed=1, is_planted=True)  # 32 nodes; the largest independent set has 8
_SITE = np.arange(32).reshape(4, 8)
TORUS = Graph.from_edges(
    np.concatenate([np.stack([_SITE, np.roll(_SITE, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
)  # all of its 64 edges can be cut
CHECKERBOARD = (_SITE // 8 + _SITE).ravel() % 2
_SIGNS = 2 * np.random.default_rng(0).integers(0, 2, 32) - 1
_CLIQUES = [5 * part + np.stack(np.triu_indices(5, 1), 1) for part in range(3)]
HIDDEN = np.random.default_rng(1).integers(0, 2, 16)
# A problem, and its best objective.
PROBLEMS = {
    "mis": (MIS(PLANTED), 8),
    "clique": (MaxClique(PLANTED.complement()), 8),
    "maxcut": (MaxCut(TORUS), 64),
    "partition": (Partition(Graph.from_edges(np.concatenate([*_CLIQUES, [[0, 5], [6, 10], [11, 1]]])), 3), 3),
    "qubo": (QUBO(np.zeros(32), TORUS.edges, -_SIGNS[TORUS.edges].prod(1).astype(float), vartype="SPIN"), -64),
    "custom": (Custom(lambda e: -jnp.square(e - HIDDEN).sum(), dx.Binary(16)), 0),
}
PROBLEM, _ = PROBLEMS["mis"]


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


@pytest.fixture(autouse=True)
def in_blocks_of_five_steps(monkeypatch):
    """One program for searches of any length, and few calls of it."""
    monkeypatch.setattr(annealing, "_BLOCKS", 1)
    monkeypatch.setattr(annealing, "_LONGEST_BLOCK", 5)


@pytest.fixture(autouse=True)
def hands(monkeypatch):
    """Time stands still, unless a test turns it: how often a search reports does not depend on the machine."""
    hands = Hands()
    monkeypatch.setattr(solver, "Clock", hands.make)
    return hands


@pytest.fixture
def reports_often(monkeypatch, hands):
    """Every look at the clock takes a millisecond, and reports come after twenty looks."""
    hands.tick = 1e-3
    monkeypatch.setattr(clock, "_SECONDS_BETWEEN_REPORTS", 0.02)
    monkeypatch.setattr(clock, "_SHARE_OF_REPORTS", 1.0)


@pytest.fixture
def idle(monkeypatch):
    """Searches that do nothing."""
    monkeypatch.setattr(search, "anneal", idle_anneal)
    monkeypatch.setattr(search, "temper", idle_temper)
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)


def assert_solved(name, method, **settings):
    problem, best = PROBLEMS[name]
    rungs = {"num_rungs": 4} if method == "temper" else {}
    solution = solve(KEY, problem, method=method, **(STEPS | rungs | settings))
    assert solution.objective == pytest.approx(best)
    assert solution.is_feasible
    assert solution.is_complete
    assert solution.objective == pytest.approx(float(problem.objective(solution.state)))
    if solution.bound is not None:
        assert not problem.is_better(solution.objective, solution.bound + (1e-9 if problem.sense == "max" else -1e-9))
    return solution


SEARCHES = [
    pytest.param(name, method, marks=pytest.mark.slow if (name, method) in slow else [])
    for slow in [[("partition", "temper"), ("custom", "temper")]]
    for method in ("anneal", "temper", "sites")
    for name in PROBLEMS
    if (name, method) != ("custom", "sites")
]


@pytest.mark.parametrize(("name", "method"), SEARCHES)
def test_the_optimum_is_found(name, method):
    assert_solved(name, method)


@pytest.mark.parametrize(("name", "method"), [each.values for each in SEARCHES])
def test_the_optimum_is_not_found_by_a_search_that_does_nothing(name, method, idle):
    with pytest.raises(AssertionError):
        assert_solved(name, method)


def test_a_function_has_no_sites_to_search_one_by_one():
    with pytest.raises(ValueError, match="Only a problem with a quadratic or labelling model"):
        solve(KEY, PROBLEMS["custom"][0], num_steps=10, method="sites")


@pytest.mark.parametrize(
    "sampler", ["dmala", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rwm", "gwg", "dlmc", "gibbs"))]
)
def test_any_sampler_anneals(sampler):
    solution = assert_solved("mis", "anneal", sampler=sampler, num_steps=600 if sampler == "dmala" else 3000)
    assert (solution.method, solution.sampler) == ("anneal", sampler)


def assert_all_solved(sizes):
    problems = [MIS(rb_model(size, 4, 0.25, seed=1, is_planted=True)) for size in sizes]
    solutions = solve_many(KEY, problems, method="anneal", **(STEPS | {"num_steps": 600}))
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
    whole, seen = search.anneal, []

    def watched(*arguments, **settings):
        for reports in whole(*arguments, **settings):
            seen.extend(reports)
            yield reports

    monkeypatch.setattr(search, "anneal", watched)
    solve_many(KEY, problems, method="anneal", **STEPS)
    assert [report.best_states[:, 20:].any() for report in seen[-3:]] == [False, True, True]
    assert not seen[-2].best_states[:, 28:].any()


@pytest.mark.slow
def test_sparse_instances_of_different_size_share_a_program():
    sparse = [MaxCut(Graph.from_edges(np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))) for n in (30, 40)]
    cuts = solve_many(KEY, sparse, num_steps=1500, method="anneal", num_chains=8)
    assert [s.objective for s in cuts] == [30, 40]


def test_the_same_key_gives_the_same_solution():
    settings = STEPS | {"num_steps": 20, "method": "anneal"}
    keys = (KEY, KEY, jax.random.key(7))
    first, second, other = (solve(key, PROBLEMS["maxcut"][0], **settings).state for key in keys)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_history_grows_and_is_draw(tmp_path, reports_often):
    solution = solve(KEY, PROBLEM, method="anneal", **STEPS)
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


def test_seconds_are_kept(monkeypatch, hands):  # those of sampling, whatever a step costs: test_clock.py
    anneal = BinaryChains.anneal

    def slow(self, betas, low, high):
        hands.time += 1e-3 * len(betas)
        anneal(self, betas, low, high)

    monkeypatch.setattr(BinaryChains, "anneal", slow)
    solution = solve(KEY, PROBLEM, seconds=1.0, num_chains=1, method="sites")
    assert 0.8 < solution.seconds < 1.1
    assert 200 < solution.num_steps <= 1000


@pytest.mark.parametrize("method", ["anneal", "sites"])
def test_no_time_at_all_gives_the_repaired_init(method):
    solution = solve(KEY, PROBLEM, seconds=0, method=method)
    assert solution.is_feasible
    assert solution.num_steps == 0
    assert len(solution.history) == 0


def test_an_interruption_keeps_the_best_so_far(monkeypatch, tmp_path, reports_often):
    whole = search.anneal

    def interrupted(*arguments, **settings):
        for count, reports in enumerate(whole(*arguments, **settings)):
            if count == 2:
                raise KeyboardInterrupt
            yield reports

    monkeypatch.setattr(search, "anneal", interrupted)
    solution = solve(KEY, PROBLEM, method="anneal", **STEPS)
    assert not solution.is_complete
    assert solution.is_feasible
    assert len(solution.history) == 2
    written = json.loads(solution.save(tmp_path / "deep" / "solution.json").read_text())
    assert written["objective"] == solution.objective
    assert written["is_complete"] is False


def test_first_states_are_taken():
    problem, best = PROBLEMS["maxcut"]
    init = np.stack([CHECKERBOARD, 1 - CHECKERBOARD, CHECKERBOARD]).astype(np.int8)
    solution = solve(KEY, problem, seconds=0, method="anneal", init=init)
    assert solution.num_chains == 3
    assert solution.objective == best
    assert solve(KEY, problem, seconds=0, method="anneal", num_chains=3).objective < best


def test_schedules_end_where_they_should():
    for kind in KINDS:
        schedule = BetaSchedule(0.5, 8.0, kind)
        assert schedule.beta(0) == pytest.approx(0.5)
        assert schedule.beta(1) == pytest.approx(8.0)
        betas = [schedule.beta(p) for p in np.linspace(0, 1, 20)]
        assert (np.diff(betas) > 0).all()
    hot, cold = suitable_betas(MIS(erdos_renyi(200, 0.15, seed=0)))
    assert 0.2 < hot < 3
    assert 5 < cold < 100
    # Weights in other units move both ends with them.
    graph = erdos_renyi(14, 0.35, seed=3)
    light = Graph.from_edges(graph.edges, np.full(graph.num_edges, 0.01))
    scaled = np.array(suitable_betas(MaxCut(light))) / np.array(suitable_betas(MaxCut(graph)))
    np.testing.assert_allclose(scaled, 100, rtol=0.05)  # ties of gains fall differently
    with pytest.raises(ValueError, match="0 < hot < cold"):
        make_schedule(PROBLEM, betas=(2.0, 1.0))


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
        ({"init": np.zeros((2, 3), np.int8)}, "init has one state a chain"),
        ({"init": 5}, "init has one state a chain"),
        ({"init": np.full((2, 32), 7)}, r"init holds states of the problem, but: Codes must lie in 0\.\.1"),
        ({"init": np.zeros((2, 32))}, "init holds states of the problem, but: A state holds integer codes"),
        ({"init": np.zeros((2, 32), np.int8), "num_chains": 3}, r"init has one state a chain, shape \(3, 32\)"),
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
        ({"num_rungs": 10**9, "method": "temper"}, "on 1,000,000,000 rungs on 32 sites would take about"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(settings, message, as_a_user):
    with pytest.raises((ValueError, TypeError), match=message):
        solve(KEY, PROBLEM, **settings)


@pytest.mark.parametrize("key", [0, np.int64(3), 1.5, None, "key", jax.random.split(KEY, 3)], ids=type)
def test_keys_of_the_wrong_kind(key, as_a_user):
    with pytest.raises(TypeError, match="key must be one JAX key, such as"):
        solve(key, PROBLEM, num_steps=1)


def test_what_is_no_problem(as_a_user):
    wanted = "must be a problem, such as discrax.problems.MIS"
    for given in (PLANTED, MIS, "mis", None, np.eye(3)):
        with pytest.raises(TypeError, match=wanted):
            solve(KEY, given)
    with pytest.raises(TypeError, match="use solve_many"):
        solve(KEY, [PROBLEM])
    with pytest.raises(TypeError, match="use solve"):
        solve_many(KEY, PROBLEM)
    with pytest.raises(TypeError, match=wanted):
        solve_many(KEY, [PROBLEM, PLANTED])
    with pytest.raises(ValueError, match="init has an array of states for each problem, but got 1 for 2 problems"):
        solve_many(KEY, [PROBLEM] * 2, init=[np.zeros((2, 32), np.int8)])


def test_tempering_begins_at_init(monkeypatch):
    def stopped(key, target, sampler, x, *_):
        begun.append(x)
        yield from ()

    begun = []
    monkeypatch.setattr(search, "temper", stopped)
    init = np.random.default_rng(0).integers(0, 2, (3, 32)).astype(np.int8)
    solve(KEY, PROBLEM, num_steps=1, method="temper", init=init, num_rungs=4)
    np.testing.assert_array_equal(begun[0], np.stack([init] * 4))


def test_codes_beyond_127_are_kept():
    problem = Partition(erdos_renyi(300, 0.02, seed=0), 200)
    init = np.stack([np.random.default_rng(i).permutation(300) % 200 for i in range(2)])
    for method in ("anneal", "sites"):
        solution = solve(KEY, problem, seconds=0, method=method, init=init)
        assert any(np.array_equal(solution.state, states) for states in init)


@pytest.mark.slow
def test_codes_beyond_127_are_searched():  # compiles the loops of all labels once more
    problem = Partition(erdos_renyi(300, 0.02, seed=0), 200)
    assert solve(KEY, problem, num_steps=3, num_chains=2).state.max() > 127


def test_partitions_are_solved_one_after_the_other():
    problems = [PROBLEMS["partition"][0], PROBLEMS["partition"][0]]
    assert all(s.is_feasible for s in solve_many(KEY, problems, seconds=0, method="anneal"))


def test_every_schedule_that_is_offered_is_taken_by_every_method():
    from discrax.solving.commands import solve_file

    (offered,) = [p.__args__ for name, p in solve_file.__annotations__.items() if name == "schedule"]
    for schedule in offered:
        assert solve(KEY, PROBLEM, num_steps=20, method="sites", schedule=schedule, num_chains=2).is_feasible
        if schedule != "tempering":
            assert solve(KEY, PROBLEM, seconds=0, method="anneal", schedule=schedule).is_feasible
            make_schedule(PROBLEM, schedule)


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
    with pytest.raises(ValueError, match="at the states of `init`, but at some it is not"):
        solve(KEY, problem, init=np.ones((2, 6), np.int8))


def test_a_signal_ends_the_search_with_what_it_has(monkeypatch):
    from discrax.solving.history import History

    add, before = History.add, signal.getsignal(signal.SIGTERM)

    def told_to_end(self, *arguments):
        add(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(History, "add", told_to_end)
    for method in ("sites", "anneal"):
        solution = solve(KEY, PROBLEM, method=method, **STEPS)
        assert not solution.is_complete
        assert solution.is_feasible
        assert len(solution.history) == 2  # the one with the signal, and the last
    assert signal.getsignal(signal.SIGTERM) == before


def test_signals_in_repair_lose_nothing(monkeypatch):
    repair = MaxCut.repair
    for times in (1, 2):  # the second does not wait for repair

        def repaired(self, x, times=times):
            for _ in range(times):
                signal.raise_signal(signal.SIGTERM)
            return repair(self, x)

        monkeypatch.setattr(MaxCut, "repair", repaired)
        solution = solve(KEY, PROBLEMS["maxcut"][0], num_steps=5, method="sites", num_chains=2)
        assert not solution.is_complete
        assert solution.objective == PROBLEMS["maxcut"][0].objective(solution.state) > 0


def test_a_second_signal_in_the_search_keeps_the_last_report(monkeypatch):
    whole = search.anneal

    def impatient(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(search, "anneal", impatient)
    solution = solve(KEY, PROBLEM, method="anneal", **STEPS)
    assert not solution.is_complete
    assert solution.num_steps > 0


def test_memory_that_runs_out_on_the_way_ends_the_search(monkeypatch):
    whole = search.anneal

    def growing(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        raise MemoryError

    monkeypatch.setattr(search, "anneal", growing)
    with pytest.warns(UserWarning, match="does not fit into memory; use fewer num_chains, or method='sites'"):
        solution = solve(KEY, PROBLEM, method="anneal", **STEPS)
    assert not solution.is_complete

    def too_large(*_, **__):
        raise MemoryError
        yield

    monkeypatch.setattr(search, "anneal", too_large)
    with pytest.raises(ValueError, match="A search of 4 chains does not fit into memory"):
        solve(KEY, PROBLEM, method="anneal", **STEPS)


def test_an_objective_that_takes_long_gets_fewer_chains(monkeypatch, hands):
    def slow(self, x):
        hands.time += 0.05
        return np.zeros(np.shape(x)[:-1])

    monkeypatch.setattr(Custom, "objective", slow)
    monkeypatch.setattr(search, "anneal", lambda *arguments, **settings: iter(()))
    assert solve(KEY, PROBLEMS["custom"][0], seconds=10.0).num_chains == 1
    assert solve(KEY, PROBLEMS["custom"][0], seconds=10.0, num_chains=7).num_chains == 7


def test_a_ladder_moves_rungs_to_where_swaps_are_rare():
    from discrax.solving.tempering import tune_ladder

    betas = np.array([1.0, 2.0, 4.0, 8.0])
    moved = tune_ladder(betas, np.array([0.9, 0.5, 0.1]), gain=0.5)
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
    assert ((rates > 0) & (rates <= 1)).all()
    assert (rates.mean(axis=1) < 1).all()
    counts = np.asarray(state.x[..., 0]).mean(axis=1)
    assert np.abs(counts - chance).max() < 5 * np.sqrt(0.25 / chains)
    assert not np.array_equal(np.asarray(state.x[..., 0]), x)  # they did move


def test_an_interruption_ends_all_that_is_left(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(sites, "search_by_sites", interrupted)
    solutions = solve_many(KEY, [PROBLEM, PROBLEMS["maxcut"][0], PROBLEM], seconds=30, method="sites")
    assert [s.is_complete for s in solutions] == [False, False, False]
    assert all(s.is_feasible and s.num_steps == 0 for s in solutions)
