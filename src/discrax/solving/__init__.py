"""Combinatorial optimisation by the house's samplers: annealing, parallel tempering, and site by site."""

from discrax.solving.schedules import Schedule
from discrax.solving.solver import Solution, solve, solve_many

__all__ = ["Schedule", "Solution", "solve", "solve_many"]
