"""LB and exact-path PAS: informed proposals whose weights are exact, and evaluated again after every flip.

With the exact log-ratios l_ic(x) of all single-site changes,

    w_ic(x) = g(exp(l_ic(x))) for c != x_i,     Z(x) = sum_ic w_ic(x)

a path x_0 = x, x_1 .. x_R = y makes R moves, each drawn with probability w_ic(x_r) / Z(x_r); a site may move again, and
a move may be undone. The reverse path meets the same states with the opposite ratios, so all Z but two cancel:

    log A = sum_r [ l_r + log g(exp(-l_r)) - log g(exp(l_r)) ] + log Z(x_0) - log Z(x_R),

l_r the log-ratio of move r. For a balanced g the bracket is 0. LB (Zanella, 2020) is R = 1; longer paths cost R
evaluations of a neighbourhood. R is `path_length` rounded at random, independently of the state.

Z hardly differs between neighbours where sites are many, so paths of thousands of sites would still be accepted. But R
moves in one step go no further than R steps of one move each, which are accepted too, and cost as much, one after the
other: warm-up makes no path longer than 32.
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, Kernel, Knob, State, scalar_info
from discrax.core.levels import at_level, draw_levels
from discrax.core.metropolis import decide, select
from discrax.core.space import Space
from discrax.core.target import (
    Evaluation,
    ExactRatios,
    Target,
    effective_ratios,
    evaluate_change,
    exact_evaluation,
    offered,
)
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.locally_balanced import log_weights
from discrax.samplers.path_kernel import initial_length
from discrax.samplers.selection import draw_length, draw_with_replacement

_LONGEST = 32  # path that warm-up makes


class LB(Kernel):
    """Locally balanced proposal: one move by its exact ratio."""

    balancing: Balancing
    evaluates_levels: ClassVar[bool] = True
    sites_changed: ClassVar[int | str | None] = 1

    def __init__(self, balancing: str | Balancing = "sqrt"):
        self.balancing = get_balancing(balancing)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        evaluation = exact_evaluation(target, x)
        return State(x, evaluation.log_prob, evaluation.ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        return _step(self.balancing, 1, key, target, state)


class ExactPAS(LB):
    """Path auxiliary sampler whose weights are exact along the path."""

    path_length: Float[Array, ""]
    sites_changed: ClassVar[int | str | None] = "path_length"
    target_rate: ClassVar[float] = 0.574

    def __init__(self, path_length: float = 1.0, balancing: str | Balancing = "sqrt"):
        super().__init__(balancing)
        self.path_length, _ = initial_length(path_length)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        for_length, for_step = random.split(key, 2)
        length = draw_length(for_length, self.path_length, target.space.num_sites)
        return _step(self.balancing, length, for_step, target, state)

    def knobs(self, target: Target) -> dict[str, Knob]:
        most = min(_LONGEST, target.space.num_sites)
        return {"path_length": Knob(self.path_length, 1.0, most, rate=self.target_rate)}


class Move(NamedTuple):
    """A single-site change."""

    site: Int[Array, ""]
    level: Integer[Array, ""]

    def of(self, values: Float[Array, "n ..."]) -> Float[Array, ""]:
        """The entry of this move in an array of all moves."""
        return values[self.site] if values.ndim == 1 else at_level(values[self.site], self.level)


def draw_move(
    key: PRNGKeyArray,
    space: Space,
    x: Integer[Array, " n"],
    site_weights: Float[Array, " n"],
    move_weights: Float[Array, "n ..."],
) -> Move:
    """A move with probability proportional to its weight: the site first, then its level."""
    for_site, for_level = random.split(key, 2)
    site = draw_with_replacement(for_site, site_weights, 1)[0]
    if space.has_two_levels:
        return Move(site, 1 - x[site])
    return Move(site, draw_levels(random.words(for_level, 1)[0], move_weights[site]).astype(space.dtype))


class _Neighbours(NamedTuple):
    """What a proposal needs to know of the neighbours of a state."""

    ratios: Float[Array, "n ..."]  # l
    site_weights: Float[Array, " n"]  # log sum_c w
    move_weights: Float[Array, "n ..."]  # log w
    is_invalid: Bool[Array, ""]


class _Path(NamedTuple):
    """All that a loop carries: chains whose path is over copy it, so it has no more than the end itself."""

    end: State
    log_prob_change: Float[Array, ""]  # sum_r l_r
    log_weight_ratio: Float[Array, ""]  # sum_r [ log g(exp(-l_r)) - log g(exp(l_r)) ]
    is_invalid: Bool[Array, ""]


def _step(
    balancing: Balancing, length: int | Int[Array, ""], key: PRNGKeyArray, target: Target, state: State
) -> tuple[State, Info]:
    space = target.space
    for_path, for_decision = random.split(key, 2)
    nothing = jnp.zeros_like(state.log_prob)

    def extend(r, path: _Path) -> _Path:
        x, neighbours = path.end.x.reshape(-1), _neighbours(balancing, target, path.end)
        move = draw_move(random.fold_in(for_path, r), space, x, neighbours.site_weights, neighbours.move_weights)
        # A barred move is drawn where all are, or by rounding: the path stays, and will be rejected.
        is_barred = jnp.isneginf(move.of(neighbours.move_weights))
        log_ratio = jnp.where(is_barred, 0, move.of(neighbours.ratios))
        y = x.at[move.site].set(jnp.where(is_barred, x[move.site], move.level)).reshape(space.shape)
        weight_ratio = jnp.where(is_barred, -jnp.inf, balancing(-log_ratio) - balancing(log_ratio))
        return _Path(
            _move_to(target, path.end, y, move.site),
            path.log_prob_change + log_ratio,
            path.log_weight_ratio + weight_ratio,
            path.is_invalid | neighbours.is_invalid,
        )

    path = lax.fori_loop(0, length, extend, _Path(state, nothing, nothing, jnp.zeros((), bool)))
    here, there = (_neighbours(balancing, target, end) for end in (state, path.end))
    log_z = logsumexp(here.site_weights) - logsumexp(there.site_weights)
    totals = jnp.where(jnp.isneginf(path.log_weight_ratio), 0, log_z)
    decision = decide(for_decision, path.log_prob_change, path.log_weight_ratio + totals)
    after = select(decision.is_accepted, path.end, state)
    jump = jnp.where(decision.is_accepted, space.distance(state.x, path.end.x), 0)
    cost = space.num_sites * (space.num_levels - 1) if offered(target, ExactRatios) is None else 1
    return after, scalar_info(
        decision.accept_prob, decision.is_accepted, jump, cost * length, path.is_invalid | there.is_invalid
    )


def _neighbours(balancing: Balancing, target: Target, state: State) -> _Neighbours:
    ratios = effective_ratios(target, state.x, state.cache)
    is_invalid = jnp.isnan(ratios) | jnp.isposinf(ratios)
    ratios = jnp.where(is_invalid, -jnp.inf, ratios)  # a neighbour without a probability is not drawn
    site_weights, move_weights = log_weights(balancing, target.space, state.x.reshape(-1), ratios)
    return _Neighbours(ratios, site_weights, move_weights, jnp.any(is_invalid))


def _move_to(target: Target, state: State, y: Integer[Array, "*shape"], site: Int[Array, ""]) -> State:
    """The state at `y`, which differs at most at `site`."""
    if offered(target, ExactRatios) is None:
        evaluation = exact_evaluation(target, y)
    else:
        evaluation = evaluate_change(target, state.x, Evaluation(state.log_prob, state.cache), y, site[None])
    return State(y, evaluation.log_prob, evaluation.ratios)
