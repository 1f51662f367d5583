"""Samplers whose scale is set, not tuned: after a burn-in, or with a Hessian from data; a walk of each site alone."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax import samplers
from discrax.bench.experiments.training import image_set
from discrax.core import random
from discrax.core.kernel import Info, Kernel, Knob, State, scalar_info
from discrax.core.metropolis import decide, select
from discrax.core.target import Target, log_prob, temper


class SetKnobs(eqx.Module):
    """An adapter that tunes nothing: after the burn-in that finds the Hessian, its knobs get these values."""

    values: tuple[tuple[str, float], ...] = eqx.field(static=True)

    def __init__(self, **values: float):
        self.values = tuple(values.items())

    def plan(self, target: Target, kernel: Any, num_steps: int) -> "SetKnobs":
        """Itself, once the kernel is known to have these knobs."""
        unknown = [name for name, _ in self.values if name not in kernel.knobs(target)]
        if unknown:
            raise ValueError(f"{type(kernel).__name__} has no knobs {', '.join(unknown)}.")
        return self

    def init(self, target: Target, kernel: Any) -> Any:
        """No memory."""
        return jnp.zeros(())

    def update(self, target: Target, kernel: Any, memory: Any, states: Any, info: Any) -> tuple[Any, Any]:
        """The kernel with the values set."""
        return self._set(kernel), memory

    def freeze(self, target: Target, kernel: Any, memory: Any) -> tuple[Any, Any]:
        """The kernel with the values set, and what they are."""
        return self._set(kernel), f"set {', '.join(f'{name} = {value}' for name, value in self.values)}"

    def _set(self, kernel: Any) -> Any:
        return kernel.with_knobs(**{name: jnp.asarray(value, jnp.float32) for name, value in self.values})


def ab_of_data(data: str, sigma: float, alpha: float) -> Kernel:
    """The any-scale balanced sampler with W_ii = -1 / (1 + variance of pixel i in the data)."""
    p = np.asarray(image_set(data).mean).reshape(-1)
    return samplers.ab_diagonal(sigma, alpha, -1 / (1 + p * (1 - p)), ratios="gradient")


class EachAlone(Kernel):
    """Random walk Metropolis on two levels: every site by itself changes with probability R / n, R = `flips`.

    The proposal is symmetric: log A = log pi(y) - log pi(x). `samplers.rwm` changes R sites instead.
    """

    flips: Float[Array, ""]
    sites_changed: ClassVar[int | str | None] = "flips"

    def __init__(self, flips: float = 1.0):
        self.flips = jnp.asarray(flips, jnp.float32)

    def knobs(self, target: Target) -> dict[str, Knob]:
        return {"flips": Knob(self.flips, 1.0, max(1.0, target.space.num_sites / 2), rate=0.234)}

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        n, (for_sites, for_decision) = target.space.num_sites, random.split(key, 2)
        is_moved = random.uniform(for_sites, n).reshape(state.x.shape) < self.flips / n
        y = jnp.where(is_moved, 1 - state.x, state.x)
        there = State(y, log_prob(target, y), ())
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob))
        jump = jnp.where(decision.is_accepted, target.space.distance(state.x, y), 0)
        info = scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
        return select(decision.is_accepted, there, state), info
