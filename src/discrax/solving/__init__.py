"""Combinatorial optimisation by the house's samplers: annealing, parallel tempering, site by site, expected costs."""

from discrax.solving.expected import Expected, minimise_expected, sample_average
from discrax.solving.schedules import Schedule
from discrax.solving.solution import Solution
from discrax.solving.solver import solve, solve_many

__all__ = ["Expected", "Schedule", "Solution", "minimise_expected", "sample_average", "solve", "solve_many"]
