"""Numbers that change with the step t of a chain: step sizes and temperatures."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core.checks import leaf_number, number

Schedule = Callable[[Float[Array, ""]], Float[Array, ""]]


def _leaf(value: Any) -> Float[Array, ""]:
    return leaf_number("A number of a schedule", value).astype(jnp.float32)


def _positive(value: Any) -> Float[Array, ""]:
    return leaf_number("A number of this schedule", value, above=0).astype(jnp.float32)


class Constant(eqx.Module):
    """value"""

    value: Float[Array, ""] = eqx.field(converter=_leaf)

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.value


class Exponential(eqx.Module):
    """exp(log_value), which may be too small or too large for a float: samplers that can ask for the logarithm"""

    log_value: Float[Array, ""] = eqx.field(converter=_leaf)

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.exp(self.log_value)

    def log(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The logarithm of the value at a step."""
        return self.log_value


class Power(eqx.Module):
    """max((scale / (offset + t)) ** exponent, floor)"""

    scale: Float[Array, ""] = eqx.field(converter=_positive)
    offset: Float[Array, ""] = eqx.field(converter=_positive)
    floor: Float[Array, ""] = eqx.field(converter=_positive)
    exponent: Float[Array, ""] = eqx.field(converter=_positive, default=0.5)

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.maximum((self.scale / (self.offset + t)) ** self.exponent, self.floor)

    @property
    def steps_to_floor(self) -> int:
        """After so many steps it no longer changes; draws for averages should begin there."""
        return max(0, int(np.ceil(float(self.scale) / float(self.floor) ** (1 / float(self.exponent)) - self.offset)))


class Geometric(eqx.Module):
    """max(start * rate ** t, floor)"""

    start: Float[Array, ""] = eqx.field(converter=_positive)
    rate: Float[Array, ""] = eqx.field(converter=_positive)
    floor: Float[Array, ""] = eqx.field(converter=_positive, default=1e-30)

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.maximum(self.start * self.rate**t, self.floor)


def log_of(schedule: Schedule, t: Float[Array, ""]) -> Float[Array, ""]:
    """The logarithm of a schedule at a step; computed as such where that is more exact."""
    return schedule.log(t) if isinstance(schedule, Exponential) else jnp.log(schedule(t))


def as_schedule(name: str, value: float | Schedule) -> Schedule:
    """A positive number, or a function of t that is positive at the start."""
    schedule = value if callable(value) else Constant(number(name, value, above=0))
    if isinstance(schedule, Exponential):
        return schedule
    first = np.asarray(schedule(jnp.zeros((), jnp.float32)))
    if first.shape != () or not np.isfinite(first) or first <= 0:
        raise ValueError(f"{name} must be a positive number, or a schedule of such, but got {first} at step 0.")
    return schedule  # ty: ignore[invalid-return-type]
