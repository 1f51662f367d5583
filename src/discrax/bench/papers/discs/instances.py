"""The sets of instances that optimisation is measured on: drawn as the papers draw theirs, or read from files.

References, the values that ratios are taken to, are best known, exact, or bounds, as each function says; those that are
found here are in `references`. Files are prepared ones, or the originals as they are published (`discrax data`).
"""

import csv
from collections.abc import Iterable, Sequence
from importlib import resources

import numpy as np

from discrax.bench.experiments.optimisation import Instances, Reference
from discrax.bench.papers.discs.networks import network_graph
from discrax.bench.papers.discs.references import best_cuts, largest_cliques
from discrax.data import data_arrays, data_files
from discrax.data.folder import data_folder
from discrax.problems import MIS, Graph, MaxClique, MaxCut, Partition, generators

_OPTSICOM_BEST = (110, 112, 106, 114, 112, 110, 112, 108, 110, 112)
_BA_ATTACHED, _ER_DENSITY = 4, 0.15
_BALANCE = 0.0005


def er_mis(low: int, high: int, density: float, count: int, seed: int = 0, penalty: float = 1.0001) -> Instances:
    """Independent sets of Erdős-Rényi graphs with `low` to `high` nodes. No references."""
    graphs = generators.er_set(low, high, density, count, seed)
    return Instances(tuple(MIS(graph, penalty=penalty) for graph in graphs))


def satlib_mis(count: int) -> Instances:
    """Satisfiable formulas of SATLIB (CBS), of 100 variables and 403 or more clauses, as graphs of conflicts.

    A node is a literal of a clause; edges join the literals of a clause, and each to its negations. A set with a
    literal of every clause satisfies the formula, so the reference is the number of clauses. The files take turns.
    """
    formulas = [data_arrays(name)["clauses"] for name in _satlib_names()]
    turns = [clauses[i] for i in range(max(map(len, formulas))) for clauses in formulas if i < len(clauses)]
    _check_count(count, len(turns))
    problems = tuple(MIS(conflict_graph(clauses)) for clauses in turns[:count])
    satisfied = tuple(Reference(float(len(clauses)), is_proved=True) for clauses in turns[:count])
    return Instances(problems, satisfied)


def _satlib_names() -> list[str]:
    """Where originals lie, what they would be as prepared files; else the prepared files."""
    place = data_folder("satlib", "SATLIB's CBS_*.tar.gz, or prepared files") / "satlib"
    found = {path.name.removesuffix(".tar.gz") for path in place.glob("CBS*.tar.gz")}
    found |= {path.name for path in place.glob("CBS*") if path.is_dir()}
    prepared = [name for name in data_files("satlib") if name.startswith("satlib/CBS")]
    return [f"satlib/{name}.npz" for name in sorted(found)] or prepared


def conflict_graph(clauses: np.ndarray) -> Graph:
    """Of clauses with the same number of signed literals each, (m, k): node i k + j is literal j of clause i."""
    m, k = clauses.shape
    literals = clauses.ravel().astype(np.int64)
    clause = np.repeat(np.arange(m), k)
    conflicts = (clause[:, None] == clause) | (literals[:, None] == -literals)
    return Graph.from_edges(np.argwhere(np.triu(conflicts, 1)), num_nodes=m * k)


def rb_clique(count: int, seed: int = 0) -> Instances:
    """Cliques of the complements of graphs of model RB, in the ranges of `generators.rb_set`.

    The graph consists of n cliques, so no clique of its complement has more than n nodes: n is the reference. It is
    reached only where the constraints that the graph was made from can be satisfied, which at the threshold is rare.
    """
    problems, bounds = [], []
    for i in range(count):
        generator = np.random.default_rng([seed, i])
        n, k = int(generator.integers(10, 26)), int(generator.integers(5, 21))
        graph = generators.rb_model(n, k, generator.uniform(0.3, 1.0), seed=generator)
        problems.append(MaxClique(graph.complement()))
        bounds.append(Reference(float(n)))
    return Instances(tuple(problems), tuple(bounds))


def twitter_clique(count: int) -> Instances:
    """Cliques of ego networks of Twitter, the first `count` of 973. References are exact, by branch and bound."""
    arrays = data_arrays("twitter_ego/twitter_ego.npz")
    sizes, offset, edges = arrays["n"], arrays["offset"], arrays["edges"]
    _check_count(count, len(sizes))
    graphs = [
        Graph.from_edges(edges[offset[i] : offset[i + 1]].astype(np.int64), num_nodes=int(sizes[i]))
        for i in range(count)
    ]
    return Instances(tuple(map(MaxClique, graphs)), largest_cliques(graphs))


def ba_maxcut(low: int, high: int, count: int, seed: int = 0) -> Instances:
    """Cuts of Barabási-Albert graphs, 4 edges a new node. References are found here."""
    return _with_references(map(MaxCut, generators.ba_set(low, high, _BA_ATTACHED, count, seed)))


def er_maxcut(low: int, high: int, count: int, seed: int = 0) -> Instances:
    """Cuts of Erdős-Rényi graphs of density 0.15. References are found here."""
    return _with_references(map(MaxCut, generators.er_set(low, high, _ER_DENSITY, count, seed)))


def _with_references(problems: Iterable[MaxCut]) -> Instances:
    problems = tuple(problems)
    return Instances(problems, best_cuts(problems))


def optsicom_maxcut() -> Instances:
    """The ten toroidal graphs of Optsicom, 125 nodes with weights of either sign. References are the best known."""
    arrays = data_arrays("optsicom_torus/optsicom_torus.npz")
    graphs = [_weighted_graph(arrays, f"physics{i}", 125) for i in range(len(_OPTSICOM_BEST))]
    return Instances(tuple(map(MaxCut, graphs)), tuple(Reference(float(best)) for best in _OPTSICOM_BEST))


def gset_maxcut(names: Sequence[str]) -> Instances:
    """Graphs of the Gset by name. References are the best known cuts, in gset_best.csv."""
    lines = resources.files("discrax.bench.papers.discs").joinpath("gset_best.csv").read_text().splitlines()
    known = {row["name"]: row for row in csv.DictReader(lines)}
    arrays = data_arrays("gset/gset.npz")
    unknown = [name for name in names if name not in known or f"{name}_e" not in arrays]
    if unknown:
        there = ", ".join(name for name in known if f"{name}_e" in arrays)
        raise ValueError(f"The Gset has {there} here, but not {', '.join(unknown)}.")
    graphs = [_weighted_graph(arrays, name, int(known[name]["num_nodes"])) for name in names]
    return Instances(tuple(map(MaxCut, graphs)), tuple(Reference(float(known[name]["best"])) for name in names))


def _weighted_graph(arrays: dict[str, np.ndarray], name: str, num_nodes: int) -> Graph:
    return Graph.from_edges(arrays[f"{name}_e"].astype(np.int64), arrays[f"{name}_w"], num_nodes=num_nodes)


def partition(network: str, source: str = "made", like: tuple[int, int] | None = None) -> Instances:
    """The training step of a network in three parts, its graph made here ("made") or read from files ("data").

    The price of unequal parts is 1, the paper's formula. Its program has 0.0005, which the printed balances (0.997 at
    414 nodes) agree with, but our graphs are smaller. With `like` = (N, M), the nodes and edges in print, the price is
    0.0005 (N / n)^2 m / M: one part alone then costs as large a share of the m edges of our n nodes. No suite uses it:
    on mnist_conv it did not bring print back (cut and balance of PAS 0.015 and 0.773, print 0.045 and 0.997).
    """
    if source == "made":
        graph = network_graph(network)
    elif source == "data":
        arrays = data_arrays("compgraphs/compgraphs.npz")
        networks = [name.removesuffix("_train_edges") for name in arrays if name.endswith("_train_edges")]
        if network not in networks:
            raise ValueError(f"The networks are {', '.join(networks)}, but got {network!r}.")
        edges, sizes = arrays[f"{network}_train_edges"], arrays[f"{network}_train_size"]
        graph = Graph.from_edges(edges.astype(np.int64), num_nodes=len(sizes))
    else:
        raise ValueError(f"A graph is 'made' or from 'data', but the source is {source!r}.")
    balance = 1.0 if like is None else _BALANCE * (like[0] / graph.num_nodes) ** 2 * graph.num_edges / like[1]
    return Instances((Partition(graph, 3, balance=balance),))


def _check_count(count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise ValueError(f"There are {most} instances of this set, but {count} are wanted.")
