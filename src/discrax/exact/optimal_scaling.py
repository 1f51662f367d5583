"""The asymptotic theory of Sun et al. (2022) for locally balanced proposals on independent binary sites.

With success probabilities p_j, weights w_j(v) = g(probability of the other level / probability of v) at x_j = v and a
path of R = l n^(2/3) sites, the acceptance rate tends to a = 2 Phi(-lambda l^(3/2) / 2), where

    lambda^2 = sum_j p_j w_j(1) (w_j(0) - w_j(1))^2 / ( 4 (mean_i E w_i(x_i))^2 sum_i p_i w_i(1) )

The expected jump distance a R is largest where lambda^(2/3) l = 1.081; there a = 0.574 whatever the target.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from discrax.core.checks import describe, in_words, real_array

RATE = 0.574
_BEST = 1.081


class Optimum(NamedTuple):
    """Where a locally balanced proposal is most efficient."""

    path_length: float  # sites
    acceptance: float
    jump: float  # sites changed a step, on average


def bernoulli_optimum(probs: np.ndarray, balancing: Callable[[Array], Array]) -> Optimum:
    """The most efficient path length, its acceptance rate and jump distance; `balancing` maps log t to log g(t)."""
    p = real_array("probs", probs)
    if p.ndim != 1 or not p.size or not ((p > 0) & (p < 1)).all():
        raise ValueError(f"probs must be one per site, strictly between 0 and 1, but got {describe(probs)}.")
    if not callable(balancing):
        raise TypeError(f"balancing must be a function from log t to log g(t), but got {describe(balancing)}.")
    log_odds = np.log(p) - np.log1p(-p)
    try:
        balancing(jnp.asarray(log_odds))
    except Exception as error:
        raise ValueError(f"balancing must be a function of log t, but raises {in_words(error)}") from error
    w0, w1 = (
        np.exp(real_array("What balancing returns", balancing(jnp.asarray(log_ratio))))
        for log_ratio in (log_odds, -log_odds)
    )
    if w0.shape != p.shape:
        raise ValueError(f"balancing must return one number per site, {p.shape}, but returns shape {w0.shape}.")
    mean_weight = np.mean(p * w1 + (1 - p) * w0)
    squared = np.sum(p * w1 * (w0 - w1) ** 2) / (4 * mean_weight**2 * np.sum(p * w1))
    length = _BEST * squared ** (-1 / 3) * p.size ** (2 / 3)
    return Optimum(length, RATE, RATE * length)
