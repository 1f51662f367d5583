"""How `solve` ends: by time, by signals, without memory; and what it then returns."""

import json
import signal

import numpy as np
import pytest

from discrax.problems import Custom, MaxCut
from discrax.solving import annealing, sites, solve, solve_many
from discrax.solving.searches import Anneal, Sites
from discrax.solving.sites_chains import BinaryChains

from .instances import BY_SAMPLER, KEY, PROBLEM, PROBLEMS, SITES, STEPS

pytestmark = pytest.mark.usefixtures("in_turns_of_five_steps", "hands")


def test_seconds_are_kept(monkeypatch, hands):  # those of sampling, whatever a step costs: test_clock.py
    anneal = BinaryChains.anneal

    def slow(self, betas, low, high):
        hands.time += 1e-3 * len(betas)
        anneal(self, betas, low, high)

    monkeypatch.setattr(BinaryChains, "anneal", slow)
    solution = solve(KEY, PROBLEM, Sites(num_chains=1), seconds=1.0)
    assert 0.8 < solution.seconds < 1.1
    assert 200 < solution.num_steps <= 1000


@pytest.mark.parametrize("search", ["anneal", "sites", "temper", "population"])
def test_no_time_at_all_gives_the_repaired_init(search):
    solution = solve(KEY, PROBLEM, search, seconds=0)
    assert solution.is_feasible
    assert solution.num_steps == 0
    assert len(solution.history) == 0


def test_an_interruption_keeps_the_best_so_far(monkeypatch, tmp_path, reports_often):
    whole = annealing.anneal

    def interrupted(*arguments, **settings):
        for count, reports in enumerate(whole(*arguments, **settings)):
            if count == 2:
                raise KeyboardInterrupt
            yield reports

    monkeypatch.setattr(annealing, "anneal", interrupted)
    solution = solve(KEY, PROBLEM, BY_SAMPLER, **STEPS)
    assert not solution.is_complete
    assert solution.is_feasible
    assert len(solution.history) == 2
    written = json.loads(solution.save(tmp_path / "deep" / "solution.json").read_text())
    assert written["objective"] == solution.objective
    assert written["is_complete"] is False


def test_a_signal_ends_the_search_with_what_it_has(monkeypatch):
    from discrax.solving.history import History

    add, before = History.add, signal.getsignal(signal.SIGTERM)

    def told_to_end(self, *arguments):
        add(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(History, "add", told_to_end)
    for search in (SITES, BY_SAMPLER):
        solution = solve(KEY, PROBLEM, search, **STEPS)
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
        solution = solve(KEY, PROBLEMS["maxcut"][0], Sites(num_chains=2), num_steps=5)
        assert not solution.is_complete
        assert solution.objective == PROBLEMS["maxcut"][0].objective(solution.state) > 0


def test_a_second_signal_in_the_search_keeps_the_last_report(monkeypatch):
    whole = annealing.anneal

    def impatient(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(annealing, "anneal", impatient)
    solution = solve(KEY, PROBLEM, BY_SAMPLER, **STEPS)
    assert not solution.is_complete
    assert solution.num_steps > 0


def test_memory_that_runs_out_on_the_way_ends_the_search(monkeypatch):
    whole = annealing.anneal

    def growing(*arguments, **settings):
        yield next(whole(*arguments, **settings))
        raise MemoryError

    monkeypatch.setattr(annealing, "anneal", growing)
    with pytest.warns(UserWarning, match="does not fit into memory; use fewer num_chains. What was found"):
        solution = solve(KEY, PROBLEM, BY_SAMPLER, **STEPS)
    assert not solution.is_complete

    def too_large(*_, **__):
        raise MemoryError
        yield

    monkeypatch.setattr(annealing, "anneal", too_large)
    with pytest.raises(ValueError, match="A search of 4 chains does not fit into memory"):
        solve(KEY, PROBLEM, BY_SAMPLER, **STEPS)


def test_an_objective_that_takes_long_gets_fewer_chains(monkeypatch, hands):
    def slow(self, x):
        hands.time += 0.05
        return np.zeros(np.shape(x)[:-1])

    monkeypatch.setattr(Custom, "objective", slow)
    monkeypatch.setattr(annealing, "anneal", lambda *arguments, **settings: iter(()))
    assert solve(KEY, PROBLEMS["custom"][0], seconds=10.0).num_chains == 1
    assert solve(KEY, PROBLEMS["custom"][0], Anneal(num_chains=7), seconds=10.0).num_chains == 7


def test_an_interruption_ends_all_that_is_left(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(sites, "search_by_sites", interrupted)
    solutions = solve_many(KEY, [PROBLEM, PROBLEMS["maxcut"][0], PROBLEM], "sites", seconds=30)
    assert [s.is_complete for s in solutions] == [False, False, False]
    assert all(s.is_feasible and s.num_steps == 0 for s in solutions)
