"""The middle columns of table 1 of "Any-scale balanced samplers": ESS per 10,000 queries, ours beside the printed.

    python benchmarks/any_scale.py [--steps 5000] [--chains 100] [--out FILE]

Queries are counted as the paper's own class of code does without a cache: four a step for samplers with a gradient
(value and gradient at x and at y), two for the random walk, one a level for Gibbs. The last column counts what is
spent here, one evaluation a step. ESS is of the L1 distance to a random reference, averaged over chains.
"""

import argparse
import json
import time

import jax
import networkx as nx
import numpy as np
import scipy.sparse

import discrax as dx

SAMPLERS = ("gibbs", "rw", "dmala", "dlp_trace", "ab_first", "ab_shift", "ab_max", "ab_trace")
PRINTED = {
    "grid": dict(zip(SAMPLERS, (1.66, 1.27, 2.96, 2.88, 3.99, 7.87, 7.83, 7.94), strict=True)),
    "ba4": dict(zip(SAMPLERS, (8.53, 4.28, 120.15, 143.25, 242.31, 274.18, 287.24, 776.31), strict=True)),
    "rotation": dict(zip(SAMPLERS, (2.81, 9.41, 86.28, 86.62, 103.16, 196.88, 217.41, 239.09), strict=True)),
    "sparse": dict(zip(SAMPLERS, (4.20, 8.67, 71.23, 142.86, 79.88, 154.00, 474.75, 1227.94), strict=True)),
}
COUPLING, CONDITION, N = 0.4407, 10, 100


def gaussian(Q) -> dx.Target:
    """A lattice Gaussian -x'Qx / 2 on {0 .. 20}^100."""
    space = dx.Ordinal(N, np.arange(21.0))
    if scipy.sparse.issparse(Q):
        rows, columns = Q.nonzero()
        once = rows <= columns
        edges = np.stack([rows[once], columns[once]], 1)
        return dx.targets.Quadratic(
            space, dx.targets.Sparse(edges, -np.asarray(Q.tocsr()[rows[once], columns[once]]).ravel(), (N,))
        )
    return dx.targets.Quadratic(space, -Q)


def targets() -> dict[str, dx.Target]:
    rng = np.random.default_rng(0)
    spectrum = np.sqrt(CONDITION) / (1 + (CONDITION - 1) * np.arange(N) / (N - 1))
    rotation = np.linalg.qr(rng.normal(size=(N, N)))[0]
    while True:
        around = 0.2 * rng.normal(size=N)
        M = np.eye(N) + np.diag(around[:-1], 1) + np.diag(around[:-1], -1)
        M[0, -1] = M[-1, 0] = around[-1]
        if np.linalg.eigvalsh(M)[0] > 0:
            break
    root = np.sqrt(spectrum)
    return {
        "grid": dx.targets.Ising.lattice((20, 20), COUPLING),
        "ba4": dx.targets.Ising.graph(nx.barabasi_albert_graph(400, 4, seed=0), COUPLING),
        "rotation": gaussian((rotation * spectrum) @ rotation.T),
        "sparse": gaussian(scipy.sparse.csr_array(root[:, None] * M * root[None, :])),
    }


def kernel_of(name: str, target: dx.Target):
    if name == "rw":
        return "mh_uniform" if isinstance(target.space, dx.Ordinal) else "rwm"
    return name


def queries(name: str, target: dx.Target) -> int:
    return {"gibbs": target.space.num_levels, "rw": 2}.get(name, 4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--tasks", nargs="*", default=list(PRINTED))
    parser.add_argument("--samplers", nargs="*", default=list(SAMPLERS))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    rows = []
    print(
        f"{'task':10}{'sampler':12}{'ESS/10k':>10}{'printed':>10}{'ratio':>8}{'ESS/step':>10}{'accept':>8}"
        f"{'us/step':>9}  tuned"
    )
    for task, target in targets().items():
        if task not in arguments.tasks:
            continue
        for name in arguments.samplers:
            begin = time.perf_counter()
            result = dx.sample(
                jax.random.key(0),
                target,
                kernel_of(name, target),
                num_chains=arguments.chains,
                num_warmup=max(1000, arguments.steps // 4),
                num_samples=arguments.steps,
                progress=False,
            )
            assert result.distance is not None
            per_step = float(np.mean(dx.diagnostics.ess(result.distance))) / arguments.steps
            per_query, printed = 1e4 * per_step / queries(name, target), PRINTED[task][name]
            row = {
                "task": task,
                "sampler": name,
                "ess_per_10k_queries": per_query,
                "printed": printed,
                "ess_per_step": per_step,
                "acceptance": float(result.stats["accept_prob"].mean()),
                "microseconds": 1e6 * result.seconds / arguments.steps,
                "tuned": str(result.report or ""),
                "total_seconds": time.perf_counter() - begin,
            }
            rows.append(row)
            print(
                f"{task:10}{name:12}{per_query:10.2f}{printed:10.2f}{per_query / printed:8.2f}{per_step:10.4f}"
                f"{row['acceptance']:8.3f}{row['microseconds']:9.0f}  {row['tuned'][:60]}",
                flush=True,
            )
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
