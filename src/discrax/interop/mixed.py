"""Mixed targets: discrete sites x and continuous values z with one log-probability, log pi(x, z).

Given z, it is a target of the sites like any other (`Mixed.given`); given x, a density of the values (`Mixed.density`).
`discrax.interop.blackjax.sample_mixed` alternates between the two.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.checks import describe, in_words
from discrax.core.closures import capture
from discrax.core.sites import checked_shape
from discrax.core.space import Space, check_space
from discrax.core.target import Target, check_log_prob, embedding_of

Shape = int | Sequence[int]


class Given(Target):
    """log pi(x, z) as a target of the sites, at the values z."""

    function: Callable[[Array, Any], Array]
    z: Any
    space: Space

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.function(e, self.z)


class Mixed(Target):
    """log pi(x, z) of the sites x of a space and of continuous values z in R^n, as it is now: it is traced here, once.

    Args:
        discrete: the space of the sites.
        continuous: a shape, or a dictionary of names and shapes; `()` is one number.
        log_prob: a function of the embedding of x and of z: an array of that shape, or a dictionary of arrays. It must
            have a gradient in z, and z must be free to be any real number.
    """

    space: Space
    function: Callable[[Array, Any], Array]
    zeros: Any  # values z of the right shapes and types

    def __init__(
        self,
        *,
        discrete: Space,
        continuous: Shape | Mapping[str, Shape],
        log_prob: Callable[[Array, Any], Array],
    ):
        check_space(discrete)
        if not callable(log_prob):
            raise TypeError(f"log_prob must be a function of the embedding and of z, but got {describe(log_prob)}.")
        self.space = discrete
        self.zeros = _zeros(continuous)
        check_log_prob(lambda e: log_prob(e, self.zeros), discrete)
        self.function = capture(log_prob, embedding_of(discrete), self.zeros)
        try:
            jax.eval_shape(jax.grad(self.function, argnums=1), embedding_of(discrete), self.zeros)
        except Exception as error:
            raise ValueError(f"log_prob must have a gradient in z, but JAX says {in_words(error)}") from error

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """A sentence: without z it is not known."""
        raise TypeError(
            "a mixed target has continuous values too: sample it by discrax.interop.blackjax.sample_mixed, or fix them "
            "by mixed.given(z)"
        )

    def given(self, z: Any) -> Given:
        """The target of the sites at the values z."""
        return Given(function=self.function, z=z, space=self.space)

    def density(self, x: Integer[Array, "*shape"]) -> Callable[[Any], Float[Array, ""]]:
        """log pi(x, z) as a function of z, at the codes x."""
        e = self.space.embed(x)
        return lambda z: self.function(e, z)

    def values(self, z: Any, num_chains: int) -> Any:
        """Values z of every chain, checked: from one z or from one a chain."""
        expected, got = jax.tree.structure(self.zeros), jax.tree.structure(z)
        if expected != got:
            raise ValueError(f"z must be {_words(self.zeros)}, but got {describe(z)}.")

        def of_chains(zero: Array, value: Any) -> Array:
            value, shapes = np.asarray(value), (zero.shape, (num_chains, *zero.shape))
            if value.shape not in shapes:
                raise ValueError(f"z must have shape {shapes[0]} or {shapes[1]}, but has shape {value.shape}.")
            return jnp.broadcast_to(jnp.asarray(value, zero.dtype), shapes[1])

        return jax.tree.map(of_chains, self.zeros, z)

    def named(self, z: Any) -> dict[str, Any]:
        """Values z by name; those of a single shape are called "z"."""
        return z if isinstance(z, dict) else {"z": z}


def _zeros(continuous: Any) -> Any:
    if isinstance(continuous, Mapping):
        if not continuous:
            raise ValueError("continuous names no values; without any, use discrax.Target.from_log_prob.")
        odd = [name for name in continuous if not isinstance(name, str) or name == "x"]
        if odd:
            raise ValueError(f"Continuous values have names other than 'x', which are the sites, but got {odd[0]!r}.")
        return {name: _zeros(shape) for name, shape in continuous.items()}
    is_number = isinstance(continuous, Sequence) and not continuous
    return jnp.zeros(() if is_number else checked_shape(continuous), jnp.result_type(float))


def _words(zeros: Any) -> str:
    if isinstance(zeros, dict):
        return "a dictionary of " + ", ".join(f"{name!r} of shape {zero.shape}" for name, zero in zeros.items())
    return f"an array of shape {zeros.shape}"
