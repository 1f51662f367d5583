"""A run: the cells of some suites, worked on by an executor, each written when it is done.

What has a row is not run again, so a run that was killed goes on where it stopped. Which cells share a program is
decided from all cells of the run, whatever is done already, so that a run in two parts gives the rows of one in one.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from discrax.bench import store
from discrax.bench.cell import Call, Cell, resolve
from discrax.bench.executors import Executor, get_executor
from discrax.bench.measure import run_cells, shape_key, target_of
from discrax.bench.store import Timing
from discrax.bench.suite import Size, Suite, find
from discrax.core.kernel import Kernel
from discrax.sampling.progress import wants_progress

Batch = tuple[Cell, ...]  # one compiled program
Job = tuple[Batch, ...]  # one after another on one worker
_MOST_TOGETHER = {"cpu": 2_000_000}  # codes of all chains of a batch; a CPU has caches to fill
_MOST_ELSEWHERE = 30_000_000


class RunReport(NamedTuple):
    folder: Path
    total: int
    were_done: int
    ok: int
    failed: int
    seconds: float

    def __str__(self) -> str:
        before = f", {self.were_done} of them before" if self.were_done else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ok} of {self.total} cells done{before}{failed} in {self.seconds:.0f} s: {self.folder}"


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
    progress: bool | None = None,
) -> RunReport:
    """Runs suites by name or file into a folder; a folder that has a part of them is completed.

    - `samplers`: addresses "file.py:Kernel" of kernels to put beside the others.
    - `together`: cells of one shape, unless their seconds are compared, run as one program.
    """
    suites = [each for name in names for each in find(name)]
    folder = default_folder(names, size) if out is None else Path(out)
    cells = cells_of(suites, size, samplers)
    _write_about(folder, suites, names, size, samplers, together)
    if isinstance(executor, str):
        executor = get_executor(executor, workers=workers, folder=folder)
    before = {key: status for key, status in store.finished(folder).items() if key in {cell.id for cell in cells}}
    done = {key for key, status in before.items() if not (retry_failed and status == "failed")}
    jobs = [
        job for job in plan(cells, together, executor.name == "in-process") if not all(_is_done(b, done) for b in job)
    ]
    jobs = [tuple(batch for batch in job if not _is_done(batch, done)) for job in jobs]
    begin = time.perf_counter()
    working = closing(executor.run(partial(work, str(folder)), jobs))
    with working as results, Display(len(cells), before, cells, wants_progress(progress)) as display:
        for finished in results:
            if finished.error is not None:  # the worker is gone: the cells it had not written are rows all the same
                for cell in _lost(finished.job, store.finished(folder)):
                    store.write_rows(folder, store.rows_of(cell, [], Timing(), finished.error))
            display.update(folder)
    statuses = [status for key, status in store.finished(folder).items() if key in {cell.id for cell in cells}]
    failed = statuses.count("failed")
    return RunReport(folder, len(cells), len(before), statuses.count("ok"), failed, time.perf_counter() - begin)


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
            added = with_sampler(cell, absolute(address))
            beside.setdefault((added.labels, added.seed), added)
        cells |= {cell.id: cell for cell in beside.values()}
    return list(cells.values())


def with_sampler(cell: Cell, address: str) -> Cell:
    """The cell with another sampler, called by the name at its address."""
    name = address.rpartition(":")[2]
    labels = {key: value for key, value in cell.labels if key in cell.setting_labels} | {"sampler": name}
    return replace(cell, labels=tuple(labels.items()), sampler=Call(address), adaptation="auto")


def absolute(address: str) -> str:
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


def work(folder: str, job: Job) -> int:
    """Runs the batches of a job and writes their rows; returns how many cells it did."""
    count = 0
    for batch in job:
        for rows in run_cells(batch):
            store.write_rows(Path(folder), rows)
            count += 1
    return count


def _is_done(batch: Batch, done: set[str]) -> bool:
    return all(cell.id in done for cell in batch)


def _lost(job: Job, statuses: dict[str, str]) -> list[Cell]:
    return [cell for batch in job for cell in batch if cell.id not in statuses]


def _write_about(
    folder: Path, suites: Sequence[Suite], names: Sequence[str], size: Size, samplers: Sequence[str], together: bool
) -> None:
    files = [str(Path(name).resolve()) for name in names if name.endswith(".py")]
    shipped = [suite.name for suite in suites] if not files else [n for n in names if not n.endswith(".py")]
    about = {"suites": shipped, "size": str(size), "user_files": files, "samplers": [absolute(s) for s in samplers]}
    about |= {"together": together}
    path = folder / store.ABOUT
    if path.exists():
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

    def __init__(self, total: int, before: dict[str, str], cells: Sequence[Cell], shown: bool):
        self._total, self._done = total, dict(before)
        self._names = {cell.id: cell.name for cell in cells}
        self._begin, self._before, self._last = time.perf_counter(), len(before), 0.0
        self._live = None
        if shown:
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
        for path in (folder / store.ROWS).glob("*.parquet"):
            if path.stem not in self._done and path.stem in self._names:
                self._done[path.stem] = store.status_of(path)
        if self._live:
            self._live.update(self._line())

    def _line(self) -> str:
        done, spent = len(self._done), time.perf_counter() - self._begin
        failed = sum(status == "failed" for status in self._done.values())
        now = done - self._before
        left = f", about {_duration(spent / now * (self._total - done))} left" if now else ""
        waiting = [name for key, name in self._names.items() if key not in self._done]
        running = f"\n  next or running: {waiting[0]}" if waiting else ""
        return f"{done}/{self._total} cells done, {failed} failed, {_duration(spent)} spent{left}{running}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
