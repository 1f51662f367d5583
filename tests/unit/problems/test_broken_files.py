"""Files that are broken, or that could be read in two ways: a sentence with the line, or the likelier reading."""

import numpy as np
import pytest
import scipy.sparse

from discrax.problems.generators import erdos_renyi
from discrax.problems.readers import read_graph, read_qubo, write_graph

from .test_readers import GML, GRAPHML, write

BROKEN = [
    # file, contents, the line of the fault, part of the sentence
    ("g.txt", "", 1, "empty"),
    ("g.clq", "\n\n", 1, "empty"),
    ("g.txt", b"1 2\n\x93\xff\x00\xfa\n", 2, "not text"),
    ("g.mc", b"4 4\n1 2 5\x00\n", 2, "not text"),
    # endings that do not fit the contents
    ("g.txt", "c a graph\np edge 2 1\ne 1 2\n", 2, "it is dimacs"),
    ("g.clq", "p cnf 2 1\n1 2 0\n", 1, "it is cnf"),
    ("g.clq", "2 1\n1 2 1\n", 1, "begins with c, p, e or n"),
    ("g.mc", GRAPHML, 1, "it is graphml"),
    ("g.graphml", "2 1\n1 2 1\n", 1, "not the XML"),
    ("g.edges", GML, 1, "it is gml"),
    ("g.txt", "Dear reader, this is a letter.\n", 1, "`i j weight`"),
    # edge lists
    ("g.edges", "0 1 1\n1 2\n", 2, "`i j weight`"),
    ("g.edges", "0 1\n1 2 3\n", 2, "`i j`"),
    ("g.edges", "0 1 1\n1 2 heavy\n", 2, "finite number for weight.*'heavy'"),
    ("g.edges", "0 1 1\n1 2 nan\n", 2, "finite number"),
    ("g.edges", "0 1 1\n1 x 2\n", 2, "whole number.* for j.*'x'"),
    ("g.edges", "0 1\n1 2.5\n", 2, "whole number.* for j.*'2.5'"),
    ("g.edges", "# comment\n0 1\n\n2 2\n", 4, "Node 2 is joined to itself"),
    ("g.edges", "0 1\n1 -2\n", 2, "-2"),
    ("g.edges", "0 1 1\n2 1 3\n1 0 4\n", 3, "0 has the weight 4 here, but 1 on line 1"),
    ("g.edges", "a b 1\nb c 2\nb a 3\n", 3, "b-a has the weight 3 here, but 1 on line 1"),
    ("g.edges", "a b 1\nb c two\n", 2, "'two'"),
    ("g.edges", "a b 1\nb c\n", 2, "3 columns"),
    ("g.edges", "a b\nb c\nd d\n", 3, "Node d"),
    ("g.edges", "# nodes: 2\n0 1\n1 2\n", 1, "2 nodes, but the edges join 3"),
    ("g.edges", "# only\n# comments\n", 2, "no edges"),
    # rudy
    ("g.mc", "1 2 1\n2 3 1\n", 1, "`n m`"),
    ("g.mc", "a b\n1 2 1\n", 1, "whole number.*'a'"),
    ("g.mc", "4 -1\n", 1, "negative"),
    ("g.txt", "-4 1\n1 2 1\n", 1, "negative"),
    ("g.txt", "4 3\n1 2 1\n2 3 1\n", 3, "announces 3 edges, but the file ends after 2"),
    ("g.mc", "4 1\n1 2 1\n2 3 1\n", 3, "announces 1 edges, but here is one more"),
    ("g.mc", "4 2\n1 2 1\n2 5 1\n", 3, r"1\.\.4 here, but got 5"),
    ("g.mc", "4 2\n1 2 1\n0 3 1\n", 3, "but got 0"),
    ("g.mc", "4 2\n1 2 1\n3 3 1\n", 3, "Node 3 is joined to itself"),
    ("g.mc", "4 2\n1 2 1\n2 1 2\n", 3, "the weight 2 here, but 1 on line 2"),
    ("g.mc", "4 2\n1 2 1\n2 \n", 3, "`i j weight`"),
    ("g.mc", "4 2\n1 2 1\n2 3 1e999\n", 3, "finite"),
    ("g.mc", "4 2\n1 2 1\n2 1e300 1\n", 3, r"below 2\^53"),
    ("g.mc", "99999999999999 1\n1 2 1\n", 1, "up to 1,000,000,000 nodes"),
    # DIMACS
    ("g.clq", "c nothing\ne 1 2\n", 2, "must come before"),
    ("g.clq", "c nothing\n", 1, "must come before"),
    ("g.clq", "p edge 3\n", 1, "`p edge n m`"),
    ("g.clq", "p edge -3 1\ne 1 2\n", 1, "negative"),
    ("g.clq", "p edge 3 1\np edge 3 1\n", 2, "second p line"),
    ("g.clq", "p edge 3 2\ne 1 2\n", 2, "announces 2 edges, but the file ends after 1"),
    ("g.clq", "p edge 3 1\ne 1 2\ne 1 3\n", 3, "one more"),
    ("g.clq", "p edge 3 1\ne 1 4\n", 2, r"1\.\.3"),
    ("g.clq", "p edge 3 1\ne 1\n", 2, "`i j`"),
    ("g.clq", "p edge 3 2\ne 1 2\ne \n", 3, "`i j`"),
    ("g.clq", "p edge 3 1\ne \n", 2, "`i j`"),
    ("g.clq", "p edge 3 1\ne 1 one\n", 2, "'one'"),
    ("g.clq", "p edge 3 1\ne 2 2\n", 2, "itself"),
    ("g.clq", "p edge 3 1\nn 9 1\ne 1 2\n", 2, "9"),
    ("g.clq", "p edge 3 1\nn 1 heavy\ne 1 2\n", 2, "'heavy'"),
    ("g.clq", "p edge 3 1\ne 1 2\nhello\n", 3, "begins with"),
    # formulas
    ("f.cnf", "1 2 0\n", 1, "before the clauses"),
    ("f.cnf", "c nothing\n", 1, "there is none"),
    ("f.cnf", "p cnf 2\n1 2 0\n", 1, "`p cnf n m`"),
    ("f.cnf", "p cnf 2 -1\n", 1, "negative"),
    ("f.cnf", "p cnf 2 1\n1 3 0\n", 2, "literal 3"),
    ("f.cnf", "p cnf 2 1\n1 b 0\n", 2, "'b'"),
    ("f.cnf", "p cnf 2 2\n1 2 0\n", 1, "2 clauses, but there are 1"),
    ("f.cnf", "p cnf 2 1\n1 2\n", 2, "end with 0"),
    ("f.cnf", "p cnf 2 2\n1 2 0\n0\n", 3, "empty"),
    # METIS
    ("g.graph", "3\n2\n1\n\n", 1, "`n m"),
    ("g.graph", "2 -1\n\n\n", 1, "negative"),
    ("g.graph", "2 1 7\n2\n1\n", 1, "fmt"),
    ("g.graph", "2 1 10 2\n1 1 2\n1 1 1\n", 1, "one weight"),
    ("g.graph", "3 1\n2\n1\n", 3, "3 nodes, but the file ends after 2"),
    ("g.graph", "2 1\n2\n1\n1\n", 4, "one more"),
    ("g.graph", "2 1\n2\n3\n", 3, r"1\.\.2"),
    ("g.graph", "2 1\n2\nx\n", 3, "'x'"),
    ("g.graph", "2 1\n2\n1.5\n", 3, "1.5"),
    ("g.graph", "2 1\n2\n1e300\n", 3, r"1e\+300"),
    ("g.graph", "2 1 1\n2 5\n1\n", 3, "`j w ...`"),
    ("g.graph", "2 1 1\n2 5\n1 6\n", 3, "the weight 6 here, but 5 on line 2"),
    ("g.graph", "2 1\n2\n\n", 2, "2 does not name 1"),
    ("g.graph", "2 1\n2\n2\n", 3, "itself"),
    ("g.graph", "2 2\n2\n1\n", 1, "2 edges are announced, but there are 1"),
    # GraphML and GML
    ("g.graphml", GRAPHML[:400], 8, "not the XML"),
    ("g.graphml", GRAPHML.replace('"2" target="3"', '"3" target="3"'), 7, "Node 3 is joined to itself"),
    ("g.graphml", GRAPHML.replace(">2.5<", f">{'9' * 400}<"), 8, "A weight is a finite number, but got '999"),
    ("g.graphml", GRAPHML.replace(">2.5<", ">much<"), 8, "'much'"),
    ("g.gml", GML.replace("target 2", "target"), 3, "not a graph in GML"),
    ("g.gml", GML.replace("source 2", "source 3"), 4, "Node 3 is joined to itself"),
]


@pytest.mark.parametrize(
    ("name", "text", "line", "sentence"), BROKEN, ids=[f"{row[0]}-{i}" for i, row in enumerate(BROKEN)]
)
def test_a_broken_file_gets_a_sentence_with_its_line(tmp_path, name, text, line, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_graph(write(tmp_path, name, text))
    assert str(caught.value).startswith(f"{tmp_path / name}, line {line}: ")


def test_files_without_lines_to_name(tmp_path):
    with pytest.raises(ValueError, match=r"There is no file .*nowhere\.txt"):
        read_graph(tmp_path / "nowhere.txt")
    with pytest.raises(ValueError, match="folder"):
        read_graph(tmp_path)
    with pytest.raises(ValueError, match=r"g.npz is not a matrix"):
        read_graph(write(tmp_path, "g.npz", "0 1\n"))
    with pytest.raises(ValueError, match=r"g.npz is not a matrix"):
        read_graph(write(tmp_path, "g.npz", b"PK\x03\x04 and nothing more"))
    scipy.sparse.save_npz(tmp_path / "loop.npz", scipy.sparse.coo_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"loop.npz: .*self-loops"):
        read_graph(tmp_path / "loop.npz")
    with pytest.raises(ValueError, match="read_qubo"):
        read_graph(write(tmp_path, "g.coo", "0 1 2\n"))


def test_the_line_is_found_in_a_long_file(tmp_path):
    graph = erdos_renyi(600, 0.6, seed=1)  # more than two chunks of lines
    assert graph.num_edges > 100_000
    write_graph(graph, tmp_path / "g.mc")
    lines = (tmp_path / "g.mc").read_text().splitlines()
    lines[70_000] = "12 thirteen 1"
    with pytest.raises(ValueError, match=r"line 70001: .*'thirteen'"):
        read_graph(write(tmp_path, "g.mc", "\n".join(lines)))


@pytest.mark.parametrize("text", ["800 4694\n", "4 3\n1 2\n2 3\n", "10 9\n9 8\n8 7\n", "4 3\n3 2\n2 1\n1 0\n"])
def test_a_header_without_its_edges_is_no_edge(tmp_path, text):
    with pytest.raises(
        ValueError, match=r"line 1: This announces .* or it is an edge itself. Give the file the ending"
    ):
        read_graph(write(tmp_path, "g.txt", text))
    assert read_graph(write(tmp_path, "g.edges", text)).num_edges == text.count("\n")


NO_HEADERS = [
    *("0 1\n", "1 2\n", "1 2\n2 3\n", "3 1\n1 2\n2 3\n", "5 4\n1 9\n", "900 20\n0 1\n"),
    *("0 1\n1 2\n", "1 2\n2 3\n3 1\n", "2 3\n3 4\n4 5\n5 6\n"),  # as many lines follow as the second number says
]


@pytest.mark.parametrize("text", NO_HEADERS)
def test_edges_that_no_header_looks_like(tmp_path, text):
    graph = read_graph(write(tmp_path, "g.txt", text))
    assert graph.num_edges == text.count("\n")
    np.testing.assert_array_equal(graph.edges, read_graph(write(tmp_path, "g.edges", text)).edges)


@pytest.mark.parametrize(
    ("text", "size"), [("4 2\n1 2\n2 3\n", (4, 2)), ("2 2\n1 2\n2 1\n", (2, 1)), ("3 0\n", (3, 0))]
)
def test_headers_that_all_that_follows_agrees_with(tmp_path, text, size):
    graph = read_graph(write(tmp_path, "g.txt", text))
    assert (graph.num_nodes, graph.num_edges) == size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.mc", "1000000000 1\n1 2 1\n"),
        ("g.clq", "p edge 1000000000 1\ne 1 2\n"),
        ("g.edges", "# nodes: 1000000000\n0 1\n"),
    ],
)
def test_nodes_that_would_fill_the_memory(tmp_path, name, text):
    with pytest.raises(ValueError, match=r"line 1: Nodes .* would have 1,000,000,000 nodes, with 1 edges, and take 93"):
        read_graph(write(tmp_path, name, text))


def test_variables_that_would_fill_the_memory(tmp_path):
    with pytest.raises(ValueError, match=r"line 2: .* would have 1,000,000,001 nodes"):
        read_qubo(write(tmp_path, "q.coo", "0 1 1\n0 1000000000 1\n"))
    with pytest.raises(ValueError, match=r"line 1: .* would have 1,000,000,000 nodes"):
        read_qubo(write(tmp_path, "q.qubo", "p qubo 0 1000000000 0 1\n0 1 1\n"))


def test_parallel_edges_of_graphml_add_up(tmp_path):
    import networkx

    source = networkx.MultiGraph([(0, 1), (0, 1), (0, 1)])
    networkx.write_graphml(source, tmp_path / "g.graphml")
    np.testing.assert_array_equal(read_graph(tmp_path / "g.graphml").weights, [3])


def test_weights_beyond_a_float(tmp_path):
    huge = "1" + "0" * 400
    for name, text in (("g.edges", f"0 1 {huge}\n"), ("g.mc", f"2 1\n1 2 {huge}\n")):
        with pytest.raises(ValueError, match="Expected a finite number for weight"):
            read_graph(write(tmp_path, name, text))
