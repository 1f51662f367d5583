"""How far two sets of states are apart: samples of a model against data, or against samples that are known to be good.

    mmd                MMD^2 = E k(a, a') + E k(b, b') - 2 E k(a, b),   k(x, y) = exp(-(share of sites where x != y))
    marginal_error     mean over sites (and levels) of |E a_i - E b_i|
    covariance_error   Frobenius norm of cov(a) - cov(b)

The last two look at codes 0 and 1 of binary sites, and at one-hot vectors of sites with more levels. Both sets are
integer codes of shape (rows, *sites).
"""

import numpy as np
from jaxtyping import Float, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments
from discrax.learn.frequencies import check_codes, integer_rows

_ROWS_AT_ONCE = 1000


def mmd(a: ArrayLike, b: ArrayLike) -> float:
    """The squared maximum mean discrepancy with the exponential kernel of the average Hamming distance.

    The unbiased estimate (Gretton et al., 2012): pairs of a row with itself do not count, so sets of one law give
    values about 0, of either sign.
    """
    a, b = _rows(a, b)
    if min(len(a), len(b)) < 2:
        raise ValueError(f"Both sets need at least two rows, but they have {len(a)} and {len(b)}.")
    within = sum((_kernel_sum(x, x) - len(x)) / (len(x) * (len(x) - 1)) for x in (a, b))  # k(x, x) = 1
    return within - 2 * _kernel_sum(a, b) / (len(a) * len(b))


@checked_arguments
def marginal_error(a: ArrayLike, b: ArrayLike, num_levels: int = 2) -> float:
    """The mean absolute difference of the frequencies of 1, or of all levels."""
    a, b = (_indicators(x, num_levels) for x in _rows(a, b))
    return float(np.abs(a.mean(axis=0) - b.mean(axis=0)).mean())


@checked_arguments
def covariance_error(a: ArrayLike, b: ArrayLike, num_levels: int = 2) -> float:
    """The Frobenius norm of the difference of the covariance matrices of all sites (and levels)."""
    a, b = (_indicators(x, num_levels) for x in _rows(a, b))
    return float(np.linalg.norm(np.cov(a, rowvar=False, bias=True) - np.cov(b, rowvar=False, bias=True)))


def _rows(a: ArrayLike, b: ArrayLike) -> tuple[Integer[np.ndarray, "a n"], Integer[np.ndarray, "b n"]]:
    first, second = (integer_rows("Both sets", rows) for rows in (a, b))
    lowest = min(first.min(), second.min())
    if lowest < 0:
        raise ValueError(f"Codes are 0 or more, but the smallest is {lowest}.")
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(f"Both sets must have the same sites, but have {first.shape[1:]} and {second.shape[1:]}.")
    return first.reshape(len(first), -1), second.reshape(len(second), -1)


def _kernel_sum(a: Integer[np.ndarray, "a n"], b: Integer[np.ndarray, "b n"]) -> float:
    """The sum of k over all pairs. Equal sites are counted level by level, each a product of matrices."""
    levels, total = range(int(max(a.max(), b.max())) + 1), 0.0
    for start in range(0, len(a), _ROWS_AT_ONCE):
        some = a[start : start + _ROWS_AT_ONCE]
        equal = sum((some == level).astype(np.float32) @ (b == level).astype(np.float32).T for level in levels)
        total += float(np.exp(equal / np.float64(a.shape[1]) - 1).sum())
    return total


def _indicators(rows: Integer[np.ndarray, "rows n"], num_levels: int) -> Float[np.ndarray, "rows m"]:
    check_codes("Both sets", rows, num_levels, "set num_levels")
    if num_levels == 2:
        return rows.astype(np.float64)
    return (rows[:, :, None] == np.arange(num_levels)).reshape(len(rows), -1).astype(np.float64)
