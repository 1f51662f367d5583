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
    chains, draws, _ = values.shape
    shift = values.mean(axis=(0, 1))  # else exponents overflow
    centred, gaps = values - shift, np.diff(betas)
    up, down = np.exp(gaps / 2 * centred[..., :-1]), np.exp(-gaps / 2 * centred[..., 1:])
    first = np.exp(-betas[0] * centred[..., 0])

    def stones(weights: Float[np.ndarray, "chains draws"]) -> float:
        mean = lambda terms: np.tensordot(weights, terms, 2) / weights.sum()  # noqa: E731
        found = np.log(mean(up)) - np.log(mean(down)) + gaps / 2 * (shift[:-1] + shift[1:])
        return float(found.sum() + betas[0] * shift[0] - np.log(mean(first)))

    def parts(weights: Float[np.ndarray, "chains draws"]) -> tuple[float, float]:
        mean = np.tensordot(weights, centred, 2) / weights.sum()
        spread = np.tensordot(weights, centred**2, 2) / weights.sum() - mean**2
        mean = mean + shift
        trapezia = gaps * (mean[1:] + mean[:-1]) / 2
        bends = gaps**2 * np.diff(spread) / 12
        return float(trapezia.sum() + betas[0] * mean[0]), float(bends.sum())

    everything = np.ones((chains, draws))
    trapezia, bends = parts(everything)
    by_rule = _error(lambda weights: float(np.subtract(*parts(weights))), chains, draws)
    return LogNormaliser(
        log_first + stones(everything),
        _error(stones, chains, draws),
        log_first + trapezia - bends,
        float(np.hypot(by_rule, bends / 2)),
    )


def _error(estimate: Callable[[np.ndarray], float], chains: int, draws: int) -> float:
    """The larger of the jackknife's errors over blocks of draws and over chains; NaN with nothing to leave out."""
    per_chain = min(draws, max(2, -(-_BLOCKS // chains)))
    block = np.arange(draws) * per_chain // draws
    errors = []
    for of_chain in (block, np.zeros(draws, int)):
        groups = [(chain, of_chain == each) for chain in range(chains) for each in np.unique(of_chain)]
        if len(groups) < 3:
            continue
        without = []
        for chain, is_out in groups:
            weights = np.ones((chains, draws))
            weights[chain, is_out] = 0
            without.append(estimate(weights))
        count = len(without)
        errors.append(np.sqrt((count - 1) / count * np.square(np.subtract(without, np.mean(without))).sum()))
    return float(max(errors, default=np.nan))
