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
_STEPS_BETWEEN_REPORTS = 1.5  # times those of the last one
_SHARE_OF_A_SLICE, _LONGEST_SLICE = 0.01, 0.15  # of a budget, and in seconds
_RESIZES = 16  # in a budget of steps
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

    def fraction(self, num_steps: int, ahead: float = 0.0) -> float:
        """The share of the budget, 0 to 1, that is spent after so many steps, or in so many seconds from now."""
        if self.budget.num_steps is not None:
            return min(1.0, num_steps / max(self.budget.num_steps, 1))
        assert self.budget.seconds is not None
        spent = self.seconds()
        return min(1.0, (spent + ahead) / max(spent + self.seconds_left(), 1e-9))

    def is_over(self, num_steps: int) -> bool:
        """Whether a search that has made so many steps is to end."""
        return self.is_asked_to_stop() or self.fraction(num_steps) >= 1

    def affords_compilation(self, seconds: float) -> bool:
        """Whether a compilation that may take so many seconds leaves time to use it.

        The seconds are those of the last one. It may have found its program kept and the next one may not, so none
        begins in the second half of the budget.
        """
        if not self.budget.counts_compilation or self.budget.seconds is None:
            return True
        return self.seconds_left() > max(3 * seconds, self.budget.seconds / 2)


def longest_slice(budget: SearchBudget, least: float) -> float:
    """How long threads work before they wait for each other: longer where there is time, for the slower one is waited
    for.
    """
    return (
        least if budget.seconds is None else float(np.clip(_SHARE_OF_A_SLICE * budget.seconds, least, _LONGEST_SLICE))
    )


class Block(NamedTuple):
    """Turns of steps that are run before a search looks at the clock again."""

    num_turns: int
    num_steps: int  # of a turn
    resizes: bool = False  # whether kernels may be given another capacity before it, which changes what they draw


class Blocks:
    """How much to run before looking at the clock again.

    Of a budget of steps a turn is 1 / `count`. Of seconds, the first two turns are one step each, which says what a
    step costs; then a turn takes about 1 / `count` of the budget, in powers of two, for every length is a program of
    its own. A block has as many turns as take a quarter of a second, and of a budget of steps no more than were made
    before it, so that its beginning is seen. A step that is sure not to fit is not begun.
    Kernels are resized five times a second, or, where the budget is steps, after every sixteenth of it: then what is
    drawn depends on no clock.
    """

    def __init__(self, clock: Clock, *, count: int, longest: int, most_turns: int, first_guess: float):
        self._clock, self._count, self._longest, self._most_turns = clock, count, longest, most_turns
        self._seconds_per_step, self._num_measured = first_guess, 0
        self._length, self._next_resize, self._compile_seconds = 1, 0.0, 0.0

    def next_block(self, num_steps: int) -> Block | None:
        """The next block after so many steps; None where the search is over."""
        if self._clock.is_over(num_steps):
            return None
        limit = self._clock.budget.num_steps
        if limit is not None:
            length = max(1, min(self._longest, limit // self._count))
            if length > limit - num_steps:
                return Block(1, limit - num_steps) if num_steps < limit else None
            between = max(1, limit // length // _RESIZES)
            since = num_steps // length % between
            most = min(between - since, (limit - num_steps) // length, max(1, num_steps // length))
            return Block(min(self._turns(length, np.inf), most), length, since == 0)
        left = self._clock.seconds_left()
        if left < 0.5 * self._seconds_per_step:
            return None
        length = self._length if self._length * self._seconds_per_step <= left else 1
        resizes = self._clock.seconds() >= self._next_resize and self._clock.affords_compilation(self._compile_seconds)
        if resizes:
            self._next_resize = self._clock.seconds() + _SECONDS_BETWEEN_REPORTS
        return Block(self._turns(length, left), length, resizes)

    def _turns(self, length: int, seconds_left: float) -> int:
        """Of so many steps each, that a block has."""
        if self._num_measured < 2:
            return 1
        seconds = min(_LONGEST_BLOCK_SECONDS, seconds_left)
        return int(np.clip(seconds / (length * self._seconds_per_step), 1, self._most_turns))

    def fractions(self, block: Block, num_steps: int) -> list[float]:
        """The share of the budget that will be spent before each turn of a block that begins after so many steps."""
        seconds = block.num_steps * self._seconds_per_step
        return [
            self._clock.fraction(num_steps + turn * block.num_steps, ahead=turn * seconds)
            for turn in range(block.num_turns)
        ]

    def note(self, block: Block, seconds: float, compile_seconds: float) -> None:
        """Says what a block took, and the last compilation."""
        self._num_measured += 1
        self._compile_seconds = compile_seconds
        self._seconds_per_step = max(seconds / (block.num_turns * block.num_steps), 1e-7)
        if self._clock.budget.seconds is None or self._num_measured < 2:
            return
        wanted = min(self._clock.budget.seconds / self._count, _LONGEST_BLOCK_SECONDS) / self._seconds_per_step
        is_first = self._num_measured == 2 and self._clock.affords_compilation(compile_seconds)
        if is_first or wanted < self._length / 4:
            self._length = int(2 ** np.clip(np.floor(np.log2(max(wanted, 1))), 0, np.log2(self._longest)))


class Reports:
    """Says when the next report is due: five times a second unless told, and less often if reporting takes long.

    Of a budget of steps also when there are half as many steps again: a fast machine is through before it is looked at.
    """

    def __init__(self, clock: Clock, seconds_between: float | None = None):
        self._clock, self._next, self._seconds_between = clock, 0.0, seconds_between
        self._next_step = 1.0

    def is_due(self, num_steps: int = 0) -> bool:
        """Whether the time has come, or so many steps are made."""
        if self._clock.budget.num_steps is not None and num_steps >= self._next_step:
            self._next_step = _STEPS_BETWEEN_REPORTS * num_steps
            return True
        return self._clock.seconds() >= self._next

    def emit(self, report: Callable[[], Reported]) -> Iterator[Reported]:
        """Yields a report; the next one waits the longer the longer this one and what is done with it take."""
        begin = self._clock.seconds()
        yield report()
        end = self._clock.seconds()
        least = _SECONDS_BETWEEN_REPORTS if self._seconds_between is None else self._seconds_between
        self._next = end + max(least, (end - begin) / _SHARE_OF_REPORTS)
