"""Random graphs: the distributions they are said to have, and the counts the papers print."""

import itertools

import networkx as nx
import numpy as np
import pytest

from discrax.problems.generators import (
    RB_LARGE,
    RB_SMALL,
    ba_set,
    barabasi_albert,
    er_set,
    erdos_renyi,
    rb_model,
    rb_set,
)
from discrax.problems.graph import Graph

from ..helpers import P_VALUE, chi_square_p_value, z_score


def assert_is_a_graph(graph: Graph) -> None:
    """What `Graph` promises, which those who build one by hand must keep."""
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    again = Graph.from_edges(graph.edges, graph.weights, num_nodes=graph.num_nodes)
    np.testing.assert_array_equal(graph.edges, again.edges)
    assert (graph.weights == 1).all()
    assert graph.node_weights.shape == (graph.num_nodes,)


class TestErdosRenyi:
    @pytest.mark.parametrize("density", [0, 0.01, 0.3, 0.9, 1])
    @pytest.mark.parametrize("num_nodes", [0, 1, 2, 50])
    def test_is_a_graph(self, num_nodes, density):
        graph = erdos_renyi(num_nodes, density, seed=3)
        assert graph.num_nodes == num_nodes
        assert_is_a_graph(graph)
        if density in (0, 1):
            assert graph.num_edges == density * num_nodes * (num_nodes - 1) // 2

    def test_every_graph_has_its_probability(self):
        """On three nodes: all eight graphs."""
        generator, p = np.random.default_rng(5), 0.3
        pairs = [(0, 1), (0, 2), (1, 2)]
        counts = np.zeros(8)
        for _ in range(4000):
            present = {tuple(edge) for edge in erdos_renyi(3, p, generator).edges.tolist()}
            counts[sum(2**bit for bit, pair in enumerate(pairs) if pair in present)] += 1
        probabilities = [p ** bin(code).count("1") * (1 - p) ** (3 - bin(code).count("1")) for code in range(8)]
        assert chi_square_p_value(counts, probabilities) > P_VALUE

    def test_the_density_is_that_asked_for(self):
        densities = [erdos_renyi(300, 0.15, [7, i]).density for i in range(40)]
        assert z_score(densities, 0.15) < 5
        assert np.std(densities) == pytest.approx(np.sqrt(0.15 * 0.85 / (300 * 299 / 2)), rel=0.5)

    def test_a_very_sparse_graph_costs_little(self):
        graph = erdos_renyi(200_000, 1e-8, seed=1)
        assert graph.num_edges < 400
        assert_is_a_graph(graph)

    def test_the_seed_decides(self):
        first, again, other = erdos_renyi(30, 0.5, 1), erdos_renyi(30, 0.5, 1), erdos_renyi(30, 0.5, 2)
        np.testing.assert_array_equal(first.edges, again.edges)
        assert first.edges.tolist() != other.edges.tolist()


class TestBarabasiAlbert:
    @pytest.mark.parametrize(("num_nodes", "attached"), [(2, 1), (5, 4), (60, 4), (200, 1)])
    def test_is_a_grown_graph(self, num_nodes, attached):
        graph = barabasi_albert(num_nodes, attached, seed=2)
        assert_is_a_graph(graph)
        assert graph.num_edges == attached * (num_nodes - attached)
        older = np.bincount(graph.edges[:, 1], minlength=num_nodes)
        np.testing.assert_array_equal(older[attached:], attached)  # each node joins so many older ones
        assert nx.is_connected(nx.Graph(graph.edges.tolist()))

    def test_the_largest_graph_of_the_paper(self):
        assert barabasi_albert(1100, 4).num_edges == 4384

    def test_the_fourth_node_attaches_by_degree(self):
        """The first three nodes are a path; its middle is drawn twice as often as an end."""
        generator = np.random.default_rng(11)
        counts = np.zeros(3)
        for _ in range(3000):
            graph = barabasi_albert(4, 1, generator)
            before = np.bincount(graph.edges[graph.edges[:, 1] < 3].ravel(), minlength=3)
            target = int(graph.edges[graph.edges[:, 1] == 3][0, 0])
            centre = int(np.argmax(before))
            others = [node for node in range(3) if node != centre]
            counts[[centre, *others].index(target)] += 1
        assert chi_square_p_value(counts, [0.5, 0.25, 0.25]) > P_VALUE


class TestModelRB:
    @pytest.mark.parametrize("is_planted", [False, True])
    def test_cliques_and_conflicts(self, is_planted):
        n, k, p = 8, 6, 0.4
        graph = rb_model(n, k, p, seed=4, is_planted=is_planted)
        assert_is_a_graph(graph)
        assert graph.num_nodes == n * k
        clique = graph.edges // k
        assert (clique[:, 0] == clique[:, 1]).sum() == n * k * (k - 1) // 2
        across = clique[clique[:, 0] != clique[:, 1]]
        _, counts = np.unique(across, axis=0, return_counts=True)
        num_forbidden = int(p * k * k)
        full = k * k - is_planted
        assert all(count % num_forbidden == 0 or count == full for count in counts)
        num_constraints = int(-n * np.log(k) / np.log(1 - p)) - 1
        assert -(-counts // num_forbidden).sum() <= num_constraints

    def test_conflicts_are_spread_evenly(self):
        """Two cliques, one constraint: each of the nine pairs of values is forbidden equally often."""
        generator = np.random.default_rng(6)
        counts = np.zeros((3, 3))
        for _ in range(1500):
            graph = rb_model(2, 3, 0.4, 1.5, generator)  # int(1.5 * 2 ln 2) - 1 = 1 constraint of 3 pairs
            across = graph.edges[graph.edges[:, 1] - graph.edges[:, 0] > 0]
            across = across[(across[:, 0] < 3) & (across[:, 1] >= 3)]
            assert len(across) == 3
            counts[across[:, 0], across[:, 1] - 3] += 1
        assert chi_square_p_value(counts, np.full(9, 1 / 9)) > P_VALUE

    def test_the_planted_set_is_independent(self):
        n, k = 6, 4
        for seed in range(5):
            graph = rb_model(n, k, 0.7, ratio=3, seed=seed, is_planted=True)
            joined = np.zeros((n * k, n * k), bool)
            joined[graph.edges[:, 0], graph.edges[:, 1]] = True
            picks = np.array(list(itertools.product(range(k), repeat=n))) + k * np.arange(n)
            conflicts = sum(joined[picks[:, i], picks[:, j]] for i, j in itertools.combinations(range(n), 2))
            assert (conflicts == 0).any()

    def test_the_published_set(self):
        """Karalias and Loukas print 216.7 nodes and 22,852 edges, on average, for the complements."""
        graphs = list(rb_set(300, seed=1))
        nodes = [graph.num_nodes for graph in graphs]
        edges = [graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges for graph in graphs]
        assert min(nodes) >= 50
        assert max(nodes) <= 500
        assert z_score(nodes, 216.7) < 4
        assert z_score(edges, 22852) < 4


def test_sets_have_the_sizes_asked_for_and_grow_without_changing():
    for make in (
        lambda count: er_set(20, 24, 0.3, count, seed=5),
        lambda count: ba_set(20, 24, 3, count, seed=5),
    ):
        few, many = list(make(3)), list(make(60))
        assert {graph.num_nodes for graph in many} == {20, 21, 22, 23, 24}
        for first, second in zip(few, many, strict=False):
            np.testing.assert_array_equal(first.edges, second.edges)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: erdos_renyi(-1, 0.5), "num_nodes must be at least 0, but got -1"),
        (lambda: erdos_renyi(5, 1.5), "density must be at least 0 and at most 1, but got 1.5"),
        (lambda: erdos_renyi(5, float("nan")), "density must be finite, but holds nan"),
        (lambda: barabasi_albert(4, 4), "between 1 and 3 others here, but got 4"),
        (lambda: barabasi_albert(4, 0), "but got 0"),
        (lambda: rb_model(1, 5, 0.5), "num_cliques must be at least 2"),
        (lambda: rb_model(5, 5, 1.0), "greater than 0 and less than 1, but got 1.0"),
        (lambda: rb_model(5, 5, 0.5, -1.0), "ratio must be at least 0, but got -1.0"),
        (lambda: rb_model(10**6, 10**6, 0.5), "up to 1,000,000,000 edges are made here, but this one would have about"),
        (lambda: erdos_renyi(10**9, 0.5), r"would have about 2\.5e\+17, which take"),
        (lambda: erdos_renyi(5, 0.5, seed=-1), "A seed is a whole number, at least 0, but got -1"),
        (lambda: list(er_set(5, 4, 0.5, 1)), "from low to high, but got 5 and 4"),
    ],
)
def test_what_cannot_be_generated(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("ranges", [RB_SMALL, RB_LARGE])
def test_rb_graphs_of_independent_sets_have_the_sizes_of_the_papers(ranges):
    graphs = list(rb_set(20, seed=2, **ranges))
    least, most = ranges["num_nodes"]
    sizes = [graph.num_nodes for graph in graphs]
    assert least <= min(sizes) < max(sizes) <= most
    assert [graph.num_nodes for graph in rb_set(3, seed=2, **ranges)] == sizes[:3]


def test_sizes_that_cliques_never_have_are_refused():
    with pytest.raises(ValueError, match="never have 200 to 300 nodes"):
        next(rb_set(1, cliques=(2, 3), sizes=(2, 3), num_nodes=(200, 300)))
    with pytest.raises(ValueError, match="hardly ever have 5 to 5 nodes"):
        next(rb_set(1, cliques=(2, 4), sizes=(2, 4), num_nodes=(5, 5)))
