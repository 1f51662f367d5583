"""Help for the compiler."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Shaped


def materialised(v: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """`v` itself, computed once and kept in memory.

    XLA's CPU compiler fuses whatever computes `v` into each of its consumers, so a value that several loops read (or
    one loop reads n times) is computed over and over, and it drops optimisation barriers before it fuses. It does not
    fuse across a scatter, so a scatter of the first element onto itself keeps `v`. Elsewhere this is the identity.
    """
    if v.ndim == 0:
        return v
    return lax.platform_dependent(v, cpu=lambda v: v.at[jnp.zeros((), jnp.int32)].set(v[0]), default=lambda v: v)
