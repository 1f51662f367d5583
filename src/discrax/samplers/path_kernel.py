"""What the samplers that change about `path_length` sites a step have in common: their scale and their capacity."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core.checks import number
from discrax.core.kernel import Kernel, Knob, replaced
from discrax.core.target import Target
from discrax.samplers.selection import capacity_for, longest


class PathKernel(Kernel):
    """A kernel whose scale is the number of sites that a step changes."""

    path_length: eqx.AbstractVar[Float[Array, ""]]
    capacity: eqx.AbstractVar[int]
    target_rate: eqx.AbstractClassVar[float]
    sites_changed: ClassVar[int | str | None] = "path_length"
    exponent: ClassVar[float] = 2 / 3  # the most efficient path length grows like n^exponent

    def knobs(self, target: Target) -> dict[str, Knob]:
        most = longest(self.capacity, target.space.num_sites)
        return {"path_length": Knob(self.path_length, 1.0, most, rate=self.target_rate)}

    def prepare(self, target: Target, *, tuning: bool, draws: Any = None) -> tuple["PathKernel", None]:
        """With the capacity that suits its present length, and with `tuning` room to grow."""
        n, length = target.space.num_sites, float(self.path_length)
        # Warm-up starts with room for about the most efficient length and grows by factors of four where that is too
        # little.
        least = 2 * int(np.ceil(n**self.exponent)) if tuning else 1
        if tuning and self.capacity >= min(n, least) and longest(self.capacity, n) >= min(n, 1.25 * length):
            return self, None
        capacity = capacity_for(length, room=4 if tuning else 1.25, least=least)
        return replaced(self, capacity=min(capacity, n)), None


def initial_length(path_length: float) -> tuple[Float[Array, ""], int]:
    """The fields `path_length` and `capacity` of a new kernel."""
    path_length = number("path_length", path_length, least=1)
    return jnp.asarray(path_length, jnp.float32), capacity_for(float(path_length))
