"""Drawing sites from their exact conditionals: what the scans of Gibbs sampling share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, UInt32

from discrax.core import random
from discrax.core.kernel import State
from discrax.core.levels import at_level, bar_missing, draw_levels
from discrax.core.space import Space
from discrax.core.target import LocalChanges, Target, log_prob, offered
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


def conditional_ratios(
    target: Target, x: Integer[Array, "*shape"], site: Int[Array, ""], value: Float[Array, ""] | None = None
) -> Float[Array, "..."]:
    """Untempered exact log-ratios of one site: a scalar for two levels, else `(levels,)`.

    Without local changes the target is evaluated at the other levels, and at x where log pi(x), `value`, is not known.
    """
    local, space = offered(target, LocalChanges), target.space
    if local is not None:
        return bar_missing(local.ratios_at(x, site), space.levels_at(site))
    here, count = x.reshape(-1)[site], space.num_levels
    others = ((here + jnp.arange(1, count)) % count).astype(space.dtype)
    values = jax.vmap(lambda c: log_prob(target, x.reshape(-1).at[site].set(c).reshape(space.shape)))(others)
    ratios = values - (log_prob(target, x) if value is None else value)
    if space.has_two_levels:
        return ratios[0]
    return bar_missing(jnp.zeros(count, ratios.dtype).at[others].set(ratios), space.levels_at(site))
