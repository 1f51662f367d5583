"""The rows of AB by Algorithm 3 in tables 4 and 5 of "Any-scale balanced samplers", longer, or from another start.

    python benchmarks/algorithm3.py sparse|rotation [CONDITION ...] --times 5        (an hour on two cores)
    python benchmarks/algorithm3.py sparse|rotation [CONDITION ...] --begin 100 0.95

The rows are run as the suite runs them, burn-in, W and gradients, but for ten chains; with `--times` as many steps, and
with `--begin` from this (sigma, alpha) after the burn-in, in place of where the burn-in, whose W and D are 0, has
brought them. If print's numbers are those of the end of the ridge that leads to (infinity, 1), Algorithm 3 has them
where it begins near that end.
"""

import argparse
from dataclasses import replace

import jax.numpy as jnp

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import algorithm, sampling
from discrax.bench.plan.measure import Number
from discrax.bench.plan.suite import Size
from discrax.sampling.run import Run

CHAINS = 10


def begin_at(sigma: float, alpha: float) -> None:
    """Makes every burn-in end there."""
    usual = algorithm.burn_in

    def burn_in(run: Run, num_steps: int) -> tuple[Run, list[Number]]:
        run, numbers = usual(run, num_steps)
        knobs = {"sigma": jnp.float32(sigma), "alpha": jnp.float32(alpha)}
        return run.with_kernels([kernel.with_knobs(**knobs) for kernel in run.kernels]), numbers

    setattr(algorithm, "burn_in", burn_in)  # noqa: B010  (a type checker would have the same function)


def main() -> None:
    """A line for each sampler and condition number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("sparse", "rotation"))
    parser.add_argument("conditions", nargs="*", default=sampling.CONDITIONS)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--begin", type=float, nargs=2)
    asked = parser.parse_args()
    if asked.begin is not None:
        begin_at(*asked.begin)
    for condition in asked.conditions:
        for cell in sampling.quadratic(f"{asked.task}-gaussian", condition, Size.DEFAULT):
            name = dict(cell.labels)["sampler"]
            if name not in ("AB-shift", "AB-max", "AB-trace"):
                continue
            steps = asked.times * cell.budget.num_samples
            made = replace(cell, budget=replace(cell.budget, num_chains=CHAINS, num_samples=steps))
            rows = {row["metric"]: row["value"] for row in run_cell(made)}
            error = rows["ESS_n"] * rows["ESS_relative_error"]
            references = rows["ESS_n"] * rows["ESS_reference_std"] / rows["ESS_per_step"]
            found = f"{rows['ESS_n']:.1f} +- {error:.1f}, between references {references:.1f}"
            end = f"(sigma, alpha) = ({rows['sigma']:.3g}, {rows['alpha']:.3g})"
            print(f"{asked.task} L={condition} {name}, {steps:,} steps: {found}, {end}", flush=True)


if __name__ == "__main__":
    main()
