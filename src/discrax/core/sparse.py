"""Sparse matrices on the host: rows padded to the longest, from which XLA gathers without a scatter; colours."""

import numpy as np
from jaxtyping import Float, Int


def padded_rows(
    rows: Int[np.ndarray, " m"], columns: Int[np.ndarray, " m"], values: Float[np.ndarray, " m"], num_rows: int
) -> tuple[Int[np.ndarray, "n width"], Float[np.ndarray, "n width"]]:
    """Column indices and values of each row's entries; value 0 (and index 0) pads the shorter ones."""
    order = np.argsort(rows, kind="stable")
    rows, columns, values = rows[order], columns[order], values[order]
    counts = np.bincount(rows, minlength=num_rows)
    place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    width = max(1, counts.max())
    indices, table = np.zeros((num_rows, width), np.int32), np.zeros((num_rows, width))
    indices[rows, place], table[rows, place] = columns, values
    return indices, table


def greedy_colouring(first: Int[np.ndarray, " ends"], others: Int[np.ndarray, " m"]) -> Int[np.ndarray, " n"]:
    """A colour per site, none shared by neighbours: the neighbours of site i are `others[first[i] : first[i + 1]]`.

    The most connected sites come first; each takes the smallest colour that its neighbours leave.
    """
    n, degrees = len(first) - 1, np.diff(first)
    colours, num_colours = np.full(n, -1, np.int32), 0
    last_to_see = np.full(n + 1, -1)  # of each colour; sites without a colour, -1, write to the last place
    for site in np.argsort(-degrees, kind="stable").tolist():
        last_to_see[colours[others[first[site] : first[site + 1]]]] = site
        colours[site] = np.argmax(last_to_see[: num_colours + 1] != site)
        num_colours = max(num_colours, int(colours[site]) + 1)
    return colours
