"""Marginals of the sites, and how well each is known.

Of the indicator 1[x_i = v] of a site i and a level v, over chains and draws:

    p_iv = its mean,       ESS_iv = the sum over chains of its ESS,       error_iv = sqrt(p_iv (1 - p_iv) / ESS_iv)

The ESS of a site is the smallest of its levels', and its R-hat the largest: that of the halves of chains, not of ranks,
since a site has few levels and most ranks would be ties; one chain has none. A level that never changed tells nothing:
its error is NaN, and a site of which that is true of every level has ESS 0 and an R-hat of NaN.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from discrax.core.extras import import_extra
from discrax.diagnostics.ess import ess
from discrax.diagnostics.weighted import shares, weighted_ess, weighted_mean, weighted_variance

_MOST_AT_ONCE = 4_000_000  # numbers
_SHOWN = 10  # sites
_FEWEST = 4  # draws of a chain


@dataclass(frozen=True)
class SiteDiagnostics:
    """The law of each site by itself, and what its numbers are worth."""

    probabilities: Float[np.ndarray, "*sites levels"]
    errors: Float[np.ndarray, "*sites levels"]  # standard errors of the probabilities
    ess: Float[np.ndarray, "*sites"]
    rhat: Float[np.ndarray, "*sites"]
    names: tuple[str, ...]

    def to_dataframe(self) -> Any:
        """A pandas table with a line for each site: its place, the probability of each level, errors, ESS and R-hat."""
        table, levels = pandas().DataFrame({"site": list(self.names)}), self.probabilities.shape[-1]
        for name, values in (("p", self.probabilities), ("error", self.errors)):
            for level, column in enumerate(values.reshape(-1, levels).T):
                table[f"{name}[{level}]"] = column
        return table.assign(ess=self.ess.ravel(), rhat=self.rhat.ravel()).set_index("site")

    def lines(self) -> list[list[str]]:
        """Of the sites that are known least, which of few are all: place, probabilities, ESS and R-hat."""
        order = np.argsort(self.ess, axis=None, kind="stable")[:_SHOWN]
        chosen = np.sort(order) if self.ess.size <= _SHOWN else order
        levels = self.probabilities.shape[-1]
        found = []
        for place in chosen:
            p, error = (values.reshape(-1, levels)[place] for values in (self.probabilities, self.errors))
            most = [1] if levels == 2 else sorted(np.argsort(-p, kind="stable")[:3].tolist())
            said = ", ".join(f"{level}: {p[level]:.4f} ± {error[level]:.4f}" for level in most)
            rhat = self.rhat.ravel()[place]
            ess = self.ess.ravel()[place]
            found.append([self.names[place], said, f"{ess:,.0f}", "-" if np.isnan(rhat) else f"{rhat:.3f}"])
        return found


def diagnose_sites(
    codes: Integer[np.ndarray, "chains draws *sites"],
    num_levels: int,
    weights: Float[np.ndarray, "chains draws"] | None = None,
    names: tuple[str, ...] | None = None,
) -> SiteDiagnostics:
    """Diagnostics of each site of the codes; `weights` where draws do not all count the same, `names` of the sites."""
    chains, draws, *shape = codes.shape
    flat = np.moveaxis(codes.reshape(chains, draws, -1), -1, 0)  # (site, chain, draw)
    block = max(1, _MOST_AT_ONCE // max(1, chains * draws))
    parts = [
        [_level(flat[first : first + block] == level, weights) for first in range(0, len(flat), block)]
        for level in range(num_levels)
    ]
    p, errors, ess, rhat = (
        np.stack([np.concatenate([part[i] for part in level]) for level in parts], axis=-1) for i in range(4)
    )
    with np.errstate(all="ignore"):
        smallest = np.where(np.isnan(ess).all(axis=-1), 0.0, np.fmin.reduce(ess, axis=-1))
        largest = np.fmax.reduce(rhat, axis=-1)
    return SiteDiagnostics(
        p.reshape(*shape, num_levels),
        errors.reshape(*shape, num_levels),
        smallest.reshape(shape),
        largest.reshape(shape),
        site_names(tuple(shape)) if names is None else names,
    )


def _level(
    is_at: Bool[np.ndarray, "sites chains draws"], weights: Float[np.ndarray, "chains draws"] | None
) -> tuple[np.ndarray, ...]:
    """Of the indicators of one level: probability, error, ESS and R-hat of each site; NaN where it never changed."""
    values, still = is_at.astype(np.float64), is_at.all(axis=(1, 2)) | ~is_at.any(axis=(1, 2))
    if weights is None:
        p, effective, rhat = values.mean(axis=(1, 2)), ess(values).sum(axis=-1), _split_rhat(values)
    else:
        spread = np.broadcast_to(shares(weights), values.shape)
        means = weighted_mean(values, spread)
        within, between = weighted_variance(values, spread).mean(axis=-1), _variance(means)
        p, effective = means.mean(axis=-1), weighted_ess(values, spread).sum(axis=-1)
        with np.errstate(all="ignore"):
            rhat = np.sqrt((within + between) / within)
    with np.errstate(all="ignore"):
        error = np.sqrt(p * (1 - p) / effective)
    unknown = np.where(still, np.nan, 0.0)
    return p, error + unknown, effective + unknown, rhat + unknown


def _split_rhat(values: Float[np.ndarray, "sites chains draws"]) -> Float[np.ndarray, " sites"]:
    """Of the halves of chains; infinite where each is constant and they differ."""
    half = values.shape[-1] // 2
    if half < _FEWEST or values.shape[1] == 1:  # of one chain nothing is known of others
        return np.full(len(values), np.nan)
    halves = np.concatenate([values[..., :half], values[..., -half:]], axis=1)
    within, between = halves.var(axis=-1, ddof=1).mean(axis=-1), half * _variance(halves.mean(axis=-1))
    with np.errstate(all="ignore"):
        return np.sqrt((between / within + half - 1) / half)


def _variance(means: Float[np.ndarray, "sites chains"]) -> Float[np.ndarray, " sites"]:
    """Between chains; none where there is one."""
    return means.var(axis=-1, ddof=1) if means.shape[-1] > 1 else np.zeros(len(means))


def site_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """x[0], x[1] and so on; of a lattice x[0,0]."""
    return tuple(f"x[{','.join(map(str, place))}]" for place in np.ndindex(shape))


def pandas() -> Any:
    """The package, or a sentence."""
    return import_extra("pandas", "A table needs", "arviz")
