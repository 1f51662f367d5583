"""Independent sets annealed along paths, as in print: GWG and PAS, which flip sites one after another.

A part of `discs_padding`, whose Langevin samplers keep their states in the same way. The state of a set is known by how
many of its sites have which value x and which number h of neighbours in the set, (x, h): sites of one class have the
same rate, so a step costs as much as there are classes, not sites. Paths are drawn by the rates of the first state
without replacement, and go back in reverse order.
"""
# ruff: noqa: NPY002  (Numba has the legacy generator alone)

import numba
import numpy as np

PENALTY = 1.0001  # of a conflict


@numba.njit(cache=True)
def gain_of(c, H):
    """Of the flip of a site of class c = x H + h."""
    return 1 - PENALTY * c if c < H else PENALTY * (c - H) - 1


@numba.njit(cache=True)
def sort_sites(x, h, order, place, start, H):
    """Sites in the order of their classes; class c begins at start[c]."""
    count = np.zeros(2 * H + 1, np.int64)
    for i in range(x.size):
        count[x[i] * H + h[i] + 1] += 1
    count = np.cumsum(count)
    start[:] = count
    for i in range(x.size):
        c = x[i] * H + h[i]
        order[count[c]], place[i] = i, count[c]
        count[c] += 1


@numba.njit(cache=True)
def shift(i, c, up, order, place, start):
    """Site i from class c to the next or the last one."""
    there = start[c + 1] - 1 if up else start[c]
    other, here = order[there], place[i]
    order[here], place[other], order[there], place[i] = other, here, i, there
    if up:
        start[c + 1] = there
    else:
        start[c] = there + 1


@numba.njit(cache=True)
def flip_site(i, x, h, order, place, start, H, first, neighbours):
    up, c = x[i] == 0, x[i] * H + h[i]
    for k in range(H):
        shift(i, c + k if up else c - k, up, order, place, start)
    x[i] = 1 - x[i]
    for e in range(first[i], first[i + 1]):
        j = neighbours[e]
        shift(j, x[j] * H + h[j], up, order, place, start)
        h[j] += 1 if up else -1


@numba.njit(cache=True)
def first_state(first, neighbours, worth, price):
    """Fair coins, the neighbours of each site that are in the set, and the value."""
    n = first.size - 1
    x, h = (np.random.random(n) < 0.5).astype(np.int8), np.zeros(n, np.int32)
    for i in range(n):
        for e in range(first[i], first[i + 1]):
            h[i] += x[neighbours[e]]
    return x, h, np.sum(worth * x) - price * np.sum(h * x) / 2


@numba.njit(cache=True)
def draw_path(order, start, weights, length, flips, classes):
    """Sites to flip, `length` of them one after another by the weights of their classes, and the log of that chance."""
    count, log_q = np.diff(start), 0.0
    for r in range(length):
        total = np.sum(count * weights)
        part, c = np.random.random() * total, 0
        while c < weights.size - 1 and (part >= count[c] * weights[c] or count[c] == 0):
            part -= count[c] * weights[c]
            c += 1
        while count[c] == 0:  # what rounding leaves beyond the last class
            c -= 1
        i = order[start[c] + np.random.randint(start[c + 1] - start[c])]
        while np.any(flips[:r] == i):
            i = order[start[c] + np.random.randint(start[c + 1] - start[c])]
        flips[r], classes[r] = i, c
        log_q += np.log(weights[c] / total)
        count[c] -= 1
    return log_q


@numba.njit(cache=True)
def log_chance_back(start, weights, classes):
    """Of the path whose sites now have these classes, from its last site to its first."""
    count, log_q = np.diff(start), 0.0
    for c in classes[::-1]:
        log_q += np.log(weights[c] / np.sum(count * weights))
        count[c] -= 1
    return log_q


@numba.njit(cache=True)
def anneal_paths(seed, target, first, neighbours, H, cold, num_chains=32, num_steps=50_000):
    """The best value of all chains that flip paths of sites, and the mean length of the last tenth of the steps.

    The length of a path is a number of all chains; it begins at 1 and after every step becomes larger by what the mean
    acceptance exceeds `target`; without a target, 0, it stays 1. Padding is no site of a path, as in print.
    """
    np.random.seed(seed)
    n = first.size - 1
    x, h = np.empty((num_chains, n), np.int8), np.empty((num_chains, n), np.int32)
    order, place = np.empty((num_chains, n), np.int32), np.empty((num_chains, n), np.int32)
    start, flips, classes = np.zeros((num_chains, 2 * H + 1), np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
    value, gains, weights = np.empty(num_chains), np.empty(2 * H), np.empty(2 * H)
    for c in range(num_chains):
        x[c], h[c], value[c] = first_state(first, neighbours, np.ones(n), PENALTY)
        sort_sites(x[c], h[c], order[c], place[c], start[c], H)
    for c in range(2 * H):
        gains[c] = gain_of(c, H)
    best, mean_length, last = value.max(), 1.0, 0.0
    for step in range(1, num_steps + 1):
        t, accepted = cold ** (step / num_steps), 0.0
        weights[:] = np.exp(gains / (2 * t))
        for c in range(num_chains):
            length = int(mean_length) + (1 if np.random.random() < mean_length - int(mean_length) else 0)
            log_q, gain = draw_path(order[c], start[c], weights, length, flips, classes), 0.0
            for i in flips[:length]:
                gain += gains[x[c, i] * H + h[c, i]]
                flip_site(i, x[c], h[c], order[c], place[c], start[c], H, first, neighbours)
            for r in range(length):
                classes[r] = x[c, flips[r]] * H + h[c, flips[r]]
            back = log_chance_back(start[c], weights, classes[:length])
            accept = np.exp(min(gain / t + back - log_q, 0.0))
            accepted += accept
            if np.random.random() < accept:
                value[c] += gain
            else:
                for i in flips[:length][::-1]:
                    flip_site(i, x[c], h[c], order[c], place[c], start[c], H, first, neighbours)
        if target > 0:
            mean_length = min(max(mean_length + accepted / num_chains - target, 1.0), float(n))
        last += mean_length if step > 0.9 * num_steps else 0.0
        best = max(best, value.max())
    return best, last / (num_steps - int(0.9 * num_steps))
