"""What informed samplers share: where their log-ratios come from.

With z_ic the change of the embedding when site i goes to level c, a proposal is informed by

    exact:     r_ic = log pi(x with x_i = c) - log pi(x)    where the target offers it, else as below
    gradient:  r_ic = grad log pi(x) . z_ic                 on every target

The two are the same where log pi is linear in every site (an Ising model). Where it bends (a Gaussian on a lattice, a
Boltzmann machine), gradients are what most papers use and what a target without exact ratios gets; whatever a proposal
is informed by, log A has the exact log pi, so both sample the same law.
"""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Integer

from discrax.core.checks import describe
from discrax.core.kernel import Kernel, State, start_state
from discrax.core.space import Space
from discrax.core.target import Target, Tempered

RATIOS = ("exact", "gradient")


class ByGradient(Target):
    """A target of which nothing is known but `log_prob` and its gradient."""

    target: Target

    def __init__(self, target: Target):
        self.target = target

    @property
    def space(self) -> Space:
        """That of the target."""
        return self.target.space

    @property
    def gathers(self) -> bool:
        return self.target.gathers

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.target.log_prob(e)


def by_gradient(target: Target) -> Target:
    """The target, at its temperature, without what it offers besides `log_prob`: its log-ratios are by gradients."""
    if isinstance(target, Tempered):
        return eqx.tree_at(lambda tempered: tempered.target, target, ByGradient(target.target))
    return ByGradient(target)


class Informed(Kernel):
    """A kernel whose cache is the log-ratios of all single-site changes, as `ratios` says."""

    ratios: str = eqx.field(static=True, default="exact", kw_only=True)
    uses_gradient: ClassVar[bool] = True

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return start_state(self.seen(target), x)

    def seen(self, target: Target) -> Target:
        """The target as its proposals know it; every `step` begins with it."""
        return target if self.ratios == "exact" else by_gradient(target)


def check_ratios(ratios: str) -> str:
    """The name, or a sentence if it is none."""
    if not isinstance(ratios, str) or ratios not in RATIOS:
        raise ValueError(f"ratios must be {' or '.join(map(repr, RATIOS))}, but got {describe(ratios)}.")
    return ratios
