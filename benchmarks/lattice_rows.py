"""Why rows of tables 2, 4 and 5 of "Any-scale balanced samplers" differ from print: the rows with one thing changed.

    python benchmarks/lattice_rows.py sparse-gaussian RW DLP DLP-trace --instances 8   (half an hour on two cores)
    python benchmarks/lattice_rows.py sparse-gaussian AB-max --values 50 --most-trace
    python benchmarks/lattice_rows.py rotation-gaussian AB-shift AB-max AB-trace --chains 10 --begin 100 0.95
    python benchmarks/lattice_rows.py rotation-gaussian AB-shift --values 2 --chains 10 --times 5
    python benchmarks/lattice_rows.py sparse-gaussian DLP --values 50 --rate 0.79
    python benchmarks/lattice_rows.py grid-ising RW DLP "AB-trace (ours)" --values 0.3000 --periodic
    python benchmarks/lattice_rows.py ba4-ising DLP AB-1st AB-trace --chains 10 --attached 2   (half an hour)
    python benchmarks/lattice_rows.py grid-ising Gibbs --values 0.7071 --chains 100 --ordered

A row is run as the suite runs it, with fewer chains, and shown as its ESS per 10,000 queries.

- `--instances`: the rotation, the couplings of the sparse one and the graph are random, and print has one of each. How
  much the ESS differs between those of so many other seeds, as a part of the mean, and what of that is the chains'.
- `--most-trace`: many D have the least lambda_max(W + D), and print does not say which one its solver ends with. The
  suite's AB-max has whichever comes; this is the D of most trace among them, to the tolerance of the library's.
- `--rate`: the step size is tuned to another acceptance rate than the 0.574 that print names.
- `--periodic`: print does not say whether its grid has an edge; the suite's has one, this has none.
- `--attached`: a new node of the Barabasi-Albert graph attaches to so many others. Print says 4; the first-order rows
  that it has are nearer to those of 2.
- `--ordered`: spins begin all up. From a random start they freeze into domains.
- `--begin`: Algorithm 3 goes on from this (sigma, alpha) after the burn-in, in place of where the burn-in, whose W and
  D are 0, has brought them. `--times`: it makes as many times the steps.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np

from discrax import targets
from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.any_scale import algorithm, sampling
from discrax.bench.plan.cell import Cell, call
from discrax.bench.plan.measure import Number
from discrax.bench.plan.suite import Size
from discrax.core.target import Target
from discrax.curvature import build
from discrax.curvature.diagonal import Diagonal, check_and_scale, report
from discrax.curvature.matrices import Solution
from discrax.curvature.norm import feasible, price_of_trace
from discrax.curvature.semidefinite import solve_by_clarabel
from discrax.sampling.run import Run

_TOLERANCE = 1e-3


def of_most_trace(W: np.ndarray) -> Diagonal:
    """Minimises lambda less a price times tr D, at a price that costs less of lambda than the tolerance."""
    W, scale = check_and_scale(W)
    least = solve_by_clarabel(W, np.append(np.zeros(len(W)), 1.0))[0][-1]
    price = price_of_trace(W, _TOLERANCE)
    while True:
        D = solve_by_clarabel(W, np.append(np.full(len(W), -price), 1.0))[0][:-1]
        values, objective = feasible(W, D)
        if objective <= (1 + _TOLERANCE) * least:
            return report(Solution(values, objective, least, 1), "norm", "sdp", scale, 1.0, 0.0)
        price /= 3


def ending_at(burn_in: Callable[..., tuple[Run, list[Number]]], sigma: float, alpha: float) -> Callable[..., Any]:
    """The burn-in, and then (sigma, alpha) set."""

    def changed(run: Run, num_steps: int) -> tuple[Run, list[Number]]:
        run, numbers = burn_in(run, num_steps)
        knobs = {"sigma": jnp.float32(sigma), "alpha": jnp.float32(alpha)}
        return run.with_kernels([kernel.with_knobs(**knobs) for kernel in run.kernels]), numbers

    return changed


def periodic_grid(coupling: float, side: int) -> targets.Ising:
    """The grid of table 2 without an edge."""
    return targets.Ising.lattice((side, side), coupling, periodic=True)


def all_up(target: Target, seed: int, num_chains: int) -> np.ndarray:
    """Every chain begins with all spins up."""
    return np.ones((num_chains, *target.space.shape), np.int8)


def on_other_target(cell: Cell, **arguments: int) -> Cell:
    """The cell on its target with other arguments."""
    return replace(cell, target=call(cell.target.address, **(dict(cell.target.arguments) | arguments)))


def changed(cell: Cell, asked: argparse.Namespace) -> Cell:
    """The suite's cell with what is asked for, untimed."""
    budget = replace(cell.budget, num_chains=asked.chains, num_samples=asked.times * cell.budget.num_samples)
    cell = replace(cell, budget=budget, is_timed=False)
    if asked.rate is not None:
        cell = replace(cell, adaptation=call("discrax.adaptation.acceptance:AcceptanceRate", rate=asked.rate))
    if asked.periodic:
        cell = replace(cell, target=call(f"{__file__}:periodic_grid", **dict(cell.target.arguments)))
    if asked.attached is not None:
        cell = on_other_target(cell, attached=asked.attached)
    return replace(cell, init=call(f"{__file__}:all_up")) if asked.ordered else cell


def instance(cell: Cell, seed: int) -> Cell:
    """The cell on the target of another seed."""
    return replace(on_other_target(cell, seed=seed), seed=seed)


def measure(cell: Cell) -> dict[str, float]:
    """The numbers of a cell by their metrics."""
    rows = run_cell(cell)
    if rows[0]["status"] != "ok":
        raise SystemExit(f"{cell.name}: {rows[0]['error']}")
    return {row["metric"]: row["value"] for row in rows}


def about(found: dict[str, float]) -> str:
    """The ESS of a row with its errors, its acceptance, and the (sigma, alpha) it ended with."""
    ess, of_step = found["ESS_n"], found["ESS_per_step"]
    text = f"{ess:.4g} +- {ess * found['ESS_relative_error']:.2g}"
    text += f", between references {ess * found['ESS_reference_std'] / of_step:.2g}"
    text += f", acceptance {found['acceptance']:.3f}"
    return text + (f", (sigma, alpha) = ({found['sigma']:.3g}, {found['alpha']:.3g})" if "sigma" in found else "")


def about_instances(found: Sequence[dict[str, float]]) -> str:
    """The mean of rows, how much they differ, and how much of that is the error of their chains."""
    values, errors = (np.array([each[name] for each in found]) for name in ("ESS_n", "ESS_relative_error"))
    spread, noise = values.std(ddof=1) / values.mean(), np.sqrt(np.mean(errors**2))
    return f"{values.mean():.4g}, spread {spread:.3f} (noise {noise:.3f}) of {' '.join(f'{v:.4g}' for v in values)}"


def main() -> None:
    """A line for each condition number and sampler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=sampling.TASKS)
    parser.add_argument("samplers", nargs="+")
    parser.add_argument("--values", nargs="+", help="condition numbers or couplings; all without")
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--instances", type=int, default=0)
    parser.add_argument("--begin", type=float, nargs=2, metavar=("SIGMA", "ALPHA"))
    parser.add_argument("--most-trace", action="store_true")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--periodic", action="store_true")
    parser.add_argument("--attached", type=int)
    parser.add_argument("--ordered", action="store_true")
    asked = parser.parse_args()
    if (asked.periodic and asked.task != "grid-ising") or (asked.instances and asked.task == "grid-ising"):
        parser.error("Grids are --periodic, and Gaussians and graphs have --instances.")
    if asked.ordered and not asked.task.endswith("ising"):
        parser.error("Spins are --ordered.")
    if asked.attached is not None and asked.task != "ba4-ising":
        parser.error("Nodes of a Barabasi-Albert graph are --attached.")
    values = sampling.CONDITIONS if asked.task.endswith("gaussian") else sampling.COUPLINGS
    cells = {value: {} for value in asked.values or values}
    for value in cells:
        if value not in values:
            parser.error(f"The values of {asked.task} are {', '.join(values)}, but got {value}.")
        cells[value] = {cell.label("sampler"): cell for cell in sampling.quadratic(asked.task, value, Size.PAPER)}
        if unknown := set(asked.samplers) - set(cells[value]):
            parser.error(f"The samplers are {', '.join(cells[value])}, but got {', '.join(sorted(unknown))}.")
    with ExitStack() as changes:
        if asked.begin is not None:
            changes.enter_context(patch.object(algorithm, "burn_in", ending_at(algorithm.burn_in, *asked.begin)))
        if asked.most_trace:
            changes.enter_context(patch.dict(build.RULES, {"max, any": of_most_trace}))
        for found in cells.values():
            for name in asked.samplers:
                made = changed(found[name], asked)
                if asked.instances:
                    text = about_instances([measure(instance(made, 1 + seed)) for seed in range(asked.instances)])
                else:
                    text = about(measure(made))
                print(f"{made.name}: {text}", flush=True)


if __name__ == "__main__":
    main()
