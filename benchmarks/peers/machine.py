"""Worker processes on given cores, in which searches run and are timed."""

import multiprocessing
import os
import resource
import time
from typing import Any, NamedTuple

import numpy as np

from discrax.problems import Problem
from peers import ours
from peers.registry import peer

SECONDS_OF_GRACE = 300.0  # after them a search that has not ended is killed


class Found(NamedTuple):
    """What came of a search. `value` is checked; `notes` are the search's own words."""

    state: np.ndarray | None
    value: float | None
    seconds: float  # compilation apart
    cpu_seconds: float
    start_mib: float  # of the workers before the search
    peak_mib: float
    notes: dict[str, Any]
    error: str | None = None


def _serve(connection, cores: tuple[int, ...]) -> None:
    """A worker: takes (name, problem, seconds, threads, seed, until), gives back a state, or a sentence."""
    os.sched_setaffinity(0, cores)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some peers talk
    while True:
        try:
            name, problem, seconds, num_threads, seed, ours.UNTIL = connection.recv()
        except EOFError:
            return
        usage, start = resource.getrusage(resource.RUSAGE_SELF), _resident_mib()
        state, notes, error = None, {}, None
        try:
            state, notes = peer(name).search(problem, seconds, num_threads, seed)
            if state is not None and not bool(problem.is_feasible(state)):
                state, notes = problem.repair(state), notes | {"is_repaired": True}
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
        connection.send((state, notes, error, cpu, start, after.ru_maxrss / 1024))


def _resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Machine:
    """Worker processes on given cores, for each package its own, since two of them may not live in one process.

    They are kept from one search to the next, or with `is_fresh` new for each.
    """

    def __init__(self, cores: tuple[int, ...], *, is_fresh: bool = False):
        os.sched_setaffinity(0, cores)
        self.cores, self._is_fresh = cores, is_fresh
        self._crews: dict[tuple[str, ...], list[Any]] = {}
        self._warm: set[tuple[str, str]] = set()

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_) -> None:
        for packages in list(self._crews):
            self._dismiss(packages)

    def _dismiss(self, packages: tuple[str, ...]) -> None:
        """Ends the workers of a package."""
        for process, connection in self._crews.pop(packages, ()):
            connection.close()
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()
        self._warm = {each for each in self._warm if peer(each[0]).packages != packages}

    def _crew(self, packages: tuple[str, ...], size: int) -> list[Any]:
        context, crew = multiprocessing.get_context("spawn"), self._crews.setdefault(packages, [])
        while len(crew) < size:
            here, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self.cores), daemon=True)
            process.start()
            theirs.close()
            crew.append((process, here))
        return crew[:size]

    def measure(
        self,
        name: str,
        problem: Problem,
        seconds: float,
        seed: int,
        tiny: Problem | None = None,
        until: float | None = None,
    ) -> Found:
        """One search. `tiny` is a small problem of the same kind, for what must be imported and compiled first; ours
        ends where it finds `until`.
        """
        if self._is_fresh:
            self._dismiss(peer(name).packages)
        kind = (name, type(problem).__name__)
        if tiny is not None and kind not in self._warm:
            self._run(name, tiny, 1.0, seed, None)
            self._warm.add(kind)
        return self._run(name, problem, seconds, seed, until)

    def _run(self, name: str, problem: Problem, seconds: float, seed: int, until: float | None) -> Found:
        how = peer(name)
        crew = self._crew(how.packages, len(self.cores) if how.is_single else 1)
        num_threads = 1 if how.is_single else len(self.cores)
        begin = time.perf_counter()
        for place, (_, connection) in enumerate(crew):
            connection.send((name, problem, seconds, num_threads, len(crew) * seed + place, until))
        answers, error = [], None
        for process, connection in crew:
            try:
                if not connection.poll(max(0.0, seconds + SECONDS_OF_GRACE - (time.perf_counter() - begin))):
                    error = f"It did not end within {seconds + SECONDS_OF_GRACE:g} s."
                    process.kill()
                    continue
                answers.append(connection.recv())
            except (EOFError, ConnectionResetError):
                process.join()
                error = f"It died ({process.exitcode})."
        spent = time.perf_counter() - begin
        if error:
            self._dismiss(how.packages)
        return _judge(problem, answers, spent, error)


def _judge(problem: Problem, answers: list[Any], seconds: float, error: str | None) -> Found:
    """The best of what the workers gave, by the problem's own objective."""
    best, value, notes = None, None, {}
    for state, its_notes, its_error, *_ in answers:
        error, notes = its_error or error, notes or its_notes
        if state is None:
            continue
        state = np.asarray(state)
        if not bool(problem.is_feasible(state)):
            error = "Its state is not feasible."
            continue
        its_value = float(problem.objective(state))
        if value is None or problem.is_better(its_value, value):
            best, value, notes = state, its_value, its_notes
    if best is None and error is None:
        error = f"It found nothing ({notes.get('how', 'no state')})."
    columns = np.array([answer[3:] for answer in answers]).reshape(-1, 3).sum(axis=0)
    cpu, start, peak = columns.tolist()
    return Found(best, value, seconds - notes.get("compile_seconds", 0.0), cpu, start, peak, notes, error)
