"""Observers: what is seen of a run inside its compiled loop, and what of it the host is handed.

An observer looks at the whole ensemble: every array has a leading axis of chains. It is part of the program, so it has
no arrays of its own; what it remembers from draw to draw is carried by the loop.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.kernel import Info, PartCaches, State
from discrax.core.statistics import RunningMoments, add_to_moments, no_moments
from discrax.core.target import Target, temper

STATS = (*Info._fields, "lp")  # what is recorded of every draw
PART_STATS = ("accept_prob", "jump")  # and, as "jump[0]", of each part of a kernel that is made of others


class Observer(eqx.Module):
    """Something that looks at every draw."""

    sees_every_step: ClassVar[bool] = False  # also those between two draws, of which the host hears nothing

    @abstractmethod
    def init(self, target: Target, states: State) -> Any:
        """What it remembers before the first step; None if nothing, ever."""

    @abstractmethod
    def look(self, target: Target, memory: Any, states: State, info: Info) -> tuple[Any, Any]:
        """What it remembers after a draw, and what the host is handed of it (chains first)."""

    def unpack(self, handed: Any, thinning: int) -> Any:
        """What the host makes of what it was handed of a chunk, axes (draw, chain, ...), on the host."""
        return handed


class Draws(Observer):
    """The codes of every draw."""

    def init(self, target: Target, states: State) -> None:
        return None

    def look(self, target: Target, memory: None, states: State, info: Info) -> tuple[None, Array]:
        return None, states.x


class Stats(Observer):
    """Statistics of every draw by name: the fields of `Info`, and the tempered log-probability "lp".

    Of a kernel that is made of others also `PART_STATS` of each, in the last step of the draw.
    """

    def init(self, target: Target, states: State) -> None:
        return None

    def look(self, target: Target, memory: None, states: State, info: Info) -> tuple[None, Array]:
        stats, cache = _stats(target, states, info), states.cache
        if not isinstance(cache, PartCaches):
            return None, stats
        of_parts = [getattr(each, name)[:, None] for each in cache.infos for name in PART_STATS]
        return None, jnp.concatenate([stats, *of_parts], axis=1)

    def unpack(self, handed: Array | np.ndarray, thinning: int) -> dict[str, np.ndarray]:
        values = np.moveaxis(np.asarray(handed), -1, 0)
        num_parts = (len(values) - len(STATS)) // len(PART_STATS)
        names = (*STATS, *(f"{name}[{part}]" for part in range(num_parts) for name in PART_STATS))
        columns = dict(zip(names, values, strict=True))
        kinds = {} if thinning > 1 else {"is_accepted": bool, "is_invalid": bool}
        return columns | {name: columns[name].astype(kind) for name, kind in kinds.items()}


def _stats(target: Target, states: State, info: Info) -> Float[Array, "chains stats"]:
    """One array, since on a GPU every array that is written is a kernel of its own."""
    stats = (*info, temper(target, states.log_prob))
    return jnp.stack([stat.astype(jnp.float32) for stat in stats], axis=-1)


class Moments(Observer):
    """Running moments of the embedding and of the statistics: memory does not grow with the draws."""

    def init(self, target: Target, states: State) -> tuple[RunningMoments, RunningMoments]:
        sites = jax.vmap(lambda x: no_moments(target.space.embed(x)))(states.x)
        return sites, jax.vmap(lambda _: no_moments(jnp.zeros(len(STATS))))(states.x)

    def look(
        self, target: Target, memory: tuple[RunningMoments, RunningMoments], states: State, info: Info
    ) -> tuple[tuple[RunningMoments, RunningMoments], None]:
        sites, scalars = memory
        add = jax.vmap(add_to_moments)
        sites = add(sites, jax.vmap(target.space.embed)(states.x), info.log_weight)
        return (sites, add(scalars, _stats(target, states, info), jnp.zeros_like(info.log_weight))), None


class BestState(NamedTuple):
    """The most probable state that each chain has been in."""

    x: Integer[Array, "chains *shape"]
    log_prob: Float[Array, " chains"]  # untempered


class Best(Observer):
    """The most probable state of every chain, of all its steps."""

    sees_every_step: ClassVar[bool] = True

    def init(self, target: Target, states: State) -> BestState:
        return BestState(states.x, states.log_prob)

    def look(self, target: Target, memory: BestState, states: State, info: Info) -> tuple[BestState, None]:
        is_better = states.log_prob > memory.log_prob
        of_sites = is_better.reshape(-1, *(1,) * (states.x.ndim - 1))
        x = jnp.where(of_sites, states.x, memory.x)
        return BestState(x, jnp.where(is_better, states.log_prob, memory.log_prob)), None
