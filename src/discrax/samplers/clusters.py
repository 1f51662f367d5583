"""Moves of whole clusters, for sites that are coupled in pairs and like to be equal.

    log pi(x) = sum over bonds b = (i, j) of K_b [x_i = x_j]  +  sum_i f_i(x_i),     K_b >= 0

With one more variable a bond, open or not, and P(b is open | x) = [x_i = x_j] (1 - exp(-K_b)), the joint law is

    pi(x, open) ~ prod over open b of (e^K_b - 1) [x_i = x_j]  prod_i exp f_i(x_i)

so that, given which bonds are open, the sites of a cluster have one label, and clusters are independent of each other:

    P(label of cluster C is c) ~ exp F_C(c),     F_C(c) = sum over i in C of f_i(c)

- Swendsen-Wang draws all bonds given x, then the labels of all clusters given the bonds: both are exact conditionals.
- Wolff draws the bonds, too, but changes one cluster: that of a uniformly drawn free site i. With c its label, a
  uniformly drawn other label c' is accepted with log A = F_C(c') - F_C(c). A site is drawn without a look at labels,
  so the way back is drawn as often.

f_i(c) is -inf where site i cannot have the label c: it is frozen to another, or has fewer levels. At an inverse
temperature beta, K and f are beta times what they are. For Ising spins with J s_i s_j, K = 2 J.

Swendsen and Wang, Phys. Rev. Lett. 58, 86 (1987); Wolff, Phys. Rev. Lett. 62, 361 (1989).
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.bonds import Bonded, Bonds, clusters
from discrax.core.kernel import Info, Kernel, State, replaced, scalar_info
from discrax.core.levels import bar_missing, draw_levels, is_level
from discrax.core.metropolis import decide
from discrax.core.space import Binary, Categorical, Space, Spin
from discrax.core.target import Target, log_prob, offered, temper


class Labelled(NamedTuple):
    """New labels of the sites."""

    x: Integer[Array, " n"]
    accept_prob: Float[Array, ""]
    is_accepted: Bool[Array, ""]


class ClusterKernel(Kernel):
    """Draws which bonds are open and finds what they connect. Subclasses give clusters new labels."""

    bonds: Bonds | None = eqx.field(default=None, init=False)  # of the target it was prepared for
    spaces: ClassVar[tuple[type[Space], ...]] = (Binary, Spin, Categorical)
    needs: ClassVar[tuple[type[Target], ...]] = (Bonded,)

    def open_probability(self, strengths: Float[Array, " bonds"]) -> Float[Array, " bonds"]:
        """Of bonds whose ends are equal."""
        return -jnp.expm1(-strengths)

    @abstractmethod
    def relabel(
        self, key: PRNGKeyArray, space: Space, x: Integer[Array, " n"], roots: Int[Array, " n"], fields: Array
    ) -> Labelled:
        """New labels of clusters, given a site of the cluster of each site, and f as `_fields_of` has it."""

    def refusal(self, target: Target) -> str | None:
        bonded = offered(target, Bonded)
        assert bonded is not None
        try:
            strengths = np.asarray(temper(target, bonded.strengths(bonded.bonds())))
        except jax.errors.TracerArrayConversionError:  # inside a program
            return None
        wrong = strengths[~(strengths >= 0)]
        if not wrong.size:
            return None
        return (
            f"{type(self).__name__} needs couplings that favour equal neighbours (a ferromagnet), but {wrong.size} of "
            f"{np.count_nonzero(strengths)} couplings do not (the first is worth {wrong[0]:.4g}); use parallel "
            "tempering of a local sampler such as 'gibbs', with Houdayer moves where there are few bonds a site."
        )

    def prepare(self, target: Target, *, tuning: bool = False, draws: Any = None) -> tuple["ClusterKernel", str | None]:
        """With the bonds of the target."""
        return replaced(self, bonds=_bonds_of(target)), None

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return State(x, log_prob(target, x), ())

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, bonded = target.space, offered(target, Bonded)
        assert bonded is not None
        bonds = _bonds_of(target) if self.bonds is None else self.bonds
        for_bonds, for_labels = random.split(key, 2)
        x = state.x.reshape(-1)
        strengths = temper(target, bonded.strengths(bonds))
        is_drawn = random.uniform(for_bonds, bonds.count) < self.open_probability(strengths)
        roots = clusters(bonds, bonds.are_equal(x) & is_drawn, space.num_sites)
        fields = _fields_of(space, temper(target, bonded.site_fields()))
        labelled = self.relabel(for_labels, space, x, roots, fields)
        y = labelled.x.astype(space.dtype).reshape(space.shape)
        value = log_prob(target, y)
        # Numbers of a target may change under a kernel, as in training: what clusters cannot do is counted.
        is_invalid = ~jnp.all(strengths >= 0) | jnp.isnan(value)
        info = scalar_info(labelled.accept_prob, labelled.is_accepted, space.distance(state.x, y), 1, is_invalid)
        return State(y, value, ()), info


class SwendsenWang(ClusterKernel):
    """Every cluster gets a new label, drawn from its conditional."""

    def relabel(
        self, key: PRNGKeyArray, space: Space, x: Integer[Array, " n"], roots: Int[Array, " n"], fields: Array
    ) -> Labelled:
        bits, n = random.words(key, space.num_sites), space.num_sites  # that of its root is a cluster's

        def by_fields() -> Int[Array, " n"]:
            sums = jnp.zeros_like(fields).at[roots].add(fields, mode="promise_in_bounds")
            if space.has_two_levels:
                return (random.to_uniform(bits) < jax.nn.sigmoid(sums)).astype(jnp.int32)
            return draw_levels(bits, sums)

        def uniformly() -> Int[Array, " n"]:
            if space.has_two_levels:
                return (bits >> np.uint32(31)).astype(jnp.int32)
            return random.integers(key, n, space.num_levels)

        # Without fields nothing has to be summed; there is one answer for all chains, so one branch is run.
        drawn = jax.lax.cond(jnp.any(fields != 0), by_fields, uniformly)
        return Labelled(drawn.at[roots].get(mode="promise_in_bounds"), jnp.ones(()), jnp.ones((), bool))


class Wolff(ClusterKernel):
    """The cluster of one free site gets another label, if that is accepted."""

    def relabel(
        self, key: PRNGKeyArray, space: Space, x: Integer[Array, " n"], roots: Int[Array, " n"], fields: Array
    ) -> Labelled:
        for_site, for_label, for_decision = random.split(key, 3)
        site = space.free_site(random.integers(for_site, 1, space.num_free)[0])
        old, q = x[site].astype(jnp.int32), space.num_levels
        new = (old + 1 + random.integers(for_label, 1, q - 1)[0]) % q
        gains = jnp.where(old == 0, fields, -fields) if space.has_two_levels else fields[:, new] - fields[:, old]
        is_in = roots == roots[site]
        decision = decide(for_decision, jnp.sum(jnp.where(is_in, gains, 0)))
        y = jnp.where(is_in & decision.is_accepted, new.astype(x.dtype), x)
        return Labelled(y, decision.accept_prob, decision.is_accepted)


def _fields_of(space: Space, fields: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """f with -inf where a site cannot have a label; of two levels f(1) - f(0), which is -inf or inf there."""
    fields = bar_missing(fields, space.levels_at())
    if space.frozen is None:
        return fields
    is_frozen, codes = space.frozen.mask.reshape(-1), space.frozen.codes.reshape(-1)
    if space.has_two_levels:
        return jnp.where(is_frozen, jnp.where(codes == 1, jnp.inf, -jnp.inf), fields)
    return jnp.where(is_frozen[:, None] & ~is_level(codes, space.num_levels), -jnp.inf, fields)


def _bonds_of(target: Target) -> Bonds:
    bonded = offered(target, Bonded)
    assert bonded is not None
    try:
        return bonded.bonds()
    except jax.errors.TracerArrayConversionError:
        raise ValueError(
            "The bonds of a graph must be known before a program is compiled, but the kernel was given a target "
            "inside of one; pass kernel.prepare(target)[0] instead of the kernel."
        ) from None
