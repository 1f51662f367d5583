"""Optimisation as cells: a set of instances is searched, and the best of each instance is a number.

A cell's target makes the instances, and its measure searches them: `annealing` with its sampler, chains and steps,
or `solve_by_default`, which leaves all that to `solve`. What is measured, each as the mean over the instances:

    size                   the objective of the best solution, repaired so that it is feasible
    set_size_lower_bound   the penalised objective of the best state: as the papers report independent sets, for a set
                           that is repaired has no fewer nodes
    ratio                  size / reference
    gap_percent            100 (1 - ratio)
    edge_cut_ratio, balanceness   of partitions
    best_so_far, ratio_so_far     the penalised objective (over the reference) against steps
    best_by_second, ratio_by_second   and against seconds, compilation included
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, Timing, check_complete, experiment, input_of, series
from discrax.problems import Partition, Problem
from discrax.solving import Solution, searches, solve_many

_POINTS = 60  # of a curve


class Instances(NamedTuple):
    """Problems, and for each the value that ratios are taken to (best known, or of a reference solver)."""

    problems: tuple[Problem, ...]
    references: tuple[float, ...] | None = None


@experiment
def annealing(cell: Cell, hot: float = 1.0, cold: float = 0.05, kind: str = "geometric") -> Measured:
    """Annealing from temperature `hot` to `cold` with the cell's sampler."""
    search = searches.Anneal(
        sampler=cell.sampler(), num_chains=cell.budget.num_chains, schedule=kind, betas=(1 / hot, 1 / cold)
    )
    return _search(cell, search, num_steps=cell.budget.num_samples)


@experiment
def solve_by_default(cell: Cell, seconds: float) -> Measured:
    """What `solve` does by itself in so many seconds an instance."""
    return _search(cell, None, seconds=seconds * len(input_of(cell.target).problems))


def automatic() -> str:
    """The sampler of a cell that leaves the choice to `solve`."""
    return "auto"


def _search(cell: Cell, search: searches.Search | None, **budget: Any) -> Measured:
    found: Instances = input_of(cell.target)
    begin = time.perf_counter()
    solutions = solve_many(jax.random.key(cell.seed), found.problems, search, progress=False, **budget)
    seconds = time.perf_counter() - begin
    check_complete(*solutions)
    return [*_numbers(found, solutions), Number("time_s", seconds)], Timing(seconds)


def _numbers(found: Instances, solutions: Sequence[Solution]) -> list[Number]:
    objectives = np.array([solution.objective for solution in solutions])
    penalised = np.array([solution.history.best[-1] for solution in solutions])
    numbers = [
        _over_instances("size", objectives),
        _over_instances("set_size_lower_bound", penalised),
        Number("instances", len(solutions)),
        Number("standard_error", float(objectives.std() / np.sqrt(len(objectives)))),
        Number("feasible", float(np.mean([solution.is_feasible for solution in solutions]))),
    ]
    if found.references is not None:
        references = np.asarray(found.references)
        ratios = objectives / references
        numbers += [
            _over_instances("ratio", ratios),
            _over_instances("gap_percent", 100 * (1 - ratios)),
            _over_instances("reference", references),
            Number("worst_ratio", float(ratios.min())),
        ]
        numbers += series("ratio_of_instance", range(len(ratios)), ratios)
    parted = [(one.problem, one.state) for one in solutions if isinstance(one.problem, Partition)]
    if parted:
        cuts = np.array([float(problem.edge_cut_ratio(state)) for problem, state in parted])
        balances = np.array([float(problem.balanceness(state)) for problem, state in parted])
        numbers += [_over_instances("edge_cut_ratio", cuts), _over_instances("balanceness", balances)]
    return numbers + _curves(found, solutions)


def _over_instances(metric: str, values: np.ndarray) -> Number:
    return Number(metric, float(values.mean()), float(values.std()) if len(values) > 1 else None)


def _curves(found: Instances, solutions: Sequence[Solution]) -> list[Number]:
    """The mean over instances of the best so far, from when all have begun until the first has ended."""
    numbers = []
    for axis, suffix in (("num_steps", "so_far"), ("seconds", "by_second")):
        times = [getattr(solution.history, axis) for solution in solutions]
        first, last = max(each[0] for each in times), min(each[-1] for each in times)
        places = np.unique(np.geomspace(max(first, 1e-3), max(last, first, 1e-3), _POINTS))
        indices = [np.searchsorted(each, places * (1 + 1e-9), side="right") - 1 for each in times]
        best = np.array([solution.history.best[at] for solution, at in zip(solutions, indices, strict=True)])
        numbers += series(f"best_{suffix}", places, best.mean(axis=0))
        if found.references is not None:
            ratios = best / np.array(found.references)[:, None]
            numbers += series(f"ratio_{suffix}", places, ratios.mean(axis=0))
    return numbers
