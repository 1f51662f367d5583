"""Gibbs sampling by elimination: blocks of sites are drawn together from their joint conditional, exactly.

For a target that is a product of tables. The sites of a block are eliminated one after another: with psi the tables
that hold site i, and S the other sites in them,

    m(x_S) = sum over x_i of prod psi(x_i, x_S)    takes their place;

then they are drawn in the opposite order, each from psi(x_i, x_S) given what S has become. Nothing is approximated, and
zeros in the tables do no harm. Where one block holds all sites the draws are independent of each other, and the tables,
which are those of every step, are made once.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray, UInt32

from discrax.core import random
from discrax.core.checks import whole
from discrax.core.kernel import Arranged, Info, Kernel, State, replaced, scalar_info
from discrax.core.levels import draw_weighted_levels, log_sum_exp_levels, max_levels
from discrax.core.target import Factored, Target, log_prob, offered, temper
from discrax.core.xla import materialised
from discrax.samplers.elimination_plan import Plan, plan_blocks
from discrax.samplers.elimination_tables import FIRST_TABLE, BlockTables, lay_out

_MOST_AT_ONCE = 1 << 18  # entries of a table, where it is made once for all chains
_MOST_IN_BLOCK = 1 << 8  # where each chain has one of its own


class EliminationGibbs(Kernel):
    """Redraws all free sites in a step, one block after another.

    `most_at_once` bounds the entries of a table where one block has all sites, `most_in_block` those of the tables
    that each chain has for itself.
    """

    most_at_once: int = eqx.field(static=True)
    most_in_block: int = eqx.field(static=True)
    blocks: tuple[BlockTables, ...] | None  # of the target it was prepared for
    needs: ClassVar[tuple[type[Target], ...]] = (Factored,)

    def __init__(self, most_at_once: int = _MOST_AT_ONCE, most_in_block: int = _MOST_IN_BLOCK):
        self.most_at_once = whole("most_at_once", most_at_once, least=1)
        self.most_in_block = whole("most_in_block", most_in_block, least=1)
        self.blocks = None

    def prepare(self, target: Target, *, tuning: bool = False, draws: Any = None) -> tuple["Kernel", str | None]:
        """With the blocks of the target's tables, and a sentence where they may not connect its states."""
        factored = offered(target, Factored)
        assert factored is not None
        try:
            plan = self.plan_for(factored)
            blocks = lay_out(factored, plan)
        except jax.errors.TracerArrayConversionError:
            raise ValueError(
                "Which entries of tables are zero must be known before a program is compiled, but the kernel was given "
                "a target inside of one; pass kernel.prepare(target)[0] instead of the kernel."
            ) from None
        return replaced(self, blocks=blocks), plan.note

    def plan_for(self, target: Factored) -> Plan:
        """The blocks of a target."""
        return plan_blocks(target, self.most_at_once, self.most_in_block)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def queries(self, target: Target, evals: float) -> float:
        return target.space.num_levels * target.space.num_sites  # those of Gibbs site by site

    def arrange(self, target: Target) -> Arranged | None:
        ready = self if self.blocks is not None else self.prepare(target)[0]
        assert isinstance(ready, EliminationGibbs)
        assert ready.blocks is not None
        return BlockSweep(target, ready.blocks)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        sweep = self.arrange(target)
        assert sweep is not None
        after, info = sweep.step(key, sweep.enter(state))
        return sweep.leave(after), info


class BlockSweep(Arranged):
    """Sweeps over the blocks; log_prob waits for `leave`."""

    target: Target
    blocks: tuple[BlockTables, ...]
    fixed: tuple[Float[Array, "rows levels"] | None, ...]  # the weights of blocks whose law no other free site decides

    def __init__(self, target: Target, blocks: tuple[BlockTables, ...]):
        self.target, self.blocks = target, blocks
        space = target.space
        known = jnp.zeros(space.shape, space.dtype) if space.frozen is None else space.frozen.codes
        self.fixed = tuple(eliminate(target, each, known.reshape(-1)) if each.is_fixed else None for each in blocks)

    def enter(self, state: State) -> State:
        return state

    def leave(self, state: State) -> State:
        return State(state.x, log_prob(self.target, state.x), state.cache)

    def step(self, key: PRNGKeyArray, state: State) -> tuple[State, Info]:
        space, x = self.target.space, state.x.reshape(-1)
        words, used = random.words(key, sum(block.num_sites for block in self.blocks)), 0
        for block, fixed in zip(self.blocks, self.fixed, strict=True):
            weights = eliminate(self.target, block, x) if fixed is None else fixed
            x = draw_block(words[used : used + block.num_sites], block, weights, x)
            used += block.num_sites
        after = state._replace(x=x.reshape(space.shape))
        return after, scalar_info(1, True, space.distance(state.x, after.x), len(self.blocks), False)


def eliminate(target: Target, block: BlockTables, codes: Integer[Array, " n"]) -> Float[Array, "rows levels"]:
    """The weights of each site's levels, a row for each setting of its neighbours; other sites are as in `codes`."""
    factored = offered(target, Factored)
    assert factored is not None
    _, entries = factored.tables()
    codes = codes.astype(jnp.int32)
    shifts = jnp.sum(block.outside_strides * codes[block.outside], axis=1)
    buffer = jnp.concatenate([jnp.array([0, -jnp.inf], entries.dtype), temper(target, entries)])
    weights = []
    for layer in block.layers:
        places = layer.entries + jnp.where(layer.entries < FIRST_TABLE, 0, shifts[layer.shifts][:, None])
        joint = jnp.sum(buffer.at[places].get(mode="promise_in_bounds"), axis=-1)
        largest = max_levels(joint)[:, None]
        weights.append(jnp.exp(joint - jnp.where(jnp.isneginf(largest), 0, largest)))
        buffer = jnp.concatenate([buffer, log_sum_exp_levels(joint)])
    return jnp.concatenate(weights)


def draw_block(
    words: UInt32[Array, " sites"], block: BlockTables, weights: Float[Array, "rows levels"], x: Integer[Array, " n"]
) -> Integer[Array, " n"]:
    """The sites of a block, those that were eliminated last first."""
    used = 0
    for layer in reversed(block.layers):
        around = x.astype(jnp.int32)[layer.scopes]
        rows = layer.rows + jnp.sum(layer.strides * around, axis=1)
        some = words[used : used + len(layer.sites)]
        used += len(layer.sites)
        new = draw_weighted_levels(some, weights.at[rows].get(mode="promise_in_bounds"))
        x = x.at[layer.sites].set(materialised(new.astype(x.dtype)), unique_indices=True)
    return x
