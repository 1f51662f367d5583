import io
import json
import re
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.figure import Figure

import discrax as dx
from discrax.bench.execute import store
from discrax.bench.execute.request import put_beside
from discrax.bench.execute.samplers import Beside
from discrax.bench.plan.cell import Budget, call
from discrax.bench.plan.rows import add_facts
from discrax.bench.plan.suite import Size, find
from discrax.bench.report import compare, looks, plots, theory
from discrax.bench.report import write as report
from discrax.bench.report.axes import Point
from discrax.bench.report.numbers import point_tables
from discrax.bench.report.page import svg_of

from . import fake_rows
from .browser import open_page
from .fake_rows import cell, entry, rows, sampling

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


def test_what_is_drawn_is_written_down():
    short = {"EJD": (2.0, 0.4), "is_long_enough": 0.0, "autocorrelation_times": 3.0}
    drawn = add_facts(rows({"EJD": (1.0, 0.4)}, cell("A", N=10)) + rows(short, cell("B", N=10)))
    for kind, options in (("curve", {"y": "EJD"}), ("bars", {"metric": "EJD"})):
        points: list[Point] = []
        figure = plots.draw(kind, drawn, options | {"hue": "sampler", "points": points})
        place = 10.0 if kind == "curve" else ""
        assert points == [Point("", "A", place, 1.0, 0.1), Point("", "B", place, 2.0, 0.1, is_too_short=True)]
        crosses = [line for line in figure.axes[0].lines if line.get_label() == "chains too short"]
        assert [list(np.asarray(line.get_ydata())) for line in crosses] == [[2.0]]


def test_tables_of_points():
    def points(count):
        return [Point("p", name, x, x, 0.5) for name in "ab" for x in range(count)]

    few, many = (point_tables(points(count))[0] for count in (3, 200))
    assert few == ("p", ("", "0", "1", "2"), few.lines, False)
    assert few.lines[0] == ("a", "0.000 ± 0.500", "1.000 ± 0.500", "2.000 ± 0.500")
    assert (many.heads, len(many.lines), many.is_part) == (("", "a", "b"), 40, True)
    assert (many.lines[0][0], many.lines[-1][0]) == ("0", "199")
    scattered = [Point("", name, place + 0.1 * shift, 1.0) for shift, name in enumerate("abc") for place in range(9)]
    assert point_tables(scattered)[0].lines[:2] == (("a", "0", "1.000"), ("a", "1", "1.000"))


def test_a_theory_is_not_fitted_to_the_points():
    """The curve depends on the units that the runs estimated alone: points twice as high leave it where it is."""
    kind, options, drawn = next(plot for plot in PLOTS if plot[0] == "efficiency")

    def curves(rows):
        lines = plots.draw(kind, rows, options).axes[0].get_lines()
        return [line.get_ydata() for line in lines if len(line.get_xdata()) > 50]

    doubled = [row | {"value": 2 * row["value"]} if row["metric"] == "EJD" else row for row in drawn]
    wider = [row | {"value": 2 * row["value"]} if row["metric"] == "lbp_unit" else row for row in drawn]
    before = curves(drawn)
    assert len(before) == 2  # GWG, which draws with replacement, has no theory
    np.testing.assert_array_equal(curves(doubled), before)
    np.testing.assert_allclose(curves(wider), 2 * np.array(before))
    assert np.max(before[0]) == pytest.approx(dx.exact.Scaling(20.0, 3 / 2).optimum.jump, rel=1e-3)


def test_the_best_exponent_goes_from_half_to_one():
    r = np.array([1e-9, 1.0, 3.0, 1e9])
    exact = (r[1:3] - 2 + np.sqrt(r[1:3] ** 2 + 4)) / (2 * r[1:3])
    np.testing.assert_allclose(theory.best_exponent(r), [0.5, *exact, 1.0], atol=1e-8)


def test_the_best_exponent_is_not_fitted_to_the_points():
    """The curve stands where the variance of the target puts it, wherever the points are."""
    scales, alphas = (0.1, 1.0, 10.0), (0.4, 0.6, 0.8, 1.0)

    def panel(best, **options):
        drawn = [
            row
            for scale, top in zip(scales, best, strict=True)
            for alpha in alphas
            for row in rows({"ESS_per_step": 1 / (1 + abs(alpha - top))}, cell("A", sigma=scale, alpha=alpha))
        ]
        lines = plots.draw("weights", drawn, options).axes[1].get_lines()
        curves = {line.get_label(): line.get_data() for line in lines if len(line.get_xdata()) > 50}
        points = [
            (float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines if line.get_marker() == "o"
        ]
        return curves, points

    told = "theory, unfitted: sigma_0 = 0.2,\nthe mean variance of a site"
    (near, points), (far, moved) = (panel(best, sigma0=0.2) for best in ((0.6, 0.8, 1.0), (0.4, 0.4, 0.4)))
    assert list(near) == list(far) == [told]
    np.testing.assert_array_equal(near[told], far[told])
    np.testing.assert_allclose(near[told][1], dx.exact.best_exponent(near[told][0]))
    np.testing.assert_allclose(points, [(0.5, 0.6), (5.0, 0.8), (50.0, 1.0)])  # each at sigma over the given sigma_0
    np.testing.assert_allclose(moved, [(0.5, 0.4), (5.0, 0.4), (50.0, 0.4)])
    assert panel((0.6, 0.8, 1.0))[0] == {}  # no variance, no theory


def test_the_variance_of_figure_1_is_that_of_its_target():
    """From the log-odds of the target that its cells sample from."""
    (drawn,) = find("any-scale/figure01")
    (sigma0,) = (value for exhibit in drawn.exhibits for name, value in exhibit.options if name == "sigma0")
    (made,) = {each.target for each in drawn.cells(Size.PAPER)}
    p = 1 / (1 + np.exp(-np.asarray(made().linear, float)))
    assert sigma0() == pytest.approx(np.mean(p * (1 - p)), rel=1e-5)
    assert sigma0() == pytest.approx(0.25 - 0.9**2 / 12, rel=0.1)  # on average over p


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
    cousins = looks.palette(["GWG", "Ordinal-GWG", "AVG", "DLMC"])  # of one colour where they are alone
    assert len({look.colour for look in cousins.values()}) == 4


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
    assert "▼ below, unexplained</em>" in page
    assert "▲ above, unexplained</em>" in page
    assert 'class="tested" title="-' in page
    assert 'class="within" title="' in page
    assert page.count("<details class=") == len(plots.KINDS) - 1  # pictures have no numbers
    assert "my_sampler <small" in page
    assert "One site at a time. Tested: 0.447 with two sites." in page


def test_the_markdown_says_the_same(written):
    text = written[1].read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| LBP-1 sqrt(t) |"))
    assert line.split(" | ")[3] == "0.450 ± 0.002 / 1.000 / 0.45 [2] below"
    assert "2. One site at a time. Tested: 0.447 with two sites." in text
    summary = next(line for line in text.splitlines() if line.startswith("| Jump distance, Bernoulli |"))
    counts = [int(each) for each in summary.strip(" |").split(" | ")[3:]]
    assert counts[5:] == [0, 4, 45 + 8]  # too short, failed, not run (a user's sampler ran in one of nine places)
    assert sum(counts) == 9 * 15 + 8  # every place of print is in one of them
    assert "```sh\ndiscrax bench run " in text
    assert "| failed / 10.30 |" in text
    assert "| - / 0.750 |" in text
    assert "unexplained" in text
    assert "http" not in text
    assert "    longer than <the> space." in text


def test_figures_have_their_numbers(written):
    text = written[1].read_text(encoding="utf-8")
    shown = text.split("### A plot of kind curve")[1].split("###")[0]
    assert "| 100 | 800 | 6400 |" in shown
    sheets = {path.stem: path.read_text(encoding="utf-8") for path in written[0].with_name("report-csv").iterdir()}
    assert len(sheets) == 3 + len(plots.KINDS) + 1
    assert sheets["fake-all-1"].startswith("line,N,config,metric,status,ours,std,error,seeds,paper,paper_error,ratio,z")
    curve = sheets["fake-all-4"].splitlines()
    assert curve[0] == "panel,line,x,y,error,is_too_short"
    assert len(curve) == 1 + 2 * 3 * 3  # tasks, samplers, sizes
    page = written[0].read_text(encoding="utf-8")
    held = {name: unquote(text) for name, text in re.findall(r'download="(\S+).csv" href="data:[^,]*,([^"]*)"', page)}
    assert held == sheets
    assert re.findall(r"All numbers: `(\S+).csv`, held by the HTML page", text) == list(held)  # the folder may be gone


def test_where_the_report_goes(tmp_path, monkeypatch):
    fake_rows.write_run(tmp_path / "run", monkeypatch)
    monkeypatch.setattr(report, "make_document", lambda run: report.Document("x", (), ()))
    assert report.write_report(tmp_path / "run", tmp_path / "a.html") == (tmp_path / "a.html", tmp_path / "a.md")
    folder = tmp_path / "b"
    assert report.write_report(tmp_path / "run", folder) == (folder / "report.html", folder / "report.md")


def test_the_page_works_in_a_browser(written, tmp_path):
    data, _ = open_page(written[0], tmp_path)
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


def test_runs_are_compared_by_the_error_of_their_instances():
    def z(before, after):
        (found, *_) = compare.compare_rows(rows(before, cell("x")), rows(after, cell("x"))).differences
        return found.z

    a, b = {"ratio": (0.90, 0.2), "instances": 100}, {"ratio": (0.95, 0.2), "instances": 100}
    assert z(a, b) == pytest.approx(0.05 / (np.sqrt(2) * 0.2 / 10))
    short = {"is_long_enough": 0.0, "autocorrelation_times": 1.0}
    assert z(a, b | short) is None
    assert z(a | short, b) is None


def test_a_comparison_names_what_cannot_be_compared():
    ok, failed = sampling(1.0), {}
    a = rows(ok, cell("a")) + rows(ok, cell("breaks")) + rows(failed, cell("mends"), error="no")
    b = rows(ok, cell("b")) + rows(failed, cell("breaks"), error="no") + rows(ok, cell("mends"))
    found = compare.compare_rows(a, b)
    assert found.differences == ()
    assert (found.only_a, found.only_b) == (("a sqrt(t)",), ("b sqrt(t)",))
    assert (found.broken, found.mended) == (("breaks sqrt(t)",), ("mends sqrt(t)",))
    assert "1 cells failed in b: breaks sqrt(t)." in found.markdown()


def test_a_comparison_says_which_budgets_differ():
    of = cell("short")
    longer = replace(of, budget=Budget(64, 0, 500, 4))
    assert longer.id != of.id
    a = rows({"EJD": (10.0, 4.0)}, of) + rows({"EJD": (10.0, 4.0)}, cell("same"))
    b = rows({"EJD": (11.0, 4.0)}, longer) + rows({"EJD": (11.0, 4.0)}, cell("same"))
    found = compare.compare_rows(a, b)
    assert found.unequal == (("16 x 20 after 10 of warm-up", "64 x 2,000"),)
    said = "1 pairs of cells have other budgets in a than in b (chains x steps, and how many pairs): "
    assert f"{said}16 x 20 after 10 of warm-up with 64 x 2,000 (1)." in found.markdown()
    assert "budgets" not in compare.compare_rows(a, a).markdown()


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


def test_a_line_without_its_label_is_named_by_its_sampler():
    assert looks.name_of({"sampler": "PAS", "weight_fn": "sqrt(t)"}, ["weight_fn"]) == "sqrt(t)"
    assert looks.name_of({"sampler": "Gibbs (chromatic)"}, ["weight_fn"]) == "Gibbs (chromatic)"
