"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling"."""

SUITES = ("sampling", "weights", "energy_models", "optimisation", "solve", "text")
