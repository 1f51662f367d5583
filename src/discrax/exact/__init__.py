"""Oracles: exact laws of small targets, and a test of any kernel against them."""

from discrax.exact.enumeration import Verdict, check_kernel, chi_square, draw, law, total_variation, walk

__all__ = ["Verdict", "check_kernel", "chi_square", "draw", "law", "total_variation", "walk"]
