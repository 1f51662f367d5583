"""AB-max on the sparse Gaussian of "Any-scale balanced samplers" with the D of most trace among those that tie.

    python benchmarks/lattice_ties.py [CONDITION ...]        (a quarter of an hour on two cores)

Many D have the least lambda_max(W + D), and print does not say which one its solver ends with. The suite's row has
whichever comes here; `ties="trace"` has that of least trace, which moves furthest. This is the other end: the row of
table 5 as the suite runs it, Algorithm 3 and all, but for a D of most trace, to the tolerance of the library's.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import sampling
from discrax.bench.plan.suite import Size
from discrax.curvature import build
from discrax.curvature.diagonal import check_and_scale, report
from discrax.curvature.matrices import Solution
from discrax.curvature.norm import feasible, price_of_trace
from discrax.curvature.semidefinite import solve_by_clarabel

CHAINS, TOLERANCE = 20, 1e-3


def of_most_trace(W: np.ndarray):
    """Minimises lambda less a price times tr D, at a price that costs less of lambda than the tolerance."""
    W, scale = check_and_scale(W)
    least = solve_by_clarabel(W, np.append(np.zeros(len(W)), 1.0))[0][-1]
    price = price_of_trace(W, TOLERANCE)
    while True:
        D = solve_by_clarabel(W, np.append(np.full(len(W), -price), 1.0))[0][:-1]
        values, objective = feasible(W, D)
        if objective <= (1 + TOLERANCE) * least:
            print(f"trace {scale * values.sum():.4g}, lambda {scale * objective:.4g}", flush=True)
            return report(Solution(values, objective, least, 1), "norm", "sdp", scale, 1.0, 0.0)
        price /= 3


def main() -> None:
    """A line for each condition number."""
    rules: dict[str, Any] = build.RULES
    usual = rules["max, any"]
    for condition in sys.argv[1:] or sampling.CONDITIONS:
        for cell in sampling.quadratic("sparse-gaussian", condition, Size.DEFAULT):
            if dict(cell.labels)["sampler"] != "AB-max":
                continue
            for name, rule in (("whichever comes", usual), ("most trace", of_most_trace)):
                rules["max, any"] = rule
                rows = {
                    row["metric"]: row["value"]
                    for row in run_cell(replace(cell, budget=replace(cell.budget, num_chains=CHAINS)))
                }
                error = rows["ESS_n"] * rows["ESS_relative_error"]
                print(f"L={condition} {name}: {rows['ESS_n']:.1f} +- {error:.1f}, (sigma, alpha) = "
                      f"({rows['sigma']:.3g}, {rows['alpha']:.3g})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
