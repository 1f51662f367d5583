"""Adaptation to an acceptance rate: one scale, shared by all chains, tuned from their mean acceptance, then frozen.

Larger scales are accepted less, so the scale at which the acceptance rate A meets the wanted rate a* is found by
stochastic approximation. Two rules move the logarithm of the scale:

- `robust` (the default):
      log s <- log s + g_n (A - a*),     g_n = 1 / (a* sqrt(1 + n))
  where n counts the changes of sign of A - a* so far (Kesten, 1958). From a bad start the gain stays large and the
  scale grows or shrinks geometrically; once it has crossed the wanted rate the gain falls. g_0 is Newton's: where s
  A(s) is largest, which is what the optimal rates are, dA / d log s = -A. The frozen value is an average of the path
  that weighs its later part most (Shamir and Zhang, 2013).
- `steady` is `robust` with the same small gain at every step, g = 1 / (10 a*): it never settles, which is what a target
  that keeps changing (a model in training) wants. The last value is frozen.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from discrax.core.checks import describe, number
from discrax.core.kernel import Info, Kernel, Knob, State, rated_knob, replaced
from discrax.core.target import Target
from discrax.core.xla import numpy_for

_STEADY = 10.0
_AVERAGING = 4.0  # the weight of step t in the averages grows like t^_AVERAGING


class Memory(NamedTuple):
    """What tuning carries from step to step."""

    steps: Float[Array, ""]
    crossings: Float[Array, ""]
    last_error: Float[Array, ""]
    log_scale: Float[Array, ""]  # unclipped averages would drift: this is the clipped, current value
    mean_log_scale: Float[Array, ""]
    mean_rate: Float[Array, ""]


class AcceptanceReport(NamedTuple):
    """What warm-up asked for, reached and chose."""

    parameter: str
    value: float
    asked_rate: float
    reached_rate: float
    num_steps: int
    rule: str

    def __str__(self) -> str:
        return (
            f"{self.parameter} = {self.value:.4g} (asked for acceptance {self.asked_rate:.3f}, "
            f"reached {self.reached_rate:.3f} in {self.num_steps} steps, {self.rule} rule)"
        )


class AcceptanceRate(eqx.Module):
    """Tunes the scale of a kernel to an acceptance rate; `rate=None` takes the kernel's own optimum."""

    rate: float | Float[Array, ""] | None = None
    rule: str = eqx.field(static=True, default="robust")
    rules: ClassVar[tuple[str, ...]] = ("robust", "steady")

    def __check_init__(self):
        if self.rate is not None and not isinstance(self.rate, Tracer | jax.Array):
            number("rate", self.rate, above=0, below=1)
        if not isinstance(self.rule, str) or self.rule not in self.rules:
            raise ValueError(f"rule must be {' or '.join(map(repr, self.rules))}, but got {describe(self.rule)}.")

    def plan(self, target: Target, kernel: Kernel, num_steps: int) -> "AcceptanceRate":
        """With the rate to reach, as a leaf; a ValueError where the kernel has no scale."""
        found = rated_knob(kernel, target)
        if found is None:
            raise ValueError(f"{type(kernel).__name__} has no scale to tune to a rate; pass adaptation=None.")
        # A leaf: runs to different rates share one program.
        return replaced(self, rate=jnp.asarray(found[1].rate if self.rate is None else self.rate, jnp.float32))

    def init(self, target: Target, kernel: Kernel) -> Memory:
        """What it remembers before the first step."""
        zero = jnp.zeros((), jnp.float32)
        return Memory(zero, zero, zero, scale_of(target, kernel)[1], zero, zero)

    def update(
        self, target: Target, kernel: Kernel, memory: Memory, states: State, info: Info
    ) -> tuple[Kernel, Memory]:
        """The kernel with its next scale, from the mean acceptance of all chains."""
        assert self.rate is not None
        accept_prob = jnp.mean(info.accept_prob)
        error = accept_prob - self.rate
        crossings = memory.crossings + (error * memory.last_error < 0)
        damping = _STEADY if self.rule == "steady" else jnp.sqrt(1 + crossings)
        kernel, log_scale = with_scale(target, kernel, memory.log_scale + error / (self.rate * damping))
        return kernel, next_memory(memory, accept_prob, error, crossings, log_scale)

    def freeze(self, target: Target, kernel: Kernel, memory: Memory) -> tuple[Kernel, AcceptanceReport]:
        """The kernel to draw with, and what was done."""
        assert self.rate is not None
        if self.rule == "robust":
            kernel, _ = with_scale(target, kernel, memory.mean_log_scale)
        name, _, knob = scale_of(target, kernel)
        rate = round(float(self.rate), 6)  # a float32 says 0.574 with noise in its ninth digit
        reached, steps = float(memory.mean_rate), int(memory.steps)
        return kernel, AcceptanceReport(name, float(knob.value), rate, reached, steps, self.rule)


# What every rule that tunes to a rate does.


def scale_of(target: Target, kernel: Kernel) -> tuple[str, Float[Array, ""], Knob]:
    """The name of the knob that is tuned to a rate, its value on the logarithmic scale, and the knob."""
    found = rated_knob(kernel, target)
    assert found is not None
    name, knob = found
    return name, jnp.asarray(knob.to_scale(numpy_for(knob.value).asarray(knob.value)), jnp.float32), knob


def with_scale(
    target: Target, kernel: Kernel, log_scale: Float[Array | np.ndarray, ""]
) -> tuple[Kernel, Float[Array, ""]]:
    """The kernel with another scale, clipped to its limits, and the clipped logarithm."""
    name, _, knob = scale_of(target, kernel)
    xp = numpy_for(log_scale, knob.low, knob.high)
    value = xp.clip(knob.from_scale(xp.asarray(log_scale)), knob.low, knob.high)
    scale = jnp.asarray(knob.to_scale(xp.asarray(value, jnp.float32)), jnp.float32)
    return kernel.with_knobs(**{name: jnp.asarray(value, jnp.float32)}), scale


def next_memory(
    memory: Memory,
    accept_prob: Float[Array, ""],
    error: Float[Array, ""],
    crossings: Float[Array, ""],
    log_scale: Float[Array, ""],
) -> Memory:
    """The memory after one more step; its means weigh later steps more."""
    steps = memory.steps + 1
    share = (1 + _AVERAGING) / (steps + _AVERAGING)
    mean_log_scale = memory.mean_log_scale + share * (log_scale - memory.mean_log_scale)
    mean_rate = memory.mean_rate + share * (accept_prob - memory.mean_rate)
    return Memory(steps, crossings, error, log_scale, mean_log_scale, mean_rate)
