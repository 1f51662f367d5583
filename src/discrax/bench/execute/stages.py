"""Chains of cells in stages: they go on until their measure has enough of them, at most for their budget.

The first stage is `FIRST` draws, and every other doubles the steps. When there would be more than `MOST` draws a chain,
every sixteenth is kept, and from there on a draw is sixteen times as many steps: steps grow, what is kept does not; a
cell whose measure cannot do with these ends instead. A cell has the draws of the stage after which it had enough. Those
that share its program go on; when half of them are done and a stage takes longer than compiling, without it. Every
length of a chunk and every thinning is a program to compile, so all stages but the last are of whole sixteenths of the
first. The last takes all that is left of the budget, but for less than a draw.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measure, check_complete, kernel_of, target_of
from discrax.core.driver import chunk_length
from discrax.sampling import Result, sample
from discrax.sampling.run import work_per_step
from discrax.sampling.together import sample_on, sample_together

FIRST, MOST = 4_000, 4_000
_THINNER = 16
_COMPILING = 5.0  # seconds
_READ = ("draws", "kept", "stats", "warmup_draws", "warmup_stats")  # what may lie in a folder

Place = Callable[[int, int], Path | None]  # of (stage, steps): where a stage keeps what it has


def sample_cells(cells: Sequence[Cell], measure: Measure, place: Place) -> list[Result]:
    """The runs of cells that are one program: of one structure, with one budget and one measure."""
    budget, keys = cells[0].budget, [jax.random.key(cell.seed) for cell in cells]
    keep = measure.keep(target_of(cells[0].target))
    if measure.has_enough is None:
        return _begin(cells, keys, keep, budget.num_samples, place)
    begun = _begin(cells, keys, keep, min(FIRST, budget.num_samples), place)
    running = {i: replace(each, stats={}, warmup_stats={}) for i, each in enumerate(begun)}  # means are enough
    most, stage, finished, part = budget.num_samples * budget.thinning, 0, {}, max(1, FIRST // _THINNER)
    while True:
        num_draws, thinning = next((each.num_draws, each.thinning) for each in running.values())
        done, is_full = num_draws * thinning, 2 * num_draws > MOST
        thinning = _THINNER * thinning if is_full else thinning
        is_last = most - done <= done
        num_samples = (most - done) // thinning if is_last else done // thinning // part * part
        for i, result in running.items():
            if i not in finished and (
                num_samples < 1 or measure.has_enough(result) or (is_full and not measure.can_thin(result, _THINNER))
            ):
                finished[i] = result
        left = [i for i in running if i not in finished]
        if not left:
            return [finished[i] for i in range(len(cells))]
        spent = max(each.seconds for each in running.values())  # as long as the next stage will take
        if 2 * len(left) <= len(running) and spent > _COMPILING:  # a program for them alone pays
            running = {i: running[i] for i in left}
        stage += 1
        how: dict[str, Any] = {"num_samples": num_samples, "thinning": thinning, "keep": keep}
        how |= {"num_done": budget.num_warmup + done, "folder": place(stage, num_samples * thinning)}
        work = len(running) * work_per_step(begun[0].target, budget.num_chains)
        how |= {"chunk_size": chunk_length(part, work * thinning)}
        before = [_thin(each) if is_full else each for each in running.values()]
        more = sample_on([keys[i] for i in running], before, **how)
        check_complete(*more)
        running = {i: _join(*parts) for i, *parts in zip(running, before, more, strict=True)}


def _begin(cells: Sequence[Cell], keys: Sequence[Any], keep: Any, num_samples: int, place: Place) -> list[Result]:
    """Warm-up, and the first draws."""
    budget, targets = cells[0].budget, [target_of(cell.target) for cell in cells]
    kernels = [kernel_of(cell, target) for cell, target in zip(cells, targets, strict=True)]
    starts = [cell.make_init(target) for cell, target in zip(cells, targets, strict=True)]
    shared = asdict(replace(budget, num_samples=num_samples)) | {"keep": keep}
    folder = place(0, budget.num_warmup + num_samples * budget.thinning)
    adapters = [cell.make_adapter() for cell in cells]
    if len(cells) == 1 and folder is None:
        begin = {"init": starts[0], "adaptation": adapters[0], "progress": False}
        results = [sample(keys[0], targets[0], kernels[0], **shared, **begin)]
    else:  # of a run that is complete in a folder `sample` reads what was kept, but not where its chains can go on
        results = sample_together(keys, targets, kernels, **shared, init=starts, adaptation=adapters, folder=folder)
    check_complete(*results)
    return [replace(each, **{n: jax.tree.map(np.asarray, getattr(each, n)) for n in _READ}) for each in results]


def _thin(result: Result) -> Result:
    """With every sixteenth draw."""
    means = result.mean_stats | {"evals": _THINNER * result.mean_stats["evals"]}  # of a draw, which is more steps now
    kept = result.kept[:, _THINNER - 1 :: _THINNER]
    return replace(result, kept=kept, mean_stats=means, num_draws=kept.shape[1], thinning=_THINNER * result.thinning)


def _join(before: Result, more: Result) -> Result:
    """The draws of both, as of one run."""
    share = more.num_draws / (before.num_draws + more.num_draws)
    means = {
        name: (1 - share) * mean + share * np.asarray(more.mean_stats[name]) for name, mean in before.mean_stats.items()
    }
    kept = np.concatenate([before.kept, np.asarray(more.kept)], axis=1)
    return replace(
        before,
        kernel=more.kernel,
        states=more.states,
        kept=kept,
        mean_stats=means,
        num_draws=before.num_draws + more.num_draws,
        seconds=before.seconds + more.seconds,
        compile_seconds=before.compile_seconds + more.compile_seconds,
    )
