"""Microseconds a step of all chains: `discrax.sample`, and BlackJAX's `run_inference_algorithm` with the same kernel.

    python benchmarks/interop_blackjax.py [--repeats 7] [--steps 1000]

The same target, kernel, chains, first states and steps; both keep every draw and what is told of every step. Compiled
before, blocked, run in turn; the medians, and the median of the ratios of neighbours.
"""

import argparse
import time

import jax
import numpy as np
from blackjax.util import run_inference_algorithm

import discrax as dx
from discrax.core.programs import reads_user_code
from discrax.interop.blackjax import as_algorithm

CASES = {
    "Ising 20 x 20, 10 chains": (dx.targets.Ising.lattice((20, 20), coupling=0.3), 5.0, 10),
    "Ising 20 x 20, 100 chains": (dx.targets.Ising.lattice((20, 20), coupling=0.3), 5.0, 100),
    "Ising 50 x 50, 20 chains": (dx.targets.Ising.lattice((50, 50), coupling=0.3), 10.0, 20),
    "Potts 10 x 10 with 5 levels, 20 chains": (dx.targets.Potts.lattice((10, 10), 5, coupling=0.5), 3.0, 20),
}


def compare(target: dx.Target, path_length: float, num_chains: int, num_steps: int, repeats: int) -> np.ndarray:
    """Seconds of every repeat, (ours, theirs)."""
    kernel, key = dx.samplers.pas(path_length=path_length), jax.random.key(0)
    x = jax.vmap(target.space.random)(jax.random.split(key, num_chains))
    algorithm = as_algorithm(kernel, target)

    def chain(key, x):
        keep = lambda state, info: (state.position, state.logdensity, info)  # noqa: E731
        return run_inference_algorithm(key, algorithm, num_steps, initial_position=x, transform=keep)[1]

    keys = jax.random.split(key, num_chains)
    theirs = jax.jit(jax.vmap(chain)).lower(keys, x).compile()

    def ours() -> float:
        result = dx.sample(
            key, target, kernel, num_chains=num_chains, num_warmup=0, num_samples=num_steps, init=x, progress=False
        )
        return result.seconds

    seconds = []
    with reads_user_code():  # one reading, one program
        ours()
        for _ in range(repeats):
            of_ours = ours()
            begin = time.perf_counter()
            jax.block_until_ready(theirs(keys, x))
            seconds.append((of_ours, time.perf_counter() - begin))
    return np.array(seconds)


def main() -> None:
    """Prints the table of docs/interop/blackjax.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    print("| target | `discrax.sample` | `run_inference_algorithm` | ratio |\n|---|---:|---:|---:|")
    for name, (target, path_length, num_chains) in CASES.items():
        seconds = compare(target, path_length, num_chains, options.steps, options.repeats)
        ours, theirs = np.median(seconds, axis=0) / options.steps * 1e6
        ratio = np.median(seconds[:, 1] / seconds[:, 0])
        print(f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
