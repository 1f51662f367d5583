"""What DLMC and DLMCf draw from, against their formulas in double precision, also where float32 overflows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from discrax import samplers, targets
from discrax.core.kernel import State

from .reference import LOG_G, with_levels

N = 4000
LEAST = 1e-6  # the probability to stay


def log_reference(is_euler: bool, g: str, x: np.ndarray, ratios: np.ndarray, log_tau: float) -> np.ndarray:
    """log p of all levels, shape (n, levels)."""
    ratios = with_levels(x, ratios)
    here, barred = np.arange(ratios.shape[1]) == x[:, None], np.isneginf(ratios)
    log_nu = ratios - logsumexp(ratios, axis=1, keepdims=True)
    log_moves = np.where(here | barred, -np.inf, log_tau + LOG_G[g](np.where(barred, 0, ratios)))
    log_a = np.where(barred, 0, log_moves - log_nu)
    a = np.exp(np.minimum(log_a, 6.5))
    log_moved = np.where(log_a < -30, log_a, np.log(-np.expm1(-np.maximum(a, 1e-20))))
    if is_euler:
        log_p = log_moves if ratios.shape[1] > 2 else np.minimum(log_moves, log_nu)
        stay = np.maximum(1 - np.exp(np.minimum(log_p, 1)).sum(1), np.exp(log_nu)[here])
    else:
        log_p = np.where(here, -np.inf, log_nu + log_moved)
        stay = np.exp(log_nu)[here] + np.exp(np.where(here, -np.inf, log_nu - a)).sum(1)  # 1 - sum p, digit by digit
    log_p = np.where(here, np.log(np.maximum(stay, LEAST))[:, None], log_p)
    return log_p - logsumexp(log_p, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["dlmc", "dlmcf"])
@pytest.mark.parametrize("num_levels", [2, 3, 20])
def test_probabilities_at_any_ratio_and_time(name, num_levels):
    """Ratios from e^-300 to e^300 and forbidden moves, times from e^-40 to e^20, four weight functions."""
    rng = np.random.default_rng(num_levels)
    shape = (N,) if num_levels == 2 else (N, num_levels)
    ratios = rng.normal(size=shape) * rng.choice([0.1, 3.0, 100.0], size=shape)
    ratios = np.where(rng.random(shape) < 0.05, -np.inf, ratios).astype(np.float32)
    target = targets.Bernoulli(np.full(N, 0.5)) if num_levels == 2 else targets.Independent(np.zeros((N, num_levels)))
    x = rng.integers(0, num_levels, N)
    if num_levels > 2:
        ratios[np.arange(N), x] = 0
    state = State(jnp.asarray(x, target.space.dtype), jnp.zeros(()), jnp.asarray(ratios))
    # A sum of float32 numbers near 1 has seven digits; of an Euler step the probability to stay is such a difference.
    digits = {"rtol": 3e-5, "atol": 4e-7 if name == "dlmcf" else 1e-37}

    @eqx.filter_jit
    def chances(kernel, tau):
        return kernel.with_knobs(step_size=tau).chances(target, state)

    for g in ("sqrt", "ratio", "min", "max"):
        for log_tau in (-40.0, -12.0, -3.0, 0.0, 3.0, 20.0):
            tau = np.float32(np.exp(log_tau))
            found = chances(getattr(samplers, name)(1.0, g, per_rate=False), jnp.asarray(tau))
            found = jax.tree.map(lambda a: np.asarray(a, np.float64), found)
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = log_reference(name == "dlmcf", g, x, ratios.astype(np.float64), np.log(np.float64(tau)))
                logs = found.logs + np.log(found.factors)
            if num_levels == 2:
                np.testing.assert_allclose(found.staying, np.exp(expected[np.arange(N), x]), **digits)
                expected = expected[np.arange(N), 1 - x]
            else:
                np.testing.assert_allclose(found.probs.sum(0), 1, rtol=1e-6)
                expected = expected.T
            np.testing.assert_allclose(found.probs, np.exp(expected), **digits)
            moves = np.ones(N, bool) if num_levels == 2 else np.arange(num_levels)[:, None] != x
            np.testing.assert_allclose(logs[moves], expected[moves], rtol=2e-6, atol=5e-5)
