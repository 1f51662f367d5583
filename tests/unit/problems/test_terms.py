"""Dicts of terms: the problem is that of the same terms in arrays, and names survive."""

import dimod
import numpy as np
import pytest

from discrax.problems import MIS, QUBO, Graph, MaxCut, Partition

EVERY = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("names", ["abc", (2, 0, 1), ((0, 1), (1, 1), frozenset({5})), (10, 3.5, "c")])
def test_energies_are_those_of_dimod(names, vartype):
    a, b, c = names
    h, J = {a: 1.5, c: -0.5}, {(a, b): 2.0, (b, c): -1.0, (c, a): 0.25}
    problem = QUBO(h, J, vartype=vartype, offset=3.0)
    bqm = dimod.BQM(h, J, 3.0, vartype)
    order = range(3) if problem.names is None else problem.names
    samples = EVERY if vartype == "BINARY" else 2 * EVERY - 1
    np.testing.assert_allclose(problem.objective(EVERY), bqm.energies((samples, list(order))))
    assert list(problem.describe(EVERY[3])["sample"].values()) == samples[3].tolist()


def test_one_dict_has_all_terms():
    Q = {("a", "a"): -1.0, ("a", "b"): 2.0, ("b", "a"): 1.0, "b": -3.0, ("c",): 4.0, (): 10.0}
    problem = QUBO(Q)
    assert problem.names == ("a", "b", "c")
    np.testing.assert_array_equal(problem.objective(EVERY), [10, 14, 7, 11, 9, 13, 9, 13])
    assert problem.describe(EVERY[2])["sample"] == {"a": 0, "b": 1, "c": 0}


def test_whole_numbers_are_in_order_and_other_names_as_they_come():
    assert QUBO({(7, 2): 1.0, (2, 5): 1.0}).names == (2, 5, 7)
    assert QUBO({(2, 0): 1.0, (0, 1): 1.0}).names is None
    assert QUBO({("z", "a"): 1.0}).names == ("z", "a")
    assert QUBO({("z", "a"): 1.0}, names=["a", "m", "z"]).describe(EVERY[5])["sample"] == {"a": 1, "m": 0, "z": 1}


def test_graphs():
    graph = Graph.of({("x", "y"): 2.0, ("y", "z"): 3.0, ("z", "y"): 3.0, "y": 5.0})
    assert graph.names == ("x", "y", "z")
    np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2]])
    np.testing.assert_array_equal(graph.weights, [2, 3])
    np.testing.assert_array_equal(graph.node_weights, [1, 5, 1])
    weights = {("x", "y"): 2.0, ("y", "z"): 3.0}
    assert MaxCut(weights).describe(EVERY[2]) == {"sides": [["x", "z"], ["y"]], "cut": 5.0}
    assert MIS(weights).describe(EVERY[5]) == {"nodes": ["x", "z"], "size": 2}
    assert Partition(weights, 2).graph.names == ("x", "y", "z")
    np.testing.assert_array_equal(Graph.of({(1, 0): 4.0}).edges, [[0, 1]])


REFUSED = {
    "but one is of 3, ('a', 'b', 'c'); a name that is a tuple": lambda: QUBO({("a", "b", "c"): 1.0}),
    "The terms of a QUBO must be real numbers": lambda: QUBO({("a", "b"): "heavy"}),
    "The terms of a QUBO must be finite": lambda: QUBO({("a", "b"): np.nan}),
    "must be one number each, but got arrays of shape (2,)": lambda: QUBO({"a": [1.0, 2.0]}),
    "must be of its 1 names, but one is of 'b'": lambda: QUBO({("a", "b"): 1.0}, names=["a"]),
    "The names of a QUBO must differ, but 1 come twice": lambda: QUBO({("a", "b"): 1.0}, names=["a", "b", "a"]),
    "A dict has its own weights": lambda: QUBO({("a", "b"): 1.0}, weights=[1.0]),
    "but J holds others": lambda: QUBO({"a": 1.0}, {"b": 1.0}),
    "QUBO(h, J) takes linear terms": lambda: QUBO({"a": 1.0}, [[0, 1]]),
    "needs at least one variable": lambda: QUBO({}),
    "node 'a' is joined to itself": lambda: MaxCut({("a", "a"): 1.0}),
    "The edge 0-1 is given twice, with the weights 1 and 2": lambda: MaxCut({("a", "b"): 1.0, ("b", "a"): 2.0}),
    "but got a constant": lambda: MaxCut({("a", "b"): 1.0, (): 2.0}),
    "The terms of a graph must be real numbers": lambda: MIS({0: [1, 2], 1: [0]}),
    "with at least one node": lambda: MIS({}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_wrong_is_said_in_a_sentence(message, as_a_user):
    with pytest.raises((ValueError, TypeError)) as caught:
        REFUSED[message]()
    assert message in str(caught.value)
