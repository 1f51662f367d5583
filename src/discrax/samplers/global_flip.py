"""The global flip: all free sites change at once, to where the law may have another mode.

    two levels      y_i = 1 - x_i
    ordinal levels  y_i = q_i - 1 - x_i                               the grid back to front
    labels          y_i = (x_i + s d) mod q_i,                        s = +-1, d in 1 .. q - 1, all of them as likely

The way back is the same flip, or the shift by -s d, which is as likely: log A = log pi(y) - log pi(x). Alone it reaches
few states; it is meant to take turns with others (`cycle`, `mixture`).
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.metropolis import decide, select
from discrax.core.space import Ordinal
from discrax.core.target import Target, log_prob, temper


class GlobalFlip(Kernel):
    """Flips all sites, or shifts all labels, if that is accepted."""

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, (for_shift, for_decision) = target.space, random.split(key, 2)
        x, num_levels = state.x.reshape(-1).astype(jnp.int32), space.levels_at()
        if space.has_two_levels or isinstance(space, Ordinal):
            y = num_levels - 1 - x
        else:
            y = (x + self.shift(for_shift, space.num_levels)) % num_levels
        y = y.reshape(space.shape).astype(space.dtype)
        y = y if space.frozen is None else jnp.where(space.frozen.mask, state.x, y)
        there = State(y, log_prob(target, y), ())
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob))
        jump = jnp.where(decision.is_accepted, space.distance(state.x, y), 0)
        info = scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
        return select(decision.is_accepted, there, state), info

    def shift(self, key: PRNGKeyArray, num_levels: int) -> Int[Array, ""]:
        """s d: the same distance up and down is as likely."""
        for_way, for_distance = random.split(key, 2)
        way = 2 * random.integers(for_way, 1, 2)[0] - 1
        return way * (1 + random.integers(for_distance, 1, num_levels - 1)[0])
