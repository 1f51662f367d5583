"""What the problems share: checks, numbers of batches of states, improvement by single flips, names for JSON."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.problems.graph import Graph, check_sum
from discrax.problems.problem import BinaryQuadratic
from discrax.problems.readers import read_graph

_ROUNDING = 1e-9  # of sums of coefficients, relative to the largest


def graph_with_nodes(graph: Any) -> Graph:
    """The graph that a problem is stated on, from a file or whatever `Graph.of` takes; one without nodes is refused."""
    graph = read_graph(graph) if isinstance(graph, str | Path) else Graph.of(graph)
    if graph.num_nodes == 0:
        raise ValueError("A problem needs a graph with at least one node, but this one is empty.")
    check_sum("The weights of the edges and those of the nodes", graph.weights, graph.node_weights)
    return graph


def per_state(
    number: Callable[[Integer[np.ndarray, " n"]], float], x: Integer[np.ndarray, "*batch n"]
) -> Float[np.ndarray, "*batch"]:
    """The number of each state. One at a time: a batch over all edges of a large graph would not fit into memory."""
    x = np.asarray(x)
    numbers = [number(state) for state in x.reshape(-1, x.shape[-1])]
    return np.array(numbers, np.float64).reshape(x.shape[:-1])


def totals(
    places: Int[np.ndarray, " m"], values: Float[np.ndarray, " m"], num_places: int
) -> Float[np.ndarray, " places"]:
    """The sum of the values at each place."""
    # Of nothing, bincount makes integers.
    return np.bincount(places, values, minlength=num_places).astype(np.float64)


class Flips:
    """Improvement of states of a quadratic form, by the fields h = linear + W x: a flip gains (1 - 2 x_i) h_i."""

    def __init__(self, model: BinaryQuadratic):
        graph = Graph(model.num_sites, model.edges, model.weights, model.linear)
        self._linear, (self._start, self._others, self._weights) = model.linear, graph.neighbours()
        largest = max(np.abs(model.linear).max(initial=0), np.abs(model.weights).max(initial=0))
        self._least_gain = _ROUNDING * largest

    def climb(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Flips single sites as long as that gains."""
        dtype, x = np.asarray(x).dtype, np.array(x, np.int64)
        h, least = self._linear.copy(), self._least_gain
        for site in np.flatnonzero(x).tolist():
            row = self._row(site)
            h[self._others[row]] += self._weights[row]
        while len(sites := np.flatnonzero(h * (1 - 2 * x) > least)):
            for site in sites.tolist():
                move = 1 - 2 * x[site]
                if h[site] * move > least:
                    row = self._row(site)
                    x[site] += move
                    h[self._others[row]] += move * self._weights[row]
        return x.astype(dtype)

    def _row(self, site: int) -> slice:
        return slice(self._start[site], self._start[site + 1])


def names_of(names: tuple[Hashable, ...] | None, indices: Int[np.ndarray, " m"]) -> list:
    """What the source calls some nodes, as JSON takes it."""
    return [i if names is None else as_plain(names[i]) for i in indices.tolist()]


def as_plain(name: Hashable) -> str | int | float:
    """A name as JSON takes it."""
    if isinstance(name, np.generic):
        name = name.item()
    return name if isinstance(name, str | int | float) else str(name)
