"""Arithmetic over the last axis, the levels of a site.

On a CPU, XLA reduces a short last axis element by element. Written as a chain of elementwise operations on its slices
the same sum is vectorised over the sites and fused with what follows.
"""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, UInt32

from discrax.core import random

_SHORT = 16


def _slices(values: Array) -> list[Array]:
    return [values[..., level] for level in range(values.shape[-1])]


def sum_levels(values: Float[Array, "*sites levels"]) -> Float[Array, "*sites"]:
    """The sum over the levels."""
    if values.shape[-1] > _SHORT:
        return jnp.sum(values, axis=-1)
    return functools.reduce(jnp.add, _slices(values))


def max_levels(values: Float[Array, "*sites levels"]) -> Float[Array, "*sites"]:
    """The largest over the levels."""
    if values.shape[-1] > _SHORT:
        return jnp.max(values, axis=-1)
    return functools.reduce(jnp.maximum, _slices(values))


def log_sum_exp_levels(values: Float[Array, "*sites levels"]) -> Float[Array, "*sites"]:
    """log sum exp; -inf where all are -inf."""
    largest = max_levels(values)
    shift = jnp.where(jnp.isneginf(largest), 0, largest)
    return jnp.log(sum_levels(jnp.exp(values - shift[..., None]))) + shift


def is_level(x: Integer[Array, "*sites"], num_levels: int) -> Bool[Array, "*sites levels"]:
    """One-hot mask of the current level, on a new last axis."""
    return x[..., None] == jnp.arange(num_levels, dtype=x.dtype).reshape((1,) * x.ndim + (num_levels,))


def at_level(values: Float[Array, "*sites levels"], x: Integer[Array, "*sites"]) -> Float[Array, "*sites"]:
    """`values[..., x]`: the entry of the last axis at the current level."""
    # A masked sum, not a gather: it fuses, and -inf at other levels cannot leak into it.
    return jnp.sum(jnp.where(is_level(x, values.shape[-1]), values, 0), axis=-1)


def bar_missing(values: Float[Array, "..."], num_levels: int | Int[Array, "*sites"]) -> Float[Array, "..."]:
    """-inf at the levels (the last axis) that a site does not have; where all have as many, an int, nothing is done."""
    if isinstance(num_levels, int):
        return values
    levels = jnp.arange(values.shape[-1], dtype=num_levels.dtype).reshape((1,) * num_levels.ndim + (-1,))
    return jnp.where(levels < num_levels[..., None], values, -jnp.inf)


def draw_levels(bits: UInt32[Array, "*sites"], logits: Float[Array, "*sites levels"]) -> Int[Array, "*sites"]:
    """One level per site with probability proportional to exp(logits), by inversion: one random word a site."""
    weights = jnp.exp(logits - max_levels(logits)[..., None])
    uniform = random.to_uniform(bits).astype(weights.dtype)
    # The first level whose cumulative weight exceeds a uniform share of the total: it has positive weight.
    if weights.shape[-1] > _SHORT:
        cumulative = jnp.cumsum(weights, axis=-1)
        share = uniform[..., None] * cumulative[..., -1:]
        return jnp.sum(cumulative[..., :-1] <= share, axis=-1, dtype=jnp.int32)
    share, cumulative, level = uniform * sum_levels(weights), 0, jnp.zeros(bits.shape, jnp.int32)
    for weight in _slices(weights)[:-1]:
        cumulative = cumulative + weight
        level += cumulative <= share
    return level
