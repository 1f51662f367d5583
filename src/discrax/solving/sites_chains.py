"""The chains that `sites.py` drives: arrays for the compiled loops, and the scale of temperatures of a model."""

import functools
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.sites import code_dtype
from discrax.problems.graph import Graph
from discrax.problems.problem import BinaryQuadratic, Labelling
from discrax.solving import sites_kernels as kernels
from discrax.solving.drive import STEP_OF_LADDER
from discrax.solving.engine import Report
from discrax.solving.schedules import cold_beta
from discrax.solving.sites_tempering import temper

MOST_BYTES_OF_REPLICAS = 2**30
_MOST_HALVINGS = 12
_MOST_NEIGHBOURS_FOR_CLUSTERS = 4


class Chains(ABC):
    """All chains' states, values and best states. Threads may run blocks of chains, `low` to `high`, side by side."""

    slice_seconds: ClassVar[float] = 0.03  # between looks at the clock
    sweeps_together: ClassVar[int] = 1

    def __init__(self, num_chains: int, num_sites: int, seed: int, dtype: np.dtype | type = np.int8):
        self.num_chains = num_chains
        self.states = np.zeros((num_chains, num_sites), dtype)
        self.best = self.states.copy()
        self.values = np.zeros(num_chains)
        self.best_values = np.full(num_chains, -np.inf)
        streams = kernels.streams(seed, num_chains + 1)
        self.streams, self.pilot_stream = streams[1:], streams[:1]

    def begin(self, init: Integer[np.ndarray, "*chains n"] | None, low: int, high: int) -> None:
        """The first states are given or uniform. The best ones so far are the local maxima above them."""
        if init is None:
            self.restart(low, high)
            given = self.states[low:high].copy()
        else:
            given = np.broadcast_to(self.from_codes(init), self.states.shape)[low:high]
        self.put(given, low, high)
        self.polish(low, high)
        self.put(given, low, high)

    @abstractmethod
    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        """Sets the states of a block, and all that follows from them."""

    @abstractmethod
    def restart(self, low: int, high: int) -> None:
        """Uniform states."""

    @abstractmethod
    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        """A sweep at each beta."""

    @abstractmethod
    def polish(self, low: int, high: int) -> None:
        """Takes the states to local maxima, and keeps those that are the best so far."""

    @abstractmethod
    def temperatures(self) -> tuple[float, float]:
        """The hot and the cold beta."""

    @abstractmethod
    def compile(self) -> None:
        """Runs every loop on next to nothing."""

    @abstractmethod
    def from_codes(self, codes: Integer[np.ndarray, "*chains n"]) -> Integer[np.ndarray, "*chains n"]:
        """States as the loops hold them, from codes."""

    @abstractmethod
    def codes(self, states: Integer[np.ndarray, "chains n"]) -> Integer[np.ndarray, "chains n"]:
        """Codes of states as the loops hold them."""

    @abstractmethod
    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        """The values of states of codes, without the rounding that adds up along a search."""

    def ladder(self, hot: float, cold: float, num_sweeps: int) -> Float[np.ndarray, " rungs"] | None:
        """Ascending betas for tempering, found in so many sweeps; None where these chains cannot be tempered."""
        return None

    def steps_of_a_round(self, ladder: Float[np.ndarray, " rungs"]) -> int:
        """Sweeps that a round of tempering counts for: one for each rung."""
        return len(ladder)

    def begin_tempering(self, ladder: Float[np.ndarray, " rungs"]) -> None:
        """Makes a replica of every chain for each rung."""
        raise NotImplementedError

    def temper(self, ladder: Float[np.ndarray, " rungs"], first: int, count: int, low: int, high: int) -> None:
        """Rounds `first` to `first + count`."""
        raise NotImplementedError

    def report(self, num_steps: int, fraction: float, beta: float) -> Report:
        """Where the chains are, in arrays of their own."""
        best = self.codes(self.best)
        return Report(num_steps, fraction, beta, self.current_values(), self.exact_values(best), best)

    def current_values(self) -> Float[np.ndarray, " chains"]:
        """The values of the chains' states."""
        return self.values.copy()


def _rows(num_nodes: int, edges: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, others, weights = Graph(num_nodes, edges, weights, np.ones(num_nodes)).neighbours()
    return start.astype(np.int32 if len(others) < 2**31 else np.int64), others.astype(np.int32), weights


def _whole_scale(numbers: Float[np.ndarray, " numbers"]) -> float | None:
    """The least power of two that makes all of them whole, if it is small: exact reductions halve weights."""
    for scale in 2.0 ** np.arange(_MOST_HALVINGS + 1):
        if np.abs(scale * numbers).max(initial=0) >= 2**31:
            return None
        if (scale * numbers == np.round(scale * numbers)).all():
            return float(scale)
    return None


class BinaryChains(Chains):
    """Chains of a `BinaryQuadratic`. Arrays hold spins 1 - 2x, and numbers in units of the weights' common divisor."""

    def __init__(self, model: BinaryQuadratic, num_chains: int, seed: int):
        super().__init__(num_chains, model.num_sites, seed)
        self.model = model
        start, others, weights = _rows(model.num_sites, model.edges, model.weights)
        linear = np.asarray(model.linear, np.float64)
        numbers = np.concatenate([linear, weights])
        self.unit, dtype = 1.0, np.dtype(np.float64)
        scale = _whole_scale(numbers)
        if scale is not None:
            self.unit = float(max(1, np.gcd.reduce((scale * numbers).astype(np.int64), initial=0))) / scale
            if not len(numbers) or self._reach(linear, start, weights) / self.unit < 2**15 - 1:
                dtype = np.dtype(np.int16)
        self.has_table = dtype == np.int16
        self.linear = (linear / self.unit).astype(dtype)
        self.rows = (start, others, (weights / self.unit).astype(dtype))
        self.fields = np.zeros(self.states.shape, dtype)

    @staticmethod
    def _reach(linear: np.ndarray, start: np.ndarray, weights: np.ndarray) -> float:
        sums = np.concatenate([[0.0], np.cumsum(np.abs(weights))])
        return float((np.abs(linear) + sums[start[1:]] - sums[start[:-1]]).max(initial=0))

    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        self.states[low:high] = states
        kernels.set_fields(*self.rows, self.linear, self.states, self.fields, self.values, low, high)

    def restart(self, low: int, high: int) -> None:
        kernels.scatter_spins(self.states, self.streams, low, high)
        self.put(self.states[low:high], low, high)

    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        kernels.anneal(
            *self.rows, self.states, self.fields, self.values, self.best, self.best_values, self.streams,
            self.unit * betas, self.has_table, low, high,
        )  # fmt: skip

    def polish(self, low: int, high: int) -> None:
        kernels.polish(*self.rows, self.states, self.fields, self.values, self.best, self.best_values, low, high)

    def _pilot(self) -> "BinaryChains":
        """One chain of its own, at a uniform state."""
        pilot = BinaryChains(self.model, 1, 0)
        pilot.streams = self.pilot_stream
        pilot.restart(0, 1)
        return pilot

    def _gains(self) -> Float[np.ndarray, " n"]:
        return self.unit * (self.states * self.fields.astype(np.float64)).ravel()

    def temperatures(self) -> tuple[float, float]:
        pilot = self._pilot()
        typical = np.sqrt((pilot._gains() ** 2).mean())
        if typical == 0:
            return 1.0, 1.0
        pilot.polish(0, 1)
        return float(1 / typical), cold_beta(pilot._gains(), float(1 / typical))

    def ladder(self, hot: float, cold: float, num_sweeps: int) -> Float[np.ndarray, " rungs"] | None:
        """Rungs at equal steps of sqrt(dv / dbeta) dbeta, from values that a quick anneal passes."""
        pilot, means = self._pilot(), []
        betas = np.linspace(hot, cold, 64)
        half = max(1, num_sweeps // (2 * len(betas)))
        for beta in betas:
            pilot.anneal(np.full(half, beta), 0, 1)
            passed = []
            for _ in range(half):
                pilot.anneal(np.array([beta]), 0, 1)
                passed.append(pilot.values[0])
            means.append(self.unit * np.mean(passed))
        slopes = np.maximum(0, np.diff(np.maximum.accumulate(means))) / np.diff(betas)
        lengths = np.concatenate([[0], np.cumsum(np.sqrt(slopes) * np.diff(betas))])
        num_rungs = max(2, 1 + int(np.ceil(lengths[-1] / STEP_OF_LADDER)))
        count = self.num_chains * self._num_teams * num_rungs
        num_bytes = count * self.states.shape[1] * (1 + self.fields.itemsize)
        if lengths[-1] == 0 or num_bytes > MOST_BYTES_OF_REPLICAS:
            return None
        return np.interp(np.linspace(0, lengths[-1], num_rungs), lengths, betas)

    @functools.cached_property
    def _num_teams(self) -> int:
        """Two, which exchange clusters, where sites have few neighbours: else all sites that differ are one cluster."""
        start = self.rows[0]
        return 2 if len(start) > 1 and np.diff(start).max() <= _MOST_NEIGHBOURS_FOR_CLUSTERS else 1

    def steps_of_a_round(self, ladder: Float[np.ndarray, " rungs"]) -> int:
        return self._num_teams * len(ladder)

    def begin_tempering(self, ladder: Float[np.ndarray, " rungs"]) -> None:
        """All replicas of a chain begin at its best state: the hot ones soon leave it."""
        shape = (self._num_teams, len(ladder))
        count = shape[0] * shape[1]
        self.put(self.best, 0, self.num_chains)
        self.replicas = np.repeat(self.states[:, None], count, axis=1)
        self.replica_fields = np.repeat(self.fields[:, None], count, axis=1)
        self.replica_values = np.repeat(self.values[:, None], count, axis=1)
        self.rungs = np.tile(np.arange(count, dtype=np.int32).reshape(shape), (self.num_chains, 1, 1))

    @functools.cached_property
    def _is_symmetric(self) -> bool:
        """Whether a state has the value of the one with all spins turned."""
        start, _, weights = self.rows
        sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
        return bool((2.0 * self.linear + sums[start[1:]] - sums[start[:-1]] == 0).all())

    def temper(self, ladder: Float[np.ndarray, " rungs"], first: int, count: int, low: int, high: int) -> None:
        temper(
            *self.rows, self.replicas, self.replica_fields, self.replica_values, self.rungs, self.best,
            self.best_values, self.streams, self.unit * ladder, self.has_table, self._is_symmetric, first, count,
            low, high,
        )  # fmt: skip
        for chain in range(low, high):
            coldest = self.rungs[chain, 0, -1]
            self.states[chain] = self.replicas[chain, coldest]
            self.fields[chain] = self.replica_fields[chain, coldest]
            self.values[chain] = self.replica_values[chain, coldest]

    def compile(self) -> None:
        _compile_binary(self.has_table)

    def from_codes(self, codes: Integer[np.ndarray, "*chains n"]) -> Integer[np.ndarray, "*chains n"]:
        return (1 - 2 * np.asarray(codes)).astype(np.int8)

    def codes(self, states: Integer[np.ndarray, "chains n"]) -> Integer[np.ndarray, "chains n"]:
        return (states < 0).astype(np.int8)

    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        return self.model.value(codes)

    def current_values(self) -> Float[np.ndarray, " chains"]:
        return self.model.offset + self.unit * self.values


@functools.cache
def _compile_binary(has_table: bool) -> None:
    weight = 1.0 if has_table else 0.5
    tiny = BinaryQuadratic(np.full(2, weight), np.array([[0, 1]]), np.array([-weight]))
    chains = BinaryChains(tiny, 1, 0)
    chains.restart(0, 1)
    chains.anneal(np.ones(1), 0, 1)
    chains.polish(0, 1)
    chains.begin_tempering(np.ones(2))
    chains.temper(np.ones(2), 0, 1, 0, 1)


class LabelChains(Chains):
    """Chains of a `Labelling`. Weights are multiplied by what a cut costs. Beside the best states of all those of equal
    sizes are reported: what repair makes of the others may be worse.
    """

    def __init__(self, model: Labelling, num_chains: int, seed: int):
        super().__init__(num_chains, model.num_nodes, seed, code_dtype(model.num_labels))
        self.model = model
        start, others, weights = _rows(model.num_nodes, model.edges, model.weights)
        self.rows = (start, others, model.cut_cost * weights)
        self.around = np.zeros((num_chains, model.num_nodes, model.num_labels))
        self.counts = np.zeros((num_chains, model.num_labels), np.int64)
        self.even = np.tile((np.arange(model.num_nodes) % model.num_labels).astype(self.best.dtype), (num_chains, 1))
        self.even_values = np.repeat(self.exact_values(self.even[:1]), num_chains)

    def put(self, states: Integer[np.ndarray, "block n"], low: int, high: int) -> None:
        self.states[low:high] = states
        costs = self.model.size_cost
        kernels.set_around(*self.rows, costs, self.states, self.around, self.counts, self.values, low, high)
        kernels.keep_even(self.states, self.counts, self.values, self.even, self.even_values, low, high)

    def restart(self, low: int, high: int) -> None:
        kernels.scatter_labels(self.states, self.model.num_labels, self.streams, low, high)
        self.put(self.states[low:high], low, high)

    def anneal(self, betas: Float[np.ndarray, " count"], low: int, high: int) -> None:
        if self.model.num_labels == 1:
            return
        kernels.anneal_labels(
            *self.rows, self.model.size_cost, self.states, self.around, self.counts, self.values, self.best,
            self.best_values, self.even, self.even_values, self.streams, betas, low, high,
        )  # fmt: skip

    def polish(self, low: int, high: int) -> None:
        kernels.polish_labels(
            *self.rows, self.model.size_cost, self.states, self.around, self.counts, self.values, self.best,
            self.best_values, low, high,
        )  # fmt: skip

    def report(self, num_steps: int, fraction: float, beta: float) -> Report:
        best = self.codes(np.concatenate([self.best, self.even]))
        return Report(num_steps, fraction, beta, self.current_values(), self.exact_values(best), best)

    def temperatures(self) -> tuple[float, float]:
        """From changes of the cut only: exchanges of labels change nothing else."""
        pilot = LabelChains(self.model, 1, 0)
        pilot.streams = self.pilot_stream
        pilot.restart(0, 1)
        typical = np.sqrt((pilot._gains() ** 2).mean()) if self.model.num_labels > 1 else 0
        if typical == 0:
            typical = 2 * self.model.size_cost or 1.0
            return 1 / typical, 10 / typical
        pilot.polish(0, 1)
        return float(1 / typical), cold_beta(pilot._gains().max(axis=1), float(1 / typical))

    def _gains(self) -> Float[np.ndarray, "n others"]:
        around, labels = self.around[0], self.states[0].astype(np.int64)
        gains = around - np.take_along_axis(around, labels[:, None], axis=1)
        return gains[np.arange(self.model.num_labels) != labels[:, None]].reshape(len(labels), -1)

    def compile(self) -> None:
        _compile_labels(self.states.dtype)

    def from_codes(self, codes: Integer[np.ndarray, "*chains n"]) -> Integer[np.ndarray, "*chains n"]:
        return np.asarray(codes).astype(self.states.dtype)

    def codes(self, states: Integer[np.ndarray, "chains n"]) -> Integer[np.ndarray, "chains n"]:
        return states.copy()

    def exact_values(self, codes: Integer[np.ndarray, "chains n"]) -> Float[np.ndarray, " chains"]:
        model = self.model
        cut = (codes[:, model.edges[:, 0]] != codes[:, model.edges[:, 1]]) @ model.weights
        counts = np.stack([(codes == label).sum(axis=1) for label in range(model.num_labels)], axis=1)
        unequal = ((model.num_nodes / model.num_labels - counts) ** 2).sum(axis=1)
        return -model.cut_cost * cut - model.size_cost * unequal


@functools.cache
def _compile_labels(dtype: np.dtype) -> None:
    num_labels = 2 if dtype == np.int8 else np.iinfo(dtype).max  # so many need this type
    chains = LabelChains(Labelling(2, num_labels, np.array([[0, 1]]), np.ones(1), 1.0, 1.0), 1, 0)
    chains.restart(0, 1)
    chains.anneal(np.ones(1), 0, 1)
    chains.polish(0, 1)
