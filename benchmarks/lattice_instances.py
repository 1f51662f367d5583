"""How much the rows of tables 4 and 5 of "Any-scale balanced samplers" differ between instances of their Gaussians.

    python benchmarks/lattice_instances.py sparse|rotation [SAMPLER ...]        (half an hour on two cores)

The rotation of the one and the couplings of the other are random, and print has one instance of each. A row is run as
the suite runs it, on instances of eight other seeds; per condition number there is the mean ESS per 10,000 queries, how
much it differs between instances as a part of that, and the part of this that is the error of the chains.
"""

import sys
from dataclasses import replace

import numpy as np

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import sampling
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.suite import Size

SEEDS, CHAINS = range(1, 9), 20
SAMPLERS = ("RW", "DLP", "DLP-trace")


def instance(cell: Cell, seed: int) -> Cell:
    """The cell on the target of another seed, with fewer chains."""
    arguments = tuple((name, seed if name == "seed" else value) for name, value in cell.target.arguments)
    budget = replace(cell.budget, num_chains=CHAINS)
    return replace(cell, target=replace(cell.target, arguments=arguments), seed=seed, budget=budget, is_timed=False)


def measure(cell: Cell) -> tuple[float, float]:
    """ESS per 10,000 queries and its relative error over chains."""
    rows = {row["metric"]: row for row in run_cell(cell)}
    if "ESS_n" not in rows:
        raise RuntimeError(str(next(iter(rows.values()))["error"]))
    return rows["ESS_n"]["value"], rows["ESS_relative_error"]["value"]


def main() -> None:
    """A line for each sampler and condition number."""
    task, *samplers = sys.argv[1:] or [""]
    if task not in ("sparse", "rotation"):
        raise SystemExit(f"Expected sparse or rotation, but got {task!r}.")
    for condition in sampling.CONDITIONS:
        for cell in sampling.quadratic(f"{task}-gaussian", condition, Size.DEFAULT):
            name = dict(cell.labels)["sampler"]
            if name not in (samplers or SAMPLERS):
                continue
            values, errors = np.array([measure(instance(cell, seed)) for seed in SEEDS]).T
            spread, noise = values.std(ddof=1) / values.mean(), np.sqrt(np.mean(errors**2))
            found = " ".join(f"{value:.4g}" for value in values)
            about = f"{values.mean():.4g}, spread {spread:.3f} (noise {noise:.3f}) of {found}"
            print(f"{task} L={condition} {name}: {about}", flush=True)


if __name__ == "__main__":
    main()
