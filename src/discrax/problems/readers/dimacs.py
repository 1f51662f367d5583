"""DIMACS: graphs for cliques and colourings, and formulas in conjunctive normal form."""

import numpy as np
from jaxtyping import Int

from discrax.problems.graph import Graph
from discrax.problems.readers.formulas import read_clauses
from discrax.problems.readers.lines import Text, shorten


def read_dimacs(text: Text) -> Graph:
    """`p edge n m`, then edges `e i j` and weights of nodes `n i weight`, nodes from 1; `c` begins comments."""
    header = None
    numbers: dict[str, list[int]] = {"e": [], "n": []}
    for number, line in enumerate(text.lines, 1):
        kind = (line.split(maxsplit=1) or [""])[0]
        if kind in numbers:
            numbers[kind].append(number)
        elif kind == "p":
            header = text.p_line(number, header, ("edge", "edges", "col", "clq"), "p edge n m", "p col n m")
        elif kind and kind != "c":
            raise text.error(number, f"A line of a DIMACS graph begins with c, p, e or n, but got {shorten(line)}.")
    first = min(kinds[0] for kinds in [*numbers.values(), [len(text.lines)]] if kinds)
    if header is None or header[0] > first:
        raise text.error(first, "A line `p edge n m` must come before the nodes and edges, but there is none.")
    at, (num_nodes, num_edges) = header
    text.check_num_nodes(at, num_nodes, len(numbers["e"]))

    def rows(kind: str) -> list[str]:
        return [text.lines[number - 1].lstrip()[1:] for number in numbers[kind]]

    edges = text.table(numbers["e"], rows("e"), "i j").astype(np.int64)
    text.check_range(numbers["e"], edges, 1, num_nodes)
    weighted = text.table(numbers["n"], rows("n"), "i weight")
    nodes = weighted[:, 0].astype(np.int64)
    text.check_range(numbers["n"], nodes[:, None], 1, num_nodes)
    node_weights = np.ones(num_nodes)
    node_weights[nodes - 1] = weighted[:, 1]
    graph = text.graph(numbers["e"], edges - 1, None, num_nodes, range(1, num_nodes + 1), node_weights)
    # Files of colouring problems give edges in both directions, and count them once or twice.
    if graph.num_edges != num_edges:
        text.check_num_edges(numbers["e"], at, num_edges)
    return graph


def read_cnf(text: Text) -> Graph:
    """The conflicts of a formula: a node for each literal of each clause, named (clause, literal)."""
    formula = read_clauses(text)
    literals, sizes = formula.literals, np.diff(formula.start)
    clauses = np.repeat(np.arange(len(sizes)), sizes)
    edges = [*_same_clause(sizes), _contradictions(literals)]
    names = list(zip((clauses + 1).tolist(), literals.tolist(), strict=True))
    return Graph.from_edges(np.concatenate(edges), num_nodes=len(literals), names=names)


def _same_clause(sizes: Int[np.ndarray, " clauses"]) -> list[Int[np.ndarray, "pairs 2"]]:
    """All pairs of literals of one clause, by the size of the clauses."""
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
