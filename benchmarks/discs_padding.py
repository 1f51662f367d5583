"""What padding does to samplers that do not leave it out: the causes of table 5 and table 6 of DISCS, tested.

    python benchmarks/discs_padding.py sets DMALA --low 9000 --high 11000 --density 0.02 --cold 0.01
    python benchmarks/discs_padding.py blocks BG-2 --density 0.2
    python benchmarks/discs_padding.py sets DMALA --density 0.2 --graphs 64 --seed 1 --padding no      (other graphs)
    python benchmarks/discs_padding.py cliques           (ego networks of Twitter: needs the data folder)

Print's program pads the graphs of a set with isolated nodes to the size of the largest. They have no weight, but only
GWG and PAS leave them out: DMALA and DLMC count them in Z, the sum of rates, and flip them, and blocks fall on them.
This is that program's annealing, written anew: 32 chains of 50,000 steps (16 of 1,001 for cliques), from temperature 1
down to `cold`; DMALA, DLMC and DLMCf with the time 3 / Z, Z the mean over the chains of an instance ("mean") or of each
chain ("own"). The state of a set is known by how many of its sites have which value x and which number h of neighbours
in the set, (x, h): sites of one class have the same rate, so a step costs as much as there are classes, not sites. GWG
and PAS ("GWG-nA", "PAS") flip sites one after another, drawn by the rates of the first state without replacement, and
go back in reverse order.
"""
# ruff: noqa: NPY002  (Numba has the legacy generator alone)

import argparse
import time
from typing import Any

import numba
import numpy as np

from discrax.problems import generators
from discs_paths import PENALTY, anneal_paths, first_state, flip_site, gain_of, sort_sites

_MOVES = 3.0
LANGEVIN, _BLOCKS = ("DMALA", "DLMC", "DLMCf"), {"HB-10-1": 10, "BG-2": 2}
PATHS = {"GWG-nA": 0.0, "PAS": 0.574}  # and the acceptance that their length is for


@numba.njit(cache=True)
def flip_probability(kind, log_ratio, log_time):
    """That one site is flipped in a step; weights are square roots of ratios."""
    log_rate = log_time + log_ratio / 2
    if kind == 0:
        return 1 / (1 + np.exp(-min(max(log_rate, -700.0), 700.0)))
    equilibrium = 1 / (1 + np.exp(-min(max(log_ratio, -700.0), 700.0)))
    if kind == 2:
        return min(np.exp(min(log_rate, 50.0)), equilibrium)
    log_equilibrium = -np.log1p(np.exp(-log_ratio)) if log_ratio > -700 else log_ratio
    return -equilibrium * np.expm1(-np.exp(min(log_rate - log_equilibrium, 50.0)))


@numba.njit(cache=True)
def log_total_rates(start, H, t, num_padded, is_mean):
    """log Z of every chain, or of all of them their mean."""
    log_z = np.empty(start.shape[0])
    for chain in range(log_z.size):
        top, total = 0.0 if num_padded > 0 else -np.inf, 0.0
        count = np.diff(start[chain])
        for c in range(2 * H):
            if count[c] > 0:
                top = max(top, gain_of(c, H) / (2 * t))
        for c in range(2 * H):
            if count[c] > 0:
                total += count[c] * np.exp(gain_of(c, H) / (2 * t) - top)
        log_z[chain] = top + np.log(total + num_padded * np.exp(-top))
    top = log_z.max()
    return np.full(log_z.size, top + np.log(np.mean(np.exp(log_z - top)))) if is_mean else log_z


@numba.njit(cache=True)
def of_padding(kind, log_time, num_flipped, num_padded):
    """The log-probability of flips of padding."""
    p = flip_probability(kind, 0.0, log_time)
    return num_flipped * np.log(p + 1e-32) + (num_padded - num_flipped) * np.log(1 - p + 1e-32)


@numba.njit(cache=True)
def stay_or_go(kind, start, H, t, log_time):
    """The log-probability that no site flips, and of each class the probability that a site does."""
    stay, go = 0.0, np.zeros(2 * H)
    for c in range(2 * H):
        count = start[c + 1] - start[c]
        if count > 0:
            go[c] = flip_probability(kind, gain_of(c, H) / t, log_time)
            stay += count * np.log(1 - go[c] + 1e-32)
    return stay, go


@numba.njit(cache=True)
def propose(order, start, go, flips):
    """Sites to flip, each by the probability of its class; how many, and their log-odds."""
    num, log_odds = 0, 0.0
    for c in range(go.size):
        count = start[c + 1] - start[c]
        chosen = np.random.binomial(count, min(go[c], 1.0)) if count > 0 and go[c] > 1e-14 else 0
        log_odds += chosen * (np.log(go[c] + 1e-32) - np.log(1 - go[c] + 1e-32))
        begin = num
        while num - begin < chosen:
            i = order[start[c] + np.random.randint(count)]
            if not np.any(flips[begin:num] == i):
                flips[num] = i
                num += 1
    return num, log_odds


@numba.njit(cache=True)
def anneal_sets(seed, kind, is_mean, first, neighbours, H, num_padded, cold, num_chains=32, num_steps=50_000):
    """The best value of all chains."""
    np.random.seed(seed)
    n = first.size - 1
    x, h = np.empty((num_chains, n), np.int8), np.empty((num_chains, n), np.int32)
    order, place = np.empty((num_chains, n), np.int32), np.empty((num_chains, n), np.int32)
    start, flips = np.zeros((num_chains, 2 * H + 1), np.int64), np.empty((num_chains, n), np.int32)
    value, gain, log_q = np.empty(num_chains), np.empty(num_chains), np.empty(num_chains)
    num, padded = np.empty(num_chains, np.int64), np.zeros(num_chains, np.int64)
    for c in range(num_chains):
        x[c], h[c], value[c] = first_state(first, neighbours, np.ones(n), PENALTY)
        sort_sites(x[c], h[c], order[c], place[c], start[c], H)
    best = value.max()
    for step in range(1, num_steps + 1):
        t = cold ** (step / num_steps)
        log_times = np.log(_MOVES) - log_total_rates(start, H, t, num_padded, is_mean)
        for c in range(num_chains):
            stay, go = stay_or_go(kind, start[c], H, t, log_times[c])
            num[c], log_odds = propose(order[c], start[c], go, flips[c])
            padded[c] = np.random.binomial(num_padded, flip_probability(kind, 0.0, log_times[c]))
            log_q[c] = stay + log_odds + of_padding(kind, log_times[c], padded[c], num_padded)
            gain[c] = 0.0
            for i in flips[c, : num[c]]:
                gain[c] += gain_of(x[c, i] * H + h[c, i], H)
                flip_site(i, x[c], h[c], order[c], place[c], start[c], H, first, neighbours)
        log_times = np.log(_MOVES) - log_total_rates(start, H, t, num_padded, is_mean)
        for c in range(num_chains):
            back, go = stay_or_go(kind, start[c], H, t, log_times[c])
            back += of_padding(kind, log_times[c], padded[c], num_padded)
            for i in flips[c, : num[c]]:
                p = go[x[c, i] * H + h[c, i]]
                back += np.log(p + 1e-32) - np.log(1 - p + 1e-32)
            if np.log(np.random.random()) < gain[c] / t + back - log_q[c]:
                value[c] += gain[c]
            else:
                for i in flips[c, : num[c]][::-1]:
                    flip_site(i, x[c], h[c], order[c], place[c], start[c], H, first, neighbours)
        best = max(best, value.max())
    return best


@numba.njit(cache=True)
def flip_one(i, x, h, first, neighbours, worth, price):
    """Flips a site, unless it is padding, and returns the gain."""
    if i >= x.size:
        return 0.0
    gain, sign = (1 - 2 * x[i]) * (worth[i] - price * h[i]), 1 - 2 * x[i]
    x[i] = 1 - x[i]
    for e in range(first[i], first[i + 1]):
        h[neighbours[e]] += sign
    return gain


@numba.njit(cache=True)
def pick(log_weights):
    weights = np.cumsum(np.exp(log_weights - log_weights.max()))
    return min(np.searchsorted(weights, np.random.random() * weights[-1]), weights.size - 1)


@numba.njit(cache=True)
def anneal_blocks(seed, size, first, neighbours, num_sites, worth, price, temperatures, num_chains, every=1):
    """The best value of all chains that move in consecutive blocks: of two sites by Gibbs, else in Hamming balls.

    Each site has its worth, and each edge within the set its price. States count after every so many steps.
    """
    np.random.seed(seed)
    n = first.size - 1
    x, h, value = np.empty((num_chains, n), np.int8), np.empty((num_chains, n), np.int32), np.empty(num_chains)
    for c in range(num_chains):
        x[c], h[c], value[c] = first_state(first, neighbours, worth, price)
    best, begin, log_weights = -np.inf, 0, np.zeros(max(size + 1, 4))
    for step in range(1, temperatures.size + 1):
        t = temperatures[step - 1]
        for c in range(num_chains):
            if size == 2:
                gain = 0.0
                for k in range(1, 4):  # flip the first, then the second, then the first back: all four states
                    gain += flip_one(begin + (1 if k == 2 else 0), x[c], h[c], first, neighbours, worth, price)
                    log_weights[k] = gain / t
                log_weights[0], at = 0.0, 3
                chosen = pick(log_weights[:4])
                while at > chosen:
                    flip_one(begin + (1 if at == 2 else 0), x[c], h[c], first, neighbours, worth, price)
                    at -= 1
                value[c] += log_weights[chosen] * t
            else:
                at = begin + np.random.randint(size)
                value[c] += flip_one(at, x[c], h[c], first, neighbours, worth, price)
                for k in range(size):
                    i = begin + k
                    log_weights[k] = (1 - 2 * x[c, i]) * (worth[i] - price * h[c, i]) / t if i < n else 0.0
                log_weights[size] = 0.0
                chosen = pick(log_weights[: size + 1])
                if chosen < size:
                    value[c] += flip_one(begin + chosen, x[c], h[c], first, neighbours, worth, price)
        begin = (begin + size) % num_sites
        if step % every == 0:
            best = max(best, value.max())
    return best


def anneal_informed(
    sampler: str,
    seed: int,
    first: np.ndarray,
    neighbours: np.ndarray,
    num_padded: int,
    cold: float,
    num_steps: int = 50_000,
    *,
    is_mean: bool = True,
) -> tuple[float, float]:
    """The best value of all chains, and the mean length of late paths (NaN where there are none)."""
    H = int(np.diff(first).max()) + 2
    if sampler in PATHS:
        return anneal_paths(seed, PATHS[sampler], first, neighbours, H, cold, 32, num_steps)
    kind = LANGEVIN.index(sampler)
    return anneal_sets(seed, kind, is_mean, first, neighbours, H, num_padded, cold, 32, num_steps), np.nan


def cooling(cold: float, num_steps: int, *, is_linear: bool = False) -> np.ndarray:
    """The temperatures of all steps, from 1 down to `cold`."""
    part = np.arange(1, num_steps + 1) / num_steps
    return 1 + (cold - 1) * part if is_linear else cold**part


def neighbours_of(num_nodes: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the neighbours of each node begin, and all of them."""
    ends, others = np.concatenate([pairs, pairs[:, ::-1]]).T
    first = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=num_nodes))])
    return first, others[np.argsort(ends, kind="stable")].astype(np.int32)


def report(name: str, values: list[float], begin: float) -> None:
    """One line."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    mean, spread = np.mean(values), np.std(values)
    print(
        f"{name:<32} {mean:9.3f} +- {error:.3f}, spread {spread:.3f}, {time.perf_counter() - begin:.0f} s", flush=True
    )


def main() -> None:
    """Runs what is asked for, with padding and without."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("sets", "blocks", "cliques"))
    parser.add_argument("sampler", nargs="?", default="HB-10-1", choices=(*LANGEVIN, *PATHS, *_BLOCKS))
    parser.add_argument("--low", type=int, default=700)
    parser.add_argument("--high", type=int, default=800)
    parser.add_argument("--density", type=float, default=0.2)
    parser.add_argument("--cold", type=float, default=0.05)
    parser.add_argument("--graphs", type=int, default=16, help="how many (of 196 networks, all)")
    parser.add_argument("--seed", type=int, default=0, help="0: the graphs of the suite; others: as many other graphs")
    parser.add_argument("--padding", nargs="*", default=["yes", "no"], choices=("yes", "no"))
    parser.add_argument("--z", nargs="*", default=["mean"], choices=("mean", "own"))
    given = parser.parse_args()
    if given.graphs > 16 and not given.seed:
        parser.error("the suite has 16 graphs; give a --seed for more")
    references = None
    if given.what == "cliques":
        from discrax.bench.papers.discs.instances import twitter_clique

        found = twitter_clique(196)
        cliques: Any = found.problems
        graphs = [(each.graph.num_nodes, np.asarray(each._conflicts())) for each in cliques]
        references = [each.value for each in found.references or ()]
    else:
        count = given.graphs if given.seed else 16
        drawn = generators.er_set(given.low, given.high, given.density, count, given.seed)
        graphs = [(graph.num_nodes, np.asarray(graph.edges)) for graph in drawn]
    largest = max(n for n, _ in graphs)
    for is_padded in (padding == "yes" for padding in given.padding):
        for z in given.z if given.what == "sets" else [""]:
            begin, values = time.perf_counter(), []
            for number, (n, pairs) in enumerate(graphs if references else graphs[: given.graphs]):
                first, others = neighbours_of(n, pairs)
                num_sites = largest if is_padded else n
                if given.what == "sets":
                    best, _ = anneal_informed(
                        given.sampler, 1, first, others, num_sites - n, given.cold, is_mean=z == "mean"
                    )
                else:
                    chains, steps = (16, 1_001) if references else (32, 50_000)
                    size = _BLOCKS[given.sampler]
                    temperatures = cooling(given.cold, steps)
                    best = anneal_blocks(1, size, first, others, num_sites, np.ones(n), PENALTY, temperatures, chains)
                values.append(best / references[number] if references else best)
            report(f"{given.sampler} {z} {'padded' if is_padded else 'without padding'}", values, begin)


if __name__ == "__main__":
    main()
