"""What describes the sites of a space: their shape, their numbers of levels, and which of them are frozen."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, describe, whole

_MOST_SITES = 2**31  # sites are counted in 32 bits


def code_dtype(num_levels: int) -> np.dtype:
    """The smallest integer type that holds the codes `0 .. num_levels - 1`."""
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32):
        if num_levels - 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    raise ValueError(f"A site may have at most 2^31 levels, but num_levels is {num_levels}.")


def checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """The sizes of a space along its axes, from one number or several."""
    sizes: tuple = tuple(shape) if isinstance(shape, Sequence | np.ndarray) and np.ndim(shape) else (shape,)
    if not all(isinstance(size, int | np.integer) and not isinstance(size, bool) for size in sizes):
        raise TypeError(f"Sizes of a space are whole numbers, but got {describe(shape)}.")
    sizes = tuple(int(size) for size in sizes)
    if not sizes or any(size < 1 for size in sizes):
        raise ValueError(f"A space needs a shape of positive sizes, but got {describe(shape)}.")
    if math.prod(sizes) >= _MOST_SITES:
        raise ValueError(f"A space must have fewer than 2^31 sites, but the shape {describe(shape)} has more.")
    return sizes


def checked_levels(num_levels: int | Sequence[int] | np.ndarray, shape: tuple[int, ...]) -> int | np.ndarray:
    """One number of levels, or one per site."""
    if np.ndim(num_levels) == 0:
        return int(whole("num_levels", num_levels, least=2, most=2**31 - 1))
    levels = as_array("num_levels", num_levels)
    if levels.shape != shape or not np.issubdtype(levels.dtype, np.integer):
        raise ValueError(
            f"num_levels is a whole number, or one per site in an array of shape {shape}, but got {levels.dtype} of "
            f"shape {levels.shape}."
        )
    if levels.min() < 2 or levels.max() >= 2**31:
        raise ValueError(
            f"A site has at least 2 and fewer than 2^31 levels, but num_levels holds {levels.min()}..{levels.max()}; "
            "freeze a site that cannot change."
        )
    return levels.astype(np.int64)


class Frozen(eqx.Module):
    """Sites that never change: clamped variables, padded graphs, the given words of a sentence."""

    mask: Bool[Array, "*shape"]
    codes: Integer[Array, "*shape"]
    free_sites: Int[Array, " n"]  # indices of the free sites first, so that a random free site is one look-up
    num_free: Int[Array, ""]


def freeze(
    shape: tuple[int, ...], num_levels: int | np.ndarray, mask: ArrayLike | None, codes: ArrayLike | None,
    called: tuple[str, str] = ("frozen", "frozen_codes"),
) -> Frozen | None:  # fmt: skip
    """What a space keeps of its arguments `frozen` and `frozen_codes`; `num_levels` may be one per site."""
    if mask is None:
        if codes is not None:
            raise ValueError("frozen_codes was given without `frozen`, the mask of the sites it holds for.")
        return None
    mask, (name, name_of_codes) = as_array(called[0], mask), called
    if mask.shape != shape or mask.dtype != np.bool_:
        raise ValueError(f"{name} must be a boolean mask of shape {shape}, but got {mask.dtype} of shape {mask.shape}.")
    if mask.all():
        raise ValueError("All sites are frozen: there is nothing to sample.")
    codes = np.zeros(shape, np.int64) if codes is None else as_array(name_of_codes, codes)
    if not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"{name_of_codes} must hold integer codes, but got an array of {codes.dtype}.")
    if codes.shape != shape or ((codes < 0) | (codes >= num_levels)).any():
        came = f"shape {codes.shape}" if codes.shape != shape else f"codes {codes.min()}..{codes.max()}"
        most = f"0..{num_levels - 1}" if np.ndim(num_levels) == 0 else "the levels of their sites"
        raise ValueError(f"{name_of_codes} must have shape {shape} and codes in {most}, but got {came}.")
    order = np.argsort(mask.reshape(-1), kind="stable")
    return Frozen(
        jnp.asarray(mask),
        jnp.asarray(np.where(mask, codes, 0), code_dtype(int(np.max(num_levels)))),
        jnp.asarray(order, jnp.int32),
        jnp.asarray((~mask).sum(), jnp.int32),
    )
