"""The hidden Markov model as it was released, and where the chains of an RBM begin."""

import numpy as np

from discrax import targets
from discrax.core.target import Target


def fhmm_released(length: int, noise_variance: float, seed: int = 0) -> Target:
    """The target that the tables of Sun et al. (2022) were made with, which is not the posterior they state."""
    return targets.FHMM.as_released(seed, length, 5, noise_variance)


def from_visible_bias(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Chains of an RBM begin at independent pixels with the odds of its visible bias."""
    bias = np.asarray(target.visible_bias)  # pyright: ignore[reportAttributeAccessIssue]
    rng = np.random.default_rng(seed)
    return (rng.random((num_chains, *target.space.shape)) < 1 / (1 + np.exp(-bias))).astype(np.int8)
