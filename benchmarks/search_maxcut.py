"""MaxCut on the Gset: `discrax.solve` beside dwave-samplers, OpenJij, CP-SAT and others in the same seconds.

python benchmarks/search_maxcut.py --data DATA --seconds 60 --out maxcut.jsonl
python benchmarks/search_maxcut.py --out maxcut.jsonl --page docs/results/search-maxcut.md
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np

from discrax.data import data_file
from discrax.problems import Graph, MaxCut, generators
from search_table import Instance, Script, main

KNOWN = {"G5": 11631, "G70": 9595}  # where the file of the data set is wrong, or behind

TEXT = """
Cuts of the graphs of the Gset that the data folder has. The reference is the best known cut.
"""


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """The graphs by size: a family is those with as many nodes."""
    known = json.loads(data_file("gset/gset_meta.json").read_text())
    arrays = np.load(data_file("gset/gset.npz"))

    def problem(name: str) -> MaxCut:
        edges, weights = arrays[f"{name}_e"].astype(np.int64), arrays[f"{name}_w"]
        return MaxCut(Graph.from_edges(edges, weights, num_nodes=known[name]["n"]))

    for name, about in known.items():
        best = KNOWN.get(name) or max(about.get(column) or 0 for column in ("best_openising", "romank_value"))
        yield Instance(name, f"{about['n']:,} nodes", lambda name=name: problem(name), float(best))


SCRIPT = Script(
    name="maxcut",
    title="Cuts of the Gset",
    text=TEXT,
    instances=instances,
    tiny=lambda: MaxCut(generators.erdos_renyi(30, 0.3)),
    searches=("discrax", "dwave-sa", "dwave-tabu", "openjij-sa", "cp-sat", "bifurcation"),
    seconds=60.0,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
