"""log Z of a target from draws at the rungs of a path log p_b = log p_0 + b V, 0 <= b_0 < .. < b_K = 1.

- Stepping stones meet half-way between neighbours, with draws of both (d = b_k+1 - b_k):

      log Z_k+1 / Z_k = log E_k [exp(d V / 2)] - log E_k+1 [exp(-d V / 2)].

- Thermodynamic integration: d log Z_b / db = E_b[V], whose own derivative is Var_b[V], so that between neighbours

      log Z_k+1 / Z_k = d (E_k[V] + E_k+1[V]) / 2 - d^2 (Var_k+1[V] - Var_k[V]) / 12 + O(d^5).

  Half of what the second term adds up to is counted as an error of the rule.

The way from b = 0 to the first rung, where that is not 0, is a stone with draws of the first rung alone.

Errors are those of the jackknife: blocks of draws that all rungs of a chain share are left out one at a time, since
replicas wander from rung to rung. Where whole chains differ more than blocks of draws let expect, the error is that of
leaving out chains.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_BLOCKS = 40  # of all chains together, at least


class LogNormaliser(NamedTuple):
    """log Z by two estimators from the same draws, each with its standard error."""

    log_Z: float  # noqa: N815  by stepping stones
    error: float
    integral: float  # by thermodynamic integration
    integral_error: float

    def __str__(self) -> str:
        return (
            f"{self.log_Z:.4f} +- {self.error:.4f} by stepping stones, {self.integral:.4f} +- "
            f"{self.integral_error:.4f} by thermodynamic integration"
        )


def log_normaliser_of_path(
    log_ratios: Float[np.ndarray, "chains draws rungs"], betas: Float[np.ndarray, " rungs"], log_first: float = 0.0
) -> LogNormaliser:
    """log Z of p_1, from V at draws of each rung and log Z of p_0; without the latter, of their ratio."""
    values, betas = np.asarray(log_ratios, np.float64), np.asarray(betas, np.float64)
    chains, draws, rungs = values.shape
    shift = values.mean(axis=(0, 1))  # else exponents overflow
    centred, gaps = values - shift, np.diff(betas)
    up, down = np.exp(gaps / 2 * centred[..., :-1]), np.exp(-gaps / 2 * centred[..., 1:])
    first = np.exp(-betas[0] * centred[..., :1])
    terms = np.concatenate([up, down, first, centred, centred**2], axis=-1)
    cuts = np.cumsum([rungs - 1, rungs - 1, 1, rungs])

    def stones(means: Float[np.ndarray, " terms"]) -> float:
        up, down, first, _, _ = np.split(means, cuts)
        found = np.log(up) - np.log(down) + gaps / 2 * (shift[:-1] + shift[1:])
        return float(found.sum() + betas[0] * shift[0] - np.log(first[0]))

    def integral(means: Float[np.ndarray, " terms"]) -> tuple[float, float]:
        _, _, _, mean, square = np.split(means, cuts)
        bends = gaps**2 * np.diff(square - mean**2) / 12
        mean = mean + shift
        return float((gaps * (mean[1:] + mean[:-1]) / 2 - bends).sum() + betas[0] * mean[0]), float(bends.sum())

    blocks = np.arange(draws) * min(draws, max(2, -(-_BLOCKS // chains))) // draws
    firsts = np.flatnonzero(np.diff(blocks, prepend=-1))
    sums, sizes = np.add.reduceat(terms, firsts, axis=1), np.bincount(blocks).astype(float)
    means = sums.sum(axis=(0, 1)) / (chains * draws)
    value, bend = integral(means)
    return LogNormaliser(
        log_first + stones(means),
        _error(stones, sums, sizes),
        log_first + value,
        float(np.hypot(_error(lambda means: integral(means)[0], sums, sizes), bend / 2)),
    )


def _error(
    estimate: Callable[[np.ndarray], float],
    sums: Float[np.ndarray, "chains blocks terms"],
    sizes: Float[np.ndarray, " blocks"],
) -> float:
    """The larger of the jackknife's errors over blocks of draws and over chains; NaN with nothing to leave out."""
    chains, errors = len(sums), []
    total, count = sums.sum(axis=(0, 1)), chains * sizes.sum()
    by_block = (sums.reshape(-1, sums.shape[-1]), np.tile(sizes, chains))
    by_chain = (sums.sum(axis=1), np.full(chains, sizes.sum()))
    for left_out, their_size in (by_block, by_chain):
        if (num := len(left_out)) < 3:
            continue
        without = [estimate((total - part) / (count - size)) for part, size in zip(left_out, their_size, strict=True)]
        errors.append(np.sqrt((num - 1) / num * np.square(np.subtract(without, np.mean(without))).sum()))
    return float(max(errors, default=np.nan))
