"""Exact laws of factorial hidden Markov models, by forward filtering and backward smoothing over joint states.

A time has C^K joint states s. With the evidence g_l(s) = exp(-(y_l - m(s))^2 / (2 sigma^2)) and the transitions
T(s, s') = exp(stay_logit * #{k: s_k = s'_k}),

    a_1(s) = g_1(s) exp(sum_k initial(s_k)),      a_l(s') = g_l(s') sum_s a_(l-1)(s) T(s, s'),
    b_L(s) = 1,                                    b_l(s) = sum_s' T(s, s') g_(l+1)(s') b_(l+1)(s')

give the normaliser sum_s a_L(s), the marginals P(s_l = s) proportional to a_l(s) b_l(s), and exact draws, backwards:
P(s_l = s | s_(l+1)) is proportional to a_l(s) T(s, s_(l+1)). T is a product over the factors, so a step costs
K C^K and not C^(2K). All in double precision; a and b are normalised at every time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import describe
from discrax.core.space import Space

_MOST_JOINT_STATES = 4096


@runtime_checkable
class FactorialChain(Protocol):
    """What a target must tell of itself, as `discrax.targets.FHMM` and `CategoricalFHMM` do."""

    space: Space  # (L, K): times and factors
    series: Array  # y, (L,)
    offset: Array  # what is added to the sum of the factors' means
    noise_variance: Array  # sigma^2 of y
    stay_logit: Array  # the log-weight of staying at a level, against going to one other
    initial_logits: Array  # (C,): of the levels at the first time
    level_means: Array  # (K, C): what a factor adds to the mean of y


@dataclass(frozen=True)
class ChainLaw:
    """The exact law of a factorial hidden Markov model.

    - `log_normaliser`: log of the sum of exp(target.log_prob) over all states;
    - `marginals`: P(x_lk = c), of shape (L, K, C);
    - `log_prob(x)`: normalised log-probabilities of a batch of codes, in double precision;
    - `draw(key, num)`: independent exact draws, codes of shape (num, L, K).
    """

    log_normaliser: float
    marginals: Float[np.ndarray, "L K C"]
    _codes: Integer[np.ndarray, "S K"]  # of the joint states
    _log_evidence: Float[np.ndarray, "L S"]
    _forward: Float[np.ndarray, "L S"]
    _stay_logit: float
    _dtype: np.dtype

    def log_prob(self, x: ArrayLike) -> Float[np.ndarray, "*batch"]:
        """Normalised log-probabilities of codes of shape (..., L, K)."""
        x = np.asarray(x)
        if x.shape[-2:] != self.marginals.shape[:2]:
            raise ValueError(
                f"Expected states of shape {self.marginals.shape[:2]}, but got an array of shape {x.shape}."
            )
        states = np.ravel_multi_index(tuple(np.moveaxis(x, -1, 0)), self.marginals.shape[2:] * x.shape[-1])
        evidence = self._log_evidence[np.arange(x.shape[-2]), states].sum(axis=-1)
        stays = (x[..., 1:, :] == x[..., :-1, :]).sum(axis=(-2, -1))
        return evidence + self._stay_logit * stays - self.log_normaliser

    def draw(self, key: PRNGKeyArray, num: int) -> Integer[Array, "num L K"]:
        """Independent exact draws, backwards in time."""
        rng, length = np.random.default_rng(random.seed_of(key)), len(self._forward)
        states = np.empty((length, num), np.int64)
        states[-1] = _picks(rng.random(num), self._forward[-1])
        same, other = _transition(self._stay_logit)
        for time in range(length - 2, -1, -1):
            uniform = rng.random(num)
            for after in np.unique(states[time + 1]):
                weights = self._forward[time] * np.where(self._codes == self._codes[after], same, other).prod(axis=1)
                chosen = states[time + 1] == after
                states[time, chosen] = _picks(uniform[chosen], weights)
        return jnp.asarray(self._codes[states.T], self._dtype)


def chain_law(target: FactorialChain) -> ChainLaw:
    """The exact law of an `FHMM` or `CategoricalFHMM` of any length with at most 4,096 joint states a time (C^K)."""
    if isinstance(target, type) or not isinstance(target, FactorialChain):
        raise TypeError(f"target must be an FHMM or a CategoricalFHMM, but got {describe(target)}.")
    space, (length, num_factors), num_levels = target.space, target.space.shape, target.space.num_levels
    if num_levels**num_factors > _MOST_JOINT_STATES:
        raise ValueError(
            f"Forward-backward is for at most {_MOST_JOINT_STATES:,} joint states a time, "
            f"but {num_factors} factors of {num_levels} levels have {num_levels}^{num_factors}; use fewer factors."
        )
    grid = (num_levels,) * num_factors
    codes = np.stack(np.unravel_index(np.arange(num_levels**num_factors), grid), axis=1)
    log_evidence = _log_evidence(target, codes)
    peaks = log_evidence.max(axis=1)
    evidence = np.exp(log_evidence - peaks[:, None])
    same, other = _transition(float(target.stay_logit))

    def step(weights: np.ndarray) -> np.ndarray:
        """The product with T, one factor after another; T is symmetric, so it serves both directions."""
        table = weights.reshape(grid)
        for axis in range(num_factors):
            table = (same - other) * table + other * table.sum(axis=axis, keepdims=True)
        return table.reshape(-1)

    forward, log_sum = _filter(evidence, step)
    # T was divided by exp(stay_logit) or by 1, whichever is larger, once per transition of a factor.
    log_scale = max(float(target.stay_logit), 0.0) * num_factors * (length - 1)
    backward = np.ones_like(forward)
    for time in range(length - 2, -1, -1):
        weights = step(evidence[time + 1] * backward[time + 1])
        backward[time] = weights / weights.sum()
    joint = forward * backward
    joint /= joint.sum(axis=1, keepdims=True)
    marginals = np.stack([joint @ (codes == level) for level in range(num_levels)], axis=-1)
    log_normaliser = log_sum + log_scale + float(peaks.sum())
    return ChainLaw(log_normaliser, marginals, codes, log_evidence, forward, float(target.stay_logit), space.dtype)


def _filter(
    evidence: Float[np.ndarray, "L S"], step: Callable[[np.ndarray], np.ndarray]
) -> tuple[Float[np.ndarray, "L S"], float]:
    """The normalised forward weights of every time, and the logarithm of what they were divided by."""
    forward, log_sum = np.empty_like(evidence), 0.0
    for time in range(len(evidence)):
        weights = evidence[time] if time == 0 else evidence[time] * step(forward[time - 1])
        log_sum += float(np.log(weights.sum()))
        forward[time] = weights / weights.sum()
    return forward, log_sum


def _log_evidence(target: FactorialChain, codes: Integer[np.ndarray, "S K"]) -> Float[np.ndarray, "L S"]:
    """log g_l(s), at l = 1 with the initial weights; -inf where a frozen site has another code."""
    level_means, initial, y = (
        np.asarray(array, np.float64) for array in (target.level_means, target.initial_logits, target.series)
    )
    means = level_means[np.arange(codes.shape[1]), codes].sum(axis=1) + float(target.offset)
    logs = -((y[:, None] - means) ** 2) / (2 * float(target.noise_variance))
    logs[0] += initial[codes].sum(axis=1)
    frozen = target.space.frozen
    if frozen is not None:
        agrees = np.asarray(frozen.codes)[:, None] == codes
        logs[~np.all(agrees | ~np.asarray(frozen.mask)[:, None], axis=2)] = -np.inf
    return logs


def _transition(stay_logit: float) -> tuple[float, float]:
    """The weights of staying and of going to one other level, the larger of them 1."""
    return float(np.exp(min(stay_logit, 0.0))), float(np.exp(min(-stay_logit, 0.0)))


def _picks(uniform: Float[np.ndarray, " n"], weights: Float[np.ndarray, " S"]) -> Integer[np.ndarray, " n"]:
    """Indices drawn in proportion to the weights, by inversion: the first whose cumulative weight exceeds a share."""
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    return np.searchsorted(cumulative, np.minimum(uniform * total, np.nextafter(total, 0)), side="right")
