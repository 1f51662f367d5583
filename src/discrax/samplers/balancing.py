"""Weight functions g of a probability ratio t: how much an informed proposal favours likely neighbours.

Each maps l = log t to log g(t). Balanced functions satisfy g(t) = t g(1/t); t^alpha does so at alpha = 1/2 only.
Samplers are exact with any of them.
"""

import difflib
from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from discrax.core.checks import in_words, leaf_number

Balancing = Callable[[Float[Array, "..."]], Float[Array, "..."]]


def log_sqrt(log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
    """g(t) = sqrt(t)"""
    return log_ratio / 2


def log_ratio_weight(log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
    """g(t) = t / (1 + t), Barker's"""
    return -jax.nn.softplus(-log_ratio)


def log_min(log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
    """g(t) = min(1, t)"""
    return jnp.minimum(log_ratio, 0)


def log_max(log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
    """g(t) = max(1, t)"""
    return jnp.maximum(log_ratio, 0)


class Power(eqx.Module):
    """g(t) = t^alpha"""

    alpha: Float[Array, ""] = eqx.field(converter=lambda a: leaf_number("alpha", a).astype(jnp.float32), default=0.5)

    def __call__(self, log_ratio: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.alpha.astype(log_ratio.dtype) * log_ratio


WEIGHT_FUNCTIONS: dict[str, Callable[[], Balancing]] = {
    "sqrt": lambda: log_sqrt,
    "ratio": lambda: log_ratio_weight,
    "min": lambda: log_min,
    "max": lambda: log_max,
    "power": Power,
}


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ValueError:
    """The error for a name that is not in a list, with the nearest ones that are."""
    nearest = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
    return ValueError(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(sorted(known))}.")


def get_balancing(balancing: str | Balancing) -> Balancing:
    """A weight function by name, or any function from log t to log g(t)."""
    if callable(balancing):
        try:
            value = jax.eval_shape(lambda log_ratio: balancing(log_ratio), jax.ShapeDtypeStruct((3,), jnp.float32))
        except Exception as error:
            raise ValueError(
                f"A weight function maps an array log t to log g(t), but this one raises {in_words(error)}"
            ) from error
        if getattr(value, "shape", None) != (3,) or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(
                f"A weight function maps log t to as many real numbers log g(t), but of three it made {value}."
            )
        return balancing  # ty: ignore[invalid-return-type]
    if not isinstance(balancing, str):
        raise TypeError(f"A weight function is a name or a function from log t to log g(t), but got {balancing!r}.")
    if balancing not in WEIGHT_FUNCTIONS:
        raise unknown_name("weight function", balancing, WEIGHT_FUNCTIONS)
    return WEIGHT_FUNCTIONS[balancing]()
