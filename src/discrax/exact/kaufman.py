"""The Ising model on a periodic rectangle without a field, exactly (Kaufman, 1949).

With rows of n sites, m of them, and the coupling K of log pi(s) = K sum_<ij> s_i s_j,

    Z = 1/2 (2 sinh 2K)^(mn/2) (P1 + P2 + P3 + P4),
    P1 = prod_r 2 cosh(m g_{2r+1} / 2),    P2 = prod_r 2 sinh(m g_{2r+1} / 2),
    P3 = prod_r 2 cosh(m g_{2r} / 2),      P4 = prod_r 2 sinh(m g_{2r} / 2),        r = 0 .. n-1,
    cosh g_l = cosh 2K coth 2K - cos(pi l / n),    g_0 = 2K + log tanh K.

g_0 changes its sign at the critical point, and P4 with it. Products are kept as logarithms, and derivatives in K as
P'/P and P''/P; only the factor of g_0 in P4, which may be 0, is kept as it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.checks import number, whole

CRITICAL_COUPLING = float(np.log1p(np.sqrt(2.0)) / 2)  # of the infinite lattice


class SquareIsing(NamedTuple):
    """What is known of a periodic rectangle at a coupling K, which is the inverse temperature times J."""

    log_Z: float  # noqa: N815
    energy: float  # a site: the mean of -sum_<ij> s_i s_j, over the number of sites
    heat_capacity: float  # a site: K^2 times the variance of that sum, over the number of sites


def square_ising(shape: Sequence[int], coupling: float) -> SquareIsing:
    """log Z, energy and heat capacity of `discrax.targets.Ising.lattice(shape, coupling, periodic=True)`.

    `shape` has two sides of at least 3 sites; the coupling is not negative.
    """
    if isinstance(shape, str) or not isinstance(shape, Sequence) or len(shape) != 2:
        raise ValueError(f"shape must be the two sides of a rectangle, such as (8, 8), but got {shape!r}.")
    m, n = (whole("A side of the shape", side, least=3, most=10_000) for side in shape)
    K = number("coupling", coupling, least=0, most=100)
    if K < 1e-6:  # to the order of K^2, since shorter loops than of three bonds cancel
        sites = m * n
        return SquareIsing(sites * (np.log(2.0) + K**2), -2 * K, 2 * K**2)
    odd, even = (_rates(K, m, n, np.arange(first, 2 * n, 2)) for first in (1, 0))
    x0, d0, dd0 = (each[0] for each in even)
    rest = tuple(each[1:] for each in even)
    products = [_cosh(*odd), _sinh(*odd), _cosh(*even)]
    log_rest, slope, bend = _sinh(*rest)
    # 2 sinh(x0) and its derivatives, over exp|x0|.
    decay = np.exp(-2 * abs(x0))
    s, c = np.sign(x0) * (1 - decay), 1 + decay
    s1, s2 = c * d0, s * d0**2 + c * dd0
    logs = np.array([*(log for log, _, _ in products), log_rest + abs(x0)])
    scales = np.exp(logs - logs.max())
    values = scales * [1, 1, 1, s]
    first = scales * [*(d for _, d, _ in products), s1 + s * slope]
    second = scales * [*(d**2 + dd for _, d, dd in products), s2 + 2 * s1 * slope + s * (slope**2 + bend)]
    total = values.sum()
    d_log, dd_log = first.sum() / total, second.sum() / total - (first.sum() / total) ** 2
    coth = 1 / np.tanh(2 * K)
    log_Z = m * n / 2 * np.log(2 * np.sinh(2 * K)) - np.log(2) + logs.max() + np.log(total)
    d_log, dd_log = d_log + m * n * coth, dd_log + 2 * m * n * (1 - coth**2)
    return SquareIsing(float(log_Z), float(-d_log / (m * n)), float(K**2 * dd_log / (m * n)))


_Rates = tuple[Float[np.ndarray, " l"], Float[np.ndarray, " l"], Float[np.ndarray, " l"]]


def _rates(K: float, m: int, n: int, l: Integer[np.ndarray, " l"]) -> _Rates:  # noqa: E741
    """x_l = m g_l / 2 and its first two derivatives in K."""
    sinh, cosh = np.sinh(2 * K), np.cosh(2 * K)
    # c = cosh^2 / sinh; c' = 2 cosh (1 - 1 / sinh^2)
    c, d = cosh**2 / sinh, 2 * cosh * (1 - 1 / sinh**2)
    dd = 4 * sinh * (1 - 1 / sinh**2) + 8 * cosh**2 / sinh**3
    with np.errstate(divide="ignore", invalid="ignore"):  # of g_0, which has its own formula
        g = np.arccosh(np.maximum(c - np.cos(np.pi * l / n), 1))
        g1 = d / np.sinh(g)
        g2 = (dd - np.cosh(g) * g1**2) / np.sinh(g)
    is_first = l == 0
    g = np.where(is_first, 2 * K + np.log(np.tanh(K)), g)
    g1 = np.where(is_first, 2 + 2 / sinh, g1)
    g2 = np.where(is_first, -4 * cosh / sinh**2, g2)
    return m * g / 2, m * g1 / 2, m * g2 / 2


def _cosh(x: np.ndarray, d: np.ndarray, dd: np.ndarray) -> tuple[float, float, float]:
    """log prod 2 cosh x, and its first two derivatives."""
    t = np.tanh(x)
    return float(np.logaddexp(x, -x).sum()), float((t * d).sum()), float(((1 - t**2) * d**2 + t * dd).sum())


def _sinh(x: np.ndarray, d: np.ndarray, dd: np.ndarray) -> tuple[float, float, float]:
    """log prod 2 sinh x of positive x, and its first two derivatives."""
    t = 1 / np.tanh(x)
    return float((x + np.log1p(-np.exp(-2 * x))).sum()), float((t * d).sum()), float(((1 - t**2) * d**2 + t * dd).sum())
