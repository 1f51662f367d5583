"""Graphs of computations: small functions by hand, and the networks."""

from collections import Counter

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from discrax.problems.computation import computation_graph, network_graph


def named_edges(graph) -> list[tuple]:
    return sorted((graph.names[i], graph.names[j]) for i, j in graph.edges)


def test_each_operation_is_joined_to_those_that_use_it():
    graph = computation_graph(lambda x, y: jnp.sin(x) * y + x, 1.0, 2.0)
    assert graph.names == ("input", "input", "sin", "mul", "add")
    np.testing.assert_array_equal(graph.edges, [[0, 2], [0, 4], [1, 3], [2, 3], [3, 4]])


def test_using_a_result_twice_is_one_edge():
    graph = computation_graph(lambda x: jnp.sin(x) * jnp.sin(x), jnp.zeros(3))
    square = computation_graph(lambda x: (lambda y: y * y)(jnp.sin(x)), jnp.zeros(3))
    assert Counter(graph.names) == {"input": 1, "sin": 2, "mul": 1}
    assert named_edges(square) == [("input", "sin"), ("sin", "mul")]


@jax.custom_jvp
def with_jvp(x):
    return jnp.cos(x)


with_jvp.defjvp(lambda primals, tangents: (jnp.cos(primals[0]), tangents[0]))


@jax.custom_vjp
def with_vjp(x):
    return jnp.cos(x)


with_vjp.defvjp(lambda x: (jnp.cos(x), None), lambda _, slope: (slope,))


@pytest.mark.parametrize(
    "call", [jax.jit(jnp.cos), with_jvp, with_vjp, jax.checkpoint(jnp.cos), jax.jit(jax.jit(jnp.cos))]
)
def test_calls_are_inlined(call):
    graph = computation_graph(lambda x: jnp.exp(call(jnp.sin(x))), 1.0)
    assert graph.names == ("input", "sin", "cos", "exp")
    np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2], [2, 3]])


def test_a_call_that_hands_its_input_on():
    graph = computation_graph(lambda x: jnp.exp(jax.jit(lambda y: (jnp.cos(y), y))(jnp.sin(x))[1]), 1.0)
    assert named_edges(graph) == [("input", "sin"), ("sin", "cos"), ("sin", "exp")]


def test_constants_and_loops():
    table = jnp.arange(5.0)
    graph = computation_graph(lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + 1, x) + table, table)
    assert {"input", "add"} <= set(graph.names)
    assert "scan" in graph.names or "while" in graph.names
    assert "sin" not in graph.names


def test_shapes_are_enough():
    shape = jax.ShapeDtypeStruct((1000, 1000, 1000, 1000), jnp.float32)
    assert computation_graph(jnp.sin, shape).names == ("input", "sin")


# Parameters of the published networks, without moving averages.
NUM_PARAMETERS = {"mnist_conv": 8, "alexnet": 16, "vgg16": 32, "resnet50": 161, "inception_v3": 284}
NUM_CONVOLUTIONS = {"mnist_conv": 2, "alexnet": 5, "vgg16": 13, "resnet50": 53, "inception_v3": 94}


@pytest.mark.parametrize("name", NUM_PARAMETERS)
def test_networks(name):
    forward = network_graph(name, training=False)
    ops = Counter(forward.names)
    assert ops["input"] == NUM_PARAMETERS[name] + 2
    assert ops["conv_general_dilated"] == NUM_CONVOLUTIONS[name]
    assert nx.is_connected(nx.Graph(forward.edges.tolist()))
    assert (forward.degrees > 0).all()


@pytest.mark.parametrize(
    ("name", "forward", "training"), [("mnist_conv", (43, 44), (109, 130)), ("alexnet", (68, 69), (191, 229))]
)
def test_counts_of_the_small_networks(name, forward, training):
    graphs = network_graph(name, training=False), network_graph(name)
    assert [(graph.num_nodes, graph.num_edges) for graph in graphs] == [forward, training]
    # A step subtracts a slope from each parameter, and needs three convolutions for one, less one for the images.
    ops = Counter(graphs[1].names)
    assert ops["conv_general_dilated"] == 3 * NUM_CONVOLUTIONS[name] - 1


def test_an_unknown_network():
    with pytest.raises(ValueError, match=r"mnist_conv, alexnet.*'lenet'"):
        network_graph("lenet")
