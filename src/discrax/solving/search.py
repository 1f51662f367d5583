"""One search, of a problem or of several that share a program, from its first states to its solutions."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import Devices
from discrax.core.interrupts import Interrupts
from discrax.problems.problem import Problem, is_rounding
from discrax.solving.clock import Clock, Reports
from discrax.solving.engine import Report
from discrax.solving.finishing import Candidate, Finish, is_number
from discrax.solving.folder import Files
from discrax.solving.history import History, Line
from discrax.solving.searches import Search, Task
from discrax.solving.solution import Solution

_MOST_BATCHES_OF_STATES = 20
_SECONDS_BETWEEN_FILES = 2.0
_SECONDS_OF_A_CALL = 2e-3  # that a program takes whatever it does
_LEAST_EVALUATIONS = 200  # of all chains that a budget should have the time for, if their number is left open


class SearchRun:
    """Problems, how they are searched, and where from; `run` does it. `callback` hears of every report, as problem and
    report, and ends the search by returning something true.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        problems: Sequence[Problem],
        search: Search,
        num_chains: int,
        devices: Devices | None,
        init: Sequence[Integer[np.ndarray, "chains _"]] | None,
        clock: Clock,
        interrupts: Interrupts,
        files: Files,
        callback: Callable[[int, Report], Any] | None = None,
    ):
        self._for_init, self._for_search = random.split(key, 2)
        self._problems, self._search, self._init, self._clock = problems, search, init, clock
        self._num_chains, self._devices, self._interrupts, self._files = num_chains, devices, interrupts, files
        self._callback = callback

    def run(self, progress: bool | None) -> list[Solution]:
        """Runs the search to its end, or to an interruption, and makes solutions of its last reports."""
        clock, problems = self._clock, self._problems
        generator = np.random.default_rng(random.seed_of(self._for_init))
        num_chains = self._affordable_chains(generator)
        init = [
            _first_states(problem, None if self._init is None else self._init[i], generator, num_chains)
            for i, problem in enumerate(problems)
        ]
        files, seconds, steps = self._files, self._files.seconds, self._files.num_steps
        rows = files.histories
        histories = [History(problem, len(problems), each) for problem, each in zip(problems, rows, strict=True)]
        task = Task(self._for_search, problems, init, self._init is not None, clock, self._devices, files.checkpoint)
        finish = Finish(problems, init, clock, is_given=self._init is not None)
        writing = Reports(clock, _SECONDS_BETWEEN_FILES)

        def solutions(chosen: Sequence[Candidate], is_complete: bool) -> list[Solution]:
            return self._solutions(chosen, finish.reports, histories, num_chains, is_complete)

        def write() -> None:
            if files.keep_chains(histories, clock):  # first: with the best alone it would go on in another way
                files.write(solutions(finish.peek(), False), finish.reports)

        with Line(problems[0], progress) as line:
            try:
                if clock.budget.seconds != 0:
                    for reports in self._search.reports(task):
                        begin = clock.seconds()
                        finish.take(reports)
                        for history, report in zip(histories, reports, strict=True):
                            history.add(report._replace(num_steps=steps + report.num_steps), seconds + clock.seconds())
                        line.show(histories[0])
                        finish.prepare(clock.seconds() - begin)
                        is_enough = self._is_enough(reports)
                        if files.folder is not None and writing.is_due():
                            for _ in writing.emit(write):
                                pass
                        elif self._interrupts.requested:
                            files.keep_chains(histories, clock)
                        if is_enough or finish.is_proved():
                            break
            except KeyboardInterrupt:  # the second signal, which waits for nothing
                self._interrupts.requested = True
            except (MemoryError, jax.errors.JaxRuntimeError) as error:
                self._end_without_memory(error, num_chains, has_begun=finish.reports[0].num_steps > 0)
        found = solutions(finish.choose(self._interrupts), not self._interrupts.requested)
        files.write(found, finish.reports)
        return found

    def _solutions(
        self,
        chosen: Sequence[Candidate],
        reports: Sequence[Report],
        histories: Sequence[History],
        num_chains: int,
        is_complete: bool,
    ) -> list[Solution]:
        """What was chosen of each problem, or what an earlier part of the search found where that is better."""
        clock, files, search = self._clock, self._files, self._search
        parts = zip(self._problems, histories, reports, files.better_of(self._problems, chosen), strict=True)
        return [
            Solution(
                problem=problem,
                objective=one.objective,
                is_feasible=one.is_feasible,
                state=one.state,
                states=one.state[None] if one.states is None else one.states,
                history=history,
                seconds=files.seconds + clock.seconds(),
                compile_seconds=files.compile_seconds + clock.compile_seconds(),
                num_steps=files.num_steps + report.num_steps,
                num_chains=num_chains,
                search=search.name,
                sampler=search.sampler_for(problem),
                is_complete=is_complete,
                is_proved=report.is_proved and _is_best(problem, one, report),
            )
            for problem, history, report, one in parts
        ]

    def _end_without_memory(self, error: Exception, num_chains: int, has_begun: bool) -> None:
        """A search that has found something keeps it; one that has not raises a sentence."""
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise error
        said = f"A search of {num_chains:,} chains does not fit into memory; use fewer num_chains."
        if not has_begun:
            raise ValueError(said) from error
        warnings.warn(f"{said} What was found until then is returned.", stacklevel=2)
        self._interrupts.requested = True

    def _affordable_chains(self, generator: np.random.Generator) -> int:
        """The usual number, or fewer if the objective is a function that takes so long that there were few steps."""
        usual, seconds = self._num_chains, self._clock.budget.seconds
        problem, is_fixed = self._problems[0], self._search.num_chains is not None or self._init is not None
        if problem.model is not None or not seconds or is_fixed:
            return usual
        state = problem.init(generator, 1)
        problem.objective(state)  # compiles
        begin = self._clock.seconds()
        problem.objective(state)
        evaluation = max(self._clock.seconds() - begin - _SECONDS_OF_A_CALL, 1e-9)
        num_devices = 1 if self._devices is None else self._devices.mesh.size
        affordable = int(np.clip(seconds / (_LEAST_EVALUATIONS * evaluation), 1, usual))
        return -(-affordable // num_devices) * num_devices

    def _is_enough(self, reports: Sequence[Report]) -> bool:
        """Whether the user's function says so."""
        if self._callback is None:
            return False
        for number, report in zip(self._files.numbers, reports, strict=True):
            if self._callback(number, report):
                self._interrupts.requested = True
        return self._interrupts.requested


def _is_best(problem: Problem, one: Candidate, report: Report) -> bool:
    """Whether a state is feasible and has the largest value that the search proved there to be."""
    model: Any = problem.model
    best = float(np.max(report.best_values))
    value = float(model.value(one.state[None])[0])
    return one.is_feasible and (value >= best or is_rounding(value, best))


def _first_states(
    problem: Problem, init: Integer[np.ndarray, "chains n"] | None, generator: np.random.Generator, num_chains: int
) -> Integer[np.ndarray, "chains n"]:
    """The given states, or random ones, where the objective is a finite number."""
    if problem.model is not None:
        return problem.init(generator, num_chains) if init is None else init
    if init is not None:
        if not is_number(problem, init).all():
            raise ValueError("The objective must be a finite number at the states of `init`, but at some it is not.")
        return init
    found: list[np.ndarray] = []
    for _ in range(_MOST_BATCHES_OF_STATES):
        states = problem.init(generator, num_chains)
        found.append(states[is_number(problem, states)])
        if sum(map(len, found)) >= num_chains:
            break
    usable = np.concatenate(found)
    if not len(usable):
        raise ValueError(
            f"The objective must be a finite number somewhere, but at {_MOST_BATCHES_OF_STATES * num_chains:,} random "
            "states it is NaN or infinite; pass `init`, or state what is not allowed by `violations`."
        )
    return np.resize(usable, (num_chains, usable.shape[1]))
