"""What users put beside a suite: names of their own, targets, files, and runs that were asked for otherwise before."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discrax.bench.execute import store
from discrax.bench.execute.request import make_request, put_beside, requests_of
from discrax.bench.execute.run import default_folder, run_suites
from discrax.bench.execute.samplers import parse_samplers
from discrax.bench.plan.cell import load_file
from discrax.bench.plan.suite import Size, find
from discrax.bench.report.write import current, make_document

from .own_files import OWN


def test_an_inexact_kernel_is_named_so(files):
    asked = {"samplers": [f"{files}/own.py:Near"], "only": ["rwm", "side=2"], "progress": False}
    run_suites([str(files / "suite.py")], Size.QUICK, out=files / "run", **asked)
    assert dict(make_document(files / "run").facts)["samplers put beside"] == "Near (not exact, as it says itself)"


def test_two_of_one_name_are_refused(files):
    """Of samplers, of tasks, and of a sampler that a run has already."""
    (files / "other").mkdir()
    (files / "other" / "own.py").write_text(OWN.replace("0.1)", "0.4)"))
    here, there, suite = f"{files}/own.py", f"{files}/other/own.py", str(files / "suite.py")
    with pytest.raises(
        ValueError, match=r"called 'ising side=2 Near'.*/own.py:Near, that of the other .*/other/own.py"
    ):
        make_request([suite], Size.QUICK, samplers=[f"{here}:Near", f"{there}:Near"]).cells()
    with pytest.raises(ValueError, match=r"called 'grid RWM'.* the target of one"):
        make_request([suite], Size.QUICK, tasks=[f"{here}:grid", f"{there}:grid"]).cells()
    asked = {"only": ["rwm", "side=2"], "progress": False, "out": files / "run"}
    run_suites([suite], Size.QUICK, samplers=[f"{here}:Near"], **asked)
    with pytest.raises(ValueError, match=r"called 'ising side=2 Near'"):
        run_suites([suite], Size.QUICK, samplers=[f"{there}:Near"], **asked)


def test_where_no_sampler_is_measured_none_is_put_beside():
    for changed in ({"samplers": ["gibbs"]}, {"budget": {"steps": 5}}):
        with pytest.raises(ValueError, match="discs/partition-solve measures no sampler, so that --sampler"):
            make_request(["discs/partition-solve"], Size.QUICK, **changed).cells()
    beside = parse_samplers("gibbs")[0]
    for name in ("discs/gset", "discs/mis-solve", "enhanced-gradient-mcmc/table03", "sgdld/figure01"):
        assert not list(put_beside(list(find(name)[0].cells(Size.QUICK)), beside))
    circuits = list(put_beside(list(find("sgdld/table02")[0].cells(Size.QUICK)), beside))
    assert {cell.measure.address.rpartition(":")[2] for cell in circuits} == {"place"}


def test_a_task_makes_a_target(files):
    suite = [str(files / "suite.py")]
    with pytest.raises(
        ValueError, match="must make a target without arguments, but: missing a required argument: 'side'"
    ):
        make_request(suite, Size.QUICK, tasks=[f"{files}/own.py:needs"])
    with pytest.raises(ValueError, match=r"own\.py:nothing must make a discrax\.Target, but it made None"):
        run_suites(suite, Size.QUICK, out=files / "run", tasks=[f"{files}/own.py:nothing"], progress=False)


def test_the_order_of_what_is_set_does_not_matter(files):
    first, second = {"steps": 5, "chains": 2}, {"chains": 2, "steps": 5}
    suite = [str(files / "suite.py")]
    assert make_request(suite, Size.QUICK, budget=first) == make_request(suite, Size.QUICK, budget=second)
    assert default_folder(suite, Size.QUICK, first) == default_folder(suite, Size.QUICK, second)


def test_a_file_finds_those_beside_it_and_no_other_folders(files):
    for folder in ("a", "b"):
        (files / folder).mkdir()
        (files / folder / "beside_me.py").write_text(f"NAME = {folder!r}")
        (files / folder / "main.py").write_text("from beside_me import NAME")
    assert [load_file(files / folder / "main.py").NAME for folder in ("a", "b")] == ["a", "b"]
    assert "beside_me" not in sys.modules
    assert str(files / "a") not in sys.path


def test_cells_that_an_edited_suite_has_no_more_are_not_shown(files):
    """They have the labels of those that took their place."""
    suite = files / "suite.py"
    run_suites([str(suite)], Size.QUICK, out=files / "run", only=["rwm", "side=2"], progress=False)
    rows = store.read_rows(files / "run")
    old = [row | {"cell": "of-another", "value": 99.0} for row in rows]
    planned = {"small/lattice": {cell.id: cell for each in find(str(suite)) for cell in each.cells(Size.QUICK)}}
    assert current(planned, [*rows, *old]) == rows
    of_others = [row | {"labels": row["labels"] | {"sampler": "Mine"}} for row in old]
    assert current(planned, [*rows, *of_others]) == [*rows, *of_others]


def test_rows_and_descriptions_of_another_kind_are_sentences(files):
    run, suite = files / "run", str(files / "suite.py")
    asked = {"only": ["rwm", "side=2"], "progress": False, "out": run}
    run_suites([suite], Size.QUICK, **asked)
    pq.write_table(pa.table({"a": [1]}), run / "rows" / "other.parquet")
    with pytest.raises(ValueError, match=r"other\.parquet is damaged"):
        store.read_rows(run)
    assert run_suites([suite], Size.QUICK, **asked).were_done == 1
    about = store.read_about(run)
    for wrong in ({"requests": [{}]}, {"requests": [about["requests"][0] | {"size": "huge"}]}):
        with pytest.raises(ValueError, match=r"What run.json says was asked for is no request \((KeyError|ValueError)"):
            requests_of(about | wrong)
