"""Maximum satisfiability: an assignment that satisfies soft clauses of as much weight as possible, and all hard ones.

A clause is violated where all of its literals are false, so with soft weights w_c and a penalty p for hard clauses,

    value(x) = sum of w_c - sum over soft c of w_c v_c(x) - p sum over hard c of v_c(x),

where v_c(x) is the product of 1 - x_i over the literals i and of x_i over the literals "not i" of c: one term a clause,
whatever its length.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from discrax.core.checks import describe, number, real_array, whole
from discrax.problems.graph import check_sum
from discrax.problems.polynomial import ProductProblem
from discrax.problems.products import Products, make_products
from discrax.problems.readers import Formula, read_formula
from discrax.problems.states import per_state


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MaxSAT(ProductProblem):
    """Maximum satisfiability of a `.cnf` or `.wcnf` file, or of clauses `[[1, -2], [2, 3]]` with `weights` (or 1 each).

    Variables are 1, 2, ..., and -2 is "not 2". The clauses of `hard` must hold: a state that violates one is not
    feasible. The objective is the weight of the soft clauses that are satisfied. `penalty` is what a violated hard
    clause costs on the way: by default it is a little more than any literal can gain. In the end fewer violations are
    better, whatever the weights. Whether a search ends at a feasible state is up to the formula: `is_feasible` says.
    """

    formula: Formula
    penalty: float

    def __init__(
        self,
        clauses: Any,
        weights: Any = None,
        *,
        hard: Iterable[Sequence[int]] = (),
        penalty: float | None = None,
    ):
        if isinstance(clauses, str | Path):
            if weights is not None or hard:  # ty: ignore[truthiness-test-of-iterable]
                raise ValueError("A file has its own weights and hard clauses: leave out `weights` and `hard`.")
            formula = read_formula(clauses)
        else:
            formula = clauses if isinstance(clauses, Formula) else _formula(clauses, weights, hard)
        if formula.num_variables == 0:
            raise ValueError("A formula needs at least one variable, but this one has none.")
        check_sum("The weights of a formula", formula.weights)
        penalty = _suitable_penalty(formula) if penalty is None else number("penalty", penalty, above=0)
        vars(self).update(formula=formula, penalty=penalty)

    @cached_property
    def model(self) -> Products:
        formula = self.formula
        costs, total = np.where(formula.is_hard, self.penalty, formula.weights), float(formula.weights.sum())
        terms, sites = np.repeat(np.arange(len(costs)), np.diff(formula.start)), np.abs(formula.literals) - 1
        surcharges = np.where(formula.is_hard, total, 0.0)
        codes = (formula.literals < 0).astype(np.int8)  # at which a literal is false
        return make_products(formula.num_variables, terms, sites, codes, -costs, total, surcharges=surcharges)

    def is_satisfied(self, x: Integer[np.ndarray, " n"]) -> Bool[np.ndarray, " clauses"]:
        """Which clauses, soft and hard, a state satisfies."""
        formula = self.formula
        is_true = (np.asarray(x)[np.abs(formula.literals) - 1] == 1) == (formula.literals > 0)
        clauses = np.repeat(np.arange(len(formula.weights)), np.diff(formula.start))
        return np.bincount(clauses[is_true], minlength=len(formula.weights)) > 0

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The weight of the soft clauses that are satisfied."""
        return per_state(lambda x: float(self.is_satisfied(x) @ self.formula.weights), x)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """How many hard clauses are violated."""
        return per_state(lambda x: float((self.formula.is_hard & ~self.is_satisfied(x)).sum()), x)

    def bound(self) -> float:
        """All soft clauses that have a literal."""
        return float(self.formula.weights[np.diff(self.formula.start) > 0].sum())

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        """The literals that hold, the weights of soft clauses, and the clauses that are violated, counted from 1."""
        variables, is_satisfied = np.arange(1, len(x) + 1), self.is_satisfied(x)
        satisfied = float(self.objective(x))
        return {
            "literals": np.where(np.asarray(x) == 1, variables, -variables).tolist(),
            "satisfied": satisfied,
            "violated": float(self.formula.weights.sum()) - satisfied,
            "violated_clauses": (np.flatnonzero(~is_satisfied) + 1).tolist(),
        }

    def __repr__(self) -> str:
        num_hard = int(self.formula.is_hard.sum())
        hard = f", {num_hard:,} of them hard" if num_hard else ""
        return f"MaxSAT({self.formula.num_variables:,} variables, {len(self.formula.weights):,} clauses{hard})"


def _suitable_penalty(formula: Formula) -> float:
    """A ten-thousandth more than the soft clauses of any literal weigh: no flip gains by violating a hard clause."""
    of_literals = np.repeat(formula.weights, np.diff(formula.start))
    gains = np.bincount(formula.literals + formula.num_variables, of_literals, minlength=1)
    return 1.0001 * float(gains.max()) or 1.0


def _formula(clauses: Any, weights: Any, hard: Any) -> Formula:
    soft, hard = _clauses("clauses", clauses), _clauses("hard", hard)
    weights = np.ones(len(soft)) if weights is None else real_array("The weights of clauses", weights)
    if weights.shape != (len(soft),):
        raise ValueError(f"There must be {len(soft)} weights, one per soft clause, but their shape is {weights.shape}.")
    if (weights <= 0).any():
        raise ValueError(f"Clauses weigh more than 0, but one weighs {weights[weights <= 0][0]:g}.")
    if any(not clause for clause in hard):
        raise ValueError("A hard clause has at least one literal, but one has none, so that nothing satisfies it.")
    every = soft + hard
    literals = np.array([literal for clause in every for literal in clause], np.int64)
    start = np.append(0, np.cumsum([len(clause) for clause in every], dtype=np.int64))
    is_hard = np.arange(len(every)) >= len(soft)
    weights = np.append(weights, np.zeros(len(hard)))
    return Formula(int(np.abs(literals).max(initial=0)), start, literals, weights, is_hard)


def _clauses(name: str, clauses: Any) -> list[list[int]]:
    try:
        rows = [list(clause) for clause in clauses]
    except TypeError:
        raise TypeError(
            f"{name} are lists of literals, such as [[1, -2], [2, 3]], or a file, but got {describe(clauses)}."
        ) from None
    for row in rows:
        for literal in row:
            if whole("A literal", literal, least=-(2**31), most=2**31 - 1) == 0:
                raise ValueError("A literal is a variable 1, 2, ... or its negation -1, -2, ..., but got 0.")
    return rows
