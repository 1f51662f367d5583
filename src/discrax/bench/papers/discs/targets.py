"""The targets of the sampling experiments that only this paper has, and where its chains begin."""

import numpy as np

from discrax import targets
from discrax.bench.experiments.models import disc, ising_disc, trained_rbm
from discrax.core.target import Target, Tempered

RADIUS = float(1 / np.sqrt(8))  # of the disc of the field, in units of the side: p / (2 sqrt 2), as the text has it


def normal_bernoulli(num_sites: int, spread: float, seed: int = 0) -> Target:
    """Log-odds normal with the given standard deviation."""
    return targets.Bernoulli(logits=spread * np.random.default_rng(seed).normal(size=num_sites))


def normal_categorical(num_sites: int, num_levels: int, spread: float, seed: int = 0) -> Target:
    """Logits of all levels normal with the given standard deviation."""
    return targets.Independent(spread * np.random.default_rng(seed).normal(size=(num_sites, num_levels)))


def ising_in_field(side: int, coupling: float, mean: float, spread: float, seed: int = 0) -> Target:
    """The lattice in a field +-mean + U(-spread, spread), + inside the paper's disc."""
    return ising_disc(side, coupling, mean, spread, seed, RADIUS)


def potts_disc(side: int, num_levels: int, coupling: float, mean: float, spread: float, seed: int = 0) -> Target:
    """Field +-mean + U(-spread, spread) of every site and level."""
    noise = np.random.default_rng(seed).uniform(-spread, spread, (side, side, num_levels))
    return targets.Potts.lattice((side, side), num_levels, coupling, mean * disc(side, RADIUS)[..., None] + noise)


def fashion_rbm(
    num_levels: int, num_hidden: int, num_images: int | None = None, num_gibbs: int = 100, seed: int = 0
) -> Target:
    """A categorical RBM trained on the user's Fashion-MNIST, its greys cut into equal ranges."""
    return trained_rbm("fashion_mnist", num_levels, num_hidden, num_images, num_gibbs, seed)


def tempered_grid(side: int, beta: float) -> Target:
    """The Ising lattice without field at an inverse temperature, which is a leaf: all of them are one program."""
    return Tempered(targets.Ising.lattice((side, side), 1.0), beta)


def all_up(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Chains that begin with all spins up."""
    return np.ones((num_chains, *target.space.shape), np.int8)
