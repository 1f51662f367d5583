"""Factor graphs from dimod: discrete quadratic models, and polynomials of any order. log pi is the negative energy.

from discrax.interop.dimod_factors import from_dimod

graph = from_dimod(dqm)  # discrax.Tempered(graph, beta) is the law at another temperature
"""

from collections.abc import Hashable
from typing import Any

import dimod
import numpy as np
from dimod.higherorder.polynomial import BinaryPolynomial

from discrax.core.checks import describe
from discrax.targets.factor_graph import FactorGraph

_MOST_IN_TERM = 16


def from_dimod(model: Any) -> FactorGraph:
    """The law exp(-energy) of a `dimod.DiscreteQuadraticModel` or a `dimod.BinaryPolynomial`.

    Codes are cases; those of a polynomial are 0 and 1, and of spins -1 is code 0. A term of a polynomial is a table
    with 2^k entries; of longer terms `discrax.targets.Polynomial` makes none.
    """
    if isinstance(model, dimod.DiscreteQuadraticModel):
        return _from_dqm(model)
    if isinstance(model, BinaryPolynomial):
        return _from_polynomial(model)
    raise TypeError(f"A model is a dimod DiscreteQuadraticModel or BinaryPolynomial, but got {describe(model)}.")


def _from_dqm(model: dimod.DiscreteQuadraticModel) -> FactorGraph:
    names: list[Hashable] = list(model.variables or ())
    place = {name: site for site, name in enumerate(names)}
    if not names:
        raise ValueError("The model has no variables.")
    scopes: list[list[int]] = [[], *([site] for site in range(len(names)))]
    tables = [np.asarray(-float(model.offset)), *(-np.asarray(model.get_linear(name), np.float64) for name in names)]
    for name in names:
        for other in model.adj[name]:
            if place[name] < place[other]:
                scopes.append([place[name], place[other]])
                tables.append(-np.asarray(model.get_quadratic(name, other, array=True), np.float64))
    return FactorGraph([model.num_cases(name) for name in names], scopes, tables, names=names, in_logs=True)


def _from_polynomial(model: BinaryPolynomial) -> FactorGraph:
    names: list[Hashable] = list(model.variables)
    if not names:
        raise ValueError("The polynomial has no variables.")
    scopes, tables = [], []
    values = np.array([-1.0, 1.0]) if model.vartype is dimod.SPIN else np.array([0.0, 1.0])
    for term, bias in model.items():
        if len(term) > _MOST_IN_TERM:
            raise ValueError(
                f"A table of {len(term)} variables would have 2^{len(term)} entries, but terms have at most "
                f"{_MOST_IN_TERM} variables here; discrax.targets.Polynomial takes any."
            )
        scopes.append(sorted(names.index(name) for name in term))
        product = np.ones(())
        for _ in term:
            product = product[..., None] * values.reshape((1,) * product.ndim + (2,))
        tables.append(-bias * product)
    return FactorGraph([2] * len(names), scopes, tables, names=names, in_logs=True)
