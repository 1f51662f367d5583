"""Bonds: what moves of whole clusters know of a target whose sites are coupled in pairs.

    log pi(x) = sum over bonds b = (i, j) of K_b [x_i = x_j]  +  sum_i f_i(x_i)  +  a constant

Bonds say which sites are their ends; K and f are the target's own arrays, and may change. The clusters of the bonds
that are open are found inside a compiled program, without the host: every site points to one of its cluster that has a
lower number, at first to itself. A pass looks at the neighbours along open bonds, hangs the root of each site below the
lowest that it sees, and lets every site point to what its root points to, a few times over. Paths halve, so that a few
passes do, whatever the shape of the clusters.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer

from discrax.core.target import Target
from discrax.core.xla import materialised

_JUMPS = 3  # to the root's root in a pass; the passes that they save cost more than they do


class Bonds(eqx.Module):
    """Pairs of sites, each with a number; sites are those of a flat state."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def are_equal(self, x: Integer[Array, " n"]) -> Bool[Array, " bonds"]:
        """Whether both ends of each bond have the same code."""

    @abstractmethod
    def ways(self, is_open: Bool[Array, " bonds"]) -> Any:
        """Which bonds are open, as `lowest` reads it: laid out once for all passes."""

    @abstractmethod
    def lowest(self, labels: Int[Array, " n"], ways: Any) -> Int[Array, " n"]:
        """The lowest label of each site and those at the other ends of its open bonds."""


class Bonded(Target):
    """bonds between sites, and what it is worth to their ends to be equal"""

    @abstractmethod
    def bonds(self) -> Bonds:
        """Which sites are coupled; found on the host, when it is asked for."""

    @abstractmethod
    def strengths(self, bonds: Bonds) -> Float[Array, " bonds"]:
        """K of each of its bonds."""

    @abstractmethod
    def site_fields(self) -> Float[Array, "n ..."]:
        """f of the flat sites: f_i(1) - f_i(0) with two levels, else `(n, levels)`."""


def clusters(bonds: Bonds, is_open: Bool[Array, " bonds"], num_sites: int) -> Int[Array, " n"]:
    """The lowest site of the cluster of each site; clusters are what open bonds connect."""

    ways = jax.tree.map(materialised, bonds.ways(is_open))

    def look(labels: Int[Array, " n"]) -> tuple[Array, Array]:
        labels = materialised(labels)
        return labels, materialised(bonds.lowest(labels, ways))

    def one_pass(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, seen = carry
        labels = jnp.minimum(labels.at[labels].min(seen, mode="promise_in_bounds"), seen)
        for _ in range(_JUMPS):
            labels = materialised(labels)
            labels = labels.at[labels].get(mode="promise_in_bounds")
        return look(labels)

    # While a site sees a lower label than its own; at the end all sites of a cluster have that of its lowest.
    first = look(jnp.arange(num_sites, dtype=jnp.int32))
    return jax.lax.while_loop(lambda carry: jnp.any(carry[1] < carry[0]), one_pass, first)[0]
