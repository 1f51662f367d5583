"""The suites of optimisation: their cells, and the tables these fill."""

import pytest

from discrax.bench.plan.printed import find_printed, printed_rows
from discrax.bench.plan.suite import Size, Table, find
from discrax.bench.report.grid import make_grid

NAMES = [
    "table01",
    "table05",
    "table06",
    "table07",
    "table08",
    "figure04",
    "figure12",
    "figure13",
    "figure14",
    "figure15",
]
NAMES = [f"discs/{name}" for name in (*NAMES, "gset", "mis-solve")]


@pytest.mark.parametrize("size", Size)
def test_cells_are_distinct_and_not_stacked(size):
    for name in NAMES:
        (suite,) = find(name)
        cells = list(suite.cells(size))
        assert len({cell.id for cell in cells}) == len(cells)
        assert len({(cell.labels, cell.seed) for cell in cells}) == len(cells)
        assert all(cell.is_timed for cell in cells)


def test_figures_share_the_cells_of_tables():
    def ids(name):
        return {cell.id for cell in find(name)[0].cells(Size.DEFAULT)}

    assert ids("discs/table01") < ids("discs/table05") == ids("discs/figure12")
    assert ids("discs/table06") == ids("discs/figure14")
    assert ids("discs/figure04") < ids("discs/table07") == ids("discs/figure15")
    assert len(ids("discs/figure13") & ids("discs/table01")) == 5 * 8


def test_penalties_are_drawn_by_their_excess():
    (suite,) = find("discs/figure13")
    rows = [{"labels": dict(cell.labels), "std": 1.0} for cell in suite.cells(Size.DEFAULT)]
    derived = suite.exhibits[0].derive(rows)
    assert {row["labels"]["excess"] for row in derived} == {"0.0001", "0.001", "0.01", "0.1", "1"}
    assert "penalty" not in derived[0]["labels"]


@pytest.mark.parametrize(
    ("name", "number", "metrics"),
    [
        ("discs/table01", 1, ["set_size_lower_bound"]),
        ("discs/table05", 5, ["set_size_lower_bound", "time_s"]),
        ("discs/table06", 6, ["ratio", "time_s"]),
        ("discs/table07", 7, ["ratio", "time_s"]),
        ("discs/table08", 8, ["edge_cut_ratio", "balanceness"]),
    ],
)
def test_cells_and_printed_numbers_are_the_same_ones(name, number, metrics):
    """Every cell has a number of its own in print, but for rows of ours, and every number in print has a cell."""
    ours, printed = list(find(name)[0].cells(Size.PAPER)), printed_rows("discs", number)
    cells = [cell for cell in ours if "(tuned)" not in cell.label("sampler")]
    assert len(ours) > len(cells)
    for metric in metrics:
        assert all(find_printed("discs", number, metric, dict(cell.labels)) is None for cell in set(ours) - set(cells))
        found = [find_printed("discs", number, metric, dict(cell.labels)) for cell in cells]
        assert None not in found
        assert len({tuple(row.items()) for row in found}) == len(cells)
        assert len(cells) == sum(row["metric"] == metric for row in printed)


@pytest.mark.parametrize("number", [1, 5, 6, 7, 8])
def test_every_printed_column_is_filled_by_the_labels_of_cells(number):
    (suite,) = find(f"discs/table0{number}")
    table = next(each for each in suite.exhibits if isinstance(each, Table) and each.number == number)
    row = {"metric": table.ours, "x": None, "value": 1.0, "std": None, "seed": 0, "status": "ok", "error": None}
    rows = [row | {"labels": dict(cell.labels)} for cell in suite.cells(Size.DEFAULT)]
    grid = make_grid(table, rows)
    printed = {tuple(each[name] for name in table.columns) for each in printed_rows("discs", number)}
    assert set(grid.columns) == printed
    for line in grid.lines:
        assert all(entry.ours == 1.0 for entry in line.entries)  # none stands empty beside print


def test_samplers_of_a_task_have_the_same_budget():
    for name in NAMES:
        for size in Size:
            budgets = {}
            for cell in find(name)[0].cells(size):
                task = tuple((key, value) for key, value in cell.labels if key not in ("sampler", "weight_fn"))
                budgets.setdefault(task, set()).add((cell.budget, cell.target, cell.measure))
            assert all(len(each) == 1 for each in budgets.values())


def test_a_fifth_of_the_steps_is_said():
    for name in NAMES:
        (suite,) = find(name)
        steps = [
            {cell.labels: cell.budget.num_samples for cell in suite.cells(size)} for size in (Size.DEFAULT, Size.PAPER)
        ]
        assert steps[0].keys() == steps[1].keys()
        shares = {steps[0][labels] / max(1, steps[1][labels]) for labels in steps[0]} - {0.0}
        assert shares <= {0.2, 1.0}
        assert (0.2 in shares) == ("a fifth of the paper's steps for all samplers" in suite.about), name


def test_fewer_instances_are_said():
    said = 0
    for name in NAMES:
        (suite,) = find(name)
        if suite.name in ("discs/gset", "discs/mis-solve", "discs/partition-solve"):
            continue
        counts = [
            {cell.labels: dict(cell.target.arguments).get("count") for cell in suite.cells(size)}
            for size in (Size.DEFAULT, Size.PAPER)
        ]
        for few, many in {(counts[0][labels], counts[1][labels]) for labels in counts[0]}:
            if few != many:
                # The paper says 128 graphs, and prints means of 32
                words = f"{few} graphs a set, in print 32 or 128" if many == 128 else f"{few} of {many:,} "
                assert words in suite.about, name
                said += 1
    assert said >= 10


def test_smaller_can_be_better():
    labels = {"task": "balanced-graph-partition", "graph": "VGG", "sampler": "RWM"}
    row = {"labels": labels, "metric": "edge_cut_ratio", "x": None, "value": 0.027, "std": None, "status": "ok"}
    row |= {"seed": 0, "error": None}
    table = Table("t", "discs", 8, "edge_cut_ratio", "edge_cut_ratio", ("graph",), smaller_is_better=True)
    (entry,) = [entry for entry in make_grid(table, [row]).entries if entry.ours is not None]
    assert entry.ratio == pytest.approx(0.054 / 0.027)


def test_a_failed_search_in_print_has_no_ratio():
    (suite,) = find("discs/table01")
    (cell,) = [
        each
        for each in suite.cells(Size.PAPER)
        if each.label("graph_set") == "ER[9000-11000]" and each.label("sampler") == "RWM"
    ]
    row = {"labels": dict(cell.labels), "metric": "set_size_lower_bound", "x": None, "value": 200.0, "std": None}
    (table,) = suite.exhibits
    grid = make_grid(table, [row | {"seed": 0, "status": "ok", "error": None}])
    (entry,) = [entry for entry in grid.entries if entry.ours is not None]
    assert entry.paper == -555.674
    assert entry.ratio is None
    assert ("ER[9000-11000]", "") not in grid.columns  # it stands where print has it


def test_tables_of_what_solve_finds():
    cell = next(iter(find("discs/mis-solve")[0].cells(Size.QUICK)))
    about = {"labels": dict(cell.labels), "x": None, "std": 1.5, "status": "ok", "seed": 0, "error": None}
    rows = [about | {"metric": m, "value": v} for m, v in (("size", 105.2), ("standard_error", 0.2), ("time_s", 9.0))]
    (table,) = find("discs/mis-solve")[0].exhibits
    grid = make_grid(table, rows)
    assert grid.columns == (("found",), ("standard error",), ("printed for PAS",), ("seconds",))
    assert [entry.ours for entry in grid.lines[0].entries] == [105.2, 0.2, 105.062, 9.0]
