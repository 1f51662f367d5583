"""Algorithm 1 of the paper: Algorithm 3 adapts (sigma, alpha) from the first step to the last.

- Burn-in, the steps of warm-up: W = D = 0, from sigma = 0.1 and alpha = 0.5.
- Then W by least squares over every step of it, and D by the rule of the sampler.
- The draws: Algorithm 3 goes on from where (sigma, alpha) are, gamma at 0.2 again, and never stops. What is measured is
  an adaptive chain, as in the paper.

A step costs what a step of the same sampler costs that is frozen, so seconds are not measured.
"""

import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from discrax.bench.experiments.ess import ess_numbers, length_numbers, mix, movement, scalars
from discrax.bench.papers.rules import PaperProbes
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, Timing, experiment, kernel_of, target_of
from discrax.bench.plan.rows import OF_SECONDS
from discrax.core.observers import Draws, Stats
from discrax.core.programs import compiled
from discrax.curvature.hessian import MoveSums
from discrax.samplers.gaussian_auxiliary import AnyScale
from discrax.sampling import Result
from discrax.sampling.phase import keep_each
from discrax.sampling.run import Run


@experiment
def adapted_throughout(cell: Cell, per_chain: bool = False) -> Measured:
    """The numbers of `mixing`, of a chain that is adapted as the paper does, and the last (sigma, alpha)."""
    target, budget, begin = target_of(cell.target), cell.budget, time.perf_counter()
    run = Run.prepare(jax.random.key(cell.seed), target, kernel_of(cell, target), budget.num_chains)
    run, more = burn_in(run, budget.num_warmup)
    warm = time.perf_counter()
    result = drawn(run.begin_tuning([PaperProbes()], budget.num_samples), budget.num_samples)
    found = mix(result, result.kept, "first_negative")
    numbers = movement(cell, result) + ess_numbers(result, found, per_chain) + length_numbers(found)
    numbers = [each for each in numbers if each.metric not in OF_SECONDS] + more
    numbers += [Number(name, value) for name, value in result.report.chosen.items()]
    return numbers, Timing(result.seconds, warm - begin, result.compile_seconds)


def burn_in(run: Run, num_steps: int) -> tuple[Run, list[Number]]:
    """Adapts a sampler of first order; then, of second order, with the W and the D that it found."""
    (target,), sums = run.targets, MoveSums(run.targets[0])
    learns = not run.kernels[0].is_prepared
    run = run.begin_tuning([PaperProbes()], num_steps)
    for chunk in run.steps(num_steps, observe=(Draws(),) if learns else ()):
        run = chunk.run
        if learns:
            sums.add(np.moveaxis(np.asarray(chunk.handed[0][0]), 0, 1))
    run = run.freeze()
    (kernel,) = run.kernels
    if not learns:
        return run, []
    assert isinstance(kernel, AnyScale)
    kernel, note = kernel.with_hessian(target, sums.hessian())
    moves = [Number("burn_in_moves", sums.moved), Number("burn_in_sites_moved", int(sums.site_moved.sum()))]
    return run.with_kernels([kernel]).with_reports([note]), moves


def drawn(run: Run, num_steps: int) -> Result:
    """What `sample` would return of a run that is adapted while it draws, with the distances to references."""
    (target,) = run.targets
    keep = scalars("distance", target.space.shape, target.space.num_levels)
    kept: list[np.ndarray] = []
    totals: dict[str, Any] = {}
    seconds = compiling = 0.0
    for chunk in run.steps(num_steps, observe=(Stats(), Draws())):
        run, (stats, codes) = chunk.run, chunk.handed[0]
        program, more = compiled(keep_each, ([codes], keep), {})
        kept.append(np.moveaxis(np.asarray(program(([codes], keep))[0]), 0, 1))
        totals = {name: totals.get(name, 0.0) + np.asarray(each, float).sum(axis=0) for name, each in stats.items()}
        seconds, compiling = seconds + chunk.seconds, compiling + chunk.compile_seconds + more
    run = replace(run.freeze(), adapter=None)
    return Result(
        target=target,
        kernel=run.kernels[0],
        draws=None,
        kept=np.concatenate(kept, axis=1),
        moments=None,
        stats={},
        mean_stats={name: total / num_steps for name, total in totals.items()},
        warmup_stats={},
        warmup_draws=None,
        reports=run.reports[0],
        seconds=seconds,
        warmup_seconds=0.0,
        compile_seconds=compiling,
        is_complete=True,
        thinning=1,
        num_draws=num_steps,
        states=run.ensemble.states,
    )
