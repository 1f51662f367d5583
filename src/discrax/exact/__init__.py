"""Oracles: exact laws of small targets, a test of any kernel against them, and asymptotic theory."""

from discrax.exact.enumeration import Verdict, check_kernel, chi_square, draw, law, total_variation, walk
from discrax.exact.optimal_scaling import Optimum, bernoulli_optimum

__all__ = [
    "Optimum",
    "Verdict",
    "bernoulli_optimum",
    "check_kernel",
    "chi_square",
    "draw",
    "law",
    "total_variation",
    "walk",
]
