"""The path between two laws of one space, a reference p_0 and a target p_1:

log p_b(x) = (1 - b) log p_0(x) + b log p_1(x),        0 < b <= 1.

Neither need be normalised. A state that the target forbids is forbidden on the whole path.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Integer

from discrax.core.checks import describe, leaf_number
from discrax.core.space import Space
from discrax.core.target import (
    Evaluation,
    ExactRatios,
    Target,
    effective_ratios,
    evaluate,
    exact_evaluation,
    offered,
    temper,
)


class AnyBetween(Target):
    """log p_b; `beta` is a leaf."""

    space: Space
    reference: Target
    target: Target
    beta: Float[Array, ""]

    @property
    def gathers(self) -> bool:
        return self.target.gathers or self.reference.gathers

    @property
    def site_names(self) -> tuple[str, ...] | None:
        return self.target.site_names

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return (1 - self.beta) * self.reference.log_prob(e) + self.beta * self.target.log_prob(e)

    def log_ratio(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """log p_1 - log p_0: the derivative of log p_b by b."""
        return self.target.log_prob(e) - self.reference.log_prob(e)


class Between(AnyBetween):
    """Of laws whose log-ratios come from their gradients."""


class ExactBetween(AnyBetween, ExactRatios):
    """Of two laws with exact log-ratios."""

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        b, of_target, of_reference = self.beta, _tempered(self.target, x), _tempered(self.reference, x)
        return Evaluation(*((1 - b) * here + b * there for here, there in zip(of_reference, of_target, strict=True)))


def _tempered(law: Target, x: Integer[Array, "*shape"]) -> Evaluation:
    """What a law yields at its own temperature."""
    found = evaluate(law, x)
    return Evaluation(temper(law, found.log_prob), temper(law, found.ratios))


def between(reference: Target, target: Target, beta: float | Float[Array, ""] = 1.0) -> Between | ExactBetween:
    """The law at b = `beta` of the path from a reference to a target."""
    if not isinstance(reference, Target):
        raise TypeError(f"A reference must be a discrax Target, but got {describe(reference)}.")
    if not isinstance(target, Target):
        raise TypeError(f"A path must end at a discrax Target, but got {describe(target)}.")
    if not _is_same(reference.space, target.space):
        raise ValueError(
            f"A reference must have the space of the target, {_words(target.space)}, but it has "
            f"{_words(reference.space)}; frozen sites and bounds on totals count."
        )
    is_exact = all(offered(law, ExactRatios) is not None for law in (reference, target))
    family = ExactBetween if is_exact else Between
    return family(target.space, reference, target, leaf_number("beta", beta, least=0, most=1))


def _is_same(one: Space, other: Space) -> bool:
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    known = [(a, b) for a, b in pairs if not any(isinstance(each, Tracer) for each in (a, b))]
    return all(np.shape(a) == np.shape(b) and np.array_equal(a, b) for a, b in known)


def _words(space: Space) -> str:
    return f"{type(space).__name__}{space.shape}"


def log_normaliser_of_sites(law: Target) -> float:
    """log Z of a law of independent sites, from the log-ratios at one state: log p(x) + sum_i log sum_c exp(ratio_ic).

    Of any other law this is not the normaliser.
    """
    space = law.space
    x = space.random(jax.random.key(0))
    value, ratios = exact_evaluation(law, x)
    ratios = effective_ratios(law, x, ratios)
    of_sites = jnp.logaddexp(ratios, 0.0) if space.has_two_levels else jax.nn.logsumexp(ratios, axis=-1)
    return float(temper(law, value) + jnp.sum(of_sites))
