"""Estimates of log Z from independent weights w whose mean is Z."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer
from numpy.typing import ArrayLike

from discrax.core.programs import compiled
from discrax.core.target import Target

_RESAMPLES = 2000
_FEW = 10  # effective weights
_ROWS_AT_ONCE = 256


class Normaliser(NamedTuple):
    """An estimate of log Z, with what it rests on: independent weights w, of chains or of populations, of mean Z."""

    log_Z: float  # noqa: N815
    error: float  # the standard error of log_Z, by the delta method
    interval: tuple[float, float]  # of 95 %
    num_effective: float  # (sum w)^2 / sum w^2: how many equal weights would be as good
    log_weights: Float[np.ndarray, " weights"]
    states: Integer[np.ndarray, "states *shape"]  # where chains or particles ended: near draws of the target
    acceptance: Float[np.ndarray, " temperatures"]

    @property
    def warning(self) -> str | None:
        """A sentence where the weights are too uneven for the error to be believed."""
        if self.num_effective >= min(_FEW, len(self.log_weights) / 2):
            return None
        return (
            f"Only {self.num_effective:.1f} of {len(self.log_weights)} weights count: log Z is probably larger and the "
            "error underrated; use more temperatures, steps, chains or particles, or a reference nearer to the target."
        )

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"log Z = {self.log_Z:.3f} +- {self.error:.3f} (95 %: {low:.3f} to {high:.3f}; {self.num_effective:.1f} of "
            f"{len(self.log_weights)} weights effective; mean acceptance {self.acceptance.mean():.2f})"
        )
        return text if self.warning is None else f"{text}\n{self.warning}"

    def log_likelihood(self, target: Target, rows: ArrayLike) -> tuple[float, float]:
        """The mean of log p(x) over rows of codes, in nats, and its standard error: that of the rows and of log Z."""
        rows = np.asarray(rows)
        target.space.check(rows)
        if rows.ndim != len(target.space.shape) + 1 or len(rows) < 2:
            raise ValueError(
                f"rows must be two or more states, (rows, {', '.join(map(str, target.space.shape))}), "
                f"but have shape {rows.shape}."
            )
        values = log_probs_of(target, rows)
        of_rows = values.std(ddof=1) / math.sqrt(len(values))
        return float(values.mean()) - self.log_Z, math.hypot(of_rows, self.error)


def from_chains(
    log_weights: Float[np.ndarray, " chains"],
    states: Integer[np.ndarray, "chains *shape"],
    acceptance: Float[np.ndarray, " temperatures"],
) -> Normaliser:
    """From weights of many chains: an interval by the bootstrap."""
    log_Z, error, num_effective = _mean(log_weights)
    largest, n = log_weights.max(), len(log_weights)
    weights = np.exp(log_weights - largest)
    picks = np.random.default_rng(0).integers(0, n, (_RESAMPLES, n))
    resampled = np.log(weights[picks].mean(axis=1).clip(np.finfo(float).tiny)) + largest
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Normaliser(log_Z, error, (float(low), float(high)), num_effective, log_weights, states, acceptance)


def from_populations(
    log_weights: Float[np.ndarray, " populations"],
    states: Integer[np.ndarray, "particles *shape"],
    acceptance: Float[np.ndarray, " temperatures"],
) -> Normaliser:
    """From weights of a few populations, that are nearly normal: an interval by Student's law."""
    from scipy.special import stdtrit  # here, since it takes half a second

    log_Z, error, num_effective = _mean(log_weights)
    half = error * float(stdtrit(len(log_weights) - 1, 0.975))
    return Normaliser(log_Z, error, (log_Z - half, log_Z + half), num_effective, log_weights, states, acceptance)


def _mean(log_weights: Float[np.ndarray, " weights"]) -> tuple[float, float, float]:
    """log of the mean weight, its standard error by the delta method, and how many equal weights would be as good."""
    if np.isnan(log_weights).any() or not np.isfinite(log_weights.max()):
        raise ValueError("The weights are NaN, infinite or all 0: log_prob is not a finite number where chains went.")
    weights = np.exp(log_weights - log_weights.max())
    mean, n = weights.mean(), len(weights)
    error = float(weights.std(ddof=1) / mean / math.sqrt(n))
    return float(np.log(mean) + log_weights.max()), error, float(weights.sum() ** 2 / (weights**2).sum())


def log_probs_of(target: Target, rows: Integer[np.ndarray, "rows *shape"]) -> Float[np.ndarray, " rows"]:
    """The unnormalised log-probabilities of rows of codes."""
    arguments = (target, jnp.asarray(rows, target.space.dtype))
    program, _ = compiled(_log_probs, arguments, {})
    return np.asarray(program(arguments), np.float64)


def _log_probs(target: Target, rows: Integer[Array, "rows *shape"]) -> Float[Array, " rows"]:
    return jax.lax.map(lambda x: target.log_prob(target.space.embed(x)), rows, batch_size=_ROWS_AT_ONCE)
