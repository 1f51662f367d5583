"""Help for the compiler."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float, Shaped


def materialised(v: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """`v` itself, computed once and kept in memory.

    XLA's CPU compiler fuses whatever computes `v` into each of its consumers, so a value that several loops read (or
    one loop reads n times) is computed over and over, and it drops optimisation barriers before it fuses. It does not
    fuse across a loop whose end it cannot foresee, nor across a scatter. Elsewhere this is the identity.
    """
    if v.ndim == 0:
        return v
    cpu = _through_a_loop if jnp.issubdtype(v.dtype, jnp.floating) else _through_a_scatter
    return lax.platform_dependent(v, cpu=cpu, default=lambda v: v)


def _through_a_loop(v: Float[Array, "..."]) -> Float[Array, "..."]:
    """No number, not even NaN or inf, is both above 1 and below -1, so the loop never runs; XLA does not know that."""

    def is_absurd(v):
        first = v.reshape(-1)[0]
        return (first > 1) & (first < -1)

    return lax.while_loop(is_absurd, jnp.zeros_like, v)


def _through_a_scatter(v: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """The first element is set to itself."""
    return v.at[jnp.zeros((), jnp.int32)].set(v[0])


def chains_last(tree: Any) -> Any:
    """Arrays with a leading axis of chains, laid out in memory with the chains of a site side by side.

    Nothing changes but where numbers lie: a gather of sites then reads whole lines of memory. On a CPU, whose caches
    hold a chain, it is the identity.
    """

    def lay_out(array: Array) -> Array:
        layout = Layout((*range(1, array.ndim), 0))
        return lax.platform_dependent(array, cpu=lambda a: a, default=lambda a: with_layout_constraint(a, layout))

    return jax.tree.map(lay_out, tree)


def numpy_for(*values: Any) -> Any:
    """numpy where all values are there already, else `jax.numpy`: a single operation need not be compiled."""
    return jnp if any(isinstance(value, Tracer) for value in values) else np
