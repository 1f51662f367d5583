"""`solve`: from a problem to a solution that can be checked."""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe, number, whole
from discrax.core.files import write_whole
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel
from discrax.core.memory import check_memory
from discrax.core.programs import reads_user_code
from discrax.problems.problem import BinaryQuadratic, Labelling, Problem
from discrax.sampling.progress import wants_progress
from discrax.solving.annealing import anneal
from discrax.solving.clock import Budget, Clock
from discrax.solving.engine import Report
from discrax.solving.finishing import Finish, is_number
from discrax.solving.history import History, Line
from discrax.solving.schedules import KINDS, Schedule, checked_betas, make_schedule
from discrax.solving.tempering import temper

METHODS = ("auto", "sites", "anneal", "temper")
_SECONDS = 10.0  # if nothing is said
_NUM_RUNGS = 16
_MOST_ROUNDS = 100_000
_BYTES_PER_LEVEL = 40  # of a site of a chain of a sampler: codes, log-ratios, and what a step makes of them
_MOST_BATCHES_OF_STARTS = 20
_SECONDS_OF_A_CALL = 2e-3  # that a program takes whatever it does
_LEAST_EVALUATIONS = 200  # of all chains that a budget should have the time for, if their number is left open


@dataclass(frozen=True, eq=False)
class Solution:
    """The best that was found, after repair: `state` has the objective `objective`.

    It is feasible unless `is_feasible` says otherwise, which may be so for a `Custom` problem only.
    """

    problem: Problem = field(repr=False)
    objective: float
    is_feasible: bool
    state: Integer[np.ndarray, " n"] = field(repr=False)
    history: History = field(repr=False)
    seconds: float  # from the first thing to the last, compilation apart unless it was counted
    compile_seconds: float
    num_steps: int
    num_chains: int
    method: str
    sampler: str
    is_complete: bool  # False if it was interrupted

    @cached_property
    def bound(self) -> float | None:
        """No feasible state is better, where a problem has such a bound; it may take a moment to find."""
        return self.problem.bound()

    @property
    def gap(self) -> float | None:
        """How far from the bound, as a share of it; 0 proves that nothing is better."""
        if self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.bound), 1e-300) if self.bound != self.objective else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "problem": repr(self.problem),
            "objective": self.objective if np.isfinite(self.objective) else None,
            "is_feasible": self.is_feasible,
            "bound": self.bound,
            "solution": self.problem.describe(self.state),
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "steps": self.num_steps,
            "chains": self.num_chains,
            "method": self.method,
            "sampler": self.sampler,
            "is_complete": self.is_complete,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1) + "\n"

    def save(self, path: str | Path) -> Path:
        """Writes it as JSON; a file that exists is replaced when the new one is whole."""
        return write_whole(path, self.to_json())


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
    num_rounds: int | None = None,
    reheat: float | None = None,
    num_rungs: int | None = None,
    start: Integer[np.ndarray, "chains n"] | None = None,
    counts_compilation: bool = False,
    progress: bool | None = None,
) -> Solution:
    """Searches for the best state of a problem. Ctrl-C or SIGTERM ends the search and returns the best so far.

    - `seconds` or `num_steps`: how long; ten seconds if nothing is said. Seconds are those of the whole call, repair in
      the end and all, compilation apart unless `counts_compilation`.
    - `method`: "sites" (annealing site by site on the CPU), "anneal" (annealing with a sampler), "temper" (parallel
      tempering with a sampler), or "auto": "sites" on a CPU where the problem has a plain form, else "anneal".
    - `sampler`: any of `discrax.samplers`, for the last two.
    - `num_chains`: by default one a core for "sites", else 32, or 256 on an accelerator; fewer if the objective is a
      function that takes long.
    - `schedule`, `betas`: see `discrax.solving.schedules`, and for "sites" `discrax.solving.sites`; by default between
      the temperatures where the problem freezes. For "temper" they say where the ladder begins and ends.
    - `num_rounds`, `reheat`: for "sites" and "anneal", annealing several times over, see `discrax.solving.annealing`.
    - `num_rungs`: for "temper", of the ladder of temperatures; 16 by default.
    - `start`: states to begin with, one a chain.
    """
    if isinstance(problem, Sequence) and not isinstance(problem, str):
        raise TypeError("solve takes one problem, but got several; use solve_many.")
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
        counts_compilation=counts_compilation,
        progress=progress,
    )[0]


@reads_user_code()
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
    num_rounds: int | None = None,
    reheat: float | None = None,
    num_rungs: int | None = None,
    start: Sequence[Integer[np.ndarray, "chains _"]] | None = None,
    counts_compilation: bool = False,
    progress: bool | None = None,
) -> list[Solution]:
    """`solve` for several problems. If all are binary and annealed, they share one program, whatever their sizes, and
    all of the budget; else they are solved one after the other, each with an equal share of `seconds`.
    """
    key = random.as_threefry(key)
    problems = _checked_problems(problems)
    budget = _checked_budget(seconds, num_steps, counts_compilation)
    most_rounds = min(_MOST_ROUNDS, budget.num_steps or _MOST_ROUNDS)
    settings = _checked_settings(problems, method, sampler, schedule, betas, num_rounds, most_rounds, reheat, num_rungs)
    given = _checked_starts(problems, start, num_chains)
    if num_chains is None and given is not None:
        num_chains = len(given[0])
    if num_chains is not None:
        whole("num_chains", num_chains, least=1)
    if not problems:
        return []
    shared = settings.method == "anneal" and len(problems) > 1 and all(map(_is_binary, problems))
    for some in [problems] if shared else [[problem] for problem in problems]:
        _check_fits(some, settings, num_chains or _default_chains(settings.method))
    show = wants_progress(progress)
    with Interrupts() as interrupts:
        solutions, whole_clock = [], Clock(budget)
        for i, some in enumerate([list(range(len(problems)))] if shared else [[i] for i in range(len(problems))]):
            share = budget
            if budget.seconds is not None and not shared:
                share = budget._replace(seconds=max(0.0, whole_clock.seconds_left()) / (len(problems) - i))
            search = _Search(
                random.fold_in(key, i),
                [problems[j] for j in some],
                settings,
                None if given is None else [given[j] for j in some],
                num_chains,
                Clock(share, is_asked_to_stop=lambda: interrupts.requested),
                interrupts,
            )
            solutions += search.run(show)
    return solutions


class _Settings(NamedTuple):
    method: str
    sampler: str | Kernel
    schedule: str
    betas: tuple[float, float] | None
    num_rounds: int | None
    reheat: float
    num_rungs: int


class _Search:
    """One search, of a problem or of several that share a program, from its first states to its solutions."""

    def __init__(
        self,
        key: PRNGKeyArray,
        problems: Sequence[Problem],
        settings: _Settings,
        given: Sequence[Integer[np.ndarray, "chains _"]] | None,
        num_chains: int | None,
        clock: Clock,
        interrupts: Interrupts,
    ):
        self._for_starts, self._for_search = random.split(key, 2)
        self._problems, self._settings, self._given, self._clock = problems, settings, given, clock
        self._num_chains, self._interrupts = num_chains, interrupts

    def run(self, show: bool) -> list[Solution]:
        """Runs the search to its end, or to an interruption, and makes solutions of its last reports."""
        clock, problems = self._clock, self._problems
        generator = np.random.default_rng(random.seed_of(self._for_starts))
        num_chains = self._num_chains or self._affordable_chains(generator)
        starts = [
            _first_states(problem, None if self._given is None else self._given[i], generator, num_chains)
            for i, problem in enumerate(problems)
        ]
        histories = [History(problem, len(problems)) for problem in problems]
        finish = Finish(problems, starts, clock)
        with Line(problems[0], show) as line:
            try:
                if clock.budget.seconds != 0:
                    for reports in self._reports(starts):
                        begin = clock.seconds()
                        finish.take(reports)
                        for history, report in zip(histories, reports, strict=True):
                            history.add(report, clock.seconds())
                        line.show(histories[0])
                        finish.prepare(clock.seconds() - begin)
            except KeyboardInterrupt:  # the second signal, which waits for nothing
                self._interrupts.requested = True
            except (MemoryError, jax.errors.JaxRuntimeError) as error:
                if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                also = "num_rungs" if self._settings.method == "temper" else "method='sites'"
                said = f"A search of {num_chains:,} chains does not fit into memory; use fewer num_chains, or {also}."
                if finish.reports[0].num_steps == 0:
                    raise ValueError(said) from error
                warnings.warn(f"{said} What was found until then is returned.", stacklevel=2)
                self._interrupts.requested = True
        found = finish.found(self._interrupts)
        sampler = self._settings.sampler
        return [
            Solution(
                problem=problem,
                objective=one.objective,
                is_feasible=one.is_feasible,
                state=one.state,
                history=history,
                seconds=clock.seconds(),
                compile_seconds=clock.compile_seconds(),
                num_steps=report.num_steps,
                num_chains=num_chains,
                method=self._settings.method,
                sampler=sampler if isinstance(sampler, str) else type(sampler).__name__,
                is_complete=not self._interrupts.requested,
            )
            for problem, history, report, one in zip(problems, histories, finish.reports, found, strict=True)
        ]

    def _affordable_chains(self, generator: np.random.Generator) -> int:
        """The usual number, or fewer if the objective is a function that takes so long that there were few steps."""
        usual, seconds = _default_chains(self._settings.method), self._clock.budget.seconds
        problem = self._problems[0]
        if problem.model is not None or not seconds:
            return usual
        state = problem.start(generator, 1)
        problem.objective(state)  # compiles
        begin = self._clock.seconds()
        problem.objective(state)
        evaluation = max(self._clock.seconds() - begin - _SECONDS_OF_A_CALL, 1e-9)
        return int(np.clip(seconds / (_LEAST_EVALUATIONS * evaluation), 1, usual))

    def _reports(self, starts: Sequence[Integer[np.ndarray, "chains _"]]) -> Iterator[list[Report]]:
        settings, clock = self._settings, self._clock
        if settings.method == "sites":
            return self._by_sites(len(starts[0]))
        schedules: list[Schedule] = [
            make_schedule(problem, settings.schedule, settings.betas, clock) for problem in self._problems
        ]
        targets: list[Any] = [problem.target for problem in self._problems[:1]]
        if settings.method == "temper":
            x = np.stack([starts[0]] * settings.num_rungs)  # hot rungs soon leave them
            tempering = temper(self._for_search, targets[0], settings.sampler, x, schedules[0], clock)
            return ([report] for report in tempering)
        x = starts[0][None]
        if len(self._problems) > 1:
            from discrax.solving.padding import padded

            targets, x = padded(self._problems, starts)
        rounds = {"num_rounds": settings.num_rounds or 1, "reheat": settings.reheat}
        return anneal(self._for_search, targets, settings.sampler, x, schedules, clock, **rounds)

    def _by_sites(self, num_chains: int) -> Iterator[list[Report]]:
        with self._clock.compiling():  # its module loads a compiler
            from discrax.solving.sites import search_by_sites
        reports = search_by_sites(
            self._problems[0].model,  # pyright: ignore[reportArgumentType]
            num_chains=num_chains,
            seed=random.seed_of(self._for_search),
            start=None if self._given is None else self._given[0],
            budget=self._clock.budget,
            betas=self._settings.betas,
            schedule=self._settings.schedule,
            num_rounds=self._settings.num_rounds,
            reheat=self._settings.reheat,
            clock=self._clock,
        )
        return ([report] for report in reports)


def _is_binary(problem: Problem) -> bool:
    return isinstance(problem.model, BinaryQuadratic)


def _default_chains(method: str) -> int:
    if method == "sites":
        return os.cpu_count() or 1
    return 32 if jax.default_backend() == "cpu" else 256


def _first_states(
    problem: Problem, given: Integer[np.ndarray, "chains n"] | None, generator: np.random.Generator, num_chains: int
) -> Integer[np.ndarray, "chains n"]:
    """The given states, or random ones, where the objective is a finite number."""
    if problem.model is not None:
        return problem.start(generator, num_chains) if given is None else given
    if given is not None:
        if not is_number(problem, given).all():
            raise ValueError("The objective must be a finite number at the states of `start`, but at some it is not.")
        return given
    found: list[np.ndarray] = []
    for _ in range(_MOST_BATCHES_OF_STARTS):
        states = problem.start(generator, num_chains)
        found.append(states[is_number(problem, states)])
        if sum(map(len, found)) >= num_chains:
            break
    usable = np.concatenate(found)
    if not len(usable):
        raise ValueError(
            f"The objective must be a finite number somewhere, but at {_MOST_BATCHES_OF_STARTS * num_chains:,} random "
            "states it is NaN or infinite; pass `start`, or state what is not allowed by `violations`."
        )
    return np.resize(usable, (num_chains, usable.shape[1]))


def _checked_problems(problems: Any) -> list[Problem]:
    if isinstance(problems, Problem):
        raise TypeError("solve_many takes several problems, but got one; use solve.")
    if not isinstance(problems, Sequence):
        raise TypeError(f"solve_many takes a list of problems, but got {describe(problems)}.")
    for problem in problems:
        if not isinstance(problem, Problem):
            raise TypeError(
                "What to solve must be a problem, such as discrax.problems.MIS(graph) or discrax.problems.QUBO(Q), "
                f"but got {describe(problem)}."
            )
    return list(problems)


def _checked_budget(seconds: Any, num_steps: Any, counts_compilation: bool) -> Budget:
    if seconds is not None and num_steps is not None:
        raise ValueError("Say how long to search by seconds or by num_steps, not by both.")
    if num_steps is not None:
        return Budget(num_steps=whole("num_steps", num_steps, least=1))
    return Budget(_SECONDS if seconds is None else number("seconds", seconds, least=0), None, bool(counts_compilation))


def _checked_settings(
    problems: Sequence[Problem],
    method: Any,
    sampler: Any,
    schedule: Any,
    betas: Any,
    num_rounds: Any,
    most_rounds: int,
    reheat: Any,
    num_rungs: Any,
) -> _Settings:
    """The settings of a method; those that it has no use for are refused."""
    method, sampler = _chosen(method, sampler, problems)
    kinds = ("auto", "exponential", *KINDS) + (("tempering",) if method == "sites" else ())
    if not isinstance(schedule, str) or schedule not in kinds:
        if isinstance(schedule, str) and schedule == "tempering":
            raise ValueError(
                "schedule='tempering' is for method='sites'; method='temper' tempers with a sampler. "
                f"The method here is {method!r}."
            )
        raise ValueError(f"Unknown schedule {schedule!r}; known: {', '.join(kinds)}.")
    if betas is not None:
        betas = checked_betas(betas, may_be_equal=method == "sites")
    if num_rungs is not None and method != "temper":
        raise ValueError(f"num_rungs is for method='temper', but the method here is {method!r}.")
    if num_rounds is not None or reheat is not None:
        if method == "temper" or schedule == "tempering":
            raise ValueError(
                "num_rounds and reheat are for annealing, methods 'sites' and 'anneal', not for tempering."
            )
        num_rounds = None if num_rounds is None else whole("num_rounds", num_rounds, least=1, most=most_rounds)
        if reheat is not None and (num_rounds or 1) < 2:
            raise ValueError("reheat is where the rounds after the first begin, so it needs num_rounds of at least 2.")
    return _Settings(
        method,
        sampler,
        schedule,
        betas,
        num_rounds,
        0.0 if reheat is None else number("reheat", reheat, least=0, below=1),
        _NUM_RUNGS if num_rungs is None else whole("num_rungs", num_rungs, least=2),
    )


def _chosen(method: Any, sampler: Any, problems: Sequence[Problem]) -> tuple[str, str | Kernel]:
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; known: {', '.join(METHODS)}.")
    if not isinstance(sampler, str | Kernel):
        raise TypeError(f"sampler must be a name or a kernel, such as 'pas', but got {describe(sampler)}.")
    is_open = isinstance(sampler, str) and sampler == "auto"
    has_model = all(problem.model is not None for problem in problems)
    if method == "auto":
        method = "sites" if is_open and has_model and jax.default_backend() == "cpu" and _has_numba() else "anneal"
    if method == "sites":
        if not has_model:
            raise ValueError("Only a problem with a quadratic or labelling model can be searched site by site.")
        if not _has_numba():
            raise ImportError("Searching site by site needs numba: pip install 'discrax[solve]'.")
        if not is_open:
            raise ValueError(f"A search site by site has no sampler, but got {sampler!r}; use method='anneal'.")
        return method, "site by site"
    return method, "pas" if is_open else sampler


def _has_numba() -> bool:
    return find_spec("numba") is not None


def _checked_starts(
    problems: Sequence[Problem], start: Any, num_chains: Any
) -> list[Integer[np.ndarray, "chains _"]] | None:
    if start is None:
        return None
    if not isinstance(start, Sequence | np.ndarray) or len(start) != len(problems):
        count = f"{len(start)} for" if hasattr(start, "__len__") else f"{describe(start)} for"
        raise ValueError(f"start has an array of states for each problem, but got {count} {len(problems)} problems.")
    checked = []
    for problem, given in zip(problems, start, strict=True):
        states, space = _array(given), problem.space
        wanted = (states.shape[0] if states.ndim and num_chains is None else num_chains, space.num_sites)
        if states.ndim != 2 or states.shape != wanted or not len(states):
            wanted = f"({'chains' if num_chains is None else num_chains}, {space.num_sites})"
            raise ValueError(f"start has one state a chain, shape {wanted}, but its shape is {states.shape}.")
        try:
            space.check(states.reshape(-1, *space.shape))
        except ValueError as error:
            raise ValueError(f"start holds states of the problem, but: {error}") from None
        checked.append(states.astype(space.dtype))
    if len({len(states) for states in checked}) > 1:
        raise ValueError("start has as many states for each problem, one a chain, but their numbers differ.")
    return checked


def _array(states: Any) -> np.ndarray:
    try:
        return np.asarray(states)
    except ValueError:
        raise ValueError("start has one state a chain, but got rows of different lengths.") from None


def _check_fits(problems: Sequence[Problem], settings: _Settings, num_chains: int) -> None:
    """Problems that share a program, or one."""
    places = settings.num_rungs if settings.method == "temper" else len(problems)
    space = problems[0].space
    size = max(problem.space.num_sites for problem in problems)
    num_levels = 1 if space.has_two_levels else space.num_levels
    model = problems[0].model
    if settings.method == "sites":
        needed = num_chains * size * (10 + (8 * num_levels if isinstance(model, Labelling) else 0))
        way_out = "use fewer num_chains"
    else:
        needed = places * num_chains * size * num_levels * _BYTES_PER_LEVEL
        if model is not None:
            needed += len(problems) * max(_coupling_bytes(problem.model, size) for problem in problems)
        way_out = f"use fewer num_chains{' or num_rungs' if settings.method == 'temper' else ''}" + (
            "" if model is None else ", or method='sites'"
        )
    of_rungs = f" on {places:,} rungs" if settings.method == "temper" else ""
    of_all = f" of {len(problems):,} problems" if len(problems) > 1 else ""
    check_memory(f"A search of {num_chains:,} chains{of_rungs}{of_all} on {size:,} sites", needed, way_out)


def _coupling_bytes(model: Any, size: int) -> float:
    """Of a matrix, or of neighbour lists that are as long as the longest."""
    longest = int(np.bincount(model.edges.ravel(), minlength=1).max()) if len(model.edges) else 0
    return size * min(4.0 * size, 8.0 * longest) if longest else 0.0
