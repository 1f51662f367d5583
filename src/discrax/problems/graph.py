"""`Graph`: what every graph problem is stated on, whatever the graph came as."""

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from discrax.core.checks import as_array, describe, real_array, whole
from discrax.problems.terms import read_terms

_MOST_IN_ALL = 1e30  # in single precision that leaves room for penalties
_MOST_NODES = 10_000_000  # where there are few edges
_BYTES_PER_NODE = 100  # of a graph and a search on it


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph on nodes 0..n-1. Each edge stands once, the smaller end first; there are no loops."""

    num_nodes: int
    edges: Int[np.ndarray, "m 2"]
    weights: Float[np.ndarray, " m"]
    node_weights: Float[np.ndarray, " n"]
    names: tuple[Hashable, ...] | None = None  # of the nodes, as the source calls them

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any = None,
        *,
        num_nodes: int | None = None,
        node_weights: Any = None,
        names: Sequence[Hashable] | None = None,
    ) -> "Graph":
        """A graph from pairs of nodes. An edge may be given in both directions if its weights agree."""
        edges = as_array("Edges", edges)
        if num_nodes is not None:
            whole("num_nodes", num_nodes, least=0)
        if edges.size == 0:
            edges = np.zeros((0, 2), np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ValueError(f"Edges are an array of shape (m, 2), but got shape {edges.shape}.")
        if not np.issubdtype(edges.dtype, np.integer):
            raise ValueError(f"Edges are pairs of integers, but their type is {edges.dtype}.")
        edges = edges.astype(np.int64)
        if num_nodes is None:
            num_nodes = int(edges.max()) + 1 if len(edges) else 0 if node_weights is None else len(node_weights)
        check_num_nodes(num_nodes, len(edges))
        if len(edges) and (edges.min() < 0 or edges.max() >= num_nodes):
            outside = int(edges.min() if edges.min() < 0 else edges.max())
            raise ValueError(f"Edges join nodes 0..{num_nodes - 1}, but one names node {outside}.")
        loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
        if len(loops):
            raise ValueError(f"A graph has no self-loops here, but node {edges[loops[0], 0]} is joined to itself.")
        weights = _one_each("edge weights", weights, len(edges))
        node_weights = _one_each("node weights", node_weights, num_nodes)
        edges = np.sort(edges, axis=1)
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        edges, weights = edges[order], weights[order]
        if len(edges):
            again = np.concatenate([[False], (edges[1:] == edges[:-1]).all(axis=1)])
            different = np.flatnonzero(again[1:] & (weights[1:] != weights[:-1]))
            if len(different):
                i, j = edges[different[0]]
                first, second = weights[different[0]], weights[different[0] + 1]
                raise ValueError(f"The edge {i}-{j} is given twice, with the weights {first:g} and {second:g}.")
            edges, weights = edges[~again], weights[~again]
        return cls(num_nodes, edges, weights, node_weights, check_names(names, num_nodes, "nodes"))

    @classmethod
    def of(cls, graph: Any) -> "Graph":
        """A graph from a `Graph`, a networkx graph, a scipy.sparse matrix, a dimod BQM, a dict or an array of edges.

        An array has rows (i, j) or (i, j, weight); a dict is {(i, j): weight}, with weights {i: weight} of nodes beside
        them if there are any, and names of any kind. Attributes "weight" of a networkx graph's edges and nodes count,
        and so do the interactions of a BQM. Parallel edges of a networkx multigraph add up. Files are read by
        `read_graph`.
        """
        if isinstance(graph, Graph):
            return graph
        if isinstance(graph, str | Path):
            raise TypeError(f"Graph.of takes what is in memory, but got {describe(graph)}; use read_graph for a file.")
        if isinstance(graph, Mapping) and not hasattr(graph, "adj"):
            return _from_dict(graph)
        if hasattr(graph, "tocoo"):
            return _from_matrix(graph)
        if hasattr(graph, "is_directed") and hasattr(graph, "adj"):
            return _from_networkx(graph)
        if hasattr(graph, "quadratic") and hasattr(graph, "variables"):
            return _from_bqm(graph)
        rows = _rows(graph)
        if rows.ndim == 2 and rows.shape[1] == 3:
            rows = real_array("Edges and their weights", rows)
            if (rows[:, :2] != np.round(rows[:, :2])).any() or (np.abs(rows[:, :2]) >= 2**53).any():
                raise ValueError("Edges are rows (i, j, weight) with integers i and j, but some are not integers.")
            return cls.from_edges(rows[:, :2].astype(np.int64), rows[:, 2])
        if rows.ndim == 2 and rows.shape[1] == 2:
            return cls.from_edges(rows)
        raise TypeError(
            "A graph is a discrax Graph, a networkx graph, a scipy.sparse matrix, a dimod BQM, a dict {(i, j): weight} "
            f"or edges, (m, 2) or (m, 3), but got {type(graph).__name__}"
            + (f" of shape {rows.shape}." if rows.ndim else ".")
        )

    @property
    def num_edges(self) -> int:
        """How many there are."""
        return len(self.edges)

    @property
    def density(self) -> float:
        """The share of pairs that are joined."""
        pairs = self.num_nodes * (self.num_nodes - 1) / 2
        return self.num_edges / pairs if pairs else 0.0

    @property
    def degrees(self) -> Int[np.ndarray, " n"]:
        """The number of neighbours of each node."""
        return np.bincount(self.edges.ravel(), minlength=self.num_nodes)

    def neighbours(self) -> tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " ends"], Float[np.ndarray, " ends"]]:
        """Compressed rows: the neighbours of node i are `others[start[i]:start[i + 1]]`, with the edges' weights."""
        # Edges are in order, so with those from below first a stable sort of the rows sorts the neighbours too.
        rows = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        others = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        weights = np.concatenate([self.weights, self.weights])
        order = np.argsort(rows.astype(np.min_scalar_type(max(self.num_nodes, 1))), kind="stable")
        start = np.concatenate([[0], np.cumsum(self.degrees)])
        return start, others[order], weights[order]

    def complement(self) -> "Graph":
        """The graph of the pairs that are not joined here."""
        joined = np.zeros((self.num_nodes, self.num_nodes), bool)
        joined[self.edges[:, 0], self.edges[:, 1]] = True
        edges = np.argwhere(np.triu(~joined, 1))
        return Graph(self.num_nodes, edges, np.ones(len(edges)), self.node_weights, self.names)

    def __repr__(self) -> str:
        return f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges)"


def check_sum(what: str, *terms: Float[np.ndarray, "..."]) -> None:
    """No sum of some of the terms may overflow in a search: what is infinite cannot be compared."""
    total = sum(float(np.abs(each).sum()) for each in terms)
    if not total < _MOST_IN_ALL:
        raise ValueError(f"{what} must add up to less than {_MOST_IN_ALL:.0e}, but they do not; divide by the largest.")


def check_names(names: Any, count: int, of: str) -> tuple[Hashable, ...] | None:
    """One name for each of `count` nodes or variables; None where they have none."""
    if names is None:
        return None
    try:
        names = tuple(names)
    except TypeError:
        raise TypeError(f"names are a list, one for each of the {count} {of}, but got {describe(names)}.") from None
    if len(names) != count:
        raise ValueError(f"There are {count} {of}, but {len(names)} names.")
    return names


def check_num_nodes(num_nodes: int, num_edges: int) -> None:
    """Nodes are numbered one after another; names such as 10^9 would make arrays of nodes that are not there."""
    if num_nodes > max(_MOST_NODES, 100 * num_edges):
        raise ValueError(
            f"Nodes are numbered 0..n-1, so that this graph would have {num_nodes:,} nodes, with {num_edges:,} edges, "
            f"and take {num_nodes * _BYTES_PER_NODE / 2**30:,.0f} GiB; number the nodes that have edges one after "
            "another, as numpy.unique(edges, return_inverse=True) does."
        )


def _one_each(what: str, values: Any, count: int) -> Float[np.ndarray, " count"]:
    values = np.ones(count) if values is None else real_array(f"The {what}", values)
    if values.shape != (count,):
        raise ValueError(f"There must be {count} {what}, but their shape is {values.shape}.")
    return values


def _rows(graph: Any) -> np.ndarray:
    try:
        return np.asarray(graph)
    except ValueError:  # rows of different lengths
        said = "A graph's edges are rows (i, j) or (i, j, weight), but got rows of different lengths."
        raise TypeError(said) from None


def _from_matrix(matrix: Any) -> Graph:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A graph's matrix is square, but got shape {matrix.shape}.")
    matrix = matrix.tocoo(copy=True)
    matrix.sum_duplicates()
    stored = matrix.data != 0
    edges = np.stack([matrix.row[stored], matrix.col[stored]], axis=1).astype(np.int64)
    return Graph.from_edges(edges, matrix.data[stored], num_nodes=matrix.shape[0])


def _from_dict(terms: Mapping[Any, Any]) -> Graph:
    names, num_nodes, sites, linear, edges, weights, constant = read_terms("a graph", terms)
    if constant:
        raise ValueError("A graph has weights of edges and of nodes, but got a constant, the term of ().")
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        node = int(edges[loops[0], 0])
        name = describe(node if names is None else names[node])
        raise ValueError(f"A graph has no self-loops here, but node {name} is joined to itself.")
    node_weights = np.ones(num_nodes)
    node_weights[sites] = linear
    return Graph.from_edges(edges, weights, num_nodes=num_nodes, node_weights=node_weights, names=names)


def _from_bqm(model: Any) -> Graph:
    names = list(model.variables)
    place = {name: i for i, name in enumerate(names)}
    pairs = [(place[a], place[b]) for a, b in model.quadratic]
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    return Graph.from_edges(edges, list(model.quadratic.values()), num_nodes=len(names), names=names)


def _from_networkx(graph: Any) -> Graph:
    names = list(graph.nodes)
    place = {name: i for i, name in enumerate(names)}
    ends = map(place.__getitem__, itertools.chain.from_iterable(graph.edges()))
    edges, n = np.fromiter(ends, np.int64).reshape(-1, 2), len(names)
    told = list(graph.edges(data="weight", default=1.0))
    weights = _weights([weight for *_, weight in told], lambda i: f"edge {told[i][0]}-{told[i][1]}")
    # Parallel edges of a multigraph add up; the two directions of a directed one are the same edge, told twice.
    edges = edges if graph.is_directed() else np.sort(edges, axis=1)
    _, first, which = np.unique(edges @ [max(n, 1), 1], return_index=True, return_inverse=True)
    weights = np.bincount(which, weights, minlength=len(first))
    of_nodes = [weight for _, weight in graph.nodes(data="weight", default=1.0)]
    node_weights = _weights(of_nodes, lambda i: f"node {names[i]}")
    return Graph.from_edges(edges[first], weights, num_nodes=n, node_weights=node_weights, names=names)


def _weights(given: list[Any], owner: Callable[[int], str]) -> Float[np.ndarray, " weights"]:
    """The numbers that are given; a ValueError says whose is none."""
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.asarray([_number(weight) for weight in given])
    for i in np.flatnonzero(~np.isfinite(numbers))[:1]:
        raise ValueError(f'The attribute "weight" of {owner(i)} must be a finite number, but is {describe(given[i])}.')
    return numbers


def _number(weight: Any) -> float:
    try:
        return float(weight)
    except (TypeError, ValueError, OverflowError):
        return np.nan
