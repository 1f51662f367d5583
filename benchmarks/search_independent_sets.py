"""Independent sets of ER, RB, SATLIB and BHOSLIB graphs: `discrax.solve` beside KaMIS, CP-SAT and others.

The families want different budgets, which is one run each; the page has for each family the budget with most rows.

    python benchmarks/search_independent_sets.py --instances ER-[700-800] --seconds 1 --out mis.jsonl
    python benchmarks/search_independent_sets.py --instances SATLIB --data DATA --seconds 2 --out mis.jsonl
    python benchmarks/search_independent_sets.py --instances RB-[200-300] RB-[800-1200] --seconds 4 --out mis.jsonl
    python benchmarks/search_independent_sets.py --instances BHOSLIB --data DATA --seconds 60 --out mis.jsonl
    python benchmarks/search_independent_sets.py --out mis.jsonl --page docs/results/search-independent-sets.md
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np

from discrax.data import data_file, data_files
from discrax.problems import MIS, Graph, generators
from search_table import Instance, Script, main

NUM_GRAPHS = 128  # of each random family, at most

TEXT = """
Where no optimum is known, the reference is the best that any search found here with any seed.
"""
RB = "model RB at its threshold, drawn as the literature on neural solvers does."
FAMILIES = {
    "ER-[700-800]": "Erdos-Renyi graphs of 700 to 800 nodes, density 0.15, as drawn by `generators.er_set`.",
    "RB-[200-300]": RB,
    "RB-[800-1200]": RB,
    "SATLIB": "satisfiable formulas of 100 variables as graphs of conflicts; the optimum is the number of clauses. "
    "`discrax` sees in the graph that it comes from a formula, and searches that.",
    "BHOSLIB": "model RB with a solution that was planted; the optimum is the number of cliques.",
}


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """The four families; those of the data folder are left out where there is none."""
    for i in range(NUM_GRAPHS):
        yield Instance(f"ER-{i}", "ER-[700-800]", lambda i=i: MIS(er_graph(i)))
    for family, ranges in (("RB-[200-300]", generators.RB_SMALL), ("RB-[800-1200]", generators.RB_LARGE)):
        for i in range(NUM_GRAPHS):
            yield Instance(f"{family}-{i}", family, lambda i=i, ranges=ranges: MIS(rb_graph(ranges, i)))
    try:
        yield from satlib()
        yield from bhoslib()
    except ValueError as missing:
        print(f"SATLIB and BHOSLIB are left out: {missing}")


def er_graph(i: int) -> Graph:
    """Graph i of `generators.er_set(700, 800, 0.15, ...)`, without those before it."""
    generator = np.random.default_rng([0, i])
    return generators.erdos_renyi(int(generator.integers(700, 801)), 0.15, generator)


def rb_graph(ranges: dict, seed: int) -> Graph:
    """A graph of model RB, of the ranges of the literature on neural solvers."""
    return next(iter(generators.rb_set(1, seed=seed, **ranges)))


def satlib() -> Iterator[Instance]:
    """Formulas of all files in turn."""
    names = [name for name in data_files("satlib") if "/CBS" in name]
    formulas = {name.split("/")[1].removesuffix(".npz"): np.load(data_file(name))["clauses"] for name in names}
    for i in range(max(map(len, formulas.values()))):
        for name, clauses in formulas.items():
            if i < len(clauses):
                formula = clauses[i]
                yield Instance(
                    f"{name}-{i}",
                    "SATLIB",
                    lambda formula=formula: MIS(conflict_graph(formula)),
                    float(len(formula)),
                    "optimum",
                )


def conflict_graph(clauses: np.ndarray) -> Graph:
    """Node 3 i + j is literal j of clause i; the literals of a clause are joined, and each to its negations."""
    literals = clauses.ravel().astype(np.int64)
    clause = np.repeat(np.arange(len(clauses)), clauses.shape[1])
    conflicts = (clause[:, None] == clause) | (literals[:, None] == -literals)
    return Graph.from_edges(np.argwhere(np.triu(conflicts, 1)), num_nodes=len(literals))


def bhoslib() -> Iterator[Instance]:
    """All graphs of the set."""
    known = json.loads(data_file("bhoslib/bhoslib_meta.json").read_text())
    arrays = np.load(data_file("bhoslib/bhoslib_mis.npz"))

    def problem(name: str) -> MIS:
        return MIS(Graph.from_edges(arrays[f"{name}_e"].astype(np.int64), num_nodes=known[name]["n"]))

    for name, about in known.items():
        yield Instance(name, "BHOSLIB", lambda name=name: problem(name), float(about["alpha"]), "optimum")


SCRIPT = Script(
    name="independent-sets",
    title="Independent sets",
    text=TEXT,
    instances=instances,
    families=FAMILIES,
    tiny=lambda: MIS(generators.erdos_renyi(30, 0.2)),
    searches=("discrax", "dwave-sa", "openjij-sa", "kamis-online", "cp-sat", "highs"),
    seconds=1.0,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
