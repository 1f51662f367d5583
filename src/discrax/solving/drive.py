"""The loop of every search that has its own sweeps: phases of a budget, slices of a phase, reports on the way.

A budget is spent on anneals of 1/32, 1/32, 1/16, 1/8, 1/4 and 1/2 of it, each from new uniform states, so that
something good is there early. If what is left after the third allows enough rounds for replicas to travel the ladder a
few times, it goes to parallel tempering instead: tempering is better on small models, and anneals are on large ones.
"""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from discrax.solving.clock import Clock, Reports, SearchBudget, longest_slice
from discrax.solving.schedules import interpolate

STEP_OF_LADDER = 1.3  # sqrt(dv dbeta) between rungs
STEPS_FOR_TEMPERING = 20_000  # fewer are never enough, and not worth the search for a ladder
TRAVELS = 2.5  # of a replica along the ladder, which takes rungs^2 rounds: fewer are not worth it


@runtime_checkable
class Chains(Protocol):
    """All chains of a search. Threads may run blocks of them, `low` to `high`, side by side."""

    num_chains: int
    slice_seconds: ClassVar[float]  # between looks at the clock
    sweeps_together: ClassVar[int]  # of an anneal, which slices do not part: what is found depends on no clock

    def compile(self) -> None:
        """Compiles what JAX does not."""

    def begin(self, init: Any, low: int, high: int) -> None:
        """The first states are given or uniform. The best ones so far are the local maxima above them."""

    def restart(self, low: int, high: int) -> None:
        """Uniform states."""

    def anneal(self, betas: Any, low: int, high: int) -> None:
        """A sweep at each beta."""

    def polish(self, low: int, high: int) -> None:
        """Takes the states to local maxima, and keeps those that are the best so far."""

    def temperatures(self) -> tuple[Any, Any]:
        """The hot and the cold beta."""
        ...

    def ladder(self, hot: Any, cold: Any, num_sweeps: int) -> Any:
        """Ascending betas for tempering, found in so many sweeps; None where these chains cannot be tempered."""

    def steps_of_a_round(self, ladder: Any) -> int:
        """Sweeps that a round of tempering counts for."""
        ...

    def begin_tempering(self, ladder: Any) -> None:
        """Makes a replica of every chain for each rung."""

    def temper(self, ladder: Any, first: int, count: int, low: int, high: int) -> None:
        """Rounds `first` to `first + count`."""

    def report(self, num_steps: int, fraction: float, beta: Any) -> Any:
        """Where the chains are, in arrays of their own."""


class Phase(NamedTuple):
    """A part of the budget: an anneal, or tempering."""

    end: float  # as a share of the budget
    kind: str  # of the schedule
    begins: float = 0.0  # with so much of the schedule done
    goes_on: bool = False  # from where the chains are, not from new states


def plan_phases(schedule: str, num_rounds: int | None, reheat: float) -> list[Phase]:
    """So many equal anneals, or the usual ones of growing length, or an anneal and tempering."""
    kind = "linear" if schedule == "auto" else schedule
    if schedule == "tempering":
        return [Phase(1 / 16, "linear"), Phase(1.0, "tempering")]
    if num_rounds is not None:
        later = [Phase((i + 1) / num_rounds, kind, reheat, True) for i in range(1, num_rounds)]
        return [Phase(1 / num_rounds, kind), *later]
    return [
        *(Phase(end, kind) for end in (1 / 32, 1 / 16, 1 / 8)),
        *(Phase(end, schedule) for end in (1 / 4, 1 / 2, 1)),
    ]


def check_size(num_chains: int, num_threads: int | None, budget: SearchBudget) -> None:
    """Raises a sentence where a search has no chain, no thread or no budget."""
    if num_chains < 1:
        raise ValueError(f"A search needs at least one chain, but num_chains is {num_chains}.")
    if num_threads is not None and num_threads < 1:
        raise ValueError(f"A search needs at least one thread, but num_threads is {num_threads}.")
    if budget.seconds is None and budget.num_steps is None:
        raise ValueError("A search needs a budget of seconds or of steps, but got neither.")
    if (budget.seconds or 0) < 0 or (budget.num_steps or 0) < 0:
        raise ValueError(f"A budget is not negative, but got {budget}.")


def search_with(
    chains: Chains,
    init: Any,
    clock: Clock,
    betas: tuple[float, float] | None,
    plan: list[Phase],
    num_threads: int = 1,
) -> Iterator[Any]:
    """What `chains.report` makes, about every 0.2 s and at the end. A step is a sweep.

    The states of `init` are kept if nothing better is found, and the first anneal begins half way to the cold end.
    Local maxima at the end of an anneal, the scale of temperatures and compilation cost no steps.
    """
    with clock.compiling():
        chains.compile()
    slices, reports = Slices(clock, chains.slice_seconds), Reports(clock)
    with ThreadPoolExecutor(num_threads) as pool:
        bounds = np.linspace(0, chains.num_chains, num_threads + 1).astype(int).tolist()

        def everywhere(work: Callable[[int, int], None]) -> None:
            if num_threads == 1:
                return work(0, chains.num_chains)  # in this thread, whose compilations the clock knows of
            list(pool.map(work, bounds[:-1], bounds[1:]))
            return None

        def polish() -> None:
            begin = clock.seconds()
            everywhere(chains.polish)
            slices.polish_seconds = clock.seconds() - begin

        everywhere(functools.partial(chains.begin, init))
        hot, cold = chains.temperatures() if betas is None else betas
        holds_still = np.array_equal(hot, cold)  # the law at one temperature is wanted, not an anneal
        beta = hot
        for index, phase in enumerate([Phase(1.0, "linear")] if holds_still else plan):
            if slices.is_over():
                break
            ladder = _affordable_ladder(chains, phase.kind, hot, cold, slices.steps_until(1.0))
            if ladder is not None:
                chains.begin_tempering(ladder)
            elif index > 0 and not phase.goes_on:
                everywhere(chains.restart)
            kind = "linear" if phase.kind in ("auto", "tempering") else phase.kind
            first = (hot + cold) / 2 if index == 0 and init is not None else hot
            group, num_rounds = chains.sweeps_together if ladder is None else chains.steps_of_a_round(ladder), 0
            slices.begin_phase(phase.end if ladder is None else 1.0)
            while count := slices.next_sweeps(group):
                if ladder is None or count < group:
                    at = phase.begins + (1 - phase.begins) * slices.positions(count)
                    along = interpolate(kind, first, cold, at)
                    beta = along[-1]
                    everywhere(functools.partial(chains.anneal, along))
                else:
                    beta = cold
                    everywhere(functools.partial(chains.temper, ladder, num_rounds, count // group))
                    num_rounds += count // group
                slices.advance(count)
                if reports.is_due(slices.num_steps):
                    yield from reports.emit(lambda: chains.report(slices.num_steps, slices.fraction(), beta))  # noqa: B023
            if not holds_still:
                polish()
            if ladder is not None:
                break
    yield chains.report(slices.num_steps, 1.0, beta)


def _affordable_ladder(chains: Chains, kind: str, hot: Any, cold: Any, num_steps: float) -> Any:
    """None where anneals are the better use of so many steps, or all that the chains can do."""
    if kind not in ("auto", "tempering") or (kind == "auto" and num_steps < STEPS_FOR_TEMPERING):
        return None
    ladder = chains.ladder(hot, cold, min(2048, int(num_steps / 20)))
    if ladder is None or kind == "tempering":
        return ladder
    num_rungs = np.shape(ladder)[-1]
    return None if num_steps < TRAVELS * num_rungs**2 * chains.steps_of_a_round(ladder) else ladder


class Slices:
    """Counts sweeps, and says how many of them make the next slice."""

    def __init__(self, clock: Clock, slice_seconds: float):
        self._clock, self.limit = clock, clock.budget.num_steps
        self._slice_seconds = longest_slice(clock.budget, slice_seconds)
        self.slice_began = clock.seconds()
        self.num_steps, self.first_step = 0, 0
        self.phase = (0.0, 1.0)
        self.seconds_per_sweep = None
        self.polish_seconds = 0.0  # of the last time: it comes after the last sweep

    def fraction(self) -> float:
        """Of the budget that is spent."""
        return self._clock.fraction(self.num_steps)

    def is_over(self) -> bool:
        """Whether all of the budget is spent."""
        return self._clock.is_over(self.num_steps)

    def _steps_left(self, end: float) -> int | None:
        return None if self.limit is None else round(end * self.limit) - self.num_steps

    def _seconds_left(self, end: float) -> float | None:
        """Until a share of the seconds is spent."""
        if self._clock.budget.seconds is None:
            return None
        spent = self._clock.seconds()
        return end * (spent + self._clock.seconds_left()) - spent - self.polish_seconds

    def steps_until(self, end: float) -> float:
        """Sweeps that the budget allows until a share of it is spent."""
        left, seconds = self._steps_left(end), self._seconds_left(end)
        steps = np.inf if left is None else left
        if seconds is None:
            return steps
        return min(steps, seconds / self.seconds_per_sweep if self.seconds_per_sweep else 0)

    def begin_phase(self, end: float) -> None:
        """A phase that lasts until a share of the budget is spent."""
        self.phase = (self.fraction(), end)
        self.first_step = self.num_steps

    def next_sweeps(self, group: int) -> int:
        """Sweeps of the next slice, in whole groups as long as they fit; 0 where the phase is over."""
        if self._clock.is_asked_to_stop():
            return 0
        end = self.phase[1]
        count = group
        seconds = self._seconds_left(end)
        if self.seconds_per_sweep is not None:
            longest = self._slice_seconds
            slice_ = longest if seconds is None else min(longest, seconds)
            count = max(group, int(slice_ / self.seconds_per_sweep) // group * group)
            if seconds is not None and seconds < 0.5 * group * self.seconds_per_sweep:
                return 0
        if seconds is not None and seconds <= 0:
            return 0
        left = self._steps_left(end)
        if left is not None and left < count:
            count = left // group * group or left
        if left is not None:  # no more than were made before, so that the beginning is seen
            count = min(count, max(group, self.num_steps // group * group))
        self.slice_began = self._clock.seconds()
        return count

    def positions(self, count: int) -> Float[np.ndarray, " count"]:
        """Where in the phase, from 0 to 1, the sweeps of the next slice are."""
        begin, end = self.phase
        if self.limit is not None:
            steps = max(1, round(end * self.limit) - self.first_step)
            return (self.num_steps - self.first_step + np.arange(count) + 0.5) / steps
        at = (self.fraction() - begin) / max(end - begin, 1e-12)
        step = (self.seconds_per_sweep or 0.0) / (max(end - begin, 1e-12) * max(self._clock.budget.seconds or 0, 1e-9))
        return np.minimum(1.0, at + step * np.arange(count))

    def advance(self, count: int) -> None:
        """Counts sweeps that were made, and what they took."""
        self.num_steps += count
        measured = (self._clock.seconds() - self.slice_began) / count
        known = self.seconds_per_sweep
        self.seconds_per_sweep = max(1e-9, measured if known is None else max(measured, known / 4))
