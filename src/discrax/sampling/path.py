"""Paths from a reference p_0, whose draws are known, to a target p_1; log Z is found along them:

log p_b(x) = (1 - b) log p_0(x) + b log p_1(x),        0 <= b <= 1.

From the uniform law that is a power of the target (`Powers`), which every kernel takes that takes the target, and
states keep what they have cached. From independent sites it is a law of its own (`targets/between.py`).
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
    ExactRatios,
    Target,
    Tempered,
    bare,
    effective_ratios,
    exact_evaluation,
    offered,
)
from discrax.samplers import gibbs
from discrax.targets.between import AnyBetween, between, log_normaliser_of_sites
from discrax.targets.coupling import Uncoupled
from discrax.targets.quadratic import Quadratic

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
        return jnp.asarray(space.hold(codes.reshape(space.shape).astype(space.dtype)))


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


class FromSites(Path):
    """From independent sites."""

    log_probs: Float[Array, "n levels"]
    log_count: Float[Array, ""]  # log Z of the reference
    end: AnyBetween

    def at(self, b: Float[Array, ""]) -> Target:
        return replaced(self.end, beta=jnp.asarray(b, self.end.beta.dtype))

    def gap(self, state: State) -> Float[Array, ""]:
        return self.end.log_ratio(self.end.space.embed(state.x)) + self.log_count

    def carry(self, kernel: Kernel, here: Target, state: State) -> State:
        return reevaluate(kernel, here, state)


def path_to(target: Target, reference: ArrayLike | Target | None) -> Path:
    """The path to a target from the uniform law, or from independent sites: their probabilities or a target."""
    space, real = target.space, jnp.result_type(float)
    if space.totals is not None:
        raise ValueError(
            "The path begins at independent sites, but the totals of this space are bounded; use "
            "log_normaliser(..., method='tempering'), which begins at the uniform law of its states."
        )
    law, x = law_of_sites(space, reference), jnp.zeros(space.shape, space.dtype)
    end = between(law, target)  # which sees whether they fit
    ratios = effective_ratios(law, x, exact_evaluation(law, x).ratios)
    ratios = np.asarray(ratios, np.float64).reshape(space.num_sites, -1)
    ratios = np.concatenate([np.zeros_like(ratios), ratios], axis=1) if space.has_two_levels else ratios
    log_probs = jnp.asarray(ratios - np.logaddexp.reduce(ratios, axis=1, keepdims=True), real)
    log_count = jnp.asarray(log_normaliser_of_sites(law), real)
    if reference is None:
        return Powers(log_probs=log_probs, log_count=log_count, end=Tempered(target, 1.0))
    return FromSites(log_probs=log_probs, log_count=log_count, end=end)


def law_of_sites(space: Space, reference: ArrayLike | Target | None) -> Target:
    """The law of independent sites that a user means: uniform, of these probabilities, or a target that is one."""
    if isinstance(reference, Target):
        if not isinstance(getattr(bare(reference), "coupling", None), Uncoupled):
            raise ValueError(
                "A reference must have draws that are known: probabilities of independent sites, or a target of these "
                f"such as discrax.targets.Bernoulli, but got {type(bare(reference)).__name__}."
            )
        return reference
    if reference is None:
        return Quadratic(space, Uncoupled(space.shape))
    if space.counts is not None or (not isinstance(space, Categorical) and not space.has_two_levels):
        raise ValueError(
            "A reference other than the uniform law is for binary, spin and categorical spaces whose sites have "
            "as many levels; leave it out."
        )
    given = checks.real_array("reference", reference)
    expected = space.shape if space.has_two_levels else (*space.shape, space.num_levels)
    if given.shape != expected:
        raise ValueError(f"reference must hold probabilities of shape {expected}, but has shape {given.shape}.")
    if not ((given > 0) & (given < 1)).all():
        raise ValueError(
            "Probabilities of the reference lie strictly between 0 and 1, so that it misses no state of the target, "
            f"but they run from {given.min():.4g} to {given.max():.4g}; `frequencies(rows)` clips those of data."
        )
    if space.has_two_levels:
        logits = np.log(given) - np.log1p(-given)
        if isinstance(space, Categorical):
            return Quadratic(space, Uncoupled(space.shape), np.stack([0 * logits, logits], axis=-1))
        low, high = np.asarray(space.values, np.float64)  # ty: ignore[missing-attribute]
        return Quadratic(space, Uncoupled(space.shape), logits / (high - low))
    totals = given.sum(axis=-1, keepdims=True)
    if np.abs(totals - 1).max() > 1e-3:
        raise ValueError(f"The levels of each site of the reference sum to 1, but one sums to {totals.flat[0]:.4g}.")
    return Quadratic(space, Uncoupled(space.shape), np.log(given))


def default_sampler(target: Target) -> str | Kernel:
    """Sweeps by colours where the target has few of them, swaps where totals are bounded, else "pas"."""
    if target.space.totals is not None:
        return "swap"
    colouring = offered(target, Coloured)
    has_few = colouring is not None and colouring.colours().max() < _MOST_COLOURS
    return gibbs("chromatic") if has_few and offered(target, ExactRatios) is not None else "pas"
