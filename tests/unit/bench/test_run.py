"""A run is complete, can be killed and taken up, and does not depend on who works on it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discrax.bench.execute import cells, stages, store
from discrax.bench.execute.executors import get_executor
from discrax.bench.execute.run import run_suites
from discrax.bench.experiments import optimisation
from discrax.bench.plan.suite import Size
from discrax.bench.report.write import write_report
from discrax.sampling.folder import FolderPlace
from discrax.sampling.run_files import read_npz, write_npz
from discrax.solving.places import Places
from repeats import repeats

HERE = Path(__file__).parent
SUITE = str(HERE / "tiny_suite.py")
_NOT_COMPARED = ("seconds", "time", "microseconds", "ESS_t", "ESS_all_t")


def numbers(run: Path) -> dict[tuple, float | None]:
    """What must not depend on how a run came about: everything but seconds."""
    return {
        (row["name"], row["metric"], row["x"], row["status"], row["error"]): row["value"]
        for row in store.read_rows(run)
        if not row["metric"].startswith(_NOT_COMPARED)
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    report = run_suites([SUITE], Size.QUICK, out=run, progress=False)
    assert (report.ok, report.failed, report.total, report.were_done) == (4, 1, 5, 0)
    return run


def test_rows_say_all(undisturbed):
    rows = store.read_rows(undisturbed)
    lost = [row for row in rows if row["status"] == "failed"]
    assert len(lost) == 1
    assert lost[0]["error"].startswith("ValueError: high - low < 0")
    assert lost[0]["value"] is None
    good = next(row for row in rows if row["metric"] == "EJD" and row["labels"]["sampler"] == "ARWM")
    assert good["value"] > 1
    assert good["seconds"] > 0
    assert good["compile_seconds"] >= 0
    assert '"jax"' in good["versions"]
    assert good["device"]
    assert '"num_samples": 60' in good["settings"]


def test_again_does_nothing(undisturbed):
    before = {path: path.stat().st_mtime_ns for path in (undisturbed / "rows").iterdir()}
    report = run_suites([SUITE], Size.QUICK, out=undisturbed, progress=False)
    assert (report.were_done, report.ok, report.failed) == (5, 4, 1)
    assert {path: path.stat().st_mtime_ns for path in (undisturbed / "rows").iterdir()} == before
    run_suites([SUITE], Size.QUICK, out=undisturbed, progress=False, retry_failed=True)
    after = {path: path.stat().st_mtime_ns for path in (undisturbed / "rows").iterdir()}
    assert sum(after[path] != before[path] for path in before) == 1
    with pytest.raises(ValueError, match="holds a run with other size"):
        run_suites([SUITE], Size.DEFAULT, out=undisturbed, progress=False)


def test_killed_and_taken_up(undisturbed, tmp_path):
    run = tmp_path / "killed"
    command = [sys.executable, "-c", "from discrax.cli import main; main()", "bench", "run", SUITE, "--quick"]
    process = subprocess.Popen([*command, "--out", str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not list((run / "rows").glob("*.parquet")):
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = len(list((run / "rows").glob("*.parquet")))
    assert 1 <= done < 5
    report = run_suites([SUITE], Size.QUICK, out=run, progress=False)
    assert report.were_done == done
    assert numbers(run) == numbers(undisturbed)


class Killed(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@pytest.mark.parametrize(
    "together",
    [pytest.param(True, id="together"), *repeats([], [pytest.param(False, id="alone", marks=pytest.mark.slow)])],
)
def test_a_cell_that_takes_long_goes_on_where_it_was(tmp_path, monkeypatch, together):
    small = tmp_path / "small_suite.py"
    text = Path(SUITE).read_text().replace('("RWM-1", None), ("ARWM", "auto")', '("ARWM", "auto"),')
    small.write_text(text if together else text.replace('("C1", 0.25), ("C2", 0.15)', '("C1", 0.25),'))
    monkeypatch.setattr(stages, "FIRST", 20)  # three stages
    monkeypatch.setattr(cells, "_LONG", {"cpu": 0})
    monkeypatch.setattr("discrax.sampling.run.chunk_length", lambda *_: 20)
    original, left, made = FolderPlace.commit, [10**6], []

    def commit(self, run, done):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        original(self, run, done)
        made.append(done.filled)

    monkeypatch.setattr(FolderPlace, "commit", commit)
    run_suites([str(small)], Size.QUICK, out=tmp_path / "whole", progress=False, together=together)
    whole, left[0] = list(made), 3
    with pytest.raises(Killed):
        run_suites([str(small)], Size.QUICK, out=tmp_path / "killed", progress=False, together=together)
    assert len(list((tmp_path / "killed" / cells.BEGUN).iterdir())) == 1
    made.clear()
    run_suites([str(small)], Size.QUICK, out=tmp_path / "killed", progress=False, together=together)
    assert made == whole[2:]
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    assert not any((tmp_path / "killed" / cells.BEGUN).glob("*"))


SEARCHES = """
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import figure, suite


@suite("tiny/searches", "two in one program, and two one after the other", figure("Size", "bars", metric="size"))
def searches(effort):
    for name in ("sets", "parts"):
        yield Cell(
            labels=(("task", name), ("sampler", "PAS")),
            target=call(f"{__file__}:{name}"),
            sampler=call("discrax.samplers:pas"),
            budget=Budget(2, 0, 160),
            measure=call("discrax.bench.experiments.optimisation:annealing", hot=1.0, cold=0.1),
        )


def sets():
    from discrax.bench.papers.discs.instances import er_mis

    return er_mis(low=30, high=40, density=0.3, count=2)


def parts():
    from discrax.bench.experiments.optimisation import Instances
    from discrax.problems import Partition
    from discrax.problems.generators import erdos_renyi

    return Instances(tuple(Partition(erdos_renyi(12, 0.4, seed=seed), 3) for seed in (1, 2)))
"""
CHILD = """
import os, signal, sys
from discrax.bench.execute.run import run_suites
from discrax.bench.experiments import optimisation
from discrax.bench.plan.suite import Size
from discrax.solving import annealing, clock, search
from discrax.solving.folder import SearchFolder

optimisation._LONG = {"cpu": 0}
annealing.MOST_TURNS = 4
search._SECONDS_BETWEEN_FILES = clock._SECONDS_BETWEEN_REPORTS = 0.0  # every block is reported, and kept
clock._SHARE_OF_REPORTS = float("inf")
write = SearchFolder.write_chains


def kill(self, number, about, arrays):
    is_written = write(self, number, about, arrays)
    if number == int(sys.argv[3]) and about["num_steps"] > 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return is_written


SearchFolder.write_chains = kill
run_suites([sys.argv[1]], Size.QUICK, out=sys.argv[2], executor="in-process", progress=False)
"""


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on_where_it_was(tmp_path, monkeypatch):
    """A kill in the first cell, one in the second problem of the second, and then no more."""
    suite, out = tmp_path / "searches.py", tmp_path / "killed"
    suite.write_text(SEARCHES)
    run_suites([str(suite)], Size.QUICK, out=tmp_path / "whole", progress=False)
    for number in (0, 1):
        command = [sys.executable, "-c", CHILD, str(suite), str(out), str(number)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        (file,) = out.glob(f"{cells.BEGUN}/*/*/chains-{number}.npz")
        about, arrays = read_npz(file)
        write_npz(file, about | {"seconds": about["seconds"] + 1000}, arrays)  # as if it had taken as long
    assert len(list((out / "rows").glob("*.parquet"))) == 1
    monkeypatch.setattr(optimisation, "_LONG", {"cpu": 0})
    taken, restore = [], Places.restore
    monkeypatch.setattr(Places, "restore", lambda self, *saved: taken.append(saved[0]) or restore(self, *saved))
    run_suites([str(suite)], Size.QUICK, out=out, progress=False)
    assert [each["num_steps"] for each in taken] == [about["num_steps"]]  # of the second problem alone
    assert not any((out / cells.BEGUN).glob("*"))
    whole, found = (
        {key: value for key, value in numbers(run).items() if "best_" not in key[1]}  # seen when a clock says so
        for run in (tmp_path / "whole", out)
    )
    assert whole == found
    assert {value for (_, metric, _, status, _), value in found.items() if metric == "instances"} == {2}
    times = [(row["value"], row["seconds"]) for row in store.read_rows(out) if row["metric"] == "time_s"]
    assert len(times) == 2
    assert all(1000 < value == seconds < 1200 for value, seconds in times)


@pytest.mark.parametrize("name", ["pool", "in-process"])
def test_executors_agree(undisturbed, tmp_path, name):
    run_suites([SUITE], Size.QUICK, out=tmp_path, executor=name, workers=2, progress=False)
    assert numbers(tmp_path) == numbers(undisturbed)


@pytest.mark.slow
def test_ray_agrees(undisturbed, tmp_path, cluster):
    executor = get_executor("ray", address=cluster, workers=2)
    run_suites([SUITE], Size.QUICK, out=tmp_path, executor=executor, only=["RWM-1"], progress=False)
    wanted = {key: value for key, value in numbers(undisturbed).items() if "RWM-1" in key[0]}
    assert wanted
    assert numbers(tmp_path) == wanted


def test_report_with_a_sampler_of_the_users_own(tmp_path):
    small = tmp_path / "small_suite.py"
    small.write_text(Path(SUITE).read_text().replace('("C1", 0.25), ("C2", 0.15)', '("C1", 0.25),'))
    mine = f"{HERE / 'my_kernel.py'}:TwoFlips"
    run_suites([str(small)], Size.QUICK, out=tmp_path / "run", samplers=[mine], progress=False)
    html, markdown = write_report(tmp_path / "run")
    line = next(line for line in markdown.read_text().splitlines() if line.startswith("| TwoFlips |"))
    assert float(line.split(" | ")[1].split(" ")[0]) > 0  # its jump distance, in the column N=100 C1
    other = next(line for line in markdown.read_text().splitlines() if line.startswith("| RWM-1 |"))
    assert " / 0.750 |" in other  # printed
    assert "too short" in other  # so it is not compared
    assert "<svg" in html.read_text()
