"""Graph files: every format gives the graph it says, and every fault a sentence with its line."""

import dimod
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from dimod.serialization import coo
from hypothesis import given, settings
from hypothesis import strategies as st

from discrax.problems.graph import Graph
from discrax.problems.readers import example, read_graph, read_qubo, write_graph

# A square 1-2-3-4 with the weights 5, 1, 2.5, -1, in each format.
EDGES, WEIGHTS = [[0, 1], [0, 3], [1, 2], [2, 3]], [5, -1, 1, 2.5]
GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="undirected">
    <node id="1"/> <node id="2"/> <node id="3"/> <node id="4"/>
    <edge source="1" target="2"> <data key="d0">5</data> </edge>
    <edge source="2" target="3"/>
    <edge source="3" target="4"> <data key="d0">2.5</data> </edge>
    <edge source="4" target="1"> <data key="d0">-1</data> </edge>
  </graph>
</graphml>
"""
GML = """graph [
  node [ id 1 ] node [ id 2 ] node [ id 3 ] node [ id 4 ]
  edge [ source 1 target 2 weight 5 ]
  edge [ source 2 target 3 ]
  edge [ source 3 target 4 weight 2.5 ]
  edge [ source 4 target 1 weight -1 ]
]
"""
SQUARES = {
    "g.edges": "# a square\n1 2 5\n2 3 1\n\n3 4 2.5 # the third\n4 1 -1\n",
    "zero.edgelist": "0 1 5\n1 2 1\n2 3 2.5\n3 0 -1\n",
    "networkx.edgelist": "0 1 {'weight': 5}\n1 2 {'weight': 1}\n2 3 {'weight': 2.5}\n3 0 {'weight': -1}\n",
    "g.csv": "source,target,weight\n1,2,5\n2,3,1\n3,4,2.5\n4,1,-1\n",
    "g.tsv": "1\t2\t5\n2\t3\t1\n3\t4\t2.5\n4\t1\t-1\n",
    "list.txt": "1 2 5\n2 3 1\n3 4 2.5\n4 1 -1\n",
    "windows.txt": "1 2 5\r\n2 3 1\r\n3 4 2.5\r\n4 1 -1\r\n",
    "rudy.txt": "4 4\n1 2 5\n2 3 1\n3 4 2.5\n4 1 -1\n",
    "g.mc": "4 4\n1 2 5\n2 3 1\n3 4 2.5\n4 1 -1\n",
    "G14": " 4 4 \n1 2 5\n2 3 1\n3 4 2.5\n4 1 -1",
    "pm1s_80.0": "4 4\n1 2 5\n2 3 1\n3 4 2.5\n4 1 -1\n",
    "g.graph": "% a square\n4 4 001\n2 5 4 -1\n1 5 3 1\n2 1 4 2.5\n3 2.5 1 -1\n",
    "g.graphml": GRAPHML,
    "g.gml": GML,
}


def write(folder, name: str, text: str | bytes):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", SQUARES)
def test_every_format_gives_the_same_graph(tmp_path, name):
    graph = read_graph(write(tmp_path, name, SQUARES[name]))
    assert graph.num_nodes == 4
    np.testing.assert_array_equal(graph.edges, EDGES)
    np.testing.assert_array_equal(graph.weights, WEIGHTS)
    if "zero" in name or "networkx" in name:
        assert graph.names is None
    else:
        assert [str(name) for name in graph.names] == ["1", "2", "3", "4"]


def test_npz(tmp_path):
    matrix = scipy.sparse.coo_array((WEIGHTS, np.transpose(EDGES)), shape=(5, 5))
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    graph = read_graph(tmp_path / "g.npz")
    assert graph.num_nodes == 5
    np.testing.assert_array_equal(graph.edges, EDGES)
    np.testing.assert_array_equal(graph.weights, WEIGHTS)


def test_the_format_can_be_said(tmp_path):
    path = write(tmp_path, "square.data", SQUARES["g.mc"])
    assert read_graph(path, format="rudy").num_edges == 4
    with pytest.raises(ValueError, match=r"unknown ending.*\.clq.*format="):
        read_graph(path)
    with pytest.raises(ValueError, match=r"one of edges.*'excel'"):
        read_graph(path, format="excel")


class TestEdgeLists:
    def test_labels(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.edges", "ann bob 2\nbob cy 3\n"))
        assert graph.names == ("ann", "bob", "cy")
        np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2]])
        np.testing.assert_array_equal(graph.weights, [2, 3])

    def test_integers_with_gaps_are_labels(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.edges", "700 12\n12 90\n"))
        assert graph.names == (12, 90, 700)
        np.testing.assert_array_equal(graph.edges, [[0, 1], [0, 2]])

    def test_long_integers_are_not_confused(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.edges", "1234567890123456789 5\n1234567890123456788 5\n"))
        assert graph.num_nodes == 3
        assert "1234567890123456788" in graph.names

    def test_a_comment_tells_how_many_nodes_there_are(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.edges", "# Nodes: 6 Edges: 2\n0 1\n1 4\n"))
        assert (graph.num_nodes, graph.names) == (6, None)
        assert read_graph(write(tmp_path, "h.edges", "# nodes: 3\n")).num_nodes == 3

    def test_a_text_file_of_pairs_is_not_taken_for_rudy(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.txt", "4 3\n3 2\n2 1\n1 4\n4 2\n"))
        assert (graph.num_nodes, graph.num_edges) == (4, 5)

    def test_an_edge_in_both_directions_is_one(self, tmp_path):
        assert read_graph(write(tmp_path, "g.edges", "0 1 2\n1 0 2\n")).num_edges == 1


class TestDimacs:
    def test_edges_and_node_weights(self, tmp_path):
        text = "c comment\np edge 4 2\nn 2 7.5\ne 1 2\ne 4 3\n"
        for name in ("g.clq", "g.col"):
            graph = read_graph(write(tmp_path, name, text))
            assert graph.num_nodes == 4
            np.testing.assert_array_equal(graph.edges, [[0, 1], [2, 3]])
            np.testing.assert_array_equal(graph.node_weights, [1, 7.5, 1, 1])
            assert graph.names == (1, 2, 3, 4)

    @pytest.mark.parametrize("announced", [1, 2])
    def test_colouring_files_give_edges_twice_and_count_them_once_or_twice(self, tmp_path, announced):
        graph = read_graph(write(tmp_path, "g.col", f"p col 3 {announced}\ne 1 2\ne 2 1\n"))
        assert graph.num_edges == 1


class TestFormulas:
    def test_conflicts(self, tmp_path):
        text = "c (a or not b) and (b or c) and (not a)\np cnf 3 3\n1 -2 0\n2\n3 0 -1 0\n%\n0\n"
        graph = read_graph(write(tmp_path, "f.cnf", text))
        assert graph.names == ((1, 1), (1, -2), (2, 2), (2, 3), (3, -1))
        np.testing.assert_array_equal(graph.edges, [[0, 1], [0, 4], [1, 2], [2, 3]])

    def test_independent_sets_with_a_node_per_clause_are_satisfying_assignments(self, tmp_path):
        rng = np.random.default_rng(3)
        has_answer = set()
        for num_clauses in (3, 5, 7, 9, 11):
            clauses = [(rng.permutation(3)[:2] + 1) * rng.choice([-1, 1], 2) for _ in range(num_clauses)]
            body = "".join(f"{' '.join(map(str, clause))} 0\n" for clause in clauses)
            graph = read_graph(write(tmp_path, "f.cnf", f"p cnf 3 {num_clauses}\n{body}"))
            conflicts = nx.Graph(graph.edges.tolist())
            largest = max(len(clique) for clique in nx.find_cliques(nx.complement(conflicts)))
            signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1)
            truths = [(signs[np.abs(clause) - 1] == np.sign(clause)[:, None]).any(axis=0) for clause in clauses]
            is_satisfiable = bool(np.all(truths, axis=0).any())
            assert (largest == num_clauses) == is_satisfiable
            has_answer.add(is_satisfiable)
        assert has_answer == {True, False}


class TestMetis:
    @pytest.mark.parametrize(
        ("text", "weights", "node_weights"),
        [
            ("3 2\n2\n1 3\n2\n", [1, 1], [1, 1, 1]),
            ("3 2 1\n2 7\n1 7 3 8\n2 8\n", [7, 8], [1, 1, 1]),
            ("3 2 010\n4 2\n5 1 3\n6 2\n", [1, 1], [4, 5, 6]),
            ("3 2 11 1\n4 2 7\n5 1 7 3 8\n6 2 8\n", [7, 8], [4, 5, 6]),
            ("3 2 111\n9 4 2 7\n9 5 1 7 3 8\n9 6 2 8\n", [7, 8], [4, 5, 6]),
            ("3 2 100\n9 2\n9 1 3\n9 2\n", [1, 1], [1, 1, 1]),
        ],
    )
    def test_what_fmt_says(self, tmp_path, text, weights, node_weights):
        graph = read_graph(write(tmp_path, "g.graph", text))
        np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2]])
        np.testing.assert_array_equal(graph.weights, weights)
        np.testing.assert_array_equal(graph.node_weights, node_weights)

    def test_a_blank_line_is_a_node_without_neighbours(self, tmp_path):
        graph = read_graph(write(tmp_path, "g.metis", "4 1\n3\n\n% comment\n1\n\n\n"))
        np.testing.assert_array_equal(graph.edges, [[0, 2]])
        assert graph.num_nodes == 4


graphs = st.integers(0, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.dictionaries(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] < pair[1])
            if n > 1
            else st.nothing(),
            st.floats(-1e30, 1e30),
        ),
    )
)


@settings(deadline=None)
@given(drawn=graphs, name=st.sampled_from(["g.txt", "g.mc", "G1", "g.edges", "g.csv", "g.tsv"]))
def test_what_was_written_is_read_back(tmp_path_factory, drawn, name):
    num_nodes, edges = drawn
    graph = Graph.from_edges(list(edges), list(edges.values()), num_nodes=num_nodes)
    path = tmp_path_factory.mktemp("graphs") / name
    write_graph(graph, path)
    again = read_graph(path)
    assert again.num_nodes == graph.num_nodes
    np.testing.assert_array_equal(again.edges, graph.edges)
    np.testing.assert_array_equal(again.weights, graph.weights)


def test_what_cannot_be_written(tmp_path):
    graph = Graph.from_edges([[0, 1]], node_weights=[1, 2])
    with pytest.raises(ValueError, match="node weights"):
        write_graph(graph, tmp_path / "g.mc")
    with pytest.raises(ValueError, match="would be dimacs"):
        write_graph(Graph.from_edges([[0, 1]]), tmp_path / "g.clq")


class TestQuadraticForms:
    @pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
    def test_the_energies_are_those_of_dimod(self, tmp_path, vartype):
        rng = np.random.default_rng(2)
        model = dimod.generators.gnp_random_bqm(7, 0.5, vartype, random_state=4)
        path = write(tmp_path, "q.coo", coo.dumps(model, vartype_header=True))
        form = read_qubo(path)
        assert form.vartype == vartype
        x = rng.integers(0, 2, 7) if vartype == "BINARY" else rng.choice([-1, 1], 7)
        energy = form.offset + x @ form.linear + (x[form.edges[:, 0]] * x[form.edges[:, 1]]) @ form.weights
        assert energy == pytest.approx(coo.loads(path.read_text()).energy(x))

    def test_repeated_entries_add_up(self, tmp_path):
        form = read_qubo(write(tmp_path, "q.coo", "0 1 2\n1 0 3.5\n2 2 1\n2 2 1\n"))
        np.testing.assert_array_equal(form.linear, [0, 0, 2])
        np.testing.assert_array_equal(form.edges, [[0, 1]])
        np.testing.assert_array_equal(form.weights, [5.5])
        assert form.vartype == "BINARY"

    def test_qbsolv(self, tmp_path):
        form = read_qubo(write(tmp_path, "q.qubo", "c comment\np qubo 0 4 2 1\n0 0 1\n2 2 -3\n0 2 1.5\n"))
        np.testing.assert_array_equal(form.linear, [1, 0, -3, 0])
        np.testing.assert_array_equal(form.edges, [[0, 2]])

    @pytest.mark.parametrize(
        ("text", "line", "sentence"),
        [
            ("", 1, "empty"),
            ("# vartype=SPIN\n", 1, "no lines"),
            ("# vartype=POTTS\n0 0 1\n", 1, "POTTS"),
            ("0 0 1\n0 1\n", 2, "`i j bias`"),
            ("0 0 1\n0 1 x\n", 2, "'x'"),
            ("0 0 1\n0 -1 1\n", 2, "-1"),
            ("p qubo 0 2 1 1\n0 0 1\n", 1, "1 couplings, but there are 0"),
            ("p qubo 0 2 1 1\n0 0 1\n0 2 1\n", 3, r"0\.\.1"),
            ("p graph 0 2 1 1\n", 1, "`p qubo"),
        ],
    )
    def test_broken_files(self, tmp_path, text, line, sentence):
        with pytest.raises(ValueError, match=sentence) as caught:
            read_qubo(write(tmp_path, "q.coo", text))
        assert str(caught.value).startswith(f"{tmp_path / 'q.coo'}, line {line}: ")


class TestExamples:
    def test_torus(self):
        graph = read_graph(example("torus.txt"))
        assert graph.num_nodes == 400
        np.testing.assert_array_equal(graph.degrees, 4)
        assert set(graph.weights) == {-1, 1}

    def test_random(self):
        graph = read_graph(example("random.graphml"))
        assert (graph.num_nodes, graph.num_edges) == (60, 239)

    def test_petersen(self):
        graph = read_graph(example("petersen.clq"))
        ours = nx.Graph(graph.edges.tolist())
        assert nx.is_isomorphic(ours, nx.petersen_graph())

    def test_no_such_example(self):
        with pytest.raises(ValueError, match=r"petersen.clq, random.graphml, torus.txt, but got 'G14'"):
            example("G14")
