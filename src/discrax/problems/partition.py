"""Balanced partition: k parts of equal size such that the edges between them weigh as little as possible.

For labels x_i in 0..k-1 of n nodes and the sizes n_s of the parts, the search climbs

    -(2 cut(x) + balance * w * sum_s (n / k - n_s)^2),    w = the mean of |weight| over edges (1 without edges).

The 2 counts each cut edge once for either of the parts it leaves. What is feasible does not depend on `balance`: the
sizes are floor(n / k) or ceil(n / k). Moving node i from part s to part t raises the cut by a_is - a_it, where a_is is
the weight between node i and part s.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.core.checks import number, whole
from discrax.core.sites import code_dtype
from discrax.core.space import Categorical
from discrax.problems.graph import Graph
from discrax.problems.problem import Labelling, Problem
from discrax.problems.states import cut_weight, graph_with_nodes, names_of, per_state, totals
from discrax.targets.coupling import Dense, Uncoupled
from discrax.targets.partition import BalancedLabels
from discrax.targets.sparse_coupling import Sparse

_CUT_COST = 2.0


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Partition(Problem):
    """Balanced partition into `num_parts` parts. `balance` is the price of unequal sizes while searching, in units of
    the mean weight of an edge.
    """

    sense: ClassVar[str] = "min"

    graph: Graph
    num_parts: int
    balance: float

    def __init__(self, graph: Any, num_parts: int = 3, *, balance: float = 1.0):
        graph = graph_with_nodes(graph)
        num_parts = whole("num_parts", num_parts)
        if not 2 <= num_parts <= graph.num_nodes:
            raise ValueError(
                f"num_parts must lie in 2..{graph.num_nodes}, the number of nodes, but is {num_parts}."
                if graph.num_nodes > 1
                else "A partition needs at least two nodes, but this graph has one."
            )
        balance = number("balance", balance, least=0)
        vars(self).update(graph=graph, num_parts=num_parts, balance=balance)

    @property
    def model(self) -> Labelling:
        graph = self.graph
        return Labelling(graph.num_nodes, self.num_parts, graph.edges, graph.weights, _CUT_COST, self._size_cost)

    @cached_property
    def _size_cost(self) -> float:
        weights = np.abs(self.graph.weights)
        return self.balance * float(weights.mean() if weights.any() else 1.0)

    @cached_property
    def space(self) -> Categorical:
        return Categorical(self.graph.num_nodes, self.num_parts)  # a search site by site never builds the target

    @cached_property
    def target(self) -> BalancedLabels:
        graph, n = self.graph, self.graph.num_nodes
        if not graph.num_edges:
            coupling = Uncoupled((n,))
        elif 8 * int(graph.degrees.max()) >= n:  # adding whole rows is cheaper than following padded lists
            matrix = np.zeros((n, n), np.float32)
            i, j = graph.edges.T
            matrix[i, j] = matrix[j, i] = graph.weights
            coupling = Dense(matrix)
        else:
            coupling = Sparse(graph.edges, graph.weights, (n,))
        return BalancedLabels(coupling, self.num_parts, _CUT_COST, self._size_cost)

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The weight of the edges between parts."""
        return cut_weight(self.graph, x)

    def sizes(self, x: Integer[np.ndarray, "*batch n"]) -> Int[np.ndarray, "*batch parts"]:
        """How many nodes each part has."""
        return np.stack([np.count_nonzero(np.asarray(x) == part, axis=-1) for part in range(self.num_parts)], axis=-1)

    @property
    def _size_limits(self) -> tuple[int, int]:
        """floor(n / k) and ceil(n / k)."""
        n, k = self.graph.num_nodes, self.num_parts
        return n // k, -(-n // k)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """How many nodes have to move until the sizes differ by at most one."""
        sizes, (smallest, largest) = self.sizes(x), self._size_limits
        too_many = np.maximum(sizes - largest, 0).sum(axis=-1)
        too_few = np.maximum(smallest - sizes, 0).sum(axis=-1)
        return np.asarray(np.maximum(too_many, too_few), np.float64)

    def edge_cut_ratio(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """Cut edges / edges, whatever they weigh; 0 where there are none."""
        i, j = self.graph.edges.T
        return per_state(lambda x: np.count_nonzero(x[i] != x[j]) / max(1, len(i)), x)

    def balanceness(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """k / (k - 1) * (1 - sum_s (n_s / n)^2): 1 where the parts are equal, 0 where there is one."""
        k = self.num_parts
        return np.asarray(k / (k - 1) * (1 - np.square(self._shares(x)).sum(axis=-1)))

    def balanceness_by_error(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """1 - the mean over parts of (n_s / n - 1 / k)^2: "1 - mean squared error", which is always near 1."""
        return np.asarray(1 - np.square(self._shares(x) - 1 / self.num_parts).mean(axis=-1))

    def _shares(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch parts"]:
        return self.sizes(x) / self.graph.num_nodes

    @cached_property
    def _rows(self) -> tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " ends"], Float[np.ndarray, " ends"]]:
        return self.graph.neighbours()

    def _weights_to_parts(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, "n parts"]:
        n, k = self.graph.num_nodes, self.num_parts
        (i, j), x = self.graph.edges.T, x.astype(np.int64)
        places = np.concatenate([i * k + x[j], j * k + x[i]])
        return totals(places, np.tile(self.graph.weights, 2), n * k).reshape(n, k)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Moves nodes, one by one, out of too large parts or into too small ones, where that costs the least cut."""
        return self.repair_in_time(x, lambda: False)

    def repair_in_time(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        """The same; what is left when the time is over goes at once."""
        x, (smallest, largest), (start, others, weights) = np.array(x), self._size_limits, self._rows
        sizes, to_part = self.sizes(x), self._weights_to_parts(x)
        nodes = np.arange(len(x))
        while (sizes > largest).any() or (sizes < smallest).any():
            if is_over():
                self._even_out(x, sizes, to_part)
                break
            gives = sizes > (largest if (sizes > largest).any() else smallest)
            takes = sizes < (smallest if (sizes < smallest).any() else largest)
            movable = nodes[gives[x]]
            cost = to_part[movable, x[movable]][:, None] - to_part[movable][:, takes]
            best, taker = np.unravel_index(np.argmin(cost), cost.shape)
            node, part = movable[best], np.flatnonzero(takes)[taker]
            row = slice(start[node], start[node + 1])
            to_part[others[row], x[node]] -= weights[row]
            to_part[others[row], part] += weights[row]
            sizes[x[node]] -= 1
            sizes[part] += 1
            x[node] = part
        return x

    def _even_out(
        self, x: Integer[np.ndarray, " n"], sizes: Int[np.ndarray, " parts"], to_part: Float[np.ndarray, "n parts"]
    ) -> None:
        """Of each part the nodes too many that hold it the least go to whichever parts lack some."""
        n, k = to_part.shape
        wanted = np.full(k, n // k)
        wanted[np.argsort(-sizes, kind="stable")[: n % k]] += 1
        leaving = []
        for part, too_many in enumerate(sizes - wanted):
            members = np.flatnonzero(x == part)
            leaving.append(members[np.argsort(to_part[members, part], kind="stable")[: max(0, too_many)]])
        x[np.concatenate(leaving)] = np.repeat(np.arange(k), np.maximum(0, wanted - sizes))

    def bound(self) -> float:
        """At least the negative weights are cut; 0 where there are none."""
        return float(self.graph.weights[self.graph.weights < 0].sum())

    def init(self, generator: np.random.Generator, num_chains: int) -> Integer[np.ndarray, "chains n"]:
        """Balanced random labels."""
        n, k = self.graph.num_nodes, self.num_parts
        return np.stack([generator.permutation(n) % k for _ in range(num_chains)]).astype(code_dtype(k))

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        parts = [names_of(self.graph.names, np.flatnonzero(np.asarray(x) == part)) for part in range(self.num_parts)]
        return {
            "parts": parts,
            "cut": float(self.objective(x)),
            "edge_cut_ratio": float(self.edge_cut_ratio(x)),
            "balanceness": float(self.balanceness(x)),
        }

    def __repr__(self) -> str:
        return f"Partition({self.graph.num_nodes:,} nodes, {self.graph.num_edges:,} edges, {self.num_parts} parts)"
