"""Graphs of computations: small functions by hand."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.problems.computation import computation_graph


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
