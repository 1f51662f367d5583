import hashlib
import itertools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.bench.execute import cells as measure
from discrax.bench.experiments import data, optimisation
from discrax.bench.papers.discs import instances, kernels, tasks
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.printed import find_printed
from discrax.bench.plan.suite import Size, Table, find
from discrax.bench.report.grid import make_grid
from discrax.core.target import Tempered
from discrax.data import folder as folders
from discrax.problems import Graph
from discrax.samplers import dlmc, pas
from discrax.sampling.auto import default_adapter
from discrax.solving import solve_many
from discrax.solving.searches import Sites


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(data.CACHE_VARIABLE, str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder of small files that are known by their own checksums."""
    monkeypatch.setenv(folders.VARIABLE, str(tmp_path))

    def write(name, **arrays):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith(".json"):
            path.write_text(json.dumps(arrays))
        else:
            np.savez(path, **arrays)
        monkeypatch.setitem(folders._SHA256, name, hashlib.sha256(path.read_bytes()).hexdigest())
        return path

    return write


# --- Files -----------------------------------------------------------------------------------------------------------


def test_missing_images_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=r"There is no mnist in .*yann\.lecun\.com"):
        data.images("mnist")


# --- Instances -------------------------------------------------------------------------------------------------------


def test_drawn_instances():
    sets = instances.er_mis(20, 30, 0.2, count=3, penalty=1.5)
    assert [20 <= problem.graph.num_nodes <= 30 for problem in sets.problems] == [True] * 3
    assert sets.problems[0].penalty == 1.5
    cliques = instances.rb_clique(3)
    for problem, bound in zip(cliques.problems, cliques.references, strict=True):
        assert 10 <= bound <= 25
        assert problem.graph.num_nodes % bound == 0
        assert problem.graph.density > 0.4
    cuts = instances.ba_maxcut(10, 12, count=2)
    assert cuts.references == tuple(problem.objective(all_states(problem)).max() for problem in cuts.problems)
    assert instances.er_maxcut(10, 12, count=1).references[0] > 0


def all_states(problem):
    return np.array(list(itertools.product((0, 1), repeat=problem.space.num_sites)))


def test_references_are_computed_once():
    graph = Graph.from_edges([[0, 1], [1, 2]])
    assert instances._remember("a way", [graph], lambda: [2]) == (2.0,)
    assert instances._remember("a way", [graph], lambda: [3]) == (2.0,)
    assert instances._remember("another", [graph], lambda: [3]) == (3.0,)
    heavier = Graph.from_edges([[0, 1], [1, 2]], [1.0, 5.0])
    assert instances._remember("a way", [heavier], lambda: [4]) == (4.0,)


def test_formulas_become_graphs_of_conflicts(folder, monkeypatch):
    for name in [name for name in folders._SHA256 if name.startswith("satlib/")]:
        monkeypatch.delitem(folders._SHA256, name)
    folder("satlib/CBS_a.npz", clauses=np.array([[[1, 2, 3], [-1, -2, 3]], [[1, 2, 3], [1, 2, -3]]], np.int8))
    folder("satlib/CBS_b.npz", clauses=np.array([[[1, 2, 3], [4, 5, 6], [-4, -5, -6]]], np.int8))
    found = instances.satlib_mis(3)
    assert found.references == (2.0, 3.0, 2.0)
    first = {tuple(edge) for edge in found.problems[0].graph.edges.tolist()}
    assert first == {(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (0, 3), (1, 4)}
    with pytest.raises(ValueError, match="There are 3 instances of this set, but 4"):
        instances.satlib_mis(4)


def test_ego_networks(folder):
    triangle, edge = [[0, 1], [1, 2], [0, 2], [2, 3]], [[0, 1]]
    folder(
        "twitter_ego/twitter_ego.npz",
        n=np.array([4, 3], np.int16), offset=np.array([0, 4, 5]), edges=np.array(triangle + edge, np.uint8),
    )  # fmt: skip
    found = instances.twitter_clique(2)
    assert found.references == (3.0, 2.0)
    assert [problem.graph.num_nodes for problem in found.problems] == [4, 3]


def test_graphs_with_best_known_cuts(folder):
    edges, weights = np.array([[0, 1], [1, 2]], np.uint16), np.array([1, -1], np.int8)
    best = {"n": 5, "best_openising": 3, "romank_value": 4}
    folder("gset/gset.npz", G1_e=edges, G1_w=weights)
    folder("gset/gset_meta.json", G1=best, G2=best | {"romank_value": None})
    found = instances.gset_maxcut(("G1",))
    assert found.references == (4.0,)
    assert found.problems[0].graph.num_nodes == 5
    assert found.problems[0].graph.weights.tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="The Gset has G1, G2 here, but not G9"):
        instances.gset_maxcut(("G9",))
    folder(
        "optsicom_torus/optsicom_torus.npz",
        **{f"physics{i}_e": edges for i in range(10)}, **{f"physics{i}_w": weights for i in range(10)},
    )  # fmt: skip
    assert len(instances.optsicom_maxcut().problems) == len(instances.optsicom_maxcut().references) == 10


def test_networks(folder):
    assert instances.partition("mnist_conv").problems[0].graph.num_nodes > 50
    edges, sizes = np.array([[0, 1], [1, 2]], np.uint16), np.ones(4)
    folder("compgraphs/compgraphs.npz", tiny_train_edges=edges, tiny_train_size=sizes)
    assert instances.partition("tiny", "data").problems[0].graph.num_nodes == 4
    with pytest.raises(ValueError, match="The networks are tiny, but got 'vgg16'"):
        instances.partition("vgg16", "data")
    with pytest.raises(ValueError, match="'made' or from 'data'"):
        instances.partition("tiny", "drawn")


# --- Cells -----------------------------------------------------------------------------------------------------------

ANNEALING = call("discrax.bench.experiments.optimisation:annealing", hot=1.0, cold=0.1)


def numbers_of(target, sampler, measured=ANNEALING, steps=150):
    cell = Cell((("sampler", "s"),), target, sampler, Budget(4, 0, steps), measure=measured, is_timed=True)
    rows = measure.run_cell(cell)
    assert {row["status"] for row in rows} == {"ok"}, rows[0]["error"]
    single = {row["metric"]: row["value"] for row in rows if row["x"] is None}
    series = {row["metric"]: [] for row in rows if row["x"] is not None}
    for row in rows:
        if row["x"] is not None:
            series[row["metric"]].append((row["x"], row["value"]))
    return single, series


def test_annealed_sets():
    target = call("discrax.bench.papers.discs.instances:er_mis", low=14, high=16, density=0.3, count=2)
    single, series = numbers_of(target, tasks.SAMPLERS["PAS"])
    exact = np.mean([instances.clique_number(problem.graph.complement()) for problem in target().problems])
    hardly, _ = numbers_of(target, tasks.SAMPLERS["PAS"], steps=1)
    assert hardly["set_size_lower_bound"] < exact - 1
    assert single["size"] == exact
    assert single["set_size_lower_bound"] == pytest.approx(exact, abs=0.01)
    assert single["feasible"] == 1
    assert single["instances"] == 2
    assert "ratio" not in single
    curve = series["best_so_far"]
    assert curve[-1][0] == pytest.approx(150)
    assert curve[-1][1] == pytest.approx(exact, abs=0.01)
    assert [value for _, value in curve] == sorted(value for _, value in curve)
    assert "best_by_second" in series


def test_annealed_cuts_have_ratios():
    target = call("discrax.bench.papers.discs.instances:ba_maxcut", low=30, high=32, count=2)
    single, series = numbers_of(target, tasks.SAMPLERS["GWG-nA"])
    hardly, started = numbers_of(target, tasks.SAMPLERS["GWG-nA"], steps=1)
    assert hardly["ratio"] < 1
    assert hardly["worst_ratio"] <= hardly["ratio"] == pytest.approx(1 - hardly["gap_percent"] / 100)
    assert started["ratio_so_far"][-1][1] < 0.9
    assert single["ratio"] == 1
    assert single["gap_percent"] == 0
    assert single["worst_ratio"] == 1
    assert [ratio for _, ratio in series["ratio_of_instance"]] == [1, 1]
    assert series["ratio_so_far"][-1][1] == pytest.approx(1)


def test_annealed_cliques_and_partitions():
    cliques = call("discrax.bench.papers.discs.instances:rb_clique", count=1)
    single, series = numbers_of(cliques, tasks.SAMPLERS["RWM"], steps=400)
    assert single["ratio"] == single["size"] / single["reference"] <= 1
    best = [value for _, value in series["best_so_far"]]
    assert best == sorted(best)
    assert best[-1] > 0.5 * best[0]  # both negative: many pairs of the first states are no edges
    network = call("discrax.bench.papers.discs.instances:partition", network="mnist_conv")
    parts, series = numbers_of(network, tasks.SAMPLERS["BG-2"])
    hardly, _ = numbers_of(network, tasks.SAMPLERS["BG-2"], steps=1)
    assert 0 < parts["edge_cut_ratio"] < 0.4 < 0.5 < hardly["edge_cut_ratio"]
    assert parts["balanceness"] > 0.99
    best = [value for _, value in series["best_so_far"]]
    assert best == sorted(best, reverse=True)


def test_what_solve_finds_by_itself(monkeypatch):
    asked = []

    def search(key, problems, how=None, **settings):
        asked.append((how, settings))
        return solve_many(key, problems, Sites(num_chains=4), num_steps=200, progress=False)

    monkeypatch.setattr(optimisation, "solve_many", search)
    target = call("discrax.bench.papers.discs.instances:er_maxcut", low=30, high=32, count=2)
    measured = call("discrax.bench.experiments.optimisation:solve_by_default", seconds=0.2)
    single, series = numbers_of(target, call("discrax.bench.experiments.optimisation:automatic"), measured)
    assert asked == [(None, {"seconds": 0.4, "progress": False})]  # so many seconds an instance
    assert single["ratio"] == pytest.approx(1, abs=0.02)
    assert series["ratio_so_far"][-1][1] == pytest.approx(single["ratio"], abs=0.02)
    by_second = [ratio for _, ratio in series["ratio_by_second"]]  # until the first instance has ended
    assert by_second == sorted(by_second)
    assert by_second[-1] <= single["ratio"]


def test_an_untuned_sampler_is_not_tuned():
    target = dx.targets.Bernoulli(np.full(4, 0.3))
    assert default_adapter(target, pas()) is not None
    assert default_adapter(target, kernels.untuned("pas", path_length=2.0)) is None


def test_a_time_that_is_set_at_the_start():
    problem = instances.partition("mnist_conv").problems[0]
    kernel = kernels.TimedAtStart("dlmc", moves=3.0)
    assert default_adapter(problem.target, kernel) is None
    hot, cold = (Tempered(problem.target, beta) for beta in (0.01, 1.0))
    first = eqx.filter_jit(kernel.init)(hot, jnp.zeros(problem.space.shape, jnp.int8))
    assert float(first.cache[1]) == pytest.approx(3.0 / (2 * problem.space.num_sites), rel=0.7)
    same = dlmc(step_size=float(first.cache[1]), per_rate=False)
    after, _ = eqx.filter_jit(kernel.step)(jax.random.key(0), cold, first)
    expected, _ = eqx.filter_jit(same.step)(jax.random.key(0), cold, first._replace(cache=first.cache[0]))
    assert (after.x == expected.x).all()
    assert after.cache[1] == first.cache[1]


# --- Suites ----------------------------------------------------------------------------------------------------------

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
def test_every_cell_has_a_printed_number_of_its_own(name, number, metrics):
    cells = list(find(name)[0].cells(Size.PAPER))
    for metric in metrics:
        found = [find_printed("discs", number, metric, dict(cell.labels)) for cell in cells]
        assert None not in found
        assert len({tuple(row.items()) for row in found}) == len(cells)


def test_smaller_can_be_better():
    labels = {"task": "balanced-graph-partition", "graph": "VGG", "sampler": "RWM"}
    row = {"labels": labels, "metric": "edge_cut_ratio", "x": None, "value": 0.027, "std": None, "status": "ok"}
    row |= {"seed": 0, "error": None}
    table = Table("t", "discs", 8, "edge_cut_ratio", "edge_cut_ratio", ("graph",), smaller_is_better=True)
    (entry,) = [entry for entry in make_grid(table, [row]).entries if entry.ours is not None]
    assert entry.ratio == pytest.approx(0.054 / 0.027)
    assert entry.verdict == "no error"


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
