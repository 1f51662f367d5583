"""Rows that fit neither on the device nor in memory, handed out in blocks, in random order, for ever.

A disk reads contiguous rows fast and single rows slowly. So n rows are cut into P pieces of `piece_rows` rows (the last
one may be shorter), and epoch k visits the pieces in a random order sigma_k. Laid end to end, the epochs

    rows of piece sigma_0(1), ..., rows of piece sigma_0(P), rows of piece sigma_1(1), ...

are one endless sequence in which every epoch has each row exactly once. Block b is its part from b B to (b + 1) B,
B = `block_rows`, shuffled. It depends on the seed and on b alone, so the number of blocks handed out is all the state.

Rows of one piece stay together in a block or two: where neighbours in a file resemble each other (a sorted file), make
pieces smaller, or blocks larger.
"""

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import IO, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from discrax.core import checks
from discrax.core.files import write_whole

_AHEAD = 2  # blocks, read or being read, besides the one handed out


class RowStream:
    """Blocks of rows of one or several arrays, in the order that the module describes.

    `rows` is a pytree whose leaves have the same number of rows: arrays, memory-mapped arrays, or paths of .npy files.
    `next(stream)` is such a pytree of C-contiguous numpy arrays of `block_rows` rows. A thread reads two blocks ahead.
    It ends with `close()`, with a `with` block, or with the stream.

    Where reading fails, `next` says so and hands out nothing; called again, it tries the same block again.
    """

    position: int  # blocks handed out so far; RowStream(..., start=position) goes on from here
    row: PyTree  # shape and dtype of one row

    def __init__(
        self, rows: PyTree, block_rows: int = 65_536, piece_rows: int = 4_096, seed: int = 0, *, start: int = 0
    ):
        for name, value in {"block_rows": block_rows, "piece_rows": piece_rows}.items():
            _check_count(name, value, 1)
        for name, value in {"seed": seed, "start": start}.items():
            _check_count(name, value, 0)
        leaves, structure = jax.tree.flatten(rows)
        sources = [_source(leaf) for leaf in leaves]
        self._order = _Order(_common_length(sources), int(block_rows), int(piece_rows), int(seed))
        self._read = partial(_read_block, sources, structure, self._order)
        self._span = lambda begin, end: structure.unflatten([source.read(begin, end) for source in sources])
        self.row = structure.unflatten([jax.ShapeDtypeStruct(source.shape[1:], source.dtype) for source in sources])
        self.position = int(start)
        # Its thread ends when the executor is collected, and is joined when the interpreter exits.
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="RowStream")
        self._coming: deque[Future] = deque()
        self._turn = Lock()
        self._is_closed = False

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return self._order.block_rows

    def __len__(self) -> int:
        return self._order.num_rows

    def __iter__(self) -> Iterator[PyTree]:
        return self

    def __next__(self) -> PyTree:
        with self._turn:
            if self._is_closed:
                raise ValueError("This stream is closed; RowStream(..., start=stream.position) goes on from there.")
            self._read_ahead()
            try:
                block = self._coming[0].result()
            except Exception:
                self._coming.clear()
                raise
            self._coming.popleft()
            self.position += 1
            self._read_ahead()
            return block

    def _read_ahead(self) -> None:
        while len(self._coming) < _AHEAD:
            self._coming.append(self._reader.submit(self._read, self.position + len(self._coming)))

    def in_order(self, rows_at_once: int) -> Iterator[PyTree]:
        """All rows once, in their own order, some at a time; apart from the blocks that `next` hands out."""
        for begin in range(0, len(self), rows_at_once):
            yield self._span(begin, min(begin + rows_at_once, len(self)))

    def close(self) -> None:
        """Ends the thread; blocks that were handed out stay."""
        with self._turn:
            self._is_closed = True
            self._reader.shutdown(wait=True, cancel_futures=True)
            self._coming.clear()

    def __enter__(self) -> "RowStream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def write_rows(
    path: str | os.PathLike, make_block: Callable[[int, int], ArrayLike], num_rows: int, block_rows: int = 65_536
) -> None:
    """Writes a .npy file without ever holding it: `make_block(begin, end)` makes the rows from begin up to end."""
    for name, value in {"num_rows": num_rows, "block_rows": block_rows}.items():
        _check_count(name, value, 1)
    if not callable(make_block):
        raise TypeError(f"make_block must be a function of (begin, end), but got {checks.describe(make_block)}.")

    def write(file: IO[bytes]) -> None:
        row = None
        for begin in range(0, num_rows, block_rows):
            end = min(begin + block_rows, num_rows)
            try:
                made = make_block(begin, end)
            except TypeError as error:
                raise TypeError(f"make_block must take (begin, end), but raises {checks.in_words(error)}") from error
            block = np.ascontiguousarray(made)
            if row is None:
                row = jax.ShapeDtypeStruct(block.shape[1:], _native(block.dtype, "what make_block returned"))
                described = {"descr": row.dtype.str, "fortran_order": False, "shape": (num_rows, *row.shape)}
                np.lib.format.write_array_header_1_0(file, described)
            if block.shape != (end - begin, *row.shape) or block.dtype != row.dtype:
                raise ValueError(
                    f"Rows {begin} to {end} must be an array of shape {(end - begin, *row.shape)} and dtype "
                    f"{row.dtype}, but make_block returned {block.shape} and {block.dtype}."
                )
            block.tofile(file)

    write_whole(os.fspath(path), write)


class _Order(NamedTuple):
    num_rows: int
    block_rows: int
    piece_rows: int
    seed: int

    def spans(self, block: int) -> Iterator[tuple[int, int]]:
        """The contiguous rows, begin and end, that make up a block."""
        at, last = block * self.block_rows, (block + 1) * self.block_rows
        while at < last:
            epoch, done = divmod(at, self.num_rows)
            begins = self.piece_rows * self._rng(0, epoch).permutation(-(-self.num_rows // self.piece_rows))
            ends = np.minimum(begins + self.piece_rows, self.num_rows)
            before = np.cumsum(ends - begins) - (ends - begins)  # rows of the epoch before each piece
            first = int(np.searchsorted(before, done, side="right")) - 1
            for piece in range(first, len(begins)):
                begin = int(begins[piece]) + max(done - int(before[piece]), 0)
                end = min(int(ends[piece]), begin + last - at)
                yield begin, end
                at += end - begin
                if at == last:
                    return

    def places(self, block: int) -> np.ndarray:
        """Where the rows of the spans, one after the other, go in a block."""
        return self._rng(1, block).permutation(self.block_rows)

    def _rng(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what])


class _Source(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[int, int], np.ndarray]  # rows from begin up to end


def _read_block(sources: list[_Source], structure: Any, order: _Order, number: int) -> PyTree:
    arrays = [np.empty((order.block_rows, *source.shape[1:]), source.dtype) for source in sources]
    places, filled = order.places(number), 0
    for begin, end in order.spans(number):
        here = places[filled : filled + end - begin]
        for array, source in zip(arrays, sources, strict=True):
            array[here] = source.read(begin, end)
        filled += end - begin
    return structure.unflatten(arrays)


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but got {value!r}.")


def _source(leaf: Any) -> _Source:
    if isinstance(leaf, str | os.PathLike):
        return _file_source(os.path.abspath(leaf))
    if not isinstance(leaf, np.ndarray | jax.Array):
        raise ValueError(f"Rows come from arrays or from paths of .npy files, but got {type(leaf).__name__}: {leaf!r}.")
    array = np.asanyarray(leaf)
    read = partial(_read_mapped if isinstance(array, np.memmap) else _read_array, array)
    name = f"an array of shape {array.shape}"
    return _Source(name, array.shape, _native(array.dtype, name), read)


def _file_source(path: str) -> _Source:
    if not os.path.isfile(path):
        raise ValueError(f"There is no file {path}.")
    try:
        # A map only tells what is in the file. Rows are read: a map of a file that is cut short kills the process.
        array = np.load(path, mmap_mode="r")
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} must be a whole .npy file of numbers, but {checks.in_words(error)}") from error
    if not isinstance(array, np.memmap):
        raise ValueError(
            f"{path} must be a .npy file with one array, but it is an archive; save its arrays one by one."
        )
    if not array.flags.c_contiguous:
        raise ValueError(f"{path} holds its array column by column, so rows lie scattered; save it in C order.")
    read = partial(_read_file, path, array.shape, array.dtype, array.offset)
    return _Source(path, array.shape, _native(array.dtype, path), read)


def _native(dtype: np.dtype, name: str) -> np.dtype:
    if not (jnp.issubdtype(dtype, np.number) or dtype == np.bool_):
        raise ValueError(f"Rows must be numbers or booleans, but {name} has dtype {dtype}.")
    return dtype.newbyteorder("=")


def _common_length(sources: list[_Source]) -> int:
    if not sources:
        raise ValueError("A stream needs at least one array or file, but got none.")
    for source in sources:
        if not source.shape:
            raise ValueError(f"A stream needs arrays with a first axis of rows, but {source.name} is a single number.")
    lengths = {source.shape[0] for source in sources}
    if len(lengths) > 1:
        told = ", ".join(f"{source.shape[0]} in {source.name}" for source in sources)
        raise ValueError(f"All arrays of a stream must have the same number of rows, but there are {told}.")
    if lengths == {0}:
        raise ValueError(f"A stream needs at least one row, but {sources[0].name} has none.")
    return lengths.pop()


def _read_array(array: np.ndarray, begin: int, end: int) -> np.ndarray:
    return array[begin:end]


def _read_mapped(array: np.memmap, begin: int, end: int) -> np.ndarray:
    rows = np.array(array[begin:end])
    # Pages that were read stay resident, and in the end all of the file would. Dropped pages of a shared map come back
    # from the file; those of a private map (mode "c") would lose what was written to them.
    if hasattr(mmap, "MADV_DONTNEED") and array.mode != "c":
        array._mmap.madvise(mmap.MADV_DONTNEED)  # ty: ignore[missing-attribute]
    return rows


def _read_file(path: str, shape: tuple[int, ...], dtype: np.dtype, offset: int, begin: int, end: int) -> np.ndarray:
    row_size = int(np.prod(shape[1:], dtype=int))
    try:
        with open(path, "rb") as file:
            if hasattr(os, "posix_fadvise"):
                # Otherwise the system reads on behind each piece: from a cold disk three times what is used.
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            numbers = np.fromfile(
                file, dtype, count=(end - begin) * row_size, offset=offset + begin * row_size * dtype.itemsize
            )
    except OSError as error:
        raise OSError(f"Rows {begin} to {end} of {path} cannot be read any more: {error}.") from error
    if numbers.size != (end - begin) * row_size:
        raise OSError(f"{path} ends before row {end}, but it had {shape[0]} rows when the stream was made.")
    return numbers.reshape(end - begin, *shape[1:])
