"""Rows of a data set for mini-batches: all on the device, or a block of them at a time."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from discrax.core import random
from discrax.core.kernel import replaced
from discrax.core.stochastic import Rows
from discrax.data.stream import RowStream


class ResidentRows(Rows):
    """All rows on the device. A mini-batch is drawn uniformly, with replacement."""

    arrays: Any  # ty: ignore[dataclass-field-order]
    num_rows: int = eqx.field(static=True)
    num_resident: None = eqx.field(static=True, default=None)

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""], count: int) -> Any:
        places = random.integers(key, count, self.num_rows)
        return jax.tree.map(lambda array: array[places], self.arrays)

    def renewed(self) -> "ResidentRows":
        return self

    def resident(self) -> Any:
        return self.arrays

    def once(self, rows_at_once: int) -> Iterator[Any]:
        for first in range(0, self.num_rows, rows_at_once):
            yield jax.tree.map(lambda array: array[first : first + rows_at_once], self.arrays)  # noqa: B023


class StreamedRows(Rows):
    """A block of rows on the device, and the stream the next one comes from.

    The stream shuffles; so mini-batches are consecutive rows, and a chain meets every row of a block once.
    """

    block: Any
    num_rows: int = eqx.field(static=True)
    num_resident: int = eqx.field(static=True)
    stream: RowStream = eqx.field(static=True)

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""], count: int) -> Any:
        first = jnp.remainder(step, self.num_resident // count) * count
        return jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, first, count), self.block)

    def renewed(self) -> "StreamedRows":
        return replaced(self, block=_on_device(next(self.stream)))

    def resident(self) -> Any:
        return self.block

    def once(self, rows_at_once: int) -> Iterator[Any]:
        yield from map(_on_device, self.stream.in_order(rows_at_once))


def as_rows(data: Any, batch_size: int) -> Rows:
    """Rows from a pytree of arrays, or from a stream; mistakes are sentences."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number of at least 1, but got {batch_size!r}.")
    if isinstance(data, RowStream):
        if data.block_rows < batch_size:
            raise ValueError(
                f"A mini-batch of {batch_size} rows is larger than a block of the stream, which has {data.block_rows}."
            )
        empty = jax.tree.map(lambda row: jnp.zeros((data.block_rows, *row.shape), _kind(row.dtype)), data.row)
        return StreamedRows(block=empty, num_rows=len(data), num_resident=data.block_rows, stream=data)
    leaves = jax.tree.leaves(data)
    lengths = {np.shape(leaf)[:1] for leaf in leaves}
    if not leaves or lengths == {(0,)}:
        raise ValueError("The data set is empty: mini-batches need at least one row.")
    if len(lengths) > 1 or lengths == {()}:
        raise ValueError(
            f"All arrays of a data set must have the same number of rows, but their shapes are "
            f"{', '.join(str(np.shape(leaf)) for leaf in leaves)}."
        )
    ((num_rows,),) = lengths
    for leaf in leaves:
        _check_numbers(np.asarray(leaf))
    if batch_size > num_rows:
        raise ValueError(
            f"A mini-batch must be at most the data set, which has {num_rows} rows, but batch_size is {batch_size}."
        )
    return ResidentRows(arrays=_on_device(data), num_rows=num_rows)


def _check_numbers(array: np.ndarray) -> None:
    if not (jnp.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise ValueError(f"Rows must be numbers or booleans, but an array has dtype {array.dtype}.")
    if jnp.issubdtype(array.dtype, np.floating):
        bad = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
        if bad.size:
            raise ValueError(f"Rows must be finite, but row {bad[0]} of an array of shape {array.shape} is not.")


def _kind(dtype: Any) -> Any:
    """Floats as the library computes, everything else as it is."""
    return jnp.result_type(float) if jnp.issubdtype(dtype, jnp.floating) else dtype


def _on_device(data: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, _kind(np.asarray(leaf).dtype)), data)
