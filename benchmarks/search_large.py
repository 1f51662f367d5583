"""Large sparse graphs, 10^5 nodes and 10^6 edges: a cut and an independent set, with the memory that each search takes.

python benchmarks/search_large.py --seconds 60 --out large.jsonl
python benchmarks/search_large.py --out large.jsonl --page docs/results/search-large.md
"""

import argparse
from collections.abc import Iterator

from discrax.problems import MIS, MaxCut, generators
from search_table import Instance, Script, main

TEXT = """
Erdos-Renyi graphs, drawn by `generators.erdos_renyi`. The reference is the best that any search found here. Each
search runs in a process of its own (one on each core, if it has one thread). Searches that make a matrix of all
pairs, or a linear programme of a million rows, are left out.
"""


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """A cut and an independent set of the same graph."""
    n, m = arguments.nodes, arguments.edges

    def graph():
        return generators.erdos_renyi(n, 2 * m / (n * (n - 1)), seed=0)

    yield Instance(f"MaxCut {n:,} nodes", "MaxCut", lambda: MaxCut(graph()))
    yield Instance(f"MIS {n:,} nodes", "MIS", lambda: MIS(graph()))


def options(parser: argparse.ArgumentParser) -> None:
    """How large."""
    parser.add_argument("--nodes", type=int, default=100_000, help="%(default)s")
    parser.add_argument("--edges", type=int, default=1_000_000, help="expected; %(default)s")


SCRIPT = Script(
    name="large",
    title="Large sparse graphs",
    text=TEXT,
    instances=instances,
    tiny=lambda: MIS(generators.erdos_renyi(30, 0.2)),
    searches=("discrax", "dwave-sa", "openjij-sa", "kamis-online"),
    seconds=60.0,
    is_fresh=True,
    options=options,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
