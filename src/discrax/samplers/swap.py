"""Swaps: moves that keep the totals of a space, informed by log-ratios or uniform.

A unit is the step from one code to the next; on two levels a site that is on has one. With the log-ratios r of all
single-site changes at x (exact, or first-order from one gradient), and t = exp(r),

    a_i(x) = g(t of x_i - 1),  b_j(x) = g(t of x_j + 1),      0 where there is no such code, or the site is frozen,
    A_g = sum of a_i over the sites of group g,               B_g = sum of b_j

a swap takes a unit from site i and gives it to site j of the same group; a single change takes or gives one, where
the group's total may fall or rise:

    swap     q(i, j | x) = a_i b_j / S(x),                  S = sum_g A_g B_g
    single   q(i | x) = a_i / T(x),  q(j | x) = b_j / T(x), T = sum_g ([total_g > low_g] A_g + [total_g < high_g] B_g)

For g(t) = sqrt(t) the weight of a swap is that of its ratio t_i t_j, but for what i and j mean to each other. A
step draws R of these independently at x, each a single change with probability 1/2 (never, where all totals are
exact), and makes all of them at once. The way back from y makes the same changes the other way round:

    log A = log pi(y) - log pi(x) + sum_r [ log q(r reversed | y) - log q(r | x) ]

Where y is no state (a unit was taken twice, or a total left its bounds) it is rejected, and so would the way back be.
R is `path_length` rounded at random, independently of the state; it is tuned to acceptance 0.574. With g = 1, the
uniform swaps, nothing but log pi is evaluated, at one state a step as everywhere.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, State, scalar_info
from discrax.core.levels import at_level, draw_levels
from discrax.core.metropolis import decide, select
from discrax.core.space import Binary, Ordinal, Space, Spin
from discrax.core.target import Evaluation, Target, effective_ratios, evaluate_change, log_prob, temper
from discrax.core.totals import Totals, unbounded
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.informed import Informed, check_ratios
from discrax.samplers.path_kernel import PathKernel, initial_length
from discrax.samplers.selection import draw_length, draw_with_replacement, longest

_SINGLE = 0.5  # of the changes, where a total may change


class _Moves(NamedTuple):
    """What a state offers; sites are in the order of their groups."""

    give: Float[Array, " n"]  # log a
    take: Float[Array, " n"]  # log b
    log_swaps: Float[Array, " groups"]  # log A B
    log_falls: Float[Array, " groups"]  # log A where the total may fall, else -inf
    log_rises: Float[Array, " groups"]  # log B where it may rise


class _Changes(NamedTuple):
    """R changes; places are in the order of groups."""

    is_used: Bool[Array, " k"]
    is_single: Bool[Array, " k"]
    group: Int[Array, " k"]
    gives: Bool[Array, " k"]  # a unit is taken from `giver`
    giver: Int[Array, " k"]
    takes: Bool[Array, " k"]
    taker: Int[Array, " k"]

    def reverse(self) -> "_Changes":
        """The way back."""
        return self._replace(gives=self.takes, giver=self.taker, takes=self.gives, taker=self.giver)


class Swap(PathKernel, Informed):
    """Informed swaps of units within groups, and single changes where totals may change."""

    path_length: Float[Array, ""]
    capacity: int = eqx.field(static=True)
    balancing: Balancing
    spaces: ClassVar[tuple[type[Space], ...]] = (Binary, Spin, Ordinal)
    keeps_totals: ClassVar[bool] = True
    target_rate: ClassVar[float] = 0.574
    exponent: ClassVar[float] = 1 / 2  # a unit that is drawn twice spoils the step

    def __init__(self, path_length: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        self.path_length, self.capacity = initial_length(path_length)
        self.balancing, self.ratios = get_balancing(balancing), check_ratios(ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        space, x = target.space, state.x.reshape(-1)
        n, most, capacity = space.num_sites, space.num_levels - 1, min(self.capacity, space.num_sites)
        totals = unbounded(n, most) if space.totals is None else space.totals
        for_length, for_changes, for_decision = random.split(key, 3)
        length = draw_length(for_length, self.path_length, jnp.minimum(longest(capacity, n), space.num_free))

        here = _moves(totals, x, self.log_weights(target, state))
        changes = _draw_changes(for_changes, totals, here, jnp.arange(capacity) < length)
        giver = jnp.where(changes.gives, totals.order[changes.giver], n)  # n is dropped
        taker = jnp.where(changes.takes, totals.order[changes.taker], n)
        y = x.astype(jnp.int32).at[giver].add(-1, mode="drop").at[taker].add(1, mode="drop")
        is_state = jnp.all((y >= 0) & (y <= most)) & totals.are_kept(y)
        y = jnp.clip(y, 0, most).astype(space.dtype).reshape(space.shape)
        there = self.move_to(target, state, y, jnp.concatenate([giver, taker]))

        forth = _log_probability(here, changes)
        back = _log_probability(_moves(totals, y.reshape(-1), self.log_weights(target, there)), changes.reverse())
        # Where float32 cannot hold one of the two, the move and its reverse are both rejected, so the law stays exact.
        is_possible = is_state & jnp.isfinite(forth) & jnp.isfinite(back)
        change = jnp.where(is_state, temper(target, there.log_prob - state.log_prob), 0)
        decision = decide(for_decision, change, jnp.where(is_possible, back - forth, -jnp.inf))
        after = select(decision.is_accepted, there, state)
        jump = jnp.where(decision.is_accepted, space.distance(state.x, y), 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)

    def log_weights(self, target: Target, state: State) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """log a and log b of the sites."""
        ratios, x = effective_ratios(target, state.x, state.cache), state.x.reshape(-1).astype(jnp.int32)
        if target.space.has_two_levels:
            give = take = ratios
        else:
            give, take = at_level(ratios, x - 1), at_level(ratios, x + 1)
        # A barred move has ratio -inf, which g = max(1, t) would weigh 1.
        give, take = (jnp.where(jnp.isneginf(each), -jnp.inf, self.balancing(each)) for each in (give, take))
        return _where_possible(target.space, x, give, take)

    def move_to(
        self, target: Target, state: State, y: Integer[Array, "*shape"], sites: Int[Array, " changed"]
    ) -> State:
        """The state at y, which differs at most at the sites."""
        proposal = evaluate_change(target, state.x, Evaluation(state.log_prob, state.cache), y, sites)
        return State(y, proposal.log_prob, proposal.ratios)


class UniformSwap(Swap):
    """Swaps of uniformly chosen units."""

    uses_gradient: ClassVar[bool] = False
    target_rate: ClassVar[float] = 0.234
    exponent: ClassVar[float] = 1 / 3

    def __init__(self, path_length: float = 1.0):
        super().__init__(path_length)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def log_weights(self, target: Target, state: State) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        space, x = target.space, state.x.reshape(-1).astype(jnp.int32)
        is_free = True if space.frozen is None else ~space.frozen.mask.reshape(-1)
        weights = jnp.where(is_free, jnp.zeros(x.shape, state.log_prob.dtype), -jnp.inf)
        return _where_possible(space, x, weights, weights)

    def move_to(
        self, target: Target, state: State, y: Integer[Array, "*shape"], sites: Int[Array, " changed"]
    ) -> State:
        return State(y, log_prob(target, y), ())


def _where_possible(
    space: Space, x: Int[Array, " n"], give: Float[Array, " n"], take: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    return jnp.where(x > 0, give, -jnp.inf), jnp.where(x < space.num_levels - 1, take, -jnp.inf)


def _moves(
    totals: Totals, x: Integer[Array, " n"], log_weights: tuple[Float[Array, " n"], Float[Array, " n"]]
) -> _Moves:
    give, take = log_weights
    if totals.num_groups > 1:
        give, take = give[totals.order], take[totals.order]
    log_give, log_take, sums = _log_sums(totals, give), _log_sums(totals, take), totals.sums(x)
    falls = jnp.where(sums > totals.low, log_give, -jnp.inf)
    return _Moves(give, take, log_give + log_take, falls, jnp.where(sums < totals.high, log_take, -jnp.inf))


def _log_sums(totals: Totals, values: Float[Array, " n"]) -> Float[Array, " groups"]:
    """log sum exp over each group."""
    if totals.num_groups == 1:
        return logsumexp(values)[None]
    settings: dict[str, Any] = {"num_segments": totals.num_groups, "indices_are_sorted": True}
    groups = totals.labels[totals.order]
    largest = jax.ops.segment_max(values, groups, **settings)
    shift = jnp.where(jnp.isneginf(largest), 0, largest)
    return jnp.log(jax.ops.segment_sum(jnp.exp(values - shift[groups]), groups, **settings)) + shift


def _draw_changes(key: PRNGKeyArray, totals: Totals, moves: _Moves, is_used: Bool[Array, " k"]) -> _Changes:
    k = is_used.shape[0]
    for_kind, for_swap, for_single, for_way, for_giver, for_taker = random.split(key, 6)
    is_single = (random.uniform(for_kind, k) < _SINGLE) & jnp.any(totals.low < totals.high)
    log_single = jnp.logaddexp(moves.log_falls, moves.log_rises)
    if totals.num_groups == 1:
        group = jnp.zeros(k, jnp.int32)
    else:
        of_swap, of_single = (
            draw_with_replacement(each, weights, k)
            for each, weights in ((for_swap, moves.log_swaps), (for_single, log_single))
        )
        group = jnp.where(is_single, of_single, of_swap)
    falls = random.uniform(for_way, k) < jnp.exp(moves.log_falls - log_single)[group]
    giver, taker = (
        _draw_in_groups(each, totals, weights, group)
        for each, weights in ((for_giver, moves.give), (for_taker, moves.take))
    )
    return _Changes(
        is_used, is_single, group, is_used & (falls | ~is_single), giver, is_used & ~(falls & is_single), taker
    )


def _draw_in_groups(
    key: PRNGKeyArray, totals: Totals, log_weights: Float[Array, " n"], group: Int[Array, " k"]
) -> Int[Array, " k"]:
    """A place in each of the groups, with probability proportional to its weight."""
    if totals.num_groups == 1:
        return draw_with_replacement(key, log_weights, group.shape[0])
    first = totals.first[group]
    places = first[:, None] + jnp.arange(totals.largest)[None, :]
    inside = places < totals.first[group + 1][:, None]
    of_places = jnp.where(inside, log_weights.at[places].get(mode="clip"), -jnp.inf)
    return first + draw_levels(random.words(key, group.shape[0]), of_places)


def _log_probability(moves: _Moves, changes: _Changes) -> Float[Array, ""]:
    log_swap = logsumexp(moves.log_swaps)
    log_single = logsumexp(jnp.concatenate([moves.log_falls, moves.log_rises]))
    total_may = jnp.where(changes.gives, moves.log_falls[changes.group], moves.log_rises[changes.group])
    log_total = jnp.where(changes.is_single, jnp.where(jnp.isneginf(total_may), jnp.inf, log_single), log_swap)
    given = jnp.where(changes.gives, moves.give[changes.giver], 0)
    taken = jnp.where(changes.takes, moves.take[changes.taker], 0)
    return jnp.sum(jnp.where(changes.is_used, given + taken - log_total, 0))
