"""The targets of the papers' sampling experiments, by their settings. All are drawn from a seed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from discrax import samplers, targets
from discrax.bench.data import cache_folder, images
from discrax.core.kernel import Kernel
from discrax.core.target import Target, Tempered


def bernoulli(num_sites: int, low: float, seed: int = 0) -> Target:
    """p_i uniform on [low, 1 - low]."""
    return targets.Bernoulli(np.random.default_rng(seed).uniform(low, 1 - low, num_sites))


def normal_bernoulli(num_sites: int, spread: float, seed: int = 0) -> Target:
    """Log-odds normal with the given standard deviation."""
    return targets.Bernoulli(logits=spread * np.random.default_rng(seed).normal(size=num_sites))


def normal_categorical(num_sites: int, num_levels: int, spread: float, seed: int = 0) -> Target:
    return targets.Categorical(spread * np.random.default_rng(seed).normal(size=(num_sites, num_levels)))


def _disc(side: int) -> np.ndarray:
    """+1 inside a centred disc that covers half of the square, -1 outside."""
    away = (np.arange(side) - side / 2) ** 2
    return np.where(away[:, None] + away[None, :] <= side**2 / (2 * np.pi), 1.0, -1.0)


def ising_disc(side: int, coupling: float, mean: float, spread: float, seed: int = 0) -> Target:
    """A ferromagnet with free boundary and field +-mean + U(-spread, spread), + inside a disc."""
    noise = np.random.default_rng(seed).uniform(-spread, spread, (side, side))
    return targets.Ising.lattice((side, side), coupling, mean * _disc(side) + noise)


def ising_grid(side: int, coupling: float) -> Target:
    """Free boundary, no field."""
    return targets.Ising.lattice((side, side), coupling)


def ising_barabasi_albert(num_sites: int, attached: int, coupling: float, seed: int = 0) -> Target:
    import networkx as nx

    return targets.Ising.graph(nx.barabasi_albert_graph(num_sites, attached, seed=seed), coupling)


def potts_disc(side: int, num_levels: int, coupling: float, mean: float, spread: float, seed: int = 0) -> Target:
    """Field +-mean + U(-spread, spread) of every site and level."""
    noise = np.random.default_rng(seed).uniform(-spread, spread, (side, side, num_levels))
    return targets.Potts.lattice((side, side), num_levels, coupling, mean * _disc(side)[..., None] + noise)


def fhmm_released(length: int, noise_variance: float, seed: int = 0) -> Target:
    """The target that the tables of Sun et al. (2022) were made with, which is not the posterior they state."""
    return targets.FHMM.as_released(seed, length, 5, noise_variance)


def mnist_rbm(num_hidden: int, num_images: int | None = None, num_gibbs: int = 100, seed: int = 0) -> Target:
    """An RBM trained by contrastive divergence on the user's MNIST, binarised at random; kept for the next time."""
    return _trained_rbm("mnist", 2, num_hidden, num_images, num_gibbs, seed)


def fashion_rbm(
    num_levels: int, num_hidden: int, num_images: int | None = None, num_gibbs: int = 100, seed: int = 0
) -> Target:
    """A categorical RBM trained on the user's Fashion-MNIST, its greys cut into equal ranges."""
    return _trained_rbm("fashion_mnist", num_levels, num_hidden, num_images, num_gibbs, seed)


def _trained_rbm(
    name: str, num_levels: int, num_hidden: int, num_images: int | None, num_gibbs: int, seed: int
) -> Target:
    family = targets.RBM if num_levels == 2 else targets.CategoricalRBM
    count = "all" if num_images is None else num_images
    kept = cache_folder() / f"rbm-{name}-{num_levels}-{num_hidden}-{count}-{num_gibbs}-{seed}.npz"
    if not kept.exists():
        from discrax.learn import train_rbm

        rng = np.random.default_rng(seed)
        pixels = rng.permutation(images(name).reshape(-1, 784))[:num_images]
        if num_levels == 2:
            codes = (rng.random(pixels.shape) < pixels / 255).astype(np.int8)
        else:
            codes = (pixels.astype(np.int32) * num_levels // 256).astype(np.int8)
        model = train_rbm(jax.random.key(seed), codes, num_hidden, num_levels=num_levels, num_gibbs=num_gibbs)
        model.save(kept)
    return family.load(kept)


def from_visible_bias(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Chains of an RBM begin at independent pixels with the odds of its visible bias."""
    bias = np.asarray(target.visible_bias)  # pyright: ignore[reportAttributeAccessIssue]
    rng = np.random.default_rng(seed)
    return (rng.random((num_chains, *target.space.shape)) < 1 / (1 + np.exp(-bias))).astype(np.int8)


def near_level_eleven(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Every coordinate uniform over the grid points 10, 11 and 12, off the mass of the mixtures."""
    return np.random.default_rng(seed).integers(10, 13, (num_chains, *target.space.shape)).astype(np.int8)


def only_second(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """The state with nothing but the second coordinate on."""
    x = np.zeros((num_chains, *target.space.shape), np.int8)
    x[:, 1] = 1
    return x


class SetKnobs(eqx.Module):
    """An adapter that tunes nothing: after the burn-in that finds the Hessian, its knobs get these values."""

    values: tuple[tuple[str, float], ...] = eqx.field(static=True)

    def __init__(self, **values: float):
        self.values = tuple(values.items())

    def plan(self, target: Target, kernel: Any, num_steps: int) -> "SetKnobs":
        unknown = [name for name, _ in self.values if name not in kernel.knobs(target)]
        if unknown:
            raise ValueError(f"{type(kernel).__name__} has no knobs {', '.join(unknown)}.")
        return self

    def init(self, target: Target, kernel: Any) -> Any:
        return jnp.zeros(())

    def update(self, target: Target, kernel: Any, memory: Any, states: Any, info: Any) -> tuple[Any, Any]:
        return self._set(kernel), memory

    def freeze(self, target: Target, kernel: Any, memory: Any) -> tuple[Any, Any]:
        return self._set(kernel), f"set {', '.join(f'{name} = {value}' for name, value in self.values)}"

    def _set(self, kernel: Any) -> Any:
        return kernel.with_knobs(**{name: jnp.asarray(value, jnp.float32) for name, value in self.values})


def tempered_grid(side: int, beta: float) -> Target:
    """The Ising lattice without field at an inverse temperature, which is a leaf: all of them are one program."""
    return Tempered(targets.Ising.lattice((side, side), 1.0), beta)


def all_up(target: Target, seed: int, num_chains: int) -> np.ndarray:
    return np.ones((num_chains, *target.space.shape), np.int8)


def pavg_of_pairs(side: int = 4) -> Kernel:
    """PAVG with the Hessian of the quadratic part of a `CubicIsing` lattice, whatever its triples are."""
    return samplers.pavg(M=targets.CubicIsing.lattice(side=side, strength=0.0).quadratic_matrix())
