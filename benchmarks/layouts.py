"""Microseconds a step: chains first with every cache kept, and as `core/layout.py` chooses.

`python benchmarks/layouts.py`

Random regular graphs and lattices, on whatever device there is; both in one run. Spins a nanosecond beside chromatic
Gibbs sampling, which redraws every site in a step.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np

import discrax as dx
from discrax.core import driver, layout, programs
from discrax.core.kernel import Kernel, State, replaced
from discrax.core.target import Target
from step_cost import time_kernel


def plain(target: Target, kernel: Kernel, states: State) -> layout.Layout:
    """Chains first, caches kept, the order of the sites as it is."""

    def step(kernel, keys, states):
        return jax.vmap(kernel.step, in_axes=(0, None, 0))(keys, target, states)

    return layout.Layout(lambda states: states, step, lambda states: states)


def tasks() -> Mapping[str, tuple[dx.Target, tuple[int, ...]]]:
    """Targets, and the numbers of chains."""
    rng = np.random.default_rng(0)
    regular = {
        f"{n:,} nodes of degree {d}": (
            dx.targets.Ising.graph(nx.random_regular_graph(d, n, seed=1), 0.8 / d, 0.1 * rng.normal(size=n)),
            (100, 1000),
        )
        for n, d in ((10_000, 4), (2_000, 20))
    }
    field = rng.normal(size=(50, 50))
    return regular | {
        "lattice 50x50": (dx.targets.Ising.lattice((50, 50), 0.5, field), (100, 1000, 10_000)),
        "14,000 nodes of degree 4": (
            dx.targets.Ising.graph(nx.random_regular_graph(4, 14_000, seed=1), 0.2),
            (1024,),
        ),
        "lattice 1024x1024": (dx.targets.Ising.lattice((1024, 1024), 0.2, periodic=True), (16,)),
        "lattice 4096x4096": (dx.targets.Ising.lattice((4096, 4096), 0.2, periodic=True), (1,)),
    }


def samplers(num_sites: int) -> dict[str, dx.Kernel]:
    """Kernels at scales that suit weak couplings; of large systems, the sweep alone."""
    sweep = {"gibbs chromatic": dx.samplers.gibbs("chromatic")}
    if num_sites > 10_000:
        return sweep
    return {
        "dmala": dx.samplers.dmala(step_size=0.3),
        "gwg": dx.samplers.gwg(),
        "pas, 30 sites": dx.samplers.pas(path_length=30.0),
        "dlmc": dx.samplers.dlmc(),
        **sweep,
    }


def rows(only: list[str] | None) -> Iterator[dict]:
    for task, (target, chains) in tasks().items():
        for num_chains in chains:
            for name, kernel in samplers(target.space.num_sites).items():
                if only and not any(part in f"{task} {name}" for part in only):
                    continue
                ready = kernel.prepare(target, tuning=False)[0]
                shape = (num_chains, *target.space.shape)
                x = jax.numpy.asarray(np.random.default_rng(1).integers(0, 2, shape), target.space.dtype)
                row: dict[str, Any] = {"task": task, "sampler": name, "chains": num_chains}
                before = replaced(ready, plan=None) if hasattr(ready, "plan") else ready
                for label, choose, timed in (("before", plain, before), ("after", layout.choose_layout, ready)):
                    driver.choose_layout = choose  # ty: ignore[invalid-assignment]
                    programs._programs.clear()
                    programs._executables.clear()
                    num_steps = int(np.clip(5e8 / x.size, 20, 1000))
                    row[label] = 1e6 * time_kernel(target, timed, x, num_steps=num_steps)[0]
                if name == "gibbs chromatic":
                    row["spins_per_ns"] = x.size / row["after"] / 1e3
                yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="parts of 'task sampler' to run")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    arguments = parser.parse_args()
    print(jax.devices()[0].device_kind)
    done = []
    for row in rows(arguments.only):
        done.append(row)
        spins = f"{row['spins_per_ns']:8.1f} spins/ns" if "spins_per_ns" in row else ""
        times = f"{row['before']:9.1f} -> {row['after']:9.1f} us"
        print(f"{row['task']:26} {row['chains']:6d} {row['sampler']:16} {times}{spins}", flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(done, indent=1))


if __name__ == "__main__":
    main()
