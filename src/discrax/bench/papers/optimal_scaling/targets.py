"""The hidden Markov model as it was released, bits that are all alike, and where chains begin."""

import numpy as np

from discrax.core.target import Target
from discrax.targets import FHMM, Bernoulli

WEIGHTS, OFFSET = np.array([0.6614, 0.2669, 0.0617, 0.6213, -0.4519]), -0.1661  # behind the printed tables


def fhmm_released(length: int, noise_variance: float, seed: int = 0) -> FHMM:
    """The target behind the tables of Sun et al. (2022), which is not the posterior their text states.

    The series is simulated from the stated prior, but the log-density that was run *subtracts* the prior and
    scores a change of state with logit (not probability) 0.2. What is left favours x_1k = 1 (`initial_logit` is
    +log 9 = 2.197 instead of -2.197) and staying only a little (`stay_logit` is 0.2 instead of log 4 = 1.386).
    """
    stated = FHMM.simulated(seed, length, len(WEIGHTS), noise_variance, weights=WEIGHTS, offset=OFFSET)
    logits = {"initial_logit": float(np.log(9.0)), "stay_logit": 0.2}
    return FHMM(stated.series, stated.weights, stated.offset, noise_variance, **logits)


def from_visible_bias(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Chains of an RBM begin at independent pixels with the odds of its visible bias."""
    bias = np.asarray(target.visible_bias)  # ty: ignore[missing-attribute]
    rng = np.random.default_rng(seed)
    return (rng.random((num_chains, *target.space.shape)) < 1 / (1 + np.exp(-bias))).astype(np.int8)


def equal_bits(num_sites: int, prob: float) -> Bernoulli:
    """Bits that are all 1 with the same probability."""
    return Bernoulli(np.full(num_sites, prob))


def from_equal_bits(target: Target, seed: int, num_chains: int, prob: float) -> np.ndarray:
    """Chains of `equal_bits` begin with draws from it, so that all of their steps count."""
    return (np.random.default_rng(seed).random((num_chains, *target.space.shape)) < prob).astype(np.int8)
