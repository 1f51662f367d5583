"""A sampler that knows the quadratic part of its target, and where the chains begin."""

import numpy as np

from discrax import samplers, targets
from discrax.core.kernel import Kernel
from discrax.core.target import Target


def near_level_eleven(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Every coordinate uniform over the grid points 10, 11 and 12, off the mass of the mixtures."""
    return np.random.default_rng(seed).integers(10, 13, (num_chains, *target.space.shape)).astype(np.int8)


def only_second(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """The state with nothing but the second coordinate on."""
    x = np.zeros((num_chains, *target.space.shape), np.int8)
    x[:, 1] = 1
    return x


def pavg_of_pairs(step_size: float, side: int = 4) -> Kernel:
    """PAVG with the Hessian of the quadratic part of a `CubicIsing` lattice, whatever its triples are."""
    return samplers.pavg(step_size=step_size, M=targets.CubicIsing.lattice(side=side, strength=0.0).quadratic_matrix())
