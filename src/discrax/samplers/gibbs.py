"""Gibbs sampling: sites are redrawn from their exact conditionals, so nothing is ever rejected.

With r_c = log pi(x with x_i = c) - log pi(x), the conditional of site i is softmax_c(r_c); for two levels the site
flips with probability sigmoid(r). Four scans:

- `random`: one uniformly chosen free site a step;
- `systematic`: one free site a step, in order;
- `chromatic`: all sites in a step, one colour after another. Sites of a colour do not interact, so they are redrawn
  together, and log pi changes by the sum of their log-ratios;
- `layers`: all hidden units given the sites, then all sites given the hidden units (of a Boltzmann machine whose
  hidden units are summed out).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, UInt32

from discrax.core import random
from discrax.core.checks import describe
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.levels import at_level, bar_missing, draw_levels
from discrax.core.space import Space
from discrax.core.statistics import compensated_add
from discrax.core.target import (
    Coloured,
    ExactRatios,
    Layered,
    Target,
    Tempered,
    conditional_ratios,
    effective_ratios,
    evaluate,
    log_prob,
    offered,
    temper,
)
from discrax.core.xla import materialised
from discrax.samplers.balancing import unknown_name

_UNROLLED = 16  # colours; of more, as on a dense matrix, the program would only grow


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
    sites_changed: ClassVar[int | str | None] = 1
    evaluates_levels: ClassVar[bool] = True

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return _start(target, x)

    def queries(self, target: Target) -> float:
        return target.space.num_levels

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

    colours: Int[Array, " n"] | None = None  # of the target it was prepared for
    num_colours: int = eqx.field(static=True, default=0)
    needs: ClassVar[tuple[type[Target], ...]] = (Coloured, ExactRatios)

    def prepare(self, target: Target, *, tuning: bool = False, draws: Any = None) -> tuple["ChromaticGibbs", None]:
        """With the colours of the target's graph."""
        colouring = offered(target, Coloured)
        assert colouring is not None
        try:
            colours = np.asarray(colouring.colours(), np.int32).reshape(-1)
        except jax.errors.TracerArrayConversionError:
            raise ValueError(
                "The colours of a graph must be known before a program is compiled, but the kernel was given a target "
                "inside of one; pass kernel.prepare(target)[0] instead of the kernel."
            ) from None
        return ChromaticGibbs(jnp.asarray(colours), int(colours.max()) + 1), None

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return _start(target, x)

    def queries(self, target: Target) -> float:
        return target.space.num_levels * target.space.num_sites

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, ready = target.space, self if self.colours is not None else self.prepare(target)[0]
        bits = random.words(key, space.num_sites)  # a site is redrawn once, so one word each lasts the sweep
        position, error = state.cache

        def redraw_colour(colour, carry):
            x, value, error, is_invalid = carry
            raw = evaluate(target, x).ratios
            tempered = effective_ratios(target, x, raw)
            flat = x.reshape(-1)
            new, changes, invalid = _redraw(bits, space, flat, raw.reshape(tempered.shape), tempered)
            is_turn = ready.colours == colour
            x = jnp.where(is_turn, new, flat).reshape(space.shape)
            value, error = compensated_add(value, error, jnp.sum(jnp.where(is_turn, changes, 0)))
            return x, value, error, is_invalid | jnp.any(is_turn & invalid)

        carry = (state.x, state.log_prob, error, jnp.zeros((), bool))
        if ready.num_colours > _UNROLLED:
            carry = jax.lax.fori_loop(0, ready.num_colours, redraw_colour, carry)
        else:
            for colour in range(ready.num_colours):
                carry = redraw_colour(colour, carry)
        x, value, error, is_invalid = carry
        after = State(x, value, (position, error))
        return after, scalar_info(1, True, space.distance(state.x, x), ready.num_colours, is_invalid)


class LayerGibbs(Kernel):
    """Redraws the hidden units, then all sites."""

    needs: ClassVar[tuple[type[Target], ...]] = (Layered,)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        layered = self._layered(target)
        return State(x, log_prob(target, x), layered.hidden_logits(target.space.embed(x)))

    def queries(self, target: Target) -> float:
        return target.space.num_levels

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, layered, hidden = target.space, self._layered(target), state.cache
        bits = random.words(key, hidden.size + space.num_sites)
        h = random.to_uniform(bits[: hidden.size]) < jax.nn.sigmoid(hidden)
        logits = layered.site_logits(h.astype(hidden.dtype)).reshape(space.num_sites, -1)
        if space.has_two_levels:
            new = random.to_uniform(bits[hidden.size :]) < jax.nn.sigmoid(logits[:, 0])
        else:
            new = draw_levels(bits[hidden.size :], bar_missing(logits, space.levels_at()))
        x = materialised(new.astype(space.dtype).reshape(space.shape))
        if space.frozen is not None:
            x = jnp.where(space.frozen.mask, state.x, x)
        after = State(x, log_prob(target, x), layered.hidden_logits(space.embed(x)))
        return after, scalar_info(1, True, space.distance(state.x, x), 1, False)

    def _layered(self, target: Target) -> Layered:
        if isinstance(target, Tempered):
            raise ValueError(
                "Gibbs sampling by layers takes no temperature: given its hidden units a tempered machine's sites are "
                "not independent; use another sampler, such as 'pas'."
            )
        assert isinstance(target, Layered)
        return target


SCANS = ("random", "systematic", "chromatic", "layers")


def gibbs(scan: str = "random") -> Kernel:
    """Gibbs sampling; `scan` is "random", "systematic", "chromatic" or "layers"."""
    if not isinstance(scan, str):
        raise TypeError(f"scan must be a name ({', '.join(SCANS)}), but got {describe(scan)}.")
    if scan not in SCANS:
        raise unknown_name("scan", scan, SCANS)
    if scan == "layers":
        return LayerGibbs()
    return ChromaticGibbs() if scan == "chromatic" else Gibbs(scan)
