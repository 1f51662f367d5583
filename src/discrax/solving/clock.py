"""What of a budget is spent, and how much a search may do before it looks again.

The clock of a search runs from the first thing that `solve` does for it to the last: steps, what the host does between
them, and the repair in the end. Compilation is left out unless the budget says otherwise; JAX tells how long it took.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import jax
import numpy as np

Reported = TypeVar("Reported")

_LONGEST_BLOCK_SECONDS = 0.25  # so that a search can be told to end
_SECONDS_BETWEEN_REPORTS = 0.2
_SHARE_OF_A_SLICE, _LONGEST_SLICE = 0.01, 0.15  # of a budget, and in seconds
_SHARE_OF_REPORTS = 0.05  # of the time that passes between them
_OF_COMPILATION = "/jax/core/compile/"


class SearchBudget(NamedTuple):
    """How long to search: seconds of wall time, or steps of every chain (sweeps, where a search goes site by site)."""

    seconds: float | None = None
    num_steps: int | None = None
    counts_compilation: bool = False  # in the seconds


class _Compilations(threading.local):
    """The seconds that JAX has spent on compilation in a thread; what is told within what is told later counts once."""

    def __init__(self) -> None:
        self.total = 0.0
        self._heard: deque[tuple[float, float]] = deque(maxlen=4096)  # when it ended, and how long it took

    def add(self, seconds: float) -> None:
        end = time.perf_counter()
        while self._heard and self._heard[-1][0] - self._heard[-1][1] / 2 > end - seconds:
            self.total -= self._heard.pop()[1]
        self._heard.append((end, seconds))
        self.total += seconds


_compilations = _Compilations()


def _hear(event: str, duration_secs: float, **_: object) -> None:
    if event.startswith(_OF_COMPILATION):
        _compilations.add(duration_secs)


jax.monitoring.register_event_duration_secs_listener(_hear)


def compile_seconds() -> float:
    """What JAX has spent on compilation in this thread so far."""
    return _compilations.total


class Clock:
    """The share of a budget that is spent. `is_asked_to_stop` ends a search before its time."""

    def __init__(
        self,
        budget: SearchBudget,
        *,
        is_asked_to_stop: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.perf_counter,
        compiled: Callable[[], float] = compile_seconds,
    ):
        self.budget, self.is_asked_to_stop = budget, is_asked_to_stop
        self._now, self._compiled = now, compiled
        self._begin, self._compiled_before, self._compiled_elsewhere = now(), compiled(), 0.0
        self._reserved = 0.0

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """What happens in this block is compilation that JAX does not know of."""
        begin, compiled = self._now(), self._compiled()
        yield
        self._compiled_elsewhere += self._now() - begin - (self._compiled() - compiled)

    def compile_seconds(self) -> float:
        """Of all compilation since the clock began, whether it counts or not."""
        return self._compiled() - self._compiled_before + self._compiled_elsewhere

    def seconds(self) -> float:
        """That count."""
        spent = self._now() - self._begin
        return spent if self.budget.counts_compilation else spent - self.compile_seconds()

    def reserve(self, seconds: float) -> None:
        """Keeps these for what comes after the search."""
        self._reserved = seconds

    def seconds_left(self, *, of_all: bool = False) -> float:
        """Of the search, or of all that there is."""
        if self.budget.seconds is None:
            return np.inf
        return self.budget.seconds - (0.0 if of_all else self._reserved) - self.seconds()

    def fraction(self, num_steps: int) -> float:
        """The share of the budget, 0 to 1, that is spent after so many steps."""
        if self.budget.num_steps is not None:
            return min(1.0, num_steps / max(self.budget.num_steps, 1))
        assert self.budget.seconds is not None
        spent = self.seconds()
        return min(1.0, spent / max(spent + self.seconds_left(), 1e-9))

    def is_over(self, num_steps: int) -> bool:
        """Whether a search that has made so many steps is to end."""
        return self.is_asked_to_stop() or self.fraction(num_steps) >= 1

    def affords_compilation(self, seconds: float) -> bool:
        """Whether a compilation of so many seconds leaves time to use it."""
        return not self.budget.counts_compilation or self.seconds_left() > 3 * seconds


def longest_slice(budget: SearchBudget, least: float) -> float:
    """How long threads work before they wait for each other: longer where there is time, for the slower one is waited
    for.
    """
    return (
        least if budget.seconds is None else float(np.clip(_SHARE_OF_A_SLICE * budget.seconds, least, _LONGEST_SLICE))
    )


class Blocks:
    """How many steps to run before looking at the clock again.

    Of a budget of steps a block is 1 / `count`. Of seconds, the first two blocks are one step each, which says what a
    step costs; then a block takes about 1 / `count` of the budget, in powers of two, for every length is a program of
    its own. A step that is sure not to fit is not begun.
    """

    def __init__(self, clock: Clock, *, count: int, longest: int, first_guess: float):
        self._clock, self._count, self._longest = clock, count, longest
        self._seconds_per_step, self._num_measured = first_guess, 0
        self._length = 1

    def next_steps(self, num_steps: int) -> int:
        """Steps of the next block after so many; 0 where the search is over."""
        if self._clock.is_over(num_steps):
            return 0
        limit = self._clock.budget.num_steps
        if limit is not None:
            return min(max(1, min(self._longest, limit // self._count)), limit - num_steps)
        left = self._clock.seconds_left()
        if left < 0.5 * self._seconds_per_step:
            return 0
        return self._length if self._length * self._seconds_per_step <= left else 1

    def note(self, num_steps: int, seconds: float, compile_seconds: float) -> None:
        """Says what a block took, and the last compilation."""
        self._num_measured += 1
        self._seconds_per_step = max(seconds / num_steps, 1e-7)
        if self._clock.budget.seconds is None or self._num_measured < 2:
            return
        wanted = min(self._clock.budget.seconds / self._count, _LONGEST_BLOCK_SECONDS) / self._seconds_per_step
        is_first = self._num_measured == 2 and self._clock.affords_compilation(compile_seconds)
        if is_first or wanted < self._length / 4:
            self._length = int(2 ** np.clip(np.floor(np.log2(max(wanted, 1))), 0, np.log2(self._longest)))


class Reports:
    """Says when the next report is due: five times a second unless told, and less often if reporting takes long."""

    def __init__(self, clock: Clock, seconds_between: float | None = None):
        self._clock, self._next, self._seconds_between = clock, 0.0, seconds_between

    def is_due(self) -> bool:
        """Whether the time has come."""
        return self._clock.seconds() >= self._next

    def emit(self, report: Callable[[], Reported]) -> Iterator[Reported]:
        """Yields a report; the next one waits the longer the longer this one and what is done with it take."""
        begin = self._clock.seconds()
        yield report()
        end = self._clock.seconds()
        least = _SECONDS_BETWEEN_REPORTS if self._seconds_between is None else self._seconds_between
        self._next = end + max(least, (end - begin) / _SHARE_OF_REPORTS)
