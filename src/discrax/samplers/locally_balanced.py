"""GWG and PAS (LBP): informed proposals that change one or several sites chosen by weighted draws.

With the log-ratios r of all single-site changes at x (exact, or first-order from one gradient),

    w_ic(x) = g(exp(r_ic)) for c != x_i,     w_i(x) = sum_c w_ic(x)

a path of R sites u_1 .. u_R is drawn with probability proportional to w_i, then each distinct site a level c_i with
probability w_ic / w_i, and y is x with all of them changed at once:

    log q(u, c | x) = sum_r [ log w_{u_r} - log Z_r ] + sum over distinct i of [ log w_{i c_i} - log w_i ]
    log A = log pi(y) - log pi(x) + log q(u reversed, x | y) - log q(u, c | x)

- GWG draws with replacement: Z_r = sum_i w_i. Repeated sites change once; R = 1 is the original (Grathwohl et al.,
  2021).
- PAS draws without replacement: Z_r is the weight of the sites not drawn before, so the reverse path meets them in
  the opposite order (Sun et al., 2022). Z_r is a sum of what remains, never a difference: float32 keeps its digits on
  the longest paths.

R is `path_length` rounded at random, independently of the state. Both are most efficient at acceptance 0.574.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, State, scalar_info
from discrax.core.levels import at_level, draw_levels, is_level, log_sum_exp_levels
from discrax.core.metropolis import decide, select
from discrax.core.space import Space
from discrax.core.target import Evaluation, Target, effective_ratios, evaluate_change, temper
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.informed import Informed, check_ratios
from discrax.samplers.path_kernel import PathKernel, initial_length
from discrax.samplers.selection import (
    draw_length,
    draw_with_replacement,
    draw_without_replacement,
    is_first,
    longest,
    running_sums,
)


class _WeightedPath(PathKernel, Informed):
    path_length: Float[Array, ""]
    capacity: int = eqx.field(static=True)
    balancing: Balancing
    with_replacement: eqx.AbstractClassVar[bool]
    target_rate: ClassVar[float] = 0.574
    reverses: ClassVar[bool] = True  # the way back meets the sites in the opposite order

    def __init__(self, path_length: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        self.path_length, self.capacity = initial_length(path_length)
        self.balancing, self.ratios = get_balancing(balancing), check_ratios(ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        space, x = target.space, state.x.reshape(-1)
        n, capacity = space.num_sites, min(self.capacity, space.num_sites)
        for_length, for_path, for_levels, for_decision = random.split(key, 4)

        site_weights, move_weights = log_weights(
            self.balancing, space, x, effective_ratios(target, state.x, state.cache)
        )
        length = draw_length(for_length, self.path_length, jnp.minimum(longest(capacity, n), space.num_free))
        is_used = jnp.arange(capacity) < length
        if capacity == 1:  # with or without replacement is the same draw of one site
            path, is_new = draw_with_replacement(for_path, site_weights, 1), is_used
            is_changed = jnp.arange(n) == path[0]
        elif self.with_replacement:
            path = jnp.where(is_used, draw_with_replacement(for_path, site_weights, capacity), n)
            is_new = is_first(path, n)
            is_changed = jnp.zeros(n, bool).at[path].set(True, mode="drop")
        else:
            path, is_changed = draw_without_replacement(for_path, site_weights, length, capacity)
            is_new = is_used
        sites = jnp.where(is_new, path, n)  # distinct; n is dropped by scatters

        if space.has_two_levels:
            y = jnp.where(is_changed, 1 - x, x)
        else:
            at_sites = move_weights.at[path].get(mode="clip")
            levels = draw_levels(random.words(for_levels, capacity), at_sites).astype(space.dtype)
            y = x.at[sites].set(levels, mode="drop")
        proposal = evaluate_change(
            target, state.x, Evaluation(state.log_prob, state.cache), y.reshape(space.shape), sites
        )
        there = State(y.reshape(space.shape), proposal.log_prob, proposal.ratios)
        back_site_weights, back_move_weights = log_weights(
            self.balancing, space, y, effective_ratios(target, there.x, there.cache)
        )

        def log_probability(site_weights, move_weights, levels, backwards):
            if self.with_replacement:
                remaining = logsumexp(site_weights)
            else:
                remaining = _log_remaining(site_weights, path, is_used, is_changed, backwards)
            # Where fewer sites have a weight than the path is long it ends with n, and is rejected.
            chosen = site_weights.at[path].get(mode="fill", fill_value=-jnp.inf)
            terms = jnp.where(is_used, chosen - remaining, 0)
            if not space.has_two_levels:
                of_move = at_level(move_weights.at[path].get(mode="clip"), levels)
                terms += jnp.where(is_new, of_move - chosen, 0)
            return jnp.sum(terms)

        forth = log_probability(site_weights, move_weights, y.at[path].get(mode="clip"), False)
        back = log_probability(back_site_weights, back_move_weights, x.at[path].get(mode="clip"), self.reverses)
        # Where float32 cannot hold one of the two, the move and its reverse are both rejected, so the law stays exact.
        proposal_ratio = jnp.where(jnp.isfinite(forth) & jnp.isfinite(back), back - forth, -jnp.inf)
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob), proposal_ratio)
        after = select(decision.is_accepted, there, state)
        moved = space.distance(x.at[sites].get(mode="fill", fill_value=0), y.at[sites].get(mode="fill", fill_value=0))
        jump = jnp.where(decision.is_accepted, moved, 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)


class GWG(_WeightedPath):
    """Gibbs with gradients: sites are drawn with replacement."""

    with_replacement: ClassVar[bool] = True
    exponent: ClassVar[float] = 1 / 2  # repeated sites are wasted, so its paths are shorter than those of PAS

    def __init__(self, path_length: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        super().__init__(path_length, balancing, ratios)


class PAS(_WeightedPath):
    """Path auxiliary sampler, or LBP-R: sites are drawn without replacement."""

    with_replacement: ClassVar[bool] = False

    def __init__(self, path_length: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        super().__init__(path_length, balancing, ratios)


def log_weights(
    balancing: Balancing, space: Space, x: Integer[Array, " n"], ratios: Float[Array, "n ..."]
) -> tuple[Float[Array, " n"], Float[Array, "n ..."]]:
    """log w_i of the sites, and log w_ic of the moves (the same array where there is one move a site)."""
    # A barred move has ratio -inf, which g = max(1, t) would weigh 1.
    moves = jnp.where(jnp.isneginf(ratios), -jnp.inf, balancing(ratios))
    if space.has_two_levels:
        return moves, moves
    moves = jnp.where(is_level(x, space.num_levels), -jnp.inf, moves)
    return log_sum_exp_levels(moves), moves


def _log_remaining(
    site_weights: Float[Array, " n"],
    path: Int[Array, " k"],
    is_used: Bool[Array, " k"],
    is_changed: Bool[Array, " n"],
    backwards: bool,
) -> Float[Array, " k"]:
    """log Z_r: the weight of all sites that the path, walked forwards or backwards, has not met before its r-th."""
    largest = jnp.max(site_weights)
    weights = jnp.exp(site_weights - largest)
    never_met = jnp.sum(jnp.where(is_changed, 0, weights))
    met = jnp.where(is_used, weights.at[path].get(mode="clip"), 0)
    # Forwards the sites not yet met are r, r+1, ...; backwards they are r, r-1, ...
    order = 1 if backwards else -1
    return largest + jnp.log(never_met + running_sums(met[::order])[::order])
