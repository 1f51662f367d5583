"""The rows of AB by Algorithm 3 in tables 4 and 5 of "Any-scale balanced samplers", with longer chains.

    python benchmarks/algorithm3.py sparse|rotation [TIMES] [CONDITION ...]        (half an hour on two cores)

Algorithm 3 begins at (sigma, alpha) = (0.1, 0.5) and goes up the ridge to (infinity, 1) by a fifth a window at most.
The rows are run as the suite runs them, burn-in, W and gradients, but for ten chains, and TIMES (5 by default) as many
steps, which all count: if print's numbers are those of the end of the ridge, the ESS rises towards them.
"""

import sys
from dataclasses import replace

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import sampling
from discrax.bench.plan.suite import Size

CHAINS = 10


def main() -> None:
    """A line for each sampler and condition number."""
    task, *rest = sys.argv[1:] or [""]
    if task not in ("sparse", "rotation"):
        raise SystemExit(f"Expected sparse or rotation, but got {task!r}.")
    times, conditions = int(rest[0]) if rest else 5, rest[1:] or sampling.CONDITIONS
    for condition in conditions:
        for cell in sampling.quadratic(f"{task}-gaussian", condition, Size.DEFAULT):
            name = dict(cell.labels)["sampler"]
            if name not in ("AB-shift", "AB-max", "AB-trace"):
                continue
            budget = replace(cell.budget, num_chains=CHAINS, num_samples=times * cell.budget.num_samples)
            rows = {row["metric"]: row["value"] for row in run_cell(replace(cell, budget=budget))}
            error = rows["ESS_n"] * rows["ESS_relative_error"]
            references = rows["ESS_n"] * rows["ESS_reference_std"] / rows["ESS_per_step"]
            found = f"{rows['ESS_n']:.1f} +- {error:.1f}, between references {references:.1f}"
            print(f"{task} L={condition} {name}, {budget.num_samples:,} steps: {found}, (sigma, alpha) = "
                  f"({rows['sigma']:.3g}, {rows['alpha']:.3g})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
