"""Graphs from files.

| format    | endings                            | a line of it                                                       |
|-----------|------------------------------------|--------------------------------------------------------------------|
| `edges`   | .txt .edges .edgelist .csv .tsv    | `i j` or `i j weight`; `#` and `%` begin comments; any labels      |
| `rudy`    | .txt .mc .rud .rudy .sparse, none  | first `n m`, then m lines `i j weight`, nodes from 1 (Gset)        |
| `dimacs`  | .clq .col .dimacs                  | `c comment`, `p edge n m`, `e i j`, `n i weight`, nodes from 1     |
| `cnf`     | .cnf                               | `c comment`, `p cnf n m`, clauses of literals that end with 0      |
| `metis`   | .graph .metis                      | first `n m [fmt [ncon]]`, then the neighbours of each node, from 1 |
| `graphml` | .graphml                           | XML; the attribute "weight" of edges and nodes counts              |
| `gml`     | .gml                               | as networkx reads it; likewise                                     |
| `npz`     | .npz                               | a square matrix from `scipy.sparse.save_npz`                       |

A `.txt` is rudy if its first line is `n m` and either m lines follow or the next line has three columns; else it is an
edge list, unless it may as well be a rudy file of which lines are missing: then it is refused. Where a file numbers its
nodes from 1, `Graph.names` are those numbers. Parallel edges of GraphML and GML add up.

A formula in `.cnf` becomes the graph of its conflicts: a node for each literal of each clause, named (clause, literal);
edges join the literals of a clause, and each literal to its negations. An independent set of m nodes, one per clause,
is an assignment that satisfies all m.

Whatever is wrong with a file is a `ValueError` that names the file and the line. Parsing is vectorised; only once
something is known to be wrong are lines looked at one by one.
"""

import io
import re
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from discrax.core.checks import describe
from discrax.core.files import write_whole
from discrax.problems.graph import Graph, check_num_nodes

_EXAMPLES = Path(__file__).parent / "examples"
_COMMENTS = ("#", "%")
_LARGEST = 1_000_000_000
_CHUNK = 50_000  # lines that are parsed at once


def read_graph(path: str | Path, format: str | None = None) -> Graph:
    """A graph from a file; `format` is a name from the table above, where the ending does not tell."""
    path = _path(path)
    data = _bytes(path)
    if format is None:
        format = _format_of(path)
    elif not isinstance(format, str) or format not in (*_READERS, "npz"):
        raise ValueError(f"A graph's format is one of {', '.join([*_READERS, 'npz'])}, but got {format!r}.")
    if format == "npz":
        return _npz(path, data)
    text = _Text(path, data)
    found = _telltale(text)
    if found is not None and found[0] != format:
        raise text.error(
            found[1], f"This was to be read as {format}, but it is {found[0]}. Rename it, or say format={found[0]!r}."
        )
    return _READERS[format](text)


class QuadraticForm(NamedTuple):
    """offset + sum of linear_i x_i + sum over edges of weight x_i x_j: an energy, so that less is better."""

    linear: Float[np.ndarray, " n"]
    edges: Int[np.ndarray, "m 2"]
    weights: Float[np.ndarray, " m"]
    offset: float
    vartype: str  # "BINARY": x in {0, 1}, or "SPIN": x in {-1, +1}


def read_qubo(path: str | Path) -> QuadraticForm:
    """A quadratic form from lines `i j bias`, nodes from 0, where `i i bias` is linear and repeated entries add up.

    This is dimod's `.coo`, which may say `# vartype=SPIN` (else it is BINARY), and qbsolv's `.qubo`, which has comments
    `c ...` and a line `p qubo 0 max-nodes diagonals elements`.
    """
    path = _path(path)
    text = _Text(path, _bytes(path))
    vartype, header = "BINARY", None
    numbers, rows = [], []
    for number, line in enumerate(text.lines, 1):
        words = line.split()
        said = re.match(r"\s*#.*?vartype[:=]\s*([-_.a-zA-Z0-9]+)", line)
        if said:
            vartype = said[1]
            if vartype not in ("BINARY", "SPIN"):
                raise text.error(number, f"A vartype is BINARY or SPIN, but got {vartype!r}.")
        elif words and words[0] == "p":
            if header is not None:
                raise text.error(number, f"There is a second p line; the first is line {header[0]}.")
            if len(words) != 6 or words[1] != "qubo":
                raise text.error(number, f"Expected `p qubo 0 n diagonals elements`, but got {_short(line)}.")
            header = number, [_count(text, number, word) for word in words[3:]]
        elif words and words[0][0] not in "#c":
            numbers.append(number)
            rows.append(line)
    table = _table(text, numbers, rows, "i j bias")
    if header is not None:
        _check_num_nodes(text, header[0], header[1][0], len(rows))
    pairs, biases = table[:, :2].astype(np.int64), table[:, 2]
    if header is None:
        if not rows:
            raise text.error(len(text.lines), "There are no lines `i j bias`.")
        num_nodes = int(pairs.max()) + 1
        _check_num_nodes(text, numbers[int(pairs.max(axis=1).argmax())], num_nodes, len(rows))
    else:
        num_nodes, num_diagonal, num_elements = header[1]
        is_diagonal = pairs[:, 0] == pairs[:, 1]
        for what, said, there in [
            ("linear terms", num_diagonal, is_diagonal.sum()),
            ("couplings", num_elements, (~is_diagonal).sum()),
        ]:
            if said != there:
                raise text.error(header[0], f"The p line announces {said} {what}, but there are {there}.")
    _check_range(text, numbers, pairs, 0, num_nodes - 1)
    is_diagonal = pairs[:, 0] == pairs[:, 1]
    linear = np.bincount(pairs[is_diagonal, 0], biases[is_diagonal], minlength=num_nodes)
    couplings = np.sort(pairs[~is_diagonal], axis=1)
    edges, entry = np.unique(couplings, axis=0, return_inverse=True)
    weights = np.bincount(entry.ravel(), biases[~is_diagonal], minlength=len(edges))
    return QuadraticForm(linear, edges.reshape(-1, 2), weights, 0.0, vartype)


def write_graph(graph: Graph, path: str | Path) -> None:
    """Writes rudy (.txt .mc .rud .rudy .sparse, no ending) or an edge list (.edges .edgelist .csv .tsv).

    Nodes go by their numbers, and neither format has a place for node weights.
    """
    path = _path(path)
    if (graph.node_weights != 1).any():
        raise ValueError("Rudy files and edge lists have no place for node weights, but this graph has some.")
    format = _format_of(path)
    if format in ("rudy", "txt"):
        first, header, separator = 1, f"{graph.num_nodes} {graph.num_edges}", " "
    elif format == "edges":
        separator = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower(), " ")
        first, header = 0, f"# nodes: {graph.num_nodes}"
    else:
        raise ValueError(f"Graphs are written as rudy or as edge lists, but {path} would be {format}.")
    rows = np.column_stack([graph.edges + first, graph.weights])
    form: dict[str, Any] = {"fmt": ["%d", "%d", "%.17g"], "delimiter": separator, "header": header, "comments": ""}
    write_whole(path, lambda file: np.savetxt(file, rows, **form))


def example(name: str) -> Path:
    """A graph that is shipped: "torus.txt" (20 x 20, weights +-1), "random.graphml" (60 nodes) or "petersen.clq"."""
    path = _EXAMPLES / str(name)
    if not path.is_file():
        known = ", ".join(sorted(file.name for file in _EXAMPLES.iterdir() if not file.name.startswith("_")))
        raise ValueError(f"The shipped graphs are {known}, but got {name!r}.")
    return path


# Files, lines, and errors that say where they are.


class _Text:
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
        return ValueError(f"{self.path}, line {number}: {message}")

    @cached_property
    def data(self) -> tuple[list[int], list[str]]:
        """The lines that are neither blank nor comments, and their numbers."""
        numbers, rows = [], []
        for number, line in enumerate(self.lines, 1):
            row = line.split("#")[0] if "#" in line else line
            if row and not row.isspace() and not row.lstrip().startswith(_COMMENTS):
                numbers.append(number)
                rows.append(row)
        return numbers, rows


def _path(path: Any) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"A file is named by its path, but got {describe(path)}.") from None


def _bytes(path: Path) -> bytes:
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


def _format_of(path: Path) -> str:
    ending = path.suffix.lower()
    if not re.match(r"\.[a-z]", ending):
        return "rudy"  # as in G14, or pm1s_80.0
    if ending in (".coo", ".qubo"):
        raise ValueError(f"{path} holds a quadratic form, which has linear terms, not a graph. Use read_qubo.")
    for format, endings in _ENDINGS.items():
        if ending in endings:
            return format
    known = " ".join(ending for endings in _ENDINGS.values() for ending in endings)
    raise ValueError(f"{path} has an unknown ending. Known are {known}; for other names, say format=.")


def _telltale(text: _Text) -> tuple[str, int] | None:
    """The format that the first line of substance proves, and the number of that line."""
    for number, line in enumerate(text.lines, 1):
        words = line.split()
        if not words or words[0] == "c" or words[0].startswith(_COMMENTS):
            continue
        if words[0] == "p" and len(words) > 1:
            return ("cnf" if words[1] == "cnf" else "dimacs"), number
        if words[0].startswith("<"):
            return "graphml", number
        if words[0] in ("graph", "graph[", "Creator", "Version"):
            return "gml", number
        return None
    return None


def _short(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= 40 else line[:37] + "...")


def _count(text: _Text, number: int, word: str) -> int:
    try:
        count = int(word)
    except ValueError:
        raise text.error(number, f"Expected a whole number, but got {_short(word)}.") from None
    if count < 0:
        raise text.error(number, f"A count cannot be negative, but got {count}.")
    if count > _LARGEST:
        raise text.error(number, f"Graphs have up to {_LARGEST:,} nodes and edges here, but got {count}.")
    return count


def _check_num_nodes(text: _Text, number: int, num_nodes: int, num_edges: int) -> None:
    try:
        check_num_nodes(num_nodes, num_edges)
    except ValueError as error:
        raise text.error(number, str(error)) from None


def _table(text: _Text, numbers: Sequence[int], rows: list[str], form: str) -> Float[np.ndarray, "rows columns"]:
    """The numbers in rows such as `i j weight`; all but weights and biases are whole."""
    columns = form.split()
    is_whole = np.array([column not in ("weight", "bias") for column in columns])
    tables = [np.zeros((0, len(columns)))]
    for begin in range(0, len(rows), _CHUNK):
        some = slice(begin, begin + _CHUNK)
        table = _quick_table(rows[some])
        if table is None or table.shape[1] != len(columns) or not _is_whole(table[:, is_whole]).all():
            each = zip(numbers[some], rows[some], strict=True)
            table = np.array([_row(text, number, row, columns, is_whole) for number, row in each])
        tables.append(table)
    return np.concatenate(tables)


def _is_whole(value: Any) -> Any:
    return (value % 1 == 0) & (abs(value) < 2**53)  # beyond that, doubles leave numbers out


def _quick_table(rows: list[str]) -> Float[np.ndarray, "rows columns"] | None:
    """Finite numbers, or None where anything is amiss."""
    if not rows[0].strip():  # loadtxt skips blank rows, and warns if there are no others
        return None
    try:
        table = np.loadtxt(rows, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if len(table) == len(rows) and np.isfinite(table).all() else None


def _row(text: _Text, number: int, row: str, columns: list[str], is_whole: np.ndarray) -> list[float]:
    words = row.split()
    if len(words) != len(columns):
        raise text.error(number, f"Expected `{' '.join(columns)}`, but got {_short(row)}.")
    values = []
    for word, column, whole in zip(words, columns, is_whole, strict=True):
        try:
            value = float(word)
        except ValueError:
            value = np.nan
        if not np.isfinite(value) or (whole and not _is_whole(value)):
            kind = "a whole number below 2^53" if whole else "a finite number"
            raise text.error(number, f"Expected {kind} for {column} in `{' '.join(columns)}`, but got {_short(word)}.")
        values.append(value)
    return values


def _check_range(text: _Text, numbers: Sequence[int], nodes: np.ndarray, low: int, high: int) -> None:
    outside = np.argwhere((nodes < low) | (nodes > high))
    if len(outside):
        row = outside[0][0]
        raise text.error(numbers[row], f"Nodes are {low}..{high} here, but got {nodes[tuple(outside[0])]}.")


def _checked(
    text: _Text,
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
        raise text.error(numbers[loops[0]], f"Node {node} is joined to itself, but a graph has no self-loops here.")
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
        raise text.error(
            numbers[second],
            f"The edge {i}-{j} has the weight {weights[second]:g} here, "
            f"but {weights[first]:g} on line {numbers[first]}.",
        ) from None


def _check_number_of_edges(text: _Text, numbers: Sequence[int], header: int, announced: int) -> None:
    if len(numbers) < announced:
        last = numbers[-1] if len(numbers) else header
        raise text.error(last, f"Line {header} announces {announced} edges, but the file ends after {len(numbers)}.")
    if len(numbers) > announced:
        raise text.error(numbers[announced], f"Line {header} announces {announced} edges, but here is one more.")


# The formats.


def _txt(text: _Text) -> Graph:
    _, rows = text.data
    first = rows[0].split() if rows else []
    if len(first) == 2 and all(re.fullmatch(r"[+-]?\d+", word) for word in first):
        body = rows[1:]
        if int(first[1]) == len(body) or (body and len(body[0].split()) == 3):
            return _rudy(text)
        _check_no_header(text, int(first[0]), int(first[1]), body)
    return _edge_list(text)


def _check_no_header(text: _Text, num_nodes: int, num_edges: int, body: list[str]) -> None:
    """Refuses a list of edges whose first line may as well announce more edges than there are."""
    if not len(body) < num_edges <= num_nodes * (num_nodes - 1) // 2:
        return
    table = _quick_table(body) if body else np.zeros((0, 2))
    if table is not None and table.shape[1] == 2 and ((table >= 1) & (table <= num_nodes)).all():
        raise text.error(
            text.data[0][0],
            f"This announces {num_nodes} nodes and {num_edges} edges, of which {len(body)} are there, or it is an edge "
            "itself. Give the file the ending .edges if it is, and else look for the lines that are missing.",
        )


def _rudy(text: _Text) -> Graph:
    numbers, rows = text.data
    if not rows or len(rows[0].split()) != 2:
        number, got = (numbers[0], rows[0]) if rows else (1, "")
        raise text.error(number, f"Expected `n m`, the numbers of nodes and edges, but got {_short(got)}.")
    num_nodes, num_edges = (_count(text, numbers[0], word) for word in rows[0].split())
    at, numbers, rows = numbers[0], numbers[1:], rows[1:]
    _check_num_nodes(text, at, num_nodes, len(rows))
    is_weighted = not rows or len(rows[0].split()) != 2
    table = _table(text, numbers, rows, "i j weight" if is_weighted else "i j")
    _check_number_of_edges(text, numbers, at, num_edges)
    edges = table[:, :2].astype(np.int64)
    _check_range(text, numbers, edges, 1, num_nodes)
    weights = table[:, 2] if is_weighted else None
    return _checked(text, numbers, edges - 1, weights, num_nodes, range(1, num_nodes + 1))


def _edge_list(text: _Text) -> Graph:
    numbers, rows = text.data
    rows = [re.sub(r"[,;]", " ", row) if "," in row or ";" in row else row for row in rows]
    # networkx.write_edgelist ends lines in {} or {'weight': 2}.
    rows = [re.sub(r"\{(?:'weight':)?([^{}]*)\}", r"\1", row) if "{" in row else row for row in rows]
    if rows and tuple(word.strip("\"'").lower() for word in rows[0].split()[:2]) in _COLUMN_NAMES:
        numbers, rows = numbers[1:], rows[1:]
    announced, at = _announced_nodes(text)
    _check_num_nodes(text, at, announced or 0, len(rows))
    if not rows:
        if announced is None:
            raise text.error(len(text.lines), "There are no edges, and no line `# nodes: n` says how many nodes.")
        return Graph.from_edges(np.zeros((0, 2), np.int64), num_nodes=announced)
    first = rows[0].split()
    if len(first) not in (2, 3):
        raise text.error(numbers[0], f"Expected `i j` or `i j weight`, but got {_short(rows[0])}.")
    is_weighted = len(first) == 3
    if all(re.fullmatch(r"[+-]?\d{1,15}", word) for word in first[:2]):  # longer ones are labels
        table = _table(text, numbers, rows, "i j weight" if is_weighted else "i j")
        labels, weights = table[:, :2].astype(np.int64), table[:, 2] if is_weighted else None
        _check_range(text, numbers, labels, 0, np.iinfo(np.int64).max)
        known = np.unique(labels)
        num_nodes = len(known) if announced is None else announced
        if len(known) > num_nodes:
            raise text.error(at, f"The comment says {num_nodes} nodes, but the edges join {len(known)}.")
        if known[-1] < num_nodes:
            return _checked(text, numbers, labels, weights, num_nodes)
        if known[0] == 1 and known[-1] == num_nodes:
            return _checked(text, numbers, labels - 1, weights, num_nodes, range(1, num_nodes + 1))
        return _checked(text, numbers, np.searchsorted(known, labels), weights, len(known), known.tolist())
    words = [row.split() for row in rows]
    for number, row, parts in zip(numbers, rows, words, strict=True):
        if len(parts) != len(first):
            raise text.error(number, f"The first edge has {len(first)} columns, but this line is {_short(row)}.")
    place: dict[str, int] = {}
    edges = np.array([[place.setdefault(name, len(place)) for name in parts[:2]] for parts in words])
    weights = _table(text, numbers, [parts[2] for parts in words], "weight")[:, 0] if is_weighted else None
    return _checked(text, numbers, edges, weights, len(place), list(place))


_COLUMN_NAMES = {("source", "target"), ("from", "to"), ("i", "j"), ("u", "v")}


def _announced_nodes(text: _Text) -> tuple[int | None, int]:
    """From a comment `# nodes: 100`, as `write_graph` and the SNAP collection put it."""
    for number, line in enumerate(text.lines, 1):
        if line.lstrip().startswith(_COMMENTS):
            said = re.match(r"\s*[#%]\s*nodes:?\s+(\d+)\b", line, re.IGNORECASE)
            if said:
                return _count(text, number, said[1]), number
        elif line.strip():
            break
    return None, 1


def _dimacs(text: _Text) -> Graph:
    header = None
    numbers: dict[str, list[int]] = {"e": [], "n": []}
    for number, line in enumerate(text.lines, 1):
        kind = (line.split(maxsplit=1) or [""])[0]
        if kind in numbers:
            numbers[kind].append(number)
        elif kind == "p":
            words = line.split()
            if header is not None:
                raise text.error(number, f"There is a second p line; the first is line {header[0]}.")
            if len(words) != 4 or words[1] not in ("edge", "edges", "col", "clq"):
                raise text.error(number, f"Expected `p edge n m` or `p col n m`, but got {_short(line)}.")
            header = number, _count(text, number, words[2]), _count(text, number, words[3])
        elif kind and kind != "c":
            raise text.error(number, f"A line of a DIMACS graph begins with c, p, e or n, but got {_short(line)}.")
    first = min(kinds[0] for kinds in [*numbers.values(), [len(text.lines)]] if kinds)
    if header is None or header[0] > first:
        raise text.error(first, "A line `p edge n m` must come before the nodes and edges, but there is none.")
    at, num_nodes, num_edges = header
    _check_num_nodes(text, at, num_nodes, len(numbers["e"]))

    def rows(kind: str) -> list[str]:
        return [text.lines[number - 1].lstrip()[1:] for number in numbers[kind]]

    edges = _table(text, numbers["e"], rows("e"), "i j").astype(np.int64)
    _check_range(text, numbers["e"], edges, 1, num_nodes)
    weighted = _table(text, numbers["n"], rows("n"), "i weight")
    nodes = weighted[:, 0].astype(np.int64)
    _check_range(text, numbers["n"], nodes[:, None], 1, num_nodes)
    node_weights = np.ones(num_nodes)
    node_weights[nodes - 1] = weighted[:, 1]
    graph = _checked(text, numbers["e"], edges - 1, None, num_nodes, range(1, num_nodes + 1), node_weights)
    # Files of colouring problems give edges in both directions, and count them once or twice.
    if graph.num_edges != num_edges:
        _check_number_of_edges(text, numbers["e"], at, num_edges)
    return graph


def _cnf(text: _Text) -> Graph:
    header = None
    numbers, rows = [], []
    for number, line in enumerate(text.lines, 1):
        words = line.split(maxsplit=1)
        if not words or words[0] == "c":
            continue
        if words[0] == "%":  # SATLIB ends its files so
            break
        if words[0] == "p":
            words = line.split()
            if header is not None:
                raise text.error(number, f"There is a second p line; the first is line {header[0]}.")
            if len(words) != 4 or words[1] != "cnf":
                raise text.error(number, f"Expected `p cnf n m`, but got {_short(line)}.")
            header = number, _count(text, number, words[2]), _count(text, number, words[3])
            continue
        if header is None:
            raise text.error(number, f"Expected `p cnf n m` before the clauses, but got {_short(line)}.")
        numbers.append(number)
        rows.append(line)
    if header is None:
        raise text.error(len(text.lines), "Expected a line `p cnf n m`, but there is none.")
    at, num_variables, num_clauses = header
    words = " ".join(rows).split()
    try:
        literals = np.array(words, dtype=np.int64) if words else np.zeros(0, np.int64)
        is_fine = (np.abs(literals) <= num_variables).all()
    except (ValueError, OverflowError):
        literals, is_fine = np.zeros(0, np.int64), False
    if not is_fine:
        for number, row in zip(numbers, rows, strict=True):
            for word in row.split():
                if not re.fullmatch(r"[+-]?\d+", word):
                    raise text.error(number, f"Expected literals, which are whole numbers, but got {_short(word)}.")
                if abs(int(word)) > num_variables:
                    raise text.error(number, f"Variables are 1..{num_variables} here, but got the literal {word}.")

    ends = np.flatnonzero(literals == 0)
    if len(literals) and literals[-1] != 0:
        raise text.error(numbers[-1], "The last clause does not end with 0.")
    if len(ends) != num_clauses:
        raise text.error(at, f"The p line announces {num_clauses} clauses, but there are {len(ends)}.")
    sizes = np.diff(ends, prepend=-1) - 1
    if (sizes == 0).any():
        position = ends[np.argmax(sizes == 0)]
        line = np.searchsorted(np.cumsum([len(row.split()) for row in rows]), position, side="right")
        raise text.error(numbers[line], "This clause is empty, so that nothing satisfies the formula.")
    clauses = np.repeat(np.arange(num_clauses), sizes)
    literals = literals[literals != 0]
    edges = [*_same_clause(sizes), _contradictions(literals)]
    names = list(zip((clauses + 1).tolist(), literals.tolist(), strict=True))
    return Graph.from_edges(np.concatenate(edges), num_nodes=len(literals), names=names)


def _same_clause(sizes: Int[np.ndarray, " clauses"]) -> list[Int[np.ndarray, "pairs 2"]]:
    starts = np.cumsum(sizes) - sizes
    cliques = [np.zeros((0, 2), np.int64)]
    for size in np.unique(sizes):
        pairs = np.stack(np.triu_indices(size, 1), axis=1)
        cliques.append((starts[sizes == size][:, None, None] + pairs).reshape(-1, 2))
    return cliques


def _contradictions(literals: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, "pairs 2"]:
    """All pairs of a literal and its negation: each positive node, beside the run of nodes of its negative."""
    order = np.argsort(literals, kind="stable")
    positive = np.flatnonzero(literals > 0)
    begin = np.searchsorted(literals[order], -literals[positive], side="left")
    counts = np.searchsorted(literals[order], -literals[positive], side="right") - begin
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([np.repeat(positive, counts), order[np.repeat(begin, counts) + within]], axis=1)


def _metis(text: _Text) -> Graph:
    kept = [(i, line) for i, line in enumerate(text.lines, 1) if not line.lstrip().startswith("%")]
    while kept and not kept[0][1].strip():
        kept.pop(0)
    header = kept[0][1].split() if kept else []
    at = kept[0][0] if kept else 1
    if not 2 <= len(header) <= 4:
        raise text.error(at, f"A METIS file begins with `n m [fmt [ncon]]`, but got {_short(' '.join(header))}.")
    num_nodes, num_edges = _count(text, at, header[0]), _count(text, at, header[1])
    fmt = header[2].zfill(3) if len(header) > 2 else "000"
    if len(fmt) > 3 or set(fmt) - set("01"):
        raise text.error(at, f"fmt is up to three digits 0 or 1, but got {_short(header[2])}.")
    has_sizes, has_node_weights, has_weights = (digit == "1" for digit in fmt)
    num_constraints = _count(text, at, header[3]) if len(header) > 3 else int(has_node_weights)
    if has_node_weights and num_constraints != 1:
        raise text.error(at, f"A node has one weight here, but this file gives it {num_constraints}.")
    body = kept[1:]
    extra = next((number for number, line in body[num_nodes:] if line.strip()), None)
    if extra is not None:
        raise text.error(extra, f"Line {at} announces {num_nodes} nodes, but here is one more.")
    body = body[:num_nodes]
    if len(body) < num_nodes:
        last = body[-1][0] if body else at
        raise text.error(last, f"Line {at} announces {num_nodes} nodes, but the file ends after {len(body)}.")

    counts = np.array([len(line.split()) for _, line in body], np.int64)
    lines = np.array([number for number, _ in body], np.int64)
    values = _quick_table([" ".join(line for _, line in body)]) if counts.any() else np.zeros((1, 0))
    if values is None:
        for number, line in body:
            _table(text, [number] * len(line.split()), line.split(), "weight")
        raise text.error(at, "There are lines here that are not numbers.")
    values = values[0]
    of = np.repeat(np.arange(num_nodes), counts)
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    num_leading = has_sizes + has_node_weights
    step = 1 + has_weights
    wrong = (counts < num_leading) | ((counts - num_leading) % step != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        form = ["size"] * has_sizes + ["weight"] * has_node_weights + (["j", "w"] if has_weights else ["j"]) + ["..."]
        raise text.error(int(lines[row]), f"Expected `{' '.join(form)}`, but got {_short(body[row][1])}.")
    node_weights = values[place == has_sizes] if has_node_weights else None
    is_neighbour = (place >= num_leading) & ((place - num_leading) % step == 0)
    rows, others = of[is_neighbour], values[is_neighbour]
    if not _is_whole(others).all():
        row = int(np.argmin(_is_whole(others)))
        raise text.error(int(lines[rows[row]]), f"Expected the number of a node, but got {others[row]:g}.")
    others = others.astype(np.int64)
    weights = values[(place >= num_leading) & ~is_neighbour] if has_weights else np.ones(len(others))
    _check_range(text, lines[rows].tolist(), others[:, None], 1, num_nodes)
    edges = np.stack([rows, others - 1], axis=1)
    graph = _checked(text, lines[rows].tolist(), edges, weights, num_nodes, range(1, num_nodes + 1), node_weights)
    forward, backward = edges @ [num_nodes, 1], edges @ [1, num_nodes]
    alone = np.flatnonzero(~np.isin(forward, backward))
    if len(alone):
        i, j = edges[alone[0]] + 1
        raise text.error(int(lines[rows[alone[0]]]), f"Node {i} names {j} as its neighbour, but {j} does not name {i}.")
    if graph.num_edges != num_edges:
        raise text.error(at, f"Here {num_edges} edges are announced, but there are {graph.num_edges}.")
    return graph


def _graphml(text: _Text) -> Graph:
    from xml.etree.ElementTree import ParseError

    import networkx

    try:
        return Graph.of(networkx.parse_graphml("\n".join(text.lines)))
    except ParseError as error:
        raise text.error(error.position[0], f"This is not the XML of a GraphML file: {error}.") from None
    except Exception as error:  # networkx raises many kinds
        _find_fault_in_graphml(text)
        raise ValueError(f"{text.path}: This is not a graph in GraphML: {error}") from None


def _find_fault_in_graphml(text: _Text) -> None:
    """Raises for the first loop, or weight that is not a finite number."""
    from xml.parsers import expat

    weight_keys: set[str] = set()
    weight: dict[str, Any] = {}
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        tag, number = tag.split(":")[-1], parser.CurrentLineNumber
        if tag == "key" and attributes.get("attr.name") == "weight":
            weight_keys.add(attributes.get("id", ""))
        elif tag == "edge":
            source, target = attributes.get("source", ""), attributes.get("target", "")
            if source == target:
                raise text.error(number, f"Node {source} is joined to itself, but a graph has no self-loops here.")
        elif tag == "data" and attributes.get("key") in weight_keys:
            weight.update(number=number, text="")

    def characters(more: str) -> None:
        if weight:
            weight["text"] += more

    def end(tag: str) -> None:
        tag = tag.split(":")[-1]
        if tag == "data" and weight:
            try:
                number = float(weight["text"])
            except ValueError:
                number = np.nan
            if not np.isfinite(number):
                raise text.error(weight["number"], f"A weight is a finite number, but got {_short(weight['text'])}.")
            weight.clear()

    parser.StartElementHandler, parser.CharacterDataHandler, parser.EndElementHandler = begin, characters, end
    parser.Parse("\n".join(text.lines), True)


def _gml(text: _Text) -> Graph:
    import networkx

    has_labels = any(line.split()[:1] == ["label"] for line in text.lines)
    try:
        return Graph.of(networkx.parse_gml(text.lines, label="label" if has_labels else "id"))
    except Exception as error:  # networkx raises many kinds
        for edge in re.finditer(r"source\s+(\S+)\s+target\s+(\S+)", whole := "\n".join(text.lines)):
            if edge[1] == edge[2]:
                number = whole.count("\n", 0, edge.start()) + 1
                raise text.error(
                    number, f"Node {edge[1]} is joined to itself, but a graph has no self-loops here."
                ) from None
        said = re.search(r"\((\d+), \d+\)", str(error))
        number = min(int(said[1]), len(text.lines)) if said else 1
        raise text.error(number, f"This is not a graph in GML: {error}") from None


def _npz(path: Path, data: bytes) -> Graph:
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(io.BytesIO(data))
    except Exception:  # of many kinds, for a file that is anything else
        raise ValueError(f"{path} is not a matrix as scipy.sparse.save_npz writes it.") from None
    try:
        return Graph.of(matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


_READERS: dict[str, Callable[[_Text], Graph]] = {
    "edges": _edge_list,
    "rudy": _rudy,
    "dimacs": _dimacs,
    "cnf": _cnf,
    "metis": _metis,
    "graphml": _graphml,
    "gml": _gml,
    "txt": _txt,
}
_ENDINGS = {
    "txt": (".txt",),
    "edges": (".edges", ".edgelist", ".csv", ".tsv"),
    "rudy": (".mc", ".rud", ".rudy", ".sparse"),
    "dimacs": (".clq", ".col", ".dimacs"),
    "cnf": (".cnf",),
    "metis": (".graph", ".metis"),
    "graphml": (".graphml",),
    "gml": (".gml",),
    "npz": (".npz",),
}
