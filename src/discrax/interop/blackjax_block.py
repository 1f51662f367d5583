"""A kernel of BlackJAX as a block of ours: it moves the continuous values of a mixed target while the sites stay."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from discrax.core.checks import describe, number
from discrax.core.extras import import_extra

_GIVEN = ("rng_key", "state", "logdensity_fn")  # what every kernel of BlackJAX takes
_TUNED = ("step_size", "inverse_mass_matrix")  # what warm-up finds where the user does not say


class Moved(NamedTuple):
    """Continuous values after a step of a block, and what the step was like."""

    z: Any
    log_prob: Float[Array, ""]
    accept_prob: Float[Array, ""]
    is_divergent: Bool[Array, ""]
    evals: Float[Array, ""]  # of the log-density and its gradient


class Block(eqx.Module):
    """A kernel of BlackJAX with its parameters; `from_blackjax` makes it."""

    init: Callable[..., Any] = eqx.field(static=True)
    build: Callable[..., Any] = eqx.field(static=True)
    parameters: dict[str, Any]
    tuned: tuple[str, ...] = eqx.field(static=True)  # the parameters that warm-up finds
    rate: float = eqx.field(static=True)  # the acceptance rate that it wants

    @property
    def words(self) -> tuple[Any, ...]:
        """What tells it from others, in another process too."""
        name = getattr(self.build, "__qualname__", type(self.build).__name__)
        return self.build.__module__, name, self.parameters, self.tuned, self.rate

    def sized(self, num_values: int) -> "Block":
        """With first guesses of what warm-up tunes, for so many continuous values."""
        guesses = {"step_size": jnp.ones(()), "inverse_mass_matrix": jnp.ones(num_values)}
        return self.with_parameters(**{name: guesses[name] for name in self.tuned if name not in self.parameters})

    def with_parameters(self, **values: Any) -> "Block":
        """With other values of some parameters."""
        return Block(self.init, self.build, self.parameters | values, self.tuned, self.rate)

    def step(self, key: PRNGKeyArray, z: Any, density: Callable[[Any], Array]) -> Moved:
        """One step from the values z by their log-density."""
        state = self.init(z, density)
        after, info = self.build()(key, state, density, **self.parameters)
        steps = getattr(info, "num_integration_steps", 1)
        return Moved(
            after.position,
            after.logdensity,
            jnp.asarray(getattr(info, "acceptance_rate", 1.0), jnp.float32),
            jnp.asarray(getattr(info, "is_divergent", False), bool),
            jnp.asarray(steps, jnp.float32) + 1,
        )


def from_blackjax(algorithm: Any, *, rate: float = 0.8, **parameters: Any) -> Block:
    """A kernel of BlackJAX as a block that moves the continuous values of a `Mixed` target.

    Args:
        algorithm: "nuts", `blackjax.hmc`, or any other whose `init` takes a position and a log-density.
        rate: the acceptance rate to which warm-up tunes `step_size`.
        parameters: of its step, such as `num_integration_steps=10` for `blackjax.hmc`. Warm-up finds `step_size` and
            `inverse_mass_matrix` (the diagonal) where they are not given; all others must be.
    """
    package = import_extra("blackjax", "A kernel of BlackJAX needs", "blackjax")
    if isinstance(algorithm, str):
        if not hasattr(getattr(package, algorithm, None), "build_kernel"):
            raise ValueError(f"algorithm must be one of BlackJAX's, such as 'nuts' or 'hmc', but got {algorithm!r}.")
        algorithm = getattr(package, algorithm)
    if not (hasattr(algorithm, "init") and hasattr(algorithm, "build_kernel")):
        raise TypeError(f"algorithm must be one of BlackJAX's, such as blackjax.nuts, but got {describe(algorithm)}.")
    number("rate", rate, above=0, below=1)
    takes = inspect.signature(algorithm.init).parameters
    if list(takes)[:2] != ["position", "logdensity_fn"] or not all(_is_optional(it) for it in list(takes.values())[2:]):
        raise ValueError(
            "A block starts anew from a position and a log-density at every step, but this algorithm's init takes "
            f"{', '.join(takes)}; use one that keeps nothing else between steps, such as blackjax.nuts."
        )
    takes = inspect.signature(algorithm.build_kernel()).parameters
    known = {name: it for name, it in takes.items() if name not in _GIVEN}
    for name in parameters:
        if name not in known:
            raise ValueError(f"The algorithm takes {', '.join(known)}, but not {name}.")
    tuned = tuple(name for name in _TUNED if name in known and name not in parameters)
    missing = [name for name, it in known.items() if not (_is_optional(it) or name in parameters or name in tuned)]
    if missing:
        raise ValueError(f"from_blackjax needs {', '.join(missing)} of this algorithm.")
    values = {name: _leaf(value) for name, value in parameters.items()}
    return Block(algorithm.init, algorithm.build_kernel, values, tuned, float(rate))


def _is_optional(parameter: inspect.Parameter) -> bool:
    return parameter.default is not parameter.empty


def _leaf(value: Any) -> Any:
    """Real numbers are leaves, so that other values share a program; whole numbers and functions are part of it."""
    if callable(value) or isinstance(value, bool | int | str):
        return value
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), value)
