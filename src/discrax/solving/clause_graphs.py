"""Graphs of conflicts that come from formulas: recognised, searched as the formula, and brought back.

The usual way from a formula to an independent set makes a node of every literal of every clause, joins the nodes of a
clause, and joins each literal to all nodes of its negation. Then as many clauses can be true as a set can have nodes.
A graph is known to be such a one by its edges:

    those with a common neighbour   are cliques, which do not touch: the clauses
    all others                      are complete bipartite parts, which do not touch: the variables and their two signs

Flips of variables, each of which moves all of its nodes, find in milliseconds what exchanges of nodes do not find in
seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Integer

from discrax.problems.problem import BinaryQuadratic
from discrax.problems.products import Products
from discrax.solving.clock import Clock
from discrax.solving.engine import Report

_MOST_NEIGHBOURS = 64  # on average: formulas have fewer, and finding triangles takes time where there are many


@dataclass(frozen=True, eq=False)
class ClauseGraph:
    """Which clause, variable and sign each node stands for."""

    clause: Int[np.ndarray, " nodes"]
    variable: Int[np.ndarray, " nodes"]
    sign: Int[np.ndarray, " nodes"]  # the code of the variable at which the literal is true

    @property
    def formula(self) -> Products:
        """Minus the number of clauses that are not true, plus that of all: the size of the set that `lift` makes."""
        literals = np.unique(np.stack([self.clause, self.variable, 1 - self.sign], axis=1), axis=0)
        num_clauses = int(self.clause.max()) + 1
        start = np.searchsorted(literals[:, 0], np.arange(num_clauses + 1))
        codes = literals[:, 2].astype(np.int8)
        weights, none = np.full(num_clauses, -1.0), np.zeros(num_clauses)
        num_variables = int(self.variable.max()) + 1
        return Products(num_variables, start, literals[:, 1], codes, weights, none, offset=float(num_clauses))

    def lift(self, x: Integer[np.ndarray, "*batch variables"]) -> Integer[np.ndarray, "*batch nodes"]:
        """Independent sets: of every clause that is true, the first node whose literal is."""
        is_true = np.asarray(x)[..., self.variable] == self.sign
        order = np.argsort(self.clause, kind="stable")
        start = np.searchsorted(self.clause[order], np.arange(int(self.clause.max()) + 1))
        place = np.where(is_true[..., order], np.arange(len(order)), len(order))
        first = np.minimum.reduceat(place, start, axis=-1)
        chosen = np.zeros((*is_true.shape[:-1], len(order) + 1), np.int8)
        np.put_along_axis(chosen, first, 1, axis=-1)
        sets = np.zeros(is_true.shape, np.int8)
        sets[..., order] = chosen[..., :-1]
        return sets

    def project(self, sets: Integer[np.ndarray, "*batch nodes"]) -> Integer[np.ndarray, "*batch variables"]:
        """Codes of variables at which all nodes of independent sets stand for true literals."""
        sets = np.asarray(sets)
        x = np.zeros((*sets.shape[:-1], int(self.variable.max()) + 1), np.int8)
        for state, chosen in zip(x.reshape(-1, x.shape[-1]), sets.reshape(-1, sets.shape[-1]), strict=True):
            nodes = np.flatnonzero(chosen)
            state[self.variable[nodes]] = self.sign[nodes]
        return x


# A door to the search of sites: what `search_sets` passes on, and what the graph says.
def search_formula(
    graph: ClauseGraph,
    model: BinaryQuadratic,
    *,
    num_chains: int,
    seed: int,
    init: Integer[np.ndarray, "*chains n"] | None,
    target: float,
    num_threads: int,
    clock: Clock,
) -> Iterator[Report]:
    """Reports of sets of nodes of one weight, by a search of the formula. It ends when all clauses are true, for a set
    has one node of a clause at most, or when a set of weight `target` is found.
    """
    from discrax.solving.sites import search_by_sites

    formula, weight = graph.formula, float(model.linear[0])
    begin = None if init is None else graph.project(init)
    for report in search_by_sites(
        formula, num_chains=num_chains, seed=seed, init=begin, budget=clock.budget, num_threads=num_threads, clock=clock
    ):
        best, now = (weight * values + model.offset for values in (report.best_values, report.values))
        is_proved = bool(report.best_values.max() >= formula.num_terms)
        states = graph.lift(report.best_states)
        yield report._replace(values=now, best_values=best, best_states=states, is_proved=is_proved)
        if is_proved or best.max() >= target:
            return


def recognise(num_nodes: int, edges: Int[np.ndarray, "m 2"]) -> ClauseGraph | None:
    """The clauses of a graph, or None where it is another one, or has no variable that stands with both signs."""
    from scipy.sparse import coo_array

    if not len(edges) or 2 * len(edges) > _MOST_NEIGHBOURS * num_nodes:
        return None
    i, j = edges.T
    ones = np.ones(2 * len(edges), np.int32)
    matrix = coo_array((ones, (np.r_[i, j], np.r_[j, i])), shape=(num_nodes, num_nodes)).tocsr()
    common = np.asarray((matrix @ matrix)[i, j]).ravel()
    inside, across = edges[common > 0], edges[common == 0]
    num_clauses, clause = _components(num_nodes, inside)
    size = np.bincount(clause, minlength=num_clauses)
    if not len(across) or (np.bincount(clause[inside[:, 0]], minlength=num_clauses) != size * (size - 1) // 2).any():
        return None
    return _with_variables(num_nodes, clause, across)


def _with_variables(
    num_nodes: int, clause: Int[np.ndarray, " nodes"], across: Int[np.ndarray, "m 2"]
) -> ClauseGraph | None:
    # In a double cover, whose edges go from a node to the other copy of its neighbour, the two sides of a bipartite
    # part come apart.
    i, j = across.T
    cover = np.concatenate([np.stack([i, j + num_nodes], axis=1), np.stack([j, i + num_nodes], axis=1)])
    _, part = _components(2 * num_nodes, cover)
    one, other = part[:num_nodes], part[num_nodes:]
    if (one == other).any():
        return None
    _, variable = np.unique(np.minimum(one, other), return_inverse=True)
    sign = (one > other).astype(np.int64)
    count = int(variable.max()) + 1
    sides = [np.bincount(variable[sign == s], minlength=count) for s in (0, 1)]
    if (np.bincount(variable[i], minlength=count) != sides[0] * sides[1]).any():
        return None
    return ClauseGraph(clause, variable, sign)


def _components(n: int, edges: Int[np.ndarray, "m 2"]) -> tuple[int, Int[np.ndarray, " n"]]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(edges), bool), (edges[:, 0], edges[:, 1])), shape=(n, n))
    count, labels = connected_components(graph, directed=False)
    return int(count), labels.astype(np.int64)
