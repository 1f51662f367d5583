"""The report of a run: its tables beside the printed ones and its figures, as one HTML page, as Markdown and as CSV."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from discrax.bench.execute import store
from discrax.bench.execute.request import Request, merge, requests_of
from discrax.bench.plan.cell import OF_SAMPLER, Cell
from discrax.bench.plan.printed import canonical
from discrax.bench.plan.rows import Row, add_facts
from discrax.bench.plan.suite import Figure, Size, Suite, Table, find
from discrax.bench.report import plots
from discrax.bench.report.axes import Point
from discrax.bench.report.grid import (
    BEYOND_CHANCE,
    VERDICTS,
    Entry,
    Grid,
    make_grid,
    markdown_table,
    number_text,
    ratio_text,
)
from discrax.bench.report.looks import Style, name_of
from discrax.bench.report.looks import palette as palette_of
from discrax.bench.report.numbers import value_text
from discrax.bench.report.page import Document, Failure, Plot, Section, anchor, csv_of, render, svg_of
from discrax.core.files import check_writable, write_whole


def write_report(run_dir: str | Path, out: str | Path | None = None) -> tuple[Path, Path]:
    """Writes the page and the Markdown of a run; says where they are. A folder beside them, *-csv, has all numbers.

    `out` is the page's file name (.html) or a folder; by default the folder is the run's own.
    """
    run_dir = Path(run_dir)
    out = run_dir if out is None else Path(out)
    out = out.with_suffix(".html") if out == run_dir and run_dir.is_file() else out
    page = out if out.suffix == ".html" else out / "report.html"
    plain = page.with_suffix(".md")
    store.read_about(run_dir)  # a folder that is no run is said before one is made for the report
    check_writable(page)
    document = make_document(run_dir)
    for section in document.sections:
        for place, exhibit in enumerate(section.exhibits, 1):
            write_whole(page.with_name(f"{page.stem}-csv") / f"{anchor(section.name, place)}.csv", csv_of(exhibit))
    return write_whole(page, render(document)), write_whole(plain, to_markdown(document))


def make_document(run_dir: Path) -> Document:
    """What there is to show of a run."""
    about, rows = store.read_about(run_dir), add_facts(store.read_rows(run_dir))
    suites, size = suites_of(about), Size(about.get("size", Size.DEFAULT))
    planned = {suite.name: {cell.id: cell for cell in suite.cells(size)} for suite in suites}
    rows = current(planned, rows)
    order = {id: place for place, id in enumerate(id for cells in planned.values() for id in cells)}
    rows.sort(key=lambda row: order.get(row["cell"], len(order)))
    palette = palette_of(name_of(row["labels"], ("sampler", "weight_fn")) for row in rows)

    sections = []
    by_suite = rows_by_suite(planned, rows)
    for suite in suites:
        cells, mine = planned[suite.name], by_suite[suite.name]
        done = {row["cell"]: row["status"] for row in mine}
        missing = [cell.name for cell in cells.values() if cell.id not in done]
        exhibits = tuple(
            _exhibit(exhibit, mine, palette, missing, anchor(suite.name, place))
            for place, exhibit in enumerate(suite.exhibits, 1)
        )
        statuses = list(done.values())
        counts = statuses.count("ok"), statuses.count("failed"), len(missing)
        sections.append(Section(suite.name, suite.about, exhibits, *counts))

    failed = {row["cell"]: Failure(row["name"], row["error"] or "") for row in rows if row["status"] == "failed"}
    num_missing = len({id for cells in planned.values() for id in cells} - {row["cell"] for row in rows})
    names = [suite.name for suite in suites]
    names = names if len(names) < 3 else list(dict.fromkeys(name.partition("/")[0] for name in names))
    facts = _facts(run_dir, about, rows, num_missing)
    title, commands = f"Benchmark: {', '.join(names)}", tuple(dict.fromkeys(map(_command, requests_of(about))))
    return Document(title, facts, tuple(sections), tuple(failed.values()), commands)


def _command(request: Request) -> str:
    """What makes the suites' own rows of a request."""
    parts = ["discrax bench run", *request.suites]
    parts += [f"--{request.size}"] if request.size is not Size.DEFAULT else []
    parts += ["--only", *map(shlex.quote, request.only)] if request.only else []
    parts += ["--set", *(f"{name}={value}" for name, value in request.budget)] if request.budget else []
    parts += [f"--seeds {request.seeds}"] if request.seeds > 1 else []
    return " ".join(parts)


def current(planned: Mapping[str, Mapping[str, Cell]], rows: Sequence[Row]) -> list[Row]:
    """The rows without those of cells in whose place others are planned now, such as of a suite that was edited."""
    cells = {id: cell for suite in planned.values() for id, cell in suite.items()}
    taken = {(frozenset(cell.labels), cell.seed) for cell in cells.values()}
    return [row for row in rows if row["cell"] in cells or (frozenset(row["labels"].items()), row["seed"]) not in taken]


def rows_by_suite(planned: Mapping[str, Mapping[str, Cell]], rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by suite, given each suite's cells by id; what is of no suite stands with whoever has its setting."""
    strangers = [row for row in rows if not any(row["cell"] in cells for cells in planned.values())]
    found = {}
    for name, cells in planned.items():
        places = {place_of(dict(cell.labels)) for cell in cells.values()}
        found[name] = [row for row in rows if row["cell"] in cells]
        found[name] += [row for row in strangers if place_of(row["labels"]) in places]
    return found


def suites_of(about: dict[str, Any]) -> list[Suite]:
    """The suites of a run, shipped and in files, each once, with the cells that were asked for."""
    return merge(requests_of(about), find)


def place_of(labels: dict[str, str]) -> frozenset[tuple[str, float | str]]:
    """What is sampled, whatever the sampler: a user's sampler is shown where the suite's own stand."""
    return frozenset((name, canonical(value)) for name, value in labels.items() if name not in OF_SAMPLER)


def _exhibit(
    exhibit: Table | Figure, rows: Sequence[Row], palette: dict[str, Style], missing: list[str], name: str
) -> Grid | Plot:
    if isinstance(exhibit, Table):
        return make_grid(exhibit, rows)
    if exhibit.derive is not None:
        rows = exhibit.derive(list(rows))
    points: list[Point] = []
    options = {"missing": missing, "palette": palette, "points": points} | dict(exhibit.options)
    figure = plots.draw(exhibit.kind, rows, options)
    return Plot(exhibit.title, svg_of(figure, name, f"{exhibit.kind}: {exhibit.title}"), tuple(points))


def _facts(run_dir: Path, about: dict[str, Any], rows: Sequence[Row], num_missing: int) -> tuple[tuple[str, str], ...]:
    cells = {row["cell"]: row for row in rows}.values()
    num_failed = sum(row["status"] == "failed" for row in cells)
    counts = f"{len(cells) - num_failed} ok, {num_failed} failed" + (f", {num_missing} not run" if num_missing else "")

    def total(*names: str) -> str:
        return _duration(sum(row[name] or 0.0 for row in cells for name in names))

    # Rows may come from other machines than that on which the run began.
    versions = {row["versions"] for row in cells if row.get("versions")} or {about.get("versions") or "{}"}
    samplers = ", ".join(address.rpartition(":")[2] for address in about.get("samplers", ()))
    return (
        ("run", run_dir.resolve().name),
        ("size", str(about.get("size", ""))),
        *((("all cells with", _budget(about["budget"])),) if about.get("budget") else ()),
        *((("samplers put beside", samplers),) if samplers else ()),
        ("started", str(about.get("started", "")).replace("T", " ").replace("+00:00", " UTC")),
        ("device", ", ".join(sorted({row["device"] for row in cells if row["device"]})) or "-"),
        ("cells", counts),
        ("time, sampling and warm-up", total("seconds", "warmup_seconds")),
        ("time, compilation", total("compile_seconds")),
        ("versions", "; or ".join(map(_versions, sorted(versions)))),
        ("program", _programs(list(cells))),
    )


def _versions(as_json: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in json.loads(as_json).items())


def _budget(changes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value:,}" for name, value in changes.items())


def _programs(cells: Sequence[Row]) -> str:
    """The hash of the engine, or a warning that cells are of several engines, or of several versions of their code."""
    engines = Counter((row.get("program") or "unknown").partition("-")[0] for row in cells)
    if len(engines) > 1:
        told = ", ".join(f"{count} cells by {engine}" for engine, count in engines.most_common())
        return f"several, so cells may not be comparable: {told}"
    versions: dict[str, set[str]] = {}  # of what a cell calls
    for row in cells:
        versions.setdefault(store.calls_of(row["settings"]), set()).add(row.get("program") or "unknown")
    changed = [row["name"] for row in cells if len(versions[store.calls_of(row["settings"])]) > 1]
    engine = next(iter(engines), "-")
    if not changed:
        return engine
    names = ", ".join(sorted(set(changed))[:5])
    return f"{engine}; {len(changed)} cells are by several versions of their code, and means are over all: {names}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def to_markdown(document: Document) -> str:
    """The same as plain Markdown: ours / print / ratio in each place, and the points of figures."""
    parts = [f"# {document.title}", "\n".join(f"- {name}: {value}" for name, value in document.facts)]
    parts.append("\n".join(("```sh", *document.commands, "```")))
    if document.grids:
        heads = ("table", "metric", "median ratio", *VERDICTS.values(), "too short", "failed", "not run")
        parts += ["## Summary", _HOW, markdown_table(heads, map(_summary, document.grids))]
    for section in document.sections:
        parts += [f"## {section.name}", section.about]
        for place, exhibit in enumerate(section.exhibits, 1):
            parts.append(f"### {exhibit.title}")
            parts += _grid_parts(exhibit) if isinstance(exhibit, Grid) else _plot_parts(exhibit)
            parts.append(f"All numbers: `{anchor(section.name, place)}.csv`, held by the HTML page.")
    if document.failures:
        parts.append("## Failed cells")
    for failure in document.failures:
        error = indent(failure.error.strip(), "    ", lambda line: True)
        parts.append(f"{failure.name}:\n\n{error}")
    return "\n\n".join(parts) + "\n"


_HOW = (
    f"Within: at most {BEYOND_CHANCE:g} standard errors of the difference from print. ± is the standard error of ours, "
    "over chains, instances or seeds. Print has the error that it prints, or half of its last digit; an ESS in print "
    "also that of one reference state, and where instances are random that of having one of them."
)


def _grid_parts(grid: Grid) -> list[str]:
    heads = ("sampler", *(_column(grid, column) for column in grid.columns))
    lines = [(" ".join(filter(None, line.head)), *map(_place, line.entries)) for line in grid.lines]
    lines += [("steps kept × chains", *grid.lengths)] if grid.lengths else []
    parts = [f"{grid.metric}: ours / paper / ratio" if grid.has_print else grid.metric, markdown_table(heads, lines)]
    if grid.footnotes:
        parts.append("\n".join(f"{place}. {text}" for place, text in enumerate(grid.footnotes, 1)))
    return parts


def _plot_parts(plot: Plot) -> list[str]:
    parts = ["A figure, drawn on the HTML page." if plot.tables else "A figure without points; it is on the HTML page."]
    for table in plot.tables:
        parts += [table.title] if table.title else []
        parts.append(markdown_table(table.heads, table.lines))
    return parts + (["Some of the points."] if any(table.is_part for table in plot.tables) else [])


def _summary(grid: Grid) -> tuple[str, ...]:
    ratio = grid.median_ratio
    counts = [grid.count_verdict(verdict) for verdict in VERDICTS]
    counts += [grid.count(status) for status in ("too short", "failed", "missing")]
    said = ["-" if count is None else str(count) for count in counts]
    return grid.title, grid.metric, "-" if ratio is None else ratio_text(ratio), *said


def _column(grid: Grid, column: Sequence[str]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(grid.column_names, column, strict=True))


def _place(entry: Entry) -> str:
    if entry.ours is None:
        printed = f" / {number_text(entry.paper)}" if entry.paper is not None else ""
        said = " quoted" if entry.status == "quoted" else ""
        return ("failed" if entry.status == "failed" else "-") + printed + said
    text = value_text(entry.ours, entry.error)
    if entry.paper is not None:
        text += f" / {number_text(entry.paper)}" + (f" / {ratio_text(entry.ratio)}" if entry.ratio is not None else "")
    said = [f"[{entry.footnote}]"] if entry.footnote else []
    said += [f"({entry.device})"] if entry.device else []
    said += [f"too short ({number_text(entry.times)} autocorrelation times)"] if entry.status == "too short" else []
    said += [entry.side] if entry.side in ("above", "below") else []
    said += [entry.verdict] if entry.verdict in ("unexplained", "no error") else []
    return " ".join([text, *said])
