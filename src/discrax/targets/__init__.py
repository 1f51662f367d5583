"""Distributions over discrete spaces, one file a family."""

from discrax.targets.coupling import Coupling, Dense, Lattice, Sparse, Uncoupled
from discrax.targets.independent import Bernoulli, Categorical
from discrax.targets.quadratic import QUBO, Ising, Potts, Quadratic

__all__ = [
    "QUBO",
    "Bernoulli",
    "Categorical",
    "Coupling",
    "Dense",
    "Ising",
    "Lattice",
    "Potts",
    "Quadratic",
    "Sparse",
    "Uncoupled",
]
