"""The page: one HTML file that needs nothing else; styles, script and plots are inside."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from string import Template

from matplotlib import rc_context
from matplotlib.figure import Figure

from discrax.bench.report.grid import Entry, Grid, Line, number_text, ratio_text
from discrax.bench.report.plots import INK, RULE


@dataclass(frozen=True)
class Plot:
    title: str
    svg: str


@dataclass(frozen=True)
class Section:
    """A suite with its exhibits."""

    name: str
    about: str
    exhibits: tuple[Grid | Plot, ...]
    num_ok: int = 0
    num_failed: int = 0
    num_missing: int = 0


@dataclass(frozen=True)
class Failure:
    name: str
    error: str


@dataclass(frozen=True)
class Document:
    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    failures: tuple[Failure, ...] = field(default=())


def anchor(*parts: object) -> str:
    return re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")


def svg_of(figure: Figure, name: str, alt: str) -> str:
    """A figure as an SVG element for a page: its ids are its own, its text is text, its ink is the page's."""
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace(INK, "var(--ink)").replace(RULE, "var(--rule)")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1).strip()


def render(document: Document) -> str:
    """The whole page."""
    return Template(_PAGE).substitute(
        title=escape(document.title),
        style=_STYLE,
        script=_SCRIPT,
        contents=_contents(document),
        facts=_facts(document.facts),
        summary=_summary(document.sections),
        sections="\n".join(_section(section) for section in document.sections),
        failures=_failures(document.failures),
    )


def _contents(document: Document) -> str:
    items = ['<li><a href="#summary">Summary</a></li>']
    for section in document.sections:
        inside = "".join(
            f'<li><a href="#{anchor(section.name, place)}">{escape(exhibit.title)}</a></li>'
            for place, exhibit in enumerate(section.exhibits, 1)
        )
        items.append(f'<li><a href="#{anchor(section.name)}">{escape(section.name)}</a><ol>{inside}</ol></li>')
    if document.failures:
        items.append('<li><a href="#failures">Failed cells</a></li>')
    return f"<ol>{''.join(items)}</ol>"


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)


def _summary(sections: Sequence[Section]) -> str:
    lines = []
    for section in sections:
        for place, exhibit in enumerate(section.exhibits, 1):
            if not isinstance(exhibit, Grid):
                continue
            ratio = exhibit.median_ratio
            counted = exhibit.compares and ratio is not None
            statuses = [entry.status for entry in exhibit.entries]
            at_par = f"{exhibit.num_at_par} of {len(exhibit.ratios)}" if counted else "-"
            share = exhibit.num_at_par / len(exhibit.ratios) if counted else -1
            lines.append(
                f'<tr><th scope="row"><a href="#{anchor(section.name, place)}">{escape(exhibit.title)}</a>'
                f" <small>{escape(section.name)}</small></th>"
                f"<td>{escape(exhibit.metric)}</td>"
                + _sortable("-" if ratio is None else ratio_text(ratio), ratio)
                + _sortable(at_par, share)
                + _sortable(str(exhibit.num_unexplained or "-") if exhibit.compares else "-", exhibit.num_unexplained)
                + _sortable(str(statuses.count("failed") or "-"), statuses.count("failed"))
                + _sortable(str(statuses.count("missing") or "-"), statuses.count("missing"))
                + "</tr>"
            )
    if not lines:
        return ""
    heads = ("metric", "median ratio", "ratio ≥ 0.9", "unexplained", "failed", "not run")
    buttons = "".join(_head(name, place) for place, name in enumerate(heads))
    return (
        '<div class="wide"><table class="plain"><thead><tr><th scope="col">table</th>'
        f"{buttons}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _sortable(text: str, value: float | None) -> str:
    return f'<td data-ours="{"" if value is None else value}">{text}</td>'


def _head(name: str, place: int) -> str:
    return f'<th scope="col" data-column="{place}"><button type="button">{escape(name)}</button></th>'


def _section(section: Section) -> str:
    counts = [f"{section.num_ok} cells"]
    counts += [f"{section.num_failed} failed"] if section.num_failed else []
    counts += [f"{section.num_missing} not run"] if section.num_missing else []
    inside = "\n".join(
        _grid(exhibit, anchor(section.name, place))
        if isinstance(exhibit, Grid)
        else _plot(exhibit, anchor(section.name, place))
        for place, exhibit in enumerate(section.exhibits, 1)
    )
    return (
        f'<section id="{anchor(section.name)}"><h2>{escape(section.name)}</h2>'
        f'<p class="about">{escape(section.about)} <span class="counts">{", ".join(counts)}</span></p>'
        f"{inside}</section>"
    )


def _plot(plot: Plot, name: str) -> str:
    return (
        f'<figure id="{name}" class="plot"><div class="wide">{plot.svg}</div>'
        f"<figcaption>{escape(plot.title)}</figcaption></figure>"
    )


def _grid(grid: Grid, name: str) -> str:
    body = "".join(_line(line, grid, name) for line in grid.lines)
    notes = "".join(
        f'<li id="{name}-note-{place}" value="{place}">{escape(text)}</li>'
        for place, text in enumerate(grid.footnotes, 1)
    )
    notes = f'<ol class="notes">{notes}</ol>' if notes else ""
    said = [f"{grid.metric}; ours, below it the paper's and the ratio" if grid.has_print else grid.metric]
    if grid.median_ratio is not None:
        said.append(f"median ratio {grid.median_ratio:.2f}")
    if grid.has_print and not grid.compares:
        said.append("other machines: not judged")
    return (
        f'<div class="exhibit" id="{name}"><h3>{escape(grid.title)}</h3><p class="metric">{escape(", ".join(said))}</p>'
        f'<div class="wide" tabindex="0"><table class="grid"><thead>{_heads(grid)}</thead><tbody>{body}</tbody></table>'
        f"</div>{notes}</div>"
    )


def _heads(grid: Grid) -> str:
    """One line a column label; equal neighbours are joined, and the last line sorts."""
    depth = len(grid.column_names)
    lines = []
    for level, label in enumerate(grid.column_names):
        is_last = level == depth - 1
        cells = f'<th scope="col" rowspan="{depth}" class="corner">sampler</th>' if level == 0 else ""
        if is_last:
            cells += "".join(_head(_said(label, column[level]), place) for place, column in enumerate(grid.columns))
        else:
            for prefix, group in groupby(grid.columns, key=lambda column: column[: level + 1]):
                cells += f'<th scope="colgroup" colspan="{len(list(group))}">{escape(_said(label, prefix[-1]))}</th>'
        lines.append(f"<tr>{cells}</tr>")
    return "".join(lines)


def _said(label: str, value: str) -> str:
    """C1 speaks for itself; 100 does not."""
    return f"{label} = {value}" if re.fullmatch(r"[-+.\deE]+", value) else value


def _line(line: Line, grid: Grid, name: str) -> str:
    head = escape(line.head[0]) + "".join(f" <small>{escape(part)}</small>" for part in line.head[1:] if part)
    own = "" if line.is_printed or not grid.has_print else ' <small class="own">not in print</small>'
    cells = "".join(_entry(entry, name) for entry in line.entries)
    return f'<tr><th scope="row">{head}{own}</th>{cells}</tr>'


def _entry(entry: Entry, name: str) -> str:
    remark = f' title="{escape(entry.remark)}"' if entry.remark else ""
    mark = "*" if entry.remark else ""
    paper = f'<span class="paper"{remark}>{number_text(entry.paper)}{mark}</span>' if entry.paper is not None else ""
    if entry.status == "failed":
        return f'<td class="failed" title="{escape(entry.error or "")}"><b>failed</b><span>{paper}</span></td>'
    if entry.ours is None:
        return f'<td class="missing"><b>-</b><span>{paper}</span></td>'
    spread = f"<small>±{number_text(entry.std)}</small>" if entry.std is not None else ""
    ratio = ratio_text(entry.ratio) if entry.ratio is not None else ""
    foot = f'<sup><a href="#{name}-note-{entry.footnote}">{entry.footnote}</a></sup>' if entry.footnote else ""
    below = f'{paper}<i class="in-ours">{ratio}×</i>' if ratio else paper
    flag = "<em>unexplained</em>" if entry.is_unexplained else ""
    return (
        f'<td class="{entry.shade}" data-ours="{entry.ours}" data-ratio="{"" if entry.ratio is None else entry.ratio}">'
        f'<b class="in-ours">{number_text(entry.ours)}{spread}{foot}</b><b class="in-ratio">{ratio or "-"}{foot}</b>'
        f'<span><i class="in-ratio">{number_text(entry.ours)} /</i>{below}</span>{flag}</td>'
    )


def _failures(failures: Sequence[Failure]) -> str:
    if not failures:
        return ""
    items = "".join(
        f"<details><summary>{escape(each.name)}: {escape(_headline(each.error))}</summary>"
        f"<pre>{escape(each.error)}</pre></details>"
        for each in failures
    )
    return f'<section id="failures"><h2>Failed cells</h2>{items}</section>'


def _headline(error: str) -> str:
    lines = error.strip().splitlines() or ["no message"]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


_PAGE = """<!doctype html>
<html lang="en" data-errors="0" data-view="ours">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<script>
window.onerror = function () {
  var data = document.documentElement.dataset;
  data.errors = String(Number(data.errors) + 1);
};
</script>
<style>$style</style>
</head>
<body>
<nav aria-label="Contents">$contents</nav>
<main>
<header id="summary">
<h1>$title</h1>
<dl class="facts">$facts</dl>
<div class="tools">
<div class="toggle" role="group" aria-label="What a cell shows first">
<button type="button" data-set="ours" aria-pressed="true">ours</button
><button type="button" data-set="ratio" aria-pressed="false">ratio</button>
</div>
<ul class="legend" aria-label="Colours">
<li class="good">≥ 1.1</li><li class="even">0.9 to 1.1</li><li class="low">0.5 to 0.9</li><li class="bad">&lt; 0.5</li>
<li class="said">times the printed number; * has a remark; a header sorts</li>
</ul>
</div>
$summary
</header>
$sections
$failures
</main>
<script>$script</script>
</body>
</html>
"""

_STYLE = """
:root {
  --page: #fbfbfa; --box: #ffffff; --ink: #1c1d21; --soft: #63656e; --rule: #dfe0e4; --link: #0b5cad;
  --good: #d9f0e0; --low: #fcecc4; --bad: #f9d5d0; --warn: #a3330f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161a; --box: #1b1e23; --ink: #e7e8ea; --soft: #9da1ab; --rule: #343840; --link: #7cb8f5;
    --good: #17402a; --low: #4a3a10; --bad: #5a211c; --warn: #ff9f7d;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2.5rem) 5rem; }
nav { padding: 1.25rem clamp(1rem, 3vw, 2.5rem) 0; font-size: 0.86rem; line-height: 1.4; max-height: 45vh;
      overflow-y: auto; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav li { margin: 0.3rem 0; }
nav ol ol { padding-left: 0.9rem; border-left: 1px solid var(--rule); }
nav ol ol a { color: var(--soft); }
@media (min-width: 80rem) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; max-height: none; padding: 2rem 0.5rem 2rem 1.5rem;
        border-right: 1px solid var(--rule); }
  main { margin: 0; width: 100%; padding-top: 2rem; }
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; letter-spacing: -0.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 0.25rem; padding-top: 1.5rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.02rem; margin: 2rem 0 0; }
p { margin: 0.25rem 0 0.75rem; max-width: 46rem; }
.metric, .about, .counts, figcaption { color: var(--soft); font-size: 0.88rem; }
.metric { margin: 0 0 0.5rem; }
.about .counts::before { content: "· "; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 0.75rem 1.5rem;
         margin: 0 0 1.25rem; }
.facts div:last-child { grid-column: 1 / -1; }
.facts dt { color: var(--soft); font-size: 0.8rem; }
.facts dd { margin: 0; overflow-wrap: anywhere; font-size: 0.95rem; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: 0.6rem 1.5rem; margin: 0 0 1rem; }
.toggle button { font: inherit; font-size: 0.88rem; padding: 0.25rem 0.9rem; border: 1px solid var(--rule);
                 cursor: pointer; background: var(--box); color: var(--ink); }
.toggle button:first-child { border-radius: 0.4rem 0 0 0.4rem; border-right: 0; }
.toggle button:last-child { border-radius: 0 0.4rem 0.4rem 0; }
.toggle button[aria-pressed="true"] { background: var(--ink); color: var(--page); border-color: var(--ink); }
.legend { display: flex; flex-wrap: wrap; gap: 0.35rem; list-style: none; margin: 0; padding: 0; font-size: 0.82rem; }
.legend li { padding: 0.1rem 0.55rem; border-radius: 0.3rem; border: 1px solid var(--rule); }
.legend .said { border: 0; color: var(--soft); }
.wide { overflow-x: auto; max-width: 100%; background: var(--box); border: 1px solid var(--rule);
        border-radius: 0.5rem; }
.exhibit .wide { width: fit-content; }
table { border-collapse: separate; border-spacing: 0; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
.plain { width: 100%; }
th, td { padding: 0.35rem 0.7rem; text-align: right; white-space: nowrap; vertical-align: top; background: var(--box);
         border-bottom: 1px solid var(--rule); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { font-weight: 600; vertical-align: bottom; color: var(--soft); }
thead th[colspan] { text-align: center; border-left: 1px solid var(--rule); }
th:first-child { position: sticky; left: 0; z-index: 1; text-align: left; font-weight: 600;
                 border-right: 1px solid var(--rule); }
thead tr:not(:first-child) th:first-child { position: static; border-right: 0; text-align: right; }
.plain tbody th { font-weight: 400; white-space: normal; min-width: 14rem; }
th small { font-weight: 400; color: var(--soft); }
th button { all: unset; cursor: pointer; }
th button:hover { color: var(--ink); text-decoration: underline; }
th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
th[aria-sort="descending"] button::after { content: " ▾"; }
th[aria-sort="ascending"] button::after { content: " ▴"; }
td b { display: block; font-weight: 600; }
td b small { font-weight: 400; color: var(--soft); margin-left: 0.2rem; font-size: 0.78em; }
td > span { display: block; color: var(--soft); font-size: 0.8rem; }
td i { font-style: normal; }
td i.in-ours { margin-left: 0.5rem; }
td i.in-ratio { margin-right: 0.25rem; }
td em { display: block; font-style: normal; font-size: 0.72rem; color: var(--warn); }
td sup { line-height: 0; margin-left: 0.15rem; font-weight: 400; }
[data-view="ours"] .in-ratio, [data-view="ratio"] .in-ours { display: none; }
.good { background: var(--good); } .low { background: var(--low); } .bad { background: var(--bad); }
:is(.good, .low, .bad) > span, :is(.good, .low, .bad) small { color: inherit; opacity: 0.8; }
.failed b { color: var(--warn); cursor: help; }
.missing b { color: var(--soft); font-weight: 400; }
.paper[title] { cursor: help; }
.notes { font-size: 0.86rem; color: var(--soft); margin: 0.5rem 0 0; padding-left: 1.4rem; max-width: 52rem; }
.plot { margin: 2rem 0 0; }
.plot .wide { padding: 0.75rem; }
.plot svg { display: block; margin: 0 auto; max-width: 100%; height: auto; color: var(--ink); }
@media (max-width: 50rem) { .plot svg { max-width: none; } }
.plot svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif !important; }
figcaption { margin-top: 0.4rem; }
details { margin: 0.5rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: 0.75rem; font-size: 0.8rem; background: var(--box); border: 1px solid var(--rule);
      border-radius: 0.5rem; }
@media print { nav, .tools { display: none; } .wide { overflow: visible; } }
"""

_SCRIPT = """
(function () {
  "use strict";
  var root = document.documentElement;
  var all = function (what, inside) { return Array.prototype.slice.call((inside || document).querySelectorAll(what)); };

  function show(view) {
    root.dataset.view = view;
    all("[data-set]").forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.dataset.set === view));
    });
  }

  function value(row, column, view) {
    var data = all("td", row)[column].dataset;
    var text = view === "ratio" && data.ratio !== undefined ? data.ratio : data.ours;
    return text === undefined || text === "" ? NaN : Number(text);
  }

  // A header's clicks: descending, ascending, as it was. What has no number stays last.
  function sort(head) {
    var table = head.closest("table"), body = table.tBodies[0], rows = all("tr", body);
    var column = Number(head.dataset.column), view = root.dataset.view;
    var next = { descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort")] || "descending";
    all("th[aria-sort]", table).forEach(function (other) { other.removeAttribute("aria-sort"); });
    if (next !== "none") head.setAttribute("aria-sort", next);
    var sign = next === "ascending" ? 1 : -1;
    rows.sort(function (a, b) {
      if (next === "none") return a.dataset.place - b.dataset.place;
      var x = value(a, column, view), y = value(b, column, view);
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.dataset.place - b.dataset.place;
      return sign * (x - y) || a.dataset.place - b.dataset.place;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }

  all("table tbody").forEach(function (body) {
    all("tr", body).forEach(function (row, place) { row.dataset.place = place; });
  });
  all("th[data-column] button").forEach(function (button) {
    button.addEventListener("click", function () { sort(button.parentElement); });
  });
  all("[data-set]").forEach(function (button) {
    button.addEventListener("click", function () { show(button.dataset.set); });
  });

  function count() {
    root.dataset.plots = String(all("figure.plot svg").filter(function (svg) {
      var box = svg.getBoundingClientRect();
      return box.width > 100 && box.height > 100;
    }).length);
  }

  // With #selftest the page tries its own toggle and sorting and says what came of it.
  function selftest() {
    var failed = [];
    function check(is, what) { if (!is) failed.push(what); }
    function seen(what) {
      return all("table.grid " + what).some(function (item) { return item.getClientRects().length > 0; });
    }
    document.querySelector('[data-set="ratio"]').click();
    check(seen("td b.in-ratio") && !seen("td b.in-ours"), "toggle to ratio");
    document.querySelector('[data-set="ours"]').click();
    check(seen("td b.in-ours") && !seen("td b.in-ratio"), "toggle to ours");
    all("table.grid").forEach(function (table) {
      var button = table.querySelector("th[data-column] button"), body = table.tBodies[0];
      function order() { return all("tr", body).map(function (row) { return row.dataset.place; }).join(); }
      function numbers() {
        var found = all("tr", body).map(function (row) { return value(row, 0, "ours"); });
        return found.filter(function (x) { return !isNaN(x); });
      }
      function is_sorted(sign) {
        return numbers().every(function (x, place, list) { return place === 0 || sign * (x - list[place - 1]) >= 0; });
      }
      var before = order();
      button.click();
      check(is_sorted(-1), "sort down");
      button.click();
      check(is_sorted(1), "sort up");
      button.click();
      check(order() === before, "sort back");
    });
    root.dataset.selftest = failed.length ? "failed: " + failed.join(", ") : "ok";
  }

  window.addEventListener("load", function () {
    count();
    if (location.hash === "#selftest") selftest();
  });
})();
"""
