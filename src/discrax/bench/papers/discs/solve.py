"""Goshvadi et al. (2023), "DISCS: a benchmark for discrete sampling": what `solve` finds by itself."""

from collections.abc import Callable, Iterator

from discrax.bench.papers.discs.tasks import DENSITIES, INSTANCES, LARGE_MIS, NETWORKS, SEARCH, small_mis
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.printed import find_printed
from discrax.bench.plan.rows import Row, name_panels, relabel
from discrax.bench.plan.suite import Size, Table, figure, suite

GSET = (*(f"G{i}" for i in range(1, 22)), "G32", "G33", "G34", "G43", "G44", "G45", "G46", "G47", "G55", "G70")


def _default_cell(labels: tuple[tuple[str, str], ...], instances: Call, seconds: float) -> Cell:
    return Cell(
        labels=(*labels, ("sampler", "solve")),
        target=instances,
        sampler=call(f"{SEARCH}:automatic"),
        budget=Budget(0, 0, 0),  # `solve` chooses
        measure=call(f"{SEARCH}:solve_by_default", seconds=seconds),
        is_timed=True,
    )


def columns(metrics: dict[str, str]) -> Callable[[list[Row]], list[Row]]:
    """Several metrics, by what they are called, as the columns of one table: rows with a metric `value` and the label
    `what`.
    """

    def derive(rows: list[Row]) -> list[Row]:
        return [
            relabel(row, what=name) | {"metric": "value", "std": None}
            for name, metric in metrics.items()
            for row in rows
            if row["metric"] == metric and row["x"] is None
        ]

    return derive


@suite(
    "discs/gset",
    "cuts of the Gset: what `solve` finds by itself (20 seconds a graph at the default size, 60 at the paper's)",
    Table(
        "Cut beside the best known",
        "", 0, "value", "value", ("what",), rows=("graph", "sampler"),
        derive=columns({
            "found": "size", "best known": "reference", "short of it in percent": "gap_percent", "seconds": "time_s",
        }),
    ),
    figure(
        "How much is missing to the best known cut, in percent",
        "bars", name_panels("graph"), metric="gap_percent", panels=("model",), logy=False, ylabel="percent missing",
    ),
)  # fmt: skip
def gset(size: Size) -> Iterator[Cell]:
    for graph in GSET[::5] if size is Size.QUICK else GSET:
        instances = call(f"{INSTANCES}:gset_maxcut", names=(graph,))
        seconds = {Size.QUICK: 3.0, Size.DEFAULT: 20.0, Size.PAPER: 60.0}[size]
        yield _default_cell((("task", "maxcut"), ("graph", graph)), instances, seconds)


def _printed_for_pas(rows: list[Row], number: int, ours: str, printed: str, what: str) -> list[Row]:
    """What a table prints for PAS, beside each row of our metric."""
    found = []
    for row in [row for row in rows if row["metric"] == ours and row["x"] is None]:
        labels = {"sampler": "PAS", "weight_fn": "sqrt(t)"}
        labels |= {name: row["labels"][name] for name in ("graph_set", "density", "graph") if name in row["labels"]}
        there = find_printed("discs", number, printed, labels)
        if there:
            found.append(relabel(row, what=what) | {"value": there["value"], "metric": "value", "std": None})
    return found


def _beside_pas(rows: list[Row]) -> list[Row]:
    return [
        *columns({"found": "size", "standard error": "standard_error"})(rows),
        *_printed_for_pas(rows, 5, "size", "set_size_lower_bound", "printed for PAS"),
        *columns({"seconds": "time_s", "instances": "instances"})(rows),
    ]


@suite(
    "discs/mis-solve",
    "independent sets of Erdos-Renyi graphs: what `solve` finds (by default a second a graph, 30 a large one)",
    Table(
        "Size after repair, beside print",
        "", 0, "value", "value", ("what",), rows=("graph_set", "density", "sampler"), derive=_beside_pas,
    ),
)  # fmt: skip
def mis_solve(size: Size) -> Iterator[Cell]:
    count, seconds = {Size.QUICK: (4, 1.0), Size.DEFAULT: (128, 1.0), Size.PAPER: (128, 10.0)}[size]
    for density in DENSITIES:
        yield _default_cell(small_mis(density).labels, small_mis(density).instances(count), seconds)
    count, seconds = {Size.QUICK: (1, 5.0), Size.DEFAULT: (4, 30.0), Size.PAPER: (16, 300.0)}[size]
    yield _default_cell(LARGE_MIS.labels, LARGE_MIS.instances(count), seconds)


def _parts_beside_pas(rows: list[Row]) -> list[Row]:
    return [
        *columns({"share of edges cut": "edge_cut_ratio_repaired"})(rows),
        *_printed_for_pas(rows, 8, "edge_cut_ratio_repaired", "edge_cut_ratio", "cut, printed for PAS"),
        *columns({"balanceness": "balanceness_repaired"})(rows),
        *_printed_for_pas(rows, 8, "balanceness_repaired", "balanceness", "balanceness, printed for PAS"),
        *columns({"seconds": "time_s"})(rows),
    ]


@suite(
    "discs/partition-solve",
    "three parts of the graphs of five networks: what `solve` finds by itself (by default 10 seconds a graph)",
    Table(
        "Edges that are cut, as a share (smaller is better), and balance",
        "", 0, "value", "value", ("what",), rows=("graph", "sampler"), derive=_parts_beside_pas,
    ),
)  # fmt: skip
def partition_solve(size: Size) -> Iterator[Cell]:
    seconds = {Size.QUICK: 2.0, Size.DEFAULT: 10.0, Size.PAPER: 60.0}[size]
    for task in NETWORKS:
        yield _default_cell(task.labels, task.instances(1), seconds)
