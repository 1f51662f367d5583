"""What all formats share: a file as numbered lines, tables of numbers in them, and errors that say where they are."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from discrax.core.checks import describe
from discrax.problems.graph import Graph, check_num_nodes

COMMENTS = ("#", "%")
_LARGEST = 1_000_000_000
_CHUNK = 50_000  # lines that are parsed at once


def as_path(path: Any) -> Path:
    """A path of what may be one, or a TypeError."""
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"A file is named by its path, but got {describe(path)}.") from None


def read_bytes(path: Path) -> bytes:
    """What a file holds, or a ValueError that says why it cannot be read."""
    try:
        return path.read_bytes()
    except ValueError:  # a name that no file can have
        raise ValueError(f"There is no file {str(path)!r}.") from None
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise ValueError(f"A graph is read from a file, but {path} is a folder.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error


def shorten(line: str) -> str:
    """At most 40 characters of a line, in quotes."""
    line = line.strip()
    return repr(line if len(line) <= 40 else line[:37] + "...")


class Text:
    """The lines of a file. Numbers of lines begin with 1."""

    def __init__(self, path: Path, data: bytes):
        self.path = path
        try:
            text = data.decode("utf-8-sig")
            broken = text.find("\0")
            before = text[: max(broken, 0)].encode()
        except UnicodeDecodeError as error:
            broken, before = error.start, data[: error.start]
        if broken >= 0:
            raise self.error(before.count(b"\n") + 1, "This is not text. A graph is read from a text file, or a .npz.")
        self.lines = text.splitlines()
        if not text.strip():
            raise self.error(1, "The file is empty.")

    def error(self, number: int, message: str) -> ValueError:
        """An error, for the caller to raise, that names the file and a line of it."""
        return ValueError(f"{self.path}, line {number}: {message}")

    @cached_property
    def data(self) -> tuple[list[int], list[str]]:
        """The lines that are neither blank nor comments, and their numbers."""
        numbers, rows = [], []
        for number, line in enumerate(self.lines, 1):
            row = line.split("#")[0] if "#" in line else line
            if row and not row.isspace() and not row.lstrip().startswith(COMMENTS):
                numbers.append(number)
                rows.append(row)
        return numbers, rows

    def count(self, number: int, word: str) -> int:
        """How many nodes or edges a word on a line announces."""
        try:
            count = int(word)
        except ValueError:
            raise self.error(number, f"Expected a whole number, but got {shorten(word)}.") from None
        if count < 0:
            raise self.error(number, f"A count cannot be negative, but got {count}.")
        if count > _LARGEST:
            raise self.error(number, f"Graphs have up to {_LARGEST:,} nodes and edges here, but got {count}.")
        return count

    def p_line(
        self,
        number: int,
        before: tuple[int, list[int]] | None,
        kinds: Sequence[str],
        *forms: str,
        num_counts: int | None = None,
    ) -> tuple[int, list[int]]:
        """The number of a line such as `p edge n m`, and its first counts. `before`: those of one above it."""
        if before is not None:
            raise self.error(number, f"There is a second p line; the first is line {before[0]}.")
        line = self.lines[number - 1]
        words = line.split()
        if len(words) != len(forms[0].split()) or words[1] not in kinds:
            wanted = " or ".join(f"`{form}`" for form in forms)
            raise self.error(number, f"Expected {wanted}, but got {shorten(line)}.")
        return number, [self.count(number, word) for word in words[2:][:num_counts]]

    def check_num_nodes(self, number: int, num_nodes: int, num_edges: int) -> None:
        """Refuses more nodes than would fit into memory, in the name of the line that announces them."""
        try:
            check_num_nodes(num_nodes, num_edges)
        except ValueError as error:
            raise self.error(number, str(error)) from None

    def check_range(self, numbers: Sequence[int], nodes: Int[np.ndarray, "rows columns"], low: int, high: int) -> None:
        """Refuses nodes outside low..high; row i of them stands on line `numbers[i]`."""
        outside = np.argwhere((nodes < low) | (nodes > high))
        if len(outside):
            row = outside[0][0]
            raise self.error(numbers[row], f"Nodes are {low}..{high} here, but got {nodes[tuple(outside[0])]}.")

    def check_num_edges(self, numbers: Sequence[int], header: int, announced: int) -> None:
        """Refuses more or fewer lines of edges than a header announces."""
        if len(numbers) < announced:
            last = numbers[-1] if len(numbers) else header
            raise self.error(
                last, f"Line {header} announces {announced} edges, but the file ends after {len(numbers)}."
            )
        if len(numbers) > announced:
            raise self.error(numbers[announced], f"Line {header} announces {announced} edges, but here is one more.")

    def table(self, numbers: Sequence[int], rows: list[str], form: str) -> Float[np.ndarray, "rows columns"]:
        """The numbers in rows such as `i j weight`; all but weights and biases are whole."""
        columns = form.split()
        whole = np.array([column not in ("weight", "bias") for column in columns])
        tables = [np.zeros((0, len(columns)))]
        for begin in range(0, len(rows), _CHUNK):
            some = slice(begin, begin + _CHUNK)
            table = quick_table(rows[some])
            if table is None or table.shape[1] != len(columns) or not is_whole(table[:, whole]).all():
                each = zip(numbers[some], rows[some], strict=True)
                table = np.array([self._row(number, row, columns) for number, row in each])
            tables.append(table)
        return np.concatenate(tables)

    def _row(self, number: int, row: str, columns: list[str]) -> list[float]:
        words, form = row.split(), " ".join(columns)
        if len(words) != len(columns):
            raise self.error(number, f"Expected `{form}`, but got {shorten(row)}.")
        values = []
        for word, column in zip(words, columns, strict=True):
            try:
                value = float(word)
            except ValueError:
                value = np.nan
            is_real = column in ("weight", "bias")
            if not np.isfinite(value) or not (is_real or is_whole(value)):
                kind = "a finite number" if is_real else "a whole number below 2^53"
                raise self.error(number, f"Expected {kind} for {column} in `{form}`, but got {shorten(word)}.")
            values.append(value)
        return values

    def graph(
        self,
        numbers: Sequence[int],
        edges: Int[np.ndarray, "m 2"],
        weights: Float[np.ndarray, " m"] | None,
        num_nodes: int,
        names: Sequence[Hashable] | None = None,
        node_weights: Float[np.ndarray, " n"] | None = None,
    ) -> Graph:
        """The graph of edges on nodes 0..n-1 that stand on the lines `numbers`; its complaints get their line."""
        loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
        if len(loops):
            node = edges[loops[0], 0] if names is None else names[edges[loops[0], 0]]
            raise self.error(numbers[loops[0]], f"Node {node} is joined to itself, but a graph has no self-loops here.")
        try:
            return Graph.from_edges(edges, weights, num_nodes=num_nodes, names=names, node_weights=node_weights)
        except ValueError:
            if weights is None:
                raise
            pairs = np.sort(edges, axis=1)
            order = np.lexsort((np.arange(len(pairs)), pairs[:, 1], pairs[:, 0]))
            is_again = (pairs[order[1:]] == pairs[order[:-1]]).all(axis=1)
            again = order[1:][is_again & (weights[order[1:]] != weights[order[:-1]])]
            if not len(again):
                raise
            second = again.min()
            first = np.flatnonzero((pairs == pairs[second]).all(axis=1))[0]
            i, j = edges[second] if names is None else (names[node] for node in edges[second])
            raise self.error(
                numbers[second],
                f"The edge {i}-{j} has the weight {weights[second]:g} here, "
                f"but {weights[first]:g} on line {numbers[first]}.",
            ) from None


def is_whole(value: Any) -> Any:
    """Whether numbers are whole and below 2^53: beyond that, doubles leave numbers out."""
    return (value % 1 == 0) & (abs(value) < 2**53)


def quick_table(rows: list[str]) -> Float[np.ndarray, "rows columns"] | None:
    """Finite numbers, or None where anything is amiss."""
    if not rows[0].strip():  # loadtxt skips blank rows, and warns if there are no others
        return None
    try:
        table = np.loadtxt(rows, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if len(table) == len(rows) and np.isfinite(table).all() else None
