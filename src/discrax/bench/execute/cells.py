"""From a cell to its rows: build, sample, measure. A cell that fails becomes a row with its error.

A cell that takes long keeps what it has in a folder of its own, and goes on from there after a kill.
"""

import hashlib
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from discrax.bench.execute.program import program_of
from discrax.bench.execute.stages import Place, sample_cells
from discrax.bench.execute.store import rows_of
from discrax.bench.execute.timing import Rows, powers_of_seconds, seconds_per_step, set_aside
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import (
    Experiment,
    Measure,
    Timing,
    finite,
    going_on_in,
    kernel_of,
    target_of,
)
from discrax.core.files import UnusableFile
from discrax.core.stochastic import steps_per_block
from discrax.sampling import Result
from discrax.sampling.auto import default_adapter
from discrax.sampling.run import work_per_step
from discrax.sampling.stacking import structure_of
from discrax.sampling.together import run_after

BEGUN = "begun"  # the folder of cells that were begun, in that of a run
_LONG = {"cpu": 5e9}  # numbers that the steps of a stage touch: about a minute
_LONG_ELSEWHERE = 5e11


def run_cells(cells: Sequence[Cell], folder: Path | None = None, *, times: bool = True) -> list[Rows]:
    """The rows of each cell. Several cells are run as one program; if that fails, one by one.

    Those that take long keep what they have below `folder`. Without `times` those that are to be timed are put aside
    there, and have no rows yet.
    """
    aside = None if times else folder
    if len(cells) > 1:
        try:
            return _run_together(cells, folder, aside)
        except UnusableFile:
            raise
        except Exception:  # whose error it is, the single runs will tell
            pass
    return [run_cell(cell, folder, aside) for cell in cells]


def begun_folder(folder: Path, cells: Sequence[Cell]) -> Path:
    """Where cells that are run together keep what they have: a place for these cells and this program only."""
    ids = [cell.id for cell in cells] + [program_of(cell) for cell in cells]
    return folder / BEGUN / hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]


def _place(folder: Path | None, cells: Sequence[Cell]) -> Place:
    """The folder of a stage that takes long; None for others, for which it would cost more than it saves."""
    target = target_of(cells[0].target)
    work = len(cells) * work_per_step(target, cells[0].budget.num_chains)

    def place(stage: int, num_steps: int) -> Path | None:
        is_long = num_steps * work >= _LONG.get(jax.default_backend(), _LONG_ELSEWHERE)
        if folder is None or not is_long or steps_per_block(target) is not None:
            return None
        return begun_folder(folder, cells) / str(stage)

    return place


def run_cell(cell: Cell, folder: Path | None = None, aside: Path | None = None) -> Rows:
    """The rows of a cell; one with a sentence if it fails; none if it is put aside."""
    try:
        measure = cell.measure()
        if isinstance(measure, Experiment):
            with going_on_in(None if folder is None else begun_folder(folder, [cell])):
                numbers, timing = measure.run(cell)
            return rows_of(cell, finite(numbers), timing)
        (result,) = sample_cells([cell], measure, _place(folder, [cell]))
        return _rows(cell, measure, result, aside)
    except UnusableFile:  # no fault of the cell: it ends the run
        raise
    except Exception as error:
        return rows_of(cell, [], Timing(), _sentence(error))


def _run_together(cells: Sequence[Cell], folder: Path | None, aside: Path | None) -> list[Rows]:
    measure = cells[0].measure()
    results = sample_cells(cells, measure, _place(folder, cells))
    return [_rows(cell, measure, result, aside) for cell, result in zip(cells, results, strict=True)]


def _rows(cell: Cell, measure: Measure, result: Result, aside: Path | None) -> Rows:
    timing = Timing(result.seconds, result.warmup_seconds, result.compile_seconds)
    num_steps = result.num_draws * result.thinning

    def rows(seconds: float) -> Rows:
        return rows_of(cell, finite(measure.numbers(cell, replace(result, seconds=seconds))), timing)

    if not cell.is_timed:
        return rows(result.seconds)
    if aside is not None:
        set_aside(aside, cell, powers_of_seconds(rows(num_steps), rows(2 * num_steps)), result.kernel)
        return []
    run = run_after(jax.random.key(cell.seed), result, cell.budget.num_warmup + num_steps)
    return rows(num_steps * seconds_per_step(run))


def _sentence(error: Exception) -> str:
    """What went wrong and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}"[:2000] + where


def shape_key(cell: Cell) -> Any:
    """Cells with equal keys can run as one program; None for one that must run alone."""
    if isinstance(cell.measure(), Experiment):
        return None
    try:
        target = target_of(cell.target)
        kernel = kernel_of(cell, target)
    except Exception:
        return None
    if not kernel.is_prepared:
        return None
    adapter = default_adapter(target, kernel) if cell.adaptation == "auto" else cell.make_adapter()
    return structure_of(target), structure_of(kernel), cell.budget, cell.measure, type(adapter), cell.init is None
