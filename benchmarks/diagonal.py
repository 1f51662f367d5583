"""Seconds and gaps of the diagonals: `python benchmarks/diagonal.py [--side 100] [--out FILE]`.

The trace rule on matrices of side x side sites, the norm rule and the interior-point solver on smaller ones. The gap
is certified by the dual: no diagonal is better by more.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import scipy.sparse

from discrax.curvature.diagonal import Diagonal, lambda_shift, smallest_norm, smallest_trace

COUPLING = 0.4407


def ferromagnet(side: int) -> scipy.sparse.csr_array:
    return COUPLING * nx.to_scipy_sparse_array(nx.grid_2d_graph(side, side), dtype=float)


def spin_glass(side: int) -> scipy.sparse.csr_array:
    """The grid with couplings of random sign."""
    upper = scipy.sparse.triu(ferromagnet(side)).tocsr()
    upper.data *= np.random.default_rng(0).choice([-1, 1], len(upper.data))
    return upper + upper.T


def scale_free(num_sites: int) -> scipy.sparse.csr_array:
    return COUPLING * nx.to_scipy_sparse_array(nx.barabasi_albert_graph(num_sites, 4, seed=0), dtype=float)


def dense(num_sites: int) -> np.ndarray:
    W = np.random.default_rng(0).standard_normal((num_sites, num_sites))
    return (W + W.T) / 2


def cases(side: int) -> Iterator[tuple[str, Diagonal]]:
    d = side**2
    yield f"shift, ferromagnet {d}", lambda_shift(ferromagnet(side))
    yield f"trace, ferromagnet {d}", smallest_trace(ferromagnet(side))
    yield f"trace, ferromagnet {d}", smallest_trace(ferromagnet(side), method="low_rank")
    yield f"trace, spin glass {d}", smallest_trace(spin_glass(side))
    yield f"trace, scale-free {d}", smallest_trace(scale_free(d))
    yield "trace, dense 1000", smallest_trace(dense(1000))
    yield "norm, spin glass 400", smallest_norm(spin_glass(20))
    yield "norm, dense 400", smallest_norm(dense(400))
    yield "trace, spin glass 400", smallest_trace(spin_glass(20))
    yield "trace, spin glass 400", smallest_trace(spin_glass(20), method="sdp")
    yield "trace, dense 50", smallest_trace(dense(50), method="sdp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    arguments = parser.parse_args()
    print(f"{'case':28} {'method':10} {'seconds':>8} {'iterations':>10} {'objective':>11} {'gap':>8}")
    done, begin = [], time.perf_counter()
    for case, result in cases(arguments.side):
        row = {"case": case, **result._asdict()}
        row.pop("values")
        done.append(row)
        print(
            f"{case:28} {result.method:10} {result.seconds:8.2f} {result.iterations:10d} {result.objective:11.5g} "
            f"{result.gap:8.1e}",
            flush=True,
        )
        if arguments.out:
            arguments.out.write_text(json.dumps(done, indent=1))
    print(f"{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
