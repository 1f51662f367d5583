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

_FEW = 10  # effective weights
_LARGEST_VARIANCE = 8.0  # of log-weights: more says no more than that nothing is known
_ROWS_AT_ONCE = 256


class Normaliser(NamedTuple):
    """An estimate of log Z, with what it rests on: independent weights w, of chains or of populations, of mean Z."""

    log_Z: float  # noqa: N815
    error: float  # the standard error of log_Z
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


def from_weights(
    log_weights: Float[np.ndarray, " weights"],
    states: Integer[np.ndarray, "states *shape"],
    acceptance: Float[np.ndarray, " temperatures"],
) -> Normaliser:
    """From independent weights of chains or of populations.

    With r the relative variance of w, the error of log mean(w) is sqrt(r / n). A few weights that spread over orders of
    magnitude show too little of r, since most of it is in weights that did not come. So r is the larger of that of the
    weights and of a log-normal law, exp(v) - 1 (and where a share p of them is not 0, exp(v) / p - 1), where v is the
    variance of the logarithms above their median: how far below it others are does not matter to the mean.
    """
    from scipy.special import stdtrit  # here, since it takes half a second

    if np.isnan(log_weights).any() or not np.isfinite(log_weights.max()):
        raise ValueError("The weights are NaN, infinite or all 0: log_prob is not a finite number where chains went.")
    weights, n = np.exp(log_weights - log_weights.max()), len(log_weights)
    mean, possible = weights.mean(), log_weights[np.isfinite(log_weights)]
    above = np.maximum(possible - np.median(possible), 0)
    spread = min(2 * np.mean(above**2), _LARGEST_VARIANCE)
    relative = max(weights.var(ddof=1) / mean**2, np.exp(spread) * n / len(possible) - 1)
    log_Z, error = float(np.log(mean) + log_weights.max()), math.sqrt(relative / n)
    half = error * float(stdtrit(n - 1, 0.975))
    num_effective = float(weights.sum() ** 2 / (weights**2).sum())
    return Normaliser(log_Z, error, (log_Z - half, log_Z + half), num_effective, log_weights, states, acceptance)


def log_probs_of(target: Target, rows: Integer[np.ndarray, "rows *shape"]) -> Float[np.ndarray, " rows"]:
    """The unnormalised log-probabilities of rows of codes."""
    arguments = (target, jnp.asarray(rows, target.space.dtype))
    program, _ = compiled(_log_probs, arguments, {})
    return np.asarray(program(arguments), np.float64)


def _log_probs(target: Target, rows: Integer[Array, "rows *shape"]) -> Float[Array, " rows"]:
    return jax.lax.map(lambda x: target.log_prob(target.space.embed(x)), rows, batch_size=_ROWS_AT_ONCE)
