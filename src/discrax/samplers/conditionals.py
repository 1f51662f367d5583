"""Drawing sites from their exact conditionals: what the scans of Gibbs sampling share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, UInt32

from discrax.core import random
from discrax.core.kernel import State
from discrax.core.levels import at_level, draw_levels
from discrax.core.space import Space
from discrax.core.target import Target, log_prob
from discrax.core.xla import materialised


def start_scan(target: Target, x: Integer[Array, "*shape"]) -> State:
    """The first state of a scan of the sites."""
    value = log_prob(target, x)
    # The cache: which free site is next, and the rounding error of the summed log_prob.
    return State(x, value, (jnp.zeros((), jnp.int32), jnp.zeros_like(value)))


def redraw(
    bits: UInt32[Array, "*sites"],
    space: Space,
    old: Integer[Array, "*sites"],
    ratios: Float[Array, "..."],
    tempered: Float[Array, "..."],
) -> tuple[Integer[Array, "*sites"], Float[Array, "*sites"], Bool[Array, "*sites"]]:
    """New codes from the conditionals, the untempered change of log pi of each, and where a conditional was invalid."""
    is_invalid = jnp.isnan(tempered) | jnp.isposinf(tempered)
    tempered = jnp.where(is_invalid, -jnp.inf, tempered)  # a level without a probability is not drawn
    if space.has_two_levels:
        flips = random.to_uniform(bits) < jax.nn.sigmoid(tempered)
        new = materialised(jnp.where(flips, 1 - old, old))
        return new, jnp.where(new == old, 0, ratios), is_invalid
    new = materialised(draw_levels(bits, tempered).astype(space.dtype))
    return new, at_level(ratios, new), jnp.any(is_invalid, axis=-1)
