"""Combinatorial optimisation: annealing and tempering by samplers or site by site, and costs known by mini-batches."""

from discrax.solving import searches
from discrax.solving.schedules import BetaSchedule
from discrax.solving.solution import Solution
from discrax.solving.solver import solve, solve_many
from discrax.solving.stochastic import StochasticSolution, minimise_expected, sample_average

__all__ = [
    "BetaSchedule", "Solution", "StochasticSolution", "minimise_expected", "sample_average", "searches",
    "solve", "solve_many",
]  # fmt: skip
