"""Cliques of the DIMACS graphs: `discrax.solve` beside KaMIS (on the complement), CP-SAT and others.

python benchmarks/search_cliques.py --data DATA --seconds 60 --out cliques.jsonl
python benchmarks/search_cliques.py --out cliques.jsonl --page docs/results/search-cliques.md
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np

from discrax.data import data_file
from discrax.problems import Graph, MaxClique, generators
from search_table import Instance, Script, main

# Clique numbers and best known sizes of the second DIMACS challenge's graphs, from the literature.
KNOWN = {
    "DSJC500_5": 13, "MANN_a27": 126, "brock200_1": 21, "brock200_2": 12, "brock200_3": 15, "brock200_4": 17,
    "brock400_1": 27, "brock400_2": 29, "brock400_3": 31, "brock800_2": 24, "brock800_4": 26, "c-fat200-1": 12,
    "c-fat200-2": 24, "c-fat500-1": 14, "c-fat500-10": 126, "gen200_p0.9_44": 44, "gen200_p0.9_55": 55,
    "gen400_p0.9_55": 55, "gen400_p0.9_65": 65, "gen400_p0.9_75": 75, "hamming6-2": 32, "johnson16-2-4": 8,
    "johnson32-2-4": 16, "keller5": 27, "p_hat1000-2": 46, "p_hat300-1": 8, "p_hat500-1": 9, "p_hat500-2": 36,
    "p_hat500-3": 50, "p_hat700-2": 44, "san200_0.9_2": 60, "san400_0.9_1": 100, "sanr200_0.7": 18,
}  # fmt: skip

TEXT = """
Graphs of the second DIMACS challenge, as far as the data folder has them. The reference is the clique number, or for
`johnson32-2-4` and `keller5` the best known. m counts conflicts, the pairs that are not joined.
"""


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """All graphs; a family is a generator."""
    known = json.loads(data_file("dimacs_clique/dimacs_meta.json").read_text())
    arrays = np.load(data_file("dimacs_clique/dimacs_clique.npz"))

    def problem(name: str) -> MaxClique:
        n = known[name]["n"]
        i, j = np.triu_indices(n, 1)
        joined = np.unpackbits(arrays[name], count=len(i)).astype(bool)
        return MaxClique(Graph.from_edges(np.stack([i[joined], j[joined]], axis=1), num_nodes=n))

    for name in known:
        family = name.rstrip("0123456789._-p").split("_")[0].split("-")[0].rstrip("0123456789")
        yield Instance(name, family or name, lambda name=name: problem(name), float(KNOWN[name]))


SCRIPT = Script(
    name="cliques",
    title="Cliques of the DIMACS graphs",
    text=TEXT,
    instances=instances,
    tiny=lambda: MaxClique(generators.erdos_renyi(30, 0.7)),
    searches=("discrax", "dwave-sa", "openjij-sa", "kamis-online", "kamis-redumis", "cp-sat", "highs"),
    seconds=60.0,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
