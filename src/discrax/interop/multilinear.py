"""The multilinear form of a function of integers, by which a plain model has gradients in its discrete variables.

A function of variables with finitely many levels is a polynomial that is linear in the one-hot vector of each of them.
`multilinear` makes it of the function itself: it walks through the traced program, and a value whose elements depend on
one or two variables each is carried as a table of what they would be at every level. An index, a comparison or a
`where` is so an operation on tables like any other. Where elements are mixed (a sum, a product of matrices), the table
becomes a number, weighed by the one-hot vectors:

    value_i = sum_c e_ic table_ic

At a state the form is the function. What is done to such numbers later is done as it is written, so log-ratios from the
gradient are exact where the function only adds them up, and of first order where it squares them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import DebugInfo, Jaxpr, Literal
from jaxtyping import Array, Float, Int

from discrax.core.levels import sum_levels

_MOST_ENTRIES = 1024  # of the table of one element
_FAR = 1e9  # stands for a table's infinities in gradients: a change to there is never proposed

_ELEMENTWISE = {
    "add", "sub", "mul", "div", "rem", "neg", "sign", "abs", "max", "min", "pow", "integer_pow", "square", "sqrt",
    "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "lgamma", "digamma", "erf", "erfc", "erf_inv",
    "floor", "ceil", "round", "is_finite", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor", "select_n",
    "clamp", "convert_element_type", "stop_gradient", "reduce_precision", "copy", "add_any",
}  # fmt: skip
_STRUCTURAL = {"reshape", "transpose", "slice", "squeeze", "expand_dims", "broadcast_in_dim", "rev", "dynamic_slice"}
_LINEAR = {"add", "sub", "mul", "neg", "reduce_sum", "convert_element_type", "add_any"} | _STRUCTURAL
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "checkpoint": "jaxpr", "remat": "jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "core_call": "call_jaxpr"}
_DEBUG = DebugInfo("multilinear", "one equation", None, None)


class NotMultilinear(Exception):
    """The function does something with integers that has no multilinear form here."""


class Choice(NamedTuple):
    """A variable that each element of an array depends on."""

    who: Int[np.ndarray, "*shape"]  # the number of the variable
    weights: Float[Array, "*shape levels"]  # its one-hot vector


class Table(NamedTuple):
    """An array each of whose elements depends on one variable, or on a few."""

    values: Array  # (*shape, *levels of each choice)
    choices: tuple[Choice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array that it stands for."""
        return self.values.shape[: self.values.ndim - len(self.choices)]


def multilinear(function: Callable[[Any], Array], variables: Any) -> Array:
    """The multilinear form of a function of a tree of integer arrays; `variables` is the tree, of tables.

    A NotMultilinear says which operation has none.
    """
    examples = jax.tree.map(
        lambda table: jax.ShapeDtypeStruct(table.shape, table.values.dtype), variables, is_leaf=_is_table
    )
    traced = jax.make_jaxpr(function)(examples)
    (out,) = _run(traced.jaxpr, traced.consts, jax.tree.leaves(variables, is_leaf=_is_table))
    return _number(out) if _is_table(out) else out


def _is_table(value: Any) -> bool:
    return isinstance(value, Table)


def _run(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))

    def read(atom: Any) -> Any:
        return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        outs = _apply(equation, [read(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: Any, values: list[Any]) -> Sequence[Any]:
    """What an equation makes of arrays and tables."""
    name, params = equation.primitive.name, equation.params
    wanted = [atom.aval.dtype for atom in equation.invars]
    tables = [value for value in values if _is_table(value)]
    # A sum of integers in a table became a float: the operation is then one of floats.
    is_soft = any(not _is_table(v) and jnp.result_type(v) != w for v, w in zip(values, wanted, strict=True))
    if not tables and not is_soft:
        return _bind(equation, values)
    if name in _CALLS:
        inner = params[_CALLS[name]]
        return _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
    if not is_soft and tables:
        found = _on_tables(equation, name, values, tables)
        if found is not None:
            return [found]
    return _on_numbers(equation, name, [_number(value) if _is_table(value) else value for value in values], wanted)


def _bind(equation: Any, values: Sequence[Any]) -> Sequence[Any]:
    """An equation on arrays; one that makes integers, which may be indices, now, where all of them are known now."""
    given = {a: value for a, value in zip(equation.invars, values, strict=True) if not isinstance(a, Literal)}
    alone = Jaxpr((), tuple(given), tuple(equation.outvars), (equation,), equation.effects, _DEBUG)
    makes_integers = all(jnp.issubdtype(out.aval.dtype, jnp.integer) for out in equation.outvars)
    if not makes_integers or not _are_known(values):
        return eval_jaxpr(alone, (), *given.values())
    with jax.ensure_compile_time_eval():
        return eval_jaxpr(alone, (), *given.values())


def _on_tables(equation: Any, name: str, values: list[Any], tables: list[Table]) -> Table | None:
    """The table of what an operation makes of tables; None where it needs numbers."""
    if name in _ELEMENTWISE:
        is_sum = name in ("add", "sub", "add_any") and jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.floating)
        return _elementwise(equation, values, is_sum)
    if name in _STRUCTURAL and len(tables) == 1 and _is_table(values[0]) and _are_known(values[1:]):
        return _structural(equation, values)
    if name == "concatenate":
        return _concatenate(equation, values, tables)
    if name == "gather" and _is_table(values[0]) and not _is_table(values[1]) and _are_known(values[1:]):
        return _structural(equation, values)
    if name == "gather" and not _is_table(values[0]):
        return _look_up(equation, values[0], values[1])
    if name == "dynamic_slice" and not _is_table(values[0]):
        choices = _union(tables)  # of scalars, that say where
        full = [_aligned(value, choices) if _is_table(value) else value for value in values]
        shape = equation.outvars[0].aval.shape
        return Table(_over_levels(equation, full, len(choices)), tuple(_repeated(c, shape) for c in choices))
    return None


def _are_known(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, Tracer) for value in values)


def _over_levels(equation: Any, values: Sequence[Any], num_choices: int) -> Array:
    """An operation on tables with all choices, and on arrays, level by level."""
    levels = next(value.values.shape[value.values.ndim - num_choices :] for value in values if _is_table(value))
    flat = [v.values.reshape(*v.shape, -1) if _is_table(v) else v for v in values]
    axes = [-1 if _is_table(value) else None for value in values]
    out = jax.vmap(lambda *each: _bind(equation, each)[0], in_axes=tuple(axes), out_axes=-1)(*flat)
    return out.reshape(*out.shape[:-1], *levels)


def _same(one: Choice, other: Choice) -> bool:
    return one.who is other.who or np.array_equal(one.who, other.who)


def _union(tables: Sequence[Table]) -> tuple[Choice, ...]:
    choices: list[Choice] = []
    for table in tables:
        choices += [each for each in table.choices if not any(_same(each, known) for known in choices)]
    return tuple(choices)


def _entries(choices: Sequence[Choice]) -> int:
    return int(np.prod([choice.weights.shape[-1] for choice in choices]))


def _aligned(table: Table, choices: tuple[Choice, ...]) -> Table:
    """The table with the axes of all choices."""
    rank, places = len(table.shape), [next(i for i, c in enumerate(choices) if _same(c, own)) for own in table.choices]
    order = np.argsort(places)
    values = jnp.transpose(table.values, [*range(rank), *(rank + order)])
    missing = [rank + i for i in range(len(choices)) if i not in places]
    values = jnp.expand_dims(values, missing)
    levels = tuple(choice.weights.shape[-1] for choice in choices)
    return Table(jnp.broadcast_to(values, (*table.shape, *levels)), choices)


def _elementwise(equation: Any, values: list[Any], is_sum: bool) -> Table | None:
    shape = equation.outvars[0].aval.shape
    values = [_broadcast(value, shape) if _is_table(value) else value for value in values]
    tables = [value for value in values if _is_table(value)]
    choices = _union(tables)
    if _entries(choices) > _MOST_ENTRIES or (is_sum and len(choices) > len(tables[0].choices)):
        return None
    full = [_aligned(value, choices) if _is_table(value) else value for value in values]
    return Table(_over_levels(equation, full, len(choices)), choices)


def _broadcast(table: Table, shape: tuple[int, ...]) -> Table:
    """A table beside arrays of a shape, as scalars and axes of length 1 are."""
    if table.shape == shape:
        return table
    levels = table.values.shape[len(table.shape) :]
    values = table.values.reshape(*(1,) * (len(shape) - len(table.shape)), *table.values.shape)
    return Table(jnp.broadcast_to(values, (*shape, *levels)), tuple(_repeated(c, shape) for c in table.choices))


def _repeated(choice: Choice, shape: tuple[int, ...]) -> Choice:
    weights = choice.weights.reshape(*(1,) * (len(shape) - choice.who.ndim), *choice.weights.shape)
    return Choice(np.broadcast_to(choice.who, shape), jnp.broadcast_to(weights, (*shape, weights.shape[-1])))


def _structural(equation: Any, values: list[Any]) -> Table:
    """A table whose elements are moved or repeated, and their choices with them."""
    table, *others = values
    moved = _over_levels(equation, [table, *others], len(table.choices))
    return Table(moved, tuple(_moved(equation, choice, others) for choice in table.choices))


def _moved(equation: Any, choice: Choice, others: Sequence[Any]) -> Choice:
    with jax.ensure_compile_time_eval():
        who = np.asarray(_bind(equation, [jnp.asarray(choice.who), *others])[0])
    weights = jax.vmap(lambda w: _bind(equation, [w, *others])[0], in_axes=-1, out_axes=-1)(choice.weights)
    return Choice(who, weights)


def _concatenate(equation: Any, values: list[Any], tables: list[Table]) -> Table | None:
    axis = equation.params["dimension"]
    shapes = [value.shape if _is_table(value) else jnp.shape(value) for value in values]
    if all(shape[axis] == 1 for shape in shapes):  # the parts of an index
        choices = _union(tables)
        if _entries(choices) > _MOST_ENTRIES:
            return None
        full = [_aligned(v, choices).values if _is_table(v) else _constant(v, choices) for v in values]
        repeated = tuple(
            Choice(np.repeat(c.who, len(values), axis), jnp.repeat(c.weights, len(values), axis)) for c in choices
        )
        return Table(jnp.concatenate(full, axis), repeated)
    levels = {tuple(choice.weights.shape[-1] for choice in table.choices) for table in tables}
    if len(tables) < len(values) or len(levels) > 1:
        return None
    pieces = zip(*(table.choices for table in tables), strict=True)
    choices = tuple(
        Choice(np.concatenate([c.who for c in piece], axis), jnp.concatenate([c.weights for c in piece], axis))
        for piece in pieces
    )
    return Table(jnp.concatenate([table.values for table in tables], axis), choices)


def _constant(value: Any, choices: tuple[Choice, ...]) -> Array:
    levels = tuple(choice.weights.shape[-1] for choice in choices)
    value = jnp.asarray(value)
    return jnp.broadcast_to(value.reshape(*value.shape, *(1,) * len(levels)), (*value.shape, *levels))


def _look_up(equation: Any, operand: Any, index: Table) -> Table | None:
    """An array read at an index from a table."""
    if any((choice.who != choice.who[..., :1]).any() for choice in index.choices):
        return None
    values = _over_levels(equation, [operand, index], len(index.choices))
    shape, offsets = equation.outvars[0].aval.shape, equation.params["dimension_numbers"].offset_dims

    def spread(array: Any, trailing: int) -> Any:
        numpy = jnp if isinstance(array, jax.Array) else np
        return numpy.broadcast_to(numpy.expand_dims(array, offsets), (*shape, *array.shape[array.ndim - trailing :]))

    choices = tuple(Choice(spread(c.who[..., 0], 0), spread(c.weights[..., 0, :], 1)) for c in index.choices)
    return Table(values, choices)


def _number(table: Table) -> Float[Array, "*shape"]:
    """What a table stands for, linear in each one-hot vector.

    Its infinities are large numbers in gradients, and themselves at the states that have them.
    """
    dtype = jnp.result_type(table.values.dtype, table.choices[0].weights.dtype)
    values = table.values.astype(dtype)
    finite = jnp.nan_to_num(values, nan=-_FAR, posinf=_FAR, neginf=-_FAR)
    for choice in reversed(table.choices):
        spread = choice.weights.reshape(
            *table.shape, *(1,) * (finite.ndim - len(table.shape) - 1), choice.weights.shape[-1]
        )
        values = sum_levels(jnp.where(spread == 0, 0, values * spread))
        finite = sum_levels(finite * spread)
    if not jnp.issubdtype(table.values.dtype, jnp.floating):
        return finite  # XLA drops what is not used
    return finite + jax.lax.stop_gradient(jnp.where(jnp.isfinite(values), 0, values))


def _on_numbers(equation: Any, name: str, values: list[Any], wanted: Sequence[Any]) -> Sequence[Any]:
    """An operation on numbers, where integers among them have become floats."""
    if all(jnp.result_type(value) == dtype for value, dtype in zip(values, wanted, strict=True)):
        return _bind(equation, values)
    is_moved = name in _STRUCTURAL and all(map(_is_integer, values[1:]))  # by integers, which say where to
    if name not in _LINEAR or (name in _STRUCTURAL and not is_moved):
        raise NotMultilinear(f"`{name}` of integers")
    if name == "convert_element_type":
        to = equation.params["new_dtype"]
        return [values[0].astype(to) if jnp.issubdtype(to, jnp.floating) else values[0]]
    if is_moved:
        return _bind(equation, values)
    dtype = jnp.result_type(float)
    return _bind(equation, [v.astype(dtype) if _is_integer(v) else v for v in values])


def _is_integer(value: Any) -> bool:
    return not jnp.issubdtype(jnp.result_type(value), jnp.floating)
