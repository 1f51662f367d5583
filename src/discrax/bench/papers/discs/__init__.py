"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling"."""

SUITES = ("sampling", "energy_models", "optimisation", "solve", "text")
