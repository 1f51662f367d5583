"""Sparse matrices on the host: rows padded to one width, from which XLA gathers without a scatter; colours."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, Shaped

_FEW_NUMBERS = 100_000  # in a table that is small whatever pads it
_FEW_SITES = 16  # that can be coloured at once: one after another is as fast


def compress_rows(rows: Int[np.ndarray, " m"], num_rows: int) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " m"]]:
    """Where the entries of each row begin once they are sorted by rows, and the order that sorts them."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=num_rows))), np.argsort(rows, kind="stable")


def pad_rows(
    first: Int[np.ndarray, " ends"],
    values: Shaped[np.ndarray, " m"],
    rows: Int[np.ndarray, " k"],
    width: int,
    fill: int,
) -> Shaped[np.ndarray, "k width"]:
    """A table of the given rows of compressed ones; `fill` stands beyond a row's end."""
    place = first[rows, None] + np.arange(width)
    return np.append(values, values.dtype.type(fill))[np.where(place < first[rows + 1, None], place, len(values))]


def padded_rows(
    rows: Int[np.ndarray, " m"], columns: Int[np.ndarray, " m"], values: Float[np.ndarray, " m"], num_rows: int
) -> tuple[Int[np.ndarray, "n width"], Float[np.ndarray, "n width"]]:
    """Column indices and values of each row's entries; value 0 (and index 0) pads the shorter ones."""
    first, order = compress_rows(rows, num_rows)
    everyone, width = np.arange(num_rows), max(1, int(np.diff(first).max()))
    columns, values = columns[order].astype(np.int32), values[order]
    return pad_rows(first, columns, everyone, width, 0), pad_rows(first, values, everyone, width, 0)


def block_widths(degrees: Int[np.ndarray, " n"], most: int) -> Int[np.ndarray, " blocks"]:
    """Widths to which rows of these lengths are padded, ascending: one where that wastes little, else at most `most`.

    Each degree begins as a width of its own; two neighbours become one, the cheapest first, while padding is little.
    """
    widths, counts = np.unique(np.maximum(degrees, 1), return_counts=True)
    num_entries, padding = degrees.sum(), 0
    if len(degrees) * widths[-1] <= max(2 * num_entries, _FEW_NUMBERS):
        return widths[-1:]
    while len(widths) > 1:
        costs = np.diff(widths) * counts[:-1]
        cheapest = np.argmin(costs)
        if len(widths) <= most and padding + costs[cheapest] > num_entries / 8:
            break
        padding += costs[cheapest]
        counts[cheapest + 1] += counts[cheapest]
        widths, counts = np.delete(widths, cheapest), np.delete(counts, cheapest)
    return widths


def greedy_colouring(first: Int[np.ndarray, " ends"], others: Int[np.ndarray, " m"]) -> Int[np.ndarray, " n"]:
    """A colour per site, none shared by neighbours: the neighbours of site i are `others[first[i] : first[i + 1]]`.

    The most connected sites come first; each takes the smallest colour that its neighbours leave. Sites that wait for
    no earlier neighbour are coloured at once while there are many, which changes no colour.
    """
    n, degrees = len(first) - 1, np.diff(first)
    order = np.argsort(-degrees, kind="stable")
    colours = _colour_together(first, others, order)
    num_colours = int(colours.max(initial=-1)) + 1
    last_to_see = np.full(n + 1, -1)  # of each colour; sites without a colour, -1, write to the last place
    for site in order[colours[order] < 0].tolist():
        last_to_see[colours[others[first[site] : first[site + 1]]]] = site
        colours[site] = np.argmax(last_to_see[: num_colours + 1] != site)
        num_colours = max(num_colours, int(colours[site]) + 1)
    return colours


def _colour_together(
    first: Int[np.ndarray, " ends"], others: Int[np.ndarray, " m"], order: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Colours while many sites can have one at the same time; -1 elsewhere."""
    n, degrees, num_colours = len(first) - 1, np.diff(first), 0
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    rows = np.repeat(np.arange(n), degrees)
    waiting = np.bincount(rows[rank[others] < rank[rows]], minlength=n)  # for so many earlier neighbours
    colours, ready = np.full(n, -1, np.int32), np.flatnonzero(waiting == 0)
    while len(ready) > _FEW_SITES:
        counts = degrees[ready]
        ends = np.cumsum(counts)
        around = others[np.repeat(first[ready] - ends + counts, counts) + np.arange(counts.sum())]
        is_taken = np.zeros((len(ready), num_colours + 2), bool)  # the last for neighbours without a colour
        is_taken[np.repeat(np.arange(len(ready)), counts), colours[around]] = True
        colours[ready] = np.argmin(is_taken[:, :-1], axis=1)
        num_colours = max(num_colours, int(colours[ready].max()) + 1)
        later = around[colours[around] < 0]
        np.subtract.at(waiting, later, 1)
        ready = np.unique(later[waiting[later] == 0])
    return colours


def colour_groups(groups: Sequence[Int[np.ndarray, "k width"]], num_sites: int) -> Int[np.ndarray, " n"]:
    """A colour per site, none shared by two sites of one group: rows are groups, `num_sites` and more is padding."""
    n, pairs = num_sites, [np.zeros((0, 2), np.int64)]
    for block in groups:
        i, j = np.triu_indices(block.shape[1], 1)
        rows = np.asarray(block, np.int64)
        pairs.append(np.stack([rows[:, i], rows[:, j]], axis=-1).reshape(-1, 2))
    edges = np.concatenate(pairs)
    edges = edges[(edges < n).all(axis=1)]
    both = np.unique(np.concatenate([edges @ [n, 1], edges @ [1, n]]))
    first, _ = compress_rows(both // n, n)
    return greedy_colouring(first, (both % n).astype(np.int32))
