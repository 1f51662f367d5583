"""DMALA, also NCG or DLP: every site moves at once, each by its own draw.

With the log-ratios r_ic of all single-site changes at x and the squared length d_ic of each move in the embedding,

    q(y | x) = prod_i softmax_c( l_ic ),     l_ic = log g(exp(r_ic)) - d_ic / (2 eps),     l_i,x_i = 0
    log A = log pi(y) - log pi(x) + log q(x | y) - log q(y | x)

With g = sqrt and first-order ratios this is the discrete Langevin proposal of Zhang et al. (2022) and Rhodes and
Gutmann (2022); `step_size` is their eps. For two levels it is one Bernoulli draw a site, flipped with probability
sigmoid(l_i). Most efficient at acceptance 0.574.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, State, Tunable, replaced, scalar_info, start_state
from discrax.core.levels import at_level, draw_levels, is_level
from discrax.core.metropolis import decide, select
from discrax.core.target import Target, effective_ratios, evaluate, temper
from discrax.core.xla import materialised
from discrax.samplers.balancing import Balancing, get_balancing


class DMALA(Tunable):
    step_size: Float[Array, ""]
    balancing: Balancing
    parameter: ClassVar[str] = "step_size"
    target_rate: ClassVar[float] = 0.574
    uses_gradient: ClassVar[bool] = True

    def __init__(self, step_size: float = 0.2, balancing: str | Balancing = "sqrt"):
        if not np.isfinite(step_size) or step_size <= 0:
            raise ValueError(f"step_size must be a positive number, but got {step_size}.")
        self.step_size = jnp.asarray(step_size, jnp.float32)
        self.balancing = get_balancing(balancing)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return start_state(target, x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, x = target.space, state.x.reshape(-1)
        for_levels, for_decision = random.split(key, 2)
        bits = random.words(for_levels, space.num_sites)
        logits = self._logits(target, state)
        if space.has_two_levels:
            flips = random.to_uniform(bits) < jax.nn.sigmoid(logits)
            y = materialised(jnp.where(flips, 1 - x, x))
        else:
            y = materialised(draw_levels(bits, logits).astype(space.dtype))
        proposal = evaluate(target, y.reshape(space.shape))
        there = State(y.reshape(space.shape), proposal.log_prob, proposal.ratios)
        back_logits = self._logits(target, there)

        if space.has_two_levels:
            # Per site log q = m l - softplus(l), m the flip; a frozen site has l = -inf, and 0 * -inf would be NaN.
            terms = jnp.where(x == y, 0, back_logits - logits) + softplus(logits) - softplus(back_logits)
        else:
            forth = at_level(logits, y) - logsumexp(logits, axis=-1)
            terms = at_level(back_logits, x) - logsumexp(back_logits, axis=-1) - forth
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob), jnp.sum(terms))
        after = select(decision.is_accepted, there, state)
        jump = jnp.where(decision.is_accepted, space.distance(x, y), 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)

    def _logits(self, target: Target, state: State) -> Float[Array, "n ..."]:
        """l, with 0 at the current level."""
        space, x = target.space, state.x.reshape(-1)
        ratios = effective_ratios(target, state.x, state.cache)
        penalty = space.squared_moves(x) / (2 * self.step_size.astype(ratios.dtype))
        logits = self.balancing(ratios) - penalty
        logits = jnp.where(jnp.isneginf(ratios), -jnp.inf, logits)  # barred moves stay barred whatever g(0) is
        return logits if space.has_two_levels else jnp.where(is_level(x, space.num_levels), 0, logits)

    # The scale is s = log of the factor that the penalty puts on the shortest move, s = -d_min / (2 eps), as long as
    # moves are rare (each unit of s multiplies the number of moves by e). Above s = -1 it continues smoothly as the
    # logarithm of eps.
    def log_scale(self, target: Target) -> Float[Array, ""]:
        s = -target.space.smallest_squared_move / (2 * self.step_size)
        return jnp.where(s < -1, s, -1 - jnp.log(-s)).astype(jnp.float32)

    def with_log_scale(self, target: Target, value: Float[Array, ""]) -> "DMALA":
        value = jnp.clip(value, -30.0, 12.0)
        s = jnp.where(value < -1, value, -jnp.exp(-(value + 1)))
        step_size = (-target.space.smallest_squared_move / (2 * s)).astype(jnp.float32)
        return replaced(self, step_size=step_size)


def softplus(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + e^a); `jax.nn.softplus` also handles NaN arguments, at twice the price."""
    return jnp.maximum(a, 0) + jnp.log1p(jnp.exp(-jnp.abs(a)))
