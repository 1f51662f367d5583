"""Indicators of a PyMC model and the coefficients that they switch on, moved together: see `pairs`."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from discrax.core.checks import describe
from discrax.interop import pairs
from discrax.interop.paired import find_pairs
from discrax.interop.pymc_model import conditional
from discrax.interop.variables import Variables

Values = Mapping[str, Any]  # of the value variables of a model, by name


class PairsOfModel:
    """The pairs of a model; `rest` are the discrete variables that are in none."""

    def __init__(self, model: Any, given: Mapping[str, str], block: Variables):
        if not isinstance(given, Mapping):
            raise TypeError(f"pairs must be {{discrete variable: continuous variable}}, but got {describe(given)}.")
        start = model.initial_point()
        discrete = {value.name for value in model.discrete_value_vars}
        continuous = {name: value for name, value in start.items() if name not in discrete}
        paired, self.rest = find_pairs(given, block, continuous)
        assert paired is not None
        self.paired, self.names = paired, (*paired.sites.names, *paired.coefficients)
        self._others = [value.name for value in model.value_vars if value.name not in paired.sites.names]
        self._law = conditional(model, [model[name] for name in paired.sites.names])
        with jax.enable_x64(True):
            self.paired.check(self._density(), start)

    def _density(self) -> Callable[[Values, Values], Float[Array, ""]]:
        """The log-density of indicators given all other values."""
        return lambda values, z: self._by_numbers(jnp.asarray(self.paired.sites.codes(values), float), z)

    def _by_numbers(self, g: Float[Array, " n"], z: Values) -> Float[Array, ""]:
        """The same, with a gradient by the indicators."""
        return self._law([z[name] for name in self._others], g)

    @eqx.filter_jit
    def move(
        self, point: Values, center: Float[Array, " n"], bits: UInt32[np.ndarray, "2"], num_steps: int
    ) -> tuple[Values, Float[Array, " n"], Array, Array]:
        """New values of the pairs, as products too, with what probability they were accepted, and the flips made."""
        paired = self.paired
        z = {name: jnp.asarray(point[name]) for name in self._others}
        key = jax.random.wrap_key_data(jnp.asarray(bits), impl="threefry2x32")
        f = paired.density(self._density(), z)
        g, s = paired.vectors({name: jnp.asarray(point[name]) for name in paired.sites.names}, z)
        odds = jax.grad(lambda g: self._by_numbers(g, paired.without(z)))(jnp.zeros_like(g))
        new_g, s, decision = pairs.move(key, f, pairs.expand(f, odds, center), g, s, num_steps, redraws=True)
        indicators, coefficients = paired.named(new_g, s)
        return {**indicators, **coefficients}, new_g * s, decision.accept_prob, jnp.sum(new_g != g)
