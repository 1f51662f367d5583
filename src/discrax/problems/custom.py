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
from discrax.core.target import Target, embedding_of
from discrax.problems.problem import Problem

Function = Callable[[Array], Any]

_STATES_AT_ONCE = 64
_SITES_AT_ONCE = 4  # whose changes are tried side by side in repair


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
    which may end at a state that is not feasible; where the totals of the space are bounded, nothing is changed. A
    state whose objective is NaN or infinite is not feasible either.

    The functions are traced here: what they read from elsewhere may change later, the problem does not.
    """

    function: Function  # as it was given
    _space: Space
    _objective: "_Traced"
    _violations: "_Traced | None"
    repair_function: Callable[[np.ndarray], Any] | None
    sense: str
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
        objective = _traced("objective", function, space)
        forbidden = None if violations is None else _traced("violations", violations, space)
        vars(self).update(function=function, _space=space, _objective=objective, _violations=forbidden)
        vars(self).update(repair_function=repair, sense=sense, penalty=penalty)

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
        found = _in_double_precision(self._violations, self.space, x)
        if (found < 0).any():
            raise ValueError(f"The violations of a state must not be negative, but of some they are {found.min():g}.")
        return found

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        return self.repair_in_time(x, lambda: False)

    def repair_in_time(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        if self.is_feasible(x).all():
            return np.array(x)
        if self.repair_function is None and self.space.totals is not None:
            return np.array(x)
        if self.repair_function is None:
            return self._with_fewer_violations(x, is_over)
        repaired = np.asarray(self.repair_function(np.array(x)))
        try:
            self.space.check(repaired)
            if repaired.shape != np.shape(x):
                raise ValueError(f"Expected one state, but got an array of shape {repaired.shape}.")
        except ValueError as error:
            raise ValueError(f"repair must return the codes of a state, but: {error}") from None
        return repaired.astype(self.space.dtype)

    def _with_fewer_violations(
        self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]
    ) -> Integer[np.ndarray, " n"]:
        """Some sites at a time, the best of their changes is made if it lowers the violations, until none does."""
        space, x = self.space, np.array(x, self.space.dtype)
        free = np.arange(len(x)) if space.frozen is None else np.flatnonzero(~np.asarray(space.frozen.mask))
        if not len(free):
            return x
        count = min(_SITES_AT_ONCE, len(free))
        place, num_in_vain = 0, 0
        while num_in_vain < len(free) and not is_over():
            sites = free[(place + np.arange(count)) % len(free)]
            place, num_in_vain = place + count, num_in_vain + count
            gains = np.array(self._violation_gains(jnp.asarray(x), jnp.asarray(sites)), np.float64)
            site, shift = np.unravel_index(np.argmax(np.nan_to_num(gains, nan=-np.inf)), gains.shape)
            if gains[site, shift] > 0:
                x[sites[site]] = (int(x[sites[site]]) + 1 + shift) % int(space.levels_at(sites[site]))
                num_in_vain = 0
        return x

    @cached_property
    def _violation_gains(self) -> Callable[[Array, Array], Array]:
        """By how much the violations fall if the code of one of the sites grows by 1, 2, ... (modulo the levels)."""
        assert self._violations is not None
        space, violations = self.space, self._violations.single

        def value(x: Array) -> Array:
            return _as_float(violations(space.embed(x)))

        def gains(x: Array, sites: Array) -> Array:
            shifts = jnp.arange(1, max(space.num_levels, 2), dtype=jnp.int32)

            def changed(site: Array, shift: Array) -> Array:
                code = (x[site].astype(jnp.int32) + shift) % space.levels_at(site)
                return value(x.at[site].set(code.astype(space.dtype)))

            at_site = jax.vmap(changed, in_axes=(None, 0))
            return value(x) - jax.vmap(at_site, in_axes=(0, None))(sites, shifts)

        return jax.jit(gains)

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
    returned: list[Any] = []
    try:
        jax.eval_shape(lambda e: returned.append(function(e)), e)
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0]
        raise TypeError(
            f"The {name} must be a function that JAX can trace, but on an array of shape {e.shape} it raises "
            f"{type(error).__name__}: {first_line} Write it with jax.numpy (jnp.where in place of if)."
        ) from error
    (value,) = returned
    if isinstance(value, bool | int | float | complex):
        value = np.asarray(value)
    if getattr(value, "shape", None) != ():
        raise ValueError(
            f"The {name} must return one number, but on an array of shape {e.shape} it returns "
            f"{f'shape {value.shape}' if hasattr(value, 'shape') else type(value).__name__}."
        )
    if value.dtype != bool and not any(jnp.issubdtype(value.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise ValueError(f"The {name} must return a real number, but it returns {value.dtype}.")
