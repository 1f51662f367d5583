"""Samplers whose scale is set, not tuned: after a burn-in, or with a Hessian that comes from data."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from discrax import samplers
from discrax.bench.experiments.training import image_set
from discrax.core.kernel import Kernel
from discrax.core.target import Target


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
