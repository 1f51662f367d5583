"""Compiled loops of tempering site by site: replicas at a ladder of betas, and clusters that pairs of them exchange.

A chain has one or two teams, each with a replica for every beta. Where two replicas a and b of one beta differ,
s_i^a = -s_i^b, the sites that are joined to each other form clusters. To flip a cluster in both is to exchange it
between them: what a gains, b loses, so the move is always accepted (Houdayer). Which sites differ stays as it is, and
with it the clusters, so the move is its own inverse.

Where a state has the value of the one with all spins turned, b might as well be turned: if it differs from a at more
than half of the sites, clusters are those of the sites where both are alike. They are smaller, and change more.
"""

import math

import numpy as np
from jaxtyping import Bool, Float64, Integer, Num

from discrax.solving.sites_kernels import (
    TABLE,
    Betas,
    Ends,
    OfSites,
    Starts,
    States,
    Streams,
    Values,
    Weights,
    climb,
    compiled,
    draw,
    sweep,
    uniform,
)


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def exchange_cluster(
    start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites, s2: OfSites, f2: OfSites,
    is_symmetric: bool, queue: Integer[np.ndarray, " n"], is_in: Bool[np.ndarray, " n"], a: np.uint64, b: np.uint64,
) -> tuple[float, np.uint64, np.uint64]:  # fmt: skip
    """Flips the cluster of a random site at which two replicas differ. What the first gains and the second loses, and
    the generator's state.
    """
    n, count, product = len(s), 0, -1  # of the spins of the cluster's sites
    for i in range(n):
        if s[i] != s2[i]:
            count += 1
    if is_symmetric and 2 * count > n:
        count, product = n - count, 1
    if count == 0:
        return 0.0, a, b
    bits, a, b = draw(a, b)
    left = int(uniform(bits) * count)  # of the sites that a cluster may begin at, to be passed by
    first = 0
    for i in range(n):
        if s[i] * s2[i] == product:
            if left == 0:
                first = i
                break
            left -= 1
    change = 0.0
    queue[0], size, done = first, 1, 0
    is_in[first] = True
    while done < size:
        i = queue[done]
        done += 1
        for e in range(start[i], start[i + 1]):
            j = others[e]
            if not is_in[j] and s[j] * s2[j] == product:
                is_in[j] = True
                queue[size] = j
                size += 1
    for k in range(size):
        i = queue[k]
        is_in[i] = False
        gain = s[i] * f[i]
        change += gain
        sign, sign2 = s[i], s2[i]
        s[i], s2[i] = -sign, -sign2
        for e in range(start[i], start[i + 1]):
            f[others[e]] += sign * weights[e]
            f2[others[e]] += sign2 * weights[e]
    return float(change), a, b


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def temper(
    start: Starts, others: Ends, weights: Weights, spins: Num[np.ndarray, "chains replicas n"],
    fields: Num[np.ndarray, "chains replicas n"], values: Float64[np.ndarray, "chains replicas"],
    rungs: Integer[np.ndarray, "chains teams rungs"], best: States, best_values: Values, states: Streams,
    ladder: Betas, has_table: bool, is_symmetric: bool, first: int, count: int, low: int, high: int,
) -> None:  # fmt: skip
    """Parallel tempering in each chain, which has a replica of every team for every beta of the ladder, ascending.

    Rounds are `first` to `first + count`. In each, every replica makes a sweep, then every other pair of neighbours on
    the ladder is offered an exchange, and two teams exchange a cluster at every beta. `rungs[chain, t, r]` is the
    replica of team t at rung r. What the coldest ones find is taken to its local maximum and kept.
    """
    chances = np.empty(TABLE, np.uint64)
    s, f = spins[0, 0].copy(), fields[0, 0].copy()
    queue, is_in = np.empty(spins.shape[2], np.int32), np.zeros(spins.shape[2], np.bool_)
    for chain in range(low, high):
        value = values[chain]
        a, b = states[chain]
        for k in range(first, first + count):
            for team in range(rungs.shape[1]):
                order = rungs[chain, team]
                for r in range(len(ladder)):
                    q = order[r]
                    change, a, b = sweep(
                        start, others, weights, spins[chain, q], fields[chain, q], ladder[r], chances, has_table, a, b
                    )
                    value[q] += change
                for r in range(k % 2, len(ladder) - 1, 2):
                    i, j = order[r], order[r + 1]
                    bits, a, b = draw(a, b)
                    if uniform(bits) < math.exp(min(0.0, (ladder[r + 1] - ladder[r]) * (value[i] - value[j]))):
                        order[r], order[r + 1] = j, i
            if rungs.shape[1] == 2:
                for r in range(len(ladder)):
                    i, j = rungs[chain, 0, r], rungs[chain, 1, r]
                    change, a, b = exchange_cluster(
                        start, others, weights, spins[chain, i], fields[chain, i], spins[chain, j], fields[chain, j],
                        is_symmetric, queue, is_in, a, b,
                    )  # fmt: skip
                    value[i] += change
                    value[j] -= change
            for team in range(rungs.shape[1]):
                coldest = rungs[chain, team, len(ladder) - 1]
                s[:], f[:] = spins[chain, coldest], fields[chain, coldest]
                found = value[coldest] + climb(start, others, weights, s, f)
                if found > best_values[chain]:
                    best_values[chain] = found
                    best[chain] = s
        states[chain, 0], states[chain, 1] = a, b
