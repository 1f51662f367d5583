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


class RunningMoments(NamedTuple):
    """Weighted running mean and variance of an array (West, 1979): memory does not grow with the draws.

    Weights come as logarithms, and may differ by more powers of ten than a float has: they are summed in units of the
    largest so far.
    """

    scaled_weight: Float[AnyArray, "..."]  # the sum of all weights over the largest
    mean: Float[AnyArray, "..."]
    scaled_squares: Float[AnyArray, "..."]  # weighted sum of squared deviations from the mean, over the largest weight
    log_largest: Float[AnyArray, "..."]

    @property
    def variance(self) -> Float[AnyArray, "..."]:
        """Weighted, with all draws counted: no correction for small samples."""
        weight = self.scaled_weight.reshape(
            self.scaled_weight.shape + (1,) * (self.scaled_squares.ndim - self.scaled_weight.ndim)
        )
        return self.scaled_squares / weight

    @property
    def weight(self) -> Float[AnyArray, "..."]:
        """Of all draws together."""
        return np.asarray(np.exp(self.log_weight))

    @property
    def log_weight(self) -> Float[AnyArray, "..."]:
        """The logarithm of `weight`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.asarray(self.scaled_weight, np.float64)) + np.asarray(self.log_largest))


def no_moments(like: Float[Array, "..."]) -> RunningMoments:
    """Before the first draw, of arrays shaped like this one."""
    dtype = jnp.result_type(float)
    zeros = jnp.zeros(like.shape, dtype)
    return RunningMoments(jnp.zeros((), dtype), zeros, zeros, jnp.full((), -jnp.inf, dtype))


def add_to_moments(moments: RunningMoments, value: Float[Array, "..."], log_weight: Float[Array, ""]) -> RunningMoments:
    """The moments with one more draw."""
    largest = jnp.maximum(moments.log_largest, log_weight)
    shift = jnp.where(jnp.isneginf(largest), 0, largest)  # until a draw has a weight
    smaller, weight = jnp.exp(moments.log_largest - shift), jnp.exp(log_weight - shift)
    total = moments.scaled_weight * smaller + weight
    deviation = value - moments.mean
    # A draw of weight 0 at the very start must not divide 0 by 0.
    mean = moments.mean + deviation * (weight / jnp.maximum(total, jnp.finfo(total.dtype).tiny))
    squares = moments.scaled_squares * smaller + weight * deviation * (value - mean)
    return RunningMoments(total, mean, squares, largest)
