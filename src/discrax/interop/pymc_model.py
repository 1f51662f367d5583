"""The log-probability of the discrete variables of a PyMC model, as a function that JAX can differentiate.

PyMC's own log-probability takes integers, of which there is no gradient. Here every discrete variable z is two things:
its integers, and d = e - stop_gradient(e), where e are the one-hot vectors of its levels: zero, but with a gradient.
Wherever the model reads z, it reads instead

    z + sum_c d_c c                            as a number,
    table[z] + sum_c d_c table[c]              as an index,
    log p(z | ...) + sum_c d_c log p(c | ...)  in z's own law.

So the value is PyMC's own at every state, and the gradient says what a change of level would do: exactly in the second
and third case. Samplers use gradients to propose, and the value to accept; the law that they sample is the model's.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.extras import import_extra
from discrax.interop.variables import Variables

_LARGEST = 1e6  # of a log-probability in a gradient, where -inf would make NaN of 0 * -inf


def block_of(model: Any, variables: Sequence[Any]) -> Variables:
    """The sites of these random variables of a model; a ValueError that says which one has no finite support."""
    supports = [_support(model, variable) for variable in variables]
    names = tuple(model.rvs_to_values[variable].name for variable in variables)
    return Variables(names, tuple(low for low, _ in supports), tuple(high - low + 1 for low, high in supports))


def conditional(model: Any, variables: Sequence[Any]) -> Callable[[Sequence[Array], Float[Array, "..."]], Array]:
    """log p(variables | others) up to a constant: a function of the others' values and of the embedding.

    The others are the model's remaining `value_vars`, in their order and as PyMC samples them, that is transformed.
    """
    block, graphs = block_of(model, variables), _Graphs(model, variables)
    *own, rest = graphs.functions()

    def log_prob(others: Sequence[Array], e: Float[Array, "..."]) -> Float[Array, ""]:
        one_hot = block.one_hot(e)
        codes = jax.lax.stop_gradient(jnp.argmax(one_hot, axis=-1))
        z = [part + low for part, low in zip(block.split(codes), block.lows, strict=True)]
        d = [
            part[..., : int(count.max())]
            for part, count in zip(block.split(one_hot - jax.lax.stop_gradient(one_hot)), block.counts, strict=True)
        ]
        total = rest(*z, *d, *others)[0]
        for i, function in enumerate(own):

            def at(level: Array, i: int = i, function: Callable = function) -> Array:
                there = jnp.broadcast_to(block.lows[i] + level, z[i].shape).astype(z[i].dtype)
                return function(*z[:i], there, *z[i + 1 :], *d, *others)[0]

            table = jnp.moveaxis(jax.vmap(at)(jnp.arange(d[i].shape[-1])), 0, -1)
            table = jax.lax.stop_gradient(jnp.nan_to_num(table, neginf=-_LARGEST).clip(-_LARGEST, _LARGEST))
            total = total + jnp.sum(function(*z, *d, *others)[0]) + jnp.sum(table * d[i])
        return total.astype(e.dtype)

    def quiet(others: Sequence[Array], e: Float[Array, "..."]) -> Float[Array, ""]:
        with warnings.catch_warnings():  # PyTensor asks for double precision, which JAX may have been told not to use
            warnings.filterwarnings("ignore", message="(?s).*requested dtype.*", category=UserWarning)
            return log_prob(others, e)

    return quiet


class _Graphs:
    """PyMC's log-probabilities as graphs in which variables are read as numbers, as indices and by their own laws."""

    def __init__(self, model: Any, variables: Sequence[Any]):
        pt = import_extra("pytensor.tensor", "A model needs", "pymc")
        self.model, self.variables = model, list(variables)
        self.values = [model.rvs_to_values[variable] for variable in variables]
        self.others = [value for value in model.value_vars if value not in self.values]
        block = block_of(model, variables)
        self.z = [value.type() for value in self.values]
        self.lows, self.sizes = block.lows, [int(count.max()) for count in block.counts]
        shapes = [(*low.shape, size) for low, size in zip(self.lows, self.sizes, strict=True)]
        self.d = [pt.tensor(dtype="float64", shape=shape) for shape in shapes]
        levels = [low[..., None] + np.arange(float(size)) for low, size in zip(self.lows, self.sizes, strict=True)]
        self.numbers = [
            z.astype("float64") + pt.sum(d * each, axis=-1) for z, d, each in zip(self.z, self.d, levels, strict=True)
        ]

    def functions(self) -> list[Callable]:
        """Of (integers, d's, others): the laws of the variables, site by site, and the sum of everything else."""
        model = self.model
        own = model.logp(vars=self.variables, sum=False)
        rest = [each for each in (*model.basic_RVs, *model.potentials) if each not in self.variables]
        graphs = [self._relaxed(graph, i) for i, graph in enumerate(own)]
        graphs.append(self._relaxed(model.logp(vars=rest), None) if rest else _zero())
        jaxify = backend().get_jaxified_graph
        return [jaxify(inputs=[*self.z, *self.d, *self.others], outputs=[graph]) for graph in graphs]

    def _relaxed(self, graph: Any, own: int | None) -> Any:
        """A graph that reads integers and d's; in the law of variable `own`, that one's integers only."""
        replace = import_extra("pytensor.graph.replace", "A model needs", "pymc").clone_replace
        if own is not None:
            graph = replace(graph, {self.values[own]: self.z[own]})
        while (found := self._lookup(graph)) is not None:
            graph = replace(graph, found)
        numbers = dict(zip(self.values, self.numbers, strict=True))
        try:
            return replace(graph, numbers, rebuild_strict=False)
        except (TypeError, ValueError, NotImplementedError):  # a use that takes integers only, and has no gradient
            return replace(graph, dict(zip(self.values, self.z, strict=True)))

    def _lookup(self, graph: Any) -> dict[Any, Any] | None:
        """The first place where a table is read at a variable, and what is read instead."""
        pt = import_extra("pytensor.tensor", "A model needs", "pymc")
        ancestors = import_extra("pytensor.graph.traversal", "A model needs", "pymc").ancestors
        for variable in ancestors([graph]):
            node = variable.owner
            if node is None or type(node.op).__name__ not in ("AdvancedSubtensor1", "AdvancedSubtensor"):
                continue
            table, *indices = node.inputs
            where = [i for i, value in enumerate(self.values) if len(indices) == 1 and indices[0] is value]
            if where and not self.lows[where[0]].any():
                z, d = self.z[where[0]], self.d[where[0]]
                levels = pt.clip(table[: self.sizes[where[0]]], -_LARGEST, _LARGEST)
                return {variable: table[z] + pt.tensordot(d, levels, axes=[[-1], [0]])}
        return None


def _zero() -> Any:
    return import_extra("pytensor.tensor", "A model needs", "pymc").constant(0.0)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """PyMC's JAX backend turns on double precision and asks for 100 devices when it is imported; that is undone."""
    precision, flags = jax.config.read("jax_enable_x64"), os.environ.get("XLA_FLAGS")
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", precision)
        os.environ.pop("XLA_FLAGS", None)
        if flags is not None:
            os.environ["XLA_FLAGS"] = flags


def backend() -> Any:
    """PyMC's functions that make JAX of graphs; first called where JAX has the precision that it is to keep."""
    if "pymc.sampling.jax" in sys.modules:
        return sys.modules["pymc.sampling.jax"]
    with _undisturbed():
        return import_extra("pymc.sampling.jax", "Models are read with the package", "pymc")


def _support(model: Any, variable: Any) -> tuple[Integer[np.ndarray, "..."], Integer[np.ndarray, "..."]]:
    """The least and the largest value of each site of a random variable; a ValueError where there is none."""
    op, inputs = variable.owner.op, variable.owner.inputs
    kind = type(op).__name__.removesuffix("RV")
    if kind not in _ENDS:
        raise ValueError(
            f"{variable.name} is a {kind} variable, but discrax samples those of finite support that are independent "
            f"given the others: {', '.join(_ENDS)}. Bound it, as pm.Truncated(..., lower=0, upper=50) does."
        )
    fold = import_extra("pymc.pytensorf", "A model needs", "pymc").constant_fold
    try:
        low, high = fold(_ENDS[kind](op, inputs))
    except Exception as error:
        raise ValueError(
            f"The support of {variable.name} must be constant, but that of this {kind} depends on other variables."
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"{variable.name} has no finite support: give pm.Truncated a lower and an upper end.")
    if (high <= low).any():
        raise ValueError(f"Every site of {variable.name} needs at least two values, but some have one.")
    shape = variable.type.shape if None not in variable.type.shape else model.eval_rv_shapes()[variable.name]
    low, high = (np.broadcast_to(np.asarray(end).astype(np.int64), shape) for end in (low, high))
    return low, high


def _truncated_ends(op: Any, inputs: Sequence[Any]) -> list[Any]:
    pt = import_extra("pytensor.tensor", "A model needs", "pymc")
    starts_at_0 = type(op.base_rv_op).__name__ != "DiscreteUniformRV"  # as all others do that PyMC has
    return [pt.ceil(pt.maximum(inputs[-2], 0 if starts_at_0 else -np.inf)), pt.floor(inputs[-1])]


def _hypergeometric_ends(op: Any, inputs: Sequence[Any]) -> list[Any]:
    pt = import_extra("pytensor.tensor", "A model needs", "pymc")
    good, bad, drawn = inputs[-3:]
    return [pt.maximum(0, drawn - bad), pt.minimum(good, drawn)]


def _from_0(high: Callable[[Sequence[Any]], Any]) -> Callable[[Any, Sequence[Any]], list[Any]]:
    pt = partial(import_extra, "pytensor.tensor", "A model needs", "pymc")
    return lambda op, inputs: [pt().constant(0), pt().as_tensor_variable(high(inputs))]


_ENDS: dict[str, Callable[[Any, Sequence[Any]], list[Any]]] = {
    "Bernoulli": _from_0(lambda inputs: 1),
    "Categorical": _from_0(lambda inputs: inputs[-1].shape[-1] - 1),
    "DiscreteUniform": lambda op, inputs: list(inputs[-2:]),
    "Binomial": _from_0(lambda inputs: inputs[-2]),
    "BetaBinomial": _from_0(lambda inputs: inputs[-3]),
    "HyperGeometric": _hypergeometric_ends,
    "Truncated": _truncated_ends,
}
