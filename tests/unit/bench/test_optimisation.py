import hashlib
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.bench.execute import cells as measure
from discrax.bench.experiments import data, optimisation
from discrax.bench.papers.discs import instances, kernels, references, tasks
from discrax.bench.papers.discs.paced import PacedDMALA
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.core.target import Tempered
from discrax.data import folder as folders
from discrax.problems import Graph
from discrax.samplers import dlmc, dmala, pas
from discrax.samplers.langevin import total_log_rate
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
    for problem, (bound, _, is_proved) in zip(cliques.problems, cliques.references, strict=True):
        assert 10 <= bound <= 25
        assert not is_proved
        assert problem.graph.num_nodes % bound == 0
        assert problem.graph.density > 0.4
    cuts = instances.ba_maxcut(10, 12, count=2)
    for problem, reference in zip(cuts.problems, cuts.references, strict=True):
        assert reference.value == problem.objective(all_states(problem)).max()
        assert reference.is_proved
    assert instances.er_maxcut(10, 12, count=1).references[0].value > 0


def all_states(problem):
    return np.array(list(itertools.product((0, 1), repeat=problem.space.num_sites)))


def test_references_are_computed_once():
    graph = Graph.from_edges([[0, 1], [1, 2]])
    first, second = optimisation.Reference(2.0, 0.5, is_proved=True), optimisation.Reference(3.0)
    assert references.remember("a way", [graph], lambda: [first]) == (first,)
    assert references.remember("a way", [graph], lambda: [second]) == (first,)
    assert references.remember("another", [graph], lambda: [second]) == (second,)
    heavier = Graph.from_edges([[0, 1], [1, 2]], [1.0, 5.0])
    assert references.remember("a way", [heavier], lambda: [second]) == (second,)


def test_a_cut_is_proved_or_improved():
    graph = dx.problems.generators.barabasi_albert(14, 4, 0)
    problem = dx.problems.MaxCut(graph)
    optimum = problem.objective(all_states(problem)).max()
    for known in (optimum, optimum - 2):
        found = references.prove_cut(graph, optimisation.Reference(known, 1.0), seconds=20)
        assert (found.value, found.is_proved) == (optimum, True)
        assert found.seconds > 1
    halves = Graph.from_edges(graph.edges, np.full(graph.num_edges, 0.5))
    known = optimisation.Reference(1.0)
    assert references.prove_cut(halves, known, seconds=1) == known


def test_formulas_become_graphs_of_conflicts(folder, monkeypatch):
    for name in [name for name in folders._SHA256 if name.startswith("satlib/")]:
        monkeypatch.delitem(folders._SHA256, name)
    folder("satlib/CBS_a.npz", clauses=np.array([[[1, 2, 3], [-1, -2, 3]], [[1, 2, 3], [1, 2, -3]]], np.int8))
    folder("satlib/CBS_b.npz", clauses=np.array([[[1, 2, 3], [4, 5, 6], [-4, -5, -6]]], np.int8))
    found = instances.satlib_mis(3)
    assert [each.value for each in found.references] == [2.0, 3.0, 2.0]
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
    assert [(each.value, each.is_proved) for each in found.references] == [(3.0, True), (2.0, True)]
    assert all(each.seconds > 0 for each in found.references)
    assert [problem.graph.num_nodes for problem in found.problems] == [4, 3]


def test_graphs_with_best_known_cuts(folder):
    edges, weights = np.array([[0, 1], [1, 2]], np.uint16), np.array([1, -1], np.int8)
    folder("gset/gset.npz", G1_e=edges, G1_w=weights)
    found = instances.gset_maxcut(("G1",))
    assert found.references == (optimisation.Reference(11624.0),)
    assert found.problems[0].graph.num_nodes == 800
    assert found.problems[0].graph.weights.tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="The Gset has G1 here, but not G2"):
        instances.gset_maxcut(("G2",))
    folder(
        "optsicom_torus/optsicom_torus.npz",
        **{f"physics{i}_e": edges for i in range(10)}, **{f"physics{i}_w": weights for i in range(10)},
    )  # fmt: skip
    assert len(instances.optsicom_maxcut().problems) == len(instances.optsicom_maxcut().references) == 10


def test_networks(folder):
    problem, cheaper = (instances.partition("mnist_conv", like=like).problems[0] for like in (None, (414, 623)))
    n, m = problem.graph.num_nodes, problem.graph.num_edges
    assert n > 50
    assert problem.balance == 1
    in_one_part = jnp.zeros((n, 3)).at[:, 0].set(1)
    cost = -float(cheaper.target.log_prob(in_one_part)) / m
    assert cost == pytest.approx(0.0005 * (2 * 138**2 + 276**2) / 623, rel=1e-3)
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
    exact = np.mean([references.clique_number(problem.graph.complement()) for problem in target().problems])
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
    assert hardly["worst_ratio"] <= hardly["ratio"] == pytest.approx(started["ratio_so_far"][-1][1])
    assert hardly["ratio_repaired"] == pytest.approx(1 - hardly["gap_percent"] / 100)
    assert hardly["ratio"] < 0.9 < hardly["ratio_repaired"]  # single flips alone find most of a cut
    assert single["reference_proved"] == 1
    assert single["reference_seconds"] > 0
    assert single["ratio"] == single["ratio_repaired"] == 1
    assert single["gap_percent"] == 0
    assert single["worst_ratio"] == 1
    assert [ratio for _, ratio in series["ratio_of_instance"]] == [1, 1]
    assert series["ratio_so_far"][-1][1] == pytest.approx(1)


def test_annealed_cliques_and_partitions():
    cliques = call("discrax.bench.papers.discs.instances:rb_clique", count=1)
    single, series = numbers_of(cliques, tasks.SAMPLERS["RWM"], steps=400)
    assert single["ratio_repaired"] == single["size"] / single["reference"] <= 1
    assert single["ratio"] == single["set_size_lower_bound"] / single["reference"] <= single["ratio_repaired"]
    best = [value for _, value in series["best_so_far"]]
    assert best == sorted(best)
    assert best[-1] > 0.5 * best[0]  # both negative: many pairs of the first states are no edges


def test_a_clique_with_conflicts_scores_below_zero():
    cliques = call("discrax.bench.papers.discs.instances:rb_clique", count=2)
    hardly, _ = numbers_of(cliques, tasks.SAMPLERS["RWM"], steps=1)
    assert hardly["ratio"] < 0 < hardly["ratio_repaired"]


def test_annealed_partitions():
    network = call("discrax.bench.papers.discs.instances:partition", network="mnist_conv")
    parts, series = numbers_of(network, tasks.SAMPLERS["BG-2"])
    hardly, _ = numbers_of(network, tasks.SAMPLERS["BG-2"], steps=1)
    assert 0 < parts["edge_cut_ratio"] < 0.4 < 0.5 < hardly["edge_cut_ratio"]
    assert parts["balanceness"] > 0.99
    best = [value for _, value in series["best_so_far"]]
    assert best == sorted(best, reverse=True)


def test_parts_are_scored_as_they_were_found():
    network = call("discrax.bench.papers.discs.instances:partition", network="mnist_conv", like=(1, 10**9))
    parts, _ = numbers_of(network, tasks.SAMPLERS["BG-2"], steps=400)
    assert parts["balanceness"] < 0.95 < 0.999 < parts["balanceness_repaired"]  # nothing kept them equal
    assert parts["edge_cut_ratio"] < parts["edge_cut_ratio_repaired"]


def test_one_step_of_a_random_walk_scores_what_it_deserves(monkeypatch):
    monkeypatch.setattr(references, "_MOST_NODES_TO_PROVE", 0)
    cuts = call("discrax.bench.papers.discs.instances:er_maxcut", low=60, high=60, count=2)
    walk, _ = numbers_of(cuts, tasks.SAMPLERS["RWM"], steps=1)
    assert 0.65 < walk["ratio"] < 0.9  # of random states, the best of four chains
    assert walk["ratio_repaired"] > 0.95  # what a table of repaired states would say
    network = call("discrax.bench.papers.discs.instances:partition", network="mnist_conv")
    parts, _ = numbers_of(network, tasks.PARTITION_SAMPLERS["RWM"], steps=1)
    assert parts["edge_cut_ratio"] > 0.5  # two thirds of the edges of random parts are cut


def test_what_solve_finds_by_itself(monkeypatch):
    asked = []

    def search(key, problems, how=None, **settings):
        asked.append((how, dict(settings)))
        callback = settings["callback"]
        return solve_many(key, problems, Sites(num_chains=4), num_steps=200, progress=False, callback=callback)

    monkeypatch.setattr(optimisation, "solve_many", search)
    target = call("discrax.bench.papers.discs.instances:er_maxcut", low=30, high=32, count=2)
    measured = call("discrax.bench.experiments.optimisation:solve_by_default", seconds=0.2)
    single, series = numbers_of(target, call("discrax.bench.experiments.optimisation:automatic"), measured)
    asked[0][1].pop("callback")
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


@pytest.mark.parametrize(
    "target",
    [
        dx.problems.MIS(Graph.from_edges([[0, 1], [1, 2], [2, 3], [0, 3], [1, 3]])).target,
        dx.problems.Partition(Graph.from_edges([[0, 1], [1, 2], [0, 2]]), 3, balance=0.1).target,
    ],
    ids=["set", "parts"],
)
def test_dmala_at_the_pace_of_its_rates(target):
    kernel = PacedDMALA(moves=0.5)
    assert default_adapter(target, kernel) is None
    state = eqx.filter_jit(kernel.init)(target, jnp.zeros(target.space.shape, jnp.int8))
    scale = jnp.log(0.5) - total_log_rate(target, state, kernel.balancing)
    same = dmala(step_size=float(-target.space.smallest_squared_move / (2 * scale)))
    np.testing.assert_allclose(kernel.logits(target, state), same.logits(target, state), rtol=1e-5)
    assert dx.exact.check_kernel(kernel, target, num_chains=20_000, num_convergence_steps=400)
