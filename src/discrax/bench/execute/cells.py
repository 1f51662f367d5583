"""From a cell to its rows: build, sample, measure. A cell that fails becomes a row with its error.

A cell that takes long keeps what it has in a folder of its own, and goes on from there after a kill.
"""

import hashlib
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from discrax.bench.execute.program import program_of
from discrax.bench.execute.store import rows_of
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import (
    Experiment,
    Measure,
    Timing,
    check_complete,
    finite,
    going_on_in,
    kernel_of,
    target_of,
)
from discrax.core.files import UnusableFile
from discrax.core.stochastic import steps_per_block
from discrax.core.target import Target
from discrax.sampling import Result, sample
from discrax.sampling.auto import default_adapter
from discrax.sampling.run import work_per_step
from discrax.sampling.stacking import structure_of
from discrax.sampling.together import sample_together

BEGUN = "begun"  # the folder of cells that were begun, in that of a run
_LONG = {"cpu": 5e9}  # numbers that the steps of a cell touch: about a minute
_LONG_ELSEWHERE = 5e11
_READ = ("draws", "kept", "stats", "warmup_draws", "warmup_stats")  # what may lie in a folder


def run_cells(cells: Sequence[Cell], folder: Path | None = None) -> list[list[dict[str, Any]]]:
    """The rows of each cell. Several cells are run as one program; if that fails, one by one.

    Those that take long keep what they have below `folder`.
    """
    if len(cells) > 1:
        try:
            return _run_together(cells, folder)
        except UnusableFile:
            raise
        except Exception:  # whose error it is, the single runs will tell
            return [run_cell(cell, folder) for cell in cells]
    return [run_cell(cell, folder) for cell in cells]


def begun_folder(folder: Path, cells: Sequence[Cell]) -> Path:
    """Where cells that are run together keep what they have: a place for these cells and this program only."""
    ids = [cell.id for cell in cells] + [program_of(cell) for cell in cells]
    return folder / BEGUN / hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]


def _place(folder: Path | None, cells: Sequence[Cell], target: Target) -> Path | None:
    """The folder of cells that take long; None for others, for which it would cost more than it saves."""
    budget = cells[0].budget
    steps = len(cells) * (budget.num_warmup + budget.num_samples * budget.thinning)
    is_long = steps * work_per_step(target, budget.num_chains) >= _LONG.get(jax.default_backend(), _LONG_ELSEWHERE)
    can_go_on = folder is not None and steps_per_block(target) is None
    return begun_folder(folder, cells) if is_long and can_go_on else None  # pyright: ignore[reportArgumentType]


def run_cell(cell: Cell, folder: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a cell; one with a sentence if it fails."""
    try:
        measure = cell.measure()
        if isinstance(measure, Experiment):
            with going_on_in(None if folder is None else begun_folder(folder, [cell])):
                numbers, timing = measure.run(cell)
            return rows_of(cell, finite(numbers), timing)
        target = target_of(cell.target)
        result = sample(
            jax.random.key(cell.seed),
            target,
            kernel_of(cell, target),
            **asdict(cell.budget),
            init=cell.make_init(target),
            keep=measure.keep(target),
            adaptation=cell.make_adapter(),
            progress=False,
            folder=_place(folder, [cell], target),
        )
        check_complete(result)
        return _rows(cell, measure, result)
    except UnusableFile:  # no fault of the cell: it ends the run
        raise
    except Exception as error:
        return rows_of(cell, [], Timing(), _sentence(error))


def _run_together(cells: Sequence[Cell], folder: Path | None) -> list[list[dict[str, Any]]]:
    targets = [target_of(cell.target) for cell in cells]
    measures = [cell.measure() for cell in cells]
    results = sample_together(
        [jax.random.key(cell.seed) for cell in cells],
        targets,
        [kernel_of(cell, target) for cell, target in zip(cells, targets, strict=True)],
        **asdict(cells[0].budget),
        init=[cell.make_init(target) for cell, target in zip(cells, targets, strict=True)],
        keep=measures[0].keep(targets[0]),
        adaptation=[cell.make_adapter() for cell in cells],
        folder=_place(folder, cells, targets[0]),
    )
    check_complete(*results)
    return [_rows(cell, measure, result) for cell, measure, result in zip(cells, measures, results, strict=True)]


def _rows(cell: Cell, measure: Measure, result: Result) -> list[dict[str, Any]]:
    read = {name: jax.tree.map(np.asarray, getattr(result, name)) for name in _READ}
    numbers = finite(measure.numbers(cell, replace(result, **read)))
    return rows_of(cell, numbers, Timing(result.seconds, result.warmup_seconds, result.compile_seconds))


def _sentence(error: Exception) -> str:
    """What went wrong and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}"[:2000] + where


def shape_key(cell: Cell) -> Any:
    """Cells with equal keys can run as one program; None for one that must run alone."""
    if cell.is_timed:
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
