"""Cells are keyed by the code of what they ran: a change of a file changes the cells that use it, and no others."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from discrax.bench.execute import program, sources, store
from discrax.bench.execute.run import run_suites
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import Size, shipped_suites
from discrax.bench.report.write import make_document

PACKAGE = sources.PACKAGE


def cell(sampler: str, /, **settings) -> Cell:
    target = call("discrax.bench.experiments.models:ising_disc", side=3, coupling=0.1, mean=0.0, spread=0.1)
    return Cell((("sampler", sampler),), target, call(sampler, **settings), Budget(1, 1, 1))


@pytest.fixture
def edited(monkeypatch):
    """Programs of cells once a file of the package reads differently."""

    def of(name: str, *cells: Cell) -> list[str]:
        assert (PACKAGE / name).is_file()
        with monkeypatch.context() as patched:
            original = sources.read
            patched.setattr(sources, "read", lambda path: original(path) + (b"\n#" if path == PACKAGE / name else b""))
            _forget()
            found = [program.program_of(each) for each in cells]
        _forget()
        return found

    return of


def _forget() -> None:
    sources._digest_of_package.cache_clear()
    program._of_engine.cache_clear()


CELLS = (
    cell("discrax.samplers:pas"),
    cell("discrax.samplers:gibbs"),
    cell("discrax.bench.papers.discs.kernels:untuned", sampler="pas"),
)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("samplers/gibbs.py", (False, True, False)),
        ("samplers/locally_balanced.py", (True, False, True)),
        ("samplers/selection.py", (True, False, True)),  # which PAS imports
        ("bench/papers/discs/kernels.py", (False, False, True)),
        ("targets/quadratic.py", (True, True, True)),
        ("targets/fhmm.py", (False, False, False)),
        ("bench/experiments/ess.py", (True, True, True)),
        ("bench/experiments/optimisation.py", (False, False, False)),
        ("sampling/run.py", (True, True, True)),
        ("samplers/registry.py", (False, False, False)),
        ("bench/report/plots.py", (False, False, False)),
        ("bench/papers/discs/sampling.py", (False, False, False)),
        ("bench/execute/store.py", (False, False, False)),
    ],
)
def test_a_file_changes_the_cells_that_use_it(edited, name, changes):
    before = [program.program_of(each) for each in CELLS]
    assert tuple(a != b for a, b in zip(before, edited(name, *CELLS), strict=True)) == changes


def test_versions_count(monkeypatch):
    found = []
    for version in ("0", "1"):
        monkeypatch.setattr(program, "version", lambda name, version=version: version)
        _forget()
        found.append(program.program_of(CELLS[0]))
    _forget()
    assert found[0] != found[1]


def test_every_cell_knows_its_files():
    """Of each suite the first cell: no kernel, target or measure of the package is out of sight."""
    seen = set()
    for suite in shipped_suites().values():
        first = next(iter(suite.cells(Size.QUICK)))
        for each in (first.target, first.measure, first.sampler):
            seen.add(each.address)
            assert program._files_at(each.address), each.address
    assert len(seen) > 20


def test_threads_can_ask_at_the_same_time():
    texts = [path.read_bytes() for path in sorted((PACKAGE / "solving").glob("*.py"))]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: sources._scan.__wrapped__(text, "discrax"), texts))
    assert len(found) == len(texts)


SUITE = """
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.measure import Experiment, Number, Timing
from discrax.bench.plan.suite import suite


def constant():
    return Experiment(lambda cell: ([Number("value", 1.0)], Timing()))


@suite("quick/cells", "cells that take no time")
def cells(size):
    for name in ("rwm", "gibbs"):
        yield Cell(
            labels=(("task", "none"), ("sampler", name)),
            target=call("discrax.bench.experiments.models:bernoulli", num_sites=4, low=0.2),
            sampler=call(f"discrax.samplers:{name}"),
            budget=Budget(1, 1, 1),
            measure=call(f"{__file__}:constant"),
        )
"""
KERNEL = """
import discrax as dx
import helper


class Mine(dx.samplers.rwm):
    pass
"""


def test_editing_ones_kernel_runs_its_cells_again_and_no_others(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("suite.py", SUITE), ("mine.py", KERNEL), ("helper.py", "")):
        (tmp_path / name).write_text(text)

    def run(if_changed):
        mine = [f"{tmp_path}/mine.py:Mine"]
        settings = {"samplers": mine, "if_changed": if_changed, "check": False, "progress": False}
        run_suites([str(tmp_path / "suite.py")], Size.QUICK, out=tmp_path / "run", **settings)
        rows = store.read_rows(tmp_path / "run")
        files = (tmp_path / "run" / "rows").iterdir()
        written = {path.stem: path.stat().st_mtime_ns for path in files}
        return {row["labels"]["sampler"]: written[row["cell"]] for row in rows}

    before = run("refuse")
    assert run("refuse") == before
    for name in ("mine.py", "helper.py"):  # what it imports beside it counts too
        (tmp_path / name).write_text(Path(tmp_path / name).read_text() + "\n# edited\n")
        with pytest.raises(ValueError, match="holds 1 of 3 cells that another version"):
            run("refuse")
        assert run("keep") == before
        after = run("again")
        assert {name for name in after if after[name] != before[name]} == {"Mine"}
        before = after


def test_the_report_says_where_code_changed_between_cells(tmp_path):
    kernel = tmp_path / "mine.py"
    kernel.write_text("import discrax as dx\nclass Mine(dx.samplers.rwm):\n    pass\n")
    (tmp_path / "suite.py").write_text(SUITE)
    for seeds in (1, 2):
        kernel.write_text(kernel.read_text() + f"# version {seeds}\n")
        asked = {"samplers": [f"{kernel}:Mine"], "seeds": seeds, "check": False, "progress": False}
        run_suites([str(tmp_path / "suite.py")], Size.QUICK, out=tmp_path / "run", if_changed="keep", **asked)
    said = dict(make_document(tmp_path / "run").facts)["program"]
    assert "2 cells are by several versions of their code, and means are over all: none Mine" in said


def test_a_kernel_that_is_named_by_its_module_is_followed_too(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_module_of_mine.py").write_text("import discrax as dx\nclass Mine(dx.samplers.rwm):\n    pass\n")
    (tmp_path / "what_makes_it.py").write_text(
        "import a_module_of_mine\ndef make():\n    return a_module_of_mine.Mine()\n"
    )
    (tmp_path / "suite.py").write_text(SUITE)
    for address in ("a_module_of_mine:Mine", "what_makes_it:make", f"{tmp_path}/what_makes_it.py:make"):
        asked = {"samplers": [address], "check": False, "progress": False, "only": ["rwm"]}
        run = partial(run_suites, [str(tmp_path / "suite.py")], Size.QUICK, out=tmp_path / address[-9:], **asked)
        assert run().ok == 2
        assert run().were_done == 2
        with (tmp_path / "a_module_of_mine.py").open("a") as file:
            file.write("# edited\n")
        with pytest.raises(ValueError, match="holds 1 of 2 cells that another version"):
            run()
    assert sources.file_of("numpy.linalg") is None  # installed
    assert sources.file_of("json") is None
