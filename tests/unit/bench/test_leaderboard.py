"""Samplers over tasks: ranks, ties, and the page."""

import csv
import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace

import pytest

from discrax.bench.commands import main
from discrax.bench.execute import store
from discrax.bench.plan.cell import call
from discrax.bench.plan.suite import Suite
from discrax.bench.report import leaderboard
from discrax.bench.report.leaderboard import make_standings, overall, rank_all, write_leaderboard

from .browser import open_page
from .fake_rows import cell, rows

ESS = {"fast": 0.20, "same": 0.19, "slow": 0.02}


def measured(sampler, task, ess, *, seed=0, sites="100", device="cpu", **more):
    of = cell(sampler, "", seed=seed, task=task, sites=sites)
    numbers = {"ESS_t": (1000 * ess, 80 * ess), "ESS_n": (2500 * ess, 200 * ess), **more}
    return [row | {"device": device} for row in rows(numbers, of)]


def of_suite(found, suite="fake/all"):
    return [row | {"suite": suite, "run": "run"} for row in leaderboard.add_facts(found)]


def ranks(standings, board="ESS per second", task="ising sites=100"):
    return {each.sampler: each.rank for each in standings if (each.board, each.task) == (board, task)}


def test_within_two_standard_errors_a_rank_is_shared():
    assert rank_all([(10.0, 1.0), (7.1, 1.0), (7.3, 1.0), (2.0, 0.1)]) == [1, 2, 1, 4]
    assert rank_all([(10.0, 0.0), (9.9, 0.0), (9.9, 0.1)]) == [1, 2, 1]
    assert rank_all([]) == []


def test_samplers_are_ranked_in_their_task():
    found = of_suite([row for name, ess in ESS.items() for row in measured(name, "ising", ess)])
    standings = make_standings(found)
    for board in ("ESS per second", "ESS per 10,000 evaluations"):
        assert ranks(standings, board) == {"fast": 1, "same": 1, "slow": 3}
    best = standings[0]
    assert (best.paper, best.family, best.metric, best.sampler) == ("fake", "ising", "ESS_t", "fast")
    assert best.value == pytest.approx(200.0)
    assert best.error == pytest.approx(80 * 0.20 / 4)  # of sixteen chains
    assert not [each for each in standings if each.board == "objective"]


def test_where_no_error_is_known_there_is_no_rank():
    found = [row for name, ess in ESS.items() for row in measured(name, "ising", ess)]
    found = [row | {"std": None} if row["labels"]["sampler"] == "slow" else row for row in found]
    standings = make_standings(of_suite(found))
    assert ranks(standings) == {"fast": 1, "same": 1, "slow": None}


def test_two_kernels_of_one_name_are_two_samplers():
    def by(place, seed, version):
        made = replace(cell("Mine", "", seed=seed, task="ising", sites="100"), sampler=call(f"{place}:Mine"))
        return [row | {"program": f"engine-{version}"} for row in rows({"ESS_n": (10.0 + seed, 1.0)}, made)]

    usual = measured("fast", "ising", 0.2)
    standings = make_standings(of_suite([*by("/a/k.py", 0, "v1"), *by("/a/k.py", 1, "v1"), *usual]))
    assert {each.sampler: each.seeds for each in standings if each.metric == "ESS_n"}["Mine"] == 2
    standings = make_standings(of_suite([*by("/a/k.py", 0, "v1"), *by("/b/k.py", 1, "v1"), *usual]))
    assert {each.sampler: each.seeds for each in standings}.items() >= {
        "Mine (/a/k.py)": 1,
        "Mine (/b/k.py)": 1,
    }.items()
    standings = make_standings(of_suite([*by("/a/k.py", 0, "v1"), *by("/a/k.py", 1, "v2"), *usual]))
    assert {each.sampler: each.seeds for each in standings}.items() >= {"Mine (v1)": 1, "Mine (v2)": 1}.items()


def test_the_usual_weight_needs_no_name():
    found = [row for name in ("fast", "slow") for row in measured(name, "ising", ESS[name])]
    said = [row | {"labels": row["labels"] | {"weight_fn": "sqrt(t)"}} for row in measured("fast", "potts", 0.2)]
    other = [row | {"labels": row["labels"] | {"weight_fn": "t/(t+1)"}} for row in measured("fast", "potts", 0.1)]
    standings = make_standings(of_suite(found + said + other))
    assert {each.sampler for each in standings} == {"fast", "slow", "fast t/(t+1)"}


def test_a_run_is_a_link_to_its_page_where_that_lies_beside(written, tmp_path):
    folder = written[0].parent.parent
    (tmp_path / "first.html").write_text("a page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discrax.bench.report.write.find", lambda name: [])
        page, plain, *_ = write_leaderboard([folder / "first", folder / "second"], tmp_path)
    assert '<a href="first.html">first</a>' in page.read_text(encoding="utf-8")
    assert 'href="second.html"' not in page.read_text(encoding="utf-8")
    assert "- [first](first.html): " in plain.read_text(encoding="utf-8")


def test_what_is_too_short_or_failed_has_no_rank():
    short = {"is_long_enough": 0.0, "autocorrelation_times": 2.0}
    found = measured("fast", "ising", 0.2) + measured("slow", "ising", 0.1) + measured("short", "ising", 9.0, **short)
    found += [row | {"device": "cpu"} for row in rows({}, cell("broken", "", task="ising", sites="100"), error="no")]
    standings = make_standings(of_suite(found))
    assert ranks(standings) == {"fast": 1, "slow": 2, "short": None, "broken": None}
    status = {each.sampler: each.status for each in standings}
    assert status == {"fast": "ok", "slow": "ok", "short": "too short", "broken": "failed"}
    lonely = make_standings(of_suite(found[:2] + [row for row in found if row["labels"]["sampler"] == "short"]))
    assert ranks(lonely) == {"fast": None, "short": None}  # nothing to be compared with, but shown


def test_only_equals_are_compared():
    """Another device is another task where seconds count, another budget always; one sampler alone has no rank."""
    found = measured("fast", "ising", 0.2) + measured("slow", "ising", 0.1)
    found += measured("fast", "ising", 0.5, device="gpu", seed=1) + measured("slow", "ising", 0.4, device="gpu", seed=1)
    found += measured("alone", "potts", 0.3)
    standings = make_standings(of_suite(found))
    timed = {each.task for each in standings if each.board == "ESS per second"}
    assert timed == {f"ising sites=100 (16 chains, 20 steps, {device})" for device in ("cpu", "gpu")}
    counted = {each.task: each.seeds for each in standings if each.board == "ESS per 10,000 evaluations"}
    assert counted == {"ising sites=100": 2}
    longer = measured("fast", "ising", 0.2)
    longer += measured("other", "ising", 0.3)
    longer = [row | {"settings": row["settings"].replace('"num_samples": 20', '"num_samples": 90')} for row in longer]
    standings = make_standings(of_suite(found[:4]) + of_suite(longer))
    assert ranks(standings, task="ising sites=100 (16 chains, 90 steps, cpu)") == {"other": 1, "fast": 2}
    assert ranks(standings, task="ising sites=100 (16 chains, 20 steps, cpu)") == {"fast": 1, "slow": 2}
    swept = rows({"ESS_n": (1.0, 0.1)}, cell("LBP", "", task="ising", sites="100", rate="0.5"))
    assert ranks(make_standings(of_suite(found[:4] + swept))).keys() == {"fast", "slow"}


def test_objectives_have_their_direction():
    def searched(sampler, task, **numbers):
        return rows(numbers | {"instances": 4}, cell(sampler, "", task=task))

    found = searched("good", "cut", ratio=(0.99, 0.01)) + searched("poor", "cut", ratio=(0.9, 0.01), size=(9e9, 1.0))
    for name, cut in (("good", 0.1), ("poor", 0.2)):
        found += searched(name, "parts", edge_cut_ratio=(cut, 0.01))
    standings = make_standings(of_suite(found))
    for task in ("cut", "parts"):
        assert ranks(standings, "objective", task) == {"good": 1, "poor": 2}
    assert standings[0].error == pytest.approx(0.01 / 2)  # of four instances


def test_mean_ranks_are_over_the_tasks_that_were_run():
    found = []
    for task, values in {"a": (3, 2, 1), "b": (1, 2, 3), "c": (3, 2, None)}.items():
        for sampler, ess in zip("xyz", values, strict=True):
            found += [] if ess is None else measured(sampler, task, ess)
    found += measured("once", "a", 9)
    order = overall(each for each in make_standings(of_suite(found)) if each.board == "ESS per second")
    assert [(each.sampler, each.num_tasks, each.num_first) for each in order] == [
        ("x", 3, 1), ("y", 3, 0), ("z", 2, 1), ("once", 1, 1),
    ]  # fmt: skip
    assert [each.mean_rank for each in order] == pytest.approx([2.0, 7 / 3, 2.5, 1.0])  # x: 2, 3, 1


# --- The page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two runs: three samplers on four tasks, and a further sampler on one."""
    folder = tmp_path_factory.mktemp("runs")
    tasks = [("ising", "100"), ("ising", "400"), ("potts", "100"), ("</script>&", "100")]
    planned = [cell(sampler, "", task=task, sites=sites) for task, sites in tasks for sampler in ESS]
    made = Suite("fake/all", "Numbers nobody measured.", lambda size: planned)
    first = [measured(name, task, ess, sites=sites) for task, sites in tasks for name, ess in ESS.items()]
    second = [measured("mine", "ising", 0.5), measured("other", "my-task", 0.5), measured("mine", "my-task", 0.1)]
    for name, groups in (("first", first), ("second", second)):
        for group in groups:
            store.write_rows(folder / name, [row | {"labels": json.dumps(row["labels"])} for row in group])
        store.write_about(folder / name, {"suites": ["fake/all"], "size": "quick"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discrax.bench.report.write.find", lambda name: [made])
        return write_leaderboard([folder / "first", folder / "second"], folder / "out")


def test_the_page_holds_every_row(written):
    page, plain, sheet, rows_sheet = (path.read_text(encoding="utf-8") for path in written)
    assert not re.search(r"https?://|@import|<link[^>]+stylesheet|src=", page)
    packed = re.search(r'id="packed">([^<]*)<', page)
    assert packed is not None
    assert gzip.decompress(b64decode(packed.group(1))).decode() == rows_sheet
    lines = list(csv.DictReader(rows_sheet.splitlines()))
    assert len(lines) == 15
    assert all(line["ESS_n"] and line["ESS_t"] and line["ESS_n standard error"] for line in lines)
    assert {line["run"] for line in lines} == {"first", "second"}
    assert {line["suite"] for line in lines} == {"fake/all", "own"}
    standings = list(csv.DictReader(sheet.splitlines()))
    assert len(standings) == 2 * 15
    assert next(line["sampler"] for line in standings if line["task"] == "ising sites=100") == "mine"
    assert "| ising sites=100 | 2: 200.0 ± 4.000 | 2: 190.0 ± 3.800 | 1: 500.0 ± 10.00 | 4: 20.00 ± 0.400 |" in plain


def test_the_page_works_in_a_browser(written, tmp_path):
    data, page = open_page(written[0], tmp_path)
    assert data == {"errors": "0", "rows": "15", "selftest": "ok"}
    table = page.split('id="overall"')[1].split("</table>")[0]
    shown = re.findall(r"<tr[^>]*><th[^>]*>([^<]*)</th><td>([^<]*)</td><td>(\d+) of 5</td><td>([^<]*)</td>", table)
    text = written[1].read_text(encoding="utf-8").split("## ESS per second\n")[1].split("\n#")[0]
    expected = [line.strip("| ").split(" | ") for line in text.strip().splitlines()[2:]]
    assert [[name, mean, tasks, first.replace("-", "0")] for name, mean, tasks, first in shown] == expected


def test_it_is_a_command(tmp_path, capsys):
    store.write_about(tmp_path / "run", {"suites": [], "size": "quick"})
    main(["leaderboard", str(tmp_path / "run"), "--out", str(tmp_path / "out")])
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "out" / "leaderboard.html")
    assert "nothing to rank yet" in (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="one or more runs"):
        write_leaderboard([], tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        write_leaderboard([tmp_path / "none"], tmp_path)
