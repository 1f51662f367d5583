"""Compiled loops of `sites.py`: plain arrays in, the same arrays changed. Chains `low` to `high` go one after another.

Binary models keep spins s = 1 - 2x and fields f_i = linear_i + sum_j w_ij x_j: flipping site i gains s_i f_i, and adds
s_i w_ij to the field of every neighbour j. Labellings keep around[i, l], the weight between i and its neighbours of
label l. Rows are compressed: the neighbours of i are `others[start[i]:start[i + 1]]`.

Every function lets go of the interpreter's lock, so threads run blocks of chains side by side. Each chain has its own
xoroshiro128+ stream, which makes results the same whatever the blocks. Functions have more than ten parameters where
they work on more than ten arrays: plain arrays are what numba compiles well.
"""

import inspect
import math
from collections.abc import Callable

import numba
import numpy as np
from jaxtyping import Float64, Int64, Integer, Num, UInt64

Starts = Integer[np.ndarray, " n_and_1"]
Ends = Integer[np.ndarray, " ends"]
Weights = Num[np.ndarray, " ends"]
OfSites = Num[np.ndarray, " n"]
States = Integer[np.ndarray, "chains n"]  # spins or labels
Fields = Num[np.ndarray, "chains n"]
Values = Float64[np.ndarray, " chains"]
Around = Float64[np.ndarray, "chains n labels"]
Counts = Int64[np.ndarray, "chains labels"]
Streams = UInt64[np.ndarray, "chains 2"]
Betas = Float64[np.ndarray, " betas"]
Chances = UInt64[np.ndarray, " losses"]

FAR = 22.0  # a move with a log-ratio below -FAR is refused unseen: it would pass once in 3e9 times
TABLE = 256  # chances to accept integer losses below this are looked up


def compiled(function: Callable) -> Callable:
    """Compile once a machine, or once a process where no cache folder can be written. Types are for the reader."""
    function = inspect.unwrap(function)  # of what checks them in tests, which numba does not compile
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)


def streams(seed: int, num_chains: int) -> UInt64[np.ndarray, "chains 2"]:
    """The state of one generator for each chain; the streams of fewer chains are the first of those of more."""
    children = np.random.SeedSequence(seed % 2**64).spawn(num_chains)
    words = np.array([child.generate_state(2, np.uint64) for child in children], np.uint64).reshape(num_chains, 2)
    return words | np.array([0, 1], np.uint64)  # all zeros would be a fixed point


@compiled
def draw(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """64 random bits and the next state."""
    bits = a + b
    b ^= a
    a = ((a << np.uint64(24)) | (a >> np.uint64(40))) ^ b ^ (b << np.uint64(16))
    b = (b << np.uint64(37)) | (b >> np.uint64(27))
    return bits, a, b


@compiled
def uniform(bits: np.uint64) -> np.float64:
    """A number in [0, 1) of 53 random bits."""
    return np.float64(bits >> np.uint64(11)) * 1.1102230246251565e-16  # 2^-53


@compiled
def below(bits: np.uint64, count: int) -> np.int64:
    """An integer from 0 to count - 1, of the upper 32 bits."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))


@compiled
def set_fields(
    start: Starts, others: Ends, weights: Weights, linear: OfSites, spins: States, fields: Fields, values: Values,
    low: int, high: int,
) -> None:  # fmt: skip
    """The fields and the values of the chains, from their spins."""
    for chain in range(low, high):
        s, f, value = spins[chain], fields[chain], 0.0
        for i in range(len(linear)):
            field = linear[i]
            for e in range(start[i], start[i + 1]):
                if s[others[e]] < 0:
                    field += weights[e]
            f[i] = field
            if s[i] < 0:
                value += 0.5 * (np.float64(field) + np.float64(linear[i]))
        values[chain] = value


@compiled
def scatter_spins(spins: States, states: Streams, low: int, high: int) -> None:
    """Uniform spins."""
    for chain in range(low, high):
        a, b = states[chain]
        for i in range(spins.shape[1]):
            bits, a, b = draw(a, b)
            spins[chain, i] = 1 - 2 * np.int64(bits >> np.uint64(63))
        states[chain, 0], states[chain, 1] = a, b


@compiled
def fill_chances(chances: Chances, beta: float) -> None:
    """2^32 times the chance to accept a loss of 0, 1, 2, ... units."""
    ratio, chance = math.exp(-beta), 4294967296.0
    for loss in range(min(TABLE, int(min(FAR / max(beta, 1e-9), 1e6)) + 2)):
        chances[loss] = np.uint64(chance)
        chance *= ratio


@compiled
def sweep(
    start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites, beta: float, chances: Chances,
    has_table: bool, a: np.uint64, b: np.uint64,
) -> tuple[float, np.uint64, np.uint64]:  # fmt: skip
    """Offers every site in turn a Metropolis flip. The change of the value, and the generator's state."""
    change = 0.0
    lowest = -FAR / max(beta, 1e-300)
    if has_table:
        fill_chances(chances, beta)
    for i in range(len(s)):
        gain = s[i] * f[i]
        if gain < lowest:
            continue
        if gain < 0:
            bits, a, b = draw(a, b)
            if has_table and -gain < TABLE:
                if (bits >> np.uint64(32)) >= chances[int(-gain)]:
                    continue
            elif uniform(bits) >= math.exp(beta * gain):
                continue
        change += gain
        sign = s[i]
        s[i] = -sign
        for e in range(start[i], start[i + 1]):
            f[others[e]] += sign * weights[e]
    return change, a, b


@compiled
def climb(start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites) -> float:
    """Flips every site that gains until none does. The change of the value."""
    change, is_moving = 0.0, True
    while is_moving:
        is_moving = False
        for i in range(len(s)):
            gain = s[i] * f[i]
            if gain > 1e-9:
                change += gain
                sign = s[i]
                s[i] = -sign
                is_moving = True
                for e in range(start[i], start[i + 1]):
                    f[others[e]] += sign * weights[e]
    return change


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def anneal(
    start: Starts, others: Ends, weights: Weights, spins: States, fields: Fields, values: Values, best: States,
    best_values: Values, states: Streams, betas: Betas, has_table: bool, low: int, high: int,
) -> None:  # fmt: skip
    """A sweep at each beta; the best state after a sweep is kept."""
    chances = np.empty(TABLE, np.uint64)
    for chain in range(low, high):
        s, f = spins[chain], fields[chain]
        a, b = states[chain]
        for beta in betas:
            change, a, b = sweep(start, others, weights, s, f, beta, chances, has_table, a, b)
            values[chain] += change
            if values[chain] > best_values[chain]:
                best_values[chain] = values[chain]
                best[chain] = s
        states[chain, 0], states[chain, 1] = a, b


@compiled
def polish(
    start: Starts, others: Ends, weights: Weights, spins: States, fields: Fields, values: Values, best: States,
    best_values: Values, low: int, high: int,
) -> None:  # fmt: skip
    """Takes every chain to the next local maximum."""
    for chain in range(low, high):
        values[chain] += climb(start, others, weights, spins[chain], fields[chain])
        if values[chain] > best_values[chain]:
            best_values[chain] = values[chain]
            best[chain] = spins[chain]


@compiled
def set_around(
    start: Starts, others: Ends, weights: Weights, size_cost: float, labels: States, around: Around, counts: Counts,
    values: Values, low: int, high: int,
) -> None:  # fmt: skip
    """What surrounds all sites of the chains, the labels' counts, and the values, from their labels."""
    even = labels.shape[1] / counts.shape[1]
    for chain in range(low, high):
        x, near, count, cut = labels[chain], around[chain], counts[chain], 0.0
        near[:] = 0
        count[:] = 0
        for i in range(len(x)):
            count[x[i]] += 1
            for e in range(start[i], start[i + 1]):
                near[i, x[others[e]]] += weights[e]
                if x[others[e]] > x[i]:
                    cut += weights[e]
        values[chain] = -cut - size_cost * ((even - count) ** 2).sum()


@compiled
def keep_even(
    labels: States, counts: Counts, values: Values, even: States, even_values: Values, low: int, high: int
) -> None:
    """Of states whose counts differ by one at most, the best of each chain is kept."""
    for chain in range(low, high):
        if values[chain] > even_values[chain] and counts[chain].max() - counts[chain].min() <= 1:
            even_values[chain] = values[chain]
            even[chain] = labels[chain]


@compiled
def relabel(
    start: Starts, others: Ends, weights: Weights, labels: OfSites, around: Num[np.ndarray, "n labels"],
    counts: Int64[np.ndarray, " labels"], i: int, label: int,
) -> None:  # fmt: skip
    """Gives one site another label, and tells its neighbours."""
    was = labels[i]
    labels[i] = label
    counts[was] -= 1
    counts[label] += 1
    for e in range(start[i], start[i + 1]):
        around[others[e], was] -= weights[e]
        around[others[e], label] += weights[e]


@compiled
def weight_between(start: Starts, others: Ends, weights: Weights, i: int, j: int) -> float:
    """The weight of the edge between two sites; 0 where there is none."""
    if start[j + 1] - start[j] < start[i + 1] - start[i]:
        i, j = j, i
    for e in range(start[i], start[i + 1]):
        if others[e] == j:
            return weights[e]
    return 0.0


@compiled
def passes(gain: float, beta: float, a: np.uint64, b: np.uint64) -> tuple[bool, np.uint64, np.uint64]:
    """Whether Metropolis takes a move, and the generator's state."""
    if gain >= 0:
        return True, a, b
    if beta * gain < -FAR:
        return False, a, b
    bits, a, b = draw(a, b)
    return uniform(bits) < math.exp(beta * gain), a, b


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def anneal_labels(
    start: Starts, others: Ends, weights: Weights, size_cost: float, labels: States, around: Around, counts: Counts,
    values: Values, best: States, best_values: Values, even: States, even_values: Values, states: Streams,
    betas: Betas, low: int, high: int,
) -> None:  # fmt: skip
    """A sweep at each beta: every site is offered another label, then an exchange of labels with some other site."""
    n, k = labels.shape[1], counts.shape[1]
    for chain in range(low, high):
        x, near, count = labels[chain], around[chain], counts[chain]
        a, b = states[chain]
        for beta in betas:
            for i in range(n):
                bits, a, b = draw(a, b)
                old, new = x[i], below(bits, k - 1)
                new += new >= old
                gain = near[i, new] - near[i, old] - 2 * size_cost * (count[new] - count[old] + 1)
                is_taken, a, b = passes(gain, beta, a, b)
                if is_taken:
                    values[chain] += gain
                    relabel(start, others, weights, x, near, count, i, new)
                bits, a, b = draw(a, b)
                j = below(bits, n)
                old, new = x[i], x[j]
                if old == new:
                    continue
                gain = near[i, new] - near[i, old] + near[j, old] - near[j, new]
                if beta * gain < -FAR:
                    continue
                gain -= 2 * weight_between(start, others, weights, i, j)
                is_taken, a, b = passes(gain, beta, a, b)
                if is_taken:
                    values[chain] += gain
                    relabel(start, others, weights, x, near, count, i, new)
                    relabel(start, others, weights, x, near, count, j, old)
            keep_even(labels, counts, values, even, even_values, chain, chain + 1)
            if values[chain] > best_values[chain]:
                best_values[chain] = values[chain]
                best[chain] = x
        states[chain, 0], states[chain, 1] = a, b


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def polish_labels(
    start: Starts, others: Ends, weights: Weights, size_cost: float, labels: States, around: Around, counts: Counts,
    values: Values, best: States, best_values: Values, low: int, high: int,
) -> None:  # fmt: skip
    """Gives sites their best label until none gains."""
    n, k = labels.shape[1], counts.shape[1]
    for chain in range(low, high):
        x, near, count = labels[chain], around[chain], counts[chain]
        is_moving = True
        while is_moving:
            is_moving = False
            for i in range(n):
                old, most, choice = x[i], 1e-9, -1
                for new in range(k):
                    gain = near[i, new] - near[i, old] - 2 * size_cost * (count[new] - count[old] + 1)
                    if new != old and gain > most:
                        most, choice = gain, new
                if choice >= 0:
                    values[chain] += most
                    relabel(start, others, weights, x, near, count, i, choice)
                    is_moving = True
        if values[chain] > best_values[chain]:
            best_values[chain] = values[chain]
            best[chain] = x


@compiled
def scatter_labels(labels: States, num_labels: int, states: Streams, low: int, high: int) -> None:
    """Uniform labels."""
    for chain in range(low, high):
        a, b = states[chain]
        for i in range(labels.shape[1]):
            bits, a, b = draw(a, b)
            labels[chain, i] = below(bits, num_labels)
        states[chain, 0], states[chain, 1] = a, b
