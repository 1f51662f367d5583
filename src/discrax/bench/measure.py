"""From a cell to its numbers: build, sample, measure. A cell that fails becomes a row with its error.

A *measure* says what to keep of a draw and what to make of the result. `mixing` is that of most tables: jump distance,
acceptance and effective sample size of the distance to a random reference state.
"""

import math
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from discrax.bench.cell import Call, Cell
from discrax.bench.store import Number, Timing, rows_of
from discrax.core.files import UnusableFile
from discrax.core.kernel import Kernel, rated_knob
from discrax.core.target import Target
from discrax.diagnostics import ess
from discrax.samplers import block_gibbs, build_kernel, gibbs, hamming_ball, mh_uniform, rwm
from discrax.sampling import Result, sample
from discrax.sampling.auto import default_adapter
from discrax.sampling.stacking import structure_of
from discrax.sampling.together import sample_together


class Experiment(NamedTuple):
    """A measure that does not sample: it makes numbers of a cell in its own way."""

    run: Callable[[Cell], tuple[list[Number], Timing]]


class Measure(NamedTuple):
    keep: Callable[[Target], Any]  # what `sample` is to keep
    numbers: Callable[[Cell, Result], list[Number]]


def mixing(statistic: str = "distance", rule: str = "first_negative", per_chain: bool = False) -> Measure:
    """Jump distance, acceptance, and ESS of a scalar statistic, per step, per 10,000 queries and per second."""

    def numbers(cell: Cell, result: Result) -> list[Number]:
        return movement(cell, result) + ess_numbers(cell, result, result.kept, rule, per_chain)

    return Measure(lambda target: scalar(statistic, target.space.shape, target.space.num_levels), numbers)


@lru_cache(maxsize=256)  # the same function for the same shape, so that programs are shared
def scalar(statistic: str, shape: tuple[int, ...], num_levels: int) -> Callable:
    """A scalar of the codes: their L1 distance to one fixed random state, or their sum."""
    if statistic not in ("distance", "sum"):
        raise ValueError(f"A statistic is 'distance' or 'sum', but got {statistic!r}.")
    reference = np.zeros(shape, np.int32)
    if statistic == "distance":
        reference = np.random.default_rng(0).integers(0, num_levels, shape).astype(np.int32)

    def of_codes(x):
        return jnp.sum(jnp.abs(x.astype(jnp.int32) - reference)).astype(jnp.int32)

    return of_codes


def movement(cell: Cell, result: Result) -> list[Number]:
    jump, accepted = result.mean_stats["jump"], result.mean_stats["accept_prob"]
    num_steps = result.num_draws * result.thinning
    numbers = [
        Number("EJD", float(jump.mean()), float(jump.std())),
        Number("acceptance", float(accepted.mean()), float(accepted.std())),
        Number("time_s", result.seconds),
        Number("num_steps", num_steps),
        Number("num_chains", result.num_chains),
        Number("microseconds_per_step", 1e6 * result.seconds / num_steps),
    ]
    scale = rated_knob(result.kernel, result.target)
    if scale is not None:
        numbers.append(Number("scale", float(scale[1].value)))
    return numbers


def ess_numbers(cell: Cell, result: Result, values: np.ndarray, rule: str, per_chain: bool) -> list[Number]:
    per_step = ess(values, rule) / (result.num_draws * result.thinning)
    mean, std = float(per_step.mean()), float(per_step.std())
    queries = queries_per_step(result.kernel, result.target)
    seconds_per_step = max(result.seconds, 1e-12) / (result.num_draws * result.thinning)
    numbers = [
        Number("ESS_per_step", mean, std),
        Number("ESS_n", 1e4 * mean / queries, 1e4 * std / queries),
        # Per second of the whole ensemble's steps, of one chain: as the papers divide.
        Number("ESS_t", mean / seconds_per_step, std / seconds_per_step),
        Number("ESS_all_t", mean * result.num_chains / seconds_per_step),
    ]
    if per_chain:
        numbers += [Number("ESS_chain", float(value), x=float(chain)) for chain, value in enumerate(per_step)]
        numbers += [
            Number("ESS_chain_t", float(value / seconds_per_step), x=float(chain))
            for chain, value in enumerate(per_step)
        ]
    return numbers


def queries_per_step(kernel: Kernel, target: Target) -> float:
    """Log-likelihood queries of a step as the papers count them, without a cache.

    Two for a random walk (value at x and y), four for samplers with a gradient (value and gradient at x and y), one a
    level for Gibbs, one a joint state for blocks. What is spent here is one evaluation a step.
    """
    levels = target.space.num_levels
    if isinstance(kernel, rwm | mh_uniform):
        return 2
    if isinstance(kernel, block_gibbs):
        return levels**kernel.block_size
    if isinstance(kernel, hamming_ball):
        return (levels - 1) * kernel.block_size + 1
    if type(kernel).__module__ == gibbs.__module__:
        is_sweep = "Chromatic" in type(kernel).__name__
        return levels * (target.space.num_sites if is_sweep else 1)
    return 4


@lru_cache(maxsize=64)
def target_of(call: Call) -> Target:
    """Cells share targets: each is built once a process."""
    return call()


def kernel_of(cell: Cell, target: Target) -> Kernel:
    made = cell.sampler()
    if isinstance(made, type):
        raise ValueError(f"{cell.sampler.address} gave the class {made.__name__}; give something that makes a kernel.")
    return build_kernel(made, target)


def _adapter_of(cell: Cell) -> Any:
    return cell.adaptation() if isinstance(cell.adaptation, Call) else cell.adaptation


def _start_of(cell: Cell, target: Target) -> Any:
    return None if cell.start is None else cell.start(target, cell.seed, cell.budget.num_chains)


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
            num_chains=cell.budget.num_chains,
            num_warmup=cell.budget.num_warmup,
            num_samples=cell.budget.num_samples,
            thinning=cell.budget.thinning,
            init=_start_of(cell, target),
            keep=measure.keep(target),
            adaptation=_adapter_of(cell),
            progress=False,
        )
        check_complete(result)
        return _rows(cell, measure, result)
    except UnusableFile:  # no fault of the cell: it ends the run
        raise
    except Exception as error:
        return rows_of(cell, [], Timing(), _sentence(error))


def check_complete(*results: Any) -> None:
    """Verbs return what they have when they are interrupted; a part of a measurement is none."""
    if not all(result.is_complete for result in results):
        raise KeyboardInterrupt


def _run_together(cells: Sequence[Cell]) -> list[list[dict[str, Any]]]:
    targets = [target_of(cell.target) for cell in cells]
    measures = [cell.measure() for cell in cells]
    results = sample_together(
        [jax.random.key(cell.seed) for cell in cells],
        targets,
        [kernel_of(cell, target) for cell, target in zip(cells, targets, strict=True)],
        num_chains=cells[0].budget.num_chains,
        num_warmup=cells[0].budget.num_warmup,
        num_samples=cells[0].budget.num_samples,
        thinning=cells[0].budget.thinning,
        init=[_start_of(cell, target) for cell, target in zip(cells, targets, strict=True)],
        keep=measures[0].keep(targets[0]),
        adaptation=[_adapter_of(cell) for cell in cells],
    )
    check_complete(*results)
    return [_rows(cell, measure, result) for cell, measure, result in zip(cells, measures, results, strict=True)]


def _rows(cell: Cell, measure: Measure, result: Result) -> list[dict[str, Any]]:
    numbers = finite(measure.numbers(cell, result))
    return rows_of(cell, numbers, Timing(result.seconds, result.warmup_seconds, result.compile_seconds))


def finite(numbers: Sequence[Number]) -> list[Number]:
    """Numbers that are not finite become missing ones."""
    return [n if n.value is None or math.isfinite(n.value) else n._replace(value=None) for n in numbers]


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
    adapter = default_adapter(target, kernel) if cell.adaptation == "auto" else _adapter_of(cell)
    return structure_of(target), structure_of(kernel), cell.budget, cell.measure, type(adapter), cell.start is None
