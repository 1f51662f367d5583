import io
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from discrax.bench.execute import store
from discrax.bench.execute.request import put_beside
from discrax.bench.execute.samplers import Beside
from discrax.bench.plan.cell import call
from discrax.bench.plan.suite import Size, Table, find, note
from discrax.bench.report import compare, looks, plots, theory
from discrax.bench.report import write as report
from discrax.bench.report.grid import make_grid, number_text, ratio_text, shade
from discrax.bench.report.page import svg_of

from . import fake_rows
from .fake_rows import EJD, ESS, SECONDS, bernoulli, cell, rows, sampling


def entry(grid, head, *column):
    line = next(line for line in grid.lines if line.head == head)
    return line.entries[grid.columns.index(column)]


# --- Tables ----------------------------------------------------------------------------------------------------------


def test_a_ratio_is_ours_over_print():
    grid = make_grid(EJD, rows({"EJD": (23.4 * 1.05, 0.5), "acceptance": 0.57}, bernoulli("ALBP", "sqrt(t)")))
    found = entry(grid, ("ALBP", "sqrt(t)"), "100", "C1")
    assert found.paper == 23.40
    assert found.ours == pytest.approx(24.57)
    assert found.std == 0.5
    assert found.ratio == pytest.approx(1.05)
    assert found.shade == "even"
    assert grid.median_ratio == pytest.approx(1.05)
    assert (grid.num_at_par, len(grid.ratios)) == (1, 1)


def test_print_gives_the_shape_of_a_grid():
    grid = make_grid(EJD, [])
    assert len(grid.lines) == 15
    assert grid.lines[0].head == ("RWM-1", "")
    assert grid.columns[:4] == (("100", "C1"), ("100", "C2"), ("100", "C3"), ("800", "C1"))
    assert {found.status for found in grid.entries} == {"missing"}
    assert all(found.paper is not None for found in grid.entries)
    assert grid.median_ratio is None


def test_ours_is_multiplied_by_the_factor():
    grid = make_grid(ESS, rows({"ESS_per_step": (0.01, 0.002)}, bernoulli("RWM-1")))
    found = entry(grid, ("RWM-1", ""), "100", "C1")
    assert found.ours == pytest.approx(20.0)
    assert found.std == pytest.approx(4.0)
    assert found.ratio == pytest.approx(20.0 / 18.85)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.5, "good"), (1.1, "good"), (1.09, "even"), (0.9, "even"), (0.899, "low"), (0.5, "low"), (0.49, "bad")],
)
def test_shades(ratio, expected):
    assert shade(ratio) == expected


def test_a_low_ratio_has_its_note_or_is_unexplained():
    noted = rows({"EJD": 0.3}, bernoulli("LBP-1", "sqrt(t)")) + rows({"EJD": 0.6}, bernoulli("LBP-1", "t/(t+1)"))
    grid = make_grid(EJD, noted + rows({"EJD": 10.0}, bernoulli("ALBP", "sqrt(t)")))
    explained = entry(grid, ("LBP-1", "sqrt(t)"), "100", "C1")
    assert (explained.shade, explained.footnote, explained.is_unexplained) == ("bad", 1, False)
    assert entry(grid, ("LBP-1", "t/(t+1)"), "100", "C1").footnote == 1
    unexplained = entry(grid, ("ALBP", "sqrt(t)"), "100", "C1")
    assert (unexplained.shade, unexplained.footnote, unexplained.is_unexplained) == ("bad", None, True)
    assert grid.footnotes == ("The chains are too short for it.",)
    assert grid.num_unexplained == 1


def test_a_note_on_a_ratio_that_is_high_is_not_shown():
    assert make_grid(EJD, rows({"EJD": 2.0}, bernoulli("LBP-1", "sqrt(t)"))).footnotes == ()


def test_a_failed_cell_keeps_its_error():
    grid = make_grid(EJD, rows({}, bernoulli("ARWM"), error="ValueError: no."))
    found = entry(grid, ("ARWM", ""), "100", "C1")
    assert (found.status, found.error, found.ours, found.paper) == ("failed", "ValueError: no.", None, 3.85)


def test_seconds_are_shown_and_not_judged():
    found = entry(make_grid(SECONDS, rows({"time_s": 0.6}, bernoulli("RWM-1"))), ("RWM-1", ""), "100", "C1")
    assert found.ratio == pytest.approx(0.6 / 6.26)
    assert (found.shade, found.is_unexplained) == ("", False)


def test_a_sampler_that_is_not_in_print_is_a_further_line():
    grid = make_grid(EJD, rows({"EJD": 30.0}, bernoulli("mine")) + rows({"EJD": 1.0}, bernoulli("ARWM")))
    assert grid.lines[-1].head == ("mine", "")
    assert [line.is_printed for line in grid.lines] == [True] * 15 + [False]
    found = entry(grid, ("mine", ""), "100", "C1")
    assert (found.ours, found.ratio, found.shade) == (30.0, None, "")


def test_rows_of_other_tasks_and_settings():
    other = rows({"EJD": 5.0}, cell("ARWM", "", task="ising", N=100, config="C1"))
    assert all(found.status == "missing" for found in make_grid(EJD, other).entries)
    grid = make_grid(EJD, rows({"EJD": 5.0}, bernoulli("ARWM", size="50")))
    assert grid.columns[-1] == ("50", "C1")
    assert entry(grid, ("ARWM", ""), "50", "C1").ours == 5.0


def test_seeds_are_averaged_and_the_newest_of_a_seed_counts():
    def measured(value, seed, finished):
        return [row | {"seed": seed, "finished": finished} for row in rows({"EJD": value}, bernoulli("ARWM"))]

    grid = make_grid(
        EJD, measured(9.0, 0, "2026-01-01") + measured(3.0, 0, "2026-01-02") + measured(5.0, 1, "2026-01-01")
    )
    assert entry(grid, ("ARWM", ""), "100", "C1").ours == 4.0


def test_derived_rows_replace_those_they_come_from():
    def best(found):
        top = max(found, key=lambda row: row["value"])
        return [*found, top | {"labels": {name: text for name, text in top["labels"].items() if name != "rate"}}]

    runs = [
        row
        for rate, value in (("0.3", 20.0), ("0.6", 25.0))
        for row in rows({"EJD": value}, cell("GLBP", "sqrt(t)", task="bernoulli", N=100, config="C1", rate=rate))
    ]
    grid = make_grid(replace(EJD, derive=best), runs)
    assert entry(grid, ("GLBP", "sqrt(t)"), "100", "C1").ours == 25.0
    assert len(grid.lines) == 15
    apart = make_grid(EJD, runs)
    assert [line.head for line in apart.lines[15:]] == [
        ("GLBP", "sqrt(t)", "rate=0.3"),
        ("GLBP", "sqrt(t)", "rate=0.6"),
    ]


def test_a_table_without_print():
    table = Table("Ours alone", "", 0, "EJD", "EJD", ("N",), notes=(note("Never seen."),))
    grid = make_grid(table, rows({"EJD": 2.0}, bernoulli("ARWM")))
    assert (grid.has_print, grid.columns, grid.lines[0].head) == (False, (("100",),), ("ARWM", ""))


def test_numbers_as_text():
    assert [number_text(x) for x in (None, 0.0, 0.0123, 1.234, 123.45, 12345.6, 1e-5)] == [
        "-", "0.000", "0.012", "1.23", "123.5", "12,346", "1.00e-05",
    ]  # fmt: skip
    assert [ratio_text(x) for x in (1.234, 0.8985, 1.0999)] == ["1.23", "0.898", "1.100"]


# --- Plots -----------------------------------------------------------------------------------------------------------

PLOTS = fake_rows.every_plot()


@pytest.mark.parametrize(("kind", "options", "drawn"), PLOTS, ids=[plot[0] for plot in PLOTS])
def test_every_kind_is_drawn(kind, options, drawn):
    figure = plots.draw(kind, drawn, options)
    assert isinstance(figure, Figure)
    assert figure.axes
    svg = svg_of(figure, "some-name", f"<{kind}>")
    assert svg.startswith(f'<svg role="img" aria-label="&lt;{kind}&gt;"')
    assert "http" not in svg
    assert looks.INK not in svg
    assert all(name.startswith("some-name-") for name in re.findall(r'\bid="([^"]*)', svg))


@pytest.mark.parametrize("kind", plots.KINDS)
def test_nothing_to_draw_is_said(kind):
    failed = rows({}, cell(), error="ValueError: no.")
    figure = plots.draw(kind, failed, {"missing": [f"cell {i}" for i in range(6)], "informed": "a", "walk": "b"})
    text = figure.texts[0].get_text()
    assert f"Nothing to draw ({kind})" in text
    assert "cell 3\nand 2 more" in text


def test_an_unknown_kind_is_a_sentence():
    with pytest.raises(ValueError, match="There is no plot 'pie'; the kinds are curve, efficiency"):
        plots.draw("pie", [], {})


def test_only_what_is_wanted_is_drawn():
    drawn = rows({"EJD": 1.0}, cell("A", N=10)) + rows({"EJD": 2.0}, cell("B", N=10))
    figure = plots.draw("curve", drawn, {"y": "EJD", "samplers": ("B",), "hue": "sampler"})
    assert [line.get_label() for line in figure.axes[0].lines] == ["B"]
    figure = plots.draw("curve", drawn, {"y": "EJD", "where": (("N", "11"),)})
    assert "Nothing to draw" in figure.texts[0].get_text()


def test_theory_is_best_at_its_rate():
    rate = np.linspace(0.01, 0.99, 981)
    assert rate[theory.expected("lbp", rate).argmax()] == pytest.approx(0.574, abs=0.001)
    assert rate[theory.expected("rwm", rate).argmax()] == pytest.approx(0.234, abs=0.001)
    with pytest.raises(ValueError, match="A theory is one of lbp, rwm, but got 'mala'"):
        theory.expected("mala", rate)


def test_the_best_exponent_goes_from_half_to_one():
    r = np.array([1e-9, 1.0, 3.0, 1e9])
    exact = (r[1:3] - 2 + np.sqrt(r[1:3] ** 2 + 4)) / (2 * r[1:3])
    np.testing.assert_allclose(theory.best_exponent(r), [0.5, *exact, 1.0], atol=1e-8)
    sigma = [1.0, 10.0, 100.0]
    assert theory.fit_sigma0(sigma, list(theory.best_exponent(np.array(sigma) / 7.0))) == pytest.approx(7.0, rel=0.02)


def test_slopes_are_fitted():
    kind, options, drawn = next(plot for plot in PLOTS if plot[0] == "slopes")
    legend = plots.draw(kind, drawn, options).axes[0].get_legend()
    found = {text.get_text().split(" (")[0]: float(text.get_text()[-5:-1]) for text in legend.get_texts()}
    assert found["ALBP sqrt(t)"] == pytest.approx(2 / 3, abs=0.05)
    assert found["ARWM"] == pytest.approx(0, abs=0.05)


def test_samplers_look_the_same_everywhere_and_no_two_alike():
    names = ["RWM-1", "ARWM", "GRWM"]
    names += [f"{name} {weight}" for name in ("LBP-1", "ALBP", "GLBP", "AGWG") for weight in ("sqrt(t)", "t/(t+1)")]
    names += ["mine", "yours"]
    found = looks.palette(names)
    assert len(set(found.values())) == len(names)
    assert {found[name].colour for name in names if "LBP" in name} == {looks.COLOURS[0]}
    assert all(looks.palette([name])[name] == found[name] for name in names[:-2])


# --- The whole report ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("run")
        fake_rows.write_run(folder, patch)
        return report.write_report(folder)


def test_the_page_stands_alone(written):
    page = written[0].read_text(encoding="utf-8")
    assert not re.search(r"https?://|//[a-z]+\.[a-z]+/|@import|<link[^>]+stylesheet|src=", page)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links <= set(ids)


def test_the_page_says_what_happened(written):
    page = written[0].read_text(encoding="utf-8")
    assert page.count('<figure id="') == len(plots.KINDS) + 1
    assert "<dt>size</dt><dd>quick</dd>" in page
    assert "<dt>samplers put beside</dt><dd>my_sampler</dd>" in page
    assert f"jax {json.loads(store.versions())['jax']}" in page
    assert "87 ok, 4 failed, 45 not run" in page
    assert 'class="failed" title="ValueError: the path is\nlonger than &lt;the&gt; space."' in page
    assert "<em>unexplained</em>" in page
    assert 'class="bad"' in page
    assert "my_sampler <small" in page
    assert "The chains are too short for it." in page


def test_the_markdown_says_the_same(written):
    text = written[1].read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| LBP-1 sqrt(t) |"))
    assert line.split(" | ")[3] == "0.450 ± 0.009 / 1.00 / 0.45 [1]"
    assert "1. The chains are too short for it." in text
    assert "| failed / 10.30 |" in text
    assert "| - / 0.750 |" in text
    assert "unexplained" in text
    assert "http" not in text
    assert "    longer than <the> space." in text


def test_where_the_report_goes(tmp_path, monkeypatch):
    fake_rows.write_run(tmp_path / "run", monkeypatch)
    monkeypatch.setattr(report, "make_document", lambda run: report.Document("x", (), ()))
    assert report.write_report(tmp_path / "run", tmp_path / "a.html") == (tmp_path / "a.html", tmp_path / "a.md")
    folder = tmp_path / "b"
    assert report.write_report(tmp_path / "run", folder) == (folder / "report.html", folder / "report.md")


def test_the_page_works_in_a_browser(written, tmp_path):
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    browser = next(filter(None, found), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome is installed")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += f" --disable-component-update --disable-sync --user-data-dir={tmp_path} --virtual-time-budget=2000"
    command = [browser, *flags.split(), "--dump-dom", f"{written[0].as_uri()}#selftest"]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    head = re.search(r"<html[^>]*>", page)
    assert head is not None
    data = dict(re.findall(r'data-([a-z]+)="([^"]*)"', head.group()))
    assert data == {"errors": "0", "view": "ours", "plots": str(len(plots.KINDS) + 1), "selftest": "ok"}


# --- Two runs --------------------------------------------------------------------------------------------------------


def test_runs_are_compared_by_id_and_by_labels():
    a = rows({"EJD": (10.0, 4.0), "scale": 3.0}, cell("same")) + rows({"EJD": (10.0, 4.0)}, cell("changed"))
    b = rows({"EJD": (11.0, 4.0), "scale": 6.0}, cell("same"), seconds=4.0)
    b += [row | {"cell": "another id"} for row in rows({"EJD": (5.0, 4.0)}, cell("changed"))]
    found = {(each.name, each.metric): each for each in compare.compare_rows(a, b).differences}
    # 16 chains: the standard error of a difference is sqrt(2) * 4 / 4
    same, changed = found["same sqrt(t)", "EJD"], found["changed sqrt(t)", "EJD"]
    assert same.z == pytest.approx(1 / np.sqrt(2))
    assert not same.has_moved
    assert changed.z == pytest.approx(-5 / np.sqrt(2))
    assert changed.has_moved
    assert found["same sqrt(t)", "scale"].z is None
    assert found["same sqrt(t)", "seconds"].ratio == 2.0


def test_a_comparison_names_what_cannot_be_compared():
    ok, failed = sampling(1.0), {}
    a = rows(ok, cell("a")) + rows(ok, cell("breaks")) + rows(failed, cell("mends"), error="no")
    b = rows(ok, cell("b")) + rows(failed, cell("breaks"), error="no") + rows(ok, cell("mends"))
    found = compare.compare_rows(a, b)
    assert found.differences == ()
    assert (found.only_a, found.only_b) == (("a sqrt(t)",), ("b sqrt(t)",))
    assert (found.broken, found.mended) == (("breaks sqrt(t)",), ("mends sqrt(t)",))
    assert "1 cells failed in b: breaks sqrt(t)." in found.markdown()


def test_comparisons_are_written_down(tmp_path, monkeypatch):
    from rich.console import Console

    fake_rows.write_run(tmp_path, monkeypatch)
    found = compare.compare_runs(tmp_path, tmp_path)
    assert found.moved == []
    text = found.markdown(["EJD"])
    assert text.count("\n| ") == 87 + 1
    assert "| bernoulli N=100 C1 my_sampler | EJD | 30.00 | 30.00 | 1.00 | +0.0 |  |" in text
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    assert "0 of" in text
    assert "compile_seconds" in text


# --- Shipped suites --------------------------------------------------------------------------------------------------


def test_a_run_of_a_shipped_suite_with_a_users_sampler(tmp_path):
    planned = next(iter(find("optimal-scaling/table05"))).cells(Size.QUICK)
    first = next(each for each in planned if each.label("sampler") == "ALBP")
    (mine,) = put_beside([first], Beside("Mine", call("/some/file.py:Mine")))
    for each, ejd in ((first, 24.05), (mine, 50.0)):
        store.write_rows(tmp_path, store.rows_of(each, [store.Number("EJD", ejd, 0.1)], store.Timing(1.0)))
    about = {"suites": ["optimal-scaling/table05"], "size": "quick", "samplers": ["/some/file.py:Mine"]}
    store.write_about(tmp_path, about)
    section = report.make_document(tmp_path).sections[0]
    assert (section.num_ok, section.num_failed) == (2, 0)
    grid = section.exhibits[0]
    assert entry(grid, ("Mine", ""), "100", "C1").ours == 50.0
    expected = {"sqrt(t)": 23.40, "t/(t+1)": 24.05}[first.label("weight_fn")]
    assert entry(grid, ("ALBP", first.label("weight_fn")), "100", "C1").ratio == pytest.approx(24.05 / expected)


def test_a_run_without_rows_is_a_report_too(tmp_path):
    store.write_about(tmp_path, {"suites": ["optimal-scaling/table05", "optimal-scaling/figure05"], "size": "quick"})
    page, plain = report.write_report(tmp_path)
    assert "0 ok, 0 failed" in page.read_text(encoding="utf-8")
    assert "Nothing to draw (slopes)" in page.read_text(encoding="utf-8")
    assert "| ALBP sqrt(t) | - / 23.40 |" in plain.read_text(encoding="utf-8")
