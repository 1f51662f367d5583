"""`scan_temperatures`: a target at many temperatures side by side, and curves through all of them.

With E(x) = -log_prob(x), n sites and the magnetisation m(x), at the inverse temperature beta:

    energy          <E> / n
    heat capacity   beta^2 (<E^2> - <E>^2) / n
    magnetisation   <|m|>
    susceptibility  beta n (<m^2> - <|m|>^2)
    Binder cumulant 1 - <m^4> / (3 <m^2>^2)
    log Z           of beta, less that of the first beta

All averages are over the draws of all temperatures, reweighted (`reweighting.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import describe, real_array, whole
from discrax.core.extras import import_extra
from discrax.core.kernel import Kernel
from discrax.core.space import Categorical
from discrax.core.target import Target, Tempered, check_target
from discrax.sampling.annealed import split_key
from discrax.sampling.checks import check_keep
from discrax.sampling.path import default_sampler
from discrax.sampling.reweighting import Reweighting, gather_entries, jackknife
from discrax.sampling.together import sample_together

_CURVES = {
    "energy": "energy a site",
    "heat_capacity": "heat capacity a site",
    "magnetisation": "|magnetisation|",
    "susceptibility": "susceptibility",
    "binder": "Binder cumulant",
}
_POINTS = 200  # of a line in a picture
_LITTLE = 0.1  # overlap of neighbours


@dataclass(frozen=True, repr=False)
class TemperatureScan:
    """Curves of a target over inverse temperatures; each array has a place for each of `betas`.

    `errors` has the standard errors by the names of the curves. `averages` are those of the user's observables.
    `overlap` is that of neighbours among the betas that were run, sum_x sqrt(p(x) q(x)): 1 for the same law.
    """

    betas: Float[np.ndarray, "*betas"]
    energy: Float[np.ndarray, "*betas"]
    heat_capacity: Float[np.ndarray, "*betas"]
    magnetisation: Float[np.ndarray, "*betas"]
    susceptibility: Float[np.ndarray, "*betas"]
    binder: Float[np.ndarray, "*betas"]
    log_Z: Float[np.ndarray, "*betas"]  # noqa: N815  less that of the first beta that was run
    averages: dict[str, Float[np.ndarray, "*betas"]]
    errors: dict[str, Float[np.ndarray, "*betas"]]
    overlap: Float[np.ndarray, " gaps"]
    _draws: "_Draws" = field(compare=False)

    def at(self, beta: ArrayLike) -> "TemperatureScan":
        """The same curves at other inverse temperatures, between the first and the last that were run."""
        asked = real_array("beta", beta)
        first, last = self._draws.betas[0], self._draws.betas[-1]
        if not ((asked >= first) & (asked <= last)).all() or not asked.size:
            raise ValueError(
                f"beta must lie between {first:g} and {last:g}, where there are draws, but got {describe(beta)}; scan "
                "more temperatures."
            )
        return self._draws.scan(asked)

    @property
    def warning(self) -> str | None:
        """A sentence where neighbours have too little in common for curves between them."""
        if not self.overlap.size or self.overlap.min() >= _LITTLE:
            return None
        worst, betas = int(self.overlap.argmin()), self._draws.betas
        return (
            f"The laws at beta {betas[worst]:g} and {betas[worst + 1]:g} overlap by {self.overlap[worst]:.2g} only: "
            "log Z and what lies between them are not to be trusted; put temperatures between them."
        )

    def __str__(self) -> str:
        names = ("energy", "heat_capacity", "magnetisation", "susceptibility", "binder")
        lines = ["beta".rjust(8) + "".join(name.rjust(22) for name in names)]
        for i, beta in enumerate(np.ravel(self.betas)):
            cells = [
                f"{np.ravel(getattr(self, name))[i]:.4f} +- {np.ravel(self.errors[name])[i]:.4f}" for name in names
            ]
            lines.append(f"{beta:8.4f}" + "".join(cell.rjust(22) for cell in cells))
        return "\n".join(lines + ([] if self.warning is None else [self.warning]))

    __repr__ = __str__

    def plot(self) -> Any:
        """All curves over beta, with errors where there are draws. Returns the figure."""
        figure = import_extra("matplotlib.figure", "Pictures need", "plot").Figure((12, 6.5), layout="constrained")
        betas, run = self._draws.betas, self._draws.scan(self._draws.betas)
        line = self._draws.scan(np.linspace(betas[0], betas[-1], _POINTS))
        curves = [(label, lambda scan, name=name: getattr(scan, name), name) for name, label in _CURVES.items()]
        curves += [(name, lambda scan, name=name: scan.averages[name], name) for name in self.averages]
        rows = -(-len(curves) // 3)
        for axes, (label, of, name) in zip(figure.subplots(rows, 3, squeeze=False).flat, curves, strict=False):
            axes.plot(line.betas, of(line), color="C0")
            axes.errorbar(betas, of(run), run.errors[name], fmt="o", ms=3, color="C1")
            axes.set_xlabel("beta")
            axes.set_title(label)
            axes.grid(alpha=0.3)
        for axes in figure.axes[len(curves) :]:
            axes.set_visible(False)
        return figure


class _Draws:
    """The draws of a scan, and what they say at any temperature."""

    def __init__(self, betas: np.ndarray, kept: dict[str, np.ndarray], names: list[str], num_sites: int):
        self.betas, self.names, self.num_sites = betas, names, num_sites
        m = kept["magnetisation"]
        observables = np.stack([np.abs(m), m**2, m**4, *(kept[name] for name in names)])
        entries = gather_entries(kept["energy"], observables)
        self._reweighting = Reweighting(entries, betas, kept["energy"].shape[-1])
        self._log_first = self._reweighting.averages(betas[:1])[0]
        middles = (betas[1:] + betas[:-1]) / 2
        log_z, between = (self._reweighting.averages(each)[0][0] for each in (betas, middles))
        self.overlap = np.exp(between - (log_z[1:] + log_z[:-1]) / 2)

    def scan(self, betas: np.ndarray) -> TemperatureScan:
        """The curves at some temperatures, in the shape of these."""
        flat, n = np.ravel(betas), self.num_sites
        log_z, means = self._reweighting.averages(flat)
        energy, spread, size, square, fourth, *more = np.moveaxis(means, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):  # a magnetisation that is always 0
            curves = {
                "energy": energy / n,
                "heat_capacity": flat**2 * spread / n,
                "magnetisation": size,
                "susceptibility": flat * n * (square - size**2),
                "binder": 1 - fourth / (3 * square**2),
                "log_Z": log_z - self._log_first,
            }
        found = {name: jackknife(each) for name, each in (curves | dict(zip(self.names, more, strict=True))).items()}
        values = {name: value.reshape(betas.shape) for name, (value, _) in found.items()}
        errors = {name: error.reshape(betas.shape) for name, (_, error) in found.items()}
        averages = {name: values.pop(name) for name in self.names}
        return TemperatureScan(
            betas=betas, averages=averages, errors=errors, overlap=self.overlap, _draws=self, **values
        )


class _Measures(eqx.Module):
    """What is kept of a draw."""

    target: Target
    observables: tuple[tuple[str, Callable[[Array], Any]], ...]

    def __call__(self, x: Integer[Array, "*shape"]) -> dict[str, Float[Array, ""]]:
        own = {name: jnp.asarray(function(x), jnp.float32) for name, function in self.observables}
        energy = -self.target.log_prob(self.target.space.embed(x))
        return {"energy": energy, "magnetisation": magnetisation(self.target, x)} | own


def magnetisation(target: Target, x: Integer[Array, "*shape"]) -> Float[Array, ""]:
    """The mean of the spins, +1 and -1 for two levels; for q unordered ones (q f - 1) / (q - 1), f being the share of
    the most frequent level; of values on a grid their mean.
    """
    space = target.space
    if space.has_two_levels:
        return jnp.mean(2.0 * x - 1.0)
    if isinstance(space, Categorical):
        q = space.num_levels
        shares = jnp.stack([jnp.mean(x == level, dtype=jnp.float32) for level in range(q)])
        return (q * jnp.max(shares) - 1) / (q - 1)
    return jnp.mean(space.embed(x))


# The verb: its parameters are what a user may say of it.
def scan_temperatures(
    key: PRNGKeyArray,
    target: Target,
    betas: ArrayLike,
    *,
    sampler: str | Kernel | None = None,
    observables: Mapping[str, Callable[[Array], Any]] | None = None,
    num_chains: int = 8,
    num_warmup: int = 500,
    num_samples: int = 1000,
    thinning: int = 1,
    init: Array | np.ndarray | None = None,
) -> TemperatureScan:
    """Energy, heat capacity, magnetisation, susceptibility and Binder cumulant of a target over inverse temperatures.

    The law at beta is proportional to exp(beta log_prob(x)); a lattice of coupling 1 has betas in units of 1 / J. All
    betas run side by side in one program, and each curve has the draws of all of them, by multiple-histogram
    reweighting: `scan.at(0.43)` has the curves between them. Errors are by the jackknife over chains.

    - `betas`: increasing, and near enough to each other that neighbours overlap: `scan.warning` says where not.
    - `sampler`: a registry name or a kernel, tuned at each beta by itself. By default sweeps by colours where the
      target has few of them, else "pas".
    - `observables`: functions of the codes of a state to one number, by name; `scan.averages` has their means.
    - `num_chains` at each beta, of which each makes `num_samples` draws, `thinning` steps apart, after `num_warmup`.
    - `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default.
    """
    check_target(target)
    found = _check_betas(betas)
    whole("num_chains", num_chains, least=2)
    whole("num_samples", num_samples, least=2)
    own = _check_observables(observables, target)
    keep = _Measures(target, tuple(own.items()))
    check_keep(keep, target.space)
    laws = [Tempered(target, float(beta)) for beta in found]
    results = sample_together(
        list(split_key(random.as_threefry(key), len(found))),
        laws,
        [default_sampler(target) if sampler is None else sampler] * len(found),
        num_chains=num_chains,
        num_warmup=num_warmup,
        num_samples=num_samples,
        thinning=thinning,
        init=[init] * len(found),
        keep=keep,
    )
    names = ["energy", "magnetisation", *own]
    kept = {name: np.stack([np.asarray(each.kept[name], np.float64) for each in results]) for name in names}
    for name, values in kept.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"The {name} of a draw is NaN or infinite, so that it has no mean; is log_prob -inf there?"
            )
    return _Draws(found, kept, list(own), target.space.num_sites).scan(found)


def _check_betas(betas: ArrayLike) -> Float[np.ndarray, " betas"]:
    found = real_array("betas", betas)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"betas must be a list of one or more inverse temperatures, but has shape {found.shape}.")
    if not np.isfinite(found).all() or found[0] < 0 or (np.diff(found) <= 0).any():
        raise ValueError(f"betas must be finite, at least 0 and increasing, but got {describe(betas)}; sort them.")
    return np.asarray(found, np.float64)


def _check_observables(observables: Any, target: Target) -> dict[str, Callable[[Array], Any]]:
    taken = {*_CURVES, "log_Z"}
    if observables is None:
        return {}
    if not isinstance(observables, Mapping):
        raise TypeError(f"observables must map names to functions of the codes, but got {describe(observables)}.")
    for name, function in observables.items():
        if not isinstance(name, str) or name in taken or not callable(function):
            raise ValueError(
                f"observables must map names other than {', '.join(sorted(taken))} to functions of the codes, but got "
                f"{name!r}: {describe(function)}."
            )
        check_keep(function, target.space)
        value = jax.eval_shape(
            lambda x, of=function: of(x), jax.ShapeDtypeStruct(target.space.shape, target.space.dtype)
        )
        if getattr(value, "shape", None) != ():
            raise ValueError(f"The observable {name!r} must be one number of a state, but it is {describe(value)}.")
    return dict(observables)
