"""A run: the cells of some suites, worked on by an executor, each written when it is done.

What has a row is not run again, so a run that was killed goes on where it stopped; cells that take long go on too (see
`cells`). Which cells share a program is decided from all cells of the run, whatever is done already, so that a run in
two parts gives the rows of one in one.
"""

import shutil
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import jax

from discrax.bench.execute import store
from discrax.bench.execute.cells import BEGUN, begun_folder, run_cells, shape_key
from discrax.bench.execute.executors import Executor, get_executor
from discrax.bench.execute.program import program_of
from discrax.bench.execute.store import Standing
from discrax.bench.plan.cell import Call, Cell, resolve
from discrax.bench.plan.measure import Timing, target_of
from discrax.bench.plan.suite import Size, Suite, find
from discrax.core import checks
from discrax.core.checks import checked_arguments
from discrax.core.files import FolderLock, UnusableFile
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel
from discrax.sampling.progress import is_drawn, plain_lines

Batch = tuple[Cell, ...]  # one compiled program
Job = tuple[Batch, ...]  # one after another on one worker
IfChanged = Literal["refuse", "again", "keep"]
_MOST_TOGETHER = {"cpu": 2_000_000}  # codes of all chains of a batch; a CPU has caches to fill
_MOST_ELSEWHERE = 30_000_000


class RunReport(NamedTuple):
    """What a run has done, counted in cells."""

    folder: Path
    total: int
    were_done: int
    ok: int
    failed: int
    seconds: float
    is_complete: bool = True  # False if it was interrupted

    def __str__(self) -> str:
        before = f", {self.were_done} of them before" if self.were_done else ""
        failed = f", {self.failed} failed" if self.failed else ""
        interrupted = "" if self.is_complete else "; interrupted, the same command goes on"
        counts = f"{self.ok} of {self.total} cells done{before}{failed} in {self.seconds:.0f} s{interrupted}"
        return f"{counts}: {self.folder}"


@checked_arguments
def run_suites(
    names: Sequence[str],
    size: Size = Size.DEFAULT,
    *,
    out: Path | None = None,
    samplers: Sequence[str] = (),
    executor: Executor | str = "in-process",
    workers: int = 1,
    together: bool = True,
    retry_failed: bool = False,
    if_changed: IfChanged = "refuse",
    progress: bool | None = None,
) -> RunReport:
    """Runs suites by name or file into a folder; a folder that has a part of them is completed.

    - `samplers`: addresses "file.py:Kernel" of kernels to put beside the others.
    - `together`: cells of one shape run as one program; steps whose seconds are compared are timed apart.
    - `if_changed`: what to do with cells that are done, but by another version of the program: "refuse" to go on, run
      them "again", or "keep" them beside the new ones.

    Ctrl-C and SIGTERM end the run with what is done (`is_complete` is False); the same call again goes on with it. A
    folder has one run at a time.
    """
    if if_changed not in get_args(IfChanged):
        raise ValueError(f"if_changed is 'refuse', 'again' or 'keep', but got {if_changed!r}.")
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"names must be a list of suites, such as ['any-scale'], but got {checks.describe(names)}.")
    if size not in tuple(Size):
        raise ValueError(f"size is {', '.join(Size)}, but got {size!r}.")
    if not isinstance(out, str | PathLike | None):
        raise TypeError(f"out must be a folder, but got {checks.describe(out)}.")
    suites = [each for name in names for each in find(name)]
    folder = default_folder(names, size) if out is None else Path(out)
    cells = cells_of(suites, size, samplers)
    if isinstance(executor, str):
        executor = get_executor(executor, workers=workers, folder=folder)
    with Interrupts() as interrupts, FolderLock(folder):
        store.remove_unfinished(folder)
        _write_about(folder, suites, names, size, samplers, together)
        begin, before, is_complete = time.perf_counter(), _standings(folder, cells), True
        again = _cells_of_other_programs(folder, cells, before, if_changed)
        again |= {key for key, standing in before.items() if retry_failed and standing.is_failed}
        done = {key: standing for key, standing in before.items() if key not in again}
        stale = {key: before[key].written for key in again}
        try:
            with interrupts.at_once():  # targets are built, which may take long
                jobs = _remaining_jobs(plan(cells, together, executor.name == "in-process"), done)
            display = Display(cells, done, stale, progress)
            _work_on(jobs, executor, folder, display, stale, interrupts)
        except KeyboardInterrupt:
            is_complete = False
        after = _standings(folder, cells)
        if is_complete:
            shutil.rmtree(folder / BEGUN, ignore_errors=True)  # what other programs have begun
    failed = sum(standing.is_failed for standing in after.values())
    seconds = time.perf_counter() - begin
    return RunReport(folder, len(cells), len(before), len(after) - failed, failed, seconds, is_complete)


def _work_on(
    jobs: list[Job], executor: Executor, folder: Path, display: "Display", stale: dict[str, int], interrupts: Interrupts
) -> None:
    with closing(executor.run(partial(work, str(folder)), jobs)) as results, display:
        while True:
            with interrupts.at_once():
                finished = next(results, None)
            if finished is None:
                return
            if finished.outcome is not None and finished.outcome.unwritten is not None:
                raise OSError(finished.outcome.unwritten)
            # A signal to all processes ends the workers as well: that is no failure of their cells.
            interrupts.raise_if_requested()
            if finished.error is not None:  # the worker is gone: the cells it had not written are rows all the same
                for cell in _lost_cells(finished.job, store.read_standings(folder), stale):
                    store.write_rows(folder, store.rows_of(cell, [], Timing(), finished.error))
            display.update(folder)


def _standings(folder: Path, cells: Sequence[Cell]) -> dict[str, Standing]:
    wanted = {cell.id for cell in cells}
    return {key: standing for key, standing in store.read_standings(folder).items() if key in wanted}


def _cells_of_other_programs(
    folder: Path, cells: Sequence[Cell], standings: dict[str, Standing], if_changed: IfChanged
) -> set[str]:
    """The cells to be run again because another program made them."""
    programs = {cell.id: program_of(cell) for cell in cells if cell.id in standings}
    found = {key for key, program in programs.items() if standings[key].program != program}
    if not found or if_changed == "keep":
        return set()
    if if_changed == "refuse":
        others = sorted({standings[key].program or "unknown" for key in found})
        now = sorted({programs[key] for key in found})
        raise ValueError(
            f"{folder} holds {len(found)} of {len(cells)} cells that another version of the program made (sources and "
            f"versions {', '.join(others)}; now {', '.join(now)}). Run them again with --if-changed again, keep them "
            "beside the new ones with --if-changed keep, or choose another --out."
        )
    return found


def _remaining_jobs(jobs: Iterable[Job], done: Collection[str]) -> list[Job]:
    left = (tuple(batch for batch in job if any(cell.id not in done for cell in batch)) for job in jobs)
    return [job for job in left if job]


def default_folder(names: Sequence[str], size: Size) -> Path:
    """The same command has the same folder: run it again and it goes on."""
    stem = "+".join(Path(name).stem if name.endswith(".py") else name.replace("/", "-") for name in names)
    return Path("runs") / f"{stem}-{size}"


def cells_of(suites: Sequence[Suite], size: Size, samplers: Sequence[str] = ()) -> list[Cell]:
    """All cells, each once, with those of the user's samplers beside the others."""
    cells = {cell.id: cell for suite in suites for cell in suite.cells(size)}
    for address in samplers:
        beside: dict[tuple, Cell] = {}
        for cell in list(cells.values()):
            added = with_sampler(cell, resolve_sampler(address))
            beside.setdefault((added.labels, added.seed), added)
        cells |= {cell.id: cell for cell in beside.values()}
    return list(cells.values())


def with_sampler(cell: Cell, address: str) -> Cell:
    """The cell with another sampler, called by the name at its address."""
    name = address.rpartition(":")[2]
    labels = {key: value for key, value in cell.labels if key in cell.setting_labels} | {"sampler": name}
    return replace(cell, labels=tuple(labels.items()), sampler=Call(address), adaptation="auto")


def resolve_sampler(address: str) -> str:
    """A user's address with the whole path of its file, checked: it must make a kernel."""
    place, separator, name = address.rpartition(":")
    if separator and place.endswith(".py"):
        address = f"{Path(place).resolve()}:{name}"
    made = resolve(address)
    if callable(made):
        try:
            made = made()
        except TypeError as error:
            raise ValueError(f"{address} must make a kernel without arguments, but: {error}.") from error
    if not isinstance(made, Kernel):
        raise ValueError(f"{address} makes a {type(made).__name__}, but a sampler is a discrax.Kernel.")
    return address


def plan(cells: Iterable[Cell], together: bool, in_process: bool) -> list[Job]:
    """Batches of cells of one shape, and jobs of batches.

    Other processes do not see what this one compiled, so there a job is all cells of one sampler on one kind of target.
    """
    batches: list[Batch] = []
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        key = shape_key(cell) if together else None
        if key is None:
            batches.append((cell,))
        else:
            groups.setdefault(key, []).append(cell)
    most = _MOST_TOGETHER.get(jax.default_backend(), _MOST_ELSEWHERE)
    for group in groups.values():
        codes = group[0].budget.num_chains * target_of(group[0].target).space.num_sites
        count = max(1, most // codes)
        batches += [tuple(group[i : i + count]) for i in range(0, len(group), count)]
    if in_process:
        return [(batch,) for batch in batches]
    jobs: dict[Any, list[Batch]] = {}
    for batch in batches:
        jobs.setdefault((batch[0].target.address, batch[0].sampler, batch[0].budget), []).append(batch)
    return [tuple(job) for job in jobs.values()]


class Outcome(NamedTuple):
    """What a worker has done of a job."""

    num_cells: int
    unwritten: str | None = None  # why rows could not be written, which ends the run


def work(folder: str, job: Job) -> Outcome:
    """Runs the batches of a job and writes their rows; a signal waits until those that are measured are written."""
    count = 0
    with Interrupts() as interrupts:
        for batch in job:
            try:
                for rows in run_cells(batch, Path(folder)):
                    store.write_rows(Path(folder), rows)
                    count += 1
                shutil.rmtree(begun_folder(Path(folder), batch), ignore_errors=True)
            except UnusableFile as error:
                return Outcome(count, str(error))
            interrupts.raise_if_requested()
    return Outcome(count)


def _lost_cells(job: Job, standings: dict[str, Standing], stale: dict[str, int]) -> list[Cell]:
    fresh = {key for key, standing in standings.items() if standing.written != stale.get(key)}
    return [cell for batch in job for cell in batch if cell.id not in fresh]


def _write_about(
    folder: Path, suites: Sequence[Suite], names: Sequence[str], size: Size, samplers: Sequence[str], together: bool
) -> None:
    files = [str(Path(name).resolve()) for name in names if name.endswith(".py")]
    shipped = [suite.name for suite in suites] if not files else [n for n in names if not n.endswith(".py")]
    about = {"suites": shipped, "size": str(size), "user_files": files}
    about |= {"samplers": [resolve_sampler(each) for each in samplers], "together": together}
    if (folder / store.ABOUT).exists():
        was = store.read_about(folder)
        different = [key for key in about if was.get(key) != about[key]]
        if different:
            raise ValueError(
                f"{folder} holds a run with other {', '.join(different)} "
                f"({'; '.join(f'{was.get(key)}, now {about[key]}' for key in different)}); choose another --out."
            )
        return
    started = datetime.now(UTC).isoformat(timespec="seconds")
    store.write_about(folder, about | {"started": started, "versions": store.versions()})


class Display(AbstractContextManager):
    """Cells done, running, failed and the time left: a live line on a terminal, else a line now and then."""

    def __init__(self, cells: Sequence[Cell], done: dict[str, Standing], stale: dict[str, int], progress: bool | None):
        self._total, self._done = len(cells), {key: standing.is_failed for key, standing in done.items()}
        self._stale = stale  # files of cells that are run again, and when they were written
        self._names = {cell.id: cell.name for cell in cells}
        self._begin, self._before = time.perf_counter(), len(self._done)
        self._live, self._lines = None, plain_lines(progress)
        if is_drawn(progress):
            from rich.live import Live

            self._live = Live(self._line(), refresh_per_second=4)

    def __enter__(self) -> "Display":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live:
            self._live.update(self._line())
            self._live.stop()

    def update(self, folder: Path) -> None:
        """Counts the files that have come into the folder since."""
        for path in (folder / store.ROWS).glob("*.parquet"):
            if path.stem not in self._done and path.stem in self._names:
                standing = store.read_standing(path)
                if standing is not None and standing.written != self._stale.get(path.stem):
                    self._done[path.stem] = standing.is_failed
        if self._live:
            self._live.update(self._line())
        if self._lines:
            self._lines.say(self._line)

    def _line(self) -> str:
        done, spent = len(self._done), time.perf_counter() - self._begin
        failed = sum(self._done.values())
        now = done - self._before
        left = f", about {_duration(spent / now * (self._total - done))} left" if now else ""
        waiting = [name for key, name in self._names.items() if key not in self._done]
        running = f"\n  next or running: {waiting[0]}" if waiting else ""
        return f"{done}/{self._total} cells done, {failed} failed, {_duration(spent)} spent{left}{running}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
