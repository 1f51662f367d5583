"""Why searches for step sizes choose others than print's: table 4 of "Enhanced gradient-based MCMC", the causes tested.

    python benchmarks/step_searches.py ordinal-poly4 NCG --before 5000
    python benchmarks/step_searches.py ordinal-poly2 PAVG --before 10000 --seed 1
    python benchmarks/step_searches.py ising-lattice NCG --half
    python benchmarks/step_searches.py bayesian-regression AVG --instance 3

The search of the suite, with other chains or seeds; with more steps `--before` those that count (of PAVG they tune
gamma, and there are a thousand by default; others go on from the first states, and there are none); with `--half` of
the lattice's couplings, for the text has f = s'Js / 2 where the appendix and the released code have s'Js; and with
`--instance`, the seed of the data of the regression, which are random. What is printed is the mean jump of every value
that was tried, and its standard error.
"""

import argparse
from dataclasses import replace

import numpy as np

from discrax import targets
from discrax.bench.papers.enhanced_gradient_mcmc.couplings import lattice_couplings
from discrax.bench.papers.enhanced_gradient_mcmc.step_sizes import table04
from discrax.bench.plan.cell import Call, Cell, call
from discrax.bench.plan.suite import Size


def half_lattice() -> targets.Ising:
    """The lattice of table 1 with the text's definition of J."""
    return targets.Ising.dense(lattice_couplings(10, 0.2))


def changed(cell: Cell, asked: argparse.Namespace) -> Cell:
    """The suite's cell with what is asked for."""
    arguments = dict(cell.measure.arguments) | ({} if asked.before is None else {"num_before": asked.before})
    budget = replace(cell.budget, num_chains=asked.chains or cell.budget.num_chains)
    target = call(f"{__file__}:half_lattice") if asked.half else cell.target
    if asked.instance is not None:
        target = call(cell.target.address, seed=asked.instance)
    return replace(
        cell, seed=asked.seed, target=target, budget=budget,
        measure=Call(cell.measure.address, tuple(arguments.items())),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("sampler")
    parser.add_argument("--before", type=int)
    parser.add_argument("--chains", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--instance", type=int)
    asked = parser.parse_args()
    cells = {f"{cell.label('experiment')} {cell.label('sampler')}": cell for cell in table04.cells(Size.DEFAULT)}
    wanted = f"{asked.experiment} {asked.sampler}"
    if wanted not in cells:
        raise SystemExit(f"The searches of table 4 are {', '.join(cells)}, but got {wanted}.")
    cell = changed(cells[wanted], asked)
    numbers, _ = cell.measure().run(cell)
    for number in numbers:
        if number.metric == "jump":
            error = (number.std or 0.0) / np.sqrt(cell.budget.num_chains)
            print(f"{number.x:8g}   {number.value:.4f} +- {error:.4f}", flush=True)
        else:
            print(f"{number.metric} with the longest jumps: {number.value:g}", flush=True)


if __name__ == "__main__":
    main()
