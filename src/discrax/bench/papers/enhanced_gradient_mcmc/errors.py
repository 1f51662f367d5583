"""Measures of how far the draws are from a law that is known exactly, against seconds and against steps.

At each checkpoint every chain is judged by its whole history so far; a number is the mean over chains, its `std` the
spread between them. Checkpoints are at equal ratios, the first after a fiftieth of the draws, so that samplers can be
compared after equal seconds (`equal_seconds`) though a step of one takes many times as long as that of another. A
number against steps has the name of its metric with "_at_step".
"""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from discrax.bench.experiments.ess import ess_numbers, mix, movement
from discrax.bench.plan.cell import Call, Cell
from discrax.bench.plan.measure import (
    Measure,
    Measured,
    Number,
    Timing,
    experiment_without_sampler,
    input_of,
    target_of,
)
from discrax.bench.plan.rows import Derive, Row, group_by, only
from discrax.exact import law
from discrax.sampling import Result

CHECKPOINTS = 24
_FIRST = 1 / 50  # of the draws
_AT_STEP = "_at_step"
_BINS = 40  # of a trace
_SMOOTHING = 1e-5  # added to counts, so that an unseen level has a finite divergence


def _over_time(result: Result, judge: Callable[[np.ndarray], dict[str, np.ndarray]]) -> list[Number]:
    """`judge` maps draws (chain, draw, sites) to errors of each chain."""
    numbers = []
    assert result.draws is not None
    counts = np.unique(np.round(result.num_draws * np.geomspace(_FIRST, 1, CHECKPOINTS)).astype(int))
    for count in counts[counts > 0]:
        seconds, steps = result.seconds * count / result.num_draws, float(count * result.thinning)
        for metric, errors in judge(result.draws[:, :count]).items():
            found = Number(metric, float(errors.mean()), float(errors.std()), x=seconds)
            numbers += [found, found._replace(metric=metric + _AT_STEP, x=steps)]
    last = {number.metric: number for number in numbers if not number.metric.endswith(_AT_STEP)}
    return numbers + [number._replace(metric=f"{number.metric}_end", x=None) for number in last.values()]


def equal_seconds(*metrics: str, **labels: str) -> Derive:
    """The rows of these series up to the time at which the fastest sampler made its last step."""

    def cut(rows: list[Row]) -> list[Row]:
        rows = [row for row in only(**labels)(rows) if row["metric"] in metrics and row["x"] is not None]
        ends = [max(row["x"] for row in cell) for cell in group_by(rows, lambda row: row["cell"]).values()]
        return [row for row in rows if row["x"] <= min(ends)]

    return cut


def equal_steps(*metrics: str, **labels: str) -> Derive:
    """The rows of these series against steps, by the names that they have against seconds."""

    def named(rows: list[Row]) -> list[Row]:
        rows = only(**labels)(rows)
        return [row | {"metric": m} for m in metrics for row in rows if row["metric"] == m + _AT_STEP]

    return named


def _measure(errors: Callable[[Cell], Callable], *, first_sites: int | None = None) -> Measure:
    def numbers(cell: Cell, result: Result) -> list[Number]:
        assert result.draws is not None
        statistic = _distance_to_start(result.draws if first_sites is None else result.draws[..., :first_sites])
        return [
            *movement(cell, result),
            *ess_numbers(result, mix(result, statistic, "positive_pairs"), per_chain=True),
            *_over_time(result, errors(cell)),
        ]

    return Measure(lambda target: "draws", numbers)


def _distance_to_start(draws: np.ndarray) -> np.ndarray:
    """L1 distance to the state that the first chain kept first."""
    return np.abs(draws.astype(np.int32) - draws[:1, :1].astype(np.int32)).sum(axis=tuple(range(2, draws.ndim)))


def mixture_errors() -> Measure:
    """Divergence of the marginals, averaged over sites, both ways, and Frobenius error of the covariance."""

    def errors(cell: Cell) -> Callable:
        target: Any = target_of(cell.target)
        p = target.exact_marginal()
        _, covariance = target.exact_mean_and_covariance()
        values = np.asarray(target.space.values)

        def judge(draws: np.ndarray) -> dict[str, np.ndarray]:
            chains, count, sites = draws.shape
            flat = (
                draws.astype(np.int64) + len(p) * np.arange(sites) + len(p) * sites * np.arange(chains)[:, None, None]
            )
            counts = np.bincount(flat.ravel(), minlength=chains * sites * len(p)).reshape(chains, sites, len(p))
            q = (counts + _SMOOTHING) / (counts + _SMOOTHING).sum(-1, keepdims=True)
            centred = values[draws]
            centred = centred - centred.mean(axis=1, keepdims=True)
            found = np.einsum("cni,cnj->cij", centred, centred) / count
            return {
                "marginal_KL": (p * (np.log(p) - np.log(q))).sum(-1).mean(-1),
                "marginal_KL_reverse": (q * (np.log(q) - np.log(p))).sum(-1).mean(-1),
                "covariance_error": np.linalg.norm(found - covariance, axis=(1, 2)),
            }

        return judge

    return _measure(errors)


def regression_errors() -> Measure:
    """Mean error of the marginals, and of the pairwise marginals of the regression's own sites."""

    def errors(cell: Cell) -> Callable:
        return _pairwise_judge(*_regression_law(cell.target))

    return _measure(errors, first_sites=20)


@lru_cache(maxsize=4)
def _regression_law(target: Call) -> tuple[np.ndarray, np.ndarray]:
    return target_of(target).exact_marginals()  # ty: ignore[missing-attribute]


def enumerated_errors() -> Measure:
    """The same for a target of two levels that is small enough to enumerate."""

    def errors(cell: Cell) -> Callable:
        target = target_of(cell.target)
        probabilities = law(target)
        states = np.asarray(target.space.enumerate()).reshape(len(probabilities), -1).astype(np.float64)
        both = states.T @ (states * probabilities[:, None])
        p = probabilities @ states
        pairs = np.empty((len(p), len(p), 2, 2))
        pairs[..., 1, 1] = both
        pairs[..., 1, 0] = p[:, None] - both
        pairs[..., 0, 1] = p[None, :] - both
        pairs[..., 0, 0] = 1 - p[:, None] - p[None, :] + both
        return _pairwise_judge(p, pairs)

    return _measure(errors)


def _pairwise_judge(p: np.ndarray, pairs: np.ndarray) -> Callable:
    d = len(pairs)

    def judge(draws: np.ndarray) -> dict[str, np.ndarray]:
        chains, count = draws.shape[:2]
        marginal, pairwise = np.empty(chains), np.empty(chains)
        for chain in range(chains):
            x = draws[chain].reshape(count, -1).astype(np.float64)
            q = x.mean(axis=0)
            marginal[chain] = np.abs(q - p).mean()
            one = q[:d]
            both = x[:, :d].T @ x[:, :d] / count
            total = np.abs(both - pairs[..., 1, 1]) + np.abs(one[:, None] - both - pairs[..., 1, 0])
            total += np.abs(one[None, :] - both - pairs[..., 0, 1])
            total += np.abs(1 - one[:, None] - one[None, :] + both - pairs[..., 0, 0])
            pairwise[chain] = total.mean()
        return {"marginal_error": marginal, "pairwise_error": pairwise}

    return judge


def jump_trace() -> Measure:
    """The mean distance moved a step, over chains, against steps: from their first one, where there is no warm-up."""

    def numbers(cell: Cell, result: Result) -> list[Number]:
        jumps = np.asarray(result.stats["jump"], np.float64)
        steps = cell.budget.num_warmup + result.thinning * np.arange(1, jumps.shape[1] + 1)
        edges = np.unique(np.round(np.geomspace(1, jumps.shape[1] + 1, _BINS + 1)).astype(int)) - 1
        found = movement(cell, result)
        for low, high in pairwise(edges):
            of_chains = jumps[:, low:high].mean(axis=1)
            at = float(np.sqrt(steps[low] * steps[high - 1]))
            found.append(Number("jump", float(of_chains.mean()), float(of_chains.std()), x=at))
        return found

    return Measure(lambda target: "draws", numbers)


@experiment_without_sampler
def ball_size(cell: Cell, radius: int) -> Measured:
    """How many states differ from one in at most `radius` sites of a space of two levels, the cell's target."""
    d = input_of(cell.target).num_sites
    count = sum(math.comb(d, k) for k in range(radius + 1))
    return [Number("num_points", float(count)), Number("is_exact", 1.0)], Timing()
