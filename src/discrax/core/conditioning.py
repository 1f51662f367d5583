"""The law of some sites where others are known: those are frozen in the space, and nothing else changes."""

from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike

from discrax.core.checks import as_array
from discrax.core.sites import freeze
from discrax.core.space import Space

Owner = TypeVar("Owner", bound=eqx.Module)
AnySpace = TypeVar("AnySpace", bound=Space)


def freeze_sites(space: AnySpace, known: ArrayLike, codes: ArrayLike) -> AnySpace:
    """The space with the sites of the mask `known` frozen to their `codes`, and those that were before."""
    if space.totals is not None:
        raise ValueError(
            "The space bounds totals, and what they allow depends on the sites that are known; make a space with "
            "`frozen` and `frozen_codes` in place of conditioning."
        )
    levels = space.num_levels if space.counts is None else np.asarray(space.counts)
    mask, codes = as_array("known", known), as_array("codes", codes)
    if mask.shape == codes.shape and mask.dtype == np.bool_ and np.issubdtype(codes.dtype, np.integer):
        codes = np.where(mask, codes, 0)  # what stands where nothing is known means nothing
    made = freeze(space.shape, levels, mask, codes, called=("known", "codes"))
    if space.frozen is not None:
        before, held = np.asarray(space.frozen.mask), np.asarray(space.frozen.codes)
        if np.any((codes != held)[mask & before]):
            where = np.argwhere(mask & before & (codes != held))[0].tolist()
            raise ValueError(f"Site {where} is frozen to code {held[tuple(where)]} already, and cannot be another.")
        made = freeze(space.shape, levels, mask | before, np.where(before, held, codes))
    return eqx.tree_at(lambda each: each.frozen, space, made, is_leaf=lambda each: each is None)


def with_space(owner: Owner, before: Space, after: Space) -> Owner:
    """The module with another space wherever it held this one."""

    def is_space(each: object) -> bool:
        return isinstance(each, Space)

    if not any(each is before for each in jax.tree.leaves(owner, is_leaf=is_space)):
        raise TypeError(
            f"{type(owner).__name__} makes its space anew whenever it is asked, so that none of its sites can be "
            "frozen from outside; give its space `frozen` and `frozen_codes`."
        )
    return jax.tree.map(lambda each: after if each is before else each, owner, is_leaf=is_space)
