"""Rounds of sweeps in one program: temperatures and all that replicas do to each other live inside of it.

A round is some sweeps at one temperature each; then values are computed anew (nothing adds up), the best states are
kept, and replicas exchange or are resampled. How many rounds, how many sweeps and which temperatures are numbers that
the program takes, so one program serves a whole search and the host hears of it as seldom as it likes.
"""

from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, UInt32

from discrax.solving.replica_moves import betas_at, copy_replicas, descendants, exchange, exchange_clusters
from discrax.solving.replicas import Arrangement, of_sites, sweep, values

MOST_ROUNDS = 512  # of a call


class ReplicaState(NamedTuple):
    """All that a search by replicas carries along."""

    keys: UInt32[Array, "2 replicas"]
    key: UInt32[Array, "2"]  # of what replicas do together
    turn: UInt32[Array, ""]  # sweeps so far
    round: UInt32[Array, ""]
    x: Integer[Array, "n replicas"]
    value: Float[Array, "models replicas"]
    best_x: Integer[Array, "n replicas"]
    best_value: Float[Array, "models replicas"]
    replica_at: Int[Array, "models rungs chains"] | None = None  # of tempering
    rates: Float[Array, "models gaps"] | None = None  # of exchanges, summed
    beta: Float[Array, " models"] | None = None  # of population annealing: that the replicas are at


def run_rounds(
    arrangement: Arrangement,
    state: ReplicaState,
    betas: Float[Array, "rounds models rungs"],
    num_rounds: Int[Array, ""],
    num_sweeps: Int[Array, ""],
    moves_together: Int[Array, ""],
    *,
    kind: str,
) -> ReplicaState:
    """So many rounds. `betas` of a round: one of each model, or with `kind` "temper" the ladder.

    `kind` is "anneal", "temper", "clusters" (tempering with exchanges of clusters) or "population". What replicas do to
    each other waits if `moves_together` is 0; clusters are exchanged every so many rounds.
    """
    tempers = kind in ("temper", "clusters")

    def one_round(t: Array, state: ReplicaState) -> ReplicaState:
        now = betas[t]
        if tempers:
            assert state.replica_at is not None
            beta = betas_at(state.replica_at, now)
        elif kind == "population":
            assert state.beta is not None
            state = jax.lax.cond(
                moves_together > 0, _resample, lambda _, state, __: state, arrangement, state, now[:, 0]
            )
            beta = jnp.broadcast_to(now, state.value.shape)
        else:
            beta = jnp.broadcast_to(now, state.value.shape)
        x = jax.lax.fori_loop(
            0,
            num_sweeps,
            lambda i, x: sweep(arrangement, state.keys, state.turn + i.astype(jnp.uint32), x, beta),
            state.x,
        )
        if kind == "clusters":
            is_due = (moves_together > 0) & (state.round.astype(jnp.int32) % jnp.maximum(moves_together, 1) == 0)
            move = partial(exchange_clusters, arrangement, state.key, state.round, cast(Array, state.replica_at))
            x = jax.lax.cond(is_due, move, lambda x: x, x)
        state = state._replace(x=x, turn=state.turn + num_sweeps.astype(jnp.uint32))
        state = keep_best(arrangement, state)
        if tempers:
            assert state.replica_at is not None
            assert state.rates is not None
            at, rates = exchange(state.key, state.round, state.replica_at, now, state.value)
            at = jnp.where(moves_together > 0, at, state.replica_at)
            state = state._replace(replica_at=at, rates=state.rates + rates)
        return state._replace(round=state.round + jnp.uint32(1))

    return jax.lax.fori_loop(0, num_rounds, one_round, state)


def keep_best(arrangement: Arrangement, state: ReplicaState) -> ReplicaState:
    """With the values of the states, and the best states so far."""
    value = values(arrangement, state.x)
    is_better = value > state.best_value
    best_x = jax.lax.cond(
        jnp.any(is_better),
        lambda: jnp.where(of_sites(arrangement, is_better), state.x, state.best_x),
        lambda: state.best_x,
    )
    return state._replace(value=value, best_x=best_x, best_value=jnp.maximum(value, state.best_value))


def _resample(arrangement: Arrangement, state: ReplicaState, beta: Float[Array, " models"]) -> ReplicaState:
    assert state.beta is not None
    source = descendants(state.key, state.round, jnp.maximum(beta - state.beta, 0), state.value)
    x = copy_replicas(arrangement, state.x, source)
    return state._replace(x=x, value=jnp.take_along_axis(state.value, source, axis=1), beta=beta)
