"""How often sites have their levels in data: where models, chains and bridges start."""

import numpy as np
from jaxtyping import Float, Integer
from numpy.typing import ArrayLike

from discrax.core import checks
from discrax.data.images import shares

_UNIFORM = 0.02  # the share of the uniform law that is mixed in


@checks.checked_arguments
def frequencies(rows: ArrayLike, num_levels: int = 2) -> Float[np.ndarray, "..."]:
    """How often each site is 1, or has each level, over rows of codes; a little mixed with 1/2, see `smoothed`."""
    rows = integer_rows("rows", rows)
    check_codes("rows", rows, num_levels, "draw dynamic images with `binarise`, or set num_levels")
    return smoothed(shares(rows, num_levels), num_levels)


def integer_rows(name: str, rows: ArrayLike) -> Integer[np.ndarray, "rows *sites"]:
    """Codes of one or more states, the first axis counting them."""
    try:
        found = np.asarray(rows)
    except ValueError:  # lists of different lengths, or of arrays
        found = None
    if found is None or found.ndim < 2 or not found.size or not np.issubdtype(found.dtype, np.integer):
        came = checks.describe(rows) if found is None else f"{found.dtype} of shape {found.shape}"
        raise ValueError(f"{name} must be integer codes (rows, *sites), but got {came}.")
    return found


def check_codes(name: str, codes: Integer[np.ndarray, "..."], num_levels: int, remedy: str) -> None:
    """Codes of so many levels, or a sentence that ends with what to do."""
    if codes.min() < 0 or codes.max() >= num_levels:
        raise ValueError(
            f"{name} must hold codes 0..{num_levels - 1}, but they run from {codes.min()} to {codes.max()}; {remedy}."
        )


def smoothed(p: ArrayLike, num_levels: int = 2) -> Float[np.ndarray, "..."]:
    """Probabilities mixed with 2 % of the uniform law, so that nothing is impossible."""
    return (1 - _UNIFORM) * np.asarray(p, float) + _UNIFORM / num_levels
