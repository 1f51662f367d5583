"""The bridge from independent sites p_0 to a target p_1 that annealed importance sampling crosses:

log p_b(x) = (1 - b) log p_0(x) + b log p_1(x).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import checks, random
from discrax.core.levels import draw_levels
from discrax.core.space import Categorical, Space
from discrax.core.target import Evaluation, ExactRatios, Target, evaluate, offered, temper


class AnyBridge(Target):
    """log p_b. On binary, spin and one-hot embeddings log p_0 is linear: offset + weights.e."""

    space: Space
    target: Target
    log_probs: Float[Array, "n levels"]  # of the levels of each site under p_0
    weights: Float[Array, "..."]
    offset: Float[Array, ""]
    beta: Float[Array, ""]

    def gap(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """log p_1 - log p_0."""
        return self.target.log_prob(e) - self.base_log_prob(e)

    def base_log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """log p_0, normalised, at an embedding."""
        return self.offset + jnp.sum(self.weights * e)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return (1 - self.beta) * self.base_log_prob(e) + self.beta * self.target.log_prob(e)

    def draw(self, key: PRNGKeyArray) -> Integer[Array, "*shape"]:
        """A draw of p_0."""
        space = self.space
        codes = draw_levels(random.words(key, space.num_sites), self.log_probs)
        x = codes.reshape(space.shape).astype(space.dtype)
        return x if space.frozen is None else jnp.where(space.frozen.mask, space.frozen.codes, x)


class Bridge(AnyBridge):
    """Of a target whose log-ratios come from its gradient."""


class ExactBridge(AnyBridge, ExactRatios):
    """Of a target with exact log-ratios."""

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        there = evaluate(self.target, x)
        of_base = self.space.ratios_from_gradient(x, self.weights)
        return Evaluation(
            (1 - self.beta) * self.base_log_prob(self.space.embed(x)) + self.beta * temper(self.target, there.log_prob),
            (1 - self.beta) * of_base + self.beta * temper(self.target, there.ratios),
        )


def bridge_to(target: Target, base: ArrayLike | None) -> Bridge | ExactBridge:
    """The bridge to a target, at its target end."""
    if target.space.totals is not None:
        raise ValueError(
            "The bridge begins at independent sites, but the totals of this space are bounded; state the law on a "
            "space without bounds."
        )
    space, real = target.space, jnp.result_type(float)
    with np.errstate(divide="ignore"):  # levels that a site does not have
        log_probs = np.log(_base(space, base))
    is_free = np.ones(space.num_sites, bool) if space.frozen is None else ~np.asarray(space.frozen.mask).reshape(-1)
    if isinstance(space, Categorical):
        is_weighed = is_free[:, None] & np.isfinite(log_probs)
        weights, constants = np.where(is_weighed, log_probs, 0), np.zeros(space.num_sites)
        weights = weights.reshape(*space.shape, space.num_levels)
    elif space.has_two_levels:
        low, high = np.asarray(space.values, np.float64)  # ty: ignore[missing-attribute]
        slopes = np.where(is_free, (log_probs[:, 1] - log_probs[:, 0]) / (high - low), 0)
        weights, constants = slopes.reshape(space.shape), log_probs[:, 0] - slopes * low
    else:  # uniform
        weights, constants = np.zeros(space.shape), log_probs[:, 0]
    family = Bridge if offered(target, ExactRatios) is None else ExactBridge
    log_probs, weights, offset = (jnp.asarray(each, real) for each in (log_probs, weights, constants[is_free].sum()))
    return family(space, target, log_probs, weights, offset, beta=jnp.ones((), real))


def _base(space: Space, base: ArrayLike | None) -> Float[np.ndarray, "n levels"]:
    """The probabilities of all levels of all sites."""
    if base is None:
        levels = np.broadcast_to(np.asarray(space.levels_at()), space.num_sites)[:, None]
        return np.where(np.arange(space.num_levels) < levels, 1 / levels, 0)
    if space.counts is not None or (not isinstance(space, Categorical) and not space.has_two_levels):
        raise ValueError(
            "A base other than the uniform one is for binary, spin and categorical spaces whose sites have as many "
            "levels; leave it out."
        )
    given = checks.real_array("base", base)
    expected = space.shape if space.has_two_levels else (*space.shape, space.num_levels)
    if given.shape != expected:
        raise ValueError(f"base must hold probabilities of shape {expected}, but has shape {given.shape}.")
    if not ((given > 0) & (given < 1)).all():
        raise ValueError(
            f"Probabilities of the base lie strictly between 0 and 1, but they run from {given.min():.4g} to "
            f"{given.max():.4g}; `frequencies(rows)` clips those of data."
        )
    if space.has_two_levels:
        return np.stack([1 - given.reshape(-1), given.reshape(-1)], axis=-1)
    totals = given.sum(axis=-1, keepdims=True)
    if np.abs(totals - 1).max() > 1e-3:
        raise ValueError(f"The levels of each site of the base sum to 1, but one sums to {totals.flat[0]:.4g}.")
    return (given / totals).reshape(space.num_sites, space.num_levels)
