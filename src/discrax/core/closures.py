"""Functions as they were when they were handed over.

A Python function reads what it closes over, and the globals of its module, each time it runs; a compiled program has
read them once. A target that is built from a function must mean what the function meant then, so it is traced then:
arrays become leaves, and every other value part of the code.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr
from jaxtyping import Array


class _Code:
    """A traced function without its arrays; equal to itself only."""

    def __init__(self, jaxpr: Any, inputs: Any, outputs: Any):
        self.jaxpr, self.inputs, self.outputs = jaxpr, inputs, outputs


class Captured(eqx.Module):
    """A function of arrays of the shapes and types for which it was traced."""

    arrays: tuple[Array, ...]
    code: _Code = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        shapes = jax.tree.map(_shape, arguments)
        if shapes != self.code.inputs:
            raise ValueError(
                f"{self.name} was traced for arguments {_show(self.code.inputs)} when its target was built, but got "
                f"{_show(shapes)}; build the target again after a change of precision or of shapes."
            )
        out = eval_jaxpr(self.code.jaxpr, self.arrays, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(self.code.outputs, [jnp.asarray(value) for value in out])


def capture(function: Callable, *examples: Any) -> Callable:
    """`function`, traced now for arguments like the examples (arrays or their shapes).

    A callable that is a pytree, such as an Equinox module, keeps its own leaves and is returned as it is.
    """
    if not _is_plain(function):
        return function
    traced, outputs = jax.make_jaxpr(lambda *arguments: function(*arguments), return_shape=True)(*examples)
    # Copied: a numpy array may be changed in place later.
    arrays = tuple(value if isinstance(value, jax.Array) else jnp.array(value) for value in traced.consts)
    code = _Code(traced.jaxpr, jax.tree.map(_shape, examples), jax.tree.structure(outputs))
    return Captured(arrays, code, getattr(function, "__name__", type(function).__name__))


def _is_plain(function: Any) -> bool:
    leaves = jax.tree.leaves(function)
    return len(leaves) == 1 and leaves[0] is function


def _shape(leaf: Any) -> tuple[tuple[int, ...], str]:
    return tuple(jnp.shape(leaf)), str(leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf))


def _show(shapes: Any) -> str:
    leaves = jax.tree.leaves(
        shapes, is_leaf=lambda node: isinstance(node, tuple) and len(node) == 2 and isinstance(node[1], str)
    )
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in leaves)
