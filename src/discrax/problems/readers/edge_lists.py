"""Lists of edges: as they are (`edges`), behind a line `n m` (`rudy`, as in Gset), and whichever it is (`txt`)."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from discrax.core.files import write_whole
from discrax.problems.graph import Graph
from discrax.problems.readers.lines import COMMENTS, Text, quick_table, shorten

_COLUMN_NAMES = {("source", "target"), ("from", "to"), ("i", "j"), ("u", "v")}
_WHOLE = r"[+-]?\d{1,15}"  # longer ones are names


def read_txt(text: Text) -> Graph:
    """A rudy file or an edge list, whichever the first line and the number of lines say."""
    _, rows = text.data
    first = rows[0].split() if rows else []
    if len(first) == 2 and all(re.fullmatch(r"[+-]?\d+", word) for word in first):
        return read_rudy(text) if _has_header(text, int(first[0]), int(first[1]), rows[1:]) else read_edges(text)
    return read_edges(text)


def _has_header(text: Text, num_nodes: int, num_edges: int, body: list[str]) -> bool:
    """Whether a first line of two whole numbers is `n m` and no edge; a file that may be either is refused."""
    if body and len(body[0].split()) == 3:
        return True
    pairs = quick_table(body) if body else np.zeros((0, 2))
    are_pairs = pairs is not None and pairs.shape[1] == 2
    fits = pairs is not None and are_pairs and bool(((pairs >= 1) & (pairs <= num_nodes)).all())
    has_room = num_edges <= num_nodes * (num_nodes - 1) // 2
    if len(body) == num_edges and (fits or num_nodes == num_edges or (has_room and not are_pairs)):
        return True
    if has_room and ((len(body) == num_edges and are_pairs) or (len(body) < num_edges and fits)):
        raise text.error(
            text.data[0][0],
            f"This announces {num_nodes} nodes and {num_edges} edges, of which {len(body)} are there, or it is an edge "
            "itself. Give the file the ending .edges if it is, and else look for lines that are missing or that name "
            f"nodes outside 1..{num_nodes}.",
        )
    return False


def read_rudy(text: Text) -> Graph:
    """First `n m`, then m lines `i j weight` or `i j`, nodes from 1."""
    numbers, rows = text.data
    if not rows or len(rows[0].split()) != 2:
        number, got = (numbers[0], rows[0]) if rows else (1, "")
        raise text.error(number, f"Expected `n m`, the numbers of nodes and edges, but got {shorten(got)}.")
    num_nodes, num_edges = (text.count(numbers[0], word) for word in rows[0].split())
    at, numbers, rows = numbers[0], numbers[1:], rows[1:]
    text.check_num_nodes(at, num_nodes, len(rows))
    is_weighted = not rows or len(rows[0].split()) != 2
    table = text.table(numbers, rows, "i j weight" if is_weighted else "i j")
    text.check_num_edges(numbers, at, num_edges)
    edges = table[:, :2].astype(np.int64)
    text.check_range(numbers, edges, 1, num_nodes)
    weights = table[:, 2] if is_weighted else None
    return text.graph(numbers, edges - 1, weights, num_nodes, range(1, num_nodes + 1))


def read_edges(text: Text) -> Graph:
    """Lines `i j` or `i j weight`, with commas or not; whole numbers without gaps are nodes, and others are names."""
    numbers, rows = text.data
    rows = [re.sub(r"[,;]", " ", row) if "," in row or ";" in row else row for row in rows]
    # networkx.write_edgelist ends lines in {} or {'weight': 2}.
    rows = [re.sub(r"\{(?:'weight':)?([^{}]*)\}", r"\1", row) if "{" in row else row for row in rows]
    if rows and _names_columns(rows):
        numbers, rows = numbers[1:], rows[1:]
    announced, at = _announced_nodes(text)
    text.check_num_nodes(at, announced or 0, len(rows))
    if not rows:
        if announced is None:
            raise text.error(len(text.lines), "There are no edges, and no line `# nodes: n` says how many nodes.")
        return Graph.from_edges(np.zeros((0, 2), np.int64), num_nodes=announced)
    first = rows[0].split()
    if len(first) not in (2, 3):
        raise text.error(numbers[0], f"Expected `i j` or `i j weight`, but got {shorten(rows[0])}.")
    if not all(re.fullmatch(_WHOLE, word) for word in first[:2]):
        return _between_names(text, numbers, rows)
    is_weighted = len(first) == 3
    table = text.table(numbers, rows, "i j weight" if is_weighted else "i j")
    labels, weights = table[:, :2].astype(np.int64), table[:, 2] if is_weighted else None
    text.check_range(numbers, labels, 0, np.iinfo(np.int64).max)
    known = np.unique(labels)
    num_nodes = len(known) if announced is None else announced
    if len(known) > num_nodes:
        raise text.error(at, f"The comment says {num_nodes} nodes, but the edges join {len(known)}.")
    if known[-1] < num_nodes:
        return text.graph(numbers, labels, weights, num_nodes)
    if known[0] == 1 and known[-1] == num_nodes:
        return text.graph(numbers, labels - 1, weights, num_nodes, range(1, num_nodes + 1))
    if announced is not None and announced > len(known):
        warnings.warn(
            f"{text.path}: {announced - len(known):,} of the {announced:,} nodes that a comment announces have no edge "
            "and no name, and are left out; number nodes from 0 to have them.",
            stacklevel=2,
        )
    return text.graph(numbers, np.searchsorted(known, labels), weights, len(known), known.tolist())


def _names_columns(rows: list[str]) -> bool:
    """Whether the first line names columns: nothing in it is a number, and all nodes below are."""
    heads = rows[0].split()
    if tuple(word.strip("\"'").lower() for word in heads[:2]) in _COLUMN_NAMES:
        return True
    if len(heads) not in (2, 3) or any(re.search(r"^[+-]?[\d.]", word) for word in heads):
        return False
    return len(rows) > 1 and all(re.fullmatch(_WHOLE, word) for row in rows[1:] for word in row.split()[:2])


def _between_names(text: Text, numbers: list[int], rows: list[str]) -> Graph:
    """Nodes are numbered in the order of their names."""
    words = [row.split() for row in rows]
    num_columns = len(words[0])
    for number, row, parts in zip(numbers, rows, words, strict=True):
        if len(parts) != num_columns:
            raise text.error(number, f"The first edge has {num_columns} columns, but this line is {shorten(row)}.")
    place: dict[str, int] = {}
    edges = np.array([[place.setdefault(name, len(place)) for name in parts[:2]] for parts in words])
    weights = text.table(numbers, [parts[2] for parts in words], "weight")[:, 0] if num_columns == 3 else None
    return text.graph(numbers, edges, weights, len(place), list(place))


def _announced_nodes(text: Text) -> tuple[int | None, int]:
    """From a comment `# nodes: 100`, as `write_graph` and the SNAP collection put it."""
    for number, line in enumerate(text.lines, 1):
        if line.lstrip().startswith(COMMENTS):
            said = re.match(r"\s*[#%]\s*nodes:?\s+(\d+)\b", line, re.IGNORECASE)
            if said:
                return text.count(number, said[1]), number
        elif line.strip():
            break
    return None, 1


def write_edges(graph: Graph, path: Path, *, has_header: bool) -> None:
    """Writes lines `i j weight` behind `n m`, nodes from 1, or behind `# nodes: n`, nodes from 0."""
    separator = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower(), " ")
    header = f"{graph.num_nodes} {graph.num_edges}" if has_header else f"# nodes: {graph.num_nodes}"
    rows = np.column_stack([graph.edges + has_header, graph.weights])
    form: dict[str, Any] = {"fmt": ["%d", "%d", "%.17g"], "delimiter": separator, "header": header, "comments": ""}
    write_whole(path, lambda file: np.savetxt(file, rows, **form))
