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

A `.txt` is rudy if its first line is `n m` and the next line has three columns, or m lines of nodes 1..n follow; else
it is an edge list, unless it may as well be a rudy file with a fault: then it is refused. Where a file numbers its
nodes from 1, `Graph.names` are those numbers. Parallel edges of GraphML and GML add up.

A formula in `.cnf` becomes the graph of its conflicts: a node for each literal of each clause, named (clause, literal);
edges join the literals of a clause, and each literal to its negations. An independent set of m nodes, one per clause,
is an assignment that satisfies all m. `read_formula` gives the clauses themselves, of `.wcnf` files too.

Whatever is wrong with a file is a `ValueError` that names the file and the line. Parsing is vectorised; only once
something is known to be wrong are lines looked at one by one. These readers are ours for the sake of those lines:
networkx and scipy do not say them.
"""

import re
from collections.abc import Callable
from pathlib import Path

from discrax.problems.graph import Graph
from discrax.problems.readers.dimacs import read_cnf, read_dimacs
from discrax.problems.readers.edge_lists import read_edges, read_rudy, read_txt, write_edges
from discrax.problems.readers.formulas import Formula, read_formula
from discrax.problems.readers.libraries import read_gml, read_graphml, read_npz
from discrax.problems.readers.lines import COMMENTS, Text, as_path, read_bytes
from discrax.problems.readers.metis import read_metis
from discrax.problems.readers.quadratic import QuadraticForm, read_qubo

__all__ = ["Formula", "QuadraticForm", "example", "read_formula", "read_graph", "read_qubo", "write_graph"]

_EXAMPLES = Path(__file__).parent.parent / "examples"
_READERS: dict[str, Callable[[Text], Graph]] = {
    "edges": read_edges,
    "rudy": read_rudy,
    "dimacs": read_dimacs,
    "cnf": read_cnf,
    "metis": read_metis,
    "graphml": read_graphml,
    "gml": read_gml,
    "txt": read_txt,
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


def read_graph(path: str | Path, format: str | None = None) -> Graph:
    """A graph from a file; `format` is a name from the table above, where the ending does not tell."""
    path = as_path(path)
    data = read_bytes(path)
    if format is None:
        format = _find_format(path)
    elif not isinstance(format, str) or format not in (*_READERS, "npz"):
        raise ValueError(f"A graph's format is one of {', '.join([*_READERS, 'npz'])}, but got {format!r}.")
    if format == "npz":
        return read_npz(path, data)
    text = Text(path, data)
    found = _find_telltale(text)
    if found is not None and found[0] != format:
        raise text.error(
            found[1], f"This was to be read as {format}, but it is {found[0]}. Rename it, or say format={found[0]!r}."
        )
    return _READERS[format](text)


def write_graph(graph: Graph, path: str | Path) -> None:
    """Writes rudy (.txt .mc .rud .rudy .sparse, no ending) or an edge list (.edges .edgelist .csv .tsv).

    Nodes go by their numbers, and neither format has a place for node weights.
    """
    path = as_path(path)
    if (graph.node_weights != 1).any():
        raise ValueError("Rudy files and edge lists have no place for node weights, but this graph has some.")
    format = _find_format(path)
    if format not in ("rudy", "txt", "edges"):
        raise ValueError(f"Graphs are written as rudy or as edge lists, but {path} would be {format}.")
    write_edges(graph, path, has_header=format != "edges")


def example(name: str) -> Path:
    """A graph that is shipped: "torus.txt" (20 x 20, weights +-1), "random.graphml" (60 nodes) or "petersen.clq"."""
    path = _EXAMPLES / str(name)
    if not path.is_file():
        known = ", ".join(sorted(file.name for file in _EXAMPLES.iterdir() if not file.name.startswith("_")))
        raise ValueError(f"The shipped graphs are {known}, but got {name!r}.")
    return path


def _find_format(path: Path) -> str:
    ending = path.suffix.lower()
    if not re.match(r"\.[a-z]", ending):
        return "rudy"  # as in G14, or pm1s_80.0
    if ending in (".coo", ".qubo"):
        raise ValueError(f"{path} holds a quadratic form, which has linear terms, not a graph. Use read_qubo.")
    if ending == ".wcnf":
        raise ValueError(f"{path} holds a formula with weights, not a graph. Use problems.MaxSAT, or read_formula.")
    for format, endings in _ENDINGS.items():
        if ending in endings:
            return format
    known = " ".join(ending for endings in _ENDINGS.values() for ending in endings)
    raise ValueError(f"{path} has an unknown ending. Known are {known}; for other names, say format=.")


def _find_telltale(text: Text) -> tuple[str, int] | None:
    """The format that the first line of substance proves, and the number of that line."""
    for number, line in enumerate(text.lines, 1):
        words = line.split()
        if not words or words[0] == "c" or words[0].startswith(COMMENTS):
            continue
        if words[0] == "p" and len(words) > 1:
            return ("cnf" if words[1] == "cnf" else "dimacs"), number
        if words[0].startswith("<"):
            return "graphml", number
        if words[0] in ("graph", "graph[", "Creator", "Version"):
            return "gml", number
        return None
    return None
