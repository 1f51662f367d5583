"""Sets without conflicts, for CPUs: reductions first, then two local searches in turn, then the way back. A graph of
conflicts of a formula is searched as that formula: see `clause_graphs.py`.

The model is that of an independent set: a weight for each node, and pairs that cost at least the lighter of their
nodes, so that no pair is worth having. The searches are told in `covers_kernels.py` (edge weights; for nodes of equal
weight) and in `swaps_kernels.py` (tabu swaps; for nodes of any weight). Where weights are equal, every chain alternates
between them. Edge weights find more on almost every graph that we tried; swaps find cliques that are hidden among nodes
of low degree (the "brock" graphs of DIMACS), which edge weights did not in any time that we gave them.
"""

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float, Int, Int16, Integer, UInt8, UInt64

from discrax.core.memory import num_cores
from discrax.problems.graph import Graph
from discrax.problems.problem import BinaryQuadratic
from discrax.solving import covers_kernels as covers
from discrax.solving import swaps_kernels as swaps
from discrax.solving.clause_graphs import recognise, search_formula
from discrax.solving.clock import Clock, Reports, SearchBudget, longest_slice
from discrax.solving.drive import check_size
from discrax.solving.engine import Report
from discrax.solving.protocol import unit_of
from discrax.solving.reductions import Kernel, reduce_graph
from discrax.solving.sites_kernels import streams

_SLICE = 0.03  # seconds between looks at the clock
_ROUND, _FIRST = 200_000, 1000  # exchanges of a chain
_SHARES_OF_SWAPS = (0.03, 0.5)  # of a chain's exchanges, where few and where many pairs conflict
_MANY_CONFLICTS = 0.2  # of all pairs
_MEAN_WEIGHTS = (0.1, 0.5)  # of edges, for each node, of lists and of a matrix: more are made smaller
_PATIENCE = 10_000  # moves without a larger set, or ten for each node, before swaps start anew
_MOST_NODES_OF_A_MATRIX = 4096
_LEAST_DENSITY_OF_A_MATRIX = 1 / 32
_MOST_EDGES_OF_COVERS = 50_000_000


def is_set_model(model: object) -> bool:
    """Whether `search_sets` can search a model: every node is worth having, and no pair is."""
    if not isinstance(model, BinaryQuadratic) or not model.num_sites:
        return False
    w = model.linear
    return bool((w > 0).all() and (model.weights <= -w[model.edges].min(axis=1, initial=np.inf)).all())


def search_sets(
    model: BinaryQuadratic,
    *,
    num_chains: int,
    seed: int,
    init: Integer[np.ndarray, "*chains n"] | None,
    budget: SearchBudget,
    target: float | None = None,
    num_threads: int | None = None,
    clock: Clock | None = None,
) -> Iterator[Report]:
    """Reports about every 0.2 s and at the end, of sets without conflicts. A step is an exchange for each node.

    Chains are independent, and the best use of a time budget is one for each core. With a budget of steps, results
    depend on the seed only. The sets of `init` are where chains begin, and are kept, less what conflicts, if nothing
    better is found. The search ends before its budget when a set of weight `target` is found, or when no better one
    can exist. Reductions and compilation cost no steps; compilation costs no seconds either.
    """
    _check(model, num_chains, init, budget, num_threads)
    clock, num_threads = clock or Clock(budget), min(num_chains, num_threads or num_cores())
    is_weighted = bool((model.linear != model.linear[0]).any())
    graph = None if is_weighted else recognise(model.num_sites, model.edges)
    if graph is not None:
        return search_formula(
            graph, model, num_chains=num_chains, seed=seed, init=init, target=np.inf if target is None else target,
            num_threads=num_threads, clock=clock,
        )  # fmt: skip
    return _Sets(model, num_chains, seed, init, target).run(clock, num_threads)


def _check(
    model: BinaryQuadratic,
    num_chains: int,
    init: Integer[np.ndarray, "..."] | None,
    budget: SearchBudget,
    num_threads: int | None,
) -> None:
    if not is_set_model(model):
        raise ValueError(
            "A search of sets needs a model with a positive weight for each node, and pairs that cost at least the "
            "lighter of their nodes, as MIS and MaxClique have; search others site by site."
        )
    n = model.num_sites
    if init is not None and (init.shape not in ((n,), (num_chains, n)) or init.min() < 0 or init.max() > 1):
        raise ValueError(f"init has shape ({n},) or ({num_chains}, {n}) and codes 0 and 1, but got others.")
    check_size(num_chains, num_threads, budget)


class _Sets:
    """The chains of a search, on the kernel of its graph."""

    def __init__(
        self,
        model: BinaryQuadratic,
        num_chains: int,
        seed: int,
        init: Integer[np.ndarray, "*chains n"] | None,
        target: float | None,
    ):
        self._model, self._num_chains, self._seed, self._init, self._target = model, num_chains, seed, init, target
        self._chains: list[_Chain] = []
        self._num_steps = 0

    def run(self, clock: Clock, num_threads: int) -> Iterator[Report]:
        """Reports, the last one at the end."""
        with clock.compiling():
            _compile()
        self._begin()
        longest = longest_slice(clock.budget, _SLICE)
        reports, limit, per_step = Reports(clock), clock.budget.num_steps, max(1, len(self._kernel.nodes))

        def run(chain: "_Chain", count: int) -> None:
            began = clock.seconds()
            chain.run(count)
            chain.note(count, clock.seconds() - began)

        with ThreadPoolExecutor(num_threads) as pool:
            while not clock.is_over(self._num_steps) and not all(chain.is_done for chain in self._chains):
                slice_ = min(longest, max(clock.seconds_left(), 1e-3))
                counts = [chain.count_in(slice_) for chain in self._chains]
                if limit is not None:  # results depend on the seed only: all make as many
                    counts = [min(*counts, limit * per_step - self._chains[0].num_exchanges)] * len(counts)
                if min(counts) <= 0:
                    break
                list(pool.map(run, self._chains, counts))
                if max(chain.best_value for chain in self._chains) >= self._goal * (1 - 1e-9):
                    break
                self._num_steps = min(chain.num_exchanges for chain in self._chains) // per_step
                if reports.is_due(self._num_steps):
                    yield from reports.emit(lambda: self._report(clock.fraction(self._num_steps)))
        yield self._report(1.0)

    def _begin(self) -> None:
        model, n = self._model, self._model.num_sites
        self._kernel = kernel = reduce_graph(n, model.edges, model.linear)
        start, others, _ = Graph(n, model.edges, np.ones(len(model.edges)), np.ones(n)).neighbours()
        self._conflicts = (start, others)
        init = None if self._init is None else np.broadcast_to(self._init, (self._num_chains, n))
        self._given = None if init is None else np.stack([self._without_conflicts(x) for x in init])
        self._goal = np.inf if self._target is None else self._target - kernel.offset
        if len(kernel.nodes):
            graph = _Graph(kernel)
            begin = None if self._given is None else kernel.project(self._given)
            words = streams(self._seed, 2 * self._num_chains)
            for i in range(self._num_chains):
                first = None if begin is None else begin[i]
                self._chains.append(_Chain(graph, words[2 * i : 2 * i + 2], first))

    def _without_conflicts(self, x: Integer[np.ndarray, " n"]) -> UInt8[np.ndarray, " n"]:
        """A set less nodes that conflict, light ones first to go."""
        start, others = self._conflicts
        kept, nodes = np.zeros(len(x), np.uint8), np.flatnonzero(x)
        for v in nodes[np.argsort(-self._model.linear[nodes], kind="stable")].tolist():
            kept[v] = not kept[others[start[v] : start[v + 1]]].any()
        return kept

    def _report(self, fraction: float) -> Report:
        if self._chains:
            best = self._kernel.lift(np.stack([chain.best for chain in self._chains]))
        else:
            best = np.repeat(self._kernel.lift(np.zeros((1, 0), np.uint8)), self._num_chains, axis=0)
        w = self._model.linear
        if self._given is not None:
            best = np.where((self._given @ w > best @ w)[:, None], self._given, best)
        values = self._model.offset + best @ w
        is_proved = not self._chains or any(chain.is_done for chain in self._chains)
        return Report(self._num_steps, fraction, 0.0, values, values.copy(), best.astype(np.int8), is_proved)


class _Graph:
    """A kernel as the loops take it: rows, or a matrix where that is faster, and weights as whole numbers."""

    def __init__(self, kernel: Kernel):
        n, m = len(kernel.nodes), len(kernel.edges)
        self.num_nodes, self.num_edges, self._edges = n, m, kernel.edges
        self.is_weighted = bool((kernel.weights != kernel.weights[0]).any())
        self.degrees = np.bincount(kernel.edges.ravel(), minlength=n)
        self.weights, self.unit = _whole(kernel.weights)
        self.has_matrix = n <= _MOST_NODES_OF_A_MATRIX and m > _LEAST_DENSITY_OF_A_MATRIX * n * n / 2
        self.start, self.others, self.twin = _rows(n, kernel.edges)
        self.shared_matrix = self.matrix()

    def matrix(self) -> Int16[np.ndarray, "rows padded"]:
        """Ones where nodes are joined; without rows where lists are faster."""
        n = self.num_nodes if self.has_matrix else 0
        matrix = np.zeros((n, _padded(n)), np.int16)
        if n:
            i, j = self._edges.T
            matrix[i, j] = matrix[j, i] = 1
        return matrix


def _rows(
    n: int, edges: Int[np.ndarray, "m 2"]
) -> tuple[Int[np.ndarray, " n_and_1"], Int[np.ndarray, " ends"], Int[np.ndarray, " ends"]]:
    """Where rows begin, neighbours, and the place of the same edge in the other row."""
    m = len(edges)
    ends, others = np.concatenate([edges[:, 0], edges[:, 1]]), np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.lexsort((others, ends))
    place = np.empty(2 * m, np.int32)
    place[order] = np.arange(2 * m, dtype=np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))]).astype(np.int64)
    return start, others[order].astype(np.int32), place[(order + m) % (2 * m)] if m else place


def _padded(n: int) -> int:
    return -(-n // covers.BLOCK) * covers.BLOCK


def _whole(weights: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], float]:
    """Weights in units that make them whole numbers, or next to it."""
    unit = unit_of(weights)
    return np.maximum(1, np.round(weights / unit)).astype(np.int32), unit


class _Arrays:
    """What both searches of a graph have: keys by blocks, members, numbers, the best set, a stream of random words.

    Ages make a search begin with the nodes of `init`, then with those that few conflict with.
    """

    def __init__(self, graph: _Graph, stream: UInt64[np.ndarray, " 2"], init: UInt8[np.ndarray, " n"] | None):
        n, size = graph.num_nodes, _padded(graph.num_nodes)
        self.graph, self.stream = graph, stream.copy()
        self.key, self.age = np.full(size, 2 * covers.IN, np.int32), np.zeros(size, np.int64)
        by_chance = np.random.default_rng(stream).random(n)
        is_first = np.zeros(n) if init is None else init
        self.age[np.lexsort((by_chance, graph.degrees / graph.weights, 1 - is_first))] = np.arange(n) - n
        blocks = size // covers.BLOCK
        self.leasts, self.stale = np.zeros(blocks, np.int32), np.ones(blocks, np.uint8)
        self.members, self.place = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.numbers, self.best = np.zeros(7, np.int64), np.zeros(n, np.uint8)

    @property
    def best_value(self) -> int:
        """Of the best set so far, in the units of the graph."""
        return int(self.numbers[covers.BEST])


class _Cover(_Arrays):
    """Weights of edges, as in `covers_kernels.py`."""

    def __init__(self, graph: _Graph, stream: UInt64[np.ndarray, " 2"], init: UInt8[np.ndarray, " n"] | None):
        super().__init__(graph, stream, init)
        n, m = graph.num_nodes, graph.num_edges
        self.key[:n] = 0
        self.numbers[covers.TOTAL], self.numbers[covers.LAST] = m, -1
        self.matrix = graph.matrix()
        self.weights = np.ones(0 if graph.has_matrix else 2 * m, np.int32)
        self.may_leave, self.inside = np.zeros(n, np.uint8), np.zeros((3, m + 1), np.int32)
        self.most = round(_MEAN_WEIGHTS[int(graph.has_matrix)] * n * m) + m

    def run(self, count: int) -> None:
        """So many exchanges."""
        graph = self.graph
        covers.seek_cover(
            graph.start, graph.others, graph.twin, self.matrix, self.weights, self.key, self.age, self.leasts,
            self.stale, self.members, self.place, self.may_leave, self.inside, self.numbers, self.best, self.stream,
            count, self.most,
        )  # fmt: skip


class _Swaps(_Arrays):
    """Tabu swaps, as in `swaps_kernels.py`."""

    def __init__(self, graph: _Graph, stream: UInt64[np.ndarray, " 2"], init: UInt8[np.ndarray, " n"] | None):
        super().__init__(graph, stream, init)
        n = graph.num_nodes
        self.key[:n] = -graph.weights
        self.held, self.next_held = np.full(swaps.RING, -1, np.int32), np.zeros(n, np.int32)
        self.patience = max(_PATIENCE, 10 * n)

    def run(self, count: int) -> None:
        """So many moves."""
        graph = self.graph
        swaps.swap(
            graph.start, graph.others, graph.shared_matrix, graph.weights, self.key, self.age, self.leasts, self.stale,
            self.members, self.place, self.held, self.next_held, self.numbers, self.best, self.stream, count,
            self.patience,
        )  # fmt: skip


class _Chain:
    """One chain: both searches in turn, or swaps alone where weights differ."""

    def __init__(self, graph: _Graph, words: UInt64[np.ndarray, "2 2"], init: UInt8[np.ndarray, " n"] | None):
        has_cover = not graph.is_weighted and graph.num_edges <= _MOST_EDGES_OF_COVERS
        self._unit, self._rate, self.num_exchanges = graph.unit, 0.0, 0
        self._cover = _Cover(graph, words[0], init) if has_cover else None
        self._swaps = _Swaps(graph, words[1], init)
        share = _SHARES_OF_SWAPS[int(graph.num_edges > _MANY_CONFLICTS * graph.num_nodes**2 / 2)]
        self._num_covers = round((1 - share) * _ROUND) if has_cover else 0

    def count_in(self, seconds: float) -> int:
        """Exchanges that take about so long, as the last ones did."""
        return max(1, int(self._rate * seconds)) if self._rate else _FIRST

    def note(self, count: int, seconds: float) -> None:
        """Says what so many exchanges took."""
        self._rate = min(count / max(seconds, 1e-6), 4 * (self._rate or np.inf))

    def run(self, count: int) -> None:
        """So many exchanges."""
        while count > 0 and not self.is_done:
            at = self.num_exchanges % _ROUND
            if self._cover is not None and at < self._num_covers:
                part = min(count, self._num_covers - at)
                self._cover.run(part)
            else:
                part = min(count, _ROUND - at)
                self._swaps.run(part)
            self.num_exchanges += part
            count -= part

    @property
    def is_done(self) -> bool:
        """Whether no larger set can exist."""
        return self._cover is not None and bool(self._cover.numbers[covers.DONE])

    @property
    def _better(self) -> _Arrays:
        is_cover = self._cover is not None and self._cover.best_value >= self._swaps.best_value
        return self._cover if is_cover else self._swaps

    @property
    def best_value(self) -> float:
        """Of the best set so far."""
        return self._unit * self._better.best_value

    @property
    def best(self) -> UInt8[np.ndarray, " n"]:
        """The best set so far."""
        return self._better.best


@functools.cache
def _compile() -> None:
    """Every loop on next to nothing."""
    edges = np.array([[0, 1], [1, 2]])
    kernel = Kernel(np.arange(3), edges, np.ones(3), 0.0, np.zeros((0, 4), np.int32), 3)
    reduce_graph(3, edges)
    kernel.lift(kernel.project(np.zeros((1, 3), np.uint8)))
    for search in (_Cover, _Swaps):
        search(_Graph(kernel), streams(0, 1)[0], None).run(1)
