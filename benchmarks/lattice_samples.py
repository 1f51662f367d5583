"""How much learnt couplings of table 1 of "Enhanced gradient-based MCMC" depend on the samples they are learnt from.

    python benchmarks/lattice_samples.py [NUM_SETS]          (half an hour a set on a core)

Print's five runs share the 10,000 samples of the lattice, and so do ours, which are others. Here each setting learns
from further sets of samples, a seed each. A line for each: the errors of the couplings, their deviation between sets
as a part of their mean, and print.
"""

import sys
from dataclasses import replace

import numpy as np

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.enhanced_gradient_mcmc.energy_models import table01
from discrax.bench.plan.cell import call
from discrax.bench.plan.printed import find_printed
from discrax.bench.plan.suite import Size

PAPER, METRIC = "enhanced-gradient-mcmc", "J_estimation_error"


def main() -> None:
    """Learns with every sampler and K, from each of the sets."""
    words = sys.argv[1:] or ["3"]
    if len(words) != 1 or not words[0].isdecimal() or int(words[0]) < 2:
        raise SystemExit(f"Expected a number of sets of samples, at least 2, but got {' '.join(words)!r}.")
    num_sets = int(words[0])
    for cell in table01.cells(Size.DEFAULT):
        printed = find_printed(PAPER, 1, METRIC, dict(cell.labels))
        if cell.seed > 0 or printed is None:
            continue
        errors = []
        for samples in range(1, num_sets + 1):
            other = replace(cell, target=call(cell.target.address, seed=samples), seed=samples)
            errors += [row["value"] for row in run_cell(other) if row["metric"] == METRIC]
        spread = np.std(errors, ddof=1) / np.mean(errors)
        values = " ".join(f"{error:.4g}" for error in errors)
        print(f"{cell.name}: {values}, deviation {spread:.4f} of the mean, print {printed['value']}", flush=True)


if __name__ == "__main__":
    main()
