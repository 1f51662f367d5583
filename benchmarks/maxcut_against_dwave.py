"""MaxCut by dwave-samplers' simulated annealing and by ours, in the same seconds of one process on one machine.

Graphs are rudy files (Gset), a .npz archive with arrays <name>_e and <name>_w, or, where none are given, generated ones
of the Gset's kinds. dwave-samplers shares the time among reads of a few lengths, as a user would who does not know the
best length, and fills what is left with one more read; its best counts.

    python benchmarks/maxcut_against_dwave.py G14.txt G55.txt --seconds 20 --out maxcut.json
    python benchmarks/maxcut_against_dwave.py gset.npz --names G1 G14 --best-known best.json
"""

import argparse
import json
import time
from pathlib import Path

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

from discrax.problems.graph import Graph
from discrax.problems.problem import BinaryQuadratic
from discrax.solving.clock import SearchBudget
from discrax.solving.sites import search_by_sites

LENGTHS = (1_000, 10_000, 100_000)  # sweeps of a read


def torus(side: int, generator: np.random.Generator) -> Graph:
    """A square lattice on a torus with weights +1 and -1, as G11 and G32."""
    nodes = np.arange(side * side).reshape(side, side)
    edges = np.concatenate([np.stack([nodes, np.roll(nodes, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    return Graph.from_edges(edges, generator.choice([-1.0, 1.0], len(edges)))


def random_graph(num_nodes: int, degree: float, generator: np.random.Generator) -> Graph:
    """Every pair is joined with the same probability, as in G1 (degree 48) and G55 (degree 5)."""
    i, j = np.triu_indices(num_nodes, 1)
    joined = generator.random(len(i)) < degree / (num_nodes - 1)
    return Graph.from_edges(np.stack([i[joined], j[joined]], axis=1), num_nodes=num_nodes)


def generated() -> dict[str, Graph]:
    generator = np.random.default_rng(0)
    return {
        "torus-28": torus(28, generator),
        "torus-45": torus(45, generator),
        "ER-800-48": random_graph(800, 48, generator),
        "ER-1000-20": random_graph(1000, 20, generator),
        "ER-5000-5": random_graph(5000, 5, generator),
    }


def read(paths: list[Path], names: list[str] | None) -> dict[str, Graph]:
    graphs = {}
    for path in paths:
        if path.suffix == ".npz":
            archive = np.load(path)
            for name in [key.removesuffix("_e") for key in archive.files if key.endswith("_e")]:
                if names is None or name in names:
                    graphs[name] = Graph.from_edges(archive[f"{name}_e"].astype(np.int64), archive[f"{name}_w"])
        else:
            rows = np.loadtxt(path, skiprows=1, ndmin=2)
            num_nodes = int(path.read_text().split(maxsplit=1)[0])
            weights = rows[:, 2] if rows.shape[1] > 2 else None
            graphs[path.stem] = Graph.from_edges(rows[:, :2].astype(np.int64) - 1, weights, num_nodes=num_nodes)
    return graphs


def cut(graph: Graph, sides: np.ndarray) -> float:
    return float(graph.weights[sides[graph.edges[:, 0]] != sides[graph.edges[:, 1]]].sum())


def by_dwave(graph: Graph, seconds: float, seed: int) -> tuple[float, float, int]:
    """Best cut, seconds and sweeps of reads of the lengths in turn, the time shared equally among the lengths."""
    couplings = {(int(i), int(j)): float(w) for (i, j), w in zip(graph.edges, graph.weights, strict=True)}
    model = dimod.BinaryQuadraticModel.from_ising(dict.fromkeys(range(graph.num_nodes), 0.0), couplings)
    sampler, best, num_sweeps = SimulatedAnnealingSampler(), -np.inf, 0

    def run(length: int, reads: int) -> float:
        nonlocal best, seed, num_sweeps
        seed, num_sweeps = seed + 1, num_sweeps + length * reads
        begin = time.perf_counter()
        found = sampler.sample(model, num_reads=reads, num_sweeps=length, seed=seed).first.sample  # pyright: ignore
        best = max(best, cut(graph, np.array([found[i] for i in range(graph.num_nodes)])))
        return time.perf_counter() - begin

    begin = time.perf_counter()
    rate = run(LENGTHS[0], 1) / LENGTHS[0]
    for index, length in enumerate(LENGTHS):
        while True:
            left = seconds * (index + 1) / len(LENGTHS) - (time.perf_counter() - begin)
            fits = int(left / (rate * length))
            if fits < 1:
                break
            reads = min(fits, max(1, int(0.5 / (rate * length))))
            rate = run(length, reads) / (length * reads)
    left = seconds - (time.perf_counter() - begin)
    if left > 100 * rate:
        run(int(left / rate), 1)
    return best, time.perf_counter() - begin, num_sweeps


def by_us(graph: Graph, seconds: float, seed: int, num_threads: int) -> tuple[float, float, int]:
    linear = np.bincount(graph.edges.ravel(), weights=np.repeat(graph.weights, 2), minlength=graph.num_nodes)
    model = BinaryQuadratic(linear, graph.edges, -2 * graph.weights)
    options = {"num_chains": num_threads, "num_threads": num_threads, "seed": seed, "init": None}
    list(search_by_sites(model, budget=SearchBudget(num_steps=1), **options))  # compiles, once a machine
    begin = time.perf_counter()
    *_, report = search_by_sites(model, budget=SearchBudget(seconds=seconds), **options)
    spent = time.perf_counter() - begin
    best = report.best_states[report.best_values.argmax()]
    return cut(graph, best), spent, report.num_steps * num_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", type=Path, help="rudy files or .npz archives; generated graphs if none")
    parser.add_argument("--names", nargs="+", help="of graphs in the archives; all if not given")
    parser.add_argument("--best-known", type=Path, help="a JSON file of best known cuts by name")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each graph and each solver")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    arguments = parser.parse_args()
    graphs = read(arguments.graphs, arguments.names) if arguments.graphs else generated()
    known = json.loads(arguments.best_known.read_text()) if arguments.best_known else {}
    print(
        f"{'graph':12} {'nodes':>6} {'edges':>7} {'best':>8} {'dwave':>8} {'ours':>8} {'ours, 2':>8}   seconds of each"
    )
    rows = []
    for name, graph in graphs.items():
        results = {
            "dwave": by_dwave(graph, arguments.seconds, arguments.seed),
            "ours": by_us(graph, arguments.seconds, arguments.seed, 1),
            "ours_two_threads": by_us(graph, arguments.seconds, arguments.seed, 2),
        }
        row = {"graph": name, "nodes": graph.num_nodes, "edges": graph.num_edges, "best_known": known.get(name)}
        for solver, (value, seconds, num_sweeps) in results.items():
            row[solver] = {"cut": value, "seconds": seconds, "sweeps": num_sweeps}
        rows.append(row)
        best = f"{known[name]:g}" if name in known else "-"
        cuts = " ".join(f"{value:8g}" for value, _, _ in results.values())
        times = " ".join(f"{seconds:6.1f}" for _, seconds, _ in results.values())
        print(f"{name:12} {graph.num_nodes:6} {graph.num_edges:7} {best:>8} {cuts}  {times}", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
