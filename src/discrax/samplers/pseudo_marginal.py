"""Pseudo-marginal random walk: Metropolis with estimates of pi from mini-batches (Andrieu and Roberts, 2009).

A state is kept together with its estimate, log p = log phi(psi(x, xi)) by the mini-batch of the step that came to it:

    y = x with a uniformly chosen site at a uniformly chosen other level;  a fresh mini-batch xi'
    log q = log phi(psi(y, xi'));    log A = log q - log p;    accepted, (x, log p) becomes (y, log q)

Where phi(psi) is an unbiased estimate of pi (phi the identity: quenched models), pi is exactly invariant, however noisy
the estimates are. Where phi = exp (data, costs), E exp(psi) is, which for normal noise is pi exp(variance of psi / 2):
biased. Noise costs moves: an estimate that is too high by chance holds the chain until another one is as high.

The first step stays, and estimates pi where the chain begins.
"""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.metropolis import decide, select
from discrax.core.stochastic import NOTHING, StochasticTarget, base_of
from discrax.core.target import Target, temper


class Count(NamedTuple):
    """Of mini-batches."""

    count: Int[Array, ""]  # drawn so far
    offset: Int[Array, ""]  # chains begin at different places of data that come in order


class PseudoMarginal(Kernel):
    """Random walk Metropolis, whose pi is an estimate from one mini-batch that is kept until the next move."""

    needs: ClassVar[tuple[type[Target], ...]] = (StochasticTarget,)
    is_exact: ClassVar[bool] = False
    sites_changed: ClassVar[int | str | None] = 1

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        zero = jnp.zeros((), jnp.int32)
        return State(x, jnp.zeros((), jnp.result_type(float)), Count(zero, zero))

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        base, space, (count, offset) = base_of(target), target.space, state.cache
        for_site, for_level, for_offset, for_batch, for_decision = random.split(key, 5)
        is_first = count == 0
        first = (random.words(for_offset, 1)[0] >> 2).astype(jnp.int32)
        offset = jnp.where(is_first, first, offset)
        x = state.x.reshape(-1)
        site = space.free_site(random.integers(for_site, 1, jnp.asarray(space.num_free, jnp.int32))[0])
        levels = space.levels_at(site)
        other = (x[site].astype(jnp.int32) + 1 + random.integers(for_level, 1, levels - 1)[0]) % levels
        y = x.at[site].set(jnp.where(is_first, x[site], other.astype(x.dtype))).reshape(space.shape)
        estimate = base.log_phi(base.psi(space.embed(y), base.draw(for_batch, count + offset)))
        estimate = jnp.maximum(estimate, NOTHING).astype(state.log_prob.dtype)  # a chain may begin where pi is 0
        change = estimate - jnp.where(is_first & jnp.isfinite(estimate), estimate, state.log_prob)
        decision = decide(for_decision, temper(target, change))
        after = select(decision.is_accepted, State(y, estimate, state.cache), state)
        after = after._replace(cache=Count(count + ~decision.is_invalid, offset))
        jump = space.distance(state.x, after.x)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
