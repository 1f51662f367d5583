"""Effective sample size of single chains, by the two truncation rules that the papers report.

With N values s_n of a scalar, their mean removed, c_k = sum_n s_n s_{n+k} / (N - k) and rho_k = c_k / c_0,

    ESS = N / ( -1 + 2 sum over kept lags k of (1 - k/N) rho_k )

- `first_negative`: the lags before the first negative rho_k are kept;
- `positive_pairs`: lags are added in pairs (rho_0 + rho_1), (rho_2 + rho_3), ... up to the first negative pair
  (Geyer, 1992).

A chain that never moved has told us nothing: its ESS is 0.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Float

from discrax.core.checks import number, real_array

RULES = ("first_negative", "positive_pairs")
_MOST_AT_ONCE = 2**20


def autocorrelation(values: np.ndarray, mean: float | None = None) -> np.ndarray:
    """rho_k along the last axis, for all lags; NaN for a constant chain.

    Each chain's own mean is removed, or `mean` where it is known: that shows slow chains for what they are.
    """
    values = real_array("values", values)
    if not values.size or not values.ndim:
        raise ValueError(f"values must have an axis of at least one draw, but got shape {values.shape}.")
    return np.where(is_constant(values)[..., None], np.nan, _rho(_centre(values, mean)))


def _centre(values: np.ndarray, mean: float | None) -> np.ndarray:
    return values - (values.mean(axis=-1, keepdims=True) if mean is None else number("mean", mean))


def _rho(centred: Float[Any, "*chains n"]) -> Float[Any, "*chains n"]:
    """rho_k of values without their mean, in their precision; NaN where all of them are 0."""
    n, (xp, fft) = centred.shape[-1], _modules(centred)
    size = scipy.fft.next_fast_len(2 * n - 1, real=True)
    spectrum = fft.rfft(centred, size)
    power = xp.real(spectrum) ** 2 + xp.imag(spectrum) ** 2
    covariance = fft.irfft(power, size)[..., :n] / xp.arange(n, 0, -1, dtype=centred.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        return covariance / covariance[..., :1]


def _modules(values: Any) -> Any:
    """What computes with arrays of their kind, and transforms them."""
    return (np, scipy.fft) if isinstance(values, np.ndarray) else (jnp, jnp.fft)


def is_constant(values: np.ndarray) -> np.ndarray:
    """True for each chain (all but the last axis) whose values are all the same."""
    values = real_array("values", values)
    if not values.ndim or not values.shape[-1]:
        raise ValueError(f"values must have an axis of draws, at least one, but got an array of shape {values.shape}.")
    return (values == values[..., :1]).all(axis=-1)


def ess(values: np.ndarray, rule: str = "first_negative", mean: float | None = None) -> np.ndarray:
    """ESS of each chain; `values` has shape (..., draws), the result (...). `mean` is used where it is known."""
    if rule not in RULES:
        raise ValueError(f"Unknown truncation rule {rule!r}; known: {', '.join(RULES)}.")
    values = real_array("values", values)
    if not values.ndim:
        raise ValueError("values must have an axis of draws, but got one number.")
    n = values.shape[-1]
    if n < 4:
        return np.zeros(values.shape[:-1])
    if values.size > max(n, _MOST_AT_ONCE):  # spectra take ten times the room of the values
        chains = [ess(chain, rule, mean) for chain in values.reshape(-1, 1, n)]
        return np.concatenate(chains).reshape(values.shape[:-1])
    return np.where(is_constant(values), 0.0, ess_of_centred(_centre(values, mean), rule))


def ess_of_centred(centred: Float[Any, "*chains n"], rule: str) -> Float[Any, "*chains"]:
    """ESS of values without their mean, in their precision: single precision is twice as fast, and often enough.

    Arrays of JAX give arrays of JAX.
    """
    n, (xp, _) = centred.shape[-1], _modules(centred)
    rho = xp.nan_to_num(_rho(centred), nan=-1.0)
    num_kept = (
        _first(rho < 0)
        if rule == "first_negative"
        else 2 * _first(rho[..., : n - n % 2 : 2] + rho[..., 1::2] < 0)  # pairs
    )
    lags = xp.arange(n)
    kept = xp.where(lags < num_kept[..., None], rho * (1 - lags.astype(rho.dtype) / n), 0.0)
    total = -1 + 2 * kept.sum(axis=-1)
    moved = centred.any(axis=-1)
    return xp.where(moved, n / xp.maximum(total, 1 / np.log10(n)), 0.0)


def _first(flags: Any) -> Any:
    """Where the first of the last axis is that is true; where none is, how many there are."""
    xp, _ = _modules(flags)
    return xp.where(flags.any(axis=-1), xp.argmax(flags, axis=-1), flags.shape[-1])
