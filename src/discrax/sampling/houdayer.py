"""Houdayer's cluster move between two replicas a and b of one law with pairwise couplings (Houdayer, 2001).

The sites at which the replicas differ fall into clusters that couplings connect. One site of them is drawn, and a and b
exchange their cluster C:

    x_a <- x_b on C,   x_b <- x_a on C.

A coupling between C and the rest has an outer end at which the replicas agree, so log pi(x_a) + log pi(x_b) stays as it
is; where the replicas differ does not change either, so the way back is as likely. The product of both laws is kept,
and nothing is rejected. Any fields are allowed. At couplings that percolate, as those of three dimensions do when it is
cold, the cluster is nearly all of them and the move says little.
"""

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.target import QuadraticForm, Target, offered

_FEW_NEIGHBOURS = 16  # of a site, up to which they are gathered one after another


class Neighbours(eqx.Module):
    """The sites that a coupling connects with each site, padded by the site itself."""

    sites: Int[Array, "n degree"]


def neighbours_of(target: Target) -> Neighbours:
    """From the Hessian of a target with two levels; a sentence where there is none."""
    form = offered(target, QuadraticForm)
    if form is None or not target.space.has_two_levels:
        raise ValueError(
            "Clusters are exchanged between replicas of targets with two levels and pairwise couplings "
            f"(QuadraticForm), but {type(target).__name__} has {target.space.num_levels} levels"
            f"{'' if form is not None else ' and does not offer that'}; use clusters=False."
        )
    pairs, weights = form.hessian()
    pairs = np.asarray(pairs)[(np.asarray(weights) != 0) & (pairs[:, 0] != pairs[:, 1])]
    n = target.space.num_sites
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    degrees = np.bincount(ends[:, 0], minlength=n)
    sites = np.tile(np.arange(n)[:, None], (1, max(1, degrees.max(initial=0))))
    place = np.arange(len(ends)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    sites[ends[:, 0], place] = ends[:, 1]
    return Neighbours(jnp.asarray(sites, jnp.int32))


def houdayer_move(
    key: PRNGKeyArray, neighbours: Neighbours, x: Integer[Array, "rungs 2 *shape"]
) -> Integer[Array, "rungs 2 *shape"]:
    """The codes after each pair of replicas has exchanged one cluster."""
    pairs = x.reshape(*x.shape[:2], -1)
    differs = pairs[:, 0] != pairs[:, 1]
    starts = jax.vmap(_draw_site)(random.split(key, len(x)), differs)
    is_in = clusters_of(neighbours, differs.T, starts).T
    after = jnp.where(is_in[:, None], pairs[:, ::-1], pairs)
    return after.reshape(x.shape)


def _draw_site(key: PRNGKeyArray, differs: Bool[Array, " n"]) -> Int[Array, ""]:
    """One of the sites where the replicas differ, all as likely; any where there is none."""
    counts = jnp.cumsum(differs.astype(jnp.int32))
    pick = random.integers(key, 1, jnp.maximum(counts[-1], 1))[0]
    return jnp.argmax(counts > pick)


def clusters_of(
    neighbours: Neighbours, differs: Bool[Array, "n rungs"], starts: Int[Array, " rungs"]
) -> Bool[Array, "n rungs"]:
    """The sites that are connected with the start, at each rung: it spreads until nothing is added anywhere.

    The rungs of a site lie side by side, so that whole lines of memory are gathered.
    """
    first = differs & (jnp.arange(len(differs))[:, None] == starts[None])

    def spread(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        is_in, _ = carry
        columns = neighbours.sites.T
        if len(columns) > _FEW_NEIGHBOURS:
            near = jnp.any(is_in[neighbours.sites], axis=1)
        else:
            near = reduce(jnp.logical_or, [is_in[column] for column in columns])
        more = differs & (is_in | near)
        return more, jnp.any(more != is_in)

    return jax.lax.while_loop(lambda carry: carry[1], spread, (first, jnp.any(first)))[0]
