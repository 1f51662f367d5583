"""A run that is disturbed: by signals, a full disk, another run, death inside a write, or a program that changed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from discrax.bench.execute import cells as measure
from discrax.bench.execute import program, run, stages, store
from discrax.bench.execute.display import Display
from discrax.bench.execute.executors import Done
from discrax.bench.execute.run import run_suites
from discrax.bench.execute.timing import UNTIMED, set_aside
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.measure import Number, Timing, kernel_of, target_of
from discrax.bench.plan.suite import Size
from discrax.bench.report.compare import compare_runs
from discrax.bench.report.write import make_document, write_report
from discrax.core.files import UnusableFile
from discrax.core.interrupts import Interrupts

from ..faulty_files import faulty_files

SUITE = """
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.measure import Experiment
from discrax.bench.plan.measure import Number, Timing
from discrax.bench.plan.suite import suite

VALUE = 1.0


def constant():
    return Experiment(lambda cell: ([Number("value", VALUE)], Timing()))


@suite("quick/cells", "cells that take no time")
def cells(size):
    for seed in range(3):
        yield Cell(
            labels=(("task", "none"), ("sampler", str(seed))),
            target=call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2),
            sampler=call("discrax.samplers:rwm"),
            budget=Budget(1, 1, 1),
            seed=seed,
            measure=call(f"{__file__}:constant"),
            is_timed=True,
        )
"""


@pytest.fixture
def suite(tmp_path) -> str:
    path = tmp_path / "suite.py"
    path.write_text(SUITE)
    return str(path)


def again(suite, folder, **settings):
    return run_suites([suite], Size.QUICK, out=folder, progress=False, **settings)


def values(folder) -> list[float]:
    return [row["value"] for row in store.read_rows(folder)]


# --- which program made a row ----------------------------------------------------------------------------------------


def test_rows_of_another_program_are_not_mixed_in_silence(suite, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    assert again(suite, folder).ok == 3
    assert len({row["program"] for row in store.read_rows(folder)}) == 1
    assert again(suite, folder).were_done == 3
    monkeypatch.setattr(program, "_of_engine", lambda: "another")
    with pytest.raises(ValueError, match=r"holds 3 of 3 cells that another version of the program made .*if-changed"):
        again(suite, folder)
    before = [path.stat().st_mtime_ns for path in sorted((folder / "rows").iterdir())]
    assert again(suite, folder, if_changed="keep").ok == 3
    assert [path.stat().st_mtime_ns for path in sorted((folder / "rows").iterdir())] == before
    next((folder / "rows").glob("*.parquet")).unlink()
    again(suite, folder, if_changed="keep")
    assert "several, so cells may not be comparable: 2 cells by " in dict(make_document(folder).facts)["program"]
    assert again(suite, folder, if_changed="again").ok == 3
    assert len({row["program"] for row in store.read_rows(folder)}) == 1
    again(suite, folder)
    with pytest.raises(ValueError, match="if_changed is 'refuse', 'again' or 'keep', but got 'mix'"):
        again(suite, folder, if_changed="mix")


def test_the_users_own_file_is_a_part_of_the_program(suite, tmp_path):
    folder = tmp_path / "run"
    again(suite, folder)
    Path(suite).write_text(SUITE.replace("VALUE = 1.0", "VALUE = 2.0"))
    with pytest.raises(ValueError, match="another version of the program"):
        again(suite, folder)
    # A file is read once a process, so the new numbers would come in another one; the rows are made again all the same.
    again(suite, folder, if_changed="again")
    again(suite, folder)


def test_rows_from_before_there_were_identities_count_as_others(suite, tmp_path):
    import pyarrow.parquet as pq

    folder = tmp_path / "run"
    again(suite, folder)
    for path in (folder / "rows").iterdir():
        pq.write_table(pq.read_table(path).drop_columns(["program"]), path)
    with pytest.raises(ValueError, match=r"another version of the program made \(sources and versions unknown;"):
        again(suite, folder)


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_the_run_with_what_is_done(suite, tmp_path, monkeypatch, number, workers):
    folder, original, signals = tmp_path / "run", store.write_rows, [number]

    def write_rows(*arguments):
        with suppress(IndexError):
            os.kill(os.getpid(), signals.pop())  # before the row is written: what is measured is written all the same
        original(*arguments)

    monkeypatch.setattr(store, "write_rows", write_rows)
    report = again(suite, folder, workers=workers)
    assert not report.is_complete
    assert 1 <= report.ok <= (1 if workers == 1 else 3)
    assert report.failed == 0
    assert "interrupted, the same command goes on" in str(report)
    report = again(suite, folder)
    assert (report.is_complete, report.ok) == (True, 3)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_a_verb_hears_with_its_last_step_ends_the_run(suite, tmp_path, monkeypatch, number):
    original, signals = measure.rows_of, [number]

    def rows_of(*arguments):
        with Interrupts():  # as in `sample`, which is complete then and has nothing to say
            if signals:
                os.kill(os.getpid(), signals.pop())
        return original(*arguments)

    monkeypatch.setattr(measure, "rows_of", rows_of)
    report = again(suite, tmp_path / "run")
    assert (report.is_complete, report.ok, report.failed) == (False, 1, 0)


def test_a_worker_that_a_signal_ended_is_no_failure_of_its_cells(suite, tmp_path):
    """A signal to all processes ends the workers too; their jobs come back as lost."""

    class Lost:
        name = "lost"

        def run(self, work, jobs):
            for job in jobs:
                with suppress(KeyboardInterrupt):  # the answer of the worker is there already
                    signal.raise_signal(signal.SIGTERM)
                yield Done(job, None, "The worker process died during the job.")

    report = again(suite, tmp_path / "run", executor=Lost())
    assert (report.is_complete, report.ok, report.failed) == (False, 0, 0)


def test_incomplete_results_are_no_rows(monkeypatch):
    class Part:
        is_complete = False

    cell = Cell((("sampler", "x"),), call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2),
                call("discrax.samplers:rwm"), Budget(1, 1, 1))  # fmt: skip
    monkeypatch.setattr(stages, "sample", lambda *_, **__: Part())
    with pytest.raises(KeyboardInterrupt):
        measure.run_cell(cell)
    monkeypatch.setattr(stages, "sample_together", lambda *_, **__: [Part(), Part()])
    with pytest.raises(KeyboardInterrupt):
        measure.run_cells([cell, cell])


POOL = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from discrax.bench.execute.executors import Pool
from discrax.core.interrupts import Interrupts
import test_faults_work

if __name__ == "__main__":
    try:
        with Interrupts(raises=True):
            list(Pool(1).run(test_faults_work.note_and_wait, [sys.argv[1] + "/1", sys.argv[1] + "/2"]))
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 7), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_worker_outlives_its_run(tmp_path, number, code):
    (tmp_path / "test_faults_work.py").write_text(
        "import os, time\ndef note_and_wait(path):\n    open(path, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
    )
    (tmp_path / "pool.py").write_text(POOL)
    process = subprocess.Popen([sys.executable, tmp_path / "pool.py", tmp_path, tmp_path])
    note = tmp_path / "1"
    try:
        _wait(lambda: process.poll() is not None or (note.exists() and note.read_text()))
        assert process.poll() is None
        worker = int(note.read_text())
        process.send_signal(number)  # to the parent alone
        assert process.wait(60) == code
        _wait(lambda: not _is_alive(worker))
        assert not (tmp_path / "2").exists()
    finally:
        process.kill()
        process.wait()


def _wait(condition) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full", "denied"])
def test_a_disk_that_cannot_be_written_ends_the_run_with_a_sentence(suite, tmp_path, kind):
    with faulty_files(tmp_path) as counted:
        again(suite, tmp_path / "counted")
    for at in range(1, counted.count + 1):
        folder = tmp_path / f"run-{at}"
        with faulty_files(folder, kind, at=at), suppress(OSError):
            again(suite, folder)
        before = store.read_standings(folder)
        assert not any(standing.is_failed for standing in before.values()), at  # no fault of the cells
        report = again(suite, folder)
        assert (report.ok, report.were_done) == (3, len(before)), at
        assert values(folder) == [1.0] * 3
    with faulty_files(tmp_path / "last", kind, at=12), pytest.raises(OSError, match="cannot be written: "):
        again(suite, tmp_path / "last")


def test_dead_inside_any_write_the_run_can_be_resumed(suite, tmp_path):
    with faulty_files(tmp_path) as counted:
        again(suite, tmp_path / "counted")
    were_done = set()
    for at in range(1, counted.count + 1):
        folder = tmp_path / f"run-{at}"
        with faulty_files(folder, "dead", at=at), suppress(OSError):
            again(suite, folder)
        report = again(suite, folder)
        assert report.ok == 3, at
        assert values(folder) == [1.0] * 3
        assert not list(folder.rglob("*.part")), at
        were_done.add(report.were_done)
    assert were_done >= {0, 1, 2, 3}


def test_a_damaged_row_is_made_again(suite, tmp_path):
    folder = tmp_path / "run"
    again(suite, folder)
    path = next((folder / "rows").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"parquet is damaged; `discrax bench run` again makes its cell anew"):
        store.read_rows(folder)
    report = again(suite, folder)
    assert (report.were_done, report.ok) == (2, 3)
    assert values(folder) == [1.0] * 3


def test_one_run_a_folder(suite, tmp_path):
    folder = tmp_path / "run"
    holder = "import sys; from discrax.core.files import FolderLock\n"
    holder += f"with FolderLock({str(folder)!r}):\n    print('held', flush=True)\n    sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UnusableFile, match=rf"process {other.pid} on .* is writing there; wait for it or stop it"):
            again(suite, folder)
    finally:
        other.communicate("")
    assert again(suite, folder).ok == 3


def test_a_cache_that_cannot_be_written_is_no_failure_of_a_cell(monkeypatch):
    def unusable(call):
        raise UnusableFile("/cache", "no space left on device")

    cell = Cell((("sampler", "x"),), call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2),
                call("discrax.samplers:rwm"), Budget(1, 1, 1))  # fmt: skip
    monkeypatch.setattr(measure, "target_of", unusable)
    for cells in ([cell], [cell, cell]):
        with pytest.raises(UnusableFile):
            measure.run_cells(cells)


# --- folders that are no run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["compare", "report"])
def test_folders_that_are_no_run_are_sentences(suite, tmp_path, verb):
    def do(folder):
        return compare_runs(folder, folder) if verb == "compare" else write_report(folder)

    with pytest.raises(ValueError, match=r"nope does not exist; `discrax bench run SUITE` makes one"):
        do(tmp_path / "nope")
    with pytest.raises(ValueError, match=r"suite.py is a file, and the folder of a run was expected"):
        do(Path(suite))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty is not a run: it has no run.json"):
        do(tmp_path / "empty")
    again(suite, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "rows")
    if verb == "compare":  # a report says what is still to be run
        with pytest.raises(ValueError, match="holds a run without a single finished cell"):
            do(tmp_path / "run")
    for content in ("{", "[]", "{}"):
        (tmp_path / "run" / "run.json").write_text(content)
        with pytest.raises(ValueError, match=r"run.json (cannot be read|does not describe a run)"):
            do(tmp_path / "run")


def test_a_report_that_cannot_be_written_is_a_sentence(suite, tmp_path):
    again(suite, tmp_path / "run")
    with pytest.raises(UnusableFile, match="it is a file, and a folder was expected"):
        write_report(tmp_path / "run", Path(suite) / "report.html")
    assert len(write_report(tmp_path / "run")) == 2


def test_numbers_of_a_row_name_its_program():
    cell = Cell((("sampler", "x"),), call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2),
                call("discrax.samplers:rwm"), Budget(1, 1, 1))  # fmt: skip
    (row,) = store.rows_of(cell, [Number("value", 1.0)], Timing())
    assert row["program"] == program.program_of(cell)


def test_a_compiler_that_a_signal_ended_is_no_failure_of_its_cell(suite, tmp_path, monkeypatch):
    """A signal to all processes also ends a compiler that a cell waits for, and then the cell fails."""

    def fail(cells, folder, times):
        signal.raise_signal(signal.SIGTERM)
        return [store.rows_of(cell, [], Timing(), "the compiler ended") for cell in cells]

    monkeypatch.setattr(run, "run_cells", fail)
    report = again(suite, tmp_path / "run")
    assert (report.failed, report.is_complete) == (0, False)


def test_a_cell_on_a_device_that_broke_has_no_row(suite, tmp_path, monkeypatch):
    """A fault of one process is an error in all that share its GPU."""
    cells = tuple(run.make_request([suite], Size.QUICK).cells())
    failed = [store.rows_of(cell, [], Timing(), "an illegal address") for cell in cells]
    monkeypatch.setattr(run, "run_cells", lambda cells, folder, times: failed)
    monkeypatch.setattr(run, "device_works", lambda: False)
    with pytest.raises(RuntimeError, match="computes nothing more since an illegal address"):
        run.work(str(tmp_path), True, (cells,))
    assert not (tmp_path / store.ROWS).exists()


def test_cells_that_wait_to_be_timed_are_told(suite, tmp_path):
    cells = run.make_request([suite], Size.QUICK).cells()
    (tmp_path / UNTIMED).mkdir()
    for cell in cells[:2]:
        (tmp_path / UNTIMED / cell.id).touch()
    with Display(cells, {}, {}, False) as display:
        display.update(tmp_path)
        assert display._line().startswith("0/3 cells done, 2 to be timed, 0 failed")


def test_a_run_that_ends_before_cells_are_timed_tells_how_many(suite, tmp_path, monkeypatch):
    cells = run.make_request([suite], Size.QUICK).cells()
    for cell in cells[:2]:
        set_aside(tmp_path / "run", cell, [], kernel_of(cell, target_of(cell.target)))
    monkeypatch.setattr(run, "run_cells", lambda *args, **kwargs: signal.raise_signal(signal.SIGTERM) or [[]])
    report = again(suite, tmp_path / "run")
    assert (report.ok, report.untimed, report.is_complete) == (0, 2, False)
    assert "0 of 3 cells done, 2 more but for their timing in" in str(report)
