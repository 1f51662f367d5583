"""Ordinal GWG and MH-uniform: moves of at most r steps on a grid.

- Ordinal GWG moves one site. With the log-ratios r_ic of all single-site changes at x (exact, or first-order from one
  gradient) the neighbours of x are N(x) = { (i, c) : 0 < |c - x_i| <= r }, fewer where x_i is near an end of the grid:

      w_ic(x) = g(exp(r_ic)),   q(i, c | x) = w_ic(x) / sum over N(x) of w
      log A = log pi(y) - log pi(x) + log q(i, x_i | y) - log q(i, c | x)

- MH-uniform moves every free site at once, uniformly in B_i(x) = { c : |c - x_i| <= r }, cut off at the ends of the
  grid:

      log A = log pi(y) - log pi(x) + sum_i [ log #B_i(x) - log #B_i(y) ]

r is `radius` rounded at random, independently of the state. Tuned to acceptance 0.574 and 0.234.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import number
from discrax.core.kernel import Info, Kernel, Knob, State, scalar_info
from discrax.core.metropolis import decide, select
from discrax.core.space import Ordinal, Space
from discrax.core.target import Evaluation, Target, effective_ratios, evaluate_change, log_prob, temper
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.exact_path import Move, draw_move
from discrax.samplers.informed import Informed, check_ratios
from discrax.samplers.locally_balanced import log_weights


class RadiusKernel(Kernel):
    """What the two have in common: their scale."""

    radius: Float[Array, ""]
    spaces: ClassVar[tuple[type[Space], ...]] = (Ordinal,)
    target_rate: eqx.AbstractClassVar[float]

    def __init__(self, radius: float = 1.0):
        self.radius = jnp.asarray(number("radius", radius, least=1), jnp.float32)

    def knobs(self, target: Target) -> dict[str, Knob]:
        most = target.space.num_levels - 1
        return {"radius": Knob(self.radius, 1.0, most, (1.0, 5.0, 10.0, 15.0, 20.0), self.target_rate)}


class OrdinalGWG(RadiusKernel, Informed):
    """Gibbs with gradients within a radius."""

    balancing: Balancing
    target_rate: ClassVar[float] = 0.574
    sites_changed: ClassVar[int | str | None] = 1

    def __init__(self, radius: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        super().__init__(radius)
        self.balancing, self.ratios = get_balancing(balancing), check_ratios(ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        space, x = target.space, state.x.reshape(-1)
        for_radius, for_move, for_decision = random.split(key, 3)
        radius = round_at_random(for_radius, self.radius)
        site_weights, move_weights = self._log_weights(target, state, radius)
        move = draw_move(for_move, space, x, site_weights, move_weights)
        y = x.at[move.site].set(move.level).reshape(space.shape)
        proposal = evaluate_change(target, state.x, Evaluation(state.log_prob, state.cache), y, move.site[None])
        there = State(y, proposal.log_prob, proposal.ratios)
        back_site_weights, back_move_weights = self._log_weights(target, there, radius)

        old = x[move.site]
        forth = move.of(move_weights) - logsumexp(site_weights)
        back = Move(move.site, old).of(back_move_weights) - logsumexp(back_site_weights)
        # Where float32 cannot hold one of the two, the move and its reverse are both rejected, so the law stays exact.
        proposal_ratio = jnp.where(jnp.isfinite(forth) & jnp.isfinite(back), back - forth, -jnp.inf)
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob), proposal_ratio)
        after = select(decision.is_accepted, there, state)
        jump = jnp.where(decision.is_accepted, space.distance(old, move.level), 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)

    def _log_weights(
        self, target: Target, state: State, radius: Int[Array, ""]
    ) -> tuple[Float[Array, " n"], Float[Array, "n ..."]]:
        """log of sum_c w_ic and of w_ic; -inf beyond the radius."""
        space, x = target.space, state.x.reshape(-1)
        ratios = effective_ratios(target, state.x, state.cache)
        if not space.has_two_levels:
            steps = jnp.abs(jnp.arange(space.num_levels)[None] - x.astype(jnp.int32)[:, None])
            ratios = jnp.where(steps <= radius, ratios, -jnp.inf)
        return log_weights(self.balancing, space, x, ratios)


class MHUniform(RadiusKernel):
    """Metropolis-Hastings with all sites uniform in their boxes."""

    target_rate: ClassVar[float] = 0.234

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space = target.space
        for_radius, for_codes, for_decision = random.split(key, 3)
        radius, top = round_at_random(for_radius, self.radius), space.num_levels - 1

        def box(x):
            """The lowest code of B_i, and #B_i."""
            codes = x.astype(jnp.int32)
            low = jnp.maximum(codes - radius, 0)
            return low, (jnp.minimum(codes + radius, top) - low + 1).astype(jnp.float32)

        low, size = box(state.x)
        uniform = random.uniform(for_codes, space.num_sites).reshape(space.shape)
        y = (low + jnp.floor(uniform * size).astype(jnp.int32)).astype(space.dtype)
        if space.frozen is not None:
            y = jnp.where(space.frozen.mask, state.x, y)
        there = State(y, log_prob(target, y), ())
        proposal_ratio = jnp.sum(jnp.log(size) - jnp.log(box(y)[1]))
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob), proposal_ratio)
        after = select(decision.is_accepted, there, state)
        jump = jnp.where(decision.is_accepted, space.distance(state.x, y), 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)


def round_at_random(key: PRNGKeyArray, value: Float[Array, ""]) -> Int[Array, ""]:
    """One of the two integers around `value`, whose mean is `value`."""
    return jnp.floor(value + random.uniform_scalar(key)).astype(jnp.int32)
