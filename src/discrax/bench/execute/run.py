"""A run: the cells of some suites, worked on by an executor, each written when it is done.

What has a row is not run again, so a run that was killed goes on where it stopped; cells that take long go on too (see
`cells`). Which cells share a program is decided from all cells that a command asks for, whatever is done already, so
that a run in two parts gives the rows of one in one. A run takes more later: other samplers, tasks, seeds, suites.
"""

import hashlib
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import jax

from discrax.bench.execute import store
from discrax.bench.execute.cells import BEGUN, begun_folder, run_cells, shape_key
from discrax.bench.execute.display import Display
from discrax.bench.execute.executors import Executor, get_executor
from discrax.bench.execute.program import program_of
from discrax.bench.execute.request import Request, check_labels, make_request, merge, requests_of
from discrax.bench.execute.samplers import Beside
from discrax.bench.execute.small_targets import prove
from discrax.bench.execute.store import Standing
from discrax.bench.execute.timing import UNTIMED, cells_aside, seeds_apart, time_cells
from discrax.bench.execute.worker import device_works
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Experiment, Timing, target_of
from discrax.bench.plan.suite import Size, find
from discrax.core import checks
from discrax.core.checks import checked_arguments
from discrax.core.files import FolderLock, UnusableFile
from discrax.core.interrupts import Interrupts
from discrax.core.target import Target

Batch = tuple[Cell, ...]  # one compiled program
Job = tuple[Batch, ...]  # one after another on one worker
IfChanged = Literal["refuse", "again", "keep"]
_MOST_TOGETHER = 2_000_000  # codes of all chains of a batch; a CPU has caches to fill
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
    untimed: int = 0  # have their statistics, and wait to be timed

    def __str__(self) -> str:
        before = f", {self.were_done} of them before" if self.were_done else ""
        failed = f", {self.failed} failed (--retry-failed runs those again)" if self.failed else ""
        untimed = f", {self.untimed} more but for their timing" if self.untimed else ""
        interrupted = "" if self.is_complete else "; interrupted, the same command goes on"
        counts = f"{self.ok} of {self.total} cells done{before}{untimed}{failed} in {self.seconds:.0f} s{interrupted}"
        return f"{counts}: {self.folder}"


# As many as there are things to ask for, and ways to run them.
@checked_arguments
def run_suites(
    names: Sequence[str],
    size: Size = Size.DEFAULT,
    *,
    out: Path | None = None,
    samplers: Sequence[str] = (),
    tasks: Sequence[str] = (),
    only: Sequence[str] = (),
    budget: Mapping[str, int] = MappingProxyType({}),
    seeds: int = 1,
    check: bool = True,
    executor: Executor | str = "in-process",
    workers: int = 1,
    together: bool = True,
    retry_failed: bool = False,
    if_changed: IfChanged = "refuse",
    progress: bool | None = None,
) -> RunReport:
    """Runs suites by name or file into a folder; a folder that has a part of them is completed, or added to.

    - `samplers`: to put beside the others: "file.py:Kernel", "dmala(step_size=0.1,0.2)" (see `samplers`).
    - `tasks`: "file.py:function" that makes a target, for all samplers.
    - `only`: of the suites' own rows those of these samplers ("pas", "dlmc*") and labels ("task=ising").
    - `budget`: "steps", "chains", "warmup" of all cells alike.
    - `seeds`: how many of each cell.
    - `check`: whether a kernel that is not of the package is proved on small targets before it runs.
    - `together`: cells of one shape run as one program; steps whose seconds are compared are timed apart.
    - `if_changed`: what to do with cells that are done, but by another version of their code: "refuse" to go on, run
      them "again", or "keep" them beside the new ones.

    Ctrl-C and SIGTERM end the run with what is done (`is_complete` is False); the same call again goes on with it. A
    folder has one run at a time.
    """
    _check_arguments(names, size, out, if_changed)
    asked = {"samplers": samplers, "tasks": tasks, "only": only, "budget": budget, "seeds": seeds}
    request = make_request(names, size, **asked, is_checked=check)
    folder = default_folder(names, size, budget) if out is None else Path(out)
    cells = request.cells()
    if isinstance(executor, str):
        executor = get_executor(executor, workers=workers, folder=folder)
    with Interrupts() as interrupts, FolderLock(folder):
        store.remove_unfinished(folder)
        requests = _requests(folder, request)
        if len(requests) > 1:
            check_labels({suite.name: suite.cells(size) for suite in merge(requests)})
        begin, before, is_complete = time.perf_counter(), _standings(folder, cells), True
        again = _cells_of_other_programs(folder, cells, before, if_changed)
        again |= {key for key, standing in before.items() if retry_failed and standing.is_failed}
        done = {key: standing for key, standing in before.items() if key not in again}
        stale = {key: before[key].written for key in again}
        find_aside = partial(cells_aside, folder, cells, of_any_program=if_changed == "keep")
        try:
            with interrupts.at_once():  # targets are built, which may take long
                _check_tasks(request, cells)
                if check:
                    _prove_foreign(request, [cell for cell in cells if cell.id not in done])
                aside = {cell.id for cell in find_aside()} - set(done)
                jobs = _remaining_jobs(
                    plan(cells, together, executor.name == "in-process", getattr(executor, "num_sharing", 1)),
                    done,
                    aside,
                )
            _write_about(folder, requests)
            is_alone = executor.name == "in-process" and getattr(executor, "workers", 1) == 1
            with Display(cells, done, stale, progress) as display:
                _work_on(partial(work, str(folder), is_alone), jobs, executor, folder, display, interrupts)
                untimed = [(group,) for group in seeds_apart(find_aside())]
                _work_on(partial(time_job, str(folder)), untimed, executor, folder, display, interrupts)
        except KeyboardInterrupt:
            is_complete = False
        after = _standings(folder, cells)
        num_untimed = sum(cell.id not in after for cell in find_aside())
        if is_complete:
            shutil.rmtree(folder / BEGUN, ignore_errors=True)  # what other programs have begun
    failed = sum(standing.is_failed for standing in after.values())
    seconds = time.perf_counter() - begin
    return RunReport(folder, len(cells), len(before), len(after) - failed, failed, seconds, is_complete, num_untimed)


def _check_arguments(names: Sequence[str], size: Size, out: Path | None, if_changed: str) -> None:
    if if_changed not in get_args(IfChanged):
        raise ValueError(f"if_changed is 'refuse', 'again' or 'keep', but got {if_changed!r}.")
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"names must be a list of suites, such as ['any-scale'], but got {checks.describe(names)}.")
    if size not in tuple(Size):
        raise ValueError(f"size is {', '.join(Size)}, but got {size!r}.")
    if not isinstance(out, str | PathLike | None):
        raise TypeError(f"out must be a folder, but got {checks.describe(out)}.")
    for name in names:
        find(name)


def _check_tasks(request: Request, cells: Sequence[Cell]) -> None:
    for task in request.tasks:
        is_sampled = any(cell.target == task and not isinstance(cell.measure(), Experiment) for cell in cells)
        if is_sampled and not isinstance(made := target_of(task), Target):
            raise ValueError(f"{task.address} must make a discrax.Target, but it made {checks.describe(made)}.")


def _prove_foreign(request: Request, cells: Sequence[Cell]) -> None:
    """Stops with a sentence what is wrong, before any of its cells runs."""
    for beside in request.samplers:
        mine = [cell for cell in cells if cell.sampler == beside.sampler]
        if beside.is_foreign and mine:
            prove(beside.name, beside.sampler(), mine)


def _work_on(
    doing: "partial[Outcome]",
    jobs: Sequence[Job],
    executor: Executor,
    folder: Path,
    display: Display,
    interrupts: Interrupts,
) -> None:
    with closing(executor.run(doing, jobs)) as results:
        while True:
            try:
                with interrupts.at_once():
                    finished = next(results, None)
            except RuntimeError:  # what a lock of Python's says when a signal meets it half open
                interrupts.raise_if_requested()
                raise
            if finished is None:
                return
            if finished.outcome is not None and finished.outcome.unwritten is not None:
                raise OSError(finished.outcome.unwritten)
            # A signal to all processes ends the workers as well: that is no failure of their cells.
            interrupts.raise_if_requested()
            if finished.error is not None:  # the worker is gone: the cells it had not written are rows all the same
                for cell in _lost_cells(folder, finished.job, display.stale, doing.func is work):
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


def _remaining_jobs(jobs: Iterable[Job], done: Mapping[str, Standing], aside: Set[str]) -> list[Job]:
    """The batches that are not done, of those to which a run was added the cells that are not.

    Those whose cells are put `aside` are to be timed only. A batch of which a part was written when the run was killed
    is run whole: so its rows are those of a run without it.
    """
    left = [tuple(rest for batch in job if (rest := _rest_of(batch, done, aside))) for job in jobs]
    return [job for job in left if job]


def _rest_of(batch: Batch, done: Mapping[str, Standing], aside: Set[str]) -> Batch:
    rest = tuple(cell for cell in batch if cell.id not in done)
    if all(cell.id in aside for cell in rest):
        return ()
    written = {done[cell.id].batch for cell in batch if cell.id in done}
    return batch if rest and batch_id(batch) in written else rest


def batch_id(batch: Batch) -> str:
    """A hash of the cells that run as one program."""
    return hashlib.sha256(" ".join(cell.id for cell in batch).encode()).hexdigest()[:16]


def default_folder(names: Sequence[str], size: Size, budget: Mapping[str, int] = MappingProxyType({})) -> Path:
    """The same suites, size and budget have the same folder: run them again and the run goes on."""
    stem = "+".join(Path(name).stem if name.endswith(".py") else name.replace("/", "-") for name in names)
    return Path("runs") / "-".join([stem, size, *(f"{name}={value}" for name, value in sorted(budget.items()))])


def plan(cells: Iterable[Cell], together: bool, in_process: bool, num_sharing: int = 1) -> list[Job]:
    """Batches of cells of one shape, and jobs of batches.

    Other processes do not see what this one compiled, so there a job is all cells of one sampler on one kind of target,
    but for experiments, such as a training, which take longer than their program; the longest begin first. Batches of
    `num_sharing` workers that share a GPU are smaller: they fill it together, and when the run is ended a batch that is
    not done is lost.
    """
    batches: list[Batch] = []
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        key = shape_key(cell) if together else None
        if key is None:
            batches.append((cell,))
        else:
            groups.setdefault(key, []).append(cell)
    most = _MOST_TOGETHER if jax.default_backend() == "cpu" else max(_MOST_TOGETHER, _MOST_ELSEWHERE // num_sharing)
    for group in groups.values():
        codes = group[0].budget.num_chains * target_of(group[0].target).space.num_sites
        count = max(1, most // codes)
        batches += [tuple(group[i : i + count]) for i in range(0, len(group), count)]
    if in_process:
        return [(batch,) for batch in batches]
    jobs: dict[Any, list[Batch]] = {}
    for batch in batches:
        first = batch[0]
        is_apart = isinstance(first.measure(), Experiment)
        jobs.setdefault(first.id if is_apart else (first.target.address, first.sampler, first.budget), []).append(batch)

    def num_steps(job: Job) -> int:
        return sum(cell.budget.num_steps for batch in job for cell in batch)

    return sorted(map(tuple, jobs.values()), key=num_steps, reverse=True)


class Outcome(NamedTuple):
    """What a worker has done of a job."""

    num_cells: int
    unwritten: str | None = None  # why rows could not be written, which ends the run


def work(folder: str, times: bool, job: Job) -> Outcome:
    """Runs the batches of a job and writes their rows; a signal waits until those that are measured are written.

    Without `times` cells whose seconds are compared are put aside.
    """
    count = 0
    with Interrupts() as interrupts:
        for batch in job:
            try:
                for rows in run_cells(batch, Path(folder), times=times):
                    if rows and rows[0]["status"] == "failed":  # a signal that ended a compiler is no fault of the cell
                        interrupts.raise_if_requested()
                        _check_device(rows[0]["error"])
                    if rows:
                        store.write_rows(Path(folder), [row | {"batch": batch_id(batch)} for row in rows])
                    count += 1
                shutil.rmtree(begun_folder(Path(folder), batch), ignore_errors=True)
            except UnusableFile as error:
                return Outcome(count, str(error))
            interrupts.raise_if_requested()
    return Outcome(count)


def _check_device(error: str) -> None:
    """A cell that fails may be the victim of others that share its GPU: then no row is written here."""
    if not device_works():
        raise RuntimeError(f"The device of this process computes nothing more since {error}")


def time_job(folder: str, job: Job) -> Outcome:
    """Times cells that have their statistics, and writes their rows."""
    for batch in job:
        try:
            for rows in time_cells(Path(folder), batch):
                store.write_rows(Path(folder), rows)
                (Path(folder) / UNTIMED / rows[0]["cell"]).unlink(missing_ok=True)
        except UnusableFile as error:
            return Outcome(0, str(error))
    return Outcome(sum(map(len, job)))


def _lost_cells(folder: Path, job: Job, stale: Mapping[str, int], may_be_aside: bool) -> list[Cell]:
    standings = store.read_standings(folder)
    fresh = {key for key, standing in standings.items() if standing.written != stale.get(key)}
    lost = [cell for batch in job for cell in batch if cell.id not in fresh]
    aside = cells_aside(folder, lost, of_any_program=True) if may_be_aside else []
    return [cell for cell in lost if cell not in aside]


def _requests(folder: Path, request: Request) -> list[Request]:
    """What the folder was asked for, and now is; only another size or budget contradicts what is there."""
    if not (folder / store.ABOUT).exists():
        return [request]
    before = requests_of(store.read_about(folder))
    for what in ("size", "budget"):
        now, then = getattr(request, what), getattr(before[0], what)
        if now != then:
            told = (f"{dict(each) or 'as usual'}" if what == "budget" else str(each) for each in (then, now))
            raise ValueError(f"{folder} holds a run with other {what} ({', now '.join(told)}); choose another --out.")
    return before if request in before else [*before, request]


def _write_about(folder: Path, requests: Sequence[Request]) -> None:
    """Lists the suites and samplers of all requests; a folder that lists them already is left alone."""
    started, first = datetime.now(UTC).isoformat(timespec="seconds"), requests[0]
    if (folder / store.ABOUT).exists():
        was = store.read_about(folder)
        if requests_of(was) == requests:
            return
        started = was.get("started", started)
    names = list(dict.fromkeys(name for each in requests for name in each.suites))
    shown = {beside.name + _remark(beside, each.is_checked): None for each in requests for beside in each.samplers}
    about = {
        "suites": [name for name in names if not name.endswith(".py")],
        "user_files": [name for name in names if name.endswith(".py")],
        "samplers": list(shown),
        "size": str(first.size),
        "budget": dict(first.budget),
        "requests": [asdict(each) for each in requests],
    }
    store.write_about(folder, about | {"started": started, "versions": store.versions()})


def _remark(beside: Beside, is_checked: bool) -> str:
    """What a reader of its numbers must know of a sampler."""
    said = ["not checked"] if beside.is_foreign and not is_checked else []
    said += [] if getattr(beside.sampler(), "is_exact", True) else ["not exact, as it says itself"]
    return f" ({'; '.join(said)})" if said else ""
