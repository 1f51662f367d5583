"""Drawing levels: one site, or many at once, from unnormalised log-probabilities over the last axis."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from discrax.core import random


def draw_levels(bits: UInt32[Array, "*sites"], logits: Float[Array, "*sites levels"]) -> Int[Array, "*sites"]:
    """One level per site by inversion: one random word a site, however many levels there are."""
    weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
    cumulative = jnp.cumsum(weights, axis=-1)
    level = random.to_uniform(bits).astype(weights.dtype)[..., None] * cumulative[..., -1:]
    # The first level whose cumulative weight exceeds `level`: it has positive weight.
    return jnp.sum(cumulative[..., :-1] <= level, axis=-1, dtype=jnp.int32)
