"""Discrete variables of a model of another library as one space: every element of every one is a site of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from discrax.core.space import Binary, Categorical, Space


@dataclass(frozen=True, eq=False)  # compared, as a static field, by identity
class Variables:
    """Variables of finite support, whose elements lie one after another among the sites of a flat space."""

    names: tuple[str, ...]
    lows: tuple[Int[np.ndarray, "..."], ...]  # of the shape of the variable: the least value of each element
    counts: tuple[Int[np.ndarray, "..."], ...]  # and how many values it may have, without a gap

    @property
    def space(self) -> Space:
        """`Binary` where every element has two values, else `Categorical`."""
        counts = np.concatenate([count.reshape(-1) for count in self.counts])
        return Binary(len(counts)) if (counts == 2).all() else Categorical(len(counts), counts)

    @property
    def places(self) -> list[slice]:
        """Where the elements of each variable lie."""
        ends = np.cumsum([low.size for low in self.lows]).tolist()
        return [slice(end - low.size, end) for low, end in zip(self.lows, ends, strict=True)]

    def one_hot(self, e: Float[Array, "..."]) -> Float[Array, "n levels"]:
        """The levels of all elements at the embedding of a state."""
        return jnp.stack([1 - e, e], axis=-1) if e.ndim == 1 else e

    def split(self, flat: Any) -> list[Any]:
        """An array with a flat axis of elements first, variable by variable, in their shapes and with their levels."""
        return [
            flat[place].reshape((*low.shape, *flat.shape[1:]))
            for place, low in zip(self.places, self.lows, strict=True)
        ]

    def values(self, x: Integer[Array | np.ndarray, "*batch n"]) -> dict[str, Any]:
        """The values by name, each of shape (*batch, *shape), from codes: of NumPy where these are, else of JAX."""
        xp, dtype = (np, np.int64) if isinstance(x, np.ndarray) else (jnp, jnp.result_type(int))
        wide = x.astype(dtype)
        values = {}
        for name, place, low in zip(self.names, self.places, self.lows, strict=True):
            mine = wide[..., place].reshape((*x.shape[:-1], *low.shape))
            values[name] = xp.asarray(mine + np.broadcast_to(low, mine.shape).astype(dtype))  # no scalar of NumPy's
        return values

    def codes(self, values: Mapping[str, Any]) -> Integer[Array | np.ndarray, " n"]:
        """The codes of values by name."""
        xp = jnp if any(isinstance(values[name], jax.Array) for name in self.names) else np
        each = (xp.asarray(values[name]).astype(int) - low for name, low in zip(self.names, self.lows, strict=True))
        return xp.concatenate([part.reshape(-1) for part in each]).astype(self.space.dtype)
