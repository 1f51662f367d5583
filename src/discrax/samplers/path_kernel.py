"""What the samplers that change about `path_length` sites a step have in common: their scale and their capacity."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core.checks import number
from discrax.core.kernel import Sized, Tunable, replaced
from discrax.core.target import Target
from discrax.samplers.selection import capacity_for, longest


class PathKernel(Tunable, Sized):
    path_length: eqx.AbstractVar[Float[Array, ""]]
    capacity: eqx.AbstractVar[int]  # static size of the array of changed sites
    parameter: ClassVar[str] = "path_length"
    sites_changed: ClassVar[int | str | None] = "path_length"
    exponent: ClassVar[float] = 2 / 3  # the most efficient path length grows like n^exponent

    def log_scale(self, target: Target) -> Float[Array, ""]:
        return jnp.log(self.path_length)

    def with_log_scale(self, target: Target, value: Float[Array, ""]) -> "PathKernel":
        most = longest(self.capacity, target.space.num_sites)
        length = jnp.clip(jnp.exp(value), 1, most).astype(jnp.float32)
        return replaced(self, path_length=length)

    def sized(self, target: Target, *, room: bool) -> "PathKernel":
        n, length = target.space.num_sites, float(self.path_length)
        if room and longest(self.capacity, n) >= min(n, 2 * length) and self.capacity > 1:
            return self
        # Warm-up starts with room for about the most efficient length and grows by factors of four where that is too
        # little.
        least = 2 * int(np.ceil(n**self.exponent)) if room else 1
        capacity = capacity_for(length, room=4 if room else 1.25, least=least)
        return replaced(self, capacity=min(capacity, n))


def initial_length(path_length: float) -> tuple[Float[Array, ""], int]:
    """The fields `path_length` and `capacity` of a new kernel."""
    path_length = number("path_length", path_length, least=1)
    return jnp.asarray(path_length, jnp.float32), capacity_for(float(path_length))
