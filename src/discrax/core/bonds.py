"""Bonds: what moves of whole clusters know of a target whose sites are coupled in pairs.

    log pi(x) = sum over bonds b = (i, j) of K_b [x_i = x_j]  +  sum_i f_i(x_i)  +  a constant

Bonds say which sites are their ends; K and f are the target's own arrays, and may change. The clusters of the bonds
that are open are found inside a compiled program, without the host: every site points to one of its cluster that has a
lower number, at first to itself. A pass looks at the neighbours along open bonds, hangs the root of each site below the
lowest that it sees, and lets every site point to what its root points to, a few times over. Paths halve, so that a few
passes do, whatever the shape of the clusters.
"""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Integer

from discrax.core.target import Target
from discrax.core.xla import materialised

_AT_ONCE = 4_096  # sites of all chains that a CPU works on together
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

    @custom_vmap
    def of_chains(bonds: Bonds, is_open: Bool[Array, "chains bonds"]) -> Int[Array, "chains n"]:
        # A CPU takes chains one after the other, as many at a time as fit its fastest memory: each then makes no more
        # passes than it needs. What works on many numbers at once takes all of them.
        find, at_once = partial(_clusters, bonds, num_sites=num_sites), max(1, _AT_ONCE // num_sites)
        return jax.lax.platform_dependent(
            is_open,
            cpu=lambda is_open: jax.lax.map(find, is_open, batch_size=at_once),
            default=jax.vmap(find),
        )

    @of_chains.def_vmap
    def of_more_chains(size: int, is_batched: Any, bonds: Bonds, is_open: Bool[Array, "..."]) -> tuple[Array, bool]:
        if any(jax.tree.leaves(is_batched[0])):  # graphs of their own
            axes = jax.tree.map(lambda batched: 0 if batched else None, is_batched)
            find = jax.vmap(partial(_clusters, num_sites=num_sites), in_axes=(None, 0))
            return jax.vmap(find, in_axes=tuple(axes))(bonds, is_open), True
        if not is_batched[1]:
            return of_chains(bonds, is_open), False
        found = of_chains(bonds, is_open.reshape(-1, bonds.count))
        return found.reshape(size, -1, num_sites), True

    return of_chains(bonds, is_open[None])[0]


def _clusters(bonds: Bonds, is_open: Bool[Array, " bonds"], num_sites: int) -> Int[Array, " n"]:
    ways = jax.tree.map(materialised, bonds.ways(is_open))

    def jump_and_look(labels: Int[Array, " n"]) -> tuple[Array, Array]:
        for _ in range(_JUMPS):
            labels = materialised(labels)
            labels = labels.at[labels].get(mode="promise_in_bounds")
        labels = materialised(labels)
        return labels, materialised(bonds.lowest(labels, ways))

    def one_pass(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, seen = carry
        return jump_and_look(jnp.minimum(labels.at[labels].min(seen, mode="promise_in_bounds"), seen))

    # While a site sees a lower label than its own; at the end all sites of a cluster have that of its lowest. At first
    # every site is a root, which needs no search.
    first = jump_and_look(materialised(bonds.lowest(jnp.arange(num_sites, dtype=jnp.int32), ways)))
    return jax.lax.while_loop(lambda carry: jnp.any(carry[1] < carry[0]), one_pass, first)[0]
