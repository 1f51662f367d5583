"""Ising models without a field, on a grid and on a random graph."""

from discrax import targets
from discrax.core.target import Target


def ising_grid(side: int, coupling: float) -> Target:
    """Free boundary, no field."""
    return targets.Ising.lattice((side, side), coupling)


def ising_barabasi_albert(num_sites: int, attached: int, coupling: float, seed: int = 0) -> Target:
    """On a random graph whose new nodes attach to old ones by their degree; no field."""
    import networkx as nx

    return targets.Ising.graph(nx.barabasi_albert_graph(num_sites, attached, seed=seed), coupling)
