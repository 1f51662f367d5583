"""Samplers that print calls "-nA": they are not tuned."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core.kernel import Info, Kernel, State, replaced
from discrax.core.target import Target
from discrax.samplers import get_sampler
from discrax.samplers.continuous_time import DLMC, DLMCf
from discrax.samplers.langevin import total_log_rate


class Untuned(Kernel):
    """A kernel whose scale stays as it is."""

    kernel: Kernel
    uses_gradient: ClassVar[bool] = True

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return self.kernel.init(target, x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        return self.kernel.step(key, target, state)


def untuned(sampler: str, **settings: float) -> Untuned:
    """A sampler of the registry with fixed settings."""
    return Untuned(get_sampler(sampler).build(**settings))


class TimedAtStart(Kernel):
    """DLMC or DLMCf for the time `moves` / Z(x) of the first state x of a chain, at all later states too."""

    kernel: DLMC | DLMCf
    moves: Float[Array, ""]
    uses_gradient: ClassVar[bool] = True

    def __init__(self, sampler: str, moves: float, balancing: str = "sqrt"):
        kernel = get_sampler(sampler).build(per_rate=False, balancing=balancing)
        assert isinstance(kernel, DLMC | DLMCf)
        self.kernel, self.moves = kernel, jnp.asarray(moves, jnp.float32)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        state = self.kernel.init(target, x)
        time = self.moves * jnp.exp(-total_log_rate(target, state, self.kernel.balancing))
        return state._replace(cache=(state.cache, time.astype(jnp.float32)))

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        cache, time = state.cache
        after, info = replaced(self.kernel, step_size=time).step(key, target, state._replace(cache=cache))
        return after._replace(cache=(after.cache, time)), info
