"""The end of a search: what it found is repaired, in the time that is left for that, and the best is kept."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Integer

from discrax.core.interrupts import Interrupts
from discrax.problems.problem import Problem
from discrax.solving.clock import Clock
from discrax.solving.engine import Report

_MOST_REPAIRED = 32  # chains of each problem, the best first
_SHARE_OF_REPAIR = 0.05  # of a budget
_MEASURED_AT = 0.25  # of a budget: the first states take longer to repair than those that a search has found
_GRACE = 1.0  # seconds of repair after an interruption, and on the way


class Candidate(NamedTuple):
    """A state that may be the solution, and what it is worth."""

    state: Integer[np.ndarray, " n"]
    objective: float
    is_feasible: bool
    violations: float

    def is_worse_than(self, other: "Candidate", problem: Problem) -> bool:
        """Feasible states first, then those with a number for an objective, then fewer violations, then the best."""
        mine, its = self._rank(), other._rank()
        return mine < its if mine != its else problem.is_better(other.objective, self.objective)

    def _rank(self) -> tuple[bool, bool, float]:
        violations = np.inf if np.isnan(self.violations) else self.violations
        return self.is_feasible, bool(np.isfinite(self.objective)), -violations


def evaluate(problem: Problem, state: Integer[np.ndarray, " n"]) -> Candidate:
    """By the true objective."""
    objective, is_feasible = float(problem.objective(state)), bool(problem.is_feasible(state))
    violations = 0.0 if is_feasible else float(problem.violations(state))
    return Candidate(state, objective, is_feasible and bool(np.isfinite(objective)), violations)


def is_number(problem: Problem, states: Integer[np.ndarray, "states n"]) -> Bool[np.ndarray, " states"]:
    """Whether a search may begin there."""
    return np.isfinite(problem.objective(states)) & np.isfinite(problem.violations(states))


class Finish:
    """Takes reports on the way, and makes solutions of the last ones."""

    def __init__(self, problems: Sequence[Problem], init: Sequence[Integer[np.ndarray, "chains _"]], clock: Clock):
        self._problems, self._clock = problems, clock
        self._round_seconds: float | None = None  # to repair a state of each problem
        # Those of a search that has not begun.
        self.reports = [Report(0, 0.0, 0.0, np.zeros(len(x)), np.zeros(len(x)), x) for x in init]

    def take(self, reports: Sequence[Report]) -> None:
        """Keeps the last report of each problem."""
        self.reports = list(reports)

    def prepare(self, report_seconds: float) -> None:
        """Keeps the time for a last report and for repair, which is tried once, when there is something to repair."""
        budget = self._clock.budget.seconds
        if budget is None:
            return
        if self._round_seconds is None and self.reports[0].fraction >= _MEASURED_AT:
            begin = self._clock.seconds()
            self._repair(0, 0, lambda: self._clock.seconds() - begin > _SHARE_OF_REPAIR * budget)
            self._round_seconds = (self._clock.seconds() - begin) * len(self._problems)
        repair = self._round_seconds or 0.0
        self._clock.reserve(report_seconds + max(repair, min(_MOST_REPAIRED * repair, _SHARE_OF_REPAIR * budget)))

    def peek(self) -> list[Candidate]:
        """The best state of each problem as it is now, repaired as well as a second allows."""
        begin = self._clock.seconds()
        return [self._repair(i, 0, lambda: self._clock.seconds() - begin > _GRACE) for i in range(len(self._problems))]

    def choose(self, interrupts: Interrupts) -> list[Candidate]:
        """The best repaired state of each problem: one is repaired in any case, and more as long as there is time."""
        best: list[Candidate | None] = [None] * len(self._problems)
        begin = self._clock.seconds()

        def left() -> float:
            if interrupts.requested:
                return _GRACE - (self._clock.seconds() - begin)
            return self._clock.seconds_left(of_all=True)

        try:
            for turn in range(_MOST_REPAIRED):
                for i, problem in enumerate(self._problems):
                    if turn < len(self.reports[i].best_states):
                        one, before = self._repair(i, turn, lambda: left() <= 0), best[i]
                        if before is None or before.is_worse_than(one, problem):
                            best[i] = one
                if left() < (self._clock.seconds() - begin) / (turn + 1):
                    break
        except KeyboardInterrupt:  # the second signal, which waits for nothing
            interrupts.requested = True
        return [
            evaluate(problem, self._state(i, 0)) if one is None else one
            for i, (problem, one) in enumerate(zip(self._problems, best, strict=True))
        ]

    def _state(self, i: int, turn: int) -> Integer[np.ndarray, " n"]:
        report, n = self.reports[i], self._problems[i].space.num_sites
        chain = np.argsort(-report.best_values, kind="stable")[turn]
        return np.asarray(report.best_states[chain][:n])  # what padding added is cut off

    def _repair(self, i: int, turn: int, is_over: Callable[[], bool]) -> Candidate:
        problem, state = self._problems[i], self._state(i, turn)
        try:
            state = np.asarray(problem.repair_in_time(state, is_over))
        except Exception as error:  # of a user's function: what was found is not lost for that
            warnings.warn(f"A state is left as it was found, for its repair failed: {error}", stacklevel=2)
        return evaluate(problem, state)
