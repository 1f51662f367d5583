"""`Graph`: the same graph whatever it came as, and sentences for what is not one."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from discrax.problems import Graph, MaxCut

EDGES, WEIGHTS = np.array([[0, 1], [0, 3], [1, 3], [2, 3]]), np.array([1.0, -2.0, 0.5, 3.0])


def networkx_graph():
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from([(3, 2, 3.0), (1, 0, 1.0), (3, 0, -2.0), (1, 3, 0.5)])
    return graph


def matrix(both: bool):
    upper = scipy.sparse.coo_array((WEIGHTS, tuple(EDGES.T)), shape=(4, 4))
    return upper + upper.T if both else upper


SOURCES = {
    "edges and weights": lambda: np.column_stack([EDGES[:, ::-1], WEIGHTS]),
    "networkx": networkx_graph,
    "directed networkx": lambda: networkx_graph().to_directed(),
    "symmetric matrix": lambda: matrix(both=True),
    "triangular matrix": lambda: matrix(both=False),
    "itself": lambda: Graph.from_edges(EDGES, WEIGHTS),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_graph_from_every_source(source):
    graph = Graph.of(SOURCES[source]())
    assert graph.num_nodes == 4
    assert graph.num_edges == 4
    np.testing.assert_array_equal(graph.edges, EDGES)
    np.testing.assert_array_equal(graph.weights, WEIGHTS)
    np.testing.assert_array_equal(graph.node_weights, 1)


def test_a_file_is_what_problems_take(tmp_path):
    (tmp_path / "graph.mc").write_text("4 2\n1 2 5\n3 4 1\n")
    for path in (tmp_path / "graph.mc", str(tmp_path / "graph.mc")):
        np.testing.assert_array_equal(MaxCut(path).graph.weights, [5, 1])
        with pytest.raises(TypeError, match=r"takes what is in memory, but got .*; use read_graph for a file"):
            Graph.of(path)


def test_degrees_density_and_neighbours():
    graph = Graph.from_edges(EDGES, WEIGHTS, num_nodes=5)
    np.testing.assert_array_equal(graph.degrees, [2, 2, 1, 3, 0])
    assert graph.density == pytest.approx(0.4)
    start, others, weights = graph.neighbours()
    dense = np.zeros((5, 5))
    for i in range(5):
        dense[i, others[start[i] : start[i + 1]]] = weights[start[i] : start[i + 1]]
    expected = np.zeros((5, 5))
    expected[EDGES[:, 0], EDGES[:, 1]] = expected[EDGES[:, 1], EDGES[:, 0]] = WEIGHTS
    np.testing.assert_array_equal(dense, expected)


def test_complement():
    graph = Graph.from_edges(EDGES, num_nodes=4, node_weights=[1, 2, 3, 4], names="abcd")
    other = graph.complement()
    np.testing.assert_array_equal(other.edges, [[0, 2], [1, 2]])
    np.testing.assert_array_equal(other.complement().edges, EDGES)
    np.testing.assert_array_equal(other.node_weights, graph.node_weights)
    assert other.names == ("a", "b", "c", "d")


def test_names_and_node_weights_of_networkx():
    source = nx.Graph()
    source.add_node("x", weight=2.5)
    source.add_edge("x", "y", weight=4)
    graph = Graph.of(source)
    assert graph.names == ("x", "y")
    np.testing.assert_array_equal(graph.node_weights, [2.5, 1])
    np.testing.assert_array_equal(graph.weights, [4])


@pytest.mark.parametrize("num_nodes", [0, 1, 7])
def test_graphs_without_edges(num_nodes):
    graph = Graph.from_edges([], num_nodes=num_nodes)
    assert (graph.num_nodes, graph.num_edges, graph.density) == (num_nodes, 0, 0)
    assert graph.complement().num_edges == num_nodes * (num_nodes - 1) // 2
    assert graph.neighbours()[0].tolist() == [0] * (num_nodes + 1)


@pytest.mark.parametrize(
    ("edges", "options", "sentence"),
    [
        ([[0, 1, 2, 3]], {}, "shape"),
        ([[0.5, 1.0]], {}, "integers"),
        ([[0, 4]], {"num_nodes": 4}, r"nodes 0\.\.3, but one names node 4"),
        ([[-1, 2]], {"num_nodes": 4}, "node -1"),
        ([[0, 1], [2, 2]], {}, "node 2 is joined to itself"),
        ([[0, 1], [1, 0]], {"weights": [1.0, 2.0]}, "0-1 is given twice, with the weights 1 and 2"),
        ([[0, 1]], {"weights": [1.0, 2.0]}, "1 edge weights"),
        ([[0, 1]], {"weights": [np.nan]}, "finite"),
        ([[0, 1]], {"node_weights": [1.0, np.inf]}, "finite"),
        ([[0, 1]], {"names": ["a"]}, "2 nodes, but 1 names"),
        ([[0, 1]], {"weights": [1j]}, "The edge weights must be real numbers, but got"),
        ([[0, 1]], {"weights": ["2"]}, "The edge weights must be real numbers, but got"),
        ([[0, 1]], {"weights": [10**400]}, "too large"),
        ([[0, 10**9]], {}, r"would have 1,000,000,001 nodes, with 1 edges, and take 93 GiB; number the nodes"),
    ],
)
def test_what_is_not_a_graph(edges, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        Graph.from_edges(edges, **options)


def test_parallel_edges_of_a_multigraph_add_up():
    source = nx.MultiGraph([("a", "b"), ("b", "a"), ("a", "b"), ("b", "c")])
    source.add_edge("c", "b", weight=0.5)
    graph = Graph.of(source)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_array_equal(graph.weights, [3, 1.5])
    directed = Graph.of(nx.DiGraph([("a", "b"), ("b", "a")]))  # one edge, told in both directions
    np.testing.assert_array_equal(directed.weights, [1])


@pytest.mark.parametrize("weight", [10**400, 10**5000, 1j, None, "much", np.nan], ids=type)
def test_weights_of_networkx_that_are_no_numbers(weight):
    source = nx.Graph()
    source.add_edge("a", "b", weight=weight)
    with pytest.raises(ValueError, match='The attribute "weight" of edge a-b must be a finite number, but is '):
        Graph.of(source)


def test_what_graphs_are_not_made_of():
    with pytest.raises(TypeError, match="but got int"):
        Graph.of(3)
    with pytest.raises(TypeError, match=r"of shape \(2, 5\)"):
        Graph.of(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="square"):
        Graph.of(scipy.sparse.coo_array(np.ones((2, 3))))
    with pytest.raises(ValueError, match="not integers"):
        Graph.of(np.array([[0.5, 1, 1]]))
    with pytest.raises(TypeError, match="real numbers"):
        Graph.of(scipy.sparse.coo_array(np.array([[0, 1j], [1j, 0]])))
    with pytest.raises(TypeError, match="real numbers"):
        Graph.of(np.array([[0, 1, 1j]]))
    with pytest.raises(TypeError, match="rows of different lengths"):
        Graph.of([[0, 1], [0, 1, 2]])


def test_the_interactions_of_a_bqm_are_edges():
    import dimod

    graph = Graph.of(dimod.BinaryQuadraticModel({"a": 1.0}, {("b", "a"): -2.0, ("b", "c"): 3.0}, 0.0, "SPIN"))
    weights = {
        frozenset((graph.names[i], graph.names[j])): w for (i, j), w in zip(graph.edges, graph.weights, strict=True)
    }
    assert weights == {frozenset("ab"): -2.0, frozenset("bc"): 3.0}
