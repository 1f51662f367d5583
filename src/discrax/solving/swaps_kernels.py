"""Compiled loops of `covers.py`: a tabu search of sets without conflicts, for nodes of any weights.

After Wu, Hao and Glover (2012). With

    key_v = (weight of the nodes of S that conflict with v) - w_v,

a move takes in the node of least key, the oldest of several, and drops those that conflict with it; these may not come
back for a few moves. When the best set since the last start has not grown for `patience` moves, it starts anew, from
a random node. How graphs and keys are stored is told in `covers_kernels.py`; the matrix holds zeros and ones.
`held` are lists of nodes to let go of, by the move when, in a ring: the first of each, and `next_held` after a node.
"""

import numpy as np
from jaxtyping import Int32

from discrax.solving.covers_kernels import (
    BEST,
    BLOCK,
    CLOCK,
    HELD,
    IN,
    SIZE,
    Ages,
    Ends,
    Flags,
    KeysOfNodes,
    Leasts,
    Matrix,
    Nodes,
    Numbers,
    Stale,
    Starts,
    Stream,
    find_least,
    join,
    part,
)  # fmt: skip
from discrax.solving.sites_kernels import below, compiled, draw

RING = 1024  # moves that a node may be held for, at most
VALUE, LOCAL_BEST, SINCE = range(4, 7)  # more places in `numbers`

Ring = Int32[np.ndarray, " ring"]


@compiled
def spread(
    start: Starts, others: Ends, matrix: Matrix, key: KeysOfNodes, stale: Stale, u: int, weight: np.int32
) -> None:
    """Adds a weight to the keys of all neighbours of u."""
    if len(matrix):
        for j in range(len(key)):
            key[j] += weight * matrix[u, j]
        for b in range(len(stale)):
            stale[b] = 1
    else:
        for e in range(start[u], start[u + 1]):
            key[others[e]] += weight
            stale[others[e] // BLOCK] = 1


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def drop(
    start: Starts, others: Ends, matrix: Matrix, weights: Nodes, key: KeysOfNodes, age: Ages, stale: Stale,
    members: Nodes, place: Nodes, held: Ring, next_held: Nodes, numbers: Numbers, v: int, moves: int,
) -> None:  # fmt: skip
    """Drops v from S, and holds it for so many moves."""
    part(members, place, numbers, v)
    spread(start, others, matrix, key, stale, v, -weights[v])
    key[v] += HELD - IN
    stale[v // BLOCK] = 1
    when = (numbers[CLOCK] + moves) % RING
    next_held[v] = held[when]
    held[when] = v
    age[v] = numbers[CLOCK]
    numbers[VALUE] -= weights[v]


@compiled
def let_go(key: KeysOfNodes, stale: Stale, held: Ring, next_held: Nodes, when: int) -> None:
    """Nodes whose time is over may come in again."""
    v = held[when]
    while v >= 0:
        key[v] -= HELD
        stale[v // BLOCK] = 1
        v = next_held[v]
    held[when] = -1


@compiled
def start_anew(
    weights: Nodes, key: KeysOfNodes, age: Ages, stale: Stale, held: Ring, numbers: Numbers, stream: Stream
) -> None:
    """Empties S; ages become random, so that the way back is another one."""
    a, b = stream[0], stream[1]
    held[:] = -1
    for v in range(len(weights)):
        key[v] = -weights[v]
        bits, a, b = draw(a, b)
        age[v] = -np.int64(bits >> np.uint64(2))
    stream[0], stream[1] = a, b
    numbers[SIZE] = numbers[VALUE] = numbers[SINCE] = numbers[LOCAL_BEST] = 0
    stale[:] = 1


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def swap(
    start: Starts, others: Ends, matrix: Matrix, weights: Nodes, key: KeysOfNodes, age: Ages, leasts: Leasts,
    stale: Stale, members: Nodes, place: Nodes, held: Ring, next_held: Nodes, numbers: Numbers, best: Flags,
    stream: Stream, count: int, patience: int,
) -> None:  # fmt: skip
    """So many moves."""
    for _ in range(count):
        let_go(key, stale, held, next_held, numbers[CLOCK] % RING)
        u = find_least(key, age, leasts, stale, numbers[CLOCK])
        if key[u] >= 0 and numbers[VALUE] > numbers[LOCAL_BEST]:
            numbers[LOCAL_BEST], numbers[SINCE] = numbers[VALUE], 0
            if numbers[VALUE] > numbers[BEST]:
                numbers[BEST] = numbers[VALUE]
                for j in range(len(best)):
                    best[j] = key[j] >= IN - HELD // 2
        numbers[CLOCK] += 1
        numbers[SINCE] += 1
        bits, a, b = draw(stream[0], stream[1])
        stream[0], stream[1] = a, b
        if key[u] >= HELD // 2 or numbers[SINCE] > patience:
            start_anew(weights, key, age, stale, held, numbers, stream)
            u = below(bits, len(best))
        size = numbers[SIZE]
        moves = min(7, 1 + size // 2) + below(bits, min(RING - 8, size + 1))
        if len(matrix):
            i = 0
            while i < numbers[SIZE]:
                v = members[i]
                if matrix[u, v] > 0:
                    drop(start, others, matrix, weights, key, age, stale, members, place, held, next_held, numbers, v, moves)  # noqa: E501  # fmt: skip
                else:
                    i += 1
        else:
            for e in range(start[u], start[u + 1]):
                v = others[e]
                if key[v] >= IN - HELD // 2:
                    drop(start, others, matrix, weights, key, age, stale, members, place, held, next_held, numbers, v, moves)  # noqa: E501  # fmt: skip
        spread(start, others, matrix, key, stale, u, weights[u])
        key[u] += IN
        stale[u // BLOCK] = 1
        join(members, place, numbers, u)
        age[u] = numbers[CLOCK]
        numbers[VALUE] += weights[u]
