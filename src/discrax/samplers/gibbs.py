"""Gibbs sampling: sites are redrawn from their exact conditionals, so nothing is ever rejected.

With r_c = log pi(x with x_i = c) - log pi(x), the conditional of site i is softmax_c(r_c); for two levels the site
flips with probability sigmoid(r). Three scans:

- `random`: one uniformly chosen free site a step;
- `systematic`: one free site a step, in order;
- `chromatic`: all sites in a step, one colour after another. Sites of a colour do not interact, so they are redrawn
  together, and log pi changes by the sum of their log-ratios.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray, UInt32

from discrax.core import random
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.levels import at_level, draw_levels
from discrax.core.space import Space
from discrax.core.statistics import compensated_add
from discrax.core.target import (
    Coloured,
    ExactRatios,
    Target,
    conditional_ratios,
    effective_ratios,
    evaluate,
    log_prob,
    offered,
    temper,
)
from discrax.core.xla import materialised
from discrax.samplers.balancing import unknown_name


def _start(target: Target, x: Integer[Array, "*shape"]) -> State:
    value = log_prob(target, x)
    # The cache: which free site is next, and the rounding error of the summed log_prob.
    return State(x, value, (jnp.zeros((), jnp.int32), jnp.zeros_like(value)))


def _redraw(
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


class Gibbs(Kernel):
    """Redraws one free site a step: a random one, or the next."""

    scan: str = eqx.field(static=True)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return _start(target, x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, (position, error) = target.space, state.cache
        for_site, for_level = random.split(key, 2)
        num_free = jnp.asarray(space.num_free, jnp.int32)
        pick = position if self.scan == "systematic" else random.integers(for_site, 1, num_free)[0]
        site, x = space.free_site(pick), state.x.reshape(-1)
        ratios = conditional_ratios(target, state.x, site)
        word = random.words(for_level, 1)[0]
        new, change, is_invalid = _redraw(word, space, x[site], ratios, temper(target, ratios))
        jump = space.distance(x[site], new)
        value, error = compensated_add(state.log_prob, error, change)
        after = State(x.at[site].set(new).reshape(space.shape), value, ((position + 1) % num_free, error))
        return after, scalar_info(1, True, jump, space.num_levels - 1, is_invalid)


class ChromaticGibbs(Kernel):
    """Redraws all sites in a step, one colour after another."""

    needs: ClassVar[tuple[type[Target], ...]] = (Coloured, ExactRatios)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return _start(target, x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, colouring = target.space, offered(target, Coloured)
        assert colouring is not None
        bits = random.words(key, space.num_sites)  # a site is redrawn once, so one word each lasts the sweep
        x, value, (position, error), is_invalid = state.x, state.log_prob, state.cache, False
        for colour in range(colouring.num_colours):
            raw = evaluate(target, x).ratios
            tempered = effective_ratios(target, x, raw)
            flat = x.reshape(-1)
            new, changes, invalid = _redraw(bits, space, flat, raw.reshape(tempered.shape), tempered)
            is_turn = colouring.colours.reshape(-1) == colour
            x = jnp.where(is_turn, new, flat).reshape(space.shape)
            value, error = compensated_add(value, error, jnp.sum(jnp.where(is_turn, changes, 0)))
            is_invalid |= jnp.any(is_turn & invalid)
        after = State(x, value, (position, error))
        return after, scalar_info(1, True, space.distance(state.x, x), colouring.num_colours, is_invalid)


SCANS = ("random", "systematic", "chromatic")


def gibbs(scan: str = "random") -> Kernel:
    """Gibbs sampling; `scan` is "random", "systematic" or "chromatic"."""
    if scan not in SCANS:
        raise unknown_name("scan", scan, SCANS)
    return ChromaticGibbs() if scan == "chromatic" else Gibbs(scan)
