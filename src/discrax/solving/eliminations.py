"""Exact reductions of binary models: a smaller model, and the way back.

In spins s = 1 - 2x, with one site more that stands for the fields and has s = 1, a model is the sum of J_ij s_i s_j.
While they apply:

    eliminate   a site i with at most three neighbours. Its best spin is the sign of a s_1 + b s_2 + c s_3, with which
                it adds |a s_1 + b s_2 + c s_3|. That does not change if all three spins do, so that it is a constant
                and a coupling of each pair of the three, exactly.
    tie         |J_ij| >= sum of |J_ik| over k other than j: in some best state s_i = sign(J_ij) s_j.

A state of what is left lifts to a state of the model of the same value, and a best one to a best one. Of a graph of
10,000 nodes with two neighbours each on average, 1,460 are left; of a chain whose couplings differ much, often nothing.
What has few sites left is not searched but counted through.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from discrax.problems.problem import BinaryQuadratic
from discrax.solving.engine import Report
from discrax.solving.protocol import Task

_MOST_COUNTED = 24  # sites, all of whose states are tried: half a second
_ROWS = 256  # of a table of their values at a time
_LEAST_SHARE = 0.03  # of the sites that must go, for the model to change
_SECONDS_PER_SITE, _SECONDS_PER_EDGE = 3e-5, 2e-6  # of the loop below
_SHARE_OF_BUDGET = 0.1
_MOST_SECONDS = 2.0
_MOST_STATES = 256  # as good as each other


class _Layer(NamedTuple):
    """Sites whose spins follow from those of layers before: s = sign of the sum of weights s_others."""

    sites: Int[np.ndarray, " k"]
    others: Int[np.ndarray, "k 3"]
    weights: Float[np.ndarray, "k 3"]


@dataclass(frozen=True, eq=False)
class Remainder:
    """What reductions leave of a model, and the way back."""

    model: BinaryQuadratic
    sites: Int[np.ndarray, " k"]  # of the whole model
    layers: Sequence[_Layer]
    num_sites: int  # of the whole model

    def lift(self, x: Integer[np.ndarray, "*batch k"]) -> Integer[np.ndarray, "*batch n"]:
        """States of the whole model, of the same value."""
        x = np.asarray(x)
        if len(self.sites) == self.num_sites:
            return x
        spins = np.ones((*x.shape[:-1], self.num_sites + 1), np.int8)
        spins[..., self.sites] = 1 - 2 * x
        for sites, others, weights in self.layers:
            spins[..., sites] = np.where((spins[..., others] * weights).sum(axis=-1) >= 0, 1, -1)
        return (spins[..., :-1] < 0).astype(x.dtype)

    def project(self, x: Integer[np.ndarray, "*batch n"]) -> Integer[np.ndarray, "*batch k"]:
        """The part of states that is left."""
        return np.asarray(x)[..., self.sites]

    def best_states(self) -> Integer[np.ndarray, "states n"] | None:
        """Best states of the whole model, where so few sites are left that all of their states can be tried."""
        k = len(self.sites)
        if k > _MOST_COUNTED:
            return None
        # The states of one half of the sites beside those of the other: what both add is one product of matrices.
        couplings = np.zeros((k, k))
        couplings[self.model.edges[:, 0], self.model.edges[:, 1]] = self.model.weights
        low, high = _all_states(k // 2), _all_states(k - k // 2)
        within = [_values(couplings, self.model.linear, x, at) for x, at in ((low, 0), (high, k // 2))]
        across = couplings[: k // 2, k // 2 :] + couplings[k // 2 :, : k // 2].T
        rows = [(within[0][a : a + _ROWS, None] + within[1] + low[a : a + _ROWS] @ across @ high.T).max(axis=1)
                for a in range(0, len(low), _ROWS)]  # fmt: skip
        largest = np.concatenate(rows)
        tolerance = 1e-12 * (np.abs(self.model.weights).sum() + np.abs(self.model.linear).sum())
        found = []
        near = np.flatnonzero(largest >= largest.max() - tolerance)
        for a in near[np.argsort(-largest[near], kind="stable")][:_MOST_STATES]:
            values = within[0][a] + within[1] + low[a] @ across @ high.T
            best = high[values >= largest.max() - tolerance]
            found.append(np.concatenate([np.broadcast_to(low[a], (len(best), k // 2)), best], axis=1))
        states = np.concatenate(found)
        # The tolerance may be larger than the least weights: the best by the whole sum come first.
        states = states[np.argsort(-self.model.value(states.astype(np.int8)), kind="stable")]
        return self.lift(states[:_MOST_STATES].astype(np.int8))


def _all_states(k: int) -> Float[np.ndarray, "states k"]:
    return (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(np.float64)


def _values(
    couplings: Float[np.ndarray, "n n"], linear: Float[np.ndarray, " n"], x: Float[np.ndarray, "states k"], at: int
) -> Float[np.ndarray, " states"]:
    """Of states of the sites from `at` on, the others being 0."""
    part = slice(at, at + x.shape[1])
    return x @ linear[part] + ((x @ couplings[part, part]) * x).sum(axis=1)


def search_remainders(
    task: Task, betas: tuple[float, float] | None, search: Callable[[list[Any], Any], Iterator[list[Report]]]
) -> Iterator[list[Report]]:
    """Reports of `search(models, init)`, which is given what is left of the models and of first states, if any: all of
    them where models are not binary, and where one temperature is held, for the law would be another.
    """
    models: list[Any] = [problem.model for problem in task.problems]
    init = list(task.first_states) if task.is_given else None
    holds_still = betas is not None and betas[0] == betas[1]
    if holds_still or not all(isinstance(model, BinaryQuadratic) for model in models):
        yield from search(models, init)
        return
    parts = [reduce_model(model, task.clock.budget.seconds) for model in models]
    solved = [part.best_states() for part in parts]
    if all(states is not None for states in solved):
        yield [_proved(model, states) for model, states in zip(models, solved, strict=True)]  # ty: ignore[invalid-argument-type]
        return
    begin = None if init is None else [part.project(x) for part, x in zip(parts, init, strict=True)]
    for reports in search([part.model for part in parts], begin):
        yield [
            report._replace(best_states=part.lift(report.best_states))
            for part, report in zip(parts, reports, strict=True)
        ]


def _proved(model: BinaryQuadratic, states: Integer[np.ndarray, "states n"]) -> Report:
    values = model.value(states)
    return Report(0, 1.0, 0.0, values, values.copy(), states, is_proved=True)


def reduce_model(model: BinaryQuadratic, seconds: float | None = None) -> Remainder:
    """What is left of a model, or all of it where reductions do little or take long for a budget of seconds."""
    n = model.num_sites
    i, j = model.edges.T
    field = model.linear / 2 + np.bincount(model.edges.ravel(), np.repeat(model.weights / 4, 2), minlength=n)
    at = np.flatnonzero(field)
    first, second = np.concatenate([i, at]), np.concatenate([j, np.full(len(at), n)])
    couplings = np.concatenate([model.weights / 4, -field[at]])
    whole = Remainder(model, np.arange(n), (), n)
    is_open = _is_reducible(n, first, second, couplings)
    cost = _SECONDS_PER_SITE * is_open.sum() + _SECONDS_PER_EDGE * len(couplings)
    if not is_open.any() or cost > min(_MOST_SECONDS, np.inf if seconds is None else _SHARE_OF_BUDGET * seconds):
        return whole
    graph = _Graph(n, first, second, couplings)
    graph.reduce(np.flatnonzero(is_open))
    if n - len(graph.left()) < _LEAST_SHARE * n:
        return whole
    return graph.remainder(model)


def _is_reducible(
    n: int, first: Int[np.ndarray, " m"], second: Int[np.ndarray, " m"], couplings: Float[np.ndarray, " m"]
) -> Bool[np.ndarray, " n"]:
    """Which sites a rule applies to in the beginning."""
    ends, sizes = np.concatenate([first, second]), np.abs(np.concatenate([couplings, couplings]))
    degree, total = np.bincount(ends, sizes > 0, minlength=n + 1), np.bincount(ends, sizes, minlength=n + 1)
    largest = np.zeros(n + 1)
    np.maximum.at(largest, ends, sizes)
    return ((degree <= 3) | (2 * largest >= total))[:n]


class _Graph:
    """Couplings as they change: a mapping for each site from its neighbours."""

    def __init__(
        self, n: int, first: Int[np.ndarray, " m"], second: Int[np.ndarray, " m"], couplings: Float[np.ndarray, " m"]
    ):
        self._n = n
        self._rows: list[dict[int, float]] = [{} for _ in range(n + 1)]
        for i, j, coupling in zip(first.tolist(), second.tolist(), couplings.tolist(), strict=True):
            if coupling:
                self._rows[i][j] = self._rows[j][i] = coupling
        self._total = [sum(map(abs, row.values())) for row in self._rows]
        # The strongest neighbour of a site, or one that was it: whoever became stronger since is noted.
        self._strongest = [max(row, key=lambda j: abs(row[j]), default=-1) for row in self._rows]
        self._is_there = [True] * (n + 1)
        self._steps: list[tuple[int, list[tuple[int, float]]]] = []  # a site and the neighbours that its spin follows

    def left(self) -> Int[np.ndarray, " k"]:
        """Sites that have not gone."""
        return np.flatnonzero(self._is_there[:-1])

    def reduce(self, sites: Int[np.ndarray, " some"]) -> None:
        """Lets go of these sites and of those that follow, but for one. Their order is by chance: then few follow from
        each other one by one.
        """
        self._queue = collections.deque(np.random.default_rng(0).permutation(sites).tolist())
        self._is_queued = [False] * self._n + [True]  # the last one stands for the fields, and stays
        for i in self._queue:
            self._is_queued[i] = True
        num_left = self._n
        while self._queue and num_left > 1:
            i = self._queue.popleft()
            self._is_queued[i] = False
            num_left -= self._eliminate(i) if len(self._rows[i]) <= 3 else self._tie(i)

    def _eliminate(self, i: int) -> bool:
        around = list(self._rows[i].items())
        self._remove(i, around)
        a, b, c = [coupling for _, coupling in around] + [0.0] * (3 - len(around))
        p, q, r, t = abs(a + b + c), abs(a + b - c), abs(a - b + c), abs(b + c - a)
        pairs = ((0, 1, p + q - r - t), (0, 2, p - q + r - t), (1, 2, p - q - r + t))
        for first, second, coupling in pairs:
            if second < len(around):
                self._add(around[first][0], around[second][0], coupling / 4)
        for j, _ in around:
            self._look_at(j)
        return True

    def _tie(self, i: int) -> bool:
        row = self._rows[i]
        j = self._strongest[i] = max(row, key=lambda j: abs(row[j]))
        sizes = sum(map(abs, row.values()))  # without the rounding that adds up in `_total`
        if 2 * abs(row[j]) < sizes:
            return False
        around, sign = list(row.items()), 1 if row[j] > 0 else -1
        self._remove(i, around, [(j, row[j])])
        for k, coupling in around:
            if k != j:
                self._add(j, k, sign * coupling)
                self._look_at(k)
        self._look_at(j)
        return True

    def _remove(self, i: int, around: list[tuple[int, float]], followed: list[tuple[int, float]] | None = None) -> None:
        self._is_there[i] = False
        self._steps.append((i, around if followed is None else followed))
        for j, coupling in around:
            del self._rows[j][i]
            self._total[j] -= abs(coupling)
        self._rows[i] = {}

    def _add(self, i: int, j: int, coupling: float) -> None:
        before = self._rows[i].get(j, 0.0)
        after = before + coupling
        if after:
            self._rows[i][j] = self._rows[j][i] = after
        elif before:
            del self._rows[i][j], self._rows[j][i]
        for k, other in ((i, j), (j, i)):
            self._total[k] += abs(after) - abs(before)
            if abs(after) > abs(self._rows[k].get(self._strongest[k], 0.0)):
                self._strongest[k] = other

    def _look_at(self, i: int) -> None:
        """Queues a site that a rule may apply to."""
        row = self._rows[i]
        if self._is_queued[i]:
            return
        if len(row) > 3:
            largest = abs(row.get(self._strongest[i], 0.0)) or max(map(abs, row.values()))
            if 2 * largest < (1 - 1e-9) * self._total[i]:
                return
        self._is_queued[i] = True
        self._queue.append(i)

    def remainder(self, model: BinaryQuadratic) -> Remainder:
        """The model of the sites that are left; its offset makes values equal."""
        sites, n = self.left(), self._n
        place = np.full(n, -1)
        place[sites] = np.arange(len(sites))
        pairs = [(i, j, w) for i in sites.tolist() for j, w in self._rows[i].items() if j == n or i < j]
        ends = np.array([pair[:2] for pair in pairs], np.int64).reshape(-1, 2)
        couplings = np.array([pair[2] for pair in pairs], np.float64)
        is_field = ends[:, 1] == n
        edges, weights = place[ends[~is_field]], 4 * couplings[~is_field]
        linear = np.zeros(len(sites))
        np.subtract.at(linear, edges.ravel(), np.repeat(weights / 2, 2))
        linear[place[ends[is_field, 0]]] -= 2 * couplings[is_field]
        left = Remainder(BinaryQuadratic(linear, edges, weights), sites, self._layers(), n)
        x = np.zeros((1, len(sites)), np.int8)
        offset = float((model.value(left.lift(x)) - left.model.value(x))[0])
        return Remainder(BinaryQuadratic(linear, edges, weights, offset), sites, left.layers, n)

    def _layers(self) -> list[_Layer]:
        """Steps from the last to the first; those that do not follow from each other together."""
        depth = [0] * (self._n + 1)
        layers: dict[int, list[tuple[int, list[tuple[int, float]]]]] = collections.defaultdict(list)
        for i, around in reversed(self._steps):
            depth[i] = 1 + max((depth[j] for j, _ in around), default=0)
            layers[depth[i]].append((i, around + [(self._n, 0.0)] * (3 - len(around))))
        return [
            _Layer(
                np.array([i for i, _ in layer]),
                np.array([[j for j, _ in around] for _, around in layer]),
                np.array([[w for _, w in around] for _, around in layer]),
            )
            for _, layer in sorted(layers.items())
        ]
