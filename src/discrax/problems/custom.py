"""A problem from a function: anything that JAX can trace.

For an objective f and violations v >= 0 of the embedding e of a state, the search climbs

    f(e) - penalty * v(e)        or        -f(e) - penalty * v(e),

whichever way is better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.checks import number
from discrax.core.closures import capture
from discrax.core.space import Space, check_space
from discrax.core.target import Target, embedding_of, exact_evaluation
from discrax.problems.problem import Problem

Function = Callable[[Array], Any]

_STATES_AT_ONCE = 64


class _Penalised(eqx.Module):
    objective: Function
    violations: Function | None
    sign: float = eqx.field(static=True)
    penalty: float = eqx.field(static=True)

    def __call__(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        value = self.sign * _as_float(self.objective(e))
        return value if self.violations is None else value - self.penalty * _as_float(self.violations(e))


def _as_float(value: Any) -> Float[Array, ""]:
    return jnp.asarray(value, jnp.result_type(float))


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Custom(Problem):
    """A problem over a space with one axis of sites.

    `function` and `violations` map the embedding of a state (float, shape `(n,)`, or `(n, levels)` on a Categorical
    space) to a number; they are traced by JAX, so that a search can run on a device. `violations` is 0 where a state
    is feasible and positive elsewhere; `penalty` is its price. `repair` is a plain Python function from a state's
    codes to those of a feasible state. Without it, single sites are changed as long as that lowers the violations,
    which may end at a state that is not feasible. A state whose objective is NaN or infinite is not feasible either.

    The functions are traced here: what they read from elsewhere may change later, the problem does not.
    """

    function: Function  # as it was given
    _space: Space
    _objective: "_Traced"
    _violations: "_Traced | None"
    repair_function: Callable[[np.ndarray], Any] | None
    sense: str  # pyright: ignore[reportIncompatibleVariableOverride]
    penalty: float

    def __init__(
        self,
        function: Function,
        space: Space,
        *,
        violations: Function | None = None,
        repair: Callable[[np.ndarray], Any] | None = None,
        sense: str = "max",
        penalty: float = 1.0,
    ):
        check_space(space)
        if len(space.shape) != 1:
            raise ValueError(
                f"A problem has one axis of sites, but the space has shape {space.shape}; give it "
                f"{space.num_sites} sites and reshape inside the function."
            )
        if sense not in ("max", "min"):
            raise ValueError(f'sense must be "max" or "min", but got {sense!r}.')
        penalty = number("penalty", penalty, above=0)
        if repair is not None and not callable(repair):
            raise TypeError(f"repair must be a function of a state's codes, but got {type(repair).__name__}.")
        vars(self).update(
            function=function,
            _space=space,
            _objective=_traced("objective", function, space),
            _violations=None if violations is None else _traced("violations", violations, space),
            repair_function=repair,
            sense=sense,
            penalty=penalty,
        )

    @property
    def space(self) -> Space:
        return self._space

    @cached_property
    def target(self) -> Target:
        sign = 1.0 if self.sense == "max" else -1.0
        violations = None if self._violations is None else self._violations.single
        return Target.from_log_prob(_Penalised(self._objective.single, violations, sign, self.penalty), self.space)

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        return _in_double_precision(self._objective, self.space, x)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        if self._violations is None:
            return np.zeros(np.shape(x)[:-1])
        return _in_double_precision(self._violations, self.space, x)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        if self.is_feasible(x).all():
            return np.array(x)
        if self.repair_function is None:
            return self._with_fewer_violations(x)
        repaired = np.asarray(self.repair_function(np.array(x)))
        try:
            self.space.check(repaired)
            if repaired.shape != np.shape(x):
                raise ValueError(f"Expected one state, but got an array of shape {repaired.shape}.")
        except ValueError as error:
            raise ValueError(f"repair must return the codes of a state, but: {error}") from None
        return repaired.astype(self.space.dtype)

    def _with_fewer_violations(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        x = np.array(x)
        is_frozen = np.zeros(len(x), bool) if self.space.frozen is None else np.asarray(self.space.frozen.mask)
        while True:
            ratios = np.array(self._violation_ratios(jnp.asarray(x, self.space.dtype)), np.float64)
            ratios[is_frozen] = 0
            best = np.unravel_index(np.argmax(ratios), ratios.shape)
            if not ratios[best] > 0:
                return x
            x[best[0]] = 1 - x[best[0]] if self.space.has_two_levels else best[1]

    @cached_property
    def _violation_ratios(self) -> Callable[[Array], Array]:
        """How much each single-site change lowers the violations."""
        assert self._violations is not None
        lacking = Target.from_log_prob(_Penalised(self._violations.single, None, -1.0, 1.0), self.space)
        return jax.jit(lambda x: exact_evaluation(lacking, x).ratios)

    def start(self, generator: np.random.Generator, num_chains: int) -> Integer[np.ndarray, "chains n"]:
        space = self.space
        x = generator.integers(0, space.num_levels, (num_chains, space.num_sites)).astype(space.dtype)
        return x if space.frozen is None else np.where(space.frozen.mask, space.frozen.codes, x)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Custom({name}, {type(self.space).__name__} of {self.space.num_sites:,} sites, {self.sense})"


class _Traced(NamedTuple):
    """A function as it was when the problem was stated, in the precision of searches and in double."""

    single: Function
    double: Function


def _traced(name: str, function: Any, space: Space) -> _Traced:
    _check_traceable(name, function, space)
    with jax.enable_x64(True):
        double = capture(function, embedding_of(space))
    return _Traced(capture(function, embedding_of(space)), double)


def _in_double_precision(traced: _Traced, space: Space, x: np.ndarray) -> Float[np.ndarray, "*batch"]:
    x = np.asarray(x)
    with jax.enable_x64(True):
        values = _values(traced.double, space, jnp.asarray(x.reshape(-1, x.shape[-1]), space.dtype))
        return np.asarray(values, np.float64).reshape(x.shape[:-1])


@eqx.filter_jit
def _values(function: Function, space: Space, x: Integer[Array, "states n"]) -> Float[Array, " states"]:
    return jax.lax.map(lambda state: _as_float(function(space.embed(state))), x, batch_size=_STATES_AT_ONCE)


def _check_traceable(name: str, function: Any, space: Space) -> None:
    if not callable(function):
        raise TypeError(f"The {name} must be a function of the embedding, but got {type(function).__name__}.")
    e = embedding_of(space)
    try:
        value = jax.eval_shape(lambda e: function(e), e)  # an object may be callable and not hashable
    except Exception as error:
        raise TypeError(
            f"The {name} must be a function that JAX can trace, but on an array of shape {e.shape} it raises "
            f"{type(error).__name__}: {_first_line(error)} Write it with jax.numpy (jnp.where in place of if)."
        ) from error
    if getattr(value, "shape", None) != ():
        raise ValueError(
            f"The {name} must return one number, but on an array of shape {e.shape} it returns "
            f"{f'shape {value.shape}' if hasattr(value, 'shape') else type(value).__name__}."
        )
    if not (jnp.issubdtype(value.dtype, jnp.floating) or jnp.issubdtype(value.dtype, jnp.integer)) and (
        value.dtype != bool
    ):
        raise ValueError(f"The {name} must return a real number, but it returns {value.dtype}.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
