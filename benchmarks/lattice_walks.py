"""Random walks and Gibbs on the lattice Gaussians of "Any-scale balanced samplers", in readings that print leaves open.

    python benchmarks/lattice_walks.py rotation [bernoulli] [any]
    python benchmarks/lattice_walks.py sparse READING [bernoulli] [any] [corner]

ESS per 10,000 queries at condition numbers 2, 10 and 50, the number R of sites tuned to an acceptance of 0.234. Open is
how a walk chooses its sites: R of them, or each with probability R / n ("bernoulli"), as in DISCS; where they go: to a
neighbouring level, or to "any" other; where the centre is: in the middle of the box, or in its "corner"; and what the
diagonal of the sparse one is, whose printed formula is garbled: `READINGS` has what was tried.

A proposal that leaves the box is refused here as a whole. The package's walk lets that site stay, which matters where
the law is as wide as the box: on the sparse one at L = 50 it has 11.3 (print 9.99).
"""

# ruff: noqa: NPY002  (Numba has the legacy generator alone)
import sys

import numba
import numpy as np

from discrax.diagnostics.ess import ess_of_centred
from discrax.targets import LatticeGaussian

SITES, LEVELS = 100, 21
CHAINS, WARMUP, STEPS, REFERENCES = 20, 20_000, 80_000, 30
CONDITIONS = (2.0, 10.0, 50.0)
PRINTED = {
    "rotation": {"walk": (14.53, 9.41, 6.20), "gibbs": (4.55, 2.81, 1.64)},
    "sparse": {"walk": (11.80, 8.67, 9.99), "gibbs": (3.80, 4.20, 4.42)},
}
READINGS = {
    "ours": lambda u, L: 1 / (1 + (L - 1) * u),
    "centred": lambda u, L: np.sqrt(L) / (1 + (L - 1) * u),
    "up": lambda u, L: L / (1 + (L - 1) * u),
    "lin": lambda u, L: 1 + (L - 1) * u,
    "square": lambda u, L: L / (1 + (L - 1) * u) ** 2,
    "onesq": lambda u, L: 1 / (1 + (L - 1) * u) ** 2,
    "root": lambda u, L: np.sqrt(L / (1 + (L - 1) * u)),
    "linroot": lambda u, L: (1 + (L - 1) * u) / np.sqrt(L),
    "literal": lambda u, L: 99 / (1 + (1 + 99 * u) * (L - 1)),
    "litroot": lambda u, L: np.sqrt(99 / (1 + (1 + 99 * u) * (L - 1))),
}


def precision(task: str, reading: str, condition: float, seed: int) -> np.ndarray:
    """Q of f(x) = -(x - centre)' Q (x - centre) / 2, its diagonal in a reading."""
    edges, values = getattr(LatticeGaussian, task)(seed, SITES, condition, LEVELS, 10.0).hessian()
    Q = np.zeros((SITES, SITES))
    Q[edges[:, 0], edges[:, 1]] = Q[edges[:, 1], edges[:, 0]] = -values
    u = np.linspace(0, 1, SITES)
    scale = np.sqrt(READINGS[reading](u, condition) / READINGS["ours"](u, condition))
    return scale[:, None] * Q * scale


@numba.njit(cache=True)
def walk(Q, centre, references, steps, warmup, each_alone, any_level, seed):
    """Distances of a chain's states to the references after each step of a tuned random walk."""
    np.random.seed(seed)
    n, R = len(Q), 1.0
    x = np.random.randint(0, LEVELS, n)
    y, order = x.copy(), np.arange(n)
    found = np.empty((steps, len(references)), np.float32)
    field = Q @ (x - centre)
    distance = np.abs(references - x).sum(axis=1).astype(np.float32)
    for t in range(warmup + steps):
        y[:] = x
        if each_alone:
            moved = np.flatnonzero(np.random.random(n) < min(R / n, 1.0))
        else:
            count = int(R) + int(np.random.random() < R - int(R))
            for k in range(count):
                j = k + np.random.randint(0, n - k)
                order[k], order[j] = order[j], order[k]
            moved = order[:count].copy()
        inside = True
        for i in moved:
            if any_level:
                y[i] = (x[i] + np.random.randint(1, LEVELS)) % LEVELS
            else:
                y[i] = x[i] + (1 if np.random.random() < 0.5 else -1)
            inside = inside and 0 <= y[i] < LEVELS
        accepted = 0.0
        if inside:
            change = 0.0
            for i in moved:
                change -= field[i] * (y[i] - x[i])
                for j in moved:
                    change -= 0.5 * (y[i] - x[i]) * Q[i, j] * (y[j] - x[j])
            accepted = min(1.0, np.exp(change))
            if np.random.random() < accepted:
                for i in moved:
                    field += Q[:, i] * (y[i] - x[i])
                    for r in range(len(references)):
                        distance[r] += abs(references[r, i] - y[i]) - abs(references[r, i] - x[i])
                    x[i] = y[i]
        if t < warmup:
            R = min(max(R + (accepted - 0.234) / (1 + 10 * t / warmup), 1.0), float(n))
        else:
            found[t - warmup] = distance
    return found


@numba.njit(cache=True)
def gibbs(Q, centre, references, steps, warmup, each_alone, any_level, seed):
    """The same of Gibbs steps, one site each, in turn."""
    np.random.seed(seed)
    n = len(Q)
    x = np.random.randint(0, LEVELS, n)
    found = np.empty((steps, len(references)), np.float32)
    levels = np.arange(LEVELS)
    distance = np.abs(references - x).sum(axis=1).astype(np.float32)
    for t in range(warmup + steps):
        i = t % n
        field = Q[i] @ (x - centre) - Q[i, i] * (x[i] - centre)
        logits = -field * levels - 0.5 * Q[i, i] * (levels - centre) ** 2
        weights = np.cumsum(np.exp(logits - logits.max()))
        new = np.searchsorted(weights, np.random.random() * weights[-1])
        for r in range(len(references)):
            distance[r] += abs(references[r, i] - new) - abs(references[r, i] - x[i])
        x[i] = new
        if t >= warmup:
            found[t - warmup] = distance
    return found


def ess_per_step(
    one_chain, Q: np.ndarray, centre: float, each_alone: bool, any_level: bool
) -> tuple[float, float, float]:
    """The mean over chains and references, its standard error over chains, and the spread of references."""
    references = np.random.default_rng(7).integers(0, LEVELS, (REFERENCES, SITES))
    found = []
    for chain in range(CHAINS):
        values = one_chain(Q, centre, references, STEPS, WARMUP, each_alone, any_level, chain)
        values -= values.mean(axis=0)
        found.append(ess_of_centred(np.ascontiguousarray(values.T), "first_negative") / STEPS)
    found = np.array(found)
    return float(found.mean()), float(found.mean(axis=1).std() / np.sqrt(CHAINS)), float(found.mean(axis=0).std())


def main() -> None:
    """A line for walks and one for Gibbs. A step of a walk is two queries, one of Gibbs a query a level."""
    task, *how = sys.argv[1:] or ("",)
    unknown = [each for each in how if each not in (*READINGS, "bernoulli", "any", "corner")]
    if task not in PRINTED or unknown:
        raise SystemExit(
            f"Expected rotation or sparse, and words of the docstring, but got {' '.join(sys.argv[1:])!r}."
        )
    reading = next((each for each in how if each in READINGS), "ours")
    flags = ("bernoulli" in how, "any" in how)
    for name, one_chain, queries in (("walk", walk, 2), ("gibbs", gibbs, LEVELS)):
        parts = []
        for condition, printed in zip(CONDITIONS, PRINTED[task][name], strict=True):
            Q, centre = precision(task, reading, condition, seed=0), 0.0 if "corner" in how else 10.0
            found = ess_per_step(one_chain, Q, centre, *flags)
            mean, error, spread = (1e4 / queries * each for each in found)
            parts.append(f"{mean:.2f} +- {error:.2f}, of references {spread:.2f} (print {printed})")
        print(" ".join(sys.argv[1:]), name, "; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
