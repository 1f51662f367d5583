"""Maximum independent set and maximum clique: the heaviest set of nodes without a conflict.

In an independent set, joined nodes conflict; in a clique, nodes that are not joined. For a set S of nodes with weights
w_i > 0 (all 1 unless `weighted`), the search climbs

    V(S) = sum over i in S of w_i - penalty * sum over conflicts i-j in S of min(w_i, w_j).

To drop the lighter end of a conflict loses min(w_i, w_j) and gains at least penalty * min(w_i, w_j). With penalty >= 1
the best drop therefore never lowers V, and after all drops V is the weight: a repaired set weighs at least V(S), and
the largest V is the weight of the best feasible set.
"""

import heapq
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from discrax.core.checks import number
from discrax.problems.graph import Graph
from discrax.problems.problem import BinaryProblem, BinaryQuadratic
from discrax.problems.states import graph_with_nodes, names_of, per_state

_MOST_NODES_FOR_A_BOUND, _MOST_NODES_FOR_A_QUICK_BOUND = 20_000, 3_000
_MOST_CONFLICTS = 100_000_000


@dataclass(frozen=True, init=False, repr=False, eq=False)
class _ConflictFreeSet(BinaryProblem):
    """What independent sets and cliques share: x_i = 1 where node i is in the set."""

    graph: Graph
    penalty: float
    weighted: bool
    node_weights: Float[np.ndarray, " n"]

    def __init__(self, graph: Any, *, penalty: float = 1.0001, weighted: bool = False):
        graph = graph_with_nodes(graph)
        node_weights = graph.node_weights if weighted else np.ones(graph.num_nodes)
        if (node_weights <= 0).any():
            node = int(np.argmax(node_weights <= 0))
            raise ValueError(
                f"Weights of nodes must be positive, but that of node {names_of(graph.names, np.array([node]))[0]} is "
                f"{node_weights[node]:g}; leave such nodes out."
            )
        vars(self).update(
            graph=graph, penalty=number("penalty", penalty, least=1), weighted=bool(weighted), node_weights=node_weights
        )

    @abstractmethod
    def _conflicts(self) -> Int[np.ndarray, "m 2"]:
        """Pairs of nodes that must not both be in the set, each once."""

    @abstractmethod
    def _conflicting(self, node: int) -> Int[np.ndarray, " k"]:
        """The nodes that must not be in the set together with this one."""

    @cached_property
    def model(self) -> BinaryQuadratic:
        pairs = self._conflicts()
        lighter = self.node_weights[pairs].min(axis=1)
        return BinaryQuadratic(self.node_weights, pairs, -self.penalty * lighter)

    @cached_property
    def _rows(self) -> tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " ends"]]:
        return self.graph.neighbours()[:2]

    def _neighbours(self, node: int) -> Int[np.ndarray, " k"]:
        start, others = self._rows
        return others[start[node] : start[node + 1]]

    def _num_edges_inside(self, x: Integer[np.ndarray, " n"]) -> int:
        chosen = np.asarray(x) != 0
        return sum(int(np.count_nonzero(chosen[self._neighbours(i)])) for i in np.flatnonzero(chosen).tolist()) // 2

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        return np.asarray(np.asarray(x) @ self.node_weights)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Drops nodes, the one whose drop gains most of V first, until none conflict; then adds what fits."""
        w = self.node_weights
        chosen = np.asarray(x) != 0
        num_conflicts = np.zeros(len(w), np.int64)  # of each node with the set
        cost = np.zeros(len(w))  # of these conflicts, without the penalty
        for node in np.flatnonzero(chosen).tolist():
            others = self._conflicting(node)
            num_conflicts[others] += 1
            cost[others] += np.minimum(w[others], w[node])

        def loss(node: int) -> float:
            return float(w[node] - self.penalty * cost[node])

        # A drop never makes another drop gain more, so a loss in the queue is at most the true one.
        queue = [(loss(node), node) for node in np.flatnonzero(chosen & (num_conflicts > 0)).tolist()]
        heapq.heapify(queue)
        while queue:
            _, node = heapq.heappop(queue)
            if num_conflicts[node] == 0:
                continue
            if queue and loss(node) > queue[0][0]:
                heapq.heappush(queue, (loss(node), node))
                continue
            others = self._conflicting(node)
            chosen[node] = False
            num_conflicts[others] -= 1
            cost[others] -= np.minimum(w[others], w[node])
        self._add_what_fits(chosen, num_conflicts)
        return chosen.astype(np.asarray(x).dtype)

    def _add_what_fits(self, chosen: Bool[np.ndarray, " n"], num_conflicts: Int[np.ndarray, " n"]) -> None:
        """Heavy nodes with few conflicts first."""
        fits = ~chosen & (num_conflicts == 0)
        order = np.lexsort((self._num_conflicting, -self.node_weights))
        for node in order[fits[order]].tolist():
            if fits[node]:
                chosen[node] = True
                fits[self._conflicting(node)] = False

    @property
    @abstractmethod
    def _num_conflicting(self) -> Int[np.ndarray, " n"]:
        """How many nodes conflict with each."""

    def bound(self) -> float | None:
        """Cover the nodes by groups in which all conflict: the set has at most one of each, at best the heaviest."""
        n = self.graph.num_nodes
        if n > _MOST_NODES_FOR_A_BOUND:
            return None
        total, is_covered, in_conflict = 0.0, np.zeros(n, bool), np.zeros(n, bool)
        order = np.lexsort((self._num_conflicting, -self.node_weights))
        for node in order.tolist():
            if is_covered[node]:
                continue
            total += float(self.node_weights[node])  # the heaviest of its group, as heavy ones come first
            is_covered[node] = True
            candidates = self._conflicting(node)
            candidates = candidates[~is_covered[candidates]]
            while len(candidates):
                member = int(candidates[np.argmax(self._num_conflicting[candidates])])
                is_covered[member] = True
                others = self._conflicting(member)
                in_conflict[others] = True
                candidates = candidates[in_conflict[candidates]]
                in_conflict[others] = False
        return total

    def quick_bound(self) -> float | None:
        """`bound`, where that takes milliseconds."""
        return self.bound() if self.graph.num_nodes <= _MOST_NODES_FOR_A_QUICK_BOUND else None

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        chosen = np.flatnonzero(x)
        described = {"nodes": names_of(self.graph.names, chosen), "size": len(chosen)}
        return {**described, "weight": float(self.objective(x))} if self.weighted else described

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weighted else ""
        return f"{type(self).__name__}({self.graph.num_nodes:,} nodes, {self.graph.num_edges:,} edges{weighted})"


class MIS(_ConflictFreeSet):
    """Maximum independent set: as many nodes as possible (or as heavy ones), no two of them joined.

    `penalty` is the price of an edge inside the set; with 1 or more, no edge pays. Weights of edges do not count.
    """

    def _conflicts(self) -> Int[np.ndarray, "m 2"]:
        return self.graph.edges

    def _conflicting(self, node: int) -> Int[np.ndarray, " k"]:
        return self._neighbours(node)

    @cached_property
    def _num_conflicting(self) -> Int[np.ndarray, " n"]:
        return self.graph.degrees

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """Edges inside the set."""
        return per_state(self._num_edges_inside, x)


class MaxClique(_ConflictFreeSet):
    """Maximum clique: as many nodes as possible (or as heavy ones), all of them joined.

    It is the maximum independent set of the complement, whose edges only the model lists.
    """

    def __init__(self, graph: Any, *, penalty: float = 1.0001, weighted: bool = False):
        super().__init__(graph, penalty=penalty, weighted=weighted)
        n = self.graph.num_nodes
        num_conflicts = n * (n - 1) // 2 - self.graph.num_edges
        if num_conflicts > _MOST_CONFLICTS:
            raise ValueError(
                f"A clique is sought among the pairs that are not joined, of which there may be {_MOST_CONFLICTS:,}, "
                f"but this graph has {num_conflicts:,}; leave out nodes whose degree is less than a known clique's."
            )

    def _conflicts(self) -> Int[np.ndarray, "m 2"]:
        return self.graph.complement().edges

    def _conflicting(self, node: int) -> Int[np.ndarray, " k"]:
        is_other = np.ones(self.graph.num_nodes, bool)
        is_other[self._neighbours(node)] = False
        is_other[node] = False
        return np.flatnonzero(is_other)

    @cached_property
    def _num_conflicting(self) -> Int[np.ndarray, " n"]:
        return self.graph.num_nodes - 1 - self.graph.degrees

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """Pairs inside the set that are not joined."""

        def num_missing(x: Integer[np.ndarray, " n"]) -> int:
            size = int(np.count_nonzero(x))
            return size * (size - 1) // 2 - self._num_edges_inside(x)

        return per_state(num_missing, x)
