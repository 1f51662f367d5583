"""Quadratic binary problems and cuts of the Biq Mac library: `discrax.solve` beside its peers in the same seconds.

python benchmarks/search_qubo.py --data DATA --seconds 60 --out qubo.jsonl
python benchmarks/search_qubo.py --out qubo.jsonl --page docs/results/search-qubo.md
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np

from discrax.data import data_file
from discrax.problems import QUBO, Graph, MaxCut, Problem
from search_table import Instance, Script, main

CUTS = ("ising", "rudy")  # the families that are maximised as cuts; the others are minimised as they are

TEXT = """
The Biq Mac library as far as the data folder has it: `be`, `beasley` and `gka` are minimised over bits, `ising` and
`rudy` are cuts. The reference is the optimum, or for the largest the best known.
"""


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """All instances, by family."""
    known = json.loads(data_file("biqmac/biqmac_meta.json").read_text())
    files = {
        family: np.load(data_file(f"biqmac/{family}.npz")) for family in sorted({a["family"] for a in known.values()})
    }

    def problem(name: str) -> Problem:
        about, arrays = known[name], files[known[name]["family"]]
        edges, weights = arrays[f"{name}_e"].astype(np.int64), arrays[f"{name}_w"].astype(np.float64)
        if about["family"] in CUTS:
            return MaxCut(Graph.from_edges(edges, weights, num_nodes=about["n"]))
        is_pair = edges[:, 0] != edges[:, 1]
        return QUBO(np.zeros(about["n"]), edges, np.where(is_pair, 2, 1) * weights)

    for name, about in known.items():
        yield Instance(name, about["family"], lambda name=name: problem(name), float(about["best"]))


SCRIPT = Script(
    name="qubo",
    title="Quadratic binary problems of Biq Mac",
    text=TEXT,
    instances=instances,
    tiny=lambda: QUBO(np.random.default_rng(0).integers(-9, 10, (20, 20)).astype(float)),
    searches=("discrax", "dwave-sa", "dwave-tabu", "openjij-sa", "cp-sat", "highs", "bifurcation"),
    seconds=60.0,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
