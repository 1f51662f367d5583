"""Proposals that move all sites at once, each by its own draw: what the Langevin families share.

From logits l_ic of all levels (for two levels: the log-odds l_i of a flip),

    q(y | x) = prod_i softmax_c( l_ic ) at c = y_i
    log A = log pi(y) - log pi(x) + log q(x | y) - log q(y | x)

A family is a way to compute l at a state. Frozen sites have l = -inf for every change.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, State, scalar_info
from discrax.core.levels import at_level, draw_levels
from discrax.core.metropolis import decide, select
from discrax.core.space import Space
from discrax.core.target import Target, evaluate, temper
from discrax.core.xla import materialised
from discrax.samplers.informed import Informed

Logits = Float[Array, "n ..."]


class Factorised(Informed):
    """A family without auxiliary variables, accepted or rejected: all it has of its own is its logits."""

    target_rate: ClassVar[float] = 0.574

    @abstractmethod
    def logits(self, target: Target, state: State) -> Logits:
        """l at a state."""

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        forth = self.logits(target, state)
        return factorised_step(key, target, state, forth, lambda there: (self.logits(target, there), 0.0))


def factorised_step(
    key: PRNGKeyArray,
    target: Target,
    state: State,
    logits: Logits,
    reverse: Callable[[State], tuple[Logits, float | Float[Array, ""]]],
    *,
    is_adjusted: bool = True,
) -> tuple[State, Info]:
    """Proposes from `logits`, evaluates the target there, and accepts or rejects.

    `reverse` gives the logits at the proposed state, and what log A has besides the terms above (of an auxiliary
    variable). An unadjusted step accepts whatever it proposes, as long as the target is a number there.
    """
    space, x = target.space, state.x.reshape(-1)
    for_levels, for_decision = random.split(key, 2)
    bits = random.words(for_levels, space.num_sites)
    if space.has_two_levels:
        flips = random.to_uniform(bits) < jax.nn.sigmoid(logits)
        y = materialised(jnp.where(flips, 1 - x, x))
    else:
        y = materialised(draw_levels(bits, logits).astype(space.dtype))

    def log_ratio(there: State) -> Float[Array, ""]:
        back_logits, extra = reverse(there)
        return log_proposal_ratio(space, x, y, logits, back_logits) + extra

    return judge(for_decision, target, state, y, log_ratio if is_adjusted else None)


def judge(
    key: PRNGKeyArray,
    target: Target,
    state: State,
    y: Integer[Array, " n"],
    log_ratio: Callable[[State], Float[Array, ""]] | None,
) -> tuple[State, Info]:
    """Evaluates the target at y, and accepts or rejects; `log_ratio` gives log q(x | y) - log q(y | x) from there."""
    space = target.space
    proposal = evaluate(target, y.reshape(space.shape))
    there = State(y.reshape(space.shape), proposal.log_prob, proposal.ratios)
    change = temper(target, there.log_prob - state.log_prob)
    if log_ratio is not None:
        decision = decide(key, change, log_ratio(there))
    else:
        decision = decide(key, jnp.where(change > -jnp.inf, jnp.maximum(change, 0), change))
    after = select(decision.is_accepted, there, state)
    jump = jnp.where(decision.is_accepted, space.distance(state.x.reshape(-1), y), 0)
    return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)


def log_proposal_ratio(
    space: Space, x: Integer[Array, " n"], y: Integer[Array, " n"], logits: Logits, back_logits: Logits
) -> Float[Array, ""]:
    """log q(x | y) - log q(y | x)."""
    if space.has_two_levels:
        # Per site log q = m l - softplus(l), m the flip; a frozen site has l = -inf, and 0 * -inf would be NaN.
        terms = jnp.where(x == y, 0, back_logits - logits) + softplus(logits) - softplus(back_logits)
    else:
        forth = at_level(logits, y) - logsumexp(logits, axis=-1)
        terms = at_level(back_logits, x) - logsumexp(back_logits, axis=-1) - forth
    return jnp.sum(terms)


def softplus(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + e^a); `jax.nn.softplus` also handles NaN arguments, at twice the price."""
    return jnp.maximum(a, 0) + jnp.log1p(jnp.exp(-jnp.abs(a)))
