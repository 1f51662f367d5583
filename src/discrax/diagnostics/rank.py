"""Bulk and tail effective sample size and R-hat of several chains, by ranks (Vehtari, Gelman, Simpson, Carpenter and
Buerkner, 2021).

They are ArviZ's, number for number, as a test says. They are here because importing ArviZ takes longer than a short
run.

Chains are cut in halves. Ranks of all values, mapped to normal quantiles, replace the values in

    rho_t = 1 - (W - mean over chains of acov_t) / V,     V = W (n - 1) / n + variance of the chains' means

where W is the mean variance within chains; ESS = S / tau with Geyer's monotone sum of rho for tau, and R-hat compares V
with W. The tail's ESS is the least of those of {value <= 5 % quantile} and {value <= 95 % quantile}.
"""

import numpy as np
from jaxtyping import Float

Chains = Float[np.ndarray, "chains draws"]


def bulk_ess(values: Chains) -> float:
    """Of the middle of the law."""
    return _ess(_normal_ranks(_halves(values)))


def tail_ess(values: Chains) -> float:
    """Of its tails."""
    return min(_ess(_halves(values <= np.quantile(values, q)).astype(float)) for q in (0.05, 0.95))


def rank_rhat(values: Chains) -> float:
    """The larger of R-hat of the ranks and of the ranks of distances from the median."""
    halves = _halves(values)
    return max(_rhat(_normal_ranks(halves)), _rhat(_normal_ranks(np.abs(halves - np.median(halves)))))


def _halves(values: np.ndarray) -> np.ndarray:
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_ranks(values: Chains) -> Chains:
    """Ties share the mean of their ranks."""
    from scipy.special import ndtri  # here, since it takes half a second

    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place.reshape(values.shape)]
    return ndtri((ranks - 3 / 8) / (values.size + 1 / 4))


def _rhat(values: Chains) -> float:
    n = values.shape[1]
    between, within = n * values.mean(axis=1).var(ddof=1), values.var(axis=1, ddof=1).mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.sqrt((between / within + n - 1) / n))


def _ess(values: Chains) -> float:
    if np.ptp(values) < np.finfo(float).resolution:
        return float(values.size)
    m, n = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 1 << (2 * n - 1).bit_length())
    acov = np.fft.irfft(np.abs(spectrum) ** 2)[:, :n].mean(axis=0) / n
    within = acov[0] * n / (n - 1)
    total = acov[0] + (values.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    rho = 1 - (within - acov) / total
    rho[0] = 1.0
    last = max(0, (n - 3) // 2)
    pairs = rho[: 2 * last + 2].reshape(-1, 2).sum(axis=1)
    is_over = pairs <= 0
    k = int(np.argmax(is_over)) if is_over.any() else last  # of the last pair there only the first counts, once
    tau = -1 + 2 * np.minimum.accumulate(pairs[:k]).sum() + max(rho[2 * k], 0.0)
    return float(values.size / max(tau, 1 / np.log10(values.size)))
