"""What rules that tune by jump distance have in common: windows of steps, their scores, and a record of them.

A setting of a kernel's knobs is judged by the mean jump of all chains over a window of steps; the chains go on from
where they are. At the end the best setting is frozen. Values are tried as the kernel takes them, within its limits.
Where nothing moved, the acceptance tells why: near 1 nothing was proposed, and larger values are the way out; near 0
everything was rejected, and smaller ones are.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from discrax.core.checks import whole
from discrax.core.kernel import Info, Kernel, State, replaced
from discrax.core.target import Target

SHORTEST = 3  # steps of a window


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
    """What tuning carries from step to step."""

    count: Int[Array, ""]  # steps in this window
    total: Float[Array, ""]  # of the jumps in it
    accepted: Float[Array, ""]  # of the acceptance probabilities in it
    steps: Int[Array, ""]
    plan: Any
    history: Float[Array, "windows knobs_and_score"]
    filled: Int[Array, ""]


class Windowed(eqx.Module):
    """A rule that tries a setting a window. A subclass says what to try next."""

    names: tuple[str, ...] | None = eqx.field(static=True, default=None)  # None: all that the kernel has
    window: int | None = eqx.field(static=True, default=None)  # steps; None until planned
    num_windows: int = eqx.field(static=True, default=0)
    title: ClassVar[str]  # the rule, for reports
    most_knobs: ClassVar[int | None] = None  # that it tunes if none is named

    def __check_init__(self):
        whole("num_windows", self.num_windows, least=0, most=10**9)
        names = self.names
        is_tuple = isinstance(names, tuple) and names and all(isinstance(name, str) for name in names)
        if names is not None and not is_tuple:
            raise TypeError(f"names must be a tuple of knobs, such as ('sigma',), or None for all, but got {names!r}.")
        if self.window is not None:
            whole("window", self.window, least=1, most=10**9)

    @abstractmethod
    def first_plan(self, values: Float[Array, " knobs"]) -> Any:
        """The plan of a kernel whose knobs have these values."""

    @abstractmethod
    def trial(self, plan: Any) -> Float[Array, " knobs"]:
        """The values to try in the next window."""

    @abstractmethod
    def judge(
        self, plan: Any, score: Float[Array, ""], goes_up: Bool[Array, ""], limits: Float[Array, "2 knobs"]
    ) -> Any:
        """The plan after the present trial was given its score; where nothing moved, `goes_up` says which way to go."""

    @abstractmethod
    def best(self, plan: Any) -> Float[Array, " knobs"]:
        """The values to freeze."""

    @abstractmethod
    def schedule(self, tries: dict[str, tuple[float, ...]], num_steps: int) -> tuple[int, dict[str, Any]]:
        """How many windows a warm-up should be cut into, and other fields that depend on its length.

        `tries` has the values that the kernel suggests for each knob that is tuned.
        """

    def plan(self, target: Target, kernel: Kernel, num_steps: int) -> Any:
        """The rule laid out for a kernel and a number of steps."""
        knobs = kernel.knobs(target)
        if not knobs:
            raise ValueError(f"{type(kernel).__name__} has no knob to tune; pass adaptation=None.")
        unknown = [name for name in self.names or () if name not in knobs]
        if unknown:
            raise ValueError(f"{type(kernel).__name__} has no knob {unknown[0]!r}, but it has {', '.join(knobs)}.")
        names = self.names or tuple(knobs)[: self.most_knobs]
        wanted, own = self.schedule({name: knobs[name].tries for name in names}, num_steps)
        window = self.window or max(SHORTEST, min(1000, num_steps // wanted))
        return replaced(self, names=names, window=window, num_windows=-(-num_steps // window), **own)

    def init(self, target: Target, kernel: Kernel) -> Memory:
        """What it remembers before the first step."""
        assert self.names is not None
        zero, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32)
        history = jnp.zeros((self.num_windows, len(self.names) + 1), jnp.float32)
        plan = self.first_plan(knob_values(target, kernel, self.names))
        return Memory(zero, nothing, nothing, zero, plan, history, zero)

    def update(
        self, target: Target, kernel: Kernel, memory: Memory, states: State, info: Info
    ) -> tuple[Kernel, Memory]:
        """The kernel with the values to try next; they change at the end of a window."""
        assert self.names is not None
        assert self.window is not None
        # The kernel that made the step is the trial, except in the first window of a chain that starts elsewhere.
        count, total = memory.count + 1, memory.total + jnp.mean(info.jump)
        accepted = memory.accepted + jnp.mean(info.accept_prob)
        is_full = count == self.window
        score = total / self.window
        row = jnp.concatenate([knob_values(target, kernel, self.names), score[None]])
        place = jnp.where(is_full, memory.filled, self.num_windows)
        history = memory.history.at[place].set(row, mode="drop")
        knobs = kernel.knobs(target)  # their limits grow with the capacity of a kernel
        ends = [[jnp.asarray(end, jnp.float32) for end in (knobs[name].low, knobs[name].high)] for name in self.names]
        limits = jnp.stack([jnp.stack(both) for both in zip(*ends, strict=True)])
        judged = self.judge(memory.plan, score, accepted > 0.5 * self.window, limits)
        plan = jax.tree.map(lambda new, old: jnp.where(is_full, new, old), judged, memory.plan)
        count, total, accepted = (jnp.where(is_full, 0, each) for each in (count, total, accepted))
        after = Memory(count, total, accepted, memory.steps + 1, plan, history, memory.filled + is_full)
        return turn(target, kernel, self.names, self.trial(plan)), after

    def freeze(self, target: Target, kernel: Kernel, memory: Memory) -> tuple[Kernel, JumpReport]:
        """The kernel with the best values, and what was tried."""
        assert self.names is not None
        kernel = turn(target, kernel, self.names, self.best(memory.plan))
        values = knob_values(target, kernel, self.names)
        rows = np.asarray(memory.history)[: int(memory.filled)]
        tried = tuple((tuple(map(float, row[:-1])), float(row[-1])) for row in rows)
        nearest = [score for setting, score in tried if np.allclose(setting, values, rtol=1e-5)]
        jump = nearest[-1] if nearest else float("nan")
        chosen = dict(zip(self.names, map(float, values), strict=True))
        return kernel, JumpReport(chosen, jump, self.title, int(memory.steps), int(self.window or 0), tried)


def turn(target: Target, kernel: Kernel, names: tuple[str, ...], values: Float[Array, " knobs"]) -> Kernel:
    """The kernel with its knobs at other values, within their limits."""
    knobs = kernel.knobs(target)
    clipped = {
        name: jnp.clip(value, knobs[name].low, knobs[name].high).astype(jnp.float32)
        for name, value in zip(names, values, strict=True)
    }
    return kernel.with_knobs(**clipped)


def knob_values(target: Target, kernel: Kernel, names: tuple[str, ...]) -> Float[Array, " knobs"]:
    """The present values of some knobs."""
    knobs = kernel.knobs(target)
    return jnp.stack([jnp.asarray(knobs[name].value, jnp.float32) for name in names])
