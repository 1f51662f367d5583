"""The end of a search: what it found is repaired, in the time that is left for that, and the best is kept."""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Integer

from discrax.core.interrupts import Interrupts
from discrax.problems.problem import Problem, is_rounding
from discrax.solving.clock import Clock
from discrax.solving.engine import Report

_MOST_REPAIRED = 32  # chains of each problem, the best first; more where they tie with the best
_MOST_STATES, _MOST_BYTES_OF_STATES = 256, 2**28  # that are kept beside each other, as good as the best
_SHARE_OF_REPAIR = 0.05  # of a budget
_MEASURED_AT = 0.25  # of a budget: the first states take longer to repair than those that a search has found
_GRACE = 1.0  # seconds of repair after an interruption, and on the way


class Candidate(NamedTuple):
    """A state that may be the solution, and what it is worth."""

    state: Integer[np.ndarray, " n"]
    objective: float
    is_feasible: bool
    violations: float
    states: Integer[np.ndarray, "states n"] | None = None  # as good, and different; None stands for the state alone

    def join(self, others: Sequence["Candidate"]) -> "Candidate":
        """With the states of others that are as good, sorted, itself among them; one that is not feasible is alone."""
        ties = [self, *(each for each in others if self._ties_with(each))]
        states = np.unique(np.concatenate([_states(each) for each in ties]), axis=0)
        most = min(_MOST_STATES, max(1, _MOST_BYTES_OF_STATES // max(1, states.nbytes // len(states))))
        if len(states) > most:
            states = states[:most]
            if not (states == self.state).all(axis=1).any():
                states[-1] = self.state
        return self._replace(states=states)

    def _ties_with(self, other: "Candidate") -> bool:
        return self.is_feasible and other.is_feasible and is_rounding(self.objective, other.objective)

    def is_worse_than(self, other: "Candidate", problem: Problem) -> bool:
        """Feasible states first, then those with a number for an objective, then fewer violations, then the best."""
        mine, its = self._rank(), other._rank()
        return mine < its if mine != its else problem.is_better(other.objective, self.objective)

    def _rank(self) -> tuple[bool, bool, float]:
        violations = np.inf if np.isnan(self.violations) else self.violations
        return self.is_feasible, bool(np.isfinite(self.objective)), -violations


def _states(candidate: Candidate) -> Integer[np.ndarray, "states n"]:
    return candidate.state[None] if candidate.states is None else candidate.states


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

    def __init__(
        self,
        problems: Sequence[Problem],
        init: Sequence[Integer[np.ndarray, "chains _"]],
        clock: Clock,
        *,
        is_given: bool = False,
    ):
        self._problems, self._clock = problems, clock
        self._round_seconds: float | None = None  # to repair a state of each problem
        self._proof = _Proof(problems)
        self._first = [
            _best_feasible(problem, x) if is_given else [] for problem, x in zip(problems, init, strict=True)
        ]
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
            self._repair(0, None, lambda: self._clock.seconds() - begin > _SHARE_OF_REPAIR * budget)
            self._round_seconds = (self._clock.seconds() - begin) * len(self._problems)
        repair = self._round_seconds or 0.0
        self._clock.reserve(report_seconds + max(repair, min(_MOST_REPAIRED * repair, _SHARE_OF_REPAIR * budget)))

    def peek(self) -> list[Candidate]:
        """The best state of each problem as it is now, repaired as well as a second allows."""
        begin = self._clock.seconds()
        return [
            self._repair(i, None, lambda: self._clock.seconds() - begin > _GRACE) for i in range(len(self._problems))
        ]

    def is_proved(self) -> bool:
        """Whether the best of every problem meets its bound, so that nothing is left to search for.

        A budget of steps is spent all the same: what it gives must not depend on when reports come.
        """
        if self._clock.budget.seconds is None:
            return False
        return self._proof.holds([self._state(i, None) for i in range(len(self._problems))])

    def choose(self, interrupts: Interrupts) -> list[Candidate]:
        """The best repaired state of each problem, and those that are as good: one is repaired in any case, and more as
        long as there is time.
        """
        found: list[list[Candidate]] = [[] for _ in self._problems]
        begin = self._clock.seconds()

        def left() -> float:
            if interrupts.requested:
                return _GRACE - (self._clock.seconds() - begin)
            return self._clock.seconds_left(of_all=True)

        try:
            turns = [_distinct(report) for report in self.reports]
            for turn in range(max(map(len, turns))):
                for i, chains in enumerate(turns):
                    if turn < len(chains):
                        found[i].append(self._repair(i, chains[turn], lambda: left() <= 0))
                if left() < (self._clock.seconds() - begin) / (turn + 1):
                    break
        except KeyboardInterrupt:  # the second signal, which waits for nothing
            interrupts.requested = True
        return [
            _best(problem, [*(some or [evaluate(problem, self._state(i, None))]), *self._first[i]])
            for i, (problem, some) in enumerate(zip(self._problems, found, strict=True))
        ]

    def _state(self, i: int, chain: int | None) -> Integer[np.ndarray, " n"]:
        """Of a chain; of the best one, where none is named."""
        report, n = self.reports[i], self._problems[i].space.num_sites
        chain = int(np.argsort(-report.best_values, kind="stable")[0]) if chain is None else chain
        return np.asarray(report.best_states[chain][:n])  # what padding added is cut off

    def _repair(self, i: int, chain: int | None, is_over: Callable[[], bool]) -> Candidate:
        problem, state = self._problems[i], self._state(i, chain)
        try:
            state = np.asarray(problem.repair_in_time(state, is_over))
        except Exception as error:  # of a user's function: what was found is not lost for that
            warnings.warn(f"A state is left as it was found, for its repair failed: {error}", stacklevel=2)
        return evaluate(problem, state)


def _distinct(report: Report) -> list[int]:
    """Chains whose best states differ, the best first: some, and all that may be as good as the best."""
    order = np.argsort(-report.best_values, kind="stable")
    best = report.best_values[order[0]]
    is_near = np.isclose(report.best_values, best, rtol=1e-5)  # single precision; repair says what they are worth
    seen: dict[bytes, int] = {}
    for turn, chain in enumerate(order.tolist()):
        if len(seen) == _MOST_STATES or (turn >= _MOST_REPAIRED and not is_near[chain]):
            break
        seen.setdefault(report.best_states[chain].tobytes(), chain)
    return list(seen.values())


def _best_feasible(problem: Problem, states: Integer[np.ndarray, "chains _"]) -> list[Candidate]:
    """The best of the first states, if one is feasible: a search by a penalised objective may leave it behind."""
    states = np.asarray(states)[:, : problem.space.num_sites]
    feasible = np.flatnonzero(problem.is_feasible(states))
    if not len(feasible):
        return []
    values = np.asarray(problem.objective(states[feasible]))
    place = int(np.argmax(values) if problem.sense == "max" else np.argmin(values))
    return [evaluate(problem, states[feasible[place]])]


def _best(problem: Problem, found: Sequence[Candidate]) -> Candidate:
    best = found[0]
    for one in found[1:]:
        if best.is_worse_than(one, problem):
            best = one
    return best.join(found)


class _Proof:
    """That the best states of problems meet their bounds; a state is looked at once."""

    def __init__(self, problems: Sequence[Problem]):
        self._problems, self._last = problems, [b""] * len(problems)
        self._is_met = [False] * len(problems)

    @cached_property
    def _bounds(self) -> list[float | None]:
        return [problem.quick_bound() for problem in self._problems]

    def holds(self, states: Sequence[Integer[np.ndarray, " _"]]) -> bool:
        """Whether it does of all of them, the best states so far."""
        if any(bound is None for bound in self._bounds):
            return False
        for i, state in enumerate(states):
            if not self._is_met[i] and state.tobytes() != self._last[i]:
                self._last[i], self._is_met[i] = state.tobytes(), self._meets(i, state)
        return all(self._is_met)

    def _meets(self, i: int, state: Integer[np.ndarray, " n"]) -> bool:
        """Repair comes only where it is worth its time: where the state would do if it were feasible."""
        problem, bound = self._problems[i], self._bounds[i]
        if not problem.meets_bound(float(problem.objective(state)), bound):
            return False
        one = evaluate(problem, state)
        if not one.is_feasible:
            one = evaluate(problem, np.asarray(problem.repair(state)))
        return one.is_feasible and problem.meets_bound(one.objective, bound)
