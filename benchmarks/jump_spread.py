"""How much jump distances differ between instances of the random targets of "Optimal scaling", as a part of them.

    python benchmarks/jump_spread.py [ising] [fhmm]          (about ten minutes on two cores)
    python benchmarks/jump_spread.py rbm-100 rbm-400 rbm-1000      (an hour on two cores; MNIST in DISCRAX_DATA)

Print has one instance of each target and does not say which. On independent bits the spread between instances is known
(`tasks.jump_spread`); here it is measured for spins in random fields and for hidden Markov models at the smallest
size, and for RBMs at every size, these with their ESS. The fields, and the noise of the series, are drawn for each site
anew, so it falls as 1 / sqrt(sites). An instance of an RBM is the machine that training with another seed ends with:
other weights to begin with, other binary images, other chains.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

import discrax as dx
from discrax.bench.experiments.ess import mix, scalars
from discrax.bench.experiments.models import ising_disc, mnist_rbm
from discrax.bench.papers.optimal_scaling.targets import fhmm_released, from_visible_bias
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
} | {
    f"rbm-{hidden}": Asked(
        lambda _, seed, hidden=hidden: mnist_rbm(hidden, seed=1 + seed), ("",), 5, 20, 20_000, tuple(KERNELS)
    )
    for hidden in (100, 400, 1000)
}


def measure(its: Asked, target: dx.Target, kernel: dx.Kernel, seed: int) -> dict[str, np.ndarray]:
    """The jump distance of each chain, and of an RBM its ESS as the tables have it."""
    has_ess = its.steps > 1_000
    keep = scalars("sum", target.space.shape, target.space.num_levels) if has_ess else "moments"
    init = from_visible_bias(target, seed, its.chains) if has_ess else None
    found = dx.sample(
        jax.random.key(seed), target, kernel, num_samples=its.steps, num_warmup=its.steps, num_chains=its.chains,
        keep=keep, init=init, progress=False,
    )  # fmt: skip
    made = {"jump": np.asarray(found.mean_stats["jump"], float)}
    return made | {"ESS": its.steps * mix(found, found.kept, "first_negative").of_chains} if has_ess else made


def spread(of_instances: list[np.ndarray]) -> str:
    """The deviation between instances over their mean, the part of it that is Monte Carlo error, and the means."""
    means = np.array([each.mean() for each in of_instances])
    noise = np.sqrt(np.mean([each.var(ddof=1) / each.size for each in of_instances])) / means.mean()
    values = " ".join(f"{mean:.3g}" for mean in means)
    return f"{means.std(ddof=1) / means.mean():.4f} (noise {noise:.4f}) of {values}"


def main() -> None:
    """A line for each task, configuration and sampler."""
    asked = sys.argv[1:] or ["ising", "fhmm"]
    if not {*asked} <= {*TASKS}:
        raise SystemExit(f"Expected some of {', '.join(TASKS)}, but got {' '.join(asked)!r}.")
    for task in asked:
        its = TASKS[task]
        for config in its.configs:
            for name in its.kernels:
                found = [measure(its, its.target(config, seed), KERNELS[name], seed) for seed in range(its.instances)]
                parts = [f"{what} {spread([each[what] for each in found])}" for what in found[0]]
                print(task, config, f"{name}:", "; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
