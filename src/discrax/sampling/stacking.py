"""Trees of arrays side by side along a new leading axis, and apart again.

It is done on the host: on an accelerator every slice would be a program of its own.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from discrax.core.kernel import Kernel

Tree = TypeVar("Tree")


def structure_of(tree: Any) -> Any:
    """What must be equal for two trees to be stacked: everything but the values of arrays (and a kernel's capacity)."""
    if isinstance(tree, Kernel) and tree.capacity is not None:
        tree = tree.with_capacity(0)
    arrays, static = eqx.partition(tree, eqx.is_array_like)
    shapes = tuple((np.shape(leaf), str(jnp.result_type(leaf))) for leaf in jax.tree.leaves(arrays))
    leaves, structure = jax.tree.flatten(static)
    return jax.tree.structure(arrays), shapes, structure, tuple(leaves)


def stack(trees: Sequence[Tree]) -> Tree:
    """One tree whose arrays have a leading axis, from trees of one structure."""
    parts = [eqx.partition(tree, eqx.is_array_like) for tree in trees]
    arrays = jax.tree.map(_stack, *(arrays for arrays, _ in parts))
    return eqx.combine(arrays, parts[0][1])


def stack_shared(trees: Sequence[Tree]) -> tuple[Tree, Any]:
    """As `stack`, but an array that is one object in all trees stays as it is.

    Also returns the axes, a tree with 0 for each array that was stacked and None for each that was not.
    """
    parts = [eqx.partition(tree, eqx.is_array_like) for tree in trees]

    def is_shared(*leaves: Any) -> bool:
        return len(leaves) > 1 and all(leaf is leaves[0] for leaf in leaves)

    arrays = jax.tree.map(
        lambda *leaves: jnp.asarray(leaves[0]) if is_shared(*leaves) else _stack(*leaves), *(each for each, _ in parts)
    )
    axes = jax.tree.map(lambda *leaves: None if is_shared(*leaves) else 0, *(each for each, _ in parts))
    return eqx.combine(arrays, parts[0][1]), axes


def _stack(*leaves: Any) -> Array:
    if isinstance(leaves[0], jax.Array) and jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]), jnp.result_type(leaves[0]))


def split(tree: Tree, count: int) -> list[Tree]:
    """The trees that were stacked, on the host."""
    arrays, static = eqx.partition(tree, eqx.is_array)
    arrays = jax.device_get(arrays)
    return [eqx.combine(jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), arrays), static) for i in range(count)]
