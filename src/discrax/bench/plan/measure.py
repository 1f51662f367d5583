"""What a cell measures: numbers, out of draws (`Measure`) or in a way of its own (`Experiment`)."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec

from discrax.bench.plan.cell import Call, Cell
from discrax.core.kernel import Kernel
from discrax.core.target import Target
from discrax.samplers import build_kernel
from discrax.sampling import Result

Settings = ParamSpec("Settings")


class Number(NamedTuple):
    """A measured number; `x` places it in a series."""

    metric: str
    value: float | None
    std: float | None = None
    x: float | None = None


def series(metric: str, places: Iterable[Any], values: Iterable[Any]) -> list[Number]:
    """A number of the metric at each place."""
    return [Number(metric, float(value), x=float(place)) for place, value in zip(places, values, strict=True)]


class Timing(NamedTuple):
    """Where the seconds of a cell went; compilation is in neither of the others."""

    seconds: float = 0.0
    warmup_seconds: float = 0.0
    compile_seconds: float = 0.0


Measured = tuple[list[Number], Timing]


class Experiment(NamedTuple):
    """A measure that does not sample: it makes numbers of a cell in its own way."""

    run: Callable[[Cell], Measured]
    has_sampler: bool = True  # False: neither the cell's sampler nor its steps and chains are used


Run = Callable[Concatenate[Cell, Settings], Measured]


def experiment(run: Run[Settings]) -> Callable[Settings, Experiment]:
    """Decorates what an experiment does with a cell: a suite then calls it with its settings alone."""
    return _with_settings(run, has_sampler=True)


def experiment_without_sampler(run: Run[Settings]) -> Callable[Settings, Experiment]:
    """The same for one that uses neither the sampler of its cell nor its steps and chains."""
    return _with_settings(run, has_sampler=False)


def _with_settings(run: Run[Settings], *, has_sampler: bool) -> Callable[Settings, Experiment]:
    @wraps(run)
    def with_settings(*args: Settings.args, **kwargs: Settings.kwargs) -> Experiment:
        return Experiment(lambda cell: run(cell, *args, **kwargs), has_sampler)

    return with_settings


def has_sampler(cell: Cell) -> bool:
    """Whether the cell's numbers are those of its sampler, with its steps and chains."""
    return getattr(cell.measure(), "has_sampler", True)


class Measure(NamedTuple):
    """What to keep of a run, and the numbers to make of it.

    With `has_enough` a cell's budget is the most that it may run: it ends when what it kept is enough. Long runs keep
    every so many of their draws, unless `can_thin` says that this would be too few: then the cell ends before.
    """

    keep: Callable[[Target], Any]  # what `sample` is to keep
    numbers: Callable[[Cell, Result], list[Number]]
    has_enough: Callable[[Result], bool] | None = None
    can_thin: Callable[[Result, int], bool] = lambda result, every: True


_folder_of_cell: ContextVar[Path | None] = ContextVar("folder_of_cell", default=None)


@contextmanager
def going_on_in(folder: Path | None) -> Iterator[None]:
    """For the time of a `with` block the cell that is run may keep what it has in a folder of its own."""
    token = _folder_of_cell.set(folder)
    try:
        yield
    finally:
        _folder_of_cell.reset(token)


def folder_of_cell() -> Path | None:
    """Where an experiment may keep what it has: if it is killed, the same cell finds it there again."""
    return _folder_of_cell.get()


@lru_cache(maxsize=64)
def target_of(call: Call) -> Target:
    """Cells share targets: each is built once a process."""
    return call()


@lru_cache(maxsize=4)
def input_of(call: Call) -> Any:
    """What a cell's target makes where a measure needs to know its kind, such as instances; the last few are kept."""
    return call()


def kernel_of(cell: Cell, target: Target) -> Kernel:
    """The cell's sampler, built for its target."""
    made = cell.sampler()
    if isinstance(made, type):
        raise ValueError(f"{cell.sampler.address} gave the class {made.__name__}; give something that makes a kernel.")
    return build_kernel(made, target)


def check_complete(*results: Any) -> None:
    """Verbs return what they have when they are interrupted; a part of a measurement is none."""
    if not all(result.is_complete for result in results):
        raise KeyboardInterrupt


def finite(numbers: Sequence[Number]) -> list[Number]:
    """Numbers that are not finite become missing ones."""
    return [n if n.value is None or math.isfinite(n.value) else n._replace(value=None) for n in numbers]
