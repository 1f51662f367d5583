"""Compiled loops of `covers.py`: a tabu search of sets without conflicts, for nodes of any weights.

After Wu, Hao and Glover (2012). With

    key_v = (weight of the nodes of S that conflict with v) - w_v,

a move takes in the node of least key, the oldest of several, and drops those that conflict with it; these may not come
back for a few moves. When the best set since the last start has not grown for `patience` moves, it starts anew, in
another order of nodes. How graphs and keys are stored is told in `covers_kernels.py`.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt8, UInt64

from discrax.solving.covers_kernels import (
    BEST, BLOCK, CLOCK, DONE, HELD, IN, SIZE, Keys, Members, Rows, change, join, least, part,
)  # fmt: skip
from discrax.solving.sites_kernels import below, compiled, draw

RING = 1024  # moves that a node may be held for, at most
VALUE, LOCAL_BEST, SINCE = range(4, 7)  # more places in `numbers`


class SwapState(NamedTuple):
    """What `swap` changes. `held` are lists of nodes to let go of, by the move when, in a ring."""

    keys: Keys
    members: Members
    weights: Int32[np.ndarray, " n"]  # of nodes
    held: Int32[np.ndarray, " ring"]
    next_held: Int32[np.ndarray, " n"]
    numbers: Int64[np.ndarray, " numbers"]
    best: UInt8[np.ndarray, " n"]
    stream: UInt64[np.ndarray, " 2"]


@compiled
def spread(rows: Rows, keys: Keys, u: int, weight: int) -> None:
    """Adds to the keys of all neighbours of u."""
    if len(rows.matrix):
        row, key = rows.matrix[u], keys.key
        for j in range(len(row)):
            key[j] += np.int32(weight) * row[j]
        keys.is_stale[:] = 1
    else:
        for e in range(rows.start[u], rows.start[u + 1]):
            keys.key[rows.others[e]] += np.int32(weight)
            keys.is_stale[rows.others[e] // BLOCK] = 1


@compiled
def drop(rows: Rows, state: SwapState, v: int, moves: int) -> None:
    """Drops v from S, and holds it for so many moves."""
    clock = state.numbers[CLOCK]
    part(state.members, state.numbers, v)
    spread(rows, state.keys, v, -state.weights[v])
    change(state.keys, v, HELD - IN)
    when = (clock + moves) % RING
    state.next_held[v] = state.held[when]
    state.held[when] = v
    state.keys.age[v] = clock
    state.numbers[VALUE] -= state.weights[v]


@compiled
def let_go(state: SwapState, when: int) -> None:
    """Nodes whose time is over may come in again."""
    v = state.held[when]
    while v >= 0:
        change(state.keys, v, -HELD)
        v = state.next_held[v]
    state.held[when] = -1


@compiled
def start_anew(rows: Rows, state: SwapState) -> None:
    """Empties S; ages become random, so that the way back is another one."""
    n, key, a, b = len(state.best), state.keys.key, state.stream[0], state.stream[1]
    for when in range(RING):
        state.held[when] = -1
    for v in range(n):
        key[v] = -state.weights[v]
        bits, a, b = draw(a, b)
        state.keys.age[v] = -np.int64(bits >> np.uint64(2))
    state.stream[0], state.stream[1] = a, b
    state.numbers[SIZE] = state.numbers[VALUE] = state.numbers[SINCE] = 0
    state.numbers[LOCAL_BEST] = 0
    state.keys.is_stale[:] = 1


@compiled
def drop_conflicts(rows: Rows, state: SwapState, u: int) -> None:
    """Drops the members that conflict with u."""
    numbers, nodes = state.numbers, state.members.nodes
    bits, a, b = draw(state.stream[0], state.stream[1])
    state.stream[0], state.stream[1] = a, b
    moves = 7 + below(bits, min(RING - 8, numbers[SIZE] + 1))
    if len(rows.matrix):
        i = 0
        while i < numbers[SIZE]:
            if rows.matrix[u, nodes[i]] > 0:
                drop(rows, state, nodes[i], moves)
            else:
                i += 1
    else:
        for e in range(rows.start[u], rows.start[u + 1]):
            if state.keys.key[rows.others[e]] >= IN - HELD:
                drop(rows, state, rows.others[e], moves)


@compiled
def swap(rows: Rows, state: SwapState, count: int, patience: int, target: int) -> None:
    """So many moves, or fewer if a set of weight `target` is found."""
    numbers, keys = state.numbers, state.keys
    for _ in range(count):
        let_go(state, numbers[CLOCK] % RING)
        u = least(keys)
        if keys.key[u] >= 0 and numbers[VALUE] > numbers[LOCAL_BEST]:
            numbers[LOCAL_BEST], numbers[SINCE] = numbers[VALUE], 0
            if numbers[VALUE] > numbers[BEST]:
                numbers[BEST] = numbers[VALUE]
                for j in range(len(state.best)):
                    state.best[j] = keys.key[j] >= IN - HELD
                if numbers[BEST] >= target:
                    numbers[DONE] = 1
                    return
        numbers[CLOCK] += 1
        numbers[SINCE] += 1
        if keys.key[u] >= HELD // 2 or numbers[SINCE] > patience:
            start_anew(rows, state)
            continue
        drop_conflicts(rows, state, u)
        change(keys, u, IN)
        spread(rows, keys, u, state.weights[u])
        join(state.members, numbers, u)
        keys.age[u] = numbers[CLOCK]
        numbers[VALUE] += state.weights[u]
