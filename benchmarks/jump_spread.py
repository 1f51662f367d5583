"""How much jump distances differ between instances of the random targets of "Optimal scaling", as a part of them.

    python benchmarks/jump_spread.py [ising] [fhmm]          (about ten minutes on two cores)
    python benchmarks/jump_spread.py rbm                     (half an hour, and MNIST in the folder DISCRAX_DATA)

Print has one instance of each target and does not say which. On independent bits the spread between instances is known
(`tasks.jump_spread`); here it is measured for spins in random fields, for hidden Markov models and for RBMs, at the
smallest size. The fields, and the noise of the series, are drawn for each site anew, so it falls as 1 / sqrt(sites).
An instance of an RBM is the machine that training with another seed ends with: other weights to begin with, other
binary images, other chains.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

import discrax as dx
from discrax.bench.experiments.models import ising_disc, mnist_rbm
from discrax.bench.papers.optimal_scaling.targets import fhmm_released
from discrax.bench.papers.optimal_scaling.tasks import ISING, NOISE

KERNELS = {
    "rwm": dx.samplers.rwm(),
    "gwg": dx.samplers.gwg(),
    "pas": dx.samplers.pas(),
    "gwg t/(t+1)": dx.samplers.gwg(balancing="ratio"),
    "pas t/(t+1)": dx.samplers.pas(balancing="ratio"),
}


class Asked(NamedTuple):
    """Of a task: its instance of a configuration and a seed, how many there are, and what is run on each."""

    target: Callable[[str, int], dx.Target]
    configs: tuple[str, ...]
    instances: int
    chains: int
    steps: int
    kernels: tuple[str, ...]


THREE = ("rwm", "gwg", "pas")
TASKS = {
    "ising": Asked(lambda config, seed: ising_disc(20, *ISING[config], seed=seed), tuple(ISING), 16, 50, 1_000, THREE),
    "fhmm": Asked(
        lambda config, seed: fhmm_released(200, NOISE[config], seed=seed), tuple(NOISE), 16, 50, 1_000, THREE
    ),
    "rbm": Asked(lambda _, seed: mnist_rbm(100, seed=seed), ("C1",), 6, 20, 4_000, tuple(KERNELS)),
}


def main() -> None:
    """A line for each task and configuration: the spread of each sampler, and its part that is Monte Carlo error."""
    asked = sys.argv[1:] or ["ising", "fhmm"]
    if not {*asked} <= {*TASKS}:
        raise SystemExit(f"Expected some of {', '.join(TASKS)}, but got {' '.join(asked)!r}.")
    for task in asked:
        its = TASKS[task]
        for config in its.configs:
            parts = []
            for name in its.kernels:
                means, errors = [], []
                for seed in range(its.instances):
                    found = dx.sample(
                        jax.random.key(seed), its.target(config, seed), KERNELS[name], num_samples=its.steps,
                        num_warmup=its.steps, num_chains=its.chains, keep="moments", progress=False,
                    )  # fmt: skip
                    jumps = np.asarray(found.mean_stats["jump"], float)
                    means.append(jumps.mean())
                    errors.append(jumps.std(ddof=1) / np.sqrt(its.chains))
                noise = np.sqrt(np.mean(np.square(errors))) / np.mean(means)
                values = "" if task != "rbm" else " of " + " ".join(f"{mean:.3g}" for mean in means)
                parts.append(f"{name} {np.std(means, ddof=1) / np.mean(means):.4f} (noise {noise:.4f}){values}")
            print(task, config, ", ".join(parts), flush=True)


if __name__ == "__main__":
    main()
