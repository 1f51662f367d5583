"""The asymptotic theory of Sun et al. (2022): how efficient a proposal is that changes R of n binary sites at once.

With Phi the distribution function of the standard normal law, acceptance rate and expected jump distance are

    a(R) = 2 Phi(-(R / unit)^power / 2),     d(R) = R a(R)

    locally balanced paths (PAS)   power = 3/2,   unit = n^(2/3) lambda_1^(-2/3),   d largest at a = 0.574
    random walks (RWM)             power = 1/2,   unit = lambda_2^(-2),             d largest at a = 0.234

Let delta_j(x) be the log-ratio of a flip of site j, w_j = g(exp delta_j) its weight and v_j = g(exp -delta_j) that of
the way back. Then (their equations 7 and 21, whose sums over p_j are these means where sites are independent)

    lambda_1^2 = sum_j E[w_j (w_j - v_j)^2] / (4 (E mean_j w_j)^2 sum_j E w_j),     lambda_2^2 = -2 E mean_j delta_j

`best_exponent` is the alpha(r) by which proposals of any scale are balanced (Sun et al., 2023).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from discrax.core.checks import describe, in_words, real_array
from discrax.core.target import Target, check_target, effective_ratios, evaluate

Balancing = Callable[[Array], Array]  # from log t to log g(t)


class Optimum(NamedTuple):
    """Where a proposal is most efficient."""

    path_length: float  # sites
    acceptance: float
    jump: float  # sites changed a step, on average


class Scaling(NamedTuple):
    """a(R) = 2 Phi(-(R / unit)^power / 2) and what follows from it."""

    unit: float  # sites
    power: float

    def acceptance(self, path_length: ArrayLike) -> np.ndarray:
        """The acceptance rate a(R) of a proposal that changes R = `path_length` sites."""
        from scipy.special import ndtr  # comes with jax; slow to import

        return np.asarray(2 * ndtr(-((np.asarray(path_length) / self.unit) ** self.power) / 2))

    def path_length(self, rate: ArrayLike) -> np.ndarray:
        """The R that is accepted at a rate: the inverse of `acceptance`."""
        from scipy.special import ndtri

        return np.asarray(self.unit * (-2 * ndtri(np.asarray(rate) / 2)) ** (1 / self.power))

    def jump(self, rate: ArrayLike) -> np.ndarray:
        """The expected jump distance R a(R) of the R that is accepted at a rate."""
        return np.asarray(np.asarray(rate) * self.path_length(rate))

    @property
    def optimum(self) -> Optimum:
        """Where the expected jump distance is largest; its rate depends on `power` alone."""
        rates = np.linspace(1e-4, 1 - 1e-4, 100_001)
        best = float(rates[np.argmax(self.jump(rates))])
        return Optimum(float(self.path_length(best)), best, float(self.jump(best)))


def scaling(probs: ArrayLike, balancing: Balancing | None = None) -> Scaling:
    """Of independent bits with these success probabilities, for paths of weight g; without `balancing` random walks.

    `balancing` maps log t to log g(t), as `dx.samplers.balancing` does.
    """
    p = real_array("probs", probs)
    if p.ndim != 1 or not p.size or not ((p > 0) & (p < 1)).all():
        raise ValueError(f"probs must be one per site, strictly between 0 and 1, but got {describe(probs)}.")
    log_odds = np.log(p) - np.log1p(-p)
    return _scaling(np.stack([log_odds, -log_odds]), np.stack([1 - p, p]), balancing)


def scaling_at(target: Target, states: ArrayLike, balancing: Balancing | None = None) -> Scaling:
    """Of any binary target, E being the mean over `states`, draws from it; sites are taken as if independent."""
    check_target(target)
    if not target.space.has_two_levels:
        raise ValueError(f"The theory is one of binary sites, but this target has {target.space.num_levels} levels.")
    given = np.asarray(states)
    target.space.check(given)
    if given.ndim != len(target.space.shape) + 1 or not len(given):
        raise ValueError(f"states must be draws, of shape (draws, *{target.space.shape}), but got {describe(states)}.")
    draws = jnp.asarray(given, target.space.dtype)
    ratios = jax.vmap(lambda x: effective_ratios(target, x, evaluate(target, x).ratios))(draws)
    ratios = np.asarray(ratios, np.float64)
    return _scaling(ratios, np.full(ratios.shape, 1 / len(ratios)), balancing)


def bernoulli_optimum(probs: ArrayLike, balancing: Balancing) -> Optimum:
    """The most efficient path length of PAS on independent bits, its acceptance rate and jump distance."""
    if not callable(balancing):
        raise TypeError(f"balancing must be a function from log t to log g(t), but got {describe(balancing)}.")
    return scaling(probs, balancing).optimum


def _scaling(
    delta: Float[np.ndarray, "draws n"], probs: Float[np.ndarray, "draws n"], balancing: Balancing | None
) -> Scaling:
    n = delta.shape[1]
    if balancing is None:
        squared = -2 * np.sum(probs * delta) / n  # lambda_2^2
        return Scaling(float(1 / squared) if squared > 0 else np.inf, 1 / 2)
    w, v = _weights(delta, balancing), _weights(-delta, balancing)
    mean = np.sum(probs * w) / n
    squared = np.sum(probs * w * (w - v) ** 2) / (4 * mean**2 * n * mean)  # lambda_1^2
    return Scaling(float((n**2 / squared) ** (1 / 3)) if squared > 0 else np.inf, 3 / 2)


def _weights(delta: Float[np.ndarray, "draws n"], balancing: Balancing) -> Float[np.ndarray, "draws n"]:
    if not callable(balancing):
        raise TypeError(f"balancing must be a function from log t to log g(t), but got {describe(balancing)}.")
    try:
        found = balancing(jnp.asarray(delta))
    except Exception as error:
        raise ValueError(f"balancing must be a function of log t, but raises {in_words(error)}") from error
    weights = np.exp(real_array("What balancing returns", found))
    if weights.shape != delta.shape:
        raise ValueError(f"balancing must return a number for each of {delta.shape}, but returns {weights.shape}.")
    return weights


def best_exponent(r: ArrayLike) -> np.ndarray:
    """alpha(r) = (r - 2 + sqrt(r^2 + 4)) / (2 r), r = sigma / sigma_0, written so that it keeps its digits for small r.

    With it the proposal q(y|x) ~ (pi(y) / pi(x))^alpha exp(-(y - x)^2 / (2 sigma)) leaves pi = N(0, sigma_0) as it is.
    """
    r = real_array("r", r)
    if not (r >= 0).all():
        raise ValueError(f"r is a ratio of scales, at least 0, but got {describe(r)}.")
    return np.asarray(0.5 + 0.5 * r / (np.sqrt(r**2 + 4) + 2))
