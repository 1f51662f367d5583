"""What replicas do between sweeps: exchange temperatures, are copied or dropped, or exchange clusters of sites.

Exchange (parallel tempering): rungs i and i + 1 of a chain change replicas with probability

    min(1, exp((beta_i - beta_i+1) (v_i+1 - v_i))).

Only the table of who is where changes; no state is moved.

Resampling (population annealing): from beta to beta', a replica has exp((beta' - beta) v) / mean descendants on
average, by systematic resampling: the number is that, rounded up or down.

Clusters (isoenergetic moves of Houdayer): of two replicas at one temperature, the sites where they differ fall into
connected clusters. The cluster of a random such site is exchanged, which keeps the sum of both values, hence the joint
law. A cluster that takes more than `_MOST_SPREADS` rounds to find is left; whether it does is the same from both sides.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, UInt32

from discrax.core import random
from discrax.core.resampling import systematic
from discrax.solving.replicas import Arrangement, Rows, of_sites

_MOST_SPREADS = 200


def _uniforms(key: UInt32[Array, "2"], use: int, turn: Array, shape: tuple[int, ...]) -> Float[Array, "..."]:
    folded = random.threefry(key[0], key[1], np.uint32(use), turn)
    count = int(np.prod(shape))
    words, _ = random.threefry(folded[0], folded[1], np.uint32(1), jnp.arange(count, dtype=jnp.uint32))
    return random.to_uniform(words).reshape(shape)


def exchange(
    key: UInt32[Array, "2"],
    turn: UInt32[Array, ""],
    replica_at: Int[Array, "models rungs chains"],
    ladder: Float[Array, "models rungs"],
    value: Float[Array, "models replicas"],
) -> tuple[Int[Array, "models rungs chains"], Float[Array, "models gaps"]]:
    """The next table of who is where, and the mean probability of an exchange across each gap that had its turn."""
    models, rungs, chains = replica_at.shape
    here = jnp.take_along_axis(value, replica_at.reshape(models, -1), axis=1).reshape(replica_at.shape)
    log_ratio = (ladder[:, :-1] - ladder[:, 1:])[:, :, None] * (here[:, 1:] - here[:, :-1])
    has_turn = (jnp.arange(rungs - 1) % 2 == turn.astype(jnp.int32) % 2)[None, :, None]
    swaps = has_turn & (jnp.log(_uniforms(key, 2, turn, log_ratio.shape)) < log_ratio)
    none = jnp.zeros((models, 1, chains), bool)
    source = jnp.arange(rungs)[None, :, None] + jnp.concatenate([swaps, none], 1) - jnp.concatenate([none, swaps], 1)
    rates = jnp.where(has_turn[:, :, 0], jnp.mean(jnp.exp(jnp.minimum(log_ratio, 0)), axis=2), 0)
    return jnp.take_along_axis(replica_at, source, axis=1), rates


def betas_at(
    replica_at: Int[Array, "models rungs chains"], ladder: Float[Array, "models rungs"]
) -> Float[Array, "models replicas"]:
    """The temperature of each replica."""
    models, rungs, chains = replica_at.shape
    of_rungs = jnp.broadcast_to(ladder[:, :, None], replica_at.shape).reshape(models, -1)
    empty = jnp.zeros((models, rungs * chains), ladder.dtype)
    return jax.vmap(lambda empty, at, betas: empty.at[at].set(betas))(empty, replica_at.reshape(models, -1), of_rungs)


def descendants(
    key: UInt32[Array, "2"],
    turn: UInt32[Array, ""],
    step: Float[Array, " models"],
    value: Float[Array, "models replicas"],
) -> Int[Array, "models replicas"]:
    """Of which replica each is a copy after beta has grown by `step`."""
    log_weights = step[:, None] * (value - jnp.max(value, axis=1, keepdims=True))
    return systematic(_uniforms(key, 3, turn, (len(value),)), log_weights)


def copy_replicas(
    arrangement: Arrangement, x: Integer[Array, "n replicas"], source: Int[Array, "models replicas"]
) -> Integer[Array, "n replicas"]:
    """Replica r of each model becomes a copy of its `source[r]`."""
    if arrangement.owner is None:
        return x[:, source[0]]
    return jnp.take_along_axis(x, of_sites(arrangement, source), axis=1)


def can_exchange_clusters(arrangement: Arrangement) -> bool:
    """Whether the neighbours of all sites are listed, colour by colour."""
    blocks = arrangement.blocks
    is_listed = isinstance(blocks, tuple) and len(blocks) > 0 and all(rows.indices is not None for rows in blocks)
    return arrangement.num_models == 1 and is_listed


def exchange_clusters(
    arrangement: Arrangement,
    key: UInt32[Array, "2"],
    turn: UInt32[Array, ""],
    replica_at: Int[Array, "models rungs chains"],
    x: Integer[Array, "n replicas"],
) -> Integer[Array, "n replicas"]:
    """Chains c and c + half of every rung exchange a cluster. For one model only."""
    _, rungs, chains = replica_at.shape
    half = chains // 2
    a, b = replica_at[0, :, :half].reshape(-1), replica_at[0, :, half : 2 * half].reshape(-1)
    first, second = x[:, a], x[:, b]
    differs = first != second
    chance = _uniforms(key, 4, turn, (rungs * half,)) * jnp.sum(differs, axis=0)
    reached = jnp.cumsum(differs, axis=0, dtype=jnp.int32)
    seed = differs & (reached == jnp.floor(chance).astype(jnp.int32)[None] + 1)
    cluster, is_whole = _spread(arrangement, differs, seed)
    moved = cluster & is_whole[None]
    first, second = jnp.where(moved, second, first), jnp.where(moved, first, second)
    return x.at[:, a].set(first).at[:, b].set(second)


def _spread(
    arrangement: Arrangement, differs: Bool[Array, "n pairs"], seed: Bool[Array, "n pairs"]
) -> tuple[Bool[Array, "n pairs"], Bool[Array, " pairs"]]:
    """The connected sites of `differs` around the seeds, and whether all were found."""
    blocks = arrangement.blocks
    assert isinstance(blocks, tuple)

    def spread(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        cluster, _, count = carry
        before = cluster
        for rows in (*blocks, *reversed(blocks[:-1])):
            size = len(rows.weights)
            near = _any_neighbour(rows, cluster) & jax.lax.dynamic_slice_in_dim(differs, rows.start, size)
            mine = jax.lax.dynamic_slice_in_dim(cluster, rows.start, size)
            cluster = jax.lax.dynamic_update_slice_in_dim(cluster, mine | near, rows.start, axis=0)
        return cluster, jnp.any(cluster != before, axis=0), count + 1

    def goes_on(carry: tuple[Array, Array, Array]) -> Array:
        return jnp.any(carry[1]) & (carry[2] < _MOST_SPREADS)

    begin = (seed, jnp.ones(seed.shape[1], bool), jnp.zeros((), jnp.int32))
    cluster, grows, _ = jax.lax.while_loop(goes_on, spread, begin)
    return cluster, ~grows


def _any_neighbour(rows: Rows, cluster: Bool[Array, "n pairs"]) -> Bool[Array, "k pairs"]:
    assert rows.indices is not None
    found = jnp.zeros((len(rows.indices), cluster.shape[1]), bool)
    for j in range(rows.indices.shape[1]):
        found = found | ((rows.weights[:, j, None] != 0) & cluster[rows.indices[:, j]])
    return found
