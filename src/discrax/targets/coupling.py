"""Symmetric coupling matrices J, in the three structures that decide what arithmetic costs (and none at all).

A structure has a pattern, who may be coupled to whom, and weights on it. The pattern is fixed when it is built and says
whether there is a diagonal and, when asked, which sites share a colour; it never looks at the weights, which are leaves
that training or `equinox.tree_at` may change.

- `Dense`: an n x n array, in which every site may be coupled to every other and to itself; a product is a matrix
  product, a few changed sites add a few rows.
- `Sparse` (in `sparse_coupling.py`): neighbour lists; a product is a gather and a sum, never a scatter.
- `Lattice`: nearest neighbours on a grid; a product is a few shifted additions.
- `Uncoupled`: J = 0.

All act on the site axes of `e` and leave a trailing axis of levels alone, so one class serves Ising (numbers) and
Potts (one-hot vectors).
"""

import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike

from discrax.core.bonds import Bonds
from discrax.core.checks import real_array, yes_or_no
from discrax.core.sites import checked_shape
from discrax.core.sparse import greedy_colouring
from discrax.targets.bonds import LatticeBonds, ListedBonds, list_bonds
from discrax.targets.rows import Relabelling, over_levels, relabel

Weights = ArrayLike | tuple[ArrayLike, ...] | list[ArrayLike]  # of a lattice: for all axes, or for each


class Pattern(NamedTuple):
    """Who may be coupled to whom, on the host: site i to `others[first[i] : first[i + 1]]`, itself included."""

    first: Int[np.ndarray, " ends"]
    others: Int[np.ndarray, " m"]
    sources: Int[np.ndarray, " m"]  # where the weight of each entry stands in `Coupling.flat_weights`


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

    @abstractmethod
    def pattern(self) -> Pattern:
        """The entries of J that may differ from 0."""

    @abstractmethod
    def flat_weights(self) -> Float[Array, " weights"]:
        """All weights, in one row."""

    def csr(self) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Compressed rows on the host: J between site i and `others[first[i] : first[i + 1]]` is the weights there."""
        first, others, sources = self.pattern()
        return first, others, np.asarray(self.flat_weights())[sources]

    def in_order(self, order: Int[np.ndarray, " n"], ends: Sequence[int]) -> Relabelling:
        """A plan of J for the sites in another order, such as colour after colour; each of its blocks ends at `ends`.

        Place p is meant for site `order[p]`; where rows of one colour differ much in length they are sorted by it.
        """
        return relabel(*self.pattern(), self.flat_weights().size, order, ends)

    def bonds(self) -> Bonds:
        """The pairs of sites that may be coupled, each once; on the host."""
        return list_bonds(*self.pattern())

    def bond_weights(self, bonds: Bonds) -> Float[Array, " bonds"]:
        """J of each of its bonds."""
        assert isinstance(bonds, ListedBonds)
        return self.flat_weights().at[bonds.sources].get(mode="promise_in_bounds")


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

    def pattern(self) -> Pattern:
        return Pattern(np.zeros(math.prod(self.shape) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))

    def flat_weights(self) -> Float[Array, " weights"]:
        return jnp.zeros(1, jnp.result_type(float))  # of no entry; from an empty array XLA gathers nothing


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

    def pattern(self) -> Pattern:
        n = len(self.matrix)
        return Pattern(np.arange(0, n * n + 1, n), np.tile(np.arange(n, dtype=np.int32), n), np.arange(n * n))

    def flat_weights(self) -> Float[Array, " weights"]:
        return self.matrix.reshape(-1)


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
        e = e.astype(jnp.result_type(e, *self.weights))  # codes may be asked for as they are, as small integers
        stencil = jnp.zeros((3,) * e.ndim, e.dtype)
        for axis, weight in enumerate(self.weights):
            for end in (0, 2):
                stencil = stencil.at[tuple(end if other == axis else 1 for other in range(e.ndim))].set(weight)
        padded = jnp.pad(e, 1, mode="wrap" if self.periodic else "constant")
        return lax.conv(padded[None, None], stencil[None, None], (1,) * e.ndim, "VALID")[0, 0]

    def _by_shifts(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        total = jnp.zeros_like(e)
        for axis, weight in enumerate(self.weights):
            weight = over_levels(weight, e)
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
        first, others, _ = self.pattern()
        return greedy_colouring(first, others).reshape(self.shape)

    def pattern(self) -> Pattern:
        sites = np.arange(math.prod(self.shape), dtype=np.int32).reshape(self.shape)
        others, sources, exists, start = [], [], [], 0
        for axis, (size, weight) in enumerate(zip(self.shape, self.weights, strict=True)):
            along = np.arange(size).reshape([-1 if each == axis else 1 for each in range(sites.ndim)])
            for by in (1, -1):
                there = np.roll(sites, -by, axis)
                first_end = sites if by == 1 else there
                others.append(there)
                sources.append(start + (first_end if weight.ndim else np.zeros_like(sites)))
                exists.append(np.broadcast_to(self.periodic | (along + by >= 0) & (along + by < size), self.shape))
            start += weight.size
        exist = np.stack(exists, -1)
        first = np.append(0, np.cumsum(exist.sum(-1)))
        return Pattern(first, np.stack(others, -1)[exist], np.stack(sources, -1)[exist])

    def flat_weights(self) -> Float[Array, " weights"]:
        return jnp.concatenate([weight.reshape(-1) for weight in self.weights])

    def bonds(self) -> Bonds:
        return LatticeBonds(self.shape)

    def bond_weights(self, bonds: Bonds) -> Float[Array, " bonds"]:
        weights = [jnp.broadcast_to(weight, self.shape) for weight in self.weights]
        if not self.periodic:  # nothing follows the last sites
            weights = [
                jnp.where(lax.broadcasted_iota(jnp.int32, self.shape, axis) < size - 1, weight, 0)
                for axis, (size, weight) in enumerate(zip(self.shape, weights, strict=True))
            ]
        return jnp.stack(weights).reshape(-1)


def as_edges(graph: Any) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"] | None, int]:
    """Edges `(m, 2)`, weights or None, and number of nodes of a networkx graph, scipy.sparse matrix or edge array."""
    if hasattr(graph, "number_of_nodes"):
        return _networkx_edges(graph)
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


def _networkx_edges(graph: Any) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"] | None, int]:
    """Parallel edges of a multigraph each count."""
    n = graph.number_of_nodes()
    position = dict(zip(graph.nodes, range(n), strict=True))
    ends = map(position.__getitem__, itertools.chain.from_iterable(graph.edges()))
    edges = np.fromiter(ends, np.int64).reshape(-1, 2)
    given = list(map(operator.itemgetter(2), graph.edges(data="weight")))
    kinds = set(map(type, given))
    if kinds <= {type(None)}:
        weights = None
    else:
        given = [1.0 if weight is None else weight for weight in given] if type(None) in kinds else given
        weights = real_array("Weights of edges", given)
    if graph.is_directed():
        once = _in_one_direction(edges, np.ones(len(edges)) if weights is None else weights, n)
        edges, weights = edges[once], None if weights is None else weights[once]
    return edges, weights, n


def _in_one_direction(
    edges: Int[np.ndarray, "m 2"], weights: Float[np.ndarray, " m"], n: int
) -> Bool[np.ndarray, " m"]:
    """Which edges to keep: two that join the same nodes in both directions are one, and must have one weight."""
    if not len(edges):
        return np.zeros(0, bool)
    (a, b), order = edges.T, np.argsort(edges @ [n, 1], kind="stable")
    keys = (edges @ [n, 1])[order]
    back = order[np.searchsorted(keys, b * n + a, side="right") - 1]  # of an edge the other way round, if there is one
    is_double = (a[back] == b) & (b[back] == a)
    for i in np.flatnonzero(is_double & (weights != weights[back]))[:1]:
        raise ValueError(
            f"Couplings are symmetric, but the directed graph joins nodes {a[i]} and {b[i]} with {weights[i]:g} in one "
            f"direction and {weights[back[i]]:g} in the other; pass an undirected graph."
        )
    return (a <= b) | ~is_double
