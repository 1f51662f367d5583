"""Ising models without a field, on a grid and on a random graph; the variance of independent bits."""

import numpy as np

from discrax import targets
from discrax.bench.experiments.models import probabilities
from discrax.core.target import Target


def ising_grid(side: int, coupling: float) -> Target:
    """Free boundary, no field."""
    return targets.Ising.lattice((side, side), coupling)


def ising_barabasi_albert(num_sites: int, attached: int, coupling: float, seed: int = 0) -> Target:
    """On a random graph whose new nodes attach to old ones by their degree; no field."""
    import networkx as nx

    return targets.Ising.graph(nx.barabasi_albert_graph(num_sites, attached, seed=seed), coupling)


def mean_variance(num_sites: int, low: float, seed: int = 0) -> float:
    """The mean of p (1 - p) over the bits of `models:bernoulli`: what sigma_0 is for them.

    The paper balances t^alpha on N(mu, sigma_0 I). The covariance of independent bits is diag(p (1 - p)), and of the
    multiples of I the nearest to it (in the Frobenius norm) is this mean. With p uniform on [low, 1 - low] it is
    1/4 - (1 - 2 low)^2 / 12 on average.
    """
    p = probabilities(num_sites, low, seed)
    return float(np.mean(p * (1 - p)))
