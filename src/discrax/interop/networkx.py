"""A backend of networkx: its approximations of hard problems, by a search.

    nx.approximation.maximum_independent_set(G, backend="discrax")
    nx.approximation.one_exchange(G, weight="weight", seed=1, backend="discrax", seconds=5)

What each function takes and returns is as networkx documents it. How long to search comes besides: `seconds`, one by
default, and less where a bound proves that nothing is better, or `num_steps`, sweeps of every chain. `backend=` knows
of this module by an entry point of the installed package; without it, the functions can be called as they are.
"""

import contextlib
import random
from collections.abc import Hashable, Iterable
from typing import Any

import networkx as nx
import numpy as np

from discrax.core.checks import whole
from discrax.core.seeds import key_of
from discrax.problems.cut import MaxCut
from discrax.problems.graph import Graph
from discrax.problems.independent_set import MIS, MaxClique
from discrax.problems.problem import Problem
from discrax.solving.solution import Solution
from discrax.solving.solver import solve

_SECONDS = 1.0


def maximum_independent_set(G: Any, *, seconds: float | None = None, num_steps: int | None = None) -> set[Hashable]:
    """The nodes of a largest independent set that was found in that time."""
    return _chosen(G, MIS, seconds, num_steps)


def max_clique(G: Any, *, seconds: float | None = None, num_steps: int | None = None) -> set[Hashable]:
    """The nodes of a largest clique that was found in that time."""
    return _chosen(G, MaxClique, seconds, num_steps)


def large_clique_size(G: Any, *, seconds: float | None = None, num_steps: int | None = None) -> int:
    """The number of nodes of a largest clique that was found in that time."""
    return len(max_clique(G, seconds=seconds, num_steps=num_steps))


def one_exchange(
    G: Any,
    initial_cut: Iterable[Hashable] | None = None,
    seed: Any = None,
    weight: str | None = None,
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
) -> tuple[float, tuple[set[Hashable], set[Hashable]]]:
    """The value of a heaviest cut that was found, and its two sides; `initial_cut` is where the search begins."""
    G = _undirected(G, "one_exchange")
    first = set() if initial_cut is None else set(initial_cut)
    if not len(G):
        return 0, (set(), set())
    init = None if initial_cut is None else np.array([node in first for node in G], np.int8)
    solution = _search(MaxCut(_graph_of(G, weight)), seconds, num_steps, seed, init)
    side = {node for node, code in zip(G, solution.state, strict=True) if code}
    return nx.cut_size(G, side, weight=weight), (side, set(G) - side)


def convert_from_nx(graph: Any, *arguments: Any, **_: Any) -> Any:
    """Graphs stay what they are: the search makes arrays of them."""
    return graph


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Results are sets and numbers."""
    return result


def _undirected(G: Any, function: str) -> Any:
    """networkx refuses such graphs before it asks a backend; whoever calls a function here is refused alike."""
    if G.is_directed() or G.is_multigraph():
        kind = "directed" if G.is_directed() else "multigraph"
        raise nx.NetworkXNotImplemented(f"{function} is not implemented for {kind} type")
    return G


def _chosen(
    G: Any, problem: type[MIS] | type[MaxClique], seconds: float | None, num_steps: int | None
) -> set[Hashable]:
    name = "maximum_independent_set" if problem is MIS else "max_clique"
    G = _undirected(G, name)
    if not len(G):
        return set()
    state = _search(problem(_graph_of(G, None)), seconds, num_steps).state
    return {node for node, code in zip(G, state, strict=True) if code}


def _graph_of(G: Any, weight: str | None) -> Graph:
    """Arrays of a graph, self-loops left out: they are in no cut, and networkx passes over them elsewhere."""
    place = {node: i for i, node in enumerate(G)}
    rows = [
        (place[a], place[b], 1.0 if weight is None else value)
        for a, b, value in G.edges(data=weight, default=1.0)
        if a != b
    ]
    edges = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
    return Graph.from_edges(edges, [row[2] for row in rows], num_nodes=len(place))


def _search(
    problem: Problem, seconds: float | None, num_steps: int | None, seed: Any = None, init: np.ndarray | None = None
) -> Solution:
    seconds = _SECONDS if seconds is None and num_steps is None else seconds
    return solve(key_of(_seed_of(seed)), problem, seconds=seconds, num_steps=num_steps, init=init, progress=False)


def _seed_of(seed: Any) -> int:
    """A whole number of what networkx calls a seed: an integer, a generator of Python or numpy, or None, which is 0."""
    if isinstance(seed, random.Random):  # networkx has made one of whatever it was given
        return seed.getrandbits(31)
    for name in ("integers", "randint"):
        with contextlib.suppress(AttributeError):
            return int(getattr(seed, name)(2**31 - 1))
    return 0 if seed is None else whole("seed", seed, least=0)
