"""Distributions over discrete spaces, one file a family."""

from discrax.targets.coupling import Coupling, Dense, Lattice, Uncoupled
from discrax.targets.factor_graph import FactorGraph
from discrax.targets.fhmm import FHMM, CategoricalFHMM
from discrax.targets.gaussian import LatticeGaussian
from discrax.targets.gaussian_bernoulli import GaussianBernoulli
from discrax.targets.higher_order import CubicIsing
from discrax.targets.independent import Bernoulli, Independent
from discrax.targets.mixtures import PolynomialMixture, QuarticMixture
from discrax.targets.partition import BalancedLabels
from discrax.targets.polynomial import Polynomial
from discrax.targets.quadratic import Ising, Potts, Quadratic
from discrax.targets.rbm import RBM, CategoricalRBM
from discrax.targets.regression import LogisticRegression, SparseLinearRegression
from discrax.targets.sparse_coupling import Sparse
from discrax.targets.stochastic import Bayesian, Expectation, Quenched
from discrax.targets.tall_regression import TallLogisticRegression

__all__ = [
    "FHMM", "RBM", "BalancedLabels", "Bayesian", "Bernoulli", "CategoricalFHMM", "CategoricalRBM", "Coupling",
    "CubicIsing", "Dense", "Expectation", "FactorGraph", "GaussianBernoulli", "Independent", "Ising", "Lattice",
    "LatticeGaussian", "LogisticRegression", "Polynomial", "PolynomialMixture", "Potts", "Quadratic", "QuarticMixture",
    "Quenched", "Sparse", "SparseLinearRegression", "TallLogisticRegression", "Uncoupled",
]  # fmt: skip
