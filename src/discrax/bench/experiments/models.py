"""Targets that several papers sample from, by their settings. All are drawn from a seed."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from discrax import targets
from discrax.bench.experiments.data import cache_folder, images
from discrax.core.target import Target


def probabilities(num_sites: int, low: float, seed: int = 0) -> np.ndarray:
    """p_i uniform on [low, 1 - low]."""
    return np.random.default_rng(seed).uniform(low, 1 - low, num_sites)


def bernoulli(num_sites: int, low: float, seed: int = 0) -> Target:
    """Independent bits with random `probabilities`."""
    return targets.Bernoulli(probabilities(num_sites, low, seed))


def disc(side: int, radius: float) -> np.ndarray:
    """+1 inside a centred disc on a square, -1 outside; the radius is in units of the side."""
    away = (np.arange(side) - side / 2) ** 2
    return np.where(away[:, None] + away[None, :] <= (radius * side) ** 2, 1.0, -1.0)


HALF = float(1 / np.sqrt(2 * np.pi))  # the radius of a disc that covers half of the square


def ising_disc(side: int, coupling: float, mean: float, spread: float, seed: int = 0, radius: float = HALF) -> Target:
    """A ferromagnet with free boundary and field +-mean + U(-spread, spread), + inside a disc."""
    noise = np.random.default_rng(seed).uniform(-spread, spread, (side, side))
    return targets.Ising.lattice((side, side), coupling, mean * disc(side, radius) + noise)


def mnist_rbm(num_hidden: int, num_images: int | None = None, num_gibbs: int = 100, seed: int = 0) -> Target:
    """An RBM trained by contrastive divergence on the user's MNIST, binarised at random; kept for the next time."""
    return trained_rbm("mnist", 2, num_hidden, num_images, num_gibbs, seed)


def rbm_from_cache(name: str, train: Callable[[], Any], family: Any = targets.RBM) -> Target:
    """The machine of this name in the cache folder, trained first where it is not there."""
    kept = cache_folder() / f"{name}.npz"
    if not kept.exists():
        train().save(kept)
    return family.load(kept)


def trained_rbm(
    name: str, num_levels: int, num_hidden: int, num_images: int | None, num_gibbs: int, seed: int
) -> Target:
    """An RBM trained on images of the user's, from the cache folder where it is there."""

    def train() -> Any:
        from discrax.learn import train_rbm

        rng = np.random.default_rng(seed)
        pixels = rng.permutation(images(name).reshape(-1, 784))[:num_images]
        if num_levels == 2:
            codes = (rng.random(pixels.shape) < pixels / 255).astype(np.int8)
        else:
            codes = (pixels.astype(np.int32) * num_levels // 256).astype(np.int8)
        return train_rbm(jax.random.key(seed), codes, num_hidden, num_levels=num_levels, num_gibbs=num_gibbs)

    count = "all" if num_images is None else num_images
    family = targets.RBM if num_levels == 2 else targets.CategoricalRBM
    return rbm_from_cache(f"rbm-{name}-{num_levels}-{num_hidden}-{count}-{num_gibbs}-{seed}", train, family)
