"""Samplers, one file a family, and the registry that names them. They are called by their registry names."""

from discrax.samplers import schedules
from discrax.samplers.balancing import WEIGHT_FUNCTIONS, Power
from discrax.samplers.block_gibbs import BlockGibbs as block_gibbs  # noqa: N813
from discrax.samplers.block_gibbs import HammingBall as hamming_ball  # noqa: N813
from discrax.samplers.clusters import SwendsenWang as swendsen_wang  # noqa: N813
from discrax.samplers.clusters import Wolff as wolff  # noqa: N813
from discrax.samplers.continuous_time import DLMC as dlmc  # noqa: N811
from discrax.samplers.continuous_time import DLMCf as dlmcf  # noqa: N813
from discrax.samplers.exact_path import LB as lb  # noqa: N811
from discrax.samplers.exact_path import ExactPAS as pas_exact  # noqa: N813
from discrax.samplers.gaussian_auxiliary import ab_diagonal, ab_first, ab_max, ab_shift, ab_trace, avg, pavg
from discrax.samplers.gibbs import gibbs
from discrax.samplers.global_flip import GlobalFlip as global_flip  # noqa: N813
from discrax.samplers.langevin import DMALA as dmala  # noqa: N811
from discrax.samplers.langevin import DULA as dula  # noqa: N811
from discrax.samplers.langevin import DLPTrace as dlp_trace  # noqa: N813
from discrax.samplers.locally_balanced import GWG as gwg  # noqa: N811
from discrax.samplers.locally_balanced import PAS as pas  # noqa: N811
from discrax.samplers.ordinal import MHUniform as mh_uniform  # noqa: N813
from discrax.samplers.ordinal import OrdinalGWG as gwg_ordinal  # noqa: N813
from discrax.samplers.pseudo_marginal import PseudoMarginal as pseudo_marginal  # noqa: N813
from discrax.samplers.random_walk import RandomWalk as rwm  # noqa: N813
from discrax.samplers.registry import REGISTRY, build_kernel, cycle, get_sampler, mixture, on_sites
from discrax.samplers.stochastic import SGDLD as sgdld  # noqa: N811
from discrax.samplers.stochastic import LocalSearch as local_search  # noqa: N813
from discrax.samplers.stochastic import MinibatchGibbs as minibatch_gibbs  # noqa: N813
from discrax.samplers.swap import Swap as swap  # noqa: N813
from discrax.samplers.swap import UniformSwap as swap_uniform  # noqa: N813

__all__ = [
    "REGISTRY",
    "WEIGHT_FUNCTIONS",
    "Power",
    "ab_diagonal",
    "ab_first",
    "ab_max",
    "ab_shift",
    "ab_trace",
    "avg",
    "block_gibbs",
    "build_kernel",
    "cycle",
    "dlmc",
    "dlmcf",
    "dlp_trace",
    "dmala",
    "dula",
    "get_sampler",
    "gibbs",
    "global_flip",
    "gwg",
    "gwg_ordinal",
    "hamming_ball",
    "lb",
    "local_search",
    "mh_uniform",
    "minibatch_gibbs",
    "mixture",
    "on_sites",
    "pas",
    "pas_exact",
    "pavg",
    "pseudo_marginal",
    "rwm",
    "schedules",
    "sgdld",
    "swap",
    "swap_uniform",
    "swendsen_wang",
    "wolff",
]
