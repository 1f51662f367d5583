"""The walk of DISCS' program, and its consecutive blocks, beside print: causes of its cells, tested.

    python benchmarks/discs_walks.py sets               (16 graphs of 700 to 800 nodes at each density: table 5)
    python benchmarks/discs_walks.py large                  (16 of 9,000 to 11,000, the suite has the first 4: table 5)
    python benchmarks/discs_walks.py cliques --padding yes no            (ego networks, needs the data folder: table 6)
    python benchmarks/discs_walks.py cuts --family BA --nodes 512-600 1024-1100                              (table 7)
    python benchmarks/discs_walks.py formulas --clauses 403 411 418 423 429 435 441 449                (SATLIB: table 5)

Print's program flips each site with probability R / N, where N counts the padding to the largest graph of the set; R
is one number for all chains of an instance, begins at 1, becomes R + A - 0.237 after every step, with A the mean
acceptance of the chains (proposals of no site are accepted), and is kept between 1 and N; states count after every 100
steps. `--rule subset` flips R distinct sites instead, as ours does, with fair odds between the whole numbers beside R.
Cuts are divided by those of PAS on the same graphs, from the rows of docs/results, and print by its own PAS. Formulas
are random ones of 100 variables that a walk could satisfy, as many of each number of clauses as `--graphs` says, and
any sampler of print is for them; `--files` takes those of SATLIB that are in the data folder.
"""
# ruff: noqa: NPY002  (Numba has the legacy generator alone)

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from discrax.bench.execute.store import read_rows
from discrax.bench.papers.discs.instances import ba_maxcut, conflict_graph, er_maxcut, satlib_mis, twitter_clique
from discrax.bench.papers.discs.tasks import DENSITIES, ER_NODES
from discrax.bench.plan.printed import find_printed
from discrax.bench.plan.rows import group_by
from discrax.problems import Graph, generators
from discs_padding import LANGEVIN, PATHS, anneal_blocks, anneal_informed, cooling, flip_one, neighbours_of
from discs_paths import first_state

_RULES, _BLOCKS = ("each", "subset"), {"HB-10-1": 10, "BG-2": 2}
_INFORMED = (*PATHS, *LANGEVIN)
_VARIABLES = 100
_ROWS = Path(__file__).parents[1] / "docs" / "results" / "rows" / "discs-cuts.parquet"


class Search(NamedTuple):
    """How graphs are searched: each site of a set has a worth, and each edge within the set a price."""

    chains: int
    temperatures: np.ndarray
    price: float
    is_cut: bool = False


@numba.njit(cache=True)
def sites_to_flip(is_each, radius, num_sites, flips):
    """How many, and into `flips` which: distinct ones of all sites, padding included."""
    if is_each:
        num = np.random.binomial(num_sites, radius / num_sites)
    else:
        num = min(int(radius) + (1 if np.random.random() < radius - int(radius) else 0), num_sites)
    found = 0
    while found < num:
        i = np.random.randint(num_sites)
        if not np.any(flips[:found] == i):
            flips[found] = i
            found += 1
    return num


@numba.njit(cache=True)
def anneal_walks(seed, is_each, first, neighbours, num_sites, worth, price, temperatures, num_chains, every, target):
    """The best value of all chains, and the mean radius of the last tenth of the steps."""
    np.random.seed(seed)
    n = first.size - 1
    x, h, value = np.empty((num_chains, n), np.int8), np.empty((num_chains, n), np.int32), np.empty(num_chains)
    for c in range(num_chains):
        x[c], h[c], value[c] = first_state(first, neighbours, worth, price)
    best, radius, flips, last = -np.inf, 1.0, np.empty(num_sites, np.int64), 0.0
    for step in range(1, temperatures.size + 1):
        t, accepted = temperatures[step - 1], 0.0
        for c in range(num_chains):
            num, gain = sites_to_flip(is_each, radius, num_sites, flips), 0.0
            if num == 1:  # most are rejected: not flipped before it is known
                i = flips[0]
                gain = (1 - 2 * x[c, i]) * (worth[i] - price * h[c, i]) if i < n else 0.0
            else:
                for i in flips[:num]:
                    gain += flip_one(i, x[c], h[c], first, neighbours, worth, price)
            accept = np.exp(min(gain / t, 0.0))
            accepted += accept
            is_accepted = np.random.random() < accept
            value[c] += gain if is_accepted else 0.0
            if is_accepted == (num == 1):
                for i in flips[:num][::-1]:
                    flip_one(i, x[c], h[c], first, neighbours, worth, price)
        radius = min(max(radius + accepted / num_chains - target, 1.0), float(num_sites))
        last += radius if step > 0.9 * temperatures.size else 0.0
        if step % every == 0:
            best = max(best, value.max())
    return best, last / (temperatures.size - int(0.9 * temperatures.size))


@numba.njit(cache=True)
def satisfy(seed, clauses, num_variables, num_steps):
    """Whether a walk finds values of the variables that satisfy all clauses: WalkSAT, every other flip at random."""
    np.random.seed(seed)
    values = np.random.random(num_variables + 1) < 0.5
    broken = np.empty(len(clauses), np.int64)
    for _ in range(num_steps):
        num = 0
        for k in range(len(clauses)):
            is_true = False
            for literal in clauses[k]:
                is_true = is_true or values[abs(literal)] == (literal > 0)
            if not is_true:
                broken[num] = k
                num += 1
        if num == 0:
            return True
        clause = clauses[broken[np.random.randint(num)]]
        chosen, fewest = abs(clause[np.random.randint(len(clause))]), len(clauses) + 1
        if np.random.random() < 0.5:
            for literal in clause:
                lost = 0  # clauses that only this variable makes true
                for other in clauses:
                    true = 0
                    here = False
                    for each in other:
                        if values[abs(each)] == (each > 0):
                            true += 1
                            here = here or abs(each) == abs(literal)
                    lost += true == 1 and here
                if lost < fewest:
                    chosen, fewest = abs(literal), lost
        values[chosen] = not values[chosen]
    return False


def random_formulas(num_clauses: int, count: int, seed: int) -> list[Graph]:
    """Graphs of conflicts of random formulas that were satisfied."""
    generator, graphs = np.random.default_rng((seed, num_clauses)), []
    while len(graphs) < count:
        variables = np.array([generator.choice(_VARIABLES, 3, replace=False) + 1 for _ in range(num_clauses)])
        clauses = variables * generator.choice([-1, 1], variables.shape)
        if satisfy(int(generator.integers(2**31)), clauses, _VARIABLES, 20_000):
            graphs.append(conflict_graph(clauses))
    return graphs


def pairs_of(graphs: list[Graph]) -> list[tuple[int, np.ndarray]]:
    return [(graph.num_nodes, np.asarray(graph.edges)) for graph in graphs]


def run(given: argparse.Namespace, search: Search, graphs: list, largest: int, is_padded: bool) -> np.ndarray:
    """The best value of each graph."""
    begin, found, radii = time.perf_counter(), [], []
    for number, (n, pairs) in enumerate(graphs):
        first, others = neighbours_of(n, pairs)
        worth = np.diff(first).astype(float) if search.is_cut else np.ones(n)
        num_sites = largest if is_padded else n
        shared = (num_sites, worth, search.price, search.temperatures, search.chains, given.every)
        if given.sampler == "RWM":
            is_each, seed = given.rule == "each", given.chance + number
            best, radius = anneal_walks(seed, is_each, first, others, *shared, given.target)
            radii.append(radius)
        elif given.sampler in _INFORMED:
            cold, steps = float(search.temperatures[-1]), len(search.temperatures)
            best, length = anneal_informed(
                given.sampler, given.chance + number, first, others, num_sites - n, cold, steps
            )
            radii.append(length)
        else:
            best = anneal_blocks(given.chance + number, _BLOCKS[given.sampler], first, others, *shared)
        found.append(best)
    radius = f", last radius {np.mean(radii):.2f}" if radii else ""
    print(f"    {len(graphs)} graphs, {time.perf_counter() - begin:.0f} s{radius}", flush=True)
    return np.array(found)


def report(name: str, values: np.ndarray, printed: float, error: float, spread: float | None) -> None:
    """One line: ours beside print."""
    ours = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    z = (values.mean() - printed) / np.hypot(ours, error)
    beside = "" if spread is None else f" spread {spread:.3f}"
    print(
        f"{name:<44} {values.mean():10.4f} +- {ours:.4f} spread {np.std(values):.3f}"
        f" | print {printed:9.4f} +- {error:.4f}{beside} | {z:+.1f}",
        flush=True,
    )


def find(given: argparse.Namespace, number: int, metric: str, **labels: str) -> tuple[float, float, float]:
    """The printed number, its error and its spread."""
    weight = {"weight_fn": "sqrt(t)"} if given.sampler in _INFORMED else {}
    row = find_printed("discs", number, metric, labels | {"sampler": given.sampler} | weight)
    if row is None:
        raise SystemExit(f"Nothing is printed for {given.sampler} on {labels}.")
    return row["value"], row["error"], row["std"]


def run_sets(given: argparse.Namespace, is_padded: bool, name: str) -> None:
    for density in given.density if given.what == "sets" else ["0.15"]:
        is_large = given.what == "large"
        graph_set = "ER[9000-11000]" if is_large else "ER[700-800]"
        low, high = (9000, 11000) if is_large else (700, 800)
        graphs = pairs_of(list(generators.er_set(low, high, 0.02 if is_large else float(density), 16, 0)))
        search = Search(32, cooling(0.01 if density == "0.15" else 0.05, 50_000), 1.0001)
        values = run(given, search, graphs[: given.graphs], max(n for n, _ in graphs), is_padded)
        if is_large:
            print(f"    each: {', '.join(f'{value:,.0f}' for value in values)}")
        printed = find(given, 5, "set_size_lower_bound", graph_set=graph_set, density=density)
        report(f"{graph_set} {density} {name}", values, *printed)


def run_cliques(given: argparse.Namespace, is_padded: bool, name: str) -> None:
    found = twitter_clique(196)
    cliques: Any = found.problems
    graphs = [(each.graph.num_nodes, np.asarray(each._conflicts())) for each in cliques]
    values = run(given, Search(16, cooling(0.05, 1_001), given.penalty), graphs, max(n for n, _ in graphs), is_padded)
    ratios = values / np.array([each.value for each in found.references or ()])
    report(f"TWITTER {name}", ratios, *find(given, 6, "ratio", graph_set="TWITTER"))


def cuts_of_pas(family: str, nodes: str) -> np.ndarray:
    """Of each graph of the suite its ratio to the reference, the mean over seeds."""
    rows = [
        row
        for row in read_rows(_ROWS)
        if row["metric"] == "ratio_of_instance"
        and row["labels"] == row["labels"] | {"graph_set": family, "num_nodes": nodes, "sampler": "PAS"}
    ]
    of_graphs = group_by(sorted(rows, key=lambda row: row["x"]), lambda row: row["x"])
    return np.array([np.mean([row["value"] for row in of_one]) for of_one in of_graphs.values()])


def run_cuts(given: argparse.Namespace, is_padded: bool, name: str) -> None:
    is_ba = given.family == "BA"
    for nodes in given.nodes:
        low, high = map(int, nodes.split("-"))
        found = (ba_maxcut if is_ba else er_maxcut)(low, high, 16)
        problems: Any = found.problems
        graphs = pairs_of([each.graph for each in problems])[: given.graphs]
        temperatures = cooling(0.1, 100_000) if is_ba else cooling(0.5, 50_000, is_linear=True)
        search = Search(32 if is_ba else 16, temperatures, 2.0, is_cut=True)
        values = run(given, search, graphs, high, is_padded)
        references = np.array([each.value for each in found.references or ()])[: len(values)]
        ratios = values / references / cuts_of_pas(given.family, nodes)[: len(values)]
        printed, *_ = find(given, 7, "ratio", graph_set=given.family, num_nodes=nodes)
        pas = find_printed(
            "discs", 7, "ratio",
            {"graph_set": given.family, "num_nodes": nodes, "sampler": "PAS", "weight_fn": "sqrt(t)"},
        )  # fmt: skip
        if pas is None:
            raise SystemExit("Nothing is printed for PAS there.")
        # Both are over the same cuts of Gurobi, and the spread between graphs is not of the quotient: half digits are.
        report(f"{given.family} {nodes} {name}, over PAS", ratios, printed / pas["value"], 0.0005 * 2**0.5, None)


def run_formulas(given: argparse.Namespace, is_padded: bool, name: str) -> None:
    search = Search(32, cooling(0.05, given.steps), 1.0001)
    if given.files:
        problems: Any = satlib_mis(given.files).problems
        groups = {"files": pairs_of([each.graph for each in problems])}
    else:
        groups = {str(m): pairs_of(random_formulas(m, given.graphs, 0)) for m in given.clauses}
    values, missing = [], []
    for group, graphs in groups.items():
        values.append(run(given, search, graphs, 1347, is_padded))
        missing.append(np.array([n // 3 for n, _ in graphs]) - values[-1])
        print(f"    {group} clauses: {missing[-1].mean():.2f} missing", flush=True)
    printed, error, spread = find(given, 5, "set_size_lower_bound", graph_set="SATLIB")
    report(f"SATLIB {name}", np.concatenate(values), printed, error, spread)
    report(f"SATLIB {name}, missing", np.concatenate(missing), 425.96 - printed, 0.0, None)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = {"sets": run_sets, "large": run_sets, "cliques": run_cliques, "cuts": run_cuts, "formulas": run_formulas}
    parser.add_argument("what", choices=tuple(kinds))
    parser.add_argument("--sampler", default="RWM", choices=("RWM", *_BLOCKS, *_INFORMED))
    parser.add_argument("--rule", default="each", choices=_RULES)
    parser.add_argument("--padding", nargs="+", default=["yes"], choices=("yes", "no"))
    parser.add_argument("--density", nargs="+", default=list(DENSITIES), choices=DENSITIES)
    parser.add_argument("--family", default="BA", choices=("BA", "ER"))
    parser.add_argument("--nodes", nargs="+", default=ER_NODES[1:], choices=ER_NODES)
    parser.add_argument("--clauses", nargs="+", type=int, default=[403, 411, 418, 423, 429, 435, 441, 449])
    parser.add_argument("--files", type=int, default=0, help="formulas: so many of SATLIB's in place of random ones")
    parser.add_argument("--steps", type=int, default=500_000, help="of formulas")
    parser.add_argument("--graphs", type=int, default=16, help="at most so many (formulas: of each number of clauses)")
    parser.add_argument("--every", type=int, default=100, help="states count after every so many steps")
    parser.add_argument("--penalty", type=float, default=1.0001, help="of cliques")
    parser.add_argument("--target", type=float, default=0.237, help="acceptance")
    parser.add_argument("--chance", type=int, default=1, help="seed of the chains")
    given = parser.parse_args()
    if given.sampler in _INFORMED and given.what != "formulas":
        parser.error(f"{given.sampler} is for formulas here; benchmarks/discs_padding.py has it for sets")
    if min(given.graphs, given.every, given.steps) < 1 or given.files < 0:
        parser.error("--graphs, --every and --steps are at least 1, --files at least 0")
    if min(given.clauses) < 1 or max(given.clauses) > 449:
        parser.error("formulas have between 1 and 449 clauses: print's largest has 1,347 nodes")
    for is_padded in (padding == "yes" for padding in given.padding):
        how = f"{given.rule} " if given.sampler == "RWM" else ""
        kinds[given.what](given, is_padded, f"{given.sampler} {how}{'padded' if is_padded else 'not padded'}")


if __name__ == "__main__":
    main()
