"""Indicators of a model and the coefficients that they switch on, by name, as the vectors that `pairs` moves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from discrax.core.checks import describe
from discrax.interop import pairs
from discrax.interop.variables import Variables

_STATES_TRIED = 8
Some = TypeVar("Some", bound=Variables)
LogDensity = Callable[[Mapping[str, Array], Mapping[str, Array]], Array]  # of discrete values and of continuous ones


class Paired(NamedTuple, Generic[Some]):
    """Variables of indicators, each with one of coefficients."""

    sites: Some
    coefficients: tuple[str, ...]

    def vectors(self, values: Mapping[str, Array], z: Mapping[str, Array]) -> tuple[Array, Array]:
        """Indicators and coefficients, one after another."""
        s = jnp.concatenate([jnp.reshape(z[name], -1) for name in self.coefficients])
        return jnp.asarray(self.sites.codes(values), s.dtype), s

    def named(self, g: Array, s: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        """The values that the model has of them."""
        parts = self.sites.split(s)
        return self.sites.values(g), dict(zip(self.coefficients, parts, strict=True))

    def density(self, log_density: LogDensity, z: Mapping[str, Array]) -> pairs.LogDensity:
        """f(g, s), given the other sites."""

        def f(g: Array, s: Array) -> Array:
            values, coefficients = self.named(g, s)
            return log_density(values, {**z, **coefficients})

        return f

    def without(self, z: Mapping[str, Array]) -> dict[str, Array]:
        """Continuous values where all coefficients are 0, so that indicators have their prior's odds."""
        return {**z, **{name: jnp.zeros_like(z[name]) for name in self.coefficients}}

    def check(self, log_density: LogDensity, z: Mapping[str, Array]) -> None:
        """An error where the model is not of the form that pairs need, at states of them at random."""
        rng, shape = np.random.default_rng(0), (_STATES_TRIED, self.sites.space.num_sites)
        g, s = rng.integers(2, size=shape).astype(float), rng.normal(size=shape)
        misfit = lambda z, g, s: jax.lax.map(lambda each: pairs.misfit(self.density(log_density, z), *each), (g, s))  # noqa: E731
        off, size = jax.jit(misfit)(z, jnp.asarray(g), jnp.asarray(s))
        if not jnp.all(off <= 1e-3 * (1 + size)):
            raise ValueError(
                f"pairs takes indicators that the model has as a factor of their coefficients and nowhere else but in "
                f"their prior, as in {self.sites.names[0]} * {self.coefficients[0]}, but the log-density is up to "
                f"{float(jnp.max(off)):.3g} from such a form at states at random; leave pairs out, or write the model "
                "with the product."
            )


def find_pairs(given: Mapping[str, str], sites: Some, others: Mapping[str, Any]) -> tuple[Paired[Some] | None, Some]:
    """The pairs among the sites of a model, and the sites that are in none; `others` are its continuous values."""
    if not given:
        return None, sites
    for name, coefficient in given.items():
        if name not in sites.names or coefficient not in others:
            raise ValueError(
                "pairs has names of indicators and of their coefficients, {discrete site: continuous site}, but the "
                f"model has the discrete sites {_listed(sites.names)} and the continuous ones {_listed(others)}, and "
                f"got {{{name!r}: {coefficient!r}}}."
            )
        at = sites.names.index(name)
        if (sites.lows[at] != 0).any() or (sites.counts[at] != 2).any():
            raise ValueError(f"pairs takes indicators, which are 0 or 1, but {name!r} has other values too.")
        if jnp.shape(others[coefficient]) != sites.lows[at].shape:
            raise ValueError(
                f"Each indicator needs one coefficient, but {name!r} has the shape {sites.lows[at].shape} and "
                f"{coefficient!r} {jnp.shape(others[coefficient])}."
            )
    inside = [i for i, name in enumerate(sites.names) if name in given]
    outside = [i for i, name in enumerate(sites.names) if name not in given]
    coefficients = tuple(given[sites.names[i]] for i in inside)
    if len(set(coefficients)) < len(coefficients):
        raise ValueError(f"A coefficient has one indicator in pairs, but got {describe(dict(given))}.")
    return Paired(_some(sites, inside), coefficients), _some(sites, outside)


def _some(sites: Some, which: Sequence[int]) -> Some:
    names, lows, counts = sites.names, sites.lows, sites.counts
    return type(sites)(tuple(names[i] for i in which), tuple(lows[i] for i in which), tuple(counts[i] for i in which))


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "(none)"
