"""Arithmetic over the axis of levels, which is the last one; where `axis` is 0, the first.

On a CPU, XLA reduces a short last axis element by element. Written as a chain of elementwise operations on its slices
the same sum is vectorised over the sites and fused with what follows. Much arithmetic is faster with the levels first.
"""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, UInt32

from discrax.core import random

_SHORT = 16


def _slices(values: Array, axis: int = -1) -> list[Array]:
    return [values[level] if axis == 0 else values[..., level] for level in range(values.shape[axis])]


def sum_levels(values: Float[Array, "..."], axis: int = -1) -> Float[Array, "*sites"]:
    """The sum over the levels."""
    if values.shape[axis] > _SHORT:
        return jnp.sum(values, axis=axis)
    return functools.reduce(jnp.add, _slices(values, axis))


def max_levels(values: Float[Array, "..."], axis: int = -1) -> Float[Array, "*sites"]:
    """The largest over the levels."""
    if values.shape[axis] > _SHORT:
        return jnp.max(values, axis=axis)
    return functools.reduce(jnp.maximum, _slices(values, axis))


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
    return draw_weighted_levels(bits, jnp.exp(logits - max_levels(logits)[..., None]))


def draw_weighted_levels(
    bits: UInt32[Array, "*sites"], weights: Float[Array, "..."], axis: int = -1
) -> Int[Array, "*sites"]:
    """One level per site with probability proportional to its weight."""
    uniform = random.to_uniform(bits).astype(weights.dtype)
    # The first level whose cumulative weight exceeds a uniform share of the total: it has positive weight.
    if weights.shape[axis] > _SHORT:
        cumulative = jnp.moveaxis(jnp.cumsum(weights, axis=axis), axis, -1)
        share = uniform[..., None] * cumulative[..., -1:]
        return jnp.sum(cumulative[..., :-1] <= share, axis=-1, dtype=jnp.int32)
    share, cumulative, level = uniform * sum_levels(weights, axis), 0, jnp.zeros(bits.shape, jnp.int32)
    for weight in _slices(weights, axis)[:-1]:
        cumulative = cumulative + weight
        level += cumulative <= share
    return level
