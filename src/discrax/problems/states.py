"""What the problems share: checks, numbers of batches of states, improvement by single flips, names for JSON."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.problems.graph import Graph, check_sum
from discrax.problems.problem import BinaryProblem, BinaryQuadratic, BoundedQuadratic
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


class Unconstrained(BinaryProblem):
    """A quadratic form of which every state is feasible."""

    @cached_property
    def _rows(self) -> tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " ends"], Float[np.ndarray, " ends"]]:
        form = self._form
        return Graph(form.num_sites, form.edges, form.weights, form.linear).neighbours()

    @property
    def _form(self) -> BinaryQuadratic:
        return self.model.form if isinstance(self.model, BoundedQuadratic) else self.model

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        return np.zeros(np.shape(x)[:-1])

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Flips single sites as long as that gains: (1 - 2 x_i) h_i, with the fields h = linear + W x."""
        model, (start, others, weights) = self._form, self._rows
        least = _ROUNDING * max(np.abs(model.linear).max(initial=0), np.abs(model.weights).max(initial=0))
        dtype, x, h = np.asarray(x).dtype, np.array(x, np.int64), model.linear.copy()
        for site in np.flatnonzero(x).tolist():
            row = slice(start[site], start[site + 1])
            h[others[row]] += weights[row]
        while len(sites := np.flatnonzero(h * (1 - 2 * x) > least)):
            for site in sites.tolist():
                move = 1 - 2 * x[site]
                if h[site] * move > least:
                    row = slice(start[site], start[site + 1])
                    x[site] += move
                    h[others[row]] += move * weights[row]
        return x.astype(dtype)


def cut_weight(graph: Graph, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
    """The weight of the edges whose ends have different codes."""
    i, j = graph.edges.T
    return per_state(lambda x: (x[i] != x[j]) @ graph.weights, x)


def names_of(names: tuple[Hashable, ...] | None, indices: Int[np.ndarray, " m"]) -> list:
    """What the source calls some nodes, as JSON takes it."""
    return [i if names is None else as_plain(names[i]) for i in indices.tolist()]


def plain_keys(names: Iterable[Hashable]) -> list[str | int | float]:
    """Names as keys of JSON, which are texts: those of which several would be one have their place behind them."""
    plain = [as_plain(name) for name in names]
    count = Counter(map(str, plain))
    return [name if count[str(name)] == 1 else f"{name} [{place}]" for place, name in enumerate(plain)]


def as_plain(name: Hashable) -> str | int | float:
    """A name as JSON takes it."""
    if isinstance(name, np.generic):
        name = name.item()
    return name if isinstance(name, str | int | float) else str(name)
