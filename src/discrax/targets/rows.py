"""Rows of a sparse matrix in blocks of like length, and plans of them for sites in another order."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from discrax.core.sparse import block_widths, pad_rows

_MOST_BLOCKS = 16  # of a matrix; a plan by colours has twice as many, or two a colour


def over_levels(weights: Float[Array, "*shape"], e: Float[Array, "..."]) -> Float[Array, "..."]:
    """Gives per-site weights the trailing axes of `e`."""
    return weights.reshape(weights.shape + (1,) * (e.ndim - weights.ndim)) if weights.ndim else weights


class Rows(eqx.Module):
    """Some rows of a matrix, padded to one width: an index beyond the sites counts 0, whatever weight stands there."""

    indices: Int[Array, "k width"]
    weights: Float[Array, "_ width"]  # a row of them, where all rows have the same

    def product(self, flat: Float[Array, "n *levels"]) -> Float[Array, "k *levels"]:
        """These rows of J e, for e with one axis of sites."""
        # Masked here, where there is one weight for all chains, not after the gather.
        weights = jnp.where(self.indices < len(flat), self.weights, 0)
        gathered = flat.at[jnp.minimum(self.indices, len(flat) - 1)].get(mode="promise_in_bounds")
        return jnp.sum(over_levels(weights, gathered) * gathered, axis=1)


class Relabelling(eqx.Module):
    """A plan of J for the sites in another order. Made once on the host; the weights may be traced."""

    order: Int[Array, " n"]  # place p holds site order[p]
    places: Int[Array, " n"]  # site i is at places[i]
    indices: tuple[Int[Array, "_ _"], ...]  # of each block: places of the neighbours, n where there is none
    sources: tuple[Int[Array, "_ _"], ...]  # of each block: where the weights stand among the flat ones
    spans: tuple[tuple[int, int], ...] = eqx.field(static=True)  # first place and end of each block

    def apply(self, flat_weights: Float[Array, " weights"]) -> tuple[Rows, ...]:
        """The blocks, with the weights of a coupling (`Coupling.flat_weights`)."""
        weights = [flat_weights.at[each].get(mode="fill", fill_value=0) for each in self.sources]
        return tuple(map(Rows, self.indices, weights))


def cut_blocks(
    degrees: Int[np.ndarray, " n"], order: Int[np.ndarray, " n"], ends: Sequence[int]
) -> tuple[Int[np.ndarray, " n"], list[tuple[int, int]], list[int]]:
    """The order, sorted by width where widths differ much between two ends; spans of the blocks, and their widths."""
    order, spans, widths = np.array(order), [], []
    most = max(2, 2 * _MOST_BLOCKS // max(2, len(ends)))
    for start, stop in pairwise(np.unique([0, *ends]).tolist()):
        sites = order[start:stop]
        available = block_widths(degrees[sites], most)
        kinds = np.searchsorted(available, degrees[sites])
        order[start:stop] = sites[np.argsort(kinds, kind="stable")]
        cuts = start + np.append(0, np.cumsum(np.bincount(kinds, minlength=len(available))))
        spans += [(int(a), int(b)) for a, b in pairwise(cuts)]
        widths += available.tolist()
    return order, spans, widths


def relabel(
    first: Int[np.ndarray, " ends"],
    others: Int[np.ndarray, " m"],
    sources: Int[np.ndarray, " m"],
    num_weights: int,
    order: Int[np.ndarray, " n"],
    ends: Sequence[int],
) -> Relabelling:
    """The plan for a pattern (`Coupling.in_order`)."""
    n = len(first) - 1
    order, spans, widths = cut_blocks(np.diff(first), order, ends)
    places = np.full(n + 1, n, np.int32)
    places[order] = np.arange(n)
    blocks = [(order[start:stop], width) for (start, stop), width in zip(spans, widths, strict=True)]
    indices = [places[pad_rows(first, others, *block, n)] for block in blocks]
    tables = [pad_rows(first, sources, *block, num_weights) for block in blocks]
    tables = [table[:1] if (table == table[:1]).all() else table for table in tables]  # as on a periodic lattice
    return Relabelling(
        jnp.asarray(order, jnp.int32),
        jnp.asarray(places[:n]),
        tuple(map(jnp.asarray, indices)),
        tuple(jnp.asarray(table, jnp.int32) for table in tables),
        tuple(spans),
    )
