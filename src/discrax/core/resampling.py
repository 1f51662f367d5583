"""Systematic resampling: a population of equal weights from one of unequal ones."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def systematic(
    uniforms: Float[Array, " populations"], log_weights: Float[Array, "populations particles"]
) -> Int[Array, "populations particles"]:
    """Of which particle each is a copy, in increasing order.

    A particle has w / mean(w) copies on average: that number, rounded up or down. `uniforms` has one number in [0, 1)
    for each population.
    """
    count = log_weights.shape[1]
    ends = jnp.cumsum(jnp.exp(log_weights - jnp.max(log_weights, axis=1, keepdims=True)), axis=1)
    ends = ends / ends[:, -1:] * count
    marks = jnp.arange(count)[None] + uniforms[:, None]
    found = jax.vmap(lambda ends, marks: jnp.searchsorted(ends, marks))(ends, marks)
    return jnp.minimum(found, count - 1).astype(jnp.int32)
