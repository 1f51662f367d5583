"""METIS: first `n m [fmt [ncon]]`, then a line for each node: [size] [weight] and its neighbours, [with weights]."""

from typing import NamedTuple

import numpy as np

from discrax.problems.graph import Graph
from discrax.problems.readers.lines import Text, is_whole, quick_table, shorten


class _Header(NamedTuple):
    line: int
    num_nodes: int
    num_edges: int
    has_sizes: bool
    has_node_weights: bool
    has_weights: bool


def read_metis(text: Text) -> Graph:
    """Nodes are counted from 1. A blank line is a node without neighbours, and lines that begin with % are comments."""
    kept = [(i, line) for i, line in enumerate(text.lines, 1) if not line.lstrip().startswith("%")]
    while kept and not kept[0][1].strip():
        kept.pop(0)
    header = _header(text, *(kept[0] if kept else (1, "")))
    numbers, rows = _body(text, header, kept[1:])
    counts = np.array([len(row.split()) for row in rows], np.int64)
    leading, step = header.has_sizes + header.has_node_weights, 1 + header.has_weights
    is_wrong = (counts < leading) | ((counts - leading) % step != 0)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        form = ["size"] * header.has_sizes + ["weight"] * header.has_node_weights
        form += ["j", "w", "..."] if header.has_weights else ["j", "..."]
        raise text.error(numbers[row], f"Expected `{' '.join(form)}`, but got {shorten(rows[row])}.")
    values = _values(text, header, numbers, rows)
    node = np.repeat(np.arange(header.num_nodes), counts)
    column = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_neighbour = (column >= leading) & ((column - leading) % step == 0)
    ends, others = node[is_neighbour], values[is_neighbour]
    lines = np.array(numbers, np.int64)[ends]
    if not is_whole(others).all():
        wrong = int(np.argmin(is_whole(others)))
        raise text.error(int(lines[wrong]), f"Expected the number of a node, but got {others[wrong]:g}.")
    edges = np.stack([ends, others.astype(np.int64) - 1], axis=1)
    text.check_range(lines.tolist(), edges[:, 1:] + 1, 1, header.num_nodes)
    weights = values[(column >= leading) & ~is_neighbour] if header.has_weights else np.ones(len(edges))
    node_weights = values[column == header.has_sizes] if header.has_node_weights else None
    names = range(1, header.num_nodes + 1)
    graph = text.graph(lines.tolist(), edges, weights, header.num_nodes, names, node_weights)
    alone = np.flatnonzero(~np.isin(edges @ [header.num_nodes, 1], edges @ [1, header.num_nodes]))
    if len(alone):
        i, j = edges[alone[0]] + 1
        raise text.error(int(lines[alone[0]]), f"Node {i} names {j} as its neighbour, but {j} does not name {i}.")
    if graph.num_edges != header.num_edges:
        raise text.error(header.line, f"Here {header.num_edges} edges are announced, but there are {graph.num_edges}.")
    return graph


def _header(text: Text, number: int, line: str) -> _Header:
    words = line.split()
    if not 2 <= len(words) <= 4:
        raise text.error(number, f"A METIS file begins with `n m [fmt [ncon]]`, but got {shorten(line)}.")
    num_nodes, num_edges = text.count(number, words[0]), text.count(number, words[1])
    fmt = words[2].zfill(3) if len(words) > 2 else "000"
    if len(fmt) > 3 or set(fmt) - set("01"):
        raise text.error(number, f"fmt is up to three digits 0 or 1, but got {shorten(words[2])}.")
    has_sizes, has_node_weights, has_weights = (digit == "1" for digit in fmt)
    num_constraints = text.count(number, words[3]) if len(words) > 3 else int(has_node_weights)
    if has_node_weights and num_constraints != 1:
        raise text.error(number, f"A node has one weight here, but this file gives it {num_constraints}.")
    return _Header(number, num_nodes, num_edges, has_sizes, has_node_weights, has_weights)


def _body(text: Text, header: _Header, kept: list[tuple[int, str]]) -> tuple[list[int], list[str]]:
    """The lines of the nodes, and their numbers."""
    announces = f"Line {header.line} announces {header.num_nodes} nodes, but"
    for number, line in kept[header.num_nodes :]:
        if line.strip():
            raise text.error(number, f"{announces} here is one more.")
    kept = kept[: header.num_nodes]
    if len(kept) < header.num_nodes:
        raise text.error(kept[-1][0] if kept else header.line, f"{announces} the file ends after {len(kept)}.")
    return [number for number, _ in kept], [line for _, line in kept]


def _values(text: Text, header: _Header, numbers: list[int], rows: list[str]) -> np.ndarray:
    """The numbers of all lines, one after another."""
    whole = " ".join(rows)
    values = quick_table([whole]) if whole.strip() else np.zeros((1, 0))
    if values is None:
        for number, row in zip(numbers, rows, strict=True):
            text.table([number] * len(row.split()), row.split(), "weight")
        raise text.error(header.line, "There are lines here that are not numbers.")
    return values[0]
