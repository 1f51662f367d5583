"""Samplers, one file a family, and the registry that names them."""

from discrax.samplers.balancing import WEIGHT_FUNCTIONS, Power
from discrax.samplers.gibbs import gibbs
from discrax.samplers.langevin import DMALA as dmala  # noqa: N811  (samplers are called by their registry names)
from discrax.samplers.locally_balanced import GWG as gwg  # noqa: N811
from discrax.samplers.locally_balanced import PAS as pas  # noqa: N811
from discrax.samplers.random_walk import RandomWalk as rwm  # noqa: N813
from discrax.samplers.registry import REGISTRY, build_kernel, get_sampler

__all__ = [
    "REGISTRY",
    "WEIGHT_FUNCTIONS",
    "Power",
    "build_kernel",
    "dmala",
    "get_sampler",
    "gibbs",
    "gwg",
    "pas",
    "rwm",
]
