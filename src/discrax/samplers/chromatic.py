"""Gibbs sampling by colours: all sites in a step, one colour after another.

Sites of a colour do not interact given the others, so they are redrawn together, each from its conditional:
softmax_c(r_c) with r_c = log pi(x with x_i = c) - log pi(x).

Where the target can be asked for the log-ratios of some sites in an order of ours (`Rearrangeable`), a run keeps its
states in the order of the colours (`Sweep`): a colour is then a slice, and only its own rows are read. The value of
log pi is nobody's business within a sweep; it is computed when a draw is looked at. Elsewhere a colour evaluates all
sites and keeps its own, and log pi changes by the sum of their log-ratios.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Arranged, Info, Kernel, State, scalar_info
from discrax.core.layout import pays_to_arrange
from discrax.core.levels import bar_missing
from discrax.core.space import Space
from discrax.core.statistics import compensated_add
from discrax.core.target import (
    BlockRatios,
    Coloured,
    ExactRatios,
    OrderPlan,
    Rearrangeable,
    Target,
    effective_ratios,
    evaluate,
    log_prob,
    offered,
    temper,
)
from discrax.samplers.conditionals import redraw, start_scan
from discrax.samplers.elimination_plan import single_site_note

_UNROLLED = 16  # colours; of more, as on a dense matrix, the program would only grow
_MOST_BLOCKS = 40  # of rows in a sweep, likewise


class ChromaticGibbs(Kernel):
    """Redraws all sites in a step, one colour after another."""

    colours: Int[Array, " n"] | None = None  # of the target it was prepared for
    plan: OrderPlan | None = None  # of the sites in the order of their colours
    num_colours: int = eqx.field(static=True, default=0)
    needs: ClassVar[tuple[type[Target], ...]] = (Coloured, ExactRatios)

    def prepare(
        self, target: Target, *, tuning: bool = False, draws: Any = None
    ) -> tuple["ChromaticGibbs", str | None]:
        """With the colours of the target's graph, and a sentence where its moves do not connect the states."""
        colouring = offered(target, Coloured)
        assert colouring is not None
        try:
            colours = np.asarray(colouring.colours(), np.int32).reshape(-1)
        except jax.errors.TracerArrayConversionError:
            raise ValueError(
                "The colours of a graph must be known before a program is compiled, but the kernel was given a target "
                "inside of one; pass kernel.prepare(target)[0] instead of the kernel."
            ) from None
        num_colours = int(colours.max()) + 1
        ready = ChromaticGibbs(jnp.asarray(colours), _plan(target, colours, num_colours), num_colours)
        return ready, single_site_note(target)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return start_scan(target, x)

    def queries(self, target: Target, evals: float) -> float:
        return target.space.num_levels * target.space.num_sites  # those of Gibbs site by site

    def arrange(self, target: Target) -> Arranged | None:
        rearrangeable = offered(target, Rearrangeable)
        if self.plan is None or rearrangeable is None:
            return None
        return Sweep(target, self.plan, rearrangeable.blocks(self.plan), self.num_colours)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        ready = self if self.colours is not None else self.prepare(target)[0]
        sweep = ready.arrange(target)
        if sweep is None:
            return ready._step_of_all_sites(key, target, state)
        after, info = sweep.step(key, sweep.enter(state))
        return sweep.leave(after), info

    def _step_of_all_sites(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, (position, error) = target.space, state.cache
        bits = random.words(key, space.num_sites)  # a site is redrawn once, so one word each lasts the sweep

        def redraw_colour(colour, carry):
            x, value, error, is_invalid = carry
            raw = evaluate(target, x).ratios
            tempered = effective_ratios(target, x, raw)
            flat = x.reshape(-1)
            new, changes, invalid = redraw(bits, space, flat, raw.reshape(tempered.shape), tempered)
            is_turn = self.colours == colour
            x = jnp.where(is_turn, new, flat).reshape(space.shape)
            value, error = compensated_add(value, error, jnp.sum(jnp.where(is_turn, changes, 0)))
            return x, value, error, is_invalid | jnp.any(is_turn & invalid)

        carry = (state.x, state.log_prob, error, jnp.zeros((), bool))
        if self.num_colours > _UNROLLED:
            carry = jax.lax.fori_loop(0, self.num_colours, redraw_colour, carry)
        else:
            for colour in range(self.num_colours):
                carry = redraw_colour(colour, carry)
        x, value, error, is_invalid = carry
        after = State(x, value, (position, error))
        return after, scalar_info(1, True, space.distance(state.x, x), self.num_colours, is_invalid)


def _plan(target: Target, colours: Int[np.ndarray, " n"], num_colours: int) -> OrderPlan | None:
    """The order of the colours, where a sweep in it pays.

    Where all numbers of a target are finite, so are its log-ratios, and a sweep need not look for others.
    """
    rearrangeable = offered(target, Rearrangeable)
    if rearrangeable is None or not 1 < num_colours <= _UNROLLED or not pays_to_arrange(target):
        return None
    try:
        numbers = jax.tree.leaves(eqx.filter(target, eqx.is_inexact_array))
        if not all(np.isfinite(each).all() for each in numbers):
            return None
        ends = np.cumsum(np.bincount(colours, minlength=num_colours)).tolist()
        plan = rearrangeable.in_order(np.argsort(colours, kind="stable"), ends)
    except jax.errors.TracerArrayConversionError:  # inside a program
        return None
    return plan if len(plan.spans) <= _MOST_BLOCKS else None


class Sweep(Arranged):
    """Sweeps of states whose sites lie in the order of their colours; log_prob waits for `leave`."""

    target: Target
    plan: OrderPlan
    blocks: BlockRatios
    num_colours: int = eqx.field(static=True)

    def enter(self, state: State) -> State:
        return state._replace(x=state.x.reshape(-1)[self.plan.order])

    def leave(self, state: State) -> State:
        x = state.x[self.plan.places].reshape(self.target.space.shape)
        return State(x, log_prob(self.target, x), state.cache)

    def step(self, key: PRNGKeyArray, state: State) -> tuple[State, Info]:
        space, x = self.target.space, state.x
        bits = random.words(key, space.num_sites)
        for block, (start, stop) in enumerate(self.plan.spans):
            ratios = bar_missing(self.blocks.ratios(x, block), self._levels(space, start, stop))
            if space.frozen is not None:
                barred = space.frozen.mask.reshape(-1)[self.plan.order[start:stop]]
                ratios = jnp.where(barred if space.has_two_levels else barred[:, None], -jnp.inf, ratios)
            old, tempered = x[start:stop], temper(self.target, ratios)
            new, _, _ = redraw(bits[start:stop], space, old, ratios, tempered)
            x = x.at[start:stop].set(new)
        after = state._replace(x=x)
        return after, scalar_info(1, True, space.distance(state.x, x), self.num_colours, False)

    def _levels(self, space: Space, start: int, stop: int) -> int | Int[Array, " k"]:
        return space.levels_at() if space.counts is None else space.levels_at(self.plan.order[start:stop])
