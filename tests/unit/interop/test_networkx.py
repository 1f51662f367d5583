"""networkx finds the backend, and what comes back is what networkx documents: sets that hold, and large ones."""

import importlib
import inspect
import random
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from networkx.utils import backends

from discrax.interop import networkx as ours
from discrax.interop.networkx_info import backend_info
from discrax.problems.generators import rb_model
from discrax.solving import covers, sites
from discrax.solving.engine import Report

ROOT = Path(__file__).parents[3]
_PLANTED = rb_model(8, 4, 0.25, seed=1, is_planted=True)  # the largest independent set has 8 of 32 nodes
PLANTED = nx.relabel_nodes(nx.Graph(_PLANTED.edges.tolist()), lambda node: f"n{node}")
TORUS = nx.grid_2d_graph(8, 8, periodic=True)  # all of its 128 edges can be cut


@pytest.fixture
def backend(monkeypatch):
    """As the entry point of an installed package would make it known."""
    entry = EntryPoint("discrax", "discrax.interop.networkx", "networkx.backends")
    monkeypatch.setitem(backends.backends, "discrax", entry)
    monkeypatch.setitem(backends.backend_info, "discrax", backend_info())
    monkeypatch.setitem(backends._loaded_backends, "discrax", ours)
    # networkx decides when it is imported whether it asks backends at all.
    monkeypatch.setattr(backends._dispatchable, "__call__", backends._dispatchable._call_if_any_backends_installed)
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})
    for name in ("can_run", "should_run"):
        monkeypatch.setattr(ours, name, lambda *_: True, raising=False)
    return {"backend": "discrax"}


def assert_finds_the_largest_set(found):
    assert len(found) == 8
    assert found <= set(PLANTED)
    assert not PLANTED.subgraph(found).edges


def assert_finds_the_heaviest_cut(found):
    value, (one, other) = found
    assert value == nx.cut_size(TORUS, one, other) == 128
    assert one | other == set(TORUS)
    assert not one & other


def test_through_networkx(backend):
    assert_finds_the_largest_set(nx.approximation.maximum_independent_set(PLANTED, **backend, num_steps=2000))
    clique = nx.approximation.max_clique(nx.complement(PLANTED), **backend, num_steps=2000)
    assert_finds_the_largest_set(clique)
    assert nx.approximation.large_clique_size(nx.complement(PLANTED), **backend, num_steps=2000) == 8
    assert_finds_the_heaviest_cut(nx.approximation.one_exchange(TORUS, seed=1, **backend, num_steps=2000))
    theirs = nx.approximation.one_exchange(
        nx.path_graph(4), initial_cut={0}, seed=1, weight="weight", **backend, num_steps=20
    )
    assert theirs[0] == 3


def idle_sites(model, *, num_chains, seed, init, **_):
    states = np.random.default_rng(seed).integers(0, 2, (num_chains, model.num_sites)).astype(np.int8)
    yield Report(1, 1.0, 1.0, np.zeros(num_chains), np.zeros(num_chains), states)


def test_a_search_that_does_nothing_is_not_as_good(monkeypatch):
    monkeypatch.setattr(sites, "search_by_sites", idle_sites)
    monkeypatch.setattr(covers, "search_sets", idle_sites)
    with pytest.raises(AssertionError):
        assert_finds_the_largest_set(ours.maximum_independent_set(PLANTED, num_steps=2000))
    with pytest.raises(AssertionError):
        assert_finds_the_heaviest_cut(ours.one_exchange(TORUS, num_steps=2000))


def test_weights_count_if_they_are_asked_for():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 5.0), ("b", "c", -2.0), ("c", "a", 3.0), ("a", "a", 9.0)])
    assert ours.one_exchange(graph, num_steps=2000)[0] == 2
    value, sides = ours.one_exchange(graph, weight="weight", num_steps=2000)
    assert value == 8
    assert {"b", "c"} in sides


def test_an_initial_cut_is_where_a_search_begins():
    checkerboard = {node for node in TORUS if sum(node) % 2}
    assert_finds_the_heaviest_cut(ours.one_exchange(TORUS, initial_cut=checkerboard, seconds=0))
    stripes = {node for node in TORUS if node[0] % 2}  # no single node gains
    assert ours.one_exchange(TORUS, initial_cut=stripes, seconds=0)[0] == 64


@pytest.mark.parametrize(
    "seed", [None, 3, random.Random(3), np.random.default_rng(3), np.random.RandomState(3)], ids=type
)
def test_seeds_of_every_kind(seed):
    assert ours.one_exchange(nx.path_graph(3), seed=seed, num_steps=2000)[0] == 2


def test_graphs_without_nodes_or_edges(backend):
    empty = nx.Graph()
    assert nx.approximation.maximum_independent_set(empty, **backend) == set()
    assert nx.approximation.max_clique(empty, **backend) == set()
    assert nx.approximation.one_exchange(empty, **backend) == (0, (set(), set()))
    assert nx.approximation.maximum_independent_set(nx.empty_graph(3), **backend, num_steps=2000) == {0, 1, 2}


@pytest.mark.parametrize("graph", [nx.DiGraph([(0, 1)]), nx.MultiGraph([(0, 1)])], ids=type)
@pytest.mark.parametrize("function", [ours.maximum_independent_set, ours.max_clique, ours.one_exchange])
def test_other_graphs_are_refused_as_networkx_does(function, graph):
    with pytest.raises(nx.NetworkXNotImplemented):
        function(graph)


def test_the_entry_points_name_what_is_there():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert importlib.import_module(points["networkx.backends"]["discrax"]) is ours
    module, name = points["networkx.backend_info"]["discrax"].split(":")
    info = getattr(importlib.import_module(module), name)()
    assert set(info["functions"]) == {"large_clique_size", "max_clique", "maximum_independent_set", "one_exchange"}
    assert all(callable(getattr(ours, each)) for each in info["functions"])


@pytest.mark.parametrize("name", backend_info()["functions"])
def test_signatures_are_those_of_networkx(name):
    theirs = inspect.signature(getattr(nx.approximation, name).orig_func).parameters
    mine = {
        key: each
        for key, each in inspect.signature(getattr(ours, name)).parameters.items()
        if key not in ("seconds", "num_steps")
    }
    assert list(mine) == list(theirs)
    assert [each.default for each in mine.values()] == [each.default for each in theirs.values()]


@pytest.mark.slow
def test_a_package_that_is_installed_is_found(tmp_path):
    """Entry points are what a folder with metadata says, whoever has put it there."""
    metadata = tmp_path / "discrax_backend-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: discrax-backend\nVersion: 0.1\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    said = [f"[{group}]\ndiscrax = {names['discrax']}\n" for group, names in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join(said))
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import warnings
warnings.filterwarnings("ignore", "networkx backend defined more than once")
import networkx as nx
assert "jax" not in sys.modules
print(len(nx.approximation.maximum_independent_set(nx.cycle_graph(9), backend="discrax", seconds=0.5)))
assert "discrax" in nx.approximation.max_clique.__doc__
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.strip() == "4", done.stderr
