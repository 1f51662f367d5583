"""Couplings of graphs: neighbour lists in blocks of like degree, from which XLA gathers without a scatter."""

import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, real_array
from discrax.core.kernel import replaced
from discrax.core.sites import checked_shape
from discrax.core.sparse import compress_rows, greedy_colouring, pad_rows
from discrax.targets.coupling import Coupling, Pattern
from discrax.targets.rows import Rows, cut_blocks


class Sparse(Coupling):
    """From edges `(i, j, weight)`, each once; `i = j` is a diagonal entry.

    Where degrees are alike, or the graph is small, there is one block of rows. Else rows of like degree share a block,
    so that hubs do not widen the rows of all, and memory is a small multiple of the edges.
    """

    gathers: ClassVar[bool] = True
    shape: tuple[int, ...] = eqx.field(static=True)
    blocks: tuple[Rows, ...]  # the narrowest first
    sites: Int[Array, " n"] | None  # of the rows, block after block; None: of one block in their own order
    places: Int[Array, " n"] | None  # where the row of each site is
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
        self.has_diagonal = bool(loops.any())
        first, entries = compress_rows(np.concatenate([edges[:, 0], edges[~loops, 1]]), n)
        others = np.concatenate([edges[:, 1], edges[~loops, 0]])[entries]
        values = np.concatenate([weights, weights[~loops]])[entries]
        order, spans, widths = cut_blocks(np.diff(first), np.arange(n), [n])
        self.blocks = tuple(
            _rows(first, others, values, order[start:stop], width)
            for (start, stop), width in zip(spans, widths, strict=True)
        )
        self.sites = self.places = None
        if len(spans) > 1:
            self.sites, self.places = jnp.asarray(order, jnp.int32), jnp.asarray(np.argsort(order), jnp.int32)

    @property
    def max_degree(self) -> int:
        """The width of the widest rows."""
        return self.blocks[-1].indices.shape[1]

    def in_one_block(self, width: int) -> "Sparse":
        """The same matrix as one block of rows of this width, so that several of them have one shape."""
        rows = _rows(*self.csr(), np.arange(math.prod(self.shape)), width)
        return replaced(self, blocks=(rows,), sites=None, places=None)

    def product(self, e: Float[Array, "..."]) -> Float[Array, "..."]:
        flat = e.reshape(math.prod(self.shape), *e.shape[len(self.shape) :])
        return self._by_site([block.product(flat) for block in self.blocks]).reshape(e.shape)

    def neighbours(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k degree"], Float[Array, "k degree"]]:
        n = math.prod(self.shape)
        places = sites if self.places is None else self.places.at[sites].get(mode="fill", fill_value=n)
        indices, weights = [], []
        for block in self.blocks:  # a site's row is in one of them; in the others its place is beyond the rows
            wider = ((0, 0), (0, self.max_degree - block.indices.shape[1]))
            others = block.indices.at[places].get(mode="fill", fill_value=n, wrap_negative_indices=False)
            values = block.weights.at[places].get(mode="fill", fill_value=0, wrap_negative_indices=False)
            indices.append(jnp.pad(others, wider, constant_values=n))
            weights.append(jnp.pad(jnp.where(others < n, values, 0), wider))
            places = places - len(block.indices)
        return jnp.minimum(functools.reduce(jnp.minimum, indices), n - 1), functools.reduce(jnp.add, weights)

    def diagonal(self) -> Float[Array, "*shape"] | None:
        if not self.has_diagonal:
            return None
        sites = jnp.arange(math.prod(self.shape), dtype=jnp.int32) if self.sites is None else self.sites
        found, start = [], 0
        for block in self.blocks:
            k = len(block.indices)
            itself = block.indices == sites[start : start + k, None]
            found.append(jnp.sum(jnp.where(itself, block.weights, 0), axis=1))
            start += k
        return self._by_site(found).reshape(self.shape)

    def _by_site(self, found: list[Float[Array, "..."]]) -> Float[Array, "..."]:
        """What was found for the rows of each block, in the order of the sites."""
        if self.places is None:
            return found[0]
        return jnp.concatenate(found).at[self.places].get(mode="promise_in_bounds", unique_indices=True)

    def colours(self) -> Int[np.ndarray, "*shape"]:
        first, others, _ = self.pattern()
        return _colours(first.tobytes(), others.tobytes()).reshape(self.shape)

    def pattern(self) -> Pattern:
        n, tables = math.prod(self.shape), [np.asarray(block.indices) for block in self.blocks]
        exist = [table < n for table in tables]
        sites = np.arange(n) if self.sites is None else np.asarray(self.sites)
        rows = np.repeat(sites, np.concatenate([each.sum(axis=1) for each in exist]))
        others = np.concatenate([table[each] for table, each in zip(tables, exist, strict=True)])
        sources = np.flatnonzero(np.concatenate([each.reshape(-1) for each in exist]))
        first, entries = compress_rows(rows, n)
        return Pattern(first, others[entries], sources[entries])

    def flat_weights(self) -> Float[Array, " weights"]:
        return jnp.concatenate([block.weights.reshape(-1) for block in self.blocks])


def _rows(
    first: Int[np.ndarray, " ends"],
    others: Int[np.ndarray, " m"],
    values: Float[np.ndarray, " m"],
    sites: Int[np.ndarray, " k"],
    width: int,
) -> Rows:
    indices = pad_rows(first, others, sites, width, len(first) - 1)
    weights = pad_rows(first, values, sites, width, 0)
    return Rows(jnp.asarray(indices, jnp.int32), jnp.asarray(weights, jnp.result_type(float)))


@functools.lru_cache(maxsize=2)
def _colours(first: bytes, others: bytes) -> Int[np.ndarray, " n"]:
    """Found once for a pattern: a pilot asks more than once."""
    return greedy_colouring(np.frombuffer(first, np.int64), np.frombuffer(others, np.int32))
