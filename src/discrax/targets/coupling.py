"""Symmetric coupling matrices J, in the three structures that decide what arithmetic costs (and none at all).

A structure has a pattern, who may be coupled to whom, and weights on it. The pattern is fixed when it is built and says
whether there is a diagonal and, when asked, which sites share a colour; it never looks at the weights, which are leaves
that training or `equinox.tree_at` may change.

- `Dense`: an n x n array, in which every site may be coupled to every other and to itself; a product is a matrix
  product, a few changed sites add a few rows.
- `Sparse`: neighbour lists padded to the largest degree; a product is a gather and a sum, never a scatter.
- `Lattice`: nearest neighbours on a grid; a product is a few shifted additions.
- `Uncoupled`: J = 0.

All act on the site axes of `e` and leave a trailing axis of levels alone, so one class serves Ising (numbers) and
Potts (one-hot vectors).
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, real_array, yes_or_no
from discrax.core.sites import checked_shape
from discrax.core.sparse import greedy_colouring, padded_rows

Weights = ArrayLike | tuple[ArrayLike, ...] | list[ArrayLike]  # of a lattice: for all axes, or for each


def _over_levels(weights: Float[Array, "*shape"], e: Float[Array, "..."]) -> Float[Array, "..."]:
    """Gives per-site weights the trailing axes of `e`."""
    return weights.reshape(weights.shape + (1,) * (e.ndim - weights.ndim)) if weights.ndim else weights


class Coupling(eqx.Module):
    """A symmetric matrix J, a row per site. Embeddings e have shape `(*shape,)`, or `(*shape, levels)`."""

    shape: eqx.AbstractVar[tuple[int, ...]]
    gathers: ClassVar[bool] = False  # whether a product reads sites from all over the state

    @abstractmethod
    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        """J e."""

    @abstractmethod
    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        """Flat indices of each site's neighbours and J there; weight 0 pads the list."""

    def among(self, sites: Int[Array, " k"]) -> Float[Array, "k k"]:
        """J between the given sites."""
        indices, weights = self.neighbours(sites)
        return jnp.sum(jnp.where(indices[:, None, :] == sites[None, :, None], weights[:, None, :], 0), axis=-1)

    def diagonal(self) -> Float[Array, "*shape"] | None:
        """diag J, or None where the pattern has none."""
        return None

    @abstractmethod
    def colours(self) -> Int[np.ndarray, "*shape"]:
        """A colour per site, 0, 1, ...; sites of one colour are not coupled."""


class Uncoupled(Coupling):
    """J = 0: independent sites."""

    shape: tuple[int, ...] = eqx.field(static=True)

    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.zeros_like(e)

    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        return sites[:, None], jnp.zeros((sites.shape[0], 1), jnp.result_type(float))

    def among(self, sites: Int[Array, " k"]) -> Float[Array, "k k"]:
        return jnp.zeros((sites.shape[0], sites.shape[0]), jnp.result_type(float))

    def colours(self) -> Int[np.ndarray, "*shape"]:
        return np.zeros(self.shape, np.int32)


class Dense(Coupling):
    """From a symmetric (n, n) matrix; every entry may change, so every pair counts as coupled."""

    shape: tuple[int, ...] = eqx.field(static=True)
    matrix: Float[Array, "n n"]

    def __init__(self, matrix: ArrayLike, shape: Sequence[int] | None = None):
        matrix = real_array("Couplings", matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A coupling matrix must be square, but got shape {matrix.shape}.")
        is_symmetric = np.array_equal(matrix, matrix.T) or np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-7)
        if not is_symmetric:
            raise ValueError("A coupling matrix must be symmetric, but J and its transpose differ; pass (J + J.T) / 2.")
        self.shape = (len(matrix),) if shape is None else checked_shape(shape)
        if math.prod(self.shape) != len(matrix):
            raise ValueError(
                f"A space of shape {self.shape} needs {math.prod(self.shape)} rows, but J has {len(matrix)}."
            )
        self.matrix = jnp.asarray(matrix, jnp.result_type(float))

    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        flat = e.reshape(len(self.matrix), -1)
        # The default precision of an accelerator (tf32) would make log-probabilities wrong in the third digit.
        return jnp.matmul(self.matrix, flat, precision=lax.Precision.HIGHEST).reshape(e.shape)

    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        everyone = jnp.arange(len(self.matrix), dtype=jnp.int32)
        return jnp.broadcast_to(everyone, (sites.shape[0], len(self.matrix))), self.matrix[sites]

    def among(self, sites: Int[Array, " k"]) -> Float[Array, "k k"]:
        return self.matrix[sites[:, None], sites[None, :]]

    def diagonal(self) -> Float[Array, "*shape"] | None:
        return jnp.diagonal(self.matrix).reshape(self.shape)

    def colours(self) -> Int[np.ndarray, "*shape"]:
        return np.arange(len(self.matrix), dtype=np.int32).reshape(self.shape)


class Sparse(Coupling):
    """From edges `(i, j, weight)`, each once; `i = j` is a diagonal entry."""

    gathers: ClassVar[bool] = True
    shape: tuple[int, ...] = eqx.field(static=True)
    indices: Int[Array, "n degree"]
    weights: Float[Array, "n degree"]  # what stands beyond a site's degree is never read
    degrees: Int[Array, " n"]
    has_diagonal: bool = eqx.field(static=True)

    def __init__(self, edges: ArrayLike, weights: ArrayLike, shape: Sequence[int]):
        edges = as_array("Edges", edges)
        if edges.size % 2 or (edges.size and not np.issubdtype(edges.dtype, np.integer)):
            raise ValueError(f"Edges must be pairs of sites, but got an array of {edges.dtype} of shape {edges.shape}.")
        edges, weights = edges.astype(np.int64).reshape(-1, 2), real_array("Weights of edges", weights)
        if weights.shape not in ((), (len(edges),)):
            raise ValueError(f"Weights must be one number, or one per edge ({len(edges)}), but got {weights.shape}.")
        weights = np.broadcast_to(weights, (len(edges),))
        self.shape = checked_shape(shape)
        n = math.prod(self.shape)
        if edges.size and (edges.min() < 0 or edges.max() >= n):
            outside = int(edges.min() if edges.min() < 0 else edges.max())
            raise ValueError(f"Edges must join sites 0..{n - 1}, but one names site {outside}.")
        loops = edges[:, 0] == edges[:, 1]
        source = np.concatenate([edges[:, 0], edges[~loops, 1]])
        sink = np.concatenate([edges[:, 1], edges[~loops, 0]])
        value = np.concatenate([weights, weights[~loops]])
        indices, table = padded_rows(source, sink, value, n)
        self.indices, self.weights = jnp.asarray(indices), jnp.asarray(table, jnp.result_type(float))
        self.degrees = jnp.asarray(np.bincount(source, minlength=n), jnp.int32)
        self.has_diagonal = bool(loops.any())

    def _weights_of(self, sites: Int[Array, " k"] | slice) -> Float[Array, "k degree"]:
        """Without what pads the rows."""
        weights = self.weights[sites]
        exists = jnp.arange(weights.shape[1], dtype=jnp.int32)[None] < self.degrees[sites][:, None]
        return jnp.where(exists, weights, 0)

    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        flat = e.reshape(len(self.weights), *e.shape[len(self.shape) :])
        gathered = flat[self.indices]
        return jnp.sum(_over_levels(self._weights_of(slice(None)), gathered) * gathered, axis=1).reshape(e.shape)

    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        return self.indices[sites], self._weights_of(sites)

    def diagonal(self) -> Float[Array, "*shape"] | None:
        if not self.has_diagonal:
            return None
        itself = self.indices == jnp.arange(len(self.indices))[:, None]
        return jnp.sum(jnp.where(itself, self._weights_of(slice(None)), 0), axis=1).reshape(self.shape)

    def colours(self) -> Int[np.ndarray, "*shape"]:
        indices, degrees = np.asarray(self.indices), np.asarray(self.degrees)
        exists = np.arange(indices.shape[1]) < degrees[:, None]
        return _colours(np.append(0, np.cumsum(degrees)).tobytes(), indices[exists].tobytes()).reshape(self.shape)


@functools.lru_cache(maxsize=2)
def _colours(first: bytes, others: bytes) -> Int[np.ndarray, " n"]:
    """Found once for a pattern: a pilot asks more than once."""
    return greedy_colouring(np.frombuffer(first, np.int64), np.frombuffer(others, np.int32))


class Lattice(Coupling):
    """Nearest neighbours on a grid. `weights[a]`, a number or one per site, couples each site to the next on axis a."""

    shape: tuple[int, ...] = eqx.field(static=True)
    weights: tuple[Float[Array, "..."], ...]
    periodic: bool = eqx.field(static=True)

    def __init__(self, shape: Sequence[int], weights: Weights, periodic: bool = False):
        yes_or_no("periodic", periodic)
        self.shape, self.periodic = checked_shape(shape), bool(periodic)
        per_axis = weights if isinstance(weights, tuple | list) else (weights,) * len(self.shape)
        if len(per_axis) != len(self.shape):
            raise ValueError(
                f"A lattice of shape {self.shape} has {len(self.shape)} axes, but got {len(per_axis)} couplings."
            )
        per_axis = tuple(real_array("A coupling", weight) for weight in per_axis)
        for weight in per_axis:
            if np.shape(weight) not in ((), self.shape):
                raise ValueError(
                    f"A coupling is a number or an array of shape {self.shape}, but got shape {np.shape(weight)}."
                )
        if periodic and min(self.shape) < 3:
            raise ValueError(
                f"A periodic lattice needs at least 3 sites along each axis, but the shape is {self.shape}."
            )
        self.weights = tuple(jnp.asarray(weight, jnp.result_type(float)) for weight in per_axis)

    def _shift(self, e: Float[Array, "..."], axis: int, by: int) -> Float[Array, "..."]:
        """Element i is e[i + by] along the axis; beyond a free boundary it is 0."""
        if self.periodic:
            return jnp.roll(e, -by, axis)
        padding = [(0, 0, 0)] * e.ndim
        padding[axis] = (-by, by, 0)
        return lax.pad(e, jnp.zeros((), e.dtype), padding)

    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        if e.ndim > len(self.shape) or any(weight.ndim for weight in self.weights):
            return self._by_shifts(e)
        # XLA's CPU compiler keeps each shifted copy in memory; a convolution reads the grid once.
        return lax.platform_dependent(e, cpu=lambda e: self._by_convolution(e), default=lambda e: self._by_shifts(e))

    def _by_convolution(self, e: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        stencil = jnp.zeros((3,) * e.ndim, e.dtype)
        for axis, weight in enumerate(self.weights):
            for end in (0, 2):
                stencil = stencil.at[tuple(end if other == axis else 1 for other in range(e.ndim))].set(weight)
        padded = jnp.pad(e, 1, mode="wrap" if self.periodic else "constant")
        return lax.conv(padded[None, None], stencil[None, None], (1,) * e.ndim, "VALID")[0, 0]

    def _by_shifts(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        total = jnp.zeros_like(e)
        for axis, weight in enumerate(self.weights):
            weight = _over_levels(weight, e)
            if weight.ndim:
                total += weight * self._shift(e, axis, 1) + self._shift(weight * e, axis, -1)
            else:
                total += weight * (self._shift(e, axis, 1) + self._shift(e, axis, -1))
        return total

    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        position = jnp.unravel_index(sites, self.shape)
        indices, weights = [], []
        for axis, (size, weight) in enumerate(zip(self.shape, self.weights, strict=True)):
            for by in (1, -1):
                beyond = position[axis] + by
                there = (*position[:axis], beyond % size, *position[axis + 1 :])
                edge = weight[position if by == 1 else there] if weight.ndim else weight
                exists = self.periodic | ((beyond >= 0) & (beyond < size))
                indices.append(jnp.ravel_multi_index(there, self.shape, mode="wrap").astype(jnp.int32))
                weights.append(jnp.where(exists, edge, 0))
        return jnp.stack(indices, -1), jnp.stack(weights, -1)

    def colours(self) -> Int[np.ndarray, "*shape"]:
        if not self.periodic or all(size % 2 == 0 for size in self.shape):
            return np.indices(self.shape).sum(0).astype(np.int32) % 2
        sites = np.arange(math.prod(self.shape)).reshape(self.shape)
        others = [np.roll(sites, by, axis) for axis in range(sites.ndim) for by in (-1, 1)]
        first = np.arange(0, len(others) * sites.size + 1, len(others))
        return greedy_colouring(first, np.stack(others, axis=-1).reshape(-1)).reshape(self.shape)


def as_edges(graph: Any) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"] | None, int]:
    """Edges `(m, 2)`, weights or None, and number of nodes of a networkx graph, scipy.sparse matrix or edge array."""
    if hasattr(graph, "number_of_nodes"):  # networkx; parallel edges of a multigraph each count
        position = {node: i for i, node in enumerate(graph.nodes)}
        data = [(position[a], position[b], attributes.get("weight")) for a, b, attributes in graph.edges(data=True)]
        data = _in_one_direction(data) if graph.is_directed() else data
        edges = np.array([(a, b) for a, b, _ in data], np.int64).reshape(-1, 2)
        if all(weight is None for *_, weight in data):
            return edges, None, graph.number_of_nodes()
        weights = [1.0 if weight is None else weight for *_, weight in data]
        return edges, real_array("Weights of edges", weights), graph.number_of_nodes()
    if hasattr(graph, "tocoo"):  # scipy.sparse
        if graph.shape[0] != graph.shape[1]:
            raise ValueError(f"A sparse coupling matrix must be square, but got shape {graph.shape}.")
        real_array("Couplings", graph.data)
        if graph.nnz and abs(graph - graph.T).max() > 1e-6:
            raise ValueError("A sparse coupling matrix must be symmetric; pass (J + J.T) / 2.")
        entries = graph.tocoo()
        once = entries.row <= entries.col
        edges = np.stack([entries.row[once], entries.col[once]], 1)
        return edges.astype(np.int64), np.asarray(entries.data[once], float), graph.shape[0]
    try:
        edges = np.asarray(graph)
    except ValueError:
        edges = np.asarray(graph, object)
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(
            "A graph is a networkx graph, a symmetric scipy.sparse matrix or an integer array of edges (m, 2), "
            f"but got {type(graph).__name__} of shape {edges.shape}."
        )
    if edges.size and not 0 <= edges.min() <= edges.max() < 2**31 - 1:
        raise ValueError(f"Edges must join sites 0 .. 2^31 - 2, but name {edges.min()} .. {edges.max()}.")
    return edges, None, int(edges.max()) + 1 if edges.size else 0


def _in_one_direction(edges: list[tuple[int, int, Any]]) -> list[tuple[int, int, Any]]:
    """Edges of a directed graph: two that join the same nodes in both directions are one, and must have one weight."""
    weights = {(a, b): weight for a, b, weight in edges}
    for (a, b), weight in weights.items():
        if weights.get((b, a), weight) != weight:
            raise ValueError(
                f"Couplings are symmetric, but the directed graph joins nodes {a} and {b} with {weight} in one "
                f"direction and {weights[b, a]} in the other; pass an undirected graph."
            )
    return [edge for edge in edges if edge[0] <= edge[1] or (edge[1], edge[0]) not in weights]
