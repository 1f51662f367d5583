"""Whether the chains of a pilot agree, and whether those that do not would if they went on.

log pi cannot always tell: the two signs of a magnet are as probable as each other, and so are two copies of a column.
So the share of sites at each level is looked at too, and the share of sites that are as in one fixed random state.

R^2 - 1 is the variance between chains over that within them. Chains that are slow, or not there yet, wander: when they
go on for twice as long the variance within grows, and the ratio falls by half. That of chains which stay in modes of
their own does not fall.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.observers import Draws, Stats
from discrax.diagnostics.weighted import weighted_rhat
from discrax.sampling.run import PILOT_CHUNK, Progress, Run

HIGH_RHAT = 1.2  # between the chains of a pilot, which is short
_FEW_LEVELS = 4  # whose shares are compared
_FALLEN = 0.75  # of R^2 - 1 of half the time; 1/2 is that of wandering chains
_DOUBLINGS = 2


class Apart(NamedTuple):
    """Chains that disagree, and still did when they had gone on."""

    rhat: float  # the largest, in the pilot
    later: float  # and when it had gone on
    longer: int  # for as many times as long

    def __str__(self) -> str:
        return f"R-hat {self.rhat:.3g}, and {self.later:.3g} when they had gone on for {self.longer} times as long"


def share_rhat(codes: Integer[np.ndarray, "draws chains *shape"], num_levels: int) -> float:
    """R-hat between chains of the share of sites at each of the first levels, or as in a random state: the largest."""
    state = np.random.default_rng(0).integers(0, num_levels, codes.shape[2:])
    found = [float("nan")]
    for there in (*range(min(num_levels - 1, _FEW_LEVELS)), state):
        shares = np.mean(codes == there, axis=tuple(range(2, codes.ndim))).T
        if len(shares) > 1 and np.ptp(shares) > 0:
            found.append(_rhat(shares))
    return float(np.nanmax(found)) if len(found) > 1 else found[0]


def value_rhat(lp: Float[np.ndarray, "chains draws"]) -> float:
    """R-hat of log pi between chains; infinite where each stands still, and not where the others do."""
    return _rhat(lp) if len(lp) > 1 and np.ptp(lp.mean(axis=1)) > 0 else float("nan")


def _rhat(values: Float[np.ndarray, "chains draws"]) -> float:
    rhat = weighted_rhat(values, np.ones_like(values))
    return float("inf") if np.isnan(rhat) else float(rhat)


def look(chunks: Sequence[Progress], num_levels: int) -> tuple[Float[np.ndarray, "chains draws"], float, float]:
    """log pi in the later half of a pilot's chunks, and its two R-hats there."""
    late = [chunk.handed[0] for chunk in chunks[len(chunks) // 2 :]]
    lp = np.concatenate([np.asarray(stats["lp"], np.float64) for stats, _ in late]).T
    codes = np.concatenate([np.asarray(draws) for _, draws in late])
    return lp, value_rhat(lp), share_rhat(codes, num_levels)


def stay_apart(chunks: Sequence[Progress], num_levels: int, steps_per_draw: int) -> Apart | None:
    """Whether the chains of a pilot disagree for good: they go on, each time for twice as long, until this is known."""
    first = before = _largest(look(chunks, num_levels))
    run: Run = chunks[-1].run.freeze()
    settings: dict[str, Any] = {"thinning": steps_per_draw, "observe": (Stats(), Draws()), "chunk": PILOT_CHUNK}
    for doubling in range(1, _DOUBLINGS + 1):
        chunks = list(run.steps(2 * PILOT_CHUNK * len(chunks), **settings))
        run, after = chunks[-1].run, _largest(look(chunks, num_levels))
        if not after > HIGH_RHAT:
            return None
        if not after**2 - 1 < _FALLEN * (before**2 - 1):
            return Apart(first, after, 2**doubling)
        before = after
    return None


def _largest(looked: tuple[Any, float, float]) -> float:
    return max((rhat for rhat in looked[1:] if not math.isnan(rhat)), default=1.0)
