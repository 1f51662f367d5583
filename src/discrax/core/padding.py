"""Sparse matrices as rows padded to the longest: what XLA gathers from without a scatter."""

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
