"""Searches that survive: a folder has the best so far of every problem, in a file that is whole at any time.

best-N.npz        of the N-th problem: the best state, repaired, those that are as good, and what `Solution` says of
                  them; the best state of every chain; what was spent; the history

A search that is taken up begins where its chains were best, and has what is left of the budget.
"""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.files import FolderLock, UnusableFile, check_unused
from discrax.problems.problem import Problem
from discrax.sampling.fingerprint import digest, digest_of_target
from discrax.sampling.run_files import read_npz, write_npz
from discrax.solving.clock import SearchBudget
from discrax.solving.engine import Report
from discrax.solving.finishing import Candidate, evaluate
from discrax.solving.history import History
from discrax.solving.settings import check_problems
from discrax.solving.solution import Solution

_FORMAT = 2
_FIELDS = (
    "objective", "is_feasible", "seconds", "compile_seconds", "num_steps", "num_chains", "search", "sampler",
    "is_complete", "is_proved",
)  # fmt: skip


class Best(NamedTuple):
    """What a file has."""

    solution: Solution
    states: Integer[np.ndarray, "chains n"]  # the best of each chain, before repair; the best of all first
    budget: SearchBudget  # of the search that wrote it, all its parts together

    def is_enough(self, budget: SearchBudget) -> bool:
        """Whether nothing of a budget is left."""
        if not self.solution.is_complete:
            return False
        pairs = ((self.budget.seconds, budget.seconds), (self.budget.num_steps, budget.num_steps))
        return any(was is not None and now is not None and was >= now for was, now in pairs)


class SearchFolder(FolderLock):
    """The folder of a search, with one writer at a time: use it in a `with` block."""

    def __init__(self, path: str | Path, problems: Sequence[Problem], budget: SearchBudget):
        super().__init__(path)
        self._problems, self._budget = problems, budget
        self._has_failed = False
        self.before: list[Best | None] = []

    def open(self) -> None:
        """Reads what an earlier part of the search has left."""
        if not any(self.path.glob("best-*.npz")):
            check_unused(self.path, "a search")
        self.before = [self._read(i, problem) for i, problem in enumerate(self._problems)]

    def _read(self, number: int, problem: Problem) -> Best | None:
        return read_best(self.path, problem, number) if _file_of(self.path, number).exists() else None

    def write(self, number: int, solution: Solution, report: Report) -> None:
        """Replaces the file of a problem. A disk that is full is a warning: the search has what it found."""
        order = np.argsort(-report.best_values, kind="stable")
        about = {
            "format": _FORMAT,
            "problem": repr(solution.problem),
            "digest": digest_of_problem(solution.problem),
            "budget": self._budget[:2],
            "solution": {name: getattr(solution, name) for name in _FIELDS},
        }
        arrays = {
            "state": solution.state,
            "ties": solution.states,
            "states": report.best_states[order, : solution.problem.space.num_sites],
            "history": solution.history.rows,
        }
        try:
            write_npz(_file_of(self.path, number), about, arrays)
        except UnusableFile as error:
            if not self._has_failed:
                warnings.warn(f"{error} The search goes on, and what it finds is returned.", stacklevel=2)
            self._has_failed = True


class Files:
    """The files of the problems that share a search, and what its earlier parts have left in them."""

    def __init__(self, folder: SearchFolder | None, numbers: Sequence[int]):
        self.folder, self.numbers = folder, numbers
        self.before = [None if folder is None else folder.before[number] for number in numbers]
        there = [best.solution for best in self.before if best is not None]
        self.seconds = max((solution.seconds for solution in there), default=0.0)
        self.compile_seconds = max((solution.compile_seconds for solution in there), default=0.0)
        self.num_steps = max((solution.num_steps for solution in there), default=0)

    @property
    def histories(self) -> list[Float[np.ndarray, "reports fields"] | None]:
        """Of the earlier parts."""
        return [None if best is None else best.solution.history.rows for best in self.before]

    def init(self, num_chains: int | None) -> list[Integer[np.ndarray, "chains _"]] | None:
        """Where chains were best, from the best on; None where some problem has not begun."""
        there = [best.states for best in self.before if best is not None]
        if len(there) < len(self.before):
            return None
        return [np.resize(states, (num_chains or len(there[0]), states.shape[1])) for states in there]

    def better_of(self, problems: Sequence[Problem], chosen: Sequence[Candidate]) -> list[Candidate]:
        """What was chosen of each problem, or what was in its file before where that is better, or both if they tie."""
        found = list(chosen)
        for i, (problem, best) in enumerate(zip(problems, self.before, strict=True)):
            if best is not None:
                now, earlier = found[i], evaluate(problem, best.solution.state)._replace(states=best.solution.states)
                found[i] = earlier.join([now]) if now.is_worse_than(earlier, problem) else now.join([earlier])
        return found

    def write(self, solutions: Sequence[Solution], reports: Sequence[Report]) -> None:
        """Replaces the files, if there is a folder."""
        if self.folder is not None:
            for number, solution, report in zip(self.numbers, solutions, reports, strict=True):
                self.folder.write(number, solution, report)


def read_best(folder: str | Path, problem: Problem, number: int = 0) -> Best:
    """What the file of the `number`-th problem has; a ValueError, in a sentence, if it is of another problem."""
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"A folder is named by its path, but got {type(folder).__name__}.")
    check_problems([problem])
    path = _file_of(Path(folder).expanduser(), number)
    if not os.path.isfile(path):  # nor for names that no file can have
        raise FileNotFoundError(f"A folder must hold a search, but there is no {path}.")
    about, arrays = read_npz(path)
    if about.get("format") != _FORMAT:
        raise ValueError(f"{path} must have format {_FORMAT}, but has {about.get('format')}.")
    if about["digest"] != digest_of_problem(problem):
        raise ValueError(
            f"The search in {path.parent} must be of the problem that is asked for, {problem!r}, but it is of another "
            f"one, {about['problem']}; give this one a folder of its own."
        )
    history = History(problem, rows=arrays["history"])
    state = arrays["state"]
    solution = Solution(problem=problem, state=state, states=arrays["ties"], history=history, **about["solution"])
    return Best(solution, arrays["states"], SearchBudget(*about["budget"]))


def digest_of_problem(problem: Problem) -> str:
    """A word that tells problems apart: by their plain form, or by the code of what is climbed."""
    model: Any = problem.model
    return digest(
        (type(problem).__qualname__, problem.sense, digest_of_target(problem.target) if model is None else model)
    )


def _file_of(folder: Path, number: int) -> Path:
    return folder / f"best-{number}.npz"
