"""Compiled loops of `covers.py`: sets of nodes that conflict along the edges of a graph, by weights of edges.

This is NuMVC (Cai, Su, Luo and Sattar, 2013), told of the set S and not of its complement, the vertex cover. Edges have
weights w, at first 1. The loop keeps

    key_v = sum of w over the edges between v and S,

and holds S at one node more than the best set so far. An exchange takes in the node of least key, and drops an end of a
random edge inside S: that of larger key, unless nothing around it has changed since it came. Then every edge inside S
gains weight 1, which is how the search leaves what it cannot mend. Ties go to the node that has not changed for
longest. When no edge is left inside, S is the new best. If all weights together pass `most`, they are multiplied by
0.3 and rounded down, but not below 1.

Graphs are rows of neighbours, `others[start[v]:start[v + 1]]`, where the weights stand beside and `twin` is the place
of an edge in its other row; or a matrix of weights where more than one pair in 32 is joined: then a row is added at
once. The least key is kept by blocks, and only blocks that are stale are looked through. Members of S have IN added to
their keys, and a node that may not come in has HELD, so that the look for the least leaves both out.

Functions have more than ten parameters where they work on more than ten arrays: plain arrays are what numba compiles
well. Tuples of them made these loops three times slower.
"""

import numpy as np
from jaxtyping import Int16, Int32, Int64, UInt8, UInt64

from discrax.solving.sites_kernels import below, compiled, draw

IN, HELD, BLOCK = np.int32(1 << 29), np.int32(1 << 28), 128
MOST_WEIGHT = 32_000  # of an edge in a matrix of 16 bits
MOST_BLOCKS = 16  # that are looked through for the oldest
FORGET = 0.3
SIZE, CLOCK, BEST, DONE, CONFLICTS, LAST, TOTAL = range(7)  # places in `numbers`

Starts = Int64[np.ndarray, " n_and_1"]
Ends = Int32[np.ndarray, " ends"]
Matrix = Int16[np.ndarray, "rows padded"]
KeysOfNodes = Int32[np.ndarray, " padded"]
Ages = Int64[np.ndarray, " padded"]
Leasts = Int32[np.ndarray, " blocks"]
Stale = UInt8[np.ndarray, " blocks"]
Numbers = Int64[np.ndarray, " numbers"]
Nodes = Int32[np.ndarray, " n"]
Flags = UInt8[np.ndarray, " n"]
Inside = Int32[np.ndarray, "3 edges"]  # two ends, and the place in `others`
Stream = UInt64[np.ndarray, " 2"]


@compiled
def find_least(key: KeysOfNodes, age: Ages, leasts: Leasts, stale: Stale, turn: int) -> int:
    """The node of least key, the oldest of several; of those in `MOST_BLOCKS` blocks after another one each turn."""
    blocks = key.reshape(-1, BLOCK)
    smallest = np.int32(2147483647)
    for b in range(len(leasts)):
        if stale[b]:
            stale[b] = 0
            m = blocks[b, 0]
            for j in range(BLOCK):
                x = blocks[b, j]
                m = x if x < m else m
            leasts[b] = m
    for b in range(len(leasts)):
        x = leasts[b]
        smallest = x if x < smallest else smallest
    best, oldest, num_seen = 0, np.int64(9223372036854775807), 0
    for i in range(len(leasts)):
        b = (turn + i) % len(leasts)
        if leasts[b] == smallest:
            num_seen += 1
            if num_seen > MOST_BLOCKS:
                break
            for j in range(BLOCK):
                if blocks[b, j] == smallest:
                    v = b * BLOCK + j
                    if age[v] < oldest:
                        best, oldest = v, age[v]
    return best


@compiled
def add_row(matrix: Matrix, u: int, key: KeysOfNodes, stale: Stale) -> None:
    """Adds row u to the keys."""
    row = matrix[u]
    for j in range(len(row)):
        key[j] += row[j]
    for b in range(len(stale)):
        stale[b] = 1


@compiled
def take_row(matrix: Matrix, u: int, key: KeysOfNodes, stale: Stale) -> None:
    """Takes row u from the keys."""
    row = matrix[u]
    for j in range(len(row)):
        key[j] -= row[j]
    for b in range(len(stale)):
        stale[b] = 1


@compiled
def join(members: Nodes, place: Nodes, numbers: Numbers, node: int) -> None:
    """Puts a node into the list of members."""
    members[numbers[SIZE]] = node
    place[node] = numbers[SIZE]
    numbers[SIZE] += 1


@compiled
def part(members: Nodes, place: Nodes, numbers: Numbers, node: int) -> None:
    """Takes a node from the list of members."""
    numbers[SIZE] -= 1
    last = members[numbers[SIZE]]
    members[place[node]] = last
    place[last] = place[node]


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def enter(
    start: Starts, others: Ends, matrix: Matrix, weights: Ends, key: KeysOfNodes, stale: Stale, members: Nodes,
    may_leave: Flags, inside: Inside, numbers: Numbers, u: int,
) -> None:  # fmt: skip
    """Adds the weights of edges of u to the keys, and notes edges that are now inside S."""
    count = numbers[CONFLICTS]
    if len(matrix):
        for i in range(numbers[SIZE]):
            v = members[i]
            if matrix[u, v] > 0:
                inside[0, count], inside[1, count] = u, v
                count += 1
                may_leave[v] = 1
        add_row(matrix, u, key, stale)
    else:
        for e in range(start[u], start[u + 1]):
            v = others[e]
            x = key[v] + weights[e]
            key[v] = x
            stale[v // BLOCK] = 1
            if x >= IN:
                inside[0, count], inside[1, count], inside[2, count] = u, v, e
                count += 1
                may_leave[v] = 1
    numbers[CONFLICTS] = count
    key[u] += IN
    stale[u // BLOCK] = 1
    may_leave[u] = 0


@compiled
def leave(
    start: Starts, others: Ends, matrix: Matrix, weights: Ends, key: KeysOfNodes, stale: Stale, members: Nodes,
    may_leave: Flags, size: int, v: int,
) -> None:  # fmt: skip
    """Takes the weights of edges of v from the keys."""
    key[v] -= IN
    stale[v // BLOCK] = 1
    if len(matrix):
        take_row(matrix, v, key, stale)
        for i in range(size):
            if matrix[v, members[i]] > 0:
                may_leave[members[i]] = 1
    else:
        for e in range(start[v], start[v + 1]):
            u = others[e]
            x = key[u] - weights[e]
            key[u] = x
            stale[u // BLOCK] = 1
            if x >= IN:
                may_leave[u] = 1


@compiled
def choose_leaver(inside: Inside, i: int, may_leave: Flags, key: KeysOfNodes, age: Ages) -> int:
    """The end of edge i inside S that had better go."""
    u, v = inside[0, i], inside[1, i]
    if may_leave[u] == 0:
        return v
    if may_leave[v] == 0:
        return u
    return u if key[u] > key[v] or (key[u] == key[v] and age[u] < age[v]) else v


@compiled
def weigh(
    twin: Ends, matrix: Matrix, weights: Ends, key: KeysOfNodes, inside: Inside, numbers: Numbers, gone: int
) -> bool:
    """Forgets the edges of the node that left, and makes those inside S heavier. Whether one is as heavy as can be."""
    i, count, is_full = 0, numbers[CONFLICTS], False
    while i < count:
        u, v, e = inside[0, i], inside[1, i], inside[2, i]
        if u == gone or v == gone:
            count -= 1
            inside[0, i], inside[1, i], inside[2, i] = inside[0, count], inside[1, count], inside[2, count]
            continue
        if len(matrix):
            matrix[u, v] += 1
            matrix[v, u] += 1
            if matrix[u, v] >= MOST_WEIGHT:
                is_full = True
        else:
            weights[e] += 1
            weights[twin[e]] += 1
        key[u] += 1  # of members, which are not looked at
        key[v] += 1
        numbers[TOTAL] += 1
        i += 1
    numbers[CONFLICTS] = count
    return is_full


@compiled
def forget(
    start: Starts, others: Ends, matrix: Matrix, weights: Ends, key: KeysOfNodes, stale: Stale, members: Nodes,
    numbers: Numbers,
) -> None:  # fmt: skip
    """Makes the weights of edges smaller."""
    total, n = np.int64(0), len(members)
    key[:n] = 0
    for u in range(len(matrix)):
        for j in range(n):
            if matrix[u, j] > 0:
                matrix[u, j] = max(1, int(FORGET * matrix[u, j]))
                total += matrix[u, j]
    for e in range(len(weights)):
        weights[e] = max(1, int(FORGET * weights[e]))
        total += weights[e]
    for i in range(numbers[SIZE]):
        u = members[i]
        key[u] += IN
        if len(matrix):
            add_row(matrix, u, key, stale)
        else:
            for e in range(start[u], start[u + 1]):
                key[others[e]] += weights[e]
    numbers[TOTAL] = total // 2
    stale[:] = 1


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def seek_cover(
    start: Starts, others: Ends, twin: Ends, matrix: Matrix, weights: Ends, key: KeysOfNodes, age: Ages, leasts: Leasts,
    stale: Stale, members: Nodes, place: Nodes, may_leave: Flags, inside: Inside, numbers: Numbers, best: Flags,
    stream: Stream, count: int, most: int,
) -> None:  # fmt: skip
    """So many exchanges, or fewer if no set can be larger than the best one; weights add up to at most `most`."""
    n = len(best)
    a, b = stream[0], stream[1]
    for _ in range(count):
        grows = numbers[CONFLICTS] == 0
        held = -1 if grows else numbers[LAST]
        if held >= 0:
            key[held] += HELD
            stale[held // BLOCK] = 1
        u = find_least(key, age, leasts, stale, numbers[CLOCK])
        if held >= 0:
            key[held] -= HELD
            stale[held // BLOCK] = 1
        if grows and key[u] > 0 and numbers[SIZE] > numbers[BEST]:
            numbers[BEST] = numbers[SIZE]
            for j in range(n):
                best[j] = key[j] >= IN
        if key[u] >= IN:
            numbers[DONE] = 1
            break
        enter(start, others, matrix, weights, key, stale, members, may_leave, inside, numbers, u)
        join(members, place, numbers, u)
        age[u] = numbers[CLOCK]
        numbers[CLOCK] += 1
        if grows:
            numbers[LAST] = -1
            continue
        bits, a, b = draw(a, b)
        v = choose_leaver(inside, below(bits, numbers[CONFLICTS]), may_leave, key, age)
        part(members, place, numbers, v)
        leave(start, others, matrix, weights, key, stale, members, may_leave, numbers[SIZE], v)
        age[v] = numbers[CLOCK]
        numbers[CLOCK] += 1
        numbers[LAST] = v
        is_full = weigh(twin, matrix, weights, key, inside, numbers, v)
        if is_full or numbers[TOTAL] > most:
            forget(start, others, matrix, weights, key, stale, members, numbers)
    stream[0], stream[1] = a, b
