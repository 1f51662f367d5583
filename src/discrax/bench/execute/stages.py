"""Chains of cells in stages: they go on until their measure has enough of them, at most for their budget.

The first stage is `FIRST` draws, and every other doubles what there is. Of more than `MOST` draws a chain every second
one is dropped, and from there on a draw is twice as many steps: steps grow, what is kept does not. A cell has the draws
of the stage after which it had enough, whoever shares its program and goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measure, check_complete, kernel_of, target_of
from discrax.sampling import Result, sample
from discrax.sampling.together import sample_on, sample_together

FIRST, MOST = 1_000, 4_000
_READ = ("draws", "kept", "stats", "warmup_draws", "warmup_stats")  # what may lie in a folder

Place = Callable[[int, int], Path | None]  # of (stage, steps): where a stage keeps what it has


def sample_cells(cells: Sequence[Cell], measure: Measure, place: Place) -> list[Result]:
    """The runs of cells that are one program: of one structure, with one budget and one measure."""
    budget, keys = cells[0].budget, [jax.random.key(cell.seed) for cell in cells]
    keep = measure.keep(target_of(cells[0].target))
    if measure.has_enough is None:
        return _begin(cells, keys, keep, budget.num_samples, place)
    results = [_bare(each) for each in _begin(cells, keys, keep, min(FIRST, budget.num_samples), place)]
    most, stage, finished = budget.num_samples * budget.thinning, 0, {}
    while True:
        done = results[0].num_draws * results[0].thinning
        if 2 * results[0].num_draws > MOST:
            longer = [_thin(each) for each in results]
        else:
            longer = results
        draws, thinning = longer[0].num_draws, longer[0].thinning
        draws = min(draws, (most - done) // thinning)
        for i, result in enumerate(results):
            if i not in finished and (draws < 1 or measure.has_enough(result)):
                finished[i] = result
        if len(finished) == len(cells):
            return [finished[i] for i in range(len(cells))]
        stage += 1
        more = sample_on(
            keys,
            longer,
            num_done=budget.num_warmup + done,
            num_samples=draws,
            thinning=thinning,
            keep=keep,
            folder=place(stage, draws * thinning),
        )
        check_complete(*more)
        results = [_join(*pair) for pair in zip(longer, more, strict=True)]


def _begin(cells: Sequence[Cell], keys: Sequence[Any], keep: Any, num_samples: int, place: Place) -> list[Result]:
    """Warm-up, and the first draws."""
    budget, targets = cells[0].budget, [target_of(cell.target) for cell in cells]
    kernels = [kernel_of(cell, target) for cell, target in zip(cells, targets, strict=True)]
    starts = [cell.make_init(target) for cell, target in zip(cells, targets, strict=True)]
    shared = asdict(replace(budget, num_samples=num_samples)) | {"keep": keep}
    shared |= {"folder": place(0, budget.num_warmup + num_samples * budget.thinning)}
    adapters = [cell.make_adapter() for cell in cells]
    if len(cells) == 1:
        begin = {"init": starts[0], "adaptation": adapters[0], "progress": False}
        results = [sample(keys[0], targets[0], kernels[0], **shared, **begin)]
    else:
        results = sample_together(keys, targets, kernels, **shared, init=starts, adaptation=adapters)
    check_complete(*results)
    return [replace(each, **{n: jax.tree.map(np.asarray, getattr(each, n)) for n in _READ}) for each in results]


def _bare(result: Result) -> Result:
    """Without the statistics of single draws, whose means are enough."""
    return replace(result, stats={}, warmup_stats={})


def _thin(result: Result) -> Result:
    """With every second draw."""
    kept = jax.tree.map(lambda leaf: leaf[:, 1::2], result.kept)
    means = result.mean_stats | {"evals": 2 * result.mean_stats["evals"]}  # of a draw, which is more steps now
    return replace(
        result, kept=kept, mean_stats=means, num_draws=result.num_draws // 2, thinning=2 * result.thinning
    )


def _join(before: Result, more: Result) -> Result:
    """The draws of both, as of one run."""
    share = more.num_draws / (before.num_draws + more.num_draws)
    means = {
        name: (1 - share) * mean + share * np.asarray(more.mean_stats[name]) for name, mean in before.mean_stats.items()
    }
    kept = jax.tree.map(lambda *parts: np.concatenate([np.asarray(each) for each in parts], axis=1),
                        before.kept, more.kept)  # fmt: skip
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
