"""The bonds of couplings: of lattices by shifts, of all others by tables of each site's neighbours."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Integer

from discrax.core.bonds import Bonds
from discrax.core.sparse import compress_rows, pad_rows
from discrax.targets.rows import cut_blocks


class LatticeBonds(Bonds):
    """Of each site to the next one along each axis, axis after axis.

    Beyond a free boundary the next site is the first of the line: a bond of strength 0, which is never open.
    """

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        return len(self.shape) * math.prod(self.shape)

    def are_equal(self, x: Integer[Array, " n"]) -> Bool[Array, " bonds"]:
        grid = x.reshape(self.shape)
        return jnp.stack([grid == jnp.roll(grid, -1, axis) for axis in range(grid.ndim)]).reshape(-1)

    def ways(self, is_open: Bool[Array, " bonds"]) -> tuple[tuple[Array, Array], ...]:
        grids = is_open.reshape(-1, *self.shape)
        return tuple((grids[axis], jnp.roll(grids[axis], 1, axis)) for axis in range(len(self.shape)))

    def lowest(self, labels: Int[Array, " n"], ways: tuple[tuple[Array, Array], ...]) -> Int[Array, " n"]:
        grid, no_label = labels.reshape(self.shape), labels.size
        found = grid
        for axis, (is_next, is_last) in enumerate(ways):
            found = jnp.minimum(found, jnp.where(is_next, jnp.roll(grid, -1, axis), no_label))
            found = jnp.minimum(found, jnp.where(is_last, jnp.roll(grid, 1, axis), no_label))
        return found.reshape(-1)


class ListedBonds(Bonds):
    """Any pairs. Neighbours are in blocks of rows of like length, from which XLA gathers without a scatter."""

    ends: Int[Array, "2 bonds"]
    sources: Int[Array, " bonds"]  # where the weight of each stands in `Coupling.flat_weights`
    others: tuple[Int[Array, "_ _"], ...]  # of each block: neighbours of its sites; any site where there is none
    numbers: tuple[Int[Array, "_ _"], ...]  # of each block: the bonds that lead there; `count` where there is none
    places: Int[Array, " n"]  # where the row of each site is, block after block

    @property
    def count(self) -> int:
        return self.ends.shape[1]

    def are_equal(self, x: Integer[Array, " n"]) -> Bool[Array, " bonds"]:
        return x[self.ends[0]] == x[self.ends[1]]

    def ways(self, is_open: Bool[Array, " bonds"]) -> tuple[Bool[Array, "_ _"], ...]:
        if not self.count:
            return ()
        return tuple(is_open.at[each].get(mode="fill", fill_value=False) for each in self.numbers)

    def lowest(self, labels: Int[Array, " n"], ways: tuple[Bool[Array, "_ _"], ...]) -> Int[Array, " n"]:
        if not self.count:
            return labels
        found = []
        for others, leads in zip(self.others, ways, strict=True):
            there = labels.at[others].get(mode="promise_in_bounds")
            found.append(jnp.min(jnp.where(leads, there, labels.size), axis=1))
        around = jnp.concatenate(found).at[self.places].get(mode="promise_in_bounds", unique_indices=True)
        return jnp.minimum(labels, around)


def list_bonds(
    first: Int[np.ndarray, " ends"], others: Int[np.ndarray, " m"], sources: Int[np.ndarray, " m"]
) -> ListedBonds:
    """The bonds of a symmetric pattern (`Coupling.pattern`); its diagonal couples nobody."""
    n = len(first) - 1
    rows = np.repeat(np.arange(n), np.diff(first))
    once = rows < others
    ends, count = np.stack([rows[once], others[once]]), int(once.sum())
    # Each bond in the rows of both of its ends.
    starts, order = compress_rows(np.concatenate([ends[0], ends[1]]), n)
    around, numbers = np.concatenate([ends[1], ends[0]])[order], np.tile(np.arange(count), 2)[order]
    sites, spans, widths = cut_blocks(np.diff(starts), np.arange(n), [n])
    blocks = [(sites[start:stop], width) for (start, stop), width in zip(spans, widths, strict=True)]
    return ListedBonds(
        jnp.asarray(ends, jnp.int32),
        jnp.asarray(sources[once], jnp.int32),
        tuple(jnp.asarray(pad_rows(starts, around, *block, 0), jnp.int32) for block in blocks),
        tuple(jnp.asarray(pad_rows(starts, numbers, *block, count), jnp.int32) for block in blocks),
        jnp.asarray(np.argsort(sites), jnp.int32),
    )
