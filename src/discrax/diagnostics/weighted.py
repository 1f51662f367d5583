"""Diagnostics of draws that count for different times w_t: averages are sum_t w_t s_t / sum_t w_t.

To first order such an average has the error of the mean of z_t = w_t (s_t - s_mean) / w_mean, so

    ESS = Var_w(s) / Var(mean of z),   Var(mean of z) = Var(z) / ESS(z)

is the number of independent, equally weighted draws that would do as well. Chains are on an equal footing: each is
averaged with its own weights, and then their averages are.
"""

import numpy as np
from jaxtyping import Float

from discrax.core.checks import real_array
from discrax.diagnostics.ess import ess, is_constant

Values = Float[np.ndarray, "*chains draws"]


def weights_from_logs(log_weights: Values, largest: Float[np.ndarray, "*chains 1"] | None = None) -> Values:
    """exp(log w) where the largest of every chain is a float32, else each chain in units of its largest.

    Chains may differ by more than a float can tell, and one whose weights all came out as 0 would say nothing.
    `largest` is needed where these are not all draws.
    """
    log_weights = np.asarray(log_weights, np.float64)
    most = log_weights.max(axis=-1, keepdims=True, initial=-np.inf) if largest is None else largest
    is_plain = (np.abs(most) < np.log(np.finfo(np.float32).max)).all()
    return np.exp(log_weights - (0.0 if is_plain else np.where(np.isfinite(most), most, 0.0)))


def are_equal(weights: Values) -> bool:
    """Whether all draws count the same."""
    return bool(np.ptp(weights) <= 1e-6 * np.abs(weights).max()) if weights.size else True


def shares(weights: Values) -> Values:
    """Each weight over the sum of its chain; equal ones for a chain without weight."""
    weights = real_array("weights", weights)
    if not weights.size:
        raise ValueError(f"weights must be at least one, but got shape {weights.shape}.")
    largest = weights.max(axis=-1, keepdims=True)
    scaled = np.where(largest > 0, weights / np.where(largest > 0, largest, 1), 1.0)
    return scaled / scaled.sum(axis=-1, keepdims=True)


def weighted_mean(values: Values, weights: Values) -> Float[np.ndarray, "*chains"]:
    """Of each chain, over its draws."""
    values, parts = real_array("values", values), shares(weights)
    if values.shape != parts.shape:
        raise ValueError(f"weights must have the shape of the values, {values.shape}, but got {parts.shape}.")
    return np.sum(parts * values, axis=-1)


def weighted_variance(values: Values, weights: Values) -> Float[np.ndarray, "*chains"]:
    """Of each chain, over its draws."""
    return np.sum(shares(weights) * (values - weighted_mean(values, weights)[..., None]) ** 2, axis=-1)


def effective_weights(weights: Values) -> Float[np.ndarray, "*chains"]:
    """(sum w)^2 / sum w^2: how many draws of a chain count."""
    return 1 / np.sum(shares(weights) ** 2, axis=-1)


def weighted_ess(values: Values, weights: Values) -> Float[np.ndarray, "*chains"]:
    """Effective sample size of each chain."""
    values, mean = real_array("values", values), weighted_mean(values, weights)
    z = values.shape[-1] * shares(weights) * (values - mean[..., None])
    error, spread = z.var(axis=-1) / np.maximum(ess(z), 1e-12), weighted_variance(values, weights)
    is_still = is_constant(values) | (spread <= _rounding(values)) | (error == 0)
    return np.where(is_still, 0.0, np.minimum(spread / np.where(error == 0, 1, error), values.shape[-1]))


def _rounding(values: Values) -> Float[np.ndarray, "*chains"]:
    """Of a variance: draws that differ may all have no weight."""
    return 1e-12 * np.square(values).max(axis=-1)


def weighted_rhat(values: Float[np.ndarray, "chains draws"], weights: Float[np.ndarray, "chains draws"]) -> float:
    """Gelman and Rubin (1992): the spread of all draws over the mean spread within chains; NaN if that is none."""
    within = float(np.mean(weighted_variance(values, weights)))
    between = float(np.var(weighted_mean(values, weights), ddof=1))
    return float("nan") if within <= _rounding(values).max() else float(np.sqrt((within + between) / within))


def equal_draws(weights: Float[np.ndarray, "chains draws"]) -> np.ndarray:
    """For each chain, as many indices as it has draws, in order, each repeated in proportion to its weight."""
    ends = np.cumsum(shares(weights), axis=-1)
    places = (np.arange(weights.shape[-1]) + 0.5) / weights.shape[-1]
    found = [np.searchsorted(row, places) for row in ends]
    return np.minimum(np.stack(found), weights.shape[-1] - 1)
