"""What a step of second order costs beside one of DMALA, on a sparse model of 10,000 sites.

python benchmarks/second_order_cost.py [--chains 10] [--side 100]
"""

import argparse
import time

import jax
import networkx as nx
import numpy as np

import discrax as dx


def spin_glass(side: int) -> dx.Target:
    """A grid as a general graph, with couplings of random sign: no structure that a stencil could use."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], graph.number_of_edges())
    for (_, _, data), sign in zip(graph.edges(data=True), signs, strict=True):
        data["weight"] = sign
    return dx.targets.Ising.graph(graph, 0.4407)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chains", type=int, default=10)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    side, chains = arguments.side, arguments.chains
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    targets = {
        "Ising grid (graph)": dx.targets.Ising.graph(graph, 0.4407),
        "Ising grid (stencil)": dx.targets.Ising.lattice((side, side), 0.4407),
        "spin glass (graph)": spin_glass(side),
    }
    for title, target in targets.items():
        costs = {}
        for name in ("dmala", "ab_shift", "ab_trace"):
            begin = time.perf_counter()
            result = dx.sample(
                jax.random.key(0),
                target,
                name,
                num_chains=chains,
                num_warmup=100,
                num_samples=arguments.steps,
                keep="moments",
                progress=False,
            )
            costs[name] = result.seconds / arguments.steps
            print(
                f"{title:22}{name:10}{1e6 * costs[name]:9.0f} us/step {costs[name] / costs['dmala']:6.2f} x dmala   "
                f"ready in {time.perf_counter() - begin - result.seconds - result.warmup_seconds:.1f} s  "
                f"{str(result.reports[0])[:150] if result.reports else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
