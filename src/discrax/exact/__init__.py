"""Oracles: exact laws of small targets, a test of any kernel against them, and asymptotic theory."""

from discrax.exact.enumeration import Verdict, check_kernel, chi_square, draw, law, total_variation, walk
from discrax.exact.forward_backward import ChainLaw, chain_law
from discrax.exact.kaufman import CRITICAL_COUPLING, SquareIsing, square_ising
from discrax.exact.optimal_scaling import Optimum, Scaling, bernoulli_optimum, best_exponent, scaling, scaling_at

__all__ = [
    "CRITICAL_COUPLING", "ChainLaw", "Optimum", "Scaling", "SquareIsing", "Verdict", "bernoulli_optimum",
    "best_exponent", "chain_law", "check_kernel", "chi_square", "draw", "law", "scaling", "scaling_at", "square_ising",
    "total_variation", "walk",
]  # fmt: skip
