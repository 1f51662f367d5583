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
from discrax.core.kernel import Arranged, Info, Kernel, State, scalar_info
from discrax.core.levels import draw_weighted_levels, log_sum_exp_levels, max_levels
from discrax.core.target import Factored, Target, log_prob, offered, temper
from discrax.core.xla import materialised
from discrax.samplers.elimination_plan import Block, Plan, plan_blocks

_MOST_AT_ONCE = 1 << 20  # entries of a table, where it is made once for all chains
_MOST_IN_BLOCK = 1 << 8  # where each chain has one of its own


class EliminationGibbs(Kernel):
    """Redraws all free sites in a step, one block after another.

    `most_at_once` bounds the entries of a table where one block has all sites, `most_in_block` those of the tables
    that each chain has for itself.
    """

    most_at_once: int = eqx.field(static=True)
    most_in_block: int = eqx.field(static=True)
    plan: Plan | None = eqx.field(static=True, default=None)
    needs: ClassVar[tuple[type[Target], ...]] = (Factored,)

    def __init__(
        self, most_at_once: int = _MOST_AT_ONCE, most_in_block: int = _MOST_IN_BLOCK, plan: Plan | None = None
    ):
        self.most_at_once = whole("most_at_once", most_at_once, least=1)
        self.most_in_block = whole("most_in_block", most_in_block, least=1)
        self.plan = plan

    def prepare(self, target: Target, *, tuning: bool = False, draws: Any = None) -> tuple["Kernel", str | None]:
        """With the blocks of the target's tables, and a sentence where they may not connect its states."""
        factored = offered(target, Factored)
        assert factored is not None
        try:
            plan = self.plan_for(factored)
        except jax.errors.TracerArrayConversionError:
            raise ValueError(
                "Which entries of tables are zero must be known before a program is compiled, but the kernel was given "
                "a target inside of one; pass kernel.prepare(target)[0] instead of the kernel."
            ) from None
        return EliminationGibbs(self.most_at_once, self.most_in_block, plan), plan.note

    def plan_for(self, target: Factored) -> Plan:
        """The blocks of a target."""
        return plan_blocks(target, self.most_at_once, self.most_in_block)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def queries(self, target: Target, evals: float) -> float:
        return target.space.num_levels * target.space.num_sites  # those of Gibbs site by site

    def arrange(self, target: Target) -> Arranged | None:
        ready = self if self.plan is not None else self.prepare(target)[0]
        assert isinstance(ready, EliminationGibbs)
        assert ready.plan is not None
        return BlockSweep(target, ready.plan)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        sweep = self.arrange(target)
        assert sweep is not None
        after, info = sweep.step(key, sweep.enter(state))
        return sweep.leave(after), info


Weights = tuple[Float[Array, "..."], ...]  # of each elimination, in order: (*scope, levels)


class BlockSweep(Arranged):
    """Sweeps over the blocks; log_prob waits for `leave`."""

    target: Target
    plan: Plan = eqx.field(static=True)
    fixed: tuple[Weights | None, ...]  # of each block whose law no other free site decides

    def __init__(self, target: Target, plan: Plan):
        self.target, self.plan = target, plan
        space = target.space
        known = jnp.zeros(space.shape, space.dtype) if space.frozen is None else space.frozen.codes
        self.fixed = tuple(
            None if block.given else eliminate(target, block, known.reshape(-1)) for block in plan.blocks
        )

    def enter(self, state: State) -> State:
        return state

    def leave(self, state: State) -> State:
        return State(state.x, log_prob(self.target, state.x), state.cache)

    def step(self, key: PRNGKeyArray, state: State) -> tuple[State, Info]:
        space, x = self.target.space, state.x.reshape(-1)
        words = random.words(key, self.plan.num_draws)
        used = 0
        for block, fixed in zip(self.plan.blocks, self.fixed, strict=True):
            weights = eliminate(self.target, block, x) if fixed is None else fixed
            x = draw_block(words[used : used + len(block.steps)], block, weights, x)
            used += len(block.steps)
        after = state._replace(x=x.reshape(space.shape))
        return after, scalar_info(1, True, space.distance(state.x, after.x), len(self.plan.blocks), False)


def eliminate(target: Target, block: Block, codes: Integer[Array, " n"]) -> Weights:
    """For each elimination the weights of the site's levels, given its neighbours; other sites are as in `codes`."""
    factored, inside = offered(target, Factored), {step.site for step in block.steps}
    assert factored is not None
    tables, potentials = factored.factors(), []
    for f in block.factors:
        scope, table = tables[f]
        known = tuple(slice(None) if site in inside else codes[site].astype(jnp.int32) for site in scope)
        potentials.append((tuple(site for site in scope if site in inside), temper(target, table[known])))
    weights = []
    for step in block.steps:
        axes = (*step.scope, step.site)
        joint = sum(_spread(*potentials[number], axes) for number in step.inputs)
        sizes = _sizes([potentials[number] for number in step.inputs])
        joint = jnp.broadcast_to(joint, tuple(sizes[site] for site in axes))
        potentials.append((step.scope, log_sum_exp_levels(joint)))
        largest = max_levels(joint)[..., None]
        weights.append(jnp.exp(joint - jnp.where(jnp.isneginf(largest), 0, largest)))
    return tuple(weights)


def _spread(scope: tuple[int, ...], table: Float[Array, "..."], axes: tuple[int, ...]) -> Float[Array, "..."]:
    """A table with its sites in the order of `axes`, and an axis of length 1 for those that it does not have."""
    order = [scope.index(site) for site in axes if site in scope]
    sizes = [table.shape[scope.index(site)] if site in scope else 1 for site in axes]
    return jnp.transpose(table, order).reshape(sizes)


def _sizes(potentials: list[tuple[tuple[int, ...], Float[Array, "..."]]]) -> dict[int, int]:
    return {site: size for scope, table in potentials for site, size in zip(scope, table.shape, strict=True)}


def draw_block(
    words: UInt32[Array, " sites"], block: Block, weights: Weights, x: Integer[Array, " n"]
) -> Integer[Array, " n"]:
    """The sites of a block, the last eliminated first."""
    drawn: dict[int, Integer[Array, " 1"]] = {}
    for i in reversed(range(len(block.steps))):
        step, table = block.steps[i], weights[i]
        place = jnp.zeros(1, jnp.int32)
        for site, size in zip(step.scope, table.shape, strict=False):
            place = place * size + drawn[site]
        row = table.reshape(-1, table.shape[-1]).at[place].get(mode="promise_in_bounds")
        drawn[step.site] = materialised(draw_weighted_levels(words[i : i + 1], row))
    sites = jnp.array([step.site for step in block.steps], jnp.int32)
    codes = jnp.concatenate([drawn[step.site] for step in block.steps])
    return x.at[sites].set(codes.astype(x.dtype), unique_indices=True)
