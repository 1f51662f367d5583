"""How time and memory grow: with the sites (single-site samplers must not), the draws (nothing must), and with hubs."""

import resource
import time

import jax
import numpy as np

import discrax as dx
from discrax.core import random
from discrax.core.driver import drive, start
from discrax.problems.generators import barabasi_albert


def step_seconds(target: dx.Target, kernel: dx.Kernel, num_chains: int, num_steps: int) -> float:
    keys = random.split(jax.random.key(0), num_chains)
    ensemble, _ = start(target, kernel, jax.vmap(target.space.random)(keys))
    times = []
    for _ in range(4):
        (chunk,) = drive(keys, target, ensemble, 1, chunk=1, thinning=num_steps)
        times.append(chunk.seconds)
    return min(times) / num_steps


def with_sites() -> None:
    print("microseconds a step, by lattice size (100 chains; 10 for the dense samplers at 500 x 500)")
    sides = (50, 100, 200, 500)
    print(f"{'sampler':14}" + "".join(f"{f'{side}x{side}':>12}" for side in sides))
    kernels = {
        "rwm": (dx.samplers.rwm(path_length=4.0), 20_000, 100),
        "gibbs": (dx.samplers.gibbs(), 20_000, 100),
        "dmala": (dx.samplers.dmala(0.6), 50, 10),
        "pas": (dx.samplers.pas(path_length=30.0), 50, 10),
        "gwg": (dx.samplers.gwg(), 50, 10),
    }
    for name, (kernel, num_steps, num_chains) in kernels.items():
        cells = []
        for side in sides:
            target = dx.targets.Ising.lattice((side, side), coupling=0.3, field=0.1)
            cells.append(1e6 * step_seconds(target, kernel, num_chains, num_steps))
        print(f"{name:14}" + "".join(f"{cell:12.1f}" for cell in cells) + f"   ({num_chains} chains)", flush=True)


def with_draws() -> None:
    print(
        "\nkeep='moments', Ising 50x50, 100 chains of DMALA: seconds per draw and peak memory, by the number of draws"
    )
    target = dx.targets.Ising.lattice((50, 50), coupling=0.3, field=0.1)
    for num_samples in (1000, 2000, 4000, 8000):
        begin = time.perf_counter()
        result = dx.sample(
            jax.random.key(0), target, dx.samplers.dmala(0.6), num_chains=100, num_warmup=0,
            num_samples=num_samples, keep="moments", progress=False, chunk_size=500,
        )  # fmt: skip
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        wall = time.perf_counter() - begin - result.compile_seconds
        mean = np.asarray(result.mean_stats["lp"]).mean()
        print(f"{num_samples:6d} draws: {1e3 * wall / num_samples:6.3f} ms a draw, peak {peak:6.0f} MiB, lp {mean:.1f}")


def with_hubs(num_nodes: int = 1_000_000, num_chains: int = 8) -> None:
    print(f"\n{num_nodes:,} nodes, four times as many edges, {num_chains} chains of DMALA")
    rng, sites = np.random.default_rng(0), np.arange(num_nodes)
    graphs = {
        "8-regular": np.concatenate([np.stack([sites, rng.permutation(num_nodes)], axis=1) for _ in range(4)]),
        "Barabasi-Albert": barabasi_albert(num_nodes, 4).edges,
    }
    for name, edges in graphs.items():
        begin = time.perf_counter()
        target = dx.targets.Ising.graph(edges, 0.05)
        built = time.perf_counter()
        num_colours = target.colours().max() + 1
        coloured = time.perf_counter()
        mebibytes = sum(leaf.nbytes for leaf in jax.tree.leaves(target.coupling)) / 2**20
        print(
            f"{name:16} built in {built - begin:5.1f} s, {num_colours} colours in {coloured - built:5.1f} s, "
            f"couplings {mebibytes:5.0f} MiB, {1e3 * step_seconds(target, dx.samplers.dmala(0.3), num_chains, 5):7.0f} "
            "ms a step",
            flush=True,
        )


if __name__ == "__main__":
    with_sites()
    with_draws()
    with_hubs()
