"""RWM-R: random walk Metropolis that changes R uniformly chosen sites.

    u ~ uniform R-subset of the free sites;  y = x with every site of u at a uniformly chosen other level
    log A = log pi(y) - log pi(x)                       (the proposal is symmetric)

With `reach` r the sites of u move by a uniform number of levels among -r .. -1, 1 .. r instead; one that would leave
the levels stays where it is, which keeps the proposal symmetric.

R is `path_length` rounded at random, independently of the state. Most efficient at acceptance 0.234 (Sun et al., 2022).
Where the target can tell the change of a few sites, a step touches those sites and their neighbours only: its cost
does not grow with n.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import whole
from discrax.core.kernel import Info, State, scalar_info
from discrax.core.metropolis import decide, select
from discrax.core.statistics import compensated_add
from discrax.core.target import LocalChanges, Target, log_prob, offered, temper
from discrax.samplers.path_kernel import PathKernel, initial_length
from discrax.samplers.selection import draw_length, draw_uniform, longest

_LOCAL = 64  # beyond this many changed sites, a full evaluation is cheaper than all their pairs


class RandomWalk(PathKernel):
    """Random walk Metropolis on uniformly chosen sites."""

    path_length: Float[Array, ""]
    capacity: int = eqx.field(static=True)
    reach: int | None = eqx.field(static=True)
    target_rate: ClassVar[float] = 0.234
    exponent: ClassVar[float] = 1 / 3  # in theory 0; a little room for moderate n

    def __init__(self, path_length: float = 1.0, reach: int | None = None):
        self.path_length, self.capacity = initial_length(path_length)
        self.reach = None if reach is None else whole("reach", reach, least=1, most=2**31 - 1)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        value = log_prob(target, x)
        return State(x, value, jnp.zeros_like(value))  # the cache is the rounding error of a summed log_prob

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, x = target.space, state.x.reshape(-1)
        n, capacity = space.num_sites, min(self.capacity, space.num_sites)
        for_length, for_sites, for_levels, for_decision = random.split(key, 4)

        length = draw_length(for_length, self.path_length, jnp.minimum(longest(capacity, n), space.num_free))
        picks = draw_uniform(for_sites, n, space.num_free, length, capacity)
        is_used = picks < n
        sites = space.free_site(jnp.where(is_used, picks, 0))
        old = x[sites].astype(jnp.int32)
        new = jnp.where(is_used, self._moved(for_levels, old, space.levels_at(sites)), old)
        # Unused entries point to a site of their own choice with its old code: they change nothing.
        old, new = old.astype(space.dtype), new.astype(space.dtype)
        drop_unused = jnp.where(is_used, sites, n)

        local = offered(target, LocalChanges)
        if local is not None and capacity <= _LOCAL:
            change = local.change(state.x, sites, new)
            decision = decide(for_decision, temper(target, change))
            value, error = compensated_add(state.log_prob, state.cache, change)
            value, error = select(decision.is_accepted, (value, error), (state.log_prob, state.cache))
            y = x.at[drop_unused].set(jnp.where(decision.is_accepted, new, old), mode="drop")
            after = State(y.reshape(space.shape), value, error)
        else:
            y = x.at[drop_unused].set(new, mode="drop").reshape(space.shape)
            proposal = State(y, log_prob(target, y), jnp.zeros_like(state.cache))
            decision = decide(for_decision, temper(target, proposal.log_prob - state.log_prob))
            after = select(decision.is_accepted, proposal, state)
        jump = jnp.where(decision.is_accepted, space.distance(old, new), 0)
        return after, scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)

    def _moved(self, key: PRNGKeyArray, old: Int[Array, " k"], num_levels: int | Int[Array, " k"]) -> Int[Array, " k"]:
        if self.reach is None:
            return (old + 1 + random.integers(key, old.shape[0], num_levels - 1)) % num_levels
        steps = random.integers(key, old.shape[0], 2 * self.reach) - self.reach
        new = old + jnp.where(steps < 0, steps, steps + 1)
        return jnp.where((new >= 0) & (new < num_levels), new, old)
