"""Adaptation by jump distance: values of a kernel's knobs are tried in turn, and those that jump furthest are kept.

A value is judged by the mean jump of all chains over a window of steps; the chains go on from where they are. At the
end the best value is frozen. Values are tried as the kernel takes them, clipped to what makes sense for the target.
Where no value moved anything, the acceptance tells why: near 1 nothing was proposed, and larger values are the way out;
near 0 everything was rejected, and smaller ones are. Three rules:

- `JumpProbes`: coordinate probes. One knob theta after the other is tried at its value, above and below, and moves to
  the best. With rule="paper" (Sun et al., 2023) the probes are theta (1 +- gamma), gamma = 0.2, and gamma shrinks by
  0.9 after a round that changed nothing. The default, rule="robust", first tries a grid of all knobs (after a pass over
  every third point that is not counted, since jumps on the way from the start are longer than they will be), and
  gives each knob a step of its own on the log scale, which halves when the middle wins and grows while one side does:
  from a bad start it arrives in tens of windows instead of hundreds, and it does not stay on a lower summit.
- `StepSearch` (Rhodes and Gutmann, 2022): five values of one knob, then nine around the best of them.
- `GammaRule` (the same): the multiple gamma of a preconditioner keeps changing in one direction while the jump grows
  and turns round when it falls; the change delta = 0.25 decays by 0.99 per window.
"""

import itertools
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from discrax.core.checks import describe, real_array, whole
from discrax.core.kernel import Info, Kernel, Probed, State, Tunable, replaced
from discrax.core.target import Target

RADII = (1.0, 5.0, 10.0, 15.0, 20.0)
DECADES = (0.05, 0.5, 5.0, 50.0, 500.0)
_SHORTEST = 3  # steps of a window
_EVERY = 3  # points of a grid of which one is in the pass that is not counted


class JumpReport(NamedTuple):
    """What warm-up tried and chose."""

    chosen: dict[str, float]
    jump: float  # the mean jump with the chosen values when they were last judged
    rule: str
    num_steps: int
    window: int
    tried: tuple[tuple[tuple[float, ...], float], ...]  # values, and the mean jump with them

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value:.4g}" for name, value in self.chosen.items())
        tried = f"tried {len(self.tried)} settings for {self.window} steps each"
        return f"{values} (jump {self.jump:.4g}; {tried}, {self.rule} rule)"


class Memory(NamedTuple):
    count: Int[Array, ""]  # steps in this window
    total: Float[Array, ""]  # of the jumps in it
    accepted: Float[Array, ""]  # of the acceptance probabilities in it
    steps: Int[Array, ""]
    plan: Any
    history: Float[Array, "windows knobs_and_score"]
    filled: Int[Array, ""]


def knobs_of(kernel: Kernel) -> dict[str, tuple[float, ...]]:
    """The knobs of a kernel with the values to try first; a scale that is tuned to a rate is one too."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel, such as discrax.samplers.pas(), but got {describe(kernel)}.")
    if isinstance(kernel, Probed):
        return kernel.knobs
    if isinstance(kernel, Tunable):
        return {kernel.parameter: RADII if kernel.parameter == "radius" else DECADES}
    return {}


def turned(target: Target, kernel: Any, names: tuple[str, ...], values: Float[Array, " knobs"]) -> Any:
    """The kernel with its knobs at other values, clipped as it clips them."""
    for name, value in zip(names, values, strict=True):
        if isinstance(kernel, Probed):
            kernel = kernel.with_knob(name, value)
        else:
            kernel = kernel.with_log_scale(target, jnp.log(value).astype(jnp.float32))
    return kernel


def _limits(target: Target, kernel: Any, names: tuple[str, ...]) -> Float[Array, "2 knobs"]:
    """The smallest and the largest values that the kernel takes: where it clips others."""
    ends = (jnp.full(len(names), end, jnp.float32) for end in (1e-30, 1e30))
    low, high = (knob_values(turned(target, kernel, names, end), names) for end in ends)
    if isinstance(kernel, Probed):  # a knob that may be negative
        low = jnp.minimum(low, knob_values(turned(target, kernel, names, jnp.full(len(names), -1e30)), names))
    return jnp.stack([low, high])


def knob_values(kernel: Any, names: tuple[str, ...]) -> Float[Array, " knobs"]:
    read = kernel.knob if isinstance(kernel, Probed) else lambda name: getattr(kernel, name)
    return jnp.stack([jnp.asarray(read(name), jnp.float32) for name in names])


def _check_fields(names: Any, window: Any, num_windows: Any) -> None:
    whole("num_windows", num_windows, least=0, most=10**9)
    if names is not None and (not isinstance(names, tuple) or not names or not all(isinstance(n, str) for n in names)):
        raise TypeError(f"names must be a tuple of knobs, such as ('sigma',), or None for all, but got {names!r}.")
    if window is not None:
        whole("window", window, least=1, most=10**9)


class _Windowed(eqx.Module):
    """What the rules share: windows, their scores, and a record of them. A rule says what to try next."""

    names: eqx.AbstractVar[tuple[str, ...] | None]
    window: eqx.AbstractVar[int | None]  # steps; None until planned
    num_windows: eqx.AbstractVar[int]
    most_knobs: ClassVar[int | None] = None  # that it tunes if none is named

    @property
    @abstractmethod
    def title(self) -> str:
        """The rule, for reports."""

    @abstractmethod
    def first_plan(self, kernel: Any) -> Any: ...

    @abstractmethod
    def trial(self, plan: Any) -> Float[Array, " knobs"]:
        """The values to try in the next window."""

    @abstractmethod
    def judged(self, plan: Any, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Array) -> Any:
        """The plan after the present trial was given its score; where nothing moved, `goes_up` says which way to go."""

    @abstractmethod
    def best(self, plan: Any) -> Float[Array, " knobs"]: ...

    @abstractmethod
    def wanted_windows(self, kernel: Any, num_steps: int) -> int:
        """How many windows a warm-up should be cut into."""

    def check(self, kernel: Kernel) -> None:
        knobs = knobs_of(kernel)
        if not knobs:
            raise ValueError(f"{type(kernel).__name__} has no knob to tune; pass adaptation=None.")
        unknown = [name for name in self.names or () if name not in knobs]
        if unknown:
            raise ValueError(f"{type(kernel).__name__} has no knob {unknown[0]!r}, but it has {', '.join(knobs)}.")

    @abstractmethod
    def schedule(self, kernel: Any, names: tuple[str, ...], num_steps: int) -> dict[str, Any]:
        """Other fields that depend on the kernel and the length of warm-up."""

    def planned(self, kernel: Kernel, num_steps: int) -> Any:
        names = self.names or tuple(knobs_of(kernel))[: self.most_knobs]
        window = self.window or max(_SHORTEST, min(1000, num_steps // self.wanted_windows(kernel, num_steps)))
        own = self.schedule(kernel, names, num_steps)
        return replaced(self, names=names, window=window, num_windows=-(-num_steps // window), **own)

    def init(self, target: Target, kernel: Any) -> Memory:
        zero = jnp.zeros((), jnp.int32)
        assert self.names is not None
        history = jnp.zeros((self.num_windows, len(self.names) + 1), jnp.float32)
        nothing = jnp.zeros((), jnp.float32)
        return Memory(zero, nothing, nothing, zero, self.first_plan(kernel), history, zero)

    def update(self, target: Target, kernel: Any, memory: Memory, states: State, info: Info) -> tuple[Any, Memory]:
        assert self.names is not None
        assert self.window is not None
        # The kernel that made the step is the trial, except in the first window of a chain that starts elsewhere.
        count, total = memory.count + 1, memory.total + jnp.mean(info.jump)
        accepted = memory.accepted + jnp.mean(info.accept_prob)
        is_full = count == self.window
        score = total / self.window
        tried = knob_values(kernel, self.names)
        row = jnp.concatenate([tried, score[None]])
        place = jnp.where(is_full, memory.filled, self.num_windows)
        history = memory.history.at[place].set(row, mode="drop")
        limits = _limits(target, kernel, self.names)  # they grow with the capacity of a kernel
        judged = self.judged(memory.plan, score, accepted > 0.5 * self.window, limits)
        plan = jax.tree.map(lambda new, old: jnp.where(is_full, new, old), judged, memory.plan)
        after = Memory(
            jnp.where(is_full, 0, count),
            jnp.where(is_full, 0.0, total),
            jnp.where(is_full, 0.0, accepted),
            memory.steps + 1,
            plan,
            history,
            memory.filled + is_full,
        )
        return turned(target, kernel, self.names, self.trial(plan)), after

    def freeze(self, target: Target, kernel: Any, memory: Memory) -> tuple[Any, JumpReport]:
        assert self.names is not None
        kernel = turned(target, kernel, self.names, self.best(memory.plan))
        values = knob_values(kernel, self.names)
        rows = np.asarray(memory.history)[: int(memory.filled)]
        tried = tuple((tuple(map(float, row[:-1])), float(row[-1])) for row in rows)
        nearest = [score for setting, score in tried if np.allclose(setting, values, rtol=1e-5)]
        jump = nearest[-1] if nearest else float("nan")
        chosen = dict(zip(self.names, map(float, values), strict=True))
        return kernel, JumpReport(chosen, jump, self.title, int(memory.steps), int(self.window or 0), tried)


class ProbePlan(NamedTuple):
    turn: Int[Array, ""]  # windows judged so far, up to the end of the grid
    middle: Float[Array, " knobs"]
    score: Float[Array, ""]  # the best of the grid
    knob: Int[Array, ""]
    phase: Int[Array, ""]  # 0: the middle, 1: above, 2: below
    scores: Float[Array, " 3"]
    step: Float[Array, " knobs"]
    following: Float[Array, " knobs"]  # where the middle goes after a round (paper)
    last: Int[Array, " knobs"]  # which side won last


class JumpProbes(_Windowed):
    """Coordinate probes of one or more knobs; `names=None` takes all that the kernel has."""

    names: tuple[str, ...] | None = eqx.field(static=True, default=None)
    rule: str = eqx.field(static=True, default="robust")
    window: int | None = eqx.field(static=True, default=None)
    num_windows: int = eqx.field(static=True, default=0)
    grid: tuple[tuple[float, ...], ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        if self.rule not in ("robust", "paper"):
            raise ValueError(f"Unknown rule {self.rule!r}; known: robust, paper.")
        _check_fields(self.names, self.window, self.num_windows)
        if not isinstance(self.grid, tuple):
            raise TypeError(f"grid must be a tuple of settings, but got {describe(self.grid)}.")

    @property
    def title(self) -> str:
        return f"{self.rule} probes"

    def wanted_windows(self, kernel: Kernel, num_steps: int) -> int:
        if self.rule == "paper":
            return 60
        names = self.names or tuple(knobs_of(kernel))
        return self._windows(self._grid(kernel, names, num_steps), names)

    def schedule(self, kernel: Any, names: tuple[str, ...], num_steps: int) -> dict[str, Any]:
        return {} if self.rule == "paper" else {"grid": self._grid(kernel, names, num_steps)}

    def _grid(self, kernel: Any, names: tuple[str, ...], num_steps: int) -> tuple[tuple[float, ...], ...]:
        """All combinations of the knobs' values; a short warm-up leaves every second value out, but not the last."""
        values = [knobs_of(kernel)[name] for name in names]
        grid = tuple(itertools.product(*values))
        while len(grid) > 1 and _SHORTEST * self._windows(grid, names) > num_steps:
            values = [each[(len(each) - 1) % 2 :: 2] for each in values]
            grid = tuple(itertools.product(*values))
        return grid

    @staticmethod
    def _windows(grid: tuple, names: tuple[str, ...]) -> int:
        return len(grid) + len(grid) // _EVERY + 3 * 4 * len(names)

    def first_plan(self, kernel: Any) -> ProbePlan:
        assert self.names is not None
        k, zero = len(self.names), jnp.zeros((), jnp.int32)
        start = knob_values(kernel, self.names)
        step = jnp.full(k, 0.2 if self.rule == "paper" else np.log(2), jnp.float32)
        no_scores = jnp.zeros(3, jnp.float32)
        last = jnp.zeros(k, jnp.int32)
        return ProbePlan(zero, start, jnp.float32(-1), zero, zero, no_scores, step, start, last)

    def trial(self, plan: ProbePlan) -> Float[Array, " knobs"]:
        step = plan.step[plan.knob]
        if self.rule == "paper":
            factors = jnp.stack([jnp.ones_like(step), 1 + step, 1 - step])
        else:
            factors = jnp.exp(jnp.stack([jnp.zeros_like(step), step, -step]))
        probe = plan.middle.at[plan.knob].multiply(factors[plan.phase])
        if not self.grid:
            return probe
        points = jnp.asarray(self.grid, jnp.float32)
        counted = plan.turn - self._uncounted
        place = jnp.where(counted < 0, _EVERY * plan.turn, counted)
        return jnp.where(plan.turn < self._searches, points[jnp.clip(place, 0, len(self.grid) - 1)], probe)

    @property
    def _uncounted(self) -> int:
        return len(self.grid) // _EVERY

    @property
    def _searches(self) -> int:
        """Windows of both passes over the grid."""
        return self._uncounted + len(self.grid)

    def judged(
        self, plan: ProbePlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> ProbePlan:
        probed = self._after_probe(plan, score, goes_up, limits)
        if not self.grid:
            return probed
        still = (score == 0) & (plan.score <= 0) & goes_up  # nothing proposed so far: the largest is the best
        better = ((score > plan.score) | still) & (plan.turn >= self._uncounted)
        here = jnp.clip(self.trial(plan), *limits)
        searched = plan._replace(
            turn=plan.turn + 1,
            middle=jnp.where(better, here, plan.middle),
            following=jnp.where(better, here, plan.middle),
            score=jnp.where(better, score, plan.score),
        )
        in_grid = plan.turn < self._searches
        return jax.tree.map(lambda a, b: jnp.where(in_grid, a, b), searched, probed)

    def _after_probe(
        self, plan: ProbePlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> ProbePlan:
        k = plan.middle.shape[0]
        scores = plan.scores.at[plan.phase].set(score)
        # Ties stay in the middle, unless nothing moved at all.
        winner = jnp.where(jnp.max(scores) > 0, jnp.argmax(scores), jnp.where(goes_up, 1, 2))
        at_end = plan.phase == 2
        best = self.trial(plan._replace(phase=winner, turn=jnp.asarray(self._searches, jnp.int32)))
        best = jnp.clip(best, *limits)
        if self.rule == "paper":
            following = plan.following.at[plan.knob].set(best[plan.knob])
            round_ends = plan.knob == k - 1
            middle = jnp.where(round_ends, following, plan.middle)
            unchanged = jnp.all(following == plan.middle)
            step = jnp.where(round_ends & unchanged, 0.9 * plan.step, plan.step)
        else:
            following = middle = best
            again = (winner == plan.last[plan.knob]) & (winner > 0)
            factor = jnp.where(winner == 0, 0.5, jnp.where(again, 1.5, 1.0))
            step = plan.step.at[plan.knob].multiply(factor)
        finished = plan._replace(
            middle=middle,
            following=following,
            step=jnp.clip(step, 1e-3, 2.0),
            knob=(plan.knob + 1) % k,
            phase=jnp.zeros_like(plan.phase),
            scores=jnp.zeros_like(scores),
            last=plan.last.at[plan.knob].set(winner.astype(jnp.int32)),
        )
        going_on = plan._replace(phase=plan.phase + 1, scores=scores)
        return jax.tree.map(lambda a, b: jnp.where(at_end, a, b), finished, going_on)

    def best(self, plan: ProbePlan) -> Float[Array, " knobs"]:
        return plan.middle


class SearchPlan(NamedTuple):
    turn: Int[Array, ""]
    best: Float[Array, ""]
    score: Float[Array, ""]
    coarse_best: Float[Array, ""]


class StepSearch(_Windowed):
    """Five coarse and nine fine values of one knob; `values=None` takes the kernel's own coarse ones."""

    names: tuple[str, ...] | None = eqx.field(static=True, default=None)
    values: tuple[float, ...] | None = eqx.field(static=True, default=None)
    window: int | None = eqx.field(static=True, default=None)
    num_windows: int = eqx.field(static=True, default=0)
    most_knobs: ClassVar[int | None] = 1

    def __check_init__(self):
        _check_fields(self.names, self.window, self.num_windows)
        if self.values is None:
            return
        if not isinstance(self.values, tuple | list):
            raise TypeError(f"values must be a tuple of numbers, but got {describe(self.values)}.")
        values = real_array("values", self.values)
        if values.ndim != 1 or len(values) < 2 or (values <= 0).any() or (np.diff(values) <= 0).any():
            raise ValueError(f"values must be two or more positive, increasing numbers, but got {self.values!r}.")

    @property
    def title(self) -> str:
        return "search"

    def schedule(self, kernel: Any, names: tuple[str, ...], num_steps: int) -> dict[str, Any]:
        return {"values": self.values or knobs_of(kernel)[names[0]]}

    def wanted_windows(self, kernel: Kernel, num_steps: int) -> int:
        return len(self.values or DECADES) + 9

    def first_plan(self, kernel: Any) -> SearchPlan:
        assert self.values is not None
        first = jnp.asarray(self.values[0], jnp.float32)
        return SearchPlan(jnp.zeros((), jnp.int32), first, jnp.float32(-1), first)

    def trial(self, plan: SearchPlan) -> Float[Array, " knobs"]:
        assert self.values is not None
        coarse, fine = jnp.asarray(self.values, jnp.float32), jnp.arange(1, 10, dtype=jnp.float32)
        if self.values[-1] > 1.5 * self.values[-2]:  # decades: 1 .. 9 times the power of ten below
            power = 10 ** jnp.floor(jnp.log10(plan.coarse_best) + 1e-4)
            fine = fine * power
            fine = jnp.where(plan.coarse_best == coarse[-1], fine + power, fine)  # the top may be passed: 2 .. 10
        else:
            fine = jnp.maximum(plan.coarse_best + fine - 5, coarse[0])
        done = plan.turn >= len(self.values) + 9
        values = jnp.concatenate([coarse, fine])
        value = jnp.where(done, plan.best, values[jnp.minimum(plan.turn, len(self.values) + 8)])
        return value[None]

    def judged(
        self, plan: SearchPlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> SearchPlan:
        assert self.values is not None
        still = (score == 0) & (plan.score <= 0) & goes_up
        better = ((score > plan.score) | still) & (plan.turn < len(self.values) + 9)
        best = jnp.where(better, jnp.clip(self.trial(plan), *limits)[0], plan.best)
        in_coarse = plan.turn < len(self.values)
        return SearchPlan(
            plan.turn + 1,
            best,
            jnp.where(better, score, plan.score),
            jnp.where(in_coarse, best, plan.coarse_best),
        )

    def best(self, plan: SearchPlan) -> Float[Array, " knobs"]:
        return plan.best[None]


class GammaPlan(NamedTuple):
    gamma: Float[Array, ""]
    delta: Float[Array, ""]
    direction: Float[Array, ""]
    score: Float[Array, ""]


class GammaRule(_Windowed):
    """The multiple gamma of PAVG's preconditioner."""

    names: tuple[str, ...] | None = eqx.field(static=True, default=("gamma",))
    window: int | None = eqx.field(static=True, default=None)
    num_windows: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        _check_fields(self.names, self.window, self.num_windows)

    @property
    def title(self) -> str:
        return "gamma"

    def schedule(self, kernel: Any, names: tuple[str, ...], num_steps: int) -> dict[str, Any]:
        return {}

    def wanted_windows(self, kernel: Kernel, num_steps: int) -> int:
        return 30

    def first_plan(self, kernel: Any) -> GammaPlan:
        gamma = knob_values(kernel, ("gamma",))[0]
        return GammaPlan(gamma, jnp.float32(0.25), jnp.float32(1), jnp.float32(-1))

    def trial(self, plan: GammaPlan) -> Float[Array, " knobs"]:
        return plan.gamma[None]

    def judged(
        self, plan: GammaPlan, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> GammaPlan:
        direction = jnp.where(score > plan.score, plan.direction, -plan.direction)
        # Away from 0 in the direction of its sign, towards it in the other.
        scaled = plan.gamma * jnp.where(direction * plan.gamma > 0, 1 + plan.delta, 1 / (1 + plan.delta))
        moved = plan.gamma + direction * plan.delta
        gamma = jnp.where(jnp.abs(plan.gamma) >= 1, scaled, moved)
        gamma = jnp.clip(jnp.where(plan.delta < 1e-4, plan.gamma, gamma), limits[0, 0], limits[1, 0])
        return GammaPlan(gamma, 0.99 * plan.delta, direction, score)

    def best(self, plan: GammaPlan) -> Float[Array, " knobs"]:
        return plan.gamma[None]
