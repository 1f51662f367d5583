"""What is accumulated on the device instead of stored."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

AnyArray = Array | np.ndarray  # on the device while they grow, on the host in a result


def compensated_add(
    total: Float[Array, ""], error: Float[Array, ""], term: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Kahan's sum: a million small changes added to a float32 total do not drift. Returns the new (total, error)."""
    corrected = term - error
    new_total = total + corrected
    return new_total, (new_total - total) - corrected


class Moments(NamedTuple):
    """Weighted running mean and variance of an array (West, 1979): memory does not grow with the draws."""

    weight: Float[AnyArray, "..."]
    mean: Float[AnyArray, "..."]
    squares: Float[AnyArray, "..."]  # weighted sum of squared deviations from the mean

    @property
    def variance(self) -> Float[AnyArray, "..."]:
        weight = self.weight.reshape(self.weight.shape + (1,) * (self.squares.ndim - self.weight.ndim))
        return self.squares / weight


def no_moments(like: Float[Array, "..."]) -> Moments:
    zeros = jnp.zeros(like.shape, jnp.result_type(float))
    return Moments(jnp.zeros((), jnp.result_type(float)), zeros, zeros)


def add_to_moments(moments: Moments, value: Float[Array, "..."], weight: Float[Array, ""]) -> Moments:
    total = moments.weight + weight
    deviation = value - moments.mean
    # A draw of weight 0 at the very start must not divide 0 by 0.
    mean = moments.mean + deviation * (weight / jnp.maximum(total, jnp.finfo(total.dtype).tiny))
    return Moments(total, mean, moments.squares + weight * deviation * (value - mean))
