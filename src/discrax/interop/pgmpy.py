"""Factor graphs from the models of pgmpy: Bayesian networks, Markov networks, factor graphs.

from discrax.interop.pgmpy import from_pgmpy

graph = from_pgmpy(model, evidence={"xray": "yes"})
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from discrax.core.checks import describe
from discrax.interop.factor_files import graph_of, observe
from discrax.targets.factor_graph import FactorGraph


def from_pgmpy(model: Any, evidence: Mapping[Hashable, Any] | None = None) -> FactorGraph:
    """The factor graph of a discrete model of pgmpy, with its names and states; a table for each of its factors.

    Args:
        model: a Bayesian network, a Markov network or a factor graph, all of whose factors are tables.
        evidence: names of variables and their states, or codes.
    """
    factors = _factors(model)
    states: dict[Hashable, tuple[Hashable, ...]] = {}
    for factor in factors:
        for name in factor.variables:
            known = tuple(factor.state_names[name])
            if states.setdefault(name, known) != known:
                raise ValueError(f"The states of {name} are {states[name]} in one factor, but {known} in another.")
    loose = [node for node in model.nodes() if node not in states and node not in factors]
    if loose and isinstance(loose[0], tuple):
        raise ValueError(f"The nodes of a {type(model).__name__} are cliques; give the network that it was made of.")
    if loose:
        raise ValueError(f"Every variable has a factor, but {loose[0]!r} has none.")
    names = list(states)
    scopes = [[names.index(name) for name in factor.variables] for factor in factors]
    tables = [np.asarray(factor.values, np.float64) for factor in factors]
    graph = graph_of([len(each) for each in states.values()], scopes, tables, names, list(states.values()))
    return graph if evidence is None else observe(graph, evidence)


def _factors(model: Any) -> list[Any]:
    if hasattr(model, "get_cpds"):
        found = model.get_cpds()
        if all(hasattr(each, "to_factor") for each in found):
            return [each.to_factor() for each in found]
    elif hasattr(model, "get_factors"):
        found = model.get_factors()
        if all(hasattr(each, "values") and hasattr(each, "state_names") for each in found):
            return list(found)
    else:
        raise TypeError(f"A model is a discrete network or factor graph of pgmpy, but got {describe(model)}.")
    raise TypeError(f"Factors of the model are tables, but those of this {type(model).__name__} are not.")
