"""Constrained models of dimod: `problem(cqm)` is what `discrax.solve` takes, `sample` gives samples back."""

from collections.abc import Hashable
from typing import Any

import dimod
import numpy as np
from jaxtyping import Integer

from discrax.core.checks import describe
from discrax.core.interrupts import Interrupts
from discrax.problems.constrained import ConstrainedQUBO
from discrax.problems.qubo import QUBO
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.sites import search_by_sites


def problem(cqm: Any, *, penalty: float = 1.0) -> ConstrainedQUBO:
    """The problem of a `dimod.ConstrainedQuadraticModel`: a quadratic objective, linear constraints, no integers.

    A spin is s = 2 x - 1. `penalty` multiplies what being beyond a limit costs in the search.
    """
    if not isinstance(cqm, dimod.ConstrainedQuadraticModel):
        raise TypeError(f"What to solve is a dimod.ConstrainedQuadraticModel, but got {describe(cqm)}.")
    for name in cqm.variables:
        if cqm.vartype(name) not in (dimod.BINARY, dimod.SPIN):
            raise ValueError(
                f"Variables must be binary or spins, but {name!r} is {cqm.vartype(name).name.lower()}; write it as a "
                "sum of binary ones."
            )
    cqm = cqm.spin_to_binary(inplace=False)
    names = tuple(cqm.variables)
    constraints = {label: _check_constraint(label, each) for label, each in cqm.constraints.items()}
    return ConstrainedQUBO(_objective(cqm, names), constraints, penalty=penalty)


def values_of(cqm: dimod.ConstrainedQuadraticModel, states: Integer[np.ndarray, "states n"]) -> tuple[np.ndarray, list]:
    """States of `problem(cqm)` as dimod takes samples of the model: spins are -1 and 1, and names come along."""
    names: list[Hashable] = list(cqm.variables)
    is_spin = np.array([cqm.vartype(name) is dimod.SPIN for name in names], bool)
    codes = np.asarray(states, np.int64)
    return np.where(is_spin, 2 * codes - 1, codes), names


def search(
    cqm: dimod.ConstrainedQuadraticModel, budget: SearchBudget, num_reads: int, seed: int
) -> Integer[np.ndarray, "reads n"]:
    """The best state of each read, repaired."""
    made = problem(cqm)
    with Interrupts() as interrupts:
        clock = Clock(budget, is_asked_to_stop=lambda: interrupts.requested)
        *_, last = search_by_sites(made.model, num_chains=num_reads, seed=seed, init=None, budget=budget, clock=clock)
    return np.stack([made.repair(state) for state in last.best_states])


def _objective(cqm: Any, names: tuple[Hashable, ...]) -> QUBO:
    place = {name: i for i, name in enumerate(names)}
    linear, terms = np.zeros(len(names)), dict(cqm.objective.quadratic)
    for name, weight in cqm.objective.linear.items():
        linear[place[name]] = weight
    edges = np.array([[place[a], place[b]] for a, b in terms], np.int64).reshape(-1, 2)
    return QUBO(linear, edges, list(terms.values()) or np.zeros(0), offset=float(cqm.objective.offset), names=names)


def _check_constraint(label: Hashable, given: Any) -> tuple[dict[Hashable, float], str, float]:
    if not given.lhs.is_linear():
        raise ValueError(f"Constraints must be linear, but {label!r} is quadratic.")
    if given.lhs.is_soft():
        raise ValueError(f"Constraints must hold, but {label!r} is soft; add what it costs to the objective.")
    terms = {name: float(weight) for name, weight in given.lhs.linear.items()}
    return terms, given.sense.value, float(given.rhs - given.lhs.offset)
