"""Maximum cut: two sides such that the edges between them weigh as much as possible.

For x in {0, 1}^n, x_i the side of node i, and weights w_ij of any sign,

    cut(x) = sum over edges of w_ij (x_i + x_j - 2 x_i x_j).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from discrax.problems.graph import Graph
from discrax.problems.problem import BinaryQuadratic
from discrax.problems.states import Unconstrained, cut_weight, graph_with_nodes, names_of, totals

_MOST_NODES_FOR_EIGENVALUES = 2_000
_ROUNDING = 1e-9  # of eigenvalues


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MaxCut(Unconstrained):
    """Maximum cut. The weights of the edges count (1 where the graph has none); every state is feasible."""

    graph: Graph

    def __init__(self, graph: Any):
        vars(self).update(graph=graph_with_nodes(graph))

    @cached_property
    def model(self) -> BinaryQuadratic:
        graph = self.graph
        linear = totals(graph.edges.ravel(), np.repeat(graph.weights, 2), graph.num_nodes)
        return BinaryQuadratic(linear, graph.edges, -2 * graph.weights)

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        return cut_weight(self.graph, x)

    def bound(self) -> float:
        """The positive weights; on small graphs also W / 2 - n / 4 times the least eigenvalue of the weights' matrix A.

        The second holds since cut(x) = W / 2 - s'As / 4 with s = 2 x - 1, s's = n and W the sum of the weights. Where
        weights are integers it is rounded down.
        """
        graph, n, bound = self.graph, self.graph.num_nodes, self.quick_bound()
        if n <= _MOST_NODES_FOR_EIGENVALUES and graph.num_edges:
            (i, j), A = graph.edges.T, np.zeros((n, n))
            A[i, j] = A[j, i] = graph.weights
            spectral = float(graph.weights.sum() / 2 - n / 4 * np.linalg.eigvalsh(A)[0])
            spectral += _ROUNDING * max(1.0, abs(spectral))
            if (graph.weights == np.rint(graph.weights)).all():
                spectral = float(np.floor(spectral))
            bound = min(bound, spectral)
        return bound

    def quick_bound(self) -> float:
        """The positive weights: a bipartite graph meets it."""
        return float(self.graph.weights[self.graph.weights > 0].sum())

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        sides = [names_of(self.graph.names, np.flatnonzero(np.asarray(x) == side)) for side in (0, 1)]
        return {"sides": sides, "cut": float(self.objective(x))}

    def __repr__(self) -> str:
        return f"MaxCut({self.graph.num_nodes:,} nodes, {self.graph.num_edges:,} edges)"
