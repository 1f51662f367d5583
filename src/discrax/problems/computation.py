"""Graphs of computations: which operation of a JAX function uses which other's results.

`computation_graph` traces a function to its jaxpr. Each input and each primitive operation is a node, named after the
primitive ("input" and "constant" for what comes from outside). An edge joins an operation to each that uses a result of
it. Functions called on the way (jit, remat, custom derivatives) are inlined; loops and branches stay one node each.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend import core

from discrax.problems.graph import Graph

_CALLS = {  # primitive -> the parameter with the function's jaxpr
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat2"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}


def computation_graph(function: Callable, *arguments: Any) -> Graph:
    """The graph of `function(*arguments)`. Arrays may be given as `jax.ShapeDtypeStruct`, for nothing is computed."""
    traced = jax.make_jaxpr(function)(*arguments)
    names: list[str] = []
    edges: list[tuple[int, int]] = []

    def new_node(name: str) -> int:
        names.append(name)
        return len(names) - 1

    def walk(jaxpr: Any, producers: dict[Any, int]) -> list[int | None]:
        """Adds the operations of a jaxpr whose inputs' producers are known; the producers of its outputs."""

        def producer(atom: Any) -> int | None:
            return None if isinstance(atom, core.Literal) else producers.get(atom)

        for equation in jaxpr.eqns:
            name = equation.primitive.name
            sources = [producer(atom) for atom in equation.invars]
            if name in _CALLS:
                inner = equation.params[_CALLS[name]]
                inner = getattr(inner, "jaxpr", inner)
                known = {var: node for var, node in zip(inner.invars, sources, strict=True) if node is not None}
                known |= {var: new_node("constant") for var in inner.constvars}
                results = walk(inner, known)
            else:
                node = new_node(name)
                edges.extend((source, node) for source in sources if source is not None)
                results = [node] * len(equation.outvars)
            producers.update((var, at) for var, at in zip(equation.outvars, results, strict=True) if at is not None)
        return [producer(atom) for atom in jaxpr.outvars]

    outside = {var: new_node("input") for var in traced.jaxpr.invars}
    outside |= {var: new_node("constant") for var in traced.jaxpr.constvars}
    walk(traced.jaxpr, outside)
    return Graph.from_edges(np.array(edges, np.int64).reshape(-1, 2), num_nodes=len(names), names=names)
