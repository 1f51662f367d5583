"""Exchanges of neighbouring rungs of a ladder of laws log p_b = log p_0 + b V, by the deterministic even-odd scheme.

The states x_k and x_k+1 of rungs at b_k < b_k+1 change places with probability

    min(1, exp((b_k - b_k+1) (V(x_k+1) - V(x_k)))),

for even k after even turns and odd k after odd ones: a replica that was moved one way goes on that way while its
exchanges are accepted, so that it crosses a ladder of K rungs in about K turns and not in K^2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from discrax.core import random
from discrax.core.metropolis import decide


class Exchanges(NamedTuple):
    """Of one turn."""

    is_swapped: Bool[Array, "gaps ..."]
    accept_probs: Float[Array, "gaps ..."]  # of all gaps, also of those whose turn it was not


def decide_exchanges(
    key: PRNGKeyArray, betas: Float[Array, " rungs"], values: Float[Array, "rungs ..."], turn: Int32[Array, ""]
) -> Exchanges:
    """Which neighbours change places in a turn; `values` are V, with further axes for ladders side by side."""
    gaps = (betas[:-1] - betas[1:]).reshape(-1, *(1,) * (values.ndim - 1))
    log_ratios = gaps * (values[1:] - values[:-1])
    keys = random.split(key, log_ratios.size)
    decisions = jax.vmap(decide)(keys, log_ratios.reshape(-1))
    is_accepted, accept_probs = (
        each.reshape(log_ratios.shape) for each in (decisions.is_accepted, decisions.accept_prob)
    )
    is_turn = (jnp.arange(len(gaps)) % 2 == turn % 2).reshape(gaps.shape)
    return Exchanges(is_accepted & is_turn, accept_probs)


def exchanged(tree: Any, is_swapped: Bool[Array, "gaps ..."]) -> Any:
    """The arrays of a tree, (rungs, ...), after exchanges no two of which share a rung."""
    swaps = is_swapped.astype(jnp.int32)
    none = jnp.zeros((1, *swaps.shape[1:]), jnp.int32)
    here = jnp.arange(len(swaps) + 1).reshape(-1, *(1,) * (swaps.ndim - 1))
    source = here + jnp.concatenate([swaps, none]) - jnp.concatenate([none, swaps])

    def of(leaf: Array) -> Array:
        rows = source.reshape(*source.shape, *(1,) * (leaf.ndim - source.ndim))
        return jnp.take_along_axis(leaf, rows, axis=0, mode="promise_in_bounds")

    return jax.tree.map(of, tree)
