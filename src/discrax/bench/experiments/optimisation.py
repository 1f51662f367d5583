"""Optimisation as cells: a set of instances is searched, and the best of each instance is a number.

A cell's target makes the instances, and its measure searches them: `annealing` with its sampler, chains and steps,
or `solve_by_default`, which leaves all that to `solve`. The papers score the best state as the chains found it, and so
do the first numbers; what repair makes of it (of a cut, flips that gain; of parts, moves until they are equal) is
beside it. What is measured, each as the mean over the instances:

    set_size_lower_bound   the objective of the best state less what it violates: of a set its nodes less the pairs that
                           conflict, which no set that is repaired falls short of; of a cut the cut
    ratio                  that over the reference
    edge_cut_ratio, balanceness   of partitions, of the best state
    size                   the objective of the best solution, repaired so that it is feasible
    ratio_repaired, edge_cut_ratio_repaired, balanceness_repaired   and of it
    gap_percent            100 (1 - ratio_repaired)
    reference, reference_seconds, reference_proved   what ratios are taken to, how long that was searched for, and the
                           share of instances for which it is known that nothing is better
    best_so_far, ratio_so_far     the penalised objective (over the reference) against steps
    best_by_second, ratio_by_second   and against seconds, compilation included
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Integer

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import (
    Measured,
    Number,
    Timing,
    check_complete,
    experiment,
    experiment_without_sampler,
    folder_of_cell,
    input_of,
    series,
)
from discrax.problems import Partition, Problem
from discrax.sampling.fingerprint import digest, surroundings
from discrax.sampling.run import work_per_step
from discrax.solving import Solution, searches, solve_many
from discrax.solving.engine import Report
from discrax.solving.folder import read_best

_POINTS = 60  # of a curve
_LONG = {"cpu": 5e8}  # numbers that the steps of a search touch: about a minute
_LONG_ELSEWHERE = 2e10


class Reference(NamedTuple):
    """The value of an instance that ratios are taken to: best known, or of a reference solver."""

    value: float
    seconds: float | None = None  # that finding it took
    is_proved: bool = False  # that nothing is better


class Instances(NamedTuple):
    """Problems, and what the ratio of each is taken to."""

    problems: tuple[Problem, ...]
    references: tuple[Reference, ...] | None = None


@experiment
def annealing(cell: Cell, hot: float = 1.0, cold: float = 0.05, kind: str = "geometric") -> Measured:
    """Annealing from temperature `hot` to `cold` with the cell's sampler."""
    search = searches.Anneal(
        sampler=cell.sampler(), num_chains=cell.budget.num_chains, schedule=kind, betas=(1 / hot, 1 / cold)
    )
    return _search(cell, search, _folder(cell, search), num_steps=cell.budget.num_samples)


@experiment_without_sampler
def solve_by_default(cell: Cell, seconds: float) -> Measured:
    """What `solve` does by itself in so many seconds an instance."""
    return _search(cell, None, None, seconds=seconds * len(input_of(cell.target).problems))


def automatic() -> str:
    """The sampler of a cell that leaves the choice to `solve`."""
    return "auto"


def _folder(cell: Cell, search: searches.Search) -> Path | None:
    """Where a search that takes long keeps its chains. Those of another kind of device would not go on bit for bit."""
    problems, folder, budget = input_of(cell.target).problems, folder_of_cell(), cell.budget
    work = budget.num_samples * sum(work_per_step(problem.target, budget.num_chains) for problem in problems)
    is_long = work >= _LONG.get(jax.default_backend(), _LONG_ELSEWHERE)
    if folder is None or not is_long or not all(map(search.can_go_on, problems)):
        return None
    return folder / digest(surroundings())


def _search(cell: Cell, search: searches.Search | None, folder: Path | None, **budget: Any) -> Measured:
    found: Instances = input_of(cell.target)
    begin = time.perf_counter()
    best: dict[int, Integer[np.ndarray, " _"]] = {}  # of each problem, as the chains found it

    def keep_best(number: int, report: Report) -> None:
        best[number] = report.best_states[int(np.nanargmax(report.best_values))]

    if folder is not None:
        budget["folder"] = folder
    solutions = solve_many(
        jax.random.key(cell.seed), found.problems, search, progress=False, callback=keep_best, **budget
    )
    seconds = time.perf_counter() - begin
    check_complete(*solutions)
    if folder is not None and search is not None:  # parts of it may have been done before a kill
        best |= {i: read_best(folder, found.problems[i], i).states[0] for i in {*range(len(solutions))} - {*best}}
        ends = [solutions[group[-1]] for group in search.group(found.problems)]
        seconds = sum(each.seconds + each.compile_seconds for each in ends)
    states = [best[i][: problem.space.num_sites] for i, problem in enumerate(found.problems)]  # without padding
    numbers = [*_of_states(found, states), *_of_solutions(found, solutions), *_curves(found, solutions)]
    return [*numbers, Number("time_s", seconds)], Timing(seconds)


def score(problem: Problem, state: Integer[np.ndarray, " n"]) -> float:
    """The objective, less the violations where it is to be large."""
    lost = problem.violations(state) if problem.sense == "max" else 0.0
    return float(problem.objective(state) - lost)


def _of_states(found: Instances, states: Sequence[Integer[np.ndarray, " _"]]) -> list[Number]:
    """What the papers score: the best states as they were found."""
    scores = np.array([score(problem, state) for problem, state in zip(found.problems, states, strict=True)])
    numbers = [_over_instances("set_size_lower_bound", scores), Number("instances", len(scores))]
    if found.references is not None:
        ratios = scores / _values(found)
        numbers += [_over_instances("ratio", ratios), Number("worst_ratio", float(ratios.min()))]
        numbers += series("ratio_of_instance", range(len(ratios)), ratios)
        numbers += _about_references(found.references)
    return numbers + _of_parts(found.problems, states)


def _of_solutions(found: Instances, solutions: Sequence[Solution]) -> list[Number]:
    """What they are worth after repair."""
    objectives = np.array([solution.objective for solution in solutions])
    numbers = [
        _over_instances("size", objectives),
        Number("standard_error", float(objectives.std() / np.sqrt(len(objectives)))),
        Number("feasible", float(np.mean([solution.is_feasible for solution in solutions]))),
    ]
    if found.references is not None:
        ratios = objectives / _values(found)
        numbers += [_over_instances("ratio_repaired", ratios), _over_instances("gap_percent", 100 * (1 - ratios))]
    return numbers + _of_parts(found.problems, [solution.state for solution in solutions], "_repaired")


def _about_references(references: Sequence[Reference]) -> list[Number]:
    numbers = [
        _over_instances("reference", np.array([each.value for each in references])),
        Number("reference_proved", float(np.mean([each.is_proved for each in references]))),
    ]
    seconds = [each.seconds for each in references if each.seconds is not None]
    return [*numbers, _over_instances("reference_seconds", np.array(seconds))] if seconds else numbers


def _of_parts(
    problems: Sequence[Problem], states: Sequence[Integer[np.ndarray, " _"]], suffix: str = ""
) -> list[Number]:
    """The shares of edges that are cut and the balance, where the problems are partitions."""
    parted = [(each, state) for each, state in zip(problems, states, strict=True) if isinstance(each, Partition)]
    if not parted:
        return []
    cuts = np.array([float(problem.edge_cut_ratio(state)) for problem, state in parted])
    balances = np.array([float(problem.balanceness(state)) for problem, state in parted])
    return [_over_instances(f"edge_cut_ratio{suffix}", cuts), _over_instances(f"balanceness{suffix}", balances)]


def _values(found: Instances) -> Float[np.ndarray, " instances"]:
    return np.array([each.value for each in found.references or ()])


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
            ratios = best / _values(found)[:, None]
            numbers += series(f"ratio_{suffix}", places, ratios.mean(axis=0))
    return numbers
