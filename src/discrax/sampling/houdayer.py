"""Houdayer's cluster move between two replicas a and b of one law with pairwise couplings (Houdayer, 2001).

The sites at which the replicas differ fall into clusters that couplings connect. One site of them is drawn, and a and b
exchange their cluster C:

    x_a <- x_b on C,   x_b <- x_a on C.

A coupling between C and the rest has an outer end at which the replicas agree, so log pi(x_a) + log pi(x_b) stays as it
is; where the replicas differ does not change either, so the way back is as likely. The product of both laws is kept,
and nothing is rejected. Any fields are allowed. At couplings that percolate, as those of three dimensions do when it is
cold, the cluster is nearly all of them and the move says little.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.bonds import Bonded, Bonds, clusters
from discrax.core.target import Target, offered


class Couplings(eqx.Module):
    """Which sites are coupled."""

    bonds: Bonds
    exist: Bool[Array, " bonds"]  # those of strength 0 connect nothing


def couplings_of(target: Target) -> Couplings:
    """Of a target with two levels; a sentence where there are none."""
    bonded = offered(target, Bonded)
    if bonded is None or not target.space.has_two_levels:
        raise ValueError(
            "Clusters are exchanged between replicas of targets with two levels and pairwise couplings (Bonded), but "
            f"{type(target).__name__} has {target.space.num_levels} levels"
            f"{'' if bonded is not None else ' and does not offer that'}; use clusters=False."
        )
    bonds = bonded.bonds()
    return Couplings(bonds, bonded.strengths(bonds) != 0)


def houdayer_move(
    key: PRNGKeyArray, couplings: Couplings, x: Integer[Array, "rungs 2 *shape"]
) -> Integer[Array, "rungs 2 *shape"]:
    """The codes after each pair of replicas has exchanged one cluster."""
    pairs = x.reshape(*x.shape[:2], -1)
    n = pairs.shape[-1]

    def draw_cluster(key: PRNGKeyArray, differs: Bool[Array, " n"]) -> Bool[Array, " n"]:
        labels = clusters(couplings.bonds, couplings.exist & couplings.bonds.are_equal(differs.astype(jnp.int8)), n)
        return differs & (labels == labels[_draw_site(key, differs)])

    is_in = jax.vmap(draw_cluster)(random.split(key, len(x)), pairs[:, 0] != pairs[:, 1])
    after = jnp.where(is_in[:, None], pairs[:, ::-1], pairs)
    return after.reshape(x.shape)


def _draw_site(key: PRNGKeyArray, differs: Bool[Array, " n"]) -> Int[Array, ""]:
    """One of the sites where the replicas differ, all as likely; any where there is none."""
    counts = jnp.cumsum(differs.astype(jnp.int32))
    pick = random.integers(key, 1, jnp.maximum(counts[-1], 1))[0]
    return jnp.argmax(counts > pick)
