"""Compiled loops over polynomials of bits or spins: plain arrays in, the same arrays changed.

A chain keeps its codes x and, for each term, `counts`, how many of its factors are not 1, and `lone`, the exclusive or
of their sites: where the count is 1, that is the site itself. `gains` are what flips add to the value. A flip of site i
goes through the terms of i; the gains of a term's other sites change only where its count begins or ceases to be 0
(those of all its sites) or 1 (that of the lone one); of spins, they change sign. So a flip costs its terms, and an
offer that is refused costs one look.

Where every term is a cost, as in MAX-SAT, there is a focused walk beside the sweeps: a random term that costs, a random
site of it, a Metropolis flip at a fixed temperature (Seitz, Alava and Orponen, 2005). It satisfies formulas that sweeps
do not; it leaves no law invariant.

Chains `low` to `high` go one after another; `sites_kernels.py` has what all loops share.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int8, Int32, Integer, Num

from discrax.solving.sites_kernels import (
    FAR,
    TABLE,
    Betas,
    Chances,
    Streams,
    Values,
    below,
    compiled,
    draw,
    fill_chances,
    uniform,
)


class Form(NamedTuple):
    """A polynomial: site i is in `terms[first[i]:first[i + 1]]`, and term t has `sites[start[t]:start[t + 1]]`."""

    first: Integer[np.ndarray, " n_and_1"]
    terms: Integer[np.ndarray, " factors"]
    codes: Int8[np.ndarray, " factors"]  # at which the factors are 1, in the order of `terms`
    start: Integer[np.ndarray, " terms_and_1"]
    sites: Integer[np.ndarray, " factors"]
    weights: Num[np.ndarray, " terms"]
    surcharges: Float64[np.ndarray, " terms"]  # what a product that is 1 costs when states are compared
    is_spin: bool


class Place(NamedTuple):
    """Where chains are: with a first axis of chains, or one of them."""

    x: Int8[np.ndarray, "*chains n"]
    counts: Int32[np.ndarray, "*chains terms"]
    lone: Int32[np.ndarray, "*chains terms"]
    gains: Num[np.ndarray, "*chains n"]


class Best(NamedTuple):
    """Values of the chains now, what is to be paid beyond them, and the best states so far by what is left."""

    values: Values
    surcharges: Values
    states: Int8[np.ndarray, "chains n"]
    best_values: Values


@compiled
def place_of(places: Place, chain: int) -> Place:
    """That of one chain."""
    return Place(places.x[chain], places.counts[chain], places.lone[chain], places.gains[chain])


@compiled
def set_gains(form: Form, places: Place, best: Best, low: int, high: int) -> None:
    """Counts, lone sites, gains, values and surcharges of the chains, from their codes."""
    for chain in range(low, high):
        x, counts, lone, gains = place_of(places, chain)
        counts[:] = 0
        lone[:] = 0
        gains[:] = 0
        for i in range(len(x)):
            for e in range(form.first[i], form.first[i + 1]):
                if form.codes[e] != x[i]:
                    counts[form.terms[e]] += 1
                    lone[form.terms[e]] ^= i
        value, surcharge = 0.0, 0.0
        for t in range(len(counts)):
            w = form.weights[t]
            if not form.is_spin and counts[t] > 0:
                if counts[t] == 1:
                    gains[lone[t]] += w
                continue
            sign = 1 - 2 * (counts[t] & 1)
            value += sign * w
            surcharge += form.surcharges[t]
            for e in range(form.start[t], form.start[t + 1]):
                gains[form.sites[e]] -= (2 * sign if form.is_spin else 1) * w
        best.values[chain], best.surcharges[chain] = value, surcharge


@compiled
def flip(form: Form, place: Place, i: int) -> float:
    """Flips one site, and tells its terms. The change of the surcharges."""
    first, terms, codes, start, sites, weights, surcharges, is_spin = form
    x, counts, lone, gains = place
    change = 0.0
    now = 1 - x[i]
    x[i] = now
    for e in range(first[i], first[i + 1]):
        t = terms[e]
        w = weights[t]
        becomes_one = codes[e] == now
        c = counts[t] - 1 if becomes_one else counts[t] + 1
        counts[t] = c
        lone[t] ^= i
        if is_spin:
            for k in range(start[t], start[t + 1]):
                gains[sites[k]] -= 4 * (1 - 2 * (c & 1)) * w
        elif becomes_one:
            if c == 0:
                for k in range(start[t], start[t + 1]):
                    gains[sites[k]] -= w
                gains[i] -= w
                change += float(surcharges[t])
            elif c == 1:
                gains[lone[t]] += w
        elif c == 1:
            for k in range(start[t], start[t + 1]):
                gains[sites[k]] += w
            gains[i] += w
            change -= float(surcharges[t])
        elif c == 2:
            gains[lone[t] ^ i] -= w
    return change


@compiled
def sweep(
    form: Form, place: Place, beta: float, chances: Chances, has_table: bool, a: np.uint64, b: np.uint64
) -> tuple[float, float, np.uint64, np.uint64]:
    """Offers every site in turn a Metropolis flip. The changes of value and surcharges, and the generator's state."""
    change, surcharge, lowest, gains = 0.0, 0.0, -FAR / max(beta, 1e-300), place.gains
    if has_table:
        fill_chances(chances, beta)
    for i in range(len(gains)):
        gain = gains[i]
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
        surcharge += flip(form, place, i)
    return change, surcharge, a, b


@compiled
def climb(form: Form, place: Place) -> tuple[float, float]:
    """Flips every site that gains until none does. The changes of value and surcharges."""
    change, surcharge, is_moving, gains = 0.0, 0.0, True, place.gains
    while is_moving:
        is_moving = False
        for i in range(len(gains)):
            if gains[i] > 1e-9:
                change += gains[i]
                is_moving = True
                surcharge += flip(form, place, i)
    return change, surcharge


@compiled
def keep_best(best: Best, chain: int, x: Int8[np.ndarray, " n"]) -> None:
    """Keeps the state of a chain if it is the best so far."""
    value = best.values[chain] - best.surcharges[chain]
    if value > best.best_values[chain]:
        best.best_values[chain] = value
        best.states[chain] = x


@compiled
def anneal(
    form: Form, places: Place, best: Best, streams: Streams, betas: Betas, has_table: bool, low: int, high: int
) -> None:
    """A sweep at each beta; the best state after a sweep is kept."""
    chances = np.empty(TABLE, np.uint64)
    for chain in range(low, high):
        place = place_of(places, chain)
        a, b = streams[chain]
        for beta in betas:
            change, surcharge, a, b = sweep(form, place, beta, chances, has_table, a, b)
            best.values[chain] += change
            best.surcharges[chain] += surcharge
            keep_best(best, chain, place.x)
        streams[chain, 0], streams[chain, 1] = a, b


@compiled
def walk(
    form: Form, places: Place, best: Best, streams: Streams, beta: float, num_sweeps: int, num_offers: int, chain: int
) -> None:
    """So many offers a sweep to sites of terms whose product is 1, all weights being negative; none without such terms.

    Every sweep lists these terms anew, so that results do not depend on how many sweeps a call makes.
    """
    place = place_of(places, chain)
    a, b = streams[chain]
    ones, where = np.empty(len(form.weights), np.int32), np.empty(len(form.weights), np.int32)
    for _ in range(num_sweeps):
        num_ones = 0
        for t in range(len(where)):
            where[t] = -1
            if place.counts[t] == 0:
                ones[num_ones], where[t] = t, num_ones
                num_ones += 1
        for _ in range(num_offers):
            if num_ones == 0:
                break
            bits, a, b = draw(a, b)
            t = ones[below(bits, num_ones)]
            bits, a, b = draw(a, b)
            i = form.sites[form.start[t] + below(bits, form.start[t + 1] - form.start[t])]
            gain = place.gains[i]
            if gain < 0:
                bits, a, b = draw(a, b)
                if uniform(bits) >= math.exp(beta * gain):
                    continue
                keep_best(best, chain, place.x)  # before it gets worse
            best.values[chain] += gain
            best.surcharges[chain] += flip(form, place, i)
            for e in range(form.first[i], form.first[i + 1]):
                t = form.terms[e]
                if place.counts[t] == 0 and where[t] < 0:
                    ones[num_ones], where[t] = t, num_ones
                    num_ones += 1
                elif place.counts[t] > 0 and where[t] >= 0:
                    num_ones -= 1
                    last = ones[num_ones]
                    ones[where[t]], where[last] = last, where[t]
                    where[t] = -1
    keep_best(best, chain, place.x)
    streams[chain, 0], streams[chain, 1] = a, b


@compiled
def polish(form: Form, places: Place, best: Best, low: int, high: int) -> None:
    """Takes every chain to the next local maximum."""
    for chain in range(low, high):
        place = place_of(places, chain)
        change, surcharge = climb(form, place)
        best.values[chain] += change
        best.surcharges[chain] += surcharge
        keep_best(best, chain, place.x)
