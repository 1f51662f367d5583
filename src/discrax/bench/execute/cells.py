"""From a cell to its rows: build, sample, measure. A cell that fails becomes a row with its error."""

import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import jax

from discrax.bench.execute.store import rows_of
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Experiment, Measure, Timing, check_complete, finite, kernel_of, target_of
from discrax.core.files import UnusableFile
from discrax.sampling import Result, sample
from discrax.sampling.auto import default_adapter
from discrax.sampling.stacking import structure_of
from discrax.sampling.together import sample_together


def run_cells(cells: Sequence[Cell]) -> list[list[dict[str, Any]]]:
    """The rows of each cell. Several cells are run as one program; if that fails, one by one."""
    if len(cells) > 1:
        try:
            return _run_together(cells)
        except UnusableFile:
            raise
        except Exception:  # whose error it is, the single runs will tell
            return [run_cell(cell) for cell in cells]
    return [run_cell(cell) for cell in cells]


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """The rows of a cell; one with a sentence if it fails."""
    try:
        measure = cell.measure()
        if isinstance(measure, Experiment):
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
        )
        check_complete(result)
        return _rows(cell, measure, result)
    except UnusableFile:  # no fault of the cell: it ends the run
        raise
    except Exception as error:
        return rows_of(cell, [], Timing(), _sentence(error))


def _run_together(cells: Sequence[Cell]) -> list[list[dict[str, Any]]]:
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
    )
    check_complete(*results)
    return [_rows(cell, measure, result) for cell, measure, result in zip(cells, measures, results, strict=True)]


def _rows(cell: Cell, measure: Measure, result: Result) -> list[dict[str, Any]]:
    numbers = finite(measure.numbers(cell, result))
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
