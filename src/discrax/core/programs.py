"""Compiled programs, kept by what they compute.

A program is found in two ways. By *identity*: same function, same static parts, same shapes, types and devices; that
costs nothing and is sound for code that cannot change under us. A user's functions and classes can: they read globals
and closures. So each call of a verb (`reads_user_code`) traces them anew and finds the program by its *code*, the
lowered text, which says all that it computes; only code that is new is compiled.
"""

import hashlib
import itertools
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from discrax.core.program_cache import keep_programs

_MOST_PROGRAMS = 128
_FIXED = {"discrax", "jax", "jaxlib", "numpy", "equinox", "optax", "builtins", "collections", "typing"}
_programs: OrderedDict[Any, Callable] = OrderedDict()  # by identity
_executables: OrderedDict[Any, Callable] = OrderedDict()  # by code
_locks: dict[Any, threading.Lock] = {}
_readings = itertools.count(1)
_reading: ContextVar[int] = ContextVar("reading", default=0)

if "ipykernel" in sys.modules:  # a notebook
    keep_programs()


@contextmanager
def reads_user_code() -> Iterator[None]:
    """Decorates a verb: functions and classes of the user are traced anew in it, once; verbs it calls share that."""
    if _reading.get():
        yield
        return
    token = _reading.set(next(_readings))
    try:
        yield
    finally:
        _reading.reset(token)


def compiled(
    function: Callable, arguments: tuple, settings: dict[str, Any], axes: Any = None
) -> tuple[Callable, float]:
    """`function(*arguments, **settings)` compiled ahead of time, and the seconds that took (0 if it had been before).

    Arrays are arguments of the program and everything else is part of it, so new parameters or tuned values never
    compile again. With `axes`, a tree like the arguments with an axis or None for each array, or for all arrays below
    a node, the program is the same function of each place along these axes.
    """
    arrays, static = eqx.partition(arguments, _is_array)
    leaves, structure = jax.tree.flatten(arrays)
    static_leaves, static_structure = jax.tree.flatten(static)
    shapes = tuple((leaf.shape, str(leaf.dtype), bool(getattr(leaf, "weak_type", False))) for leaf in leaves)
    place = (shapes, _devices(leaves), jnp.result_type(float), jax.config.jax_default_matmul_precision)  # ty: ignore[missing-attribute]
    axes = None if axes is None else tuple(_axis_of_each(axes, arrays))
    identity = (
        function,
        structure,
        static_structure,
        tuple(map(_hashable, static_leaves)),
        tuple(sorted(settings.items())),
        axes,
        place,
        _reading.get() if _has_user_code((arguments, settings)) else None,
    )
    begin = time.perf_counter()
    with _locks.setdefault(identity, threading.Lock()):  # a thread that wants the same program waits for it
        if identity in _programs:
            _programs.move_to_end(identity)
            return _programs[identity], 0.0
        program = _programs[identity] = _compile(function, arrays, static, settings, axes, place)
    while len(_programs) > _MOST_PROGRAMS:
        _locks.pop(_programs.popitem(last=False)[0], None)
    while len(_executables) > _MOST_PROGRAMS:
        _executables.popitem(last=False)
    return program, time.perf_counter() - begin


def _compile(
    function: Callable,
    arrays: Any,
    static: Any,
    settings: dict[str, Any],
    axes: tuple[int | None, ...] | None,
    place: tuple,
) -> Callable:
    leaves, structure = jax.tree.flatten(arrays)
    returned: dict[str, Any] = {}  # what tracing finds beside the arrays

    def call(*leaves: Any) -> list[Any]:
        out = function(*eqx.combine(jax.tree.unflatten(structure, leaves), static), **settings)
        out_arrays, returned["static"] = eqx.partition(out, eqx.is_array)
        out_leaves, returned["structure"] = jax.tree.flatten(out_arrays)
        return out_leaves

    flat = call if axes is None else jax.vmap(call, in_axes=axes)

    # Unused arguments stay: two programs of one text must take their arrays in the same places.
    lowered = jax.jit(flat, keep_unused=True).lower(*leaves)
    execute = _executable(lowered, place)

    def run(arguments):
        out = execute(*jax.tree.leaves(eqx.filter(arguments, _is_array)))
        return eqx.combine(jax.tree.unflatten(returned["structure"], out), returned["static"])

    return run


def _executable(lowered: Any, place: tuple) -> Callable:
    text = lowered.as_text()
    if "callback" in text:  # it names a Python function by an address, which may become another's
        return lowered.compile()
    types = [(out.shape, str(out.dtype), bool(getattr(out, "weak_type", False))) for out in lowered.out_info]
    code = (hashlib.sha256(text.encode()).digest(), tuple(types), place)
    if code not in _executables:
        _executables[code] = lowered.compile()
    _executables.move_to_end(code)
    return _executables[code]


class _ById:
    """Stands for an object that has no hash, and keeps it alive as long as it does."""

    def __init__(self, it: Any):
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.it is self.it


def _hashable(leaf: Any) -> Any:
    try:
        hash(leaf)
    except TypeError:
        return _ById(leaf)
    return leaf


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _devices(leaves: list[Any]) -> tuple:
    """Where a program would run: where its arrays were put, else on the default device."""
    placed = {leaf.sharding for leaf in leaves if isinstance(leaf, jax.Array) and leaf.committed}
    return frozenset(placed), jax.config.jax_default_device, jax.default_backend()  # ty: ignore[missing-attribute]


def _has_user_code(tree: Any) -> bool:
    """Whether a class or a function in it was written outside of the libraries that cannot change under us."""
    found = False

    def look(node: Any) -> bool:
        nonlocal found
        found = found or _is_users(node)
        if isinstance(node, eqx.Module) and not found:  # static fields are no nodes of the tree
            found = any(callable(value) and _is_users(value) for value in vars(node).values())
        return False

    jax.tree.leaves(tree, is_leaf=look)
    return found


def _is_users(node: Any) -> bool:
    written = type(node).__module__ if not hasattr(node, "__qualname__") else node.__module__
    return (written or "").partition(".")[0] not in _FIXED


def _axis_of_each(axes: Any, arrays: Any) -> list[int | None]:
    """The axis of every leaf of `arrays`, in the order of its leaves."""
    found: list[int | None] = []
    is_end = lambda node: node is None or isinstance(node, int)  # noqa: E731
    jax.tree.map(lambda axis, below: found.extend([axis] * len(jax.tree.leaves(below))), axes, arrays, is_leaf=is_end)
    return found
