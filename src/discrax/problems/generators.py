"""Random graphs, and sets of them as the papers use.

`erdos_renyi` joins each pair of nodes independently. Instead of a coin per pair it draws the gaps between joined pairs,
which are geometric, so that the work goes with the edges.

`rb_model` is model RB of Xu and Li, in the words of constraint satisfaction: n variables (`num_cliques`) of k = n^alpha
values (`clique_size`), and r n ln n constraints (`ratio` is r). A constraint takes two variables at random and forbids
p k^2 pairs of their values (`tightness` is p). Each value of each variable is a node; edges join the values of one
variable and all forbidden pairs. An independent set of n nodes is a solution. At

    r = -alpha / ln(1 - p),        so that there are r n ln n = -n ln k / ln(1 - p) constraints,

solutions are about to vanish, and this is where instances are hardest; it is the default. As in the code that the data
sets of neural solvers were made with, two constraints on the same variables forbid different pairs (for Xu and Li they
may forbid the same, so that the graphs of BHOSLIB have some 6% fewer edges), p k^2 is rounded down, and there is one
constraint fewer than r n ln n rounded down.
"""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from discrax.core.checks import checked_arguments, describe, number, whole
from discrax.problems.graph import Graph

Seed = int | list[int] | np.random.Generator

_MOST_EDGES = 1_000_000_000
_MOST_TRIES = 10_000  # to draw a graph whose size is in a range

# Zhang et al., "Let the flows tell: solving graph combinatorial optimization problems with GFlowNets" (2023), and those
# who compare with them: `rb_set(500, **RB_SMALL)`. Their code draws integers below 25 and 12, and 55 and 25.
RB_SMALL = {"cliques": (20, 24), "sizes": (5, 11), "tightness": (0.3, 1.0), "num_nodes": (200, 300)}
RB_LARGE = {"cliques": (40, 54), "sizes": (20, 24), "tightness": (0.3, 1.0), "num_nodes": (800, 1200)}


@checked_arguments
def erdos_renyi(num_nodes: int, density: float, seed: Seed = 0) -> Graph:
    """Each pair of nodes is joined with probability `density`."""
    whole("num_nodes", num_nodes, least=0)
    number("density", density, least=0, most=1)
    _check_edges(density * num_nodes * (num_nodes - 1) / 2)
    num_pairs = num_nodes * (num_nodes - 1) // 2
    joined = _successes(num_pairs, density, _generator(seed))
    # Pairs are counted row by row: those of node i with later nodes begin at start[i].
    lengths = np.arange(num_nodes - 1, -1, -1)
    start = np.cumsum(lengths) - lengths
    first = np.repeat(np.arange(num_nodes), np.diff(np.searchsorted(joined, start), append=len(joined)))
    second = joined - start[first] + first + 1
    # Edges are sorted and distinct already: `Graph.from_edges` would sort them again.
    return Graph(num_nodes, np.stack([first, second], axis=1), np.ones(len(first)), np.ones(num_nodes))


@checked_arguments
def barabasi_albert(num_nodes: int, attached: int, seed: Seed = 0) -> Graph:
    """Grown from a star of `attached` + 1 nodes: each new node joins `attached` others, drawn by their degrees."""
    whole("num_nodes", num_nodes, least=0)
    whole("attached", attached)
    if not 1 <= attached < num_nodes:
        raise ValueError(f"A node attaches to between 1 and {num_nodes - 1} others here, but got {attached}.")
    _check_edges(float(num_nodes) * attached)
    generator = _generator(seed)
    edges = np.empty((num_nodes - attached, attached, 2), np.int64)
    edges[0, :, 0] = np.arange(attached)
    edges[0, :, 1] = attached
    ends = edges.reshape(-1)  # a node stands here as often as it has neighbours
    for grown in range(1, num_nodes - attached):
        filled = 2 * attached * grown
        chosen: dict[int, None] = {}
        while len(chosen) < attached:
            chosen.update(dict.fromkeys(ends[generator.integers(filled, size=attached - len(chosen))].tolist()))
        edges[grown, :, 0] = list(chosen)
        edges[grown, :, 1] = attached + grown
    return Graph.from_edges(edges.reshape(-1, 2), num_nodes=num_nodes)


@checked_arguments
def rb_model(
    num_cliques: int,
    clique_size: int,
    tightness: float,
    ratio: float | None = None,
    seed: Seed = 0,
    *,
    is_planted: bool = False,
) -> Graph:
    """Cliques whose nodes conflict at random. `is_planted`: there is an independent set with a node of each clique."""
    n, k, p = num_cliques, clique_size, tightness
    whole("num_cliques", n, least=2)
    whole("clique_size", k, least=2)
    number("tightness", p, above=0, below=1)
    if ratio is None:
        ratio = -math.log(k) / math.log(n) / math.log(1 - p)
    number("ratio", ratio, least=0)
    _check_edges(n * k * (k - 1.0) / 2 + ratio * n * math.log(n) * k * k)
    generator = _generator(seed)
    num_constraints = max(int(ratio * n * math.log(n)) - 1, 0)
    first = generator.integers(n, size=num_constraints)
    second = (first + generator.integers(1, n, size=num_constraints)) % n
    cliques, repeats = np.unique(np.sort(np.stack([first, second], axis=1)), axis=0, return_counts=True)

    planted = generator.integers(k, size=n) if is_planted else None
    orders = generator.permuted(np.tile(np.arange(k * k), (len(cliques), 1)), axis=1)
    counts = np.minimum(repeats * int(p * k * k), k * k)
    if planted is not None:
        kept = planted[cliques[:, 0]] * k + planted[cliques[:, 1]]  # ty: ignore[invalid-argument-type]
        orders = orders[orders != kept[:, None]].reshape(len(cliques), k * k - 1)
        counts = np.minimum(counts, k * k - 1)
    values = orders[np.arange(orders.shape[1]) < counts[:, None]]
    of = np.repeat(cliques, counts, axis=0)
    conflicts = of * k + np.stack([values // k, values % k], axis=1)
    within = np.stack(np.triu_indices(k, 1), axis=1) + k * np.arange(n)[:, None, None]
    return Graph.from_edges(np.concatenate([within.reshape(-1, 2), conflicts]), num_nodes=n * k)


@checked_arguments
def er_set(low: int, high: int, density: float, count: int, seed: int = 0) -> Iterator[Graph]:
    """Erdős-Rényi graphs with `low` to `high` nodes, both included. Graph i is the same whatever `count` is."""
    _check_sizes(low, high)
    for generator in _generators(count, seed):
        yield erdos_renyi(int(generator.integers(low, high + 1)), density, generator)


@checked_arguments
def ba_set(low: int, high: int, attached: int, count: int, seed: int = 0) -> Iterator[Graph]:
    """Barabási-Albert graphs with `low` to `high` nodes, both included."""
    _check_sizes(low, high)
    for generator in _generators(count, seed):
        yield barabasi_albert(int(generator.integers(low, high + 1)), attached, generator)


@checked_arguments
def rb_set(
    count: int,
    seed: int = 0,
    *,
    cliques: tuple[int, int] = (10, 25),
    sizes: tuple[int, int] = (5, 20),
    tightness: tuple[float, float] = (0.3, 1.0),
    num_nodes: tuple[int, int] | None = None,
) -> Iterator[Graph]:
    """Graphs of model RB at its threshold, with everything drawn uniformly from ranges, ends included.

    The default ranges are those of Karalias and Loukas, "Erdős goes neural"; `RB_SMALL` and `RB_LARGE` are those of
    independent sets, where graphs whose number of nodes is not in a range are drawn again. Where graphs serve as
    problems of maximum clique, it is the `complement()` that is meant.
    """
    least, most = num_nodes or (0, cliques[1] * sizes[1])
    if cliques[0] * sizes[0] > most or cliques[1] * sizes[1] < least:
        raise ValueError(f"Cliques {cliques} of sizes {sizes} never have {least} to {most} nodes together.")
    for generator in _generators(count, seed):
        for _ in range(_MOST_TRIES):
            n = int(generator.integers(cliques[0], cliques[1] + 1))
            k = int(generator.integers(sizes[0], sizes[1] + 1))
            p = generator.uniform(*tightness)
            if least <= n * k <= most:
                break
        else:
            raise ValueError(f"Cliques {cliques} of sizes {sizes} hardly ever have {least} to {most} nodes together.")
        yield rb_model(n, k, p, seed=generator)


def _successes(num_trials: int, probability: float, generator: np.random.Generator) -> Int[np.ndarray, " successes"]:
    """Which of independent trials succeed."""
    if probability == 0 or num_trials == 0:
        return np.zeros(0, np.int64)
    if probability == 1:
        return np.arange(num_trials)
    found = [np.zeros(0, np.int64)]
    last = -1
    while last < num_trials:
        expected = (num_trials - last) * probability
        gaps = generator.geometric(probability, int(expected + 4 * math.sqrt(expected)) + 8)
        # A gap beyond the last trial says no more than that; cut there, sums cannot overflow.
        found.append(last + np.cumsum(np.minimum(gaps, num_trials + 1)))
        last = int(found[-1][-1])
    places = np.concatenate(found)
    return places[: np.searchsorted(places, num_trials)]


def _generators(count: int, seed: int) -> Iterator[np.random.Generator]:
    whole("count", count, least=0)
    return (_generator([whole("seed", seed, least=0), i]) for i in range(count))


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(f"A seed is a whole number, at least 0, but got {describe(seed)}.") from None


def _check_edges(expected: float) -> None:
    if expected > _MOST_EDGES:
        raise ValueError(
            f"Graphs of up to {_MOST_EDGES:,} edges are made here, but this one would have about {expected:.1e}, which "
            f"take {expected * 24 / 2**30:,.0f} GiB."
        )


def _check_sizes(low: int, high: int) -> None:
    whole("low", low)
    whole("high", high)
    if not 0 <= low <= high:
        raise ValueError(f"Sizes go from low to high, but got {low} and {high}.")
