"""Arrays of draws that lie in a folder: read when they are asked for, some draws at a time."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from discrax.core.extras import import_extra
from discrax.core.files import UnusableFile
from discrax.diagnostics.weighted import weights_from_logs

_MOST_NUMBERS = 2**23  # of a block that is looked at by itself
_BITS = "discrax_bits_of"  # the attribute of an array of packed bits: the shape of its sites
_CODES = "discrax_codes"  # and the type of its codes


class StoredArray:
    """Values of every draw, (chain, draw, ...), in a folder; `stored[:, 100:200]` reads these draws and no others.

    `numpy.asarray(stored)` reads all of them. What a block of all chains becomes on its way may be said by `change`.
    """

    def __init__(self, array: Any, first: int, count: int, change: Callable[[np.ndarray], np.ndarray] | None = None):
        self._array, self._first, self._change = array, first, change
        bits = array.attrs.get(_BITS)
        self._sites = None if bits is None else tuple(bits)
        shape = array.shape[2:] if self._sites is None else self._sites
        self.shape: tuple[int, ...] = (array.shape[0], count, *shape)
        self.dtype = np.dtype(array.dtype if self._sites is None else str(array.attrs[_CODES]))
        if change is not None:
            self.dtype = change(np.zeros((array.shape[0], 0, *shape), self.dtype)).dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Of the values once they are read; on the disk they are compressed."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> list[slice]:
        """The draws that lie in one file, file by file."""
        length = self._array.chunks[1]
        ends = [*range(length - self._first % length, self.shape[1], length), self.shape[1]]
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[chain] for chain in range(len(self)))

    def __repr__(self) -> str:
        return f"StoredArray({self.dtype}{list(self.shape)}, {self._path})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("A stored array is read from its folder, which makes a copy; pass copy=None.")
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)

    def with_change(self, change: Callable[[np.ndarray], np.ndarray]) -> "StoredArray":
        """The same values, changed by a function of blocks (chain, some draws, ...) when they are read."""
        return StoredArray(self._array, self._first, self.shape[1], change)

    def __getitem__(self, index: Any) -> np.ndarray:
        parts = index if isinstance(index, tuple) else (index,)
        if any(part is Ellipsis for part in parts):
            at = next(i for i, part in enumerate(parts) if part is Ellipsis)
            parts = (*parts[:at], *(slice(None),) * (self.ndim + 1 - len(parts)), *parts[at + 1 :])
        parts = (*parts, *(slice(None),) * (2 - len(parts)))
        is_plain = [isinstance(part, slice | int | np.integer) and not isinstance(part, bool) for part in parts[:2]]
        if not all(is_plain):
            return self._read(range(len(self)), range(self.shape[1]))[index]
        picked = [_as_range(part, size) for part, size in zip(parts[:2], self.shape, strict=False)]
        values = self._read(*picked)
        plain = [slice(None) if isinstance(part, slice) else 0 for part in parts[:2]]
        return values[(*plain, *parts[2:])]

    @property
    def _path(self) -> Path:
        return Path(self._array.store_path.store.root) / self._array.store_path.path

    def _read(self, chains: range, draws: range) -> np.ndarray:
        """These chains and draws, from one chunk of the file after another."""
        out = np.empty((len(chains), len(draws), *self.shape[2:]), self.dtype)
        wanted, length = self._first + np.asarray(draws, np.int64), self._array.chunks[1]
        chunks = wanted // length
        for chunk in np.unique(chunks):
            is_here = chunks == chunk
            first = int(chunk) * length
            last = min(first + length, self._first + self.shape[1])
            out[:, is_here] = self._block(int(chunk), first, last)[np.asarray(chains)][:, wanted[is_here] - first]
        return out

    def _block(self, chunk: int, first: int, last: int) -> np.ndarray:
        key = self._path / "c" / "0" / str(chunk) / "/".join("0" * (len(self._array.shape) - 2))
        try:
            if not key.exists():  # zarr would take it for a block of zeros
                raise FileNotFoundError("it is not there")
            values = self._array[:, first:last]
        except Exception as error:  # whatever a codec says of bytes that are not its own
            raise ValueError(
                f"The draws {first - self._first:,} to {last - self._first:,} of {self._path} cannot be read, but all "
                f"others can: {key} is damaged or missing ({str(error).rstrip('.')})."
            ) from error
        if self._sites is not None:
            flat = np.unpackbits(values, axis=-1, count=math.prod(self._sites))
            values = flat.reshape(*flat.shape[:2], *self._sites).astype(self.dtype)
        return values if self._change is None else self._change(values)


def _as_range(part: Any, size: int) -> range:
    if isinstance(part, slice):
        return range(size)[part]
    at = range(size)[int(part)]
    return range(at, at + 1)


def write_draws(group: Any, name: str, values: np.ndarray, first: int, total: int, is_packed: bool) -> None:
    """Writes values, (chain, draw, ...), into an array of a group from draw `first` on; at 0 the array is made."""
    bits = {_BITS: list(values.shape[2:]), _CODES: str(values.dtype)} if is_packed else {}
    if is_packed:
        values = np.packbits(values.reshape(*values.shape[:2], -1).astype(np.uint8), axis=-1)
    zarr = import_zarr()
    try:
        # A chunk of zeros is written as any other: one that is missing is damage.
        with zarr.config.set({"array.write_empty_chunks": True}):
            if first == 0:
                array = group.create_array(
                    name,
                    shape=(len(values), total, *values.shape[2:]),
                    chunks=(len(values), values.shape[1], *(max(1, size) for size in values.shape[2:])),
                    dtype=values.dtype,
                    compressors=zarr.codecs.ZstdCodec(level=1, checksum=True),
                    attributes=bits,
                    overwrite=True,
                )
            else:
                array = group[name]
            if array.shape[1] < total:  # the run is extended
                array.resize((array.shape[0], total, *array.shape[2:]))
            array[:, first : first + values.shape[1]] = values
    except OSError as error:
        raise UnusableFile.because(Path(group.store_path.store.root) / group.path / name, error) from error


def import_zarr() -> Any:
    """zarr, or a sentence that says how to get it."""
    zarr = import_extra("zarr", "Runs in a folder need", "zarr")
    import_extra("zarr.codecs", "Runs in a folder need", "zarr")
    return zarr


def draw_blocks(values: Any) -> Iterator[tuple[slice, Any]]:
    """Values, (chain, draw, ...), of some draws at a time, and which draws these are; a chunk is read once."""
    per_draw = max(1, values.size // max(1, values.shape[1]))
    length = max(1, _MOST_NUMBERS // per_draw)
    chunks = values.chunks if isinstance(values, StoredArray) else [slice(0, values.shape[1])]
    for chunk in chunks:
        block = np.asarray(values[:, chunk])
        for first in range(chunk.start, chunk.stop, length):
            place = slice(first, min(first + length, chunk.stop))
            yield place, block[:, place.start - chunk.start : place.stop - chunk.start]


def mean_over_draws(values: Any) -> np.ndarray:
    """The mean of each chain."""
    if isinstance(values, np.ndarray):
        return values.mean(axis=1)
    return sum(block.sum(axis=1, dtype=np.float64) for _, block in draw_blocks(values)) / values.shape[1]


def with_weights(stats: dict[str, Any]) -> dict[str, Any]:
    """Statistics with the weights that their logarithms say."""
    logs = stats["log_weight"]
    if isinstance(logs, np.ndarray):
        return stats | {"weight": weights_from_logs(logs)}
    largest = np.full((len(logs), 1), -np.inf)
    for _, block in draw_blocks(logs):
        largest = np.maximum(largest, block.max(axis=1, keepdims=True))
    return stats | {"weight": logs.with_change(lambda block: weights_from_logs(block, largest))}


def tree_of_groups(groups: dict[str, dict[str, Any]], names: Mapping[str, Sequence[str]]) -> Any:
    """ArviZ's DataTree of groups of arrays by name; those that are stored are read when they are indexed.

    `names` are those of the places along the one axis of an array beyond chain and draw.
    """
    from arviz_base import from_dict
    from xarray import Variable
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Lazy(BackendArray):
        def __init__(self, stored: StoredArray):
            self._stored, self.shape, self.dtype = stored, stored.shape, stored.dtype

        def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
            basic = indexing.IndexingSupport.BASIC
            return indexing.explicit_indexing_adapter(key, self.shape, basic, self._stored.__getitem__)

    def stand_in(values: Any) -> np.ndarray:
        is_stored = isinstance(values, StoredArray)
        return np.broadcast_to(np.zeros((), values.dtype), values.shape) if is_stored else np.asarray(values)

    dims = {array: [f"{array}_site"] for array in names}
    coords = {f"{array}_site": list(called) for array, called in names.items()}
    tree = from_dict(jax.tree.map(stand_in, groups), save_warmup=True, dims=dims, coords=coords)
    for group, arrays in groups.items():
        for name, values in arrays.items():
            if isinstance(values, StoredArray):
                lazy = indexing.LazilyIndexedArray(Lazy(values))
                tree[group][name] = Variable(tree[group][name].dims, lazy)
    return tree
