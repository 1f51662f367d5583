"""Compiled loops of `covers.py`: sets of nodes that conflict along the edges of a graph.

`seek_cover` is NuMVC (Cai, Su, Luo and Sattar, 2013), told of the set S and not of its complement, the vertex cover.
Edges have weights w, at first 1. It keeps

    t_v = sum of w over the edges between v and S,

and holds S at one node more than the best set so far. An exchange takes in the node of least t, and drops an end of a
random edge inside S: that of larger t, unless nothing around it has changed since it came. Then every edge inside S
gains weight 1, which is how the search leaves what it cannot mend. Ties go to the node that has not changed for
longest. When no edge is left inside, S is the new best. If the mean weight passes half the number of nodes, all weights
are multiplied by 0.3 and rounded down, but not below 1.

Graphs are rows of neighbours, or a matrix where more than one pair in 32 is joined: then a row is added at once. The
least of an array is kept by blocks; only those that have changed are looked through. Members of S have IN added to
their t or key, nodes that may not come in have HELD, so that the look for the least leaves both out.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, Integer, UInt8, UInt64

from discrax.solving.sites_kernels import below, compiled, draw

IN, HELD, BLOCK = np.int32(1 << 29), np.int32(1 << 28), 128
MOST_WEIGHT = 32_000  # of an edge in a matrix of 16 bits
FORGET = 0.3
SIZE, CLOCK, BEST, DONE, CONFLICTS, LAST, TOTAL = range(7)  # places in `numbers`


class Rows(NamedTuple):
    """The graph: neighbours of v are `others[start[v]:start[v + 1]]`, or where row v of `matrix` is not 0."""

    start: Int64[np.ndarray, " n_and_1"]
    others: Int32[np.ndarray, " ends"]
    twin: Int32[np.ndarray, " ends"]  # the place of the same edge in the other row
    matrix: Integer[np.ndarray, "rows columns"]  # has no rows where there are too many nodes


class Keys(NamedTuple):
    """An array whose least is wanted, by blocks, and how long ago each node changed."""

    key: Int32[np.ndarray, " padded"]
    age: Int64[np.ndarray, " padded"]
    least: Int32[np.ndarray, " blocks"]
    is_stale: UInt8[np.ndarray, " blocks"]


class Members(NamedTuple):
    """S as a list, and the place of each member in it."""

    nodes: Int32[np.ndarray, " n_and_1"]
    place: Int32[np.ndarray, " n"]


@compiled
def least(keys: Keys) -> int:
    """The node of least key, the oldest of several."""
    blocks = keys.key.reshape(-1, BLOCK)
    smallest = np.int32(2147483647)
    for b in range(len(keys.least)):
        if keys.is_stale[b]:
            keys.is_stale[b] = 0
            m = blocks[b, 0]
            for j in range(BLOCK):
                x = blocks[b, j]
                m = x if x < m else m
            keys.least[b] = m
        x = keys.least[b]
        smallest = x if x < smallest else smallest
    best, oldest = 0, np.int64(9223372036854775807)
    for b in range(len(keys.least)):
        if keys.least[b] == smallest:
            for j in range(BLOCK):
                v = b * BLOCK + j
                if blocks[b, j] == smallest and keys.age[v] < oldest:
                    best, oldest = v, keys.age[v]
    return best


@compiled
def change(keys: Keys, node: int, by: int) -> None:
    """Adds to the key of a node."""
    keys.key[node] += np.int32(by)
    keys.is_stale[node // BLOCK] = 1


@compiled
def join(members: Members, numbers: Int64[np.ndarray, " numbers"], node: int) -> None:
    """Puts a node into the list of members."""
    members.nodes[numbers[SIZE]] = node
    members.place[node] = numbers[SIZE]
    numbers[SIZE] += 1


@compiled
def part(members: Members, numbers: Int64[np.ndarray, " numbers"], node: int) -> None:
    """Takes a node from the list of members."""
    numbers[SIZE] -= 1
    last = members.nodes[numbers[SIZE]]
    members.nodes[members.place[node]] = last
    members.place[last] = members.place[node]


class CoverState(NamedTuple):
    """What `seek_cover` changes. `weights` are those of edges, in the order of `others`, or the matrix holds them."""

    keys: Keys
    members: Members
    weights: Int32[np.ndarray, " ends"]
    may_leave: UInt8[np.ndarray, " n"]
    inside: Int32[np.ndarray, "3 edges"]  # two ends, and the place in `others`
    numbers: Int64[np.ndarray, " numbers"]
    best: UInt8[np.ndarray, " n"]
    stream: UInt64[np.ndarray, " 2"]


@compiled
def note_inside(state: CoverState, u: int, v: int, edge: int) -> None:
    """An edge has both its ends in S now."""
    count = state.numbers[CONFLICTS]
    state.inside[0, count], state.inside[1, count], state.inside[2, count] = u, v, edge
    state.numbers[CONFLICTS] = count + 1
    state.may_leave[v] = 1


@compiled
def enter(rows: Rows, state: CoverState, u: int) -> None:
    """Takes node u into S."""
    keys, t = state.keys, state.keys.key
    if len(rows.matrix):
        row = rows.matrix[u]
        for i in range(state.numbers[SIZE]):
            v = state.members.nodes[i]
            if row[v] > 0:
                note_inside(state, u, v, 0)
        for j in range(len(row)):
            t[j] += row[j]
        keys.is_stale[:] = 1
    else:
        for e in range(rows.start[u], rows.start[u + 1]):
            v = rows.others[e]
            t[v] += state.weights[e]
            keys.is_stale[v // BLOCK] = 1
            if t[v] >= IN:
                note_inside(state, u, v, e)
    change(keys, u, IN)
    join(state.members, state.numbers, u)
    state.may_leave[u] = 0
    keys.age[u] = state.numbers[CLOCK]
    state.numbers[CLOCK] += 1


@compiled
def leave(rows: Rows, state: CoverState, v: int) -> None:
    """Drops node v from S."""
    keys, t = state.keys, state.keys.key
    part(state.members, state.numbers, v)
    change(keys, v, -IN)
    if len(rows.matrix):
        row = rows.matrix[v]
        for j in range(len(row)):
            t[j] -= row[j]
        for i in range(state.numbers[SIZE]):
            u = state.members.nodes[i]
            if row[u] > 0:
                state.may_leave[u] = 1
        keys.is_stale[:] = 1
    else:
        for e in range(rows.start[v], rows.start[v + 1]):
            u = rows.others[e]
            t[u] -= state.weights[e]
            keys.is_stale[u // BLOCK] = 1
            if t[u] >= IN:
                state.may_leave[u] = 1
    keys.age[v] = state.numbers[CLOCK]
    state.numbers[CLOCK] += 1
    state.numbers[LAST] = v


@compiled
def choose_leaver(state: CoverState) -> int:
    """The end of a random edge inside S that had better go."""
    bits, a, b = draw(state.stream[0], state.stream[1])
    state.stream[0], state.stream[1] = a, b
    i = below(bits, state.numbers[CONFLICTS])
    u, v = state.inside[0, i], state.inside[1, i]
    if state.may_leave[u] == 0:
        return v
    if state.may_leave[v] == 0:
        return u
    t, age = state.keys.key, state.keys.age
    return u if t[u] > t[v] or (t[u] == t[v] and age[u] < age[v]) else v


@compiled
def weigh(rows: Rows, state: CoverState) -> bool:
    """Forgets the edges of the node that left, and makes those inside S heavier. Whether one is as heavy as can be."""
    inside, gone, i, is_full = state.inside, state.numbers[LAST], 0, False
    while i < state.numbers[CONFLICTS]:
        u, v, e = inside[0, i], inside[1, i], inside[2, i]
        if gone in (u, v):
            last = state.numbers[CONFLICTS] - 1
            for k in range(3):
                inside[k, i] = inside[k, last]
            state.numbers[CONFLICTS] = last
            continue
        if len(rows.matrix):
            rows.matrix[u, v] += 1
            rows.matrix[v, u] += 1
            is_full |= rows.matrix[u, v] >= MOST_WEIGHT
        else:
            state.weights[e] += 1
            state.weights[rows.twin[e]] += 1
        state.keys.key[u] += 1  # of members, which are not looked at
        state.keys.key[v] += 1
        state.numbers[TOTAL] += 1
        i += 1
    return is_full


@compiled
def forget(rows: Rows, state: CoverState) -> None:
    """Makes the weights of edges smaller."""
    t, total, n = state.keys.key, 0, len(state.best)
    for u in range(n):
        t[u] = 0
    if len(rows.matrix):
        for u in range(n):
            row = rows.matrix[u]
            for j in range(len(row)):
                if row[j] > 0:
                    row[j] = max(1, int(FORGET * row[j]))
                    total += row[j]
    else:
        for e in range(len(state.weights)):
            state.weights[e] = max(1, int(FORGET * state.weights[e]))
            total += state.weights[e]
    for i in range(state.numbers[SIZE]):
        u = state.members.nodes[i]
        t[u] += IN
        if len(rows.matrix):
            row = rows.matrix[u]
            for j in range(len(row)):
                t[j] += row[j]
        else:
            for e in range(rows.start[u], rows.start[u + 1]):
                t[rows.others[e]] += state.weights[e]
    state.numbers[TOTAL] = total // 2
    state.keys.is_stale[:] = 1


@compiled
def seek_cover(rows: Rows, state: CoverState, count: int, target: int) -> None:
    """So many exchanges, or fewer if `target` nodes are found or no set can be larger."""
    numbers, keys = state.numbers, state.keys
    n, num_edges = len(state.best), max(1, len(rows.twin) // 2)
    for _ in range(count):
        grows = numbers[CONFLICTS] == 0
        held = -1 if grows else numbers[LAST]
        if held >= 0:
            change(keys, held, HELD)
        u = least(keys)
        if held >= 0:
            change(keys, held, -HELD)
        if grows and keys.key[u] > 0 and numbers[SIZE] > numbers[BEST]:
            numbers[BEST] = numbers[SIZE]
            for j in range(n):
                state.best[j] = keys.key[j] >= IN
        if keys.key[u] >= IN or numbers[BEST] >= target:
            numbers[DONE] = 1
            return
        enter(rows, state, u)
        if grows:
            numbers[LAST] = -1
            continue
        leave(rows, state, choose_leaver(state))
        is_full = weigh(rows, state)
        if is_full or numbers[TOTAL] > 0.5 * n * num_edges:
            forget(rows, state)
