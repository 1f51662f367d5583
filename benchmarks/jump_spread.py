"""How much jump distances differ between instances of the random targets of "Optimal scaling", as a part of them.

    python benchmarks/jump_spread.py [ising] [fhmm]          (about ten minutes on two cores)

Print has one instance of each target and does not say which. On independent bits the spread between instances is known
(`tasks.jump_spread`); here it is measured for spins in random fields and for hidden Markov models, at the smallest
size. The fields, and the noise of the series, are drawn for each site anew, so it falls as 1 / sqrt(sites).
"""

import sys

import jax
import numpy as np

import discrax as dx
from discrax.bench.experiments.models import ising_disc
from discrax.bench.papers.optimal_scaling.targets import fhmm_released
from discrax.bench.papers.optimal_scaling.tasks import ISING, NOISE

_INSTANCES, _CHAINS, _STEPS = 16, 50, 1_000


def target(task: str, config: str, seed: int) -> dx.Target:
    """An instance at the smallest size of the paper."""
    if task == "ising":
        return ising_disc(20, *ISING[config], seed=seed)
    return fhmm_released(200, NOISE[config], seed=seed)


def main() -> None:
    """A line for each task and configuration: the spread of each sampler, and its part that is Monte Carlo error."""
    asked = sys.argv[1:] or ["ising", "fhmm"]
    if not {*asked} <= {"ising", "fhmm"}:
        raise SystemExit(f"Expected ising, fhmm or both, but got {' '.join(asked)!r}.")
    for task in asked:
        for config in ISING:
            parts = []
            for sampler in ("rwm", "gwg", "pas"):
                means, errors = [], []
                for seed in range(_INSTANCES):
                    found = dx.sample(
                        jax.random.key(seed), target(task, config, seed), sampler, num_samples=_STEPS,
                        num_warmup=_STEPS, num_chains=_CHAINS, keep="moments", progress=False,
                    )  # fmt: skip
                    jumps = np.asarray(found.mean_stats["jump"], float)
                    means.append(jumps.mean())
                    errors.append(jumps.std(ddof=1) / np.sqrt(_CHAINS))
                noise = np.sqrt(np.mean(np.square(errors))) / np.mean(means)
                parts.append(f"{sampler} {np.std(means, ddof=1) / np.mean(means):.4f} (noise {noise:.4f})")
            print(task, config, ", ".join(parts), flush=True)


if __name__ == "__main__":
    main()
