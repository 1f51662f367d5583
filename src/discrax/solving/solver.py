"""`solve`: from a problem to a solution that can be checked."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core.kernel import Kernel
from discrax.problems.problem import Problem
from discrax.sampling.progress import wants_progress
from discrax.solving.annealing import anneal
from discrax.solving.engine import Budget, Report
from discrax.solving.history import History, Line
from discrax.solving.schedules import make_schedule
from discrax.solving.tempering import temper

METHODS = ("auto", "sites", "anneal", "temper")
_SECONDS = 10.0  # if nothing is said
_REPAIRED = 32  # chains whose best state is repaired in the end, the best first


@dataclass(frozen=True, eq=False)
class Solution:
    """The best that was found, repaired: `state` is feasible and has the objective `objective`."""

    problem: Problem = field(repr=False)
    objective: float
    is_feasible: bool
    state: Integer[np.ndarray, " n"] = field(repr=False)
    bound: float | None  # no feasible state is better
    history: History = field(repr=False)
    seconds: float
    num_steps: int
    num_chains: int
    method: str
    sampler: str
    is_complete: bool  # False if it was interrupted

    @property
    def gap(self) -> float | None:
        """How far from the bound, as a share of it; 0 proves that nothing is better."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.bound), 1e-300) if self.bound != self.objective else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "problem": repr(self.problem),
            "objective": self.objective,
            "is_feasible": self.is_feasible,
            "bound": self.bound,
            "solution": self.problem.describe(self.state),
            "seconds": round(self.seconds, 3),
            "steps": self.num_steps,
            "chains": self.num_chains,
            "method": self.method,
            "sampler": self.sampler,
            "is_complete": self.is_complete,
        }

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON; a file that exists is replaced when the new one is whole."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        partial.write_text(json.dumps(self.to_dict(), indent=1) + "\n")
        partial.replace(path)
        return path


def solve(
    key: PRNGKeyArray,
    problem: Problem,
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    method: str = "auto",
    sampler: str | Kernel = "auto",
    num_chains: int | None = None,
    schedule: str = "auto",
    betas: tuple[float, float] | None = None,
    num_rounds: int = 1,
    reheat: float = 0.0,
    num_rungs: int = 16,
    start: Integer[np.ndarray, "chains n"] | None = None,
    progress: bool | None = None,
) -> Solution:
    """Searches for the best state of a problem. Ctrl-C ends the search and returns the best so far.

    - `seconds` or `num_steps`: how long, compilation apart; ten seconds if nothing is said.
    - `method`: "sites" (annealing site by site on the CPU), "anneal" (annealing with a sampler), "temper" (parallel
      tempering with a sampler), or "auto": "sites" on a CPU where the problem has a plain form, else "anneal".
    - `sampler`: any of `discrax.samplers`, for the last two.
    - `schedule`, `betas`: see `discrax.solving.schedules`, and for "sites" `discrax.solving.sites`; by default between
      the temperatures where the problem freezes.
    - `num_rounds`, `reheat`: annealing several times over, see `discrax.solving.annealing`.
    - `start`: states to begin with, one a chain.
    """
    return solve_many(
        key,
        [problem],
        seconds=seconds,
        num_steps=num_steps,
        method=method,
        sampler=sampler,
        num_chains=num_chains,
        schedule=schedule,
        betas=betas,
        num_rounds=num_rounds,
        reheat=reheat,
        num_rungs=num_rungs,
        start=None if start is None else [start],
        progress=progress,
    )[0]


def solve_many(
    key: PRNGKeyArray,
    problems: Sequence[Problem],
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    method: str = "auto",
    sampler: str | Kernel = "auto",
    num_chains: int | None = None,
    schedule: str = "auto",
    betas: tuple[float, float] | None = None,
    num_rounds: int = 1,
    reheat: float = 0.0,
    num_rungs: int = 16,
    start: Sequence[Integer[np.ndarray, "chains _"]] | None = None,
    progress: bool | None = None,
) -> list[Solution]:
    """`solve` for several problems. Binary ones that are annealed share one program, whatever their sizes, and all of
    the budget; the others are solved one after the other, each with an equal share of `seconds`.
    """
    budget = _checked_budget(seconds, num_steps)
    if not problems:
        return []
    method, sampler = _chosen(method, sampler, problems)
    num_chains = _checked_chains(num_chains, method, start)
    if num_rounds < 1 or not 0 <= reheat < 1:
        raise ValueError(f"num_rounds is at least 1 and reheat in [0, 1), but got {num_rounds} and {reheat}.")
    if method == "temper" and num_rungs < 2:
        raise ValueError(f"A ladder of temperatures has at least 2 rungs, but num_rungs is {num_rungs}.")
    schedules = [make_schedule(problem, schedule, betas) for problem in problems] if method != "sites" else []
    seed = int(jax.random.bits(key, (), "uint32"))
    generator = np.random.default_rng(seed)
    starts = [
        _checked_start(problem, None if start is None else start[i], generator, num_chains)
        for i, problem in enumerate(problems)
    ]
    show = wants_progress(progress)
    if method == "anneal" and len(problems) > 1:
        from discrax.solving.padding import padded

        targets, x = padded(problems, starts)
        searching = anneal(key, targets, sampler, x, schedules, budget, num_rounds=num_rounds, reheat=reheat)
        return _collected(problems, starts, searching, budget, method, sampler, show)
    solutions, is_interrupted = [], False
    for i, problem in enumerate(problems):
        share = budget if budget.seconds is None else Budget(seconds=budget.seconds / len(problems))
        if is_interrupted:
            share = Budget(seconds=0.0)  # what is left gets its repaired start
        for_this = jax.random.fold_in(key, i)
        if method == "sites":
            from discrax.solving.sites import search_by_sites

            reports = search_by_sites(
                problem.model,  # pyright: ignore[reportArgumentType]
                num_chains=num_chains,
                seed=seed + i,
                start=None if start is None else starts[i],
                budget=share,
                betas=betas,
                schedule=schedule,
            )
            searching = ([report] for report in reports)
        elif method == "anneal":
            x = starts[i][None]
            settings = {"num_rounds": num_rounds, "reheat": reheat}
            searching = anneal(for_this, [problem.target], sampler, x, [schedules[i]], share, **settings)
        else:
            x = np.stack([problem.start(generator, num_chains) for _ in range(num_rungs)])
            searching = ([r] for r in temper(for_this, problem.target, sampler, x, schedules[i], share))
        (found,) = _collected([problem], [starts[i]], searching, share, method, sampler, show)
        is_interrupted = is_interrupted or not found.is_complete
        solutions.append(replace(found, is_complete=not is_interrupted))
    return solutions


def _collected(
    problems: Sequence[Problem],
    starts: Sequence[Integer[np.ndarray, "chains _"]],
    searching: Iterator[list[Report]],
    budget: Budget,
    method: str,
    sampler: str | Kernel,
    show: bool,
) -> list[Solution]:
    """Runs a search to its end, or to an interruption, and makes solutions of its last reports."""
    begin = time.perf_counter()
    histories = [History(problem, len(problems)) for problem in problems]
    last: list[Report] = []
    is_complete = True
    with Line(problems[0], show) as line:
        try:
            if budget.seconds != 0:
                for last in searching:
                    for history, report in zip(histories, last, strict=True):
                        history.add(report, time.perf_counter() - begin)
                    line.show(histories[0])
        except KeyboardInterrupt:
            is_complete = False
    seconds = time.perf_counter() - begin
    solutions = []
    for i, problem in enumerate(problems):
        report = last[i] if last else _before(starts[i])
        state, objective = best_repaired(problem, report)
        solutions.append(
            Solution(
                problem=problem,
                objective=objective,
                is_feasible=bool(problem.is_feasible(state)),
                state=state,
                bound=problem.bound(),
                history=histories[i],
                seconds=seconds,
                num_steps=report.num_steps,
                num_chains=len(report.best_states),
                method=method,
                sampler=sampler if isinstance(sampler, str) else type(sampler).__name__,
                is_complete=is_complete,
            )
        )
    return solutions


def best_repaired(problem: Problem, report: Report) -> tuple[Integer[np.ndarray, " n"], float]:
    """The best of the chains' best states after repair, and its objective."""
    n = problem.space.num_sites
    best_state, best = None, 0.0
    for chain in np.argsort(-report.best_values, kind="stable")[:_REPAIRED]:
        state = np.asarray(problem.repair(report.best_states[chain][:n]))  # what padding added is cut off
        objective = float(problem.objective(state))
        if best_state is None or problem.is_better(objective, best):
            best_state, best = state, objective
    assert best_state is not None
    return best_state, best


def _before(states: Integer[np.ndarray, "chains n"]) -> Report:
    """The report of a search that has not begun."""
    unknown = np.zeros(len(states))
    return Report(0, 0.0, 0.0, unknown, unknown, states)


def _checked_budget(seconds: float | None, num_steps: int | None) -> Budget:
    if seconds is not None and num_steps is not None:
        raise ValueError("Say how long to search by seconds or by num_steps, not by both.")
    if num_steps is not None:
        if int(num_steps) != num_steps or num_steps < 1:
            raise ValueError(f"num_steps is a whole number, at least 1, but got {num_steps}.")
        return Budget(num_steps=int(num_steps))
    seconds = _SECONDS if seconds is None else float(seconds)
    if not 0 <= seconds < np.inf:
        raise ValueError(f"seconds is a number, at least 0, but got {seconds}.")
    return Budget(seconds=seconds)


def _chosen(method: str, sampler: str | Kernel, problems: Sequence[Problem]) -> tuple[str, str | Kernel]:
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; known: {', '.join(METHODS)}.")
    has_model = all(problem.model is not None for problem in problems)
    if method == "auto":
        by_sites = has_model and jax.default_backend() == "cpu" and isinstance(sampler, str) and sampler == "auto"
        method = "sites" if by_sites and _has_numba() else "anneal"
    if method == "sites":
        if not has_model:
            raise ValueError("Only a problem with a quadratic or labelling model can be searched site by site.")
        if not _has_numba():
            raise ImportError("Searching site by site needs numba: pip install 'discrax[solve]'.")
        if sampler != "auto":
            raise ValueError(f"A search site by site has no sampler, but got {sampler!r}; use method='anneal'.")
        return method, "site by site"
    return method, "pas" if isinstance(sampler, str) and sampler == "auto" else sampler


def _has_numba() -> bool:
    from importlib.util import find_spec

    return find_spec("numba") is not None


def _checked_chains(num_chains: int | None, method: str, start: Any) -> int:
    if num_chains is None:
        if start is not None:
            return len(start[0])
        if method == "sites":
            import os

            return os.cpu_count() or 1
        return 32 if jax.default_backend() == "cpu" else 256
    if int(num_chains) != num_chains or num_chains < 1:
        raise ValueError(f"num_chains is a whole number, at least 1, but got {num_chains}.")
    return int(num_chains)


def _checked_start(
    problem: Problem, start: Any, generator: np.random.Generator, num_chains: int
) -> Integer[np.ndarray, "chains n"]:
    if start is None:
        return problem.start(generator, num_chains)
    start = np.asarray(start)
    space = problem.space
    if start.shape != (num_chains, space.num_sites):
        raise ValueError(
            f"start has one state a chain, {(num_chains, space.num_sites)}, but its shape is {start.shape}."
        )
    if not np.issubdtype(start.dtype, np.integer) or start.min() < 0 or start.max() >= space.num_levels:
        raise ValueError(f"start holds codes 0..{space.num_levels - 1}, but has others.")
    return start.astype(np.int8)
