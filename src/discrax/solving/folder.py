"""Searches that survive: a folder has the best so far of every problem, in a file that is whole at any time.

best-N.npz        of the N-th problem: the best state, repaired, those that are as good, and what `Solution` says of
                  them; the best state of every chain; what was spent; the history
chains-N.npz      of the problems from the N-th on that share a program: where the chains of a sampler are, what was
                  spent, and the histories; only of a search of so many steps, and until it is done

The same call goes on from the chains as if it had not been killed. Other searches begin where chains were best, and
have what is left of the budget.
"""

import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core.devices import Devices
from discrax.core.files import FolderLock, UnusableFile, check_unused
from discrax.problems.problem import Problem
from discrax.sampling.fingerprint import digest, digest_of_target, surroundings
from discrax.sampling.run_files import read_npz, write_npz
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.engine import Report
from discrax.solving.finishing import Candidate, evaluate
from discrax.solving.history import History
from discrax.solving.protocol import Checkpoint, Search
from discrax.solving.settings import check_problems
from discrax.solving.solution import Solution

_FORMAT = 2
_FORMAT_OF_CHAINS = 1
_FIELDS = (
    "objective", "is_feasible", "seconds", "compile_seconds", "num_steps", "num_chains", "search", "sampler",
    "is_complete", "is_proved",
)  # fmt: skip


Saved = tuple[dict[str, Any], dict[str, np.ndarray], Path]


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
        self._problems, self.budget = problems, budget
        self._has_failed = False
        self.before: list[Best | None] = []

    def open(self) -> None:
        """Reads what an earlier part of the search has left."""
        if not any(self.path.glob("best-*.npz")) and not any(self.path.glob("chains-*.npz")):
            check_unused(self.path, "a search")
        self.before = [self._read(i, problem) for i, problem in enumerate(self._problems)]

    def _read(self, number: int, problem: Problem) -> Best | None:
        return read_best(self.path, problem, number) if _file_of(self.path, number).exists() else None

    def write(self, number: int, solution: Solution, report: Report) -> bool:
        """Replaces the file of a problem. A disk that is full is a warning, and False: the search has what it found."""
        order = np.argsort(-report.best_values, kind="stable")
        about = {
            "format": _FORMAT,
            "problem": repr(solution.problem),
            "digest": digest_of_problem(solution.problem),
            "budget": self.budget[:2],
            "solution": {name: getattr(solution, name) for name in _FIELDS},
        }
        arrays = {
            "state": solution.state,
            "ties": solution.states,
            "states": report.best_states[order, : solution.problem.space.num_sites],
            "history": solution.history.rows,
        }
        return self._write(_file_of(self.path, number), about, arrays)

    def _write(self, path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
        try:
            write_npz(path, about, arrays)
        except UnusableFile as error:
            if not self._has_failed:
                warnings.warn(f"{error} The search goes on, and what it finds is returned.", stacklevel=2)
            self._has_failed = True
            return False
        return True

    def read_chains(self, number: int, word: str) -> Saved | None:
        """Those of the search that has this word, if it has left any."""
        path = _chains_of(self.path, number)
        if not path.exists():
            return None
        about, arrays = read_npz(path)
        return (about, arrays, path) if (about.get("format"), about.get("word")) == (_FORMAT_OF_CHAINS, word) else None

    def write_chains(self, number: int, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
        """Replaces them; False if that failed, which is a warning."""
        return self._write(_chains_of(self.path, number), {"format": _FORMAT_OF_CHAINS} | about, arrays)

    def forget_chains(self, number: int) -> None:
        """Of a search that is done, or of another one."""
        with suppress(OSError):
            _chains_of(self.path, number).unlink(missing_ok=True)


class Files:
    """The files of the problems that share a search, and what its earlier parts have left in them.

    `word` stands for the whole call where its search can go on as if it had not been killed; it does if its chains are
    there. Then it is still the first part, of which some steps are made.
    """

    def __init__(self, folder: SearchFolder | None, numbers: Sequence[int], word: str | None = None):
        self.folder, self.numbers, self._word = folder, numbers, word
        self.before = [None if folder is None else folder.before[number] for number in numbers]
        there, self.done, saved = [best.solution for best in self.before if best is not None], [], None
        if folder is not None and all(best is not None and best.is_enough(folder.budget) for best in self.before):
            self.done = there
        elif folder is not None and word is not None:
            saved = folder.read_chains(numbers[0], word)
        self.checkpoint = Checkpoint(saved)
        self.seconds = max((solution.seconds for solution in there), default=0.0)
        self.compile_seconds = max((solution.compile_seconds for solution in there), default=0.0)
        self.num_steps = max((solution.num_steps for solution in there), default=0)
        # Of the earlier parts.
        self.histories = [None if best is None else best.solution.history.rows for best in self.before]
        if saved is not None:
            about, arrays, _ = saved
            self.seconds, self.compile_seconds, self.num_steps = about["seconds"], about["compile_seconds"], 0
            self.histories = [arrays[f"history-{number}"] for number in numbers]
            self.before = [None] * len(numbers)
        elif there:  # a further part, which begins where chains were best
            self._word = None

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
        """Replaces the files of the best, if there is a folder; a search that is done needs no chains any more."""
        if self.folder is not None:
            parts = zip(self.numbers, solutions, reports, strict=True)
            are_written = [self.folder.write(*part) for part in parts]
            if all(are_written) and all(solution.is_complete for solution in solutions):
                self.folder.forget_chains(self.numbers[0])

    def keep_chains(self, histories: Sequence[History], clock: Clock) -> bool:
        """Keeps what a search needs to go on as if it had not been killed, where it can; False if that failed."""
        if self.folder is None:
            return True
        state = None if self._word is None else self.checkpoint.state()
        if state is None:
            self.folder.forget_chains(self.numbers[0])
            return True
        about, arrays = state
        spent = {"seconds": self.seconds + clock.seconds()}
        spent["compile_seconds"] = self.compile_seconds + clock.compile_seconds()
        rows = {f"history-{number}": each.rows for number, each in zip(self.numbers, histories, strict=True)}
        return self.folder.write_chains(self.numbers[0], about | spent | {"word": self._word}, arrays | rows)


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


def word_of_search(
    key: PRNGKeyArray,
    problems: Sequence[Problem],
    search: Search,
    num_chains: int,
    init: Any,
    budget: SearchBudget,
    devices: Devices | None,
) -> str | None:
    """A word for all that decides what a search of so many steps finds; None of one that could not go on as it was."""
    if budget.num_steps is None or not all(map(search.can_go_on, problems)):
        return None
    asked = (key, [digest_of_problem(problem) for problem in problems], search, num_chains, init, budget.num_steps)
    return digest((asked, str(jnp.result_type(float)), surroundings(devices)))


def _file_of(folder: Path, number: int) -> Path:
    return folder / f"best-{number}.npz"


def _chains_of(folder: Path, number: int) -> Path:
    return folder / f"chains-{number}.npz"
