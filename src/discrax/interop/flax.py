"""Flax: an energy written as a module, linen or nnx, is a target, and is trained as any other.

    target = from_flax(model, space, variables)  # linen: variables of model.init
    target = from_flax(model, space)  # nnx: the module has its own
    trained = discrax.learn.pcd(key, target, data).model
    variables = to_flax(trained)  # or the nnx module, with what was learnt

A module maps the embedding of one state (`space.embed`: 0 and 1, -1 and 1, or one-hot rows) to its log-probability, up
to a constant: a number, or an array that holds one.
"""

from typing import Any

from jaxtyping import Array, Float

from discrax.core.checks import describe
from discrax.core.extras import import_extra
from discrax.core.space import Space
from discrax.core.target import AppliedTarget, Target

__all__ = ["from_flax", "to_flax"]


def from_flax(model: Any, space: Space, variables: Any = None) -> Target:
    """The target of a module; `variables` are those of a linen module, as `model.init` makes them."""
    linen = import_extra("flax.linen", "A module of Flax needs", "flax")
    nnx = import_extra("flax.nnx", "A module of Flax needs", "flax")
    if isinstance(model, linen.Module):
        if variables is None:
            raise TypeError("A linen module needs its variables: from_flax(model, space, model.init(key, e)).")
        return Target.from_apply(_Linen(model), variables, space)
    if isinstance(model, nnx.Module):
        if variables is not None:
            raise TypeError("An nnx module has its own variables: from_flax(model, space).")
        graph, state = nnx.split(model)
        return Target.from_apply(_Nnx(graph), state, space)
    raise TypeError(f"model must be a module of flax.linen or flax.nnx, but got {describe(model)}.")


def to_flax(target: Target) -> Any:
    """What a target of `from_flax` holds now: the variables of a linen module, or the nnx module."""
    if isinstance(target, AppliedTarget) and isinstance(target.apply, _Linen):
        return target.params
    if isinstance(target, AppliedTarget) and isinstance(target.apply, _Nnx):
        return import_extra("flax.nnx", "A module of Flax needs", "flax").merge(target.apply.graph, target.params)
    raise TypeError(f"to_flax takes a target that from_flax made, or one trained from it, but got {describe(target)}.")


class _Linen:
    """Equal to others of an equal module, so that a program compiled for one serves all."""

    def __init__(self, model: Any):
        self.model = model

    def __call__(self, params: Any, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.model.apply(params, e).reshape(())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Linen) and self.model == other.model

    def __hash__(self) -> int:
        return hash((_Linen, type(self.model)))


class _Nnx:
    """Equal to others of an equal graph."""

    def __init__(self, graph: Any):
        self.graph = graph

    def __call__(self, params: Any, e: Float[Array, "..."]) -> Float[Array, ""]:
        nnx = import_extra("flax.nnx", "A module of Flax needs", "flax")
        return nnx.merge(self.graph, params)(e).reshape(())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nnx) and self.graph == other.graph

    def __hash__(self) -> int:
        return hash((_Nnx, self.graph))
