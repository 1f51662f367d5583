"""Indicators of a NumPyro model and the coefficients that they switch on, as the vectors that `pairs` moves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from discrax.core.checks import describe
from discrax.core.target import effective_ratios, evaluate
from discrax.interop import pairs
from discrax.interop.numpyro_sites import Sites

LogDensity = Callable[[Mapping[str, Array], Mapping[str, Array]], Array]  # of discrete values and of continuous ones


class Paired(NamedTuple):
    """Sites of indicators, each with a site of coefficients."""

    sites: Sites
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

    def law(self, log_density: LogDensity, z: Mapping[str, Array]) -> pairs.PairLaw:
        """The law of second order, given the other sites."""
        nothing = {name: jnp.zeros_like(z[name]) for name in self.coefficients}
        prior = lambda values: log_density(values, {**z, **nothing})  # noqa: E731
        target = self.sites.target(prior, self.sites.has_form(prior))
        x = jnp.zeros(target.space.shape, target.space.dtype)
        odds = effective_ratios(target, x, evaluate(target, x).ratios)
        odds = odds.reshape(x.shape[0], -1)[:, -1]
        return pairs.expand(self.density(log_density, z), odds)

    def check(self, log_density: LogDensity, values: Mapping[str, Array], z: Mapping[str, Array]) -> None:
        """An error where the model is not of the form that pairs need."""
        off, size = jax.jit(lambda v, z: pairs.misfit(self.density(log_density, z), *self.vectors(v, z)))(values, z)
        if not off <= 1e-3 * (1 + size):
            raise ValueError(
                f"pairs takes indicators that the model has as a factor of their coefficients and nowhere else but in "
                f"their prior, as in {self.sites.names[0]} * {self.coefficients[0]}, but the log-density at the first "
                f"state is {float(off):.3g} from such a form; leave pairs out, or write the model with the product."
            )


def find_pairs(given: Mapping[str, str], sites: Sites, others: Mapping[str, Any]) -> tuple[Paired | None, Sites]:
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


def _some(sites: Sites, which: Sequence[int]) -> Sites:
    names, lows, counts = sites.names, sites.lows, sites.counts
    return Sites(tuple(names[i] for i in which), tuple(lows[i] for i in which), tuple(counts[i] for i in which))


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "(none)"
