"""The seconds of a step, measured apart from the statistics: a tuned kernel and its chains, alone on the machine.

Where an executor works on several cells at a time, statistics come first: a cell that is compared by its seconds is put
aside (`set_aside`) with the rows that it would have if a step took a second, and with its kernel as it was tuned. When
all have their statistics, each is timed (`time_cells`) while no other is, also of other runs on this machine: a lock in
the system's folder for temporary files sees to it. Programs are compiled before the lock is asked for. The seeds of a
cell are timed once, with the kernel of the first.

A block of steps that is not timed warms up; then the best of `_GROUPS` groups of blocks counts, together about
`_SECONDS` long. Nobody looks at the draws, and compilation is in none of them.
"""

import math
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from discrax.bench.execute.program import program_of
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import target_of
from discrax.bench.plan.rows import group_by
from discrax.core.driver import start
from discrax.core.files import write_whole
from discrax.core.kernel import Kernel
from discrax.sampling.checks import chain_keys, initial_states
from discrax.sampling.run import Run, work_per_step
from discrax.sampling.together import on_device

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

UNTIMED = "untimed"  # the folder of cells that were put aside, in that of a run
_NUMBERS, _POWERS = ("value", "std", "x"), "powers"
_GROUPS, _SECONDS = 3, 0.2
_WORK = {"cpu": 5e7}  # numbers that a block touches, enough for the host's part to be negligible
_WORK_ELSEWHERE = 2e9
_FEWEST, _MOST = 4, 1_000  # steps of a block
_MOST_BLOCKS = 50  # of a group

Rows = list[dict[str, Any]]


def seconds_per_step(run: Run) -> float:
    """How long a step of all chains of a run takes, from where they are."""
    work = _WORK.get(jax.default_backend(), _WORK_ELSEWHERE)
    length = int(np.clip(work / work_per_step(run.target, run.x.shape[0]), _FEWEST, _MOST))

    def block() -> float:
        nonlocal run
        chunks = list(run.steps(length, chunk=length))
        run = chunks[-1].run
        return sum(chunk.seconds for chunk in chunks)

    block()
    with _alone():
        count = min(_MOST_BLOCKS, math.ceil(_SECONDS / _GROUPS / max(block(), 1e-9)))
        return min(sum(block() for _ in range(count)) for _ in range(_GROUPS)) / (count * length)


@contextmanager
def _alone() -> Iterator[None]:
    """While nothing else is timed on the accelerators that this process sees."""
    seen = "".join(filter(str.isalnum, os.environ.get("CUDA_VISIBLE_DEVICES", "")))
    with ExitStack() as held:
        if fcntl is not None:
            with suppress(OSError):  # without a lock where there are none, or where another user's file is in the way
                file = held.enter_context((Path(tempfile.gettempdir()) / f"discrax-timing{seen}.lock").open("a"))
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def set_aside(run: Path, cell: Cell, rows: Rows, kernel: Kernel) -> None:
    """Keeps a cell until it is timed: its rows with a second a step, and its kernel."""
    arrays, rest = eqx.partition(kernel, eqx.is_array)
    content = (program_of(cell), rows, eqx.combine(jax.tree.map(np.asarray, arrays), rest))
    write_whole(run / UNTIMED / cell.id, pickle.dumps(content))


def cells_aside(run: Path, cells: Sequence[Cell], *, of_any_program: bool = False) -> list[Cell]:
    """Those that have their statistics and are to be timed, by this program or by any."""
    found = ((cell, _aside(run, cell)) for cell in cells)
    return [cell for cell, its in found if its is not None and (of_any_program or its[0] == program_of(cell))]


def _aside(run: Path, cell: Cell) -> tuple[str, Rows, Kernel] | None:
    path = run / UNTIMED / cell.id
    if not path.exists():
        return None
    try:
        cell.sampler()  # whose file must be loaded before its classes can be read
        return pickle.loads(path.read_bytes())
    except Exception:  # half a file, or of classes that are no more: its statistics are made again
        return None


def seeds_apart(cells: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Cells that differ in their seeds only, together."""
    return [tuple(group) for group in group_by(cells, lambda cell: replace(cell, seed=0).id).values()]


def time_cells(folder: Path, cells: Sequence[Cell]) -> list[Rows]:
    """The rows of cells that were put aside and differ in their seeds only."""
    aside = [found for cell in cells if (found := _aside(folder, cell)) is not None]
    if not aside:
        return []
    cell, (_, _, kernel) = cells[0], aside[0]
    target = target_of(cell.target)
    for_init, keys = chain_keys(jax.random.key(cell.seed), cell.budget.num_chains)
    x = initial_states(for_init, target, cell.budget.num_chains, cell.make_init(target))
    ensemble, _ = start(target, on_device(kernel), x)
    seconds = seconds_per_step(Run((target,), target, keys, ensemble, x, ((),)))
    return [_retime(rows, seconds) for _, rows, _ in aside]


def powers_of_seconds(once: Rows, twice: Rows) -> Rows:
    """The rows of a cell whose steps took a second, with the power of it that each number grows with.

    `twice` are the rows if they had taken two. A time grows with the power 1, what is counted per second with -1.
    """

    def powers(row: dict[str, Any], other: dict[str, Any]) -> dict[str, int]:
        found = {name: (row[name], other[name]) for name in _NUMBERS if row[name] and other[name]}
        return {name: round(math.log2(double / single)) for name, (single, double) in found.items()}

    return [row | {_POWERS: powers(row, other)} for row, other in zip(once, twice, strict=True)]


def _retime(rows: Rows, seconds: float) -> Rows:
    """Rows whose steps took a second, with the seconds that a step took."""
    return [row | {name: row[name] * seconds**power for name, power in row[_POWERS].items()} for row in rows]
