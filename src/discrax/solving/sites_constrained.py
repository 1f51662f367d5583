"""Chains of a `LinearlyConstrained` model, and their compiled loops.

States are codes x, with fields f_i = linear_i + sum_j w_ij x_j of the form and activities a_k of the constraints. A
flip of i changes x_i by d = 1 - 2 x_i, the form by d f_i, and a_k by d c_ki. A sweep offers every site a flip, and then
a flip together with some other site of one of its constraints, such that the two work against each other there: which
two are offered depends on the signs of d c only, which both flips reverse, so Metropolis leaves the law alone.
"""

import functools

import numpy as np
from jaxtyping import Float, Float64, Integer

from discrax.problems.problem import BinaryQuadratic, LinearlyConstrained
from discrax.solving import sites_kernels as kernels
from discrax.solving.schedules import cold_beta
from discrax.solving.sites_chains import Chains, _rows
from discrax.solving.sites_kernels import Ends, OfSites, Starts, States, Streams, Values, Weights, compiled

Activities = Float64[np.ndarray, "chains constraints"]
OfConstraints = Float64[np.ndarray, " constraints"]


@compiled
def flip_gain(
    i: int, x: OfSites, f: OfSites, a: OfConstraints, column: Starts, those: Ends, coefficients: Weights,
    low: OfConstraints, high: OfConstraints, prices: OfConstraints,
) -> float:  # fmt: skip
    """What flipping a site gains."""
    d = 1.0 - 2.0 * x[i]
    gain = d * f[i]
    for e in range(column[i], column[i + 1]):
        k = those[e]
        new = a[k] + d * coefficients[e]
        before = max(0.0, low[k] - a[k], a[k] - high[k])
        gain -= prices[k] * (max(0.0, low[k] - new, new - high[k]) - before)
    return gain


@compiled
def flip(
    i: int, start: Starts, others: Ends, weights: Weights, x: OfSites, f: OfSites, a: OfConstraints, column: Starts,
    those: Ends, coefficients: Weights,
) -> None:  # fmt: skip
    """Flips a site, and tells its neighbours and constraints."""
    d = 1.0 - 2.0 * x[i]
    x[i] = 1 - x[i]
    for e in range(start[i], start[i + 1]):
        f[others[e]] += d * weights[e]
    for e in range(column[i], column[i + 1]):
        a[those[e]] += d * coefficients[e]


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def set_all(
    start: Starts, others: Ends, weights: Weights, linear: OfSites, column: Starts, those: Ends,
    coefficients: Weights, low: OfConstraints, high: OfConstraints, prices: OfConstraints, states: States,
    fields: Float64[np.ndarray, "chains n"], activities: Activities, values: Values, first: int, last: int,
) -> None:  # fmt: skip
    """Fields, activities and values from the states."""
    for chain in range(first, last):
        x, f, a, value = states[chain], fields[chain], activities[chain], 0.0
        a[:] = 0.0
        for i in range(len(x)):
            field = linear[i]
            for e in range(start[i], start[i + 1]):
                field += weights[e] * x[others[e]]
            f[i] = field
            value += 0.5 * x[i] * (field + linear[i])
            if x[i]:
                for e in range(column[i], column[i + 1]):
                    a[those[e]] += coefficients[e]
        for k in range(len(a)):
            value -= prices[k] * max(0.0, low[k] - a[k], a[k] - high[k])
        values[chain] = value


@compiled
def rank(
    value: float, a: OfConstraints, low: OfConstraints, high: OfConstraints, prices: OfConstraints, far: float
) -> float:
    """The value, put far below if something is beyond a limit."""
    cost = 0.0
    for k in range(len(a)):
        cost += prices[k] * max(0.0, low[k] - a[k], a[k] - high[k])
    return value - far if cost > 1e-9 * far else value


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def anneal(
    start: Starts, others: Ends, weights: Weights, column: Starts, those: Ends, coefficients: Weights,
    low: OfConstraints, high: OfConstraints, prices: OfConstraints, row: Starts, members: Ends, shares: Weights,
    states: States,
    fields: Float64[np.ndarray, "chains n"], activities: Activities, values: Values, best: States, best_ranks: Values,
    streams: Streams, betas: Float64[np.ndarray, " betas"], far: float, first: int, last: int,
) -> None:  # fmt: skip
    """A sweep at each beta; the best state after a sweep is kept, one within all limits before others."""
    for chain in range(first, last):
        x, f, a = states[chain], fields[chain], activities[chain]
        r, q = streams[chain]
        for beta in betas:
            for i in range(len(x)):
                gain = flip_gain(i, x, f, a, column, those, coefficients, low, high, prices)
                is_taken, r, q = kernels.passes(gain, beta, r, q)
                if is_taken:
                    values[chain] += gain
                    flip(i, start, others, weights, x, f, a, column, those, coefficients)
                count = column[i + 1] - column[i]
                if count == 0:
                    continue
                bits, r, q = kernels.draw(r, q)
                e = column[i] + kernels.below(bits, count)
                k = those[e]
                bits, r, q = kernels.draw(r, q)
                m = row[k] + kernels.below(bits, row[k + 1] - row[k])
                j = members[m]
                if j == i or (1 - 2 * x[i]) * coefficients[e] * (1 - 2 * x[j]) * shares[m] >= 0:
                    continue
                gain = -gain if is_taken else gain  # of i, once more
                flip(i, start, others, weights, x, f, a, column, those, coefficients)
                gain += flip_gain(j, x, f, a, column, those, coefficients, low, high, prices)
                is_taken, r, q = kernels.passes(gain, beta, r, q)
                if is_taken:
                    values[chain] += gain
                flip(j if is_taken else i, start, others, weights, x, f, a, column, those, coefficients)
            found = rank(values[chain], a, low, high, prices, far)
            if found > best_ranks[chain]:
                best_ranks[chain] = found
                best[chain] = x
        streams[chain, 0], streams[chain, 1] = r, q


# Numba compiles plain arrays well, and structures of them badly: each array is a parameter.
@compiled
def polish(
    start: Starts, others: Ends, weights: Weights, column: Starts, those: Ends, coefficients: Weights,
    low: OfConstraints, high: OfConstraints, prices: OfConstraints, states: States,
    fields: Float64[np.ndarray, "chains n"],
    activities: Activities, values: Values, best: States, best_ranks: Values, far: float, first: int, last: int,
) -> None:  # fmt: skip
    """Flips every site that gains until none does."""
    for chain in range(first, last):
        x, f, a = states[chain], fields[chain], activities[chain]
        is_moving = True
        while is_moving:
            is_moving = False
            for i in range(len(x)):
                gain = flip_gain(i, x, f, a, column, those, coefficients, low, high, prices)
                if gain > 1e-12 * far:
                    values[chain] += gain
                    flip(i, start, others, weights, x, f, a, column, those, coefficients)
                    is_moving = True
        found = rank(values[chain], a, low, high, prices, far)
        if found > best_ranks[chain]:
            best_ranks[chain] = found
            best[chain] = x


class ConstrainedChains(Chains):
    """Chains of a `LinearlyConstrained`. `best_values` ranks states within all limits above the others."""

    def __init__(self, model: LinearlyConstrained, num_chains: int, seed: int):
        super().__init__(num_chains, model.num_sites, seed)
        self.model, form = model, model.form
        self.rows = _rows(model.num_sites, form.edges, form.weights)
        self.linear = np.asarray(form.linear, np.float64)
        by_site = np.argsort(model.sites, kind="stable")
        counts = np.bincount(model.sites, minlength=model.num_sites)
        self.columns = (
            np.concatenate([[0], np.cumsum(counts)]), model.constraints[by_site], model.coefficients[by_site]
        )  # fmt: skip
        self.limits = (model.low, model.high, model.prices)
        counts = np.bincount(model.constraints, minlength=len(model.low))
        self.members = (np.concatenate([[0], np.cumsum(counts)]), model.sites, model.coefficients)
        self.fields = np.zeros(self.states.shape)
        self.activities = np.zeros((num_chains, len(model.low)))
        self.far = float(np.abs(form.linear).sum() + np.abs(form.weights).sum() + model.prices.sum()) or 1.0

    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        self.states[low:high] = states
        set_all(
            *self.rows, self.linear, *self.columns, *self.limits, self.states, self.fields, self.activities,
            self.values, low, high,
        )  # fmt: skip

    def restart(self, low: int, high: int) -> None:
        kernels.scatter_labels(self.states, 2, self.streams, low, high)
        self.put(self.states[low:high], low, high)

    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        anneal(
            *self.rows, *self.columns, *self.limits, *self.members, self.states, self.fields, self.activities,
            self.values, self.best, self.best_values, self.streams, betas, self.far, low, high,
        )  # fmt: skip

    def polish(self, low: int, high: int) -> None:
        polish(
            *self.rows, *self.columns, *self.limits, self.states, self.fields, self.activities, self.values, self.best,
            self.best_values, self.far, low, high,
        )  # fmt: skip

    def temperatures(self) -> tuple[float, float]:
        """From what the form alone changes by: pairs of flips change nothing else where limits hold."""
        pilot = ConstrainedChains(self.model, 1, 0)
        pilot.streams = self.pilot_stream
        pilot.restart(0, 1)
        typical = float(np.sqrt((pilot.fields**2).mean()))
        if typical == 0:
            typical = float(self.model.prices.mean()) if len(self.model.prices) else 1.0
            return 1 / typical, 10 / typical
        pilot.polish(0, 1)
        return 1 / typical, cold_beta(-np.abs(pilot.fields).ravel(), 1 / typical)

    def compile(self) -> None:
        _compile()

    def from_codes(self, codes: Integer[np.ndarray, "*chains n"]) -> Integer[np.ndarray, "*chains n"]:
        return np.asarray(codes).astype(np.int8)

    def codes(self, states: Integer[np.ndarray, "chains n"]) -> Integer[np.ndarray, "chains n"]:
        return states.copy()

    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        return self.model.value(codes)

    def current_values(self) -> Float[np.ndarray, " chains"]:
        return self.model.form.offset + self.values


@functools.cache
def _compile() -> None:
    form = BinaryQuadratic(np.ones(2), np.array([[0, 1]]), np.array([-0.5]))
    zero, one = np.zeros(2, np.int64), np.ones(1)
    chains = ConstrainedChains(LinearlyConstrained(form, zero, np.arange(2), np.ones(2), one, one, one), 1, 0)
    chains.restart(0, 1)
    chains.anneal(np.ones(1), 0, 1)
    chains.polish(0, 1)
