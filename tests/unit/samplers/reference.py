"""Proposals of the informed samplers in double precision, and a way to see what a kernel proposed."""

import importlib
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp, softmax

from discrax import Space

LOG_G = {
    "sqrt": lambda r: r / 2,
    "ratio": lambda r: -np.logaddexp(0, -r),
    "min": lambda r: np.minimum(r, 0),
    "max": lambda r: np.maximum(r, 0),
}


def with_levels(x: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Log-ratios with an axis of levels, also where there are two: 0 at the current level."""
    if ratios.ndim > x.ndim:
        return ratios
    full = np.zeros((*x.shape, 2))
    np.put_along_axis(full, (1 - x)[..., None], ratios[..., None], axis=-1)
    return full


def move_weights(g: str, x: np.ndarray, ratios: np.ndarray, frozen: np.ndarray) -> np.ndarray:
    """log w_ic: g of the ratio for moves of free sites, -inf for staying and for frozen sites. Everything is flat."""
    weights = LOG_G[g](with_levels(x, ratios).astype(np.float64))
    weights[np.arange(x.size), x] = -np.inf
    weights[frozen] = -np.inf
    return weights


def log_path_probability(weights: np.ndarray, path: np.ndarray, levels: np.ndarray, *, replace: bool) -> float:
    """log q(u, c): each site of the path by its weight among those left, then each distinct site's level by its own."""
    sites = logsumexp(weights, axis=1)
    total, left = 0.0, np.ones(len(sites), bool)
    for site in path:
        total += sites[site] - logsumexp(sites[left])
        left[site] = replace
    return total + sum(weights[site, levels[site]] - sites[site] for site in set(path.tolist()))


def log_factorised_probability(
    g: str, x: np.ndarray, ratios: np.ndarray, frozen: np.ndarray, squares: np.ndarray, step_size: float, y: np.ndarray
) -> float:
    """log q(y | x) of DMALA: every free site by its own softmax."""
    logits = LOG_G[g](with_levels(x, ratios).astype(np.float64)) - squares / (2 * step_size)
    logits[np.arange(x.size), x] = 0
    log_probabilities = np.log(softmax(logits, axis=1))
    return float(log_probabilities[np.arange(x.size), y][~frozen].sum())


class Spy:
    """Wraps functions that a module calls, and keeps what went in and came out, also under jit (as outputs)."""

    def __init__(self, monkeypatch, module: str):
        self.seen: dict[str, list] = {}
        self._patch, self._module = monkeypatch, importlib.import_module(module)

    def on(self, name: str, pick) -> "Spy":
        """`pick(arguments, output)` is what is kept of each call of `name`."""
        original = getattr(self._module, name)

        def wrapped(*arguments, **settings):
            output = original(*arguments, **settings)
            self.seen.setdefault(name, []).append(pick(arguments, output))
            return output

        self._patch.setattr(self._module, name, wrapped)
        return self

    def watch(self, function):
        """`function` compiled; it returns its value and what was seen on the way."""

        def watched(*arguments):
            self.seen.clear()
            out = function(*arguments)
            return out, dict(self.seen)

        return jax.jit(jax.vmap(watched))


class Proposal(NamedTuple):
    """One step of one chain as it was seen from inside."""

    x: np.ndarray
    y: np.ndarray
    path: np.ndarray
    log_prob_change: float
    log_proposal_ratio: float
    accept_prob: float


def frozen_mask(space: Space) -> np.ndarray:
    return np.zeros(space.num_sites, bool) if space.frozen is None else np.asarray(space.frozen.mask).reshape(-1)
