"""Coordinate probes: values of a kernel's knobs are tried in turn, and those that jump furthest are kept.

First a grid of all knobs is tried (after a pass over every third point that is not counted, since jumps on the way from
the start are longer than they will be). Then one knob theta after the other is tried at its value, above and below, and
moves to the best, with a step of its own on the log scale, which halves when the middle wins and grows while one side
does. From a bad start it arrives in tens of windows, and it does not stay on a lower summit.
"""

import itertools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from discrax.adaptation.windows import SHORTEST, Windowed
from discrax.core.checks import describe

_EVERY = 3  # points of a grid of which one is in the pass that is not counted


class ProbePlan(NamedTuple):
    """Where a search by probes stands."""

    turn: Int[Array, ""]  # windows judged so far, up to the end of the grid
    middle: Float[Array, " knobs"]
    score: Float[Array, ""]  # the best of the grid
    knob: Int[Array, ""]
    phase: Int[Array, ""]  # 0: the middle, 1: above, 2: below
    scores: Float[Array, " 3"]
    step: Float[Array, " knobs"]
    last: Int[Array, " knobs"]  # which side won last


class JumpProbes(Windowed):
    """Coordinate probes of one or more knobs; `names=None` takes all that the kernel has."""

    grid: tuple[tuple[float, ...], ...] = eqx.field(static=True, default=())
    title: ClassVar[str] = "probes"

    def __check_init__(self):
        if not isinstance(self.grid, tuple):
            raise TypeError(f"grid must be a tuple of settings, but got {describe(self.grid)}.")

    def schedule(self, tries: dict[str, tuple[float, ...]], num_steps: int) -> tuple[int, dict[str, Any]]:
        """The grid has all combinations of the values; a short warm-up leaves every second out, but not the last."""
        values = list(tries.values())
        grid = tuple(itertools.product(*values))
        while len(grid) > 1 and SHORTEST * _windows(grid, len(tries)) > num_steps:
            values = [each[(len(each) - 1) % 2 :: 2] for each in values]
            grid = tuple(itertools.product(*values))
        return _windows(grid, len(tries)), {"grid": grid}

    def first_plan(self, values: Float[Array, " knobs"]) -> ProbePlan:
        k, zero = len(values), jnp.zeros((), jnp.int32)
        step = jnp.full(k, np.log(2), jnp.float32)
        no_scores, last = jnp.zeros(3, jnp.float32), jnp.zeros(k, jnp.int32)
        return ProbePlan(zero, values, jnp.float32(-1), zero, zero, no_scores, step, last)

    def trial(self, plan: ProbePlan) -> Float[Array, " knobs"]:
        step = plan.step[plan.knob]
        factors = jnp.exp(jnp.stack([jnp.zeros_like(step), step, -step]))
        probe = plan.middle.at[plan.knob].multiply(factors[plan.phase])
        if not self.grid:
            return probe
        points = jnp.asarray(self.grid, jnp.float32)
        counted = plan.turn - self._uncounted
        place = jnp.where(counted < 0, _EVERY * plan.turn, counted)
        return jnp.where(plan.turn < self._grid_windows, points[jnp.clip(place, 0, len(self.grid) - 1)], probe)

    @property
    def _uncounted(self) -> int:
        return len(self.grid) // _EVERY

    @property
    def _grid_windows(self) -> int:
        """Windows of both passes over the grid."""
        return self._uncounted + len(self.grid)

    def judge(
        self, plan: ProbePlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> ProbePlan:
        probed = self._after_probe(plan, score, goes_up, limits)
        if not self.grid:
            return probed
        still = (score == 0) & (plan.score <= 0) & goes_up  # nothing proposed so far: the largest is the best
        better = ((score > plan.score) | still) & (plan.turn >= self._uncounted)
        searched = plan._replace(
            turn=plan.turn + 1,
            middle=jnp.where(better, jnp.clip(self.trial(plan), *limits), plan.middle),
            score=jnp.where(better, score, plan.score),
        )
        in_grid = plan.turn < self._grid_windows
        return jax.tree.map(lambda a, b: jnp.where(in_grid, a, b), searched, probed)

    def _after_probe(
        self, plan: ProbePlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> ProbePlan:
        scores = plan.scores.at[plan.phase].set(score)
        # Ties stay in the middle, unless nothing moved at all.
        winner = jnp.where(jnp.max(scores) > 0, jnp.argmax(scores), jnp.where(goes_up, 1, 2))
        best = self.trial(plan._replace(phase=winner, turn=jnp.asarray(self._grid_windows, jnp.int32)))
        again = (winner == plan.last[plan.knob]) & (winner > 0)
        factor = jnp.where(winner == 0, 0.5, jnp.where(again, 1.5, 1.0))
        finished = plan._replace(
            middle=jnp.clip(best, *limits),
            step=jnp.clip(plan.step.at[plan.knob].multiply(factor), 1e-3, 2.0),
            knob=(plan.knob + 1) % plan.middle.shape[0],
            phase=jnp.zeros_like(plan.phase),
            scores=jnp.zeros_like(scores),
            last=plan.last.at[plan.knob].set(winner.astype(jnp.int32)),
        )
        going_on = plan._replace(phase=plan.phase + 1, scores=scores)
        return jax.tree.map(lambda a, b: jnp.where(plan.phase == 2, a, b), finished, going_on)

    def best(self, plan: ProbePlan) -> Float[Array, " knobs"]:
        return plan.middle


def _windows(grid: tuple, num_knobs: int) -> int:
    return len(grid) + len(grid) // _EVERY + 3 * 4 * num_knobs
