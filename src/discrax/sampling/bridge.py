"""Paths from a reference p_0, whose draws are known, to a target p_1; log Z is found along them:

log p_b(x) = (1 - b) log p_0(x) + b log p_1(x),        0 <= b <= 1.

From the uniform law that is a power of the target (`Powers`), which every kernel takes that takes the target, and
states keep what they have cached. From independent sites it is a law of its own (`Bridge`).
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import checks, random
from discrax.core.kernel import Kernel, State, reevaluate, replaced
from discrax.core.levels import draw_levels
from discrax.core.space import Categorical, Space
from discrax.core.target import (
    Coloured,
    Evaluation,
    ExactRatios,
    Target,
    Tempered,
    bare,
    evaluate,
    exact_evaluation,
    offered,
    temper,
)
from discrax.samplers import gibbs
from discrax.targets.coupling import Uncoupled

_MOST_COLOURS = 16


class Path(eqx.Module):
    """From a reference to a target."""

    log_probs: eqx.AbstractVar[Float[Array, "n levels"]]  # of the levels of each site under p_0
    end: eqx.AbstractVar[Target]

    @abstractmethod
    def at(self, b: Float[Array, ""]) -> Target:
        """p_b."""

    @abstractmethod
    def gap(self, state: State) -> Float[Array, ""]:
        """log p_1 - log p_0 at a state, p_0 being normalised."""

    @abstractmethod
    def carry(self, kernel: Kernel, here: Target, state: State) -> State:
        """The state of a chain that comes to `here` from another b."""

    def draw(self, key: PRNGKeyArray) -> Integer[Array, "*shape"]:
        """A draw of p_0."""
        space = self.end.space
        codes = draw_levels(random.words(key, space.num_sites), self.log_probs)
        x = codes.reshape(space.shape).astype(space.dtype)
        return x if space.frozen is None else jnp.where(space.frozen.mask, space.frozen.codes, x)


class Powers(Path):
    """From the uniform law: p_b is proportional to p_1^b."""

    log_probs: Float[Array, "n levels"]
    log_count: Float[Array, ""]  # log of the number of states
    end: Tempered

    def at(self, b: Float[Array, ""]) -> Target:
        return replaced(self.end, beta=b * self.end.beta)

    def gap(self, state: State) -> Float[Array, ""]:
        return self.end.beta * state.log_prob + self.log_count

    def carry(self, kernel: Kernel, here: Target, state: State) -> State:
        return state  # what is cached is not tempered


class Between(Path):
    """From independent sites."""

    log_probs: Float[Array, "n levels"]
    end: "AnyBridge"

    def at(self, b: Float[Array, ""]) -> Target:
        return replaced(self.end, beta=jnp.asarray(b, self.end.beta.dtype))

    def gap(self, state: State) -> Float[Array, ""]:
        e = self.end.space.embed(state.x)
        return self.end.target.log_prob(e) - self.end.base_log_prob(e)

    def carry(self, kernel: Kernel, here: Target, state: State) -> State:
        return reevaluate(kernel, here, state)


class AnyBridge(Target):
    """log p_b. On binary, spin and one-hot embeddings log p_0 is linear: offset + weights.e."""

    space: Space
    target: Target
    weights: Float[Array, "..."]
    offset: Float[Array, ""]
    beta: Float[Array, ""]

    def base_log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """log p_0, normalised, at an embedding."""
        return self.offset + jnp.sum(self.weights * e)

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return (1 - self.beta) * self.base_log_prob(e) + self.beta * self.target.log_prob(e)


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


def path_to(target: Target, reference: ArrayLike | Target | None) -> Path:
    """The path to a target from the uniform law, or from independent sites: their probabilities or a target."""
    if target.space.totals is not None:
        raise ValueError(
            "The path begins at independent sites, but the totals of this space are bounded; state the law on a space "
            "without bounds."
        )
    space, real = target.space, jnp.result_type(float)
    with np.errstate(divide="ignore"):  # levels that a site does not have
        log_probs = np.log(_probabilities(space, reference))
    is_free = np.ones(space.num_sites, bool) if space.frozen is None else ~np.asarray(space.frozen.mask).reshape(-1)
    table = jnp.asarray(log_probs, real)
    if reference is None:
        log_count = jnp.asarray(-log_probs[is_free, 0].sum(), real)
        return Powers(log_probs=table, log_count=log_count, end=Tempered(target, 1.0))
    if isinstance(space, Categorical):
        weights, constants = np.where(is_free[:, None], log_probs, 0), np.zeros(space.num_sites)
        weights = weights.reshape(*space.shape, space.num_levels)
    else:
        low, high = np.asarray(space.values, np.float64)  # ty: ignore[missing-attribute]
        slopes = np.where(is_free, (log_probs[:, 1] - log_probs[:, 0]) / (high - low), 0)
        weights, constants = slopes.reshape(space.shape), log_probs[:, 0] - slopes * low
    family = Bridge if offered(target, ExactRatios) is None else ExactBridge
    weights, offset = (jnp.asarray(each, real) for each in (weights, constants[is_free].sum()))
    return Between(table, family(space, target, weights, offset, beta=jnp.ones((), real)))


def default_sampler(target: Target) -> str | Kernel:
    """Sweeps by colours where the target has few of them, else "pas"."""
    colouring = offered(target, Coloured)
    has_few = colouring is not None and colouring.colours().max() < _MOST_COLOURS
    return gibbs("chromatic") if has_few and offered(target, ExactRatios) is not None else "pas"


def _probabilities(space: Space, reference: ArrayLike | Target | None) -> Float[np.ndarray, "n levels"]:
    """The probabilities of all levels of all sites."""
    if reference is None:
        levels = np.broadcast_to(np.asarray(space.levels_at()), space.num_sites)[:, None]
        return np.where(np.arange(space.num_levels) < levels, 1 / levels, 0)
    if space.counts is not None or (not isinstance(space, Categorical) and not space.has_two_levels):
        raise ValueError(
            "A reference other than the uniform law is for binary, spin and categorical spaces whose sites have "
            "as many levels; leave it out."
        )
    given = of_sites(reference, space) if isinstance(reference, Target) else checks.real_array("reference", reference)
    expected = space.shape if space.has_two_levels else (*space.shape, space.num_levels)
    if given.shape != expected:
        raise ValueError(f"reference must hold probabilities of shape {expected}, but has shape {given.shape}.")
    if not ((given > 0) & (given < 1)).all():
        raise ValueError(
            "Probabilities of the reference lie strictly between 0 and 1, so that it misses no state of the target, "
            f"but they run from {given.min():.4g} to {given.max():.4g}; `frequencies(rows)` clips those of data."
        )
    if space.has_two_levels:
        return np.stack([1 - given.reshape(-1), given.reshape(-1)], axis=-1)
    totals = given.sum(axis=-1, keepdims=True)
    if np.abs(totals - 1).max() > 1e-3:
        raise ValueError(f"The levels of each site of the reference sum to 1, but one sums to {totals.flat[0]:.4g}.")
    return (given / totals).reshape(space.num_sites, space.num_levels)


def of_sites(reference: Target, space: Space) -> Float[np.ndarray, "..."]:
    """The probabilities of a law of independent sites: of 1 for two levels, else of each level."""
    if not isinstance(getattr(bare(reference), "coupling", None), Uncoupled):
        raise ValueError(
            "A reference must have draws that are known: probabilities of independent sites, or a target of these such "
            f"as discrax.targets.Bernoulli, but got {type(bare(reference)).__name__}."
        )
    if type(reference.space) is not type(space) or reference.space.shape != space.shape:
        raise ValueError(
            f"A reference must have the space of the target, {type(space).__name__}{space.shape}, but it has "
            f"{type(reference.space).__name__}{reference.space.shape}."
        )
    found = exact_evaluation(reference, jnp.zeros(space.shape, space.dtype)).ratios
    ratios = np.asarray(temper(reference, found), np.float64)
    if space.has_two_levels:
        return 1 / (1 + np.exp(-ratios))
    weights = np.exp(ratios - ratios.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
