"""Annealing by swaps, compiled for CPUs: binary models whose groups have bounded totals, which no move breaks.

With the fields f_i = linear_i + sum_j w_ij x_j, turning site i off and site j on gains f_j - f_i - w_ij. A sweep of n
sites makes n offers by Metropolis: a uniform site is offered a swap with a uniform site of its group that is in the
other state, or, where the group's total may change, a flip instead every other time. Both are symmetric, since a swap
changes no total, so a sweep leaves the law proportional to exp(beta v) on the states within bounds invariant.

The sites of a group are `members[first[g]:first[g + 1]]`, those that are on before the others: `counts[g]` of them.
`places` says where a site is.
"""

import functools

import numpy as np
from jaxtyping import Float, Float64, Integer

from discrax.core.space import Binary
from discrax.problems.problem import BinaryQuadratic, BoundedQuadratic
from discrax.solving.sites_chains import BinaryChains
from discrax.solving.sites_kernels import (
    Betas,
    Ends,
    Fields,
    OfSites,
    Starts,
    States,
    Streams,
    Values,
    Weights,
    below,
    compiled,
    draw,
    passes,
)

OfChains = Integer[np.ndarray, "chains _"]
OfGroups = Integer[np.ndarray, " groups"]
_GREEDY_SWEEPS = 4  # before all pairs are looked at
_MOST_PAIRS = 2**26  # of a group, that a local maximum is better than
_COLD = 1e18
_SAMPLED = 4096  # swaps whose gains set the temperatures


@compiled
def weight_between(start: Starts, others: Ends, weights: Weights, i: int, j: int) -> float:
    """The weight of the edge between two sites, 0 where there is none; the neighbours of a site are in order."""
    low, high = start[i], start[i + 1]
    while low < high:
        middle = (low + high) // 2
        if others[middle] < j:
            low = middle + 1
        else:
            high = middle
    return np.float64(weights[low]) if low < start[i + 1] and others[low] == j else 0.0


@compiled
def list_members(
    labels: OfSites, first: OfGroups, spins: States, members: OfChains, places: OfChains, counts: OfChains,
    low: int, high: int,
) -> None:  # fmt: skip
    """The members of all groups of the chains, those that are on first."""
    for chain in range(low, high):
        s, ends = spins[chain], first[1:].copy()
        counts[chain] = 0
        for i in range(len(labels)):
            g = labels[i]
            if s[i] < 0:
                places[chain, i] = first[g] + counts[chain, g]
                counts[chain, g] += 1
            else:
                ends[g] -= 1
                places[chain, i] = ends[g]
            members[chain, places[chain, i]] = i


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def flip(
    start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites, first: OfGroups, members: OfSites,
    places: OfSites, counts: OfGroups, i: int, g: int,
) -> None:  # fmt: skip
    """Flips site i of group g, tells its neighbours, and moves it across the border between on and off."""
    sign = s[i]
    s[i] = -sign
    for e in range(start[i], start[i + 1]):
        f[others[e]] += sign * weights[e]
    border = first[g] + counts[g] - (sign < 0)  # the last that is on, or the first that is off
    other, place = members[border], places[i]
    members[border], members[place] = i, other
    places[i], places[other] = border, place
    counts[g] += sign


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def sweep(
    start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites, labels: OfSites, first: OfGroups,
    least: OfGroups, most: OfGroups, members: OfSites, places: OfSites, counts: OfGroups, beta: float, a: np.uint64,
    b: np.uint64,
) -> tuple[float, np.uint64, np.uint64]:  # fmt: skip
    """n offers. The change of the value, and the generator's state."""
    change, n = 0.0, len(s)
    for _ in range(n):
        bits, a, b = draw(a, b)
        i = below(bits, n)
        g = labels[i]
        if least[g] < most[g] and bits & np.uint64(65536):
            total = counts[g] + s[i]
            if total < least[g] or total > most[g]:
                continue
            gain = 1.0 * s[i] * f[i]
            is_taken, a, b = passes(gain, beta, a, b)
            if is_taken:
                change += float(gain)
                flip(start, others, weights, s, f, first, members, places, counts, i, g)
            continue
        on, size = counts[g], first[g + 1] - first[g]
        if on == 0 or on == size:
            continue
        bits, a, b = draw(a, b)
        if s[i] < 0:
            j = members[first[g] + on + below(bits, size - on)]
        else:
            j = members[first[g] + below(bits, on)]
            i, j = j, i
        gain = 1.0 * f[j] - 1.0 * f[i] - weight_between(start, others, weights, i, j)
        is_taken, a, b = passes(gain, beta, a, b)
        if is_taken:
            change += float(gain)
            flip(start, others, weights, s, f, first, members, places, counts, i, g)
            flip(start, others, weights, s, f, first, members, places, counts, j, g)
    return change, a, b


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def climb(
    start: Starts, others: Ends, weights: Weights, s: OfSites, f: OfSites, labels: OfSites, first: OfGroups,
    least: OfGroups, most: OfGroups, members: OfSites, places: OfSites, counts: OfGroups,
    row: Float64[np.ndarray, " n"],
) -> float:  # fmt: skip
    """Makes the best flip or swap of every site in turn until none gains. `row` is room for weights, all 0."""
    change, is_moving, n = 0.0, True, len(s)
    while is_moving:
        is_moving = False
        for i in range(n):
            g = labels[i]
            gain, total = 1.0 * s[i] * f[i], counts[g] + s[i]
            if gain > 1e-9 and total >= least[g] and total <= most[g]:
                change += float(gain)
                flip(start, others, weights, s, f, first, members, places, counts, i, g)
                is_moving = True
            on, size = counts[g], first[g + 1] - first[g]
            if s[i] > 0 or on * (size - on) > _MOST_PAIRS:
                continue
            for e in range(start[i], start[i + 1]):
                row[others[e]] = weights[e]
            best, choice = 1e-9, -1
            for place in range(first[g] + on, first[g + 1]):
                j = members[place]
                gain = 1.0 * f[j] - 1.0 * f[i] - row[j]
                if gain > best:
                    best, choice = gain, j
            for e in range(start[i], start[i + 1]):
                row[others[e]] = 0
            if choice >= 0:
                change += float(best)
                flip(start, others, weights, s, f, first, members, places, counts, i, g)
                flip(start, others, weights, s, f, first, members, places, counts, choice, g)
                is_moving = True
    return change


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def anneal(
    start: Starts, others: Ends, weights: Weights, spins: States, fields: Fields, labels: OfSites, first: OfGroups,
    least: OfGroups, most: OfGroups, members: OfChains, places: OfChains, counts: OfChains, values: Values,
    best: States, best_values: Values, states: Streams, betas: Betas, climbs: bool, low: int, high: int,
) -> None:  # fmt: skip
    """A sweep at each beta, and in the end the climb to a local maximum if that is wanted; the best state is kept."""
    row = np.zeros(spins.shape[1])
    for chain in range(low, high):
        s, f, a, b = spins[chain], fields[chain], states[chain, 0], states[chain, 1]
        for beta in betas:
            change, a, b = sweep(
                start, others, weights, s, f, labels, first, least, most, members[chain], places[chain], counts[chain],
                beta, a, b,
            )  # fmt: skip
            values[chain] += change
            if values[chain] > best_values[chain]:
                best_values[chain] = values[chain]
                best[chain] = s
        if climbs:
            values[chain] += climb(
                start, others, weights, s, f, labels, first, least, most, members[chain], places[chain], counts[chain],
                row,
            )  # fmt: skip
            if values[chain] > best_values[chain]:
                best_values[chain] = values[chain]
                best[chain] = s
        states[chain, 0], states[chain, 1] = a, b


@compiled
def scatter(
    labels: OfSites, first: OfGroups, least: OfGroups, most: OfGroups, spins: States, states: Streams, low: int,
    high: int,
) -> None:  # fmt: skip
    """Uniform spins, of which uniformly chosen ones of a group are turned until its total is within its bounds."""
    n = spins.shape[1]
    for chain in range(low, high):
        a, b = states[chain]
        s, counts = spins[chain], np.zeros(len(least), np.int64)
        order, ends = np.empty(n, np.int64), first[:-1].copy()
        for i in range(n):
            bits, a, b = draw(a, b)
            s[i] = 1 - 2 * np.int64(bits >> np.uint64(63))
            counts[labels[i]] += s[i] < 0
            order[ends[labels[i]]] = i
            ends[labels[i]] += 1
        for g in range(len(least)):
            for place in range(first[g], first[g + 1]):
                bits, a, b = draw(a, b)
                other = place + below(bits, first[g + 1] - place)
                i = order[other]
                order[other] = order[place]
                if (counts[g] < least[g] and s[i] > 0) or (counts[g] > most[g] and s[i] < 0):
                    counts[g] += s[i]
                    s[i] = -s[i]
        states[chain, 0], states[chain, 1] = a, b


class SwapChains(BinaryChains):
    """Chains of a `BoundedQuadratic`: every state keeps the bounds."""

    def __init__(self, model: BoundedQuadratic, num_chains: int, seed: int):
        form = model.form
        pairs = np.sort(form.edges, axis=1)
        order = np.lexsort(pairs.T[::-1])  # so that the neighbours of a site are in order
        super().__init__(BinaryQuadratic(form.linear, pairs[order], form.weights[order], form.offset), num_chains, seed)
        self.bounded, totals = model, model.totals
        self.groups = tuple(np.asarray(each) for each in (totals.labels, totals.first, totals.low, totals.high))
        self.members, self.places = (np.zeros(self.states.shape, np.int32) for _ in range(2))
        self.counts = np.zeros((num_chains, totals.num_groups), np.int32)

    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        super().put(states, low, high)
        list_members(*self.groups[:2], self.states, self.members, self.places, self.counts, low, high)

    def restart(self, low: int, high: int) -> None:
        scatter(*self.groups, self.states, self.streams, low, high)
        self.put(self.states[low:high], low, high)

    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        self._anneal(self.unit * betas, False, low, high)

    def polish(self, low: int, high: int) -> None:
        self._anneal(np.full(_GREEDY_SWEEPS, _COLD), True, low, high)

    def _anneal(self, betas: Float[np.ndarray, " count"], climbs: bool, low: int, high: int) -> None:
        anneal(
            *self.rows, self.states, self.fields, *self.groups, self.members, self.places, self.counts, self.values,
            self.best, self.best_values, self.streams, betas, climbs, low, high,
        )  # fmt: skip

    def _pilot(self) -> "SwapChains":
        pilot = SwapChains(self.bounded, 1, 0)
        pilot.streams = self.pilot_stream
        pilot.restart(0, 1)
        return pilot

    def _gains(self) -> Float[np.ndarray, " moves"]:
        """Of about as many random swaps and flips as a sweep offers."""
        labels, first, low, high = self.groups
        generator, is_on, f = np.random.default_rng(self.streams[0, 0]), self.states[0] < 0, self.fields[0]
        sites = generator.integers(len(labels), size=min(_SAMPLED, len(labels)))
        g = labels[sites]
        on, size, u = self.counts[0, g], np.diff(first)[g], generator.random(len(sites))
        partners = first[g] + np.where(is_on[sites], on + u * (size - on), u * on).astype(np.int64)
        can_swap, can_flip = (on > 0) & (on < size), low[g] < high[g]
        j = self.members[0, np.minimum(partners, len(labels) - 1)]
        i, j = np.where(is_on[sites], sites, j)[can_swap], np.where(is_on[sites], j, sites)[can_swap]
        between = np.array([weight_between(*self.rows, *pair) for pair in zip(i, j, strict=True)], np.float64)
        flips = (self.states[0, sites] * f[sites].astype(np.float64))[can_flip]
        gains = np.concatenate([f[j].astype(np.float64) - f[i] - between, flips])
        return self.unit * gains if len(gains) else np.zeros(1)

    def ladder(self, hot: float, cold: float, num_sweeps: int) -> None:
        """They are annealed only."""

    def compile(self) -> None:
        _compile_swaps(self.has_table)

    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        return self.model.value(codes)


@functools.cache
def _compile_swaps(has_table: bool) -> None:
    weight = 1.0 if has_table else 0.5
    tiny = BinaryQuadratic(np.full(3, weight), np.array([[0, 1]]), np.array([-weight]))
    chains = SwapChains(BoundedQuadratic(tiny, Binary(3, at_most=2)), 1, 0)
    chains.restart(0, 1)
    chains.anneal(np.ones(1), 0, 1)
    chains.polish(0, 1)
    chains._gains()
