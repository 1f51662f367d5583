"""The report of a run: its tables beside the printed ones and its figures, as one HTML page and as Markdown."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from discrax.bench.execute import store
from discrax.bench.execute.request import merge, requests_of
from discrax.bench.plan.cell import OF_SAMPLER
from discrax.bench.plan.printed import canonical
from discrax.bench.plan.rows import Row
from discrax.bench.plan.suite import Figure, Size, Suite, Table, find
from discrax.bench.report import plots
from discrax.bench.report.grid import Entry, Grid, make_grid, markdown_table, number_text, ratio_text
from discrax.bench.report.looks import Style, name_of
from discrax.bench.report.looks import palette as palette_of
from discrax.bench.report.page import Document, Failure, Plot, Section, anchor, render, svg_of
from discrax.core.files import check_writable, write_whole


def write_report(run_dir: str | Path, out: str | Path | None = None) -> tuple[Path, Path]:
    """Writes the page and the Markdown of a run; says where they are.

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
    return write_whole(page, render(document)), write_whole(plain, to_markdown(document))


def make_document(run_dir: Path) -> Document:
    """What there is to show of a run."""
    about, rows = store.read_about(run_dir), store.read_rows(run_dir)
    suites, size = suites_of(about), Size(about.get("size", Size.DEFAULT))
    planned = {suite.name: {cell.id: cell for cell in suite.cells(size)} for suite in suites}
    order = {id: place for place, id in enumerate(id for cells in planned.values() for id in cells)}
    rows.sort(key=lambda row: order.get(row["cell"], len(order)))
    strangers = [row for row in rows if not any(row["cell"] in cells for cells in planned.values())]
    palette = palette_of(name_of(row["labels"], ("sampler", "weight_fn")) for row in rows)

    sections = []
    for suite in suites:
        cells = planned[suite.name]
        places = {_place_of(dict(cell.labels)) for cell in cells.values()}
        mine = [row for row in rows if row["cell"] in cells]
        mine += [row for row in strangers if _place_of(row["labels"]) in places]
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
    return Document(f"Benchmark: {', '.join(names)}", facts, tuple(sections), tuple(failed.values()))


def suites_of(about: dict[str, Any]) -> list[Suite]:
    """The suites of a run, shipped and in files, each once, with the cells that were asked for."""
    return merge(requests_of(about), find)


def _place_of(labels: dict[str, str]) -> frozenset[tuple[str, float | str]]:
    """What is sampled, whatever the sampler: a user's sampler is shown where the suite's own stand."""
    return frozenset((name, canonical(value)) for name, value in labels.items() if name not in OF_SAMPLER)


def _exhibit(
    exhibit: Table | Figure, rows: Sequence[Row], palette: dict[str, Style], missing: list[str], name: str
) -> Grid | Plot:
    if isinstance(exhibit, Table):
        return make_grid(exhibit, rows)
    if exhibit.derive is not None:
        rows = exhibit.derive(list(rows))
    options = {"missing": missing, "palette": palette} | dict(exhibit.options)
    figure = plots.draw(exhibit.kind, rows, options)
    return Plot(exhibit.title, svg_of(figure, name, f"{exhibit.kind}: {exhibit.title}"))


def _facts(run_dir: Path, about: dict[str, Any], rows: Sequence[Row], num_missing: int) -> tuple[tuple[str, str], ...]:
    cells = {row["cell"]: row for row in rows}.values()
    num_failed = sum(row["status"] == "failed" for row in cells)
    counts = f"{len(cells) - num_failed} ok, {num_failed} failed" + (f", {num_missing} not run" if num_missing else "")

    def total(*names: str) -> str:
        return _duration(sum(row[name] or 0.0 for row in cells for name in names))

    versions = about.get("versions") or {}
    versions = json.loads(versions) if isinstance(versions, str) else versions
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
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("program", _programs(list(cells))),
    )


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
    changed = sorted({row["name"] for row in cells if len(versions[store.calls_of(row["settings"])]) > 1})
    engine = next(iter(engines), "-")
    if not changed:
        return engine
    return f"{engine}; the code of {len(changed)} cells changed between them: {', '.join(changed[:5])}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def to_markdown(document: Document) -> str:
    """The same as plain Markdown: ours / paper / ratio in each place; figures by title."""
    parts = [f"# {document.title}", "\n".join(f"- {name}: {value}" for name, value in document.facts)]
    if document.grids:
        heads = ("table", "metric", "median ratio", "ratio >= 0.9")
        parts += ["## Summary", markdown_table(heads, map(_summary, document.grids))]
    for section in document.sections:
        parts += [f"## {section.name}", section.about]
        for exhibit in section.exhibits:
            parts.append(f"### {exhibit.title}")
            if isinstance(exhibit, Plot):
                parts.append("A figure; it is on the HTML page.")
                continue
            parts.append(f"{exhibit.metric}: ours / paper / ratio" if exhibit.has_print else exhibit.metric)
            heads = ("sampler", *(_column(exhibit, column) for column in exhibit.columns))
            lines = ((" ".join(filter(None, line.head)), *map(_place, line.entries)) for line in exhibit.lines)
            parts.append(markdown_table(heads, lines))
            if exhibit.footnotes:
                parts.append("\n".join(f"{place}. {text}" for place, text in enumerate(exhibit.footnotes, 1)))
    if document.failures:
        parts.append("## Failed cells")
    for failure in document.failures:
        error = indent(failure.error.strip(), "    ", lambda line: True)
        parts.append(f"{failure.name}:\n\n{error}")
    return "\n\n".join(parts) + "\n"


def _summary(grid: Grid) -> tuple[str, ...]:
    ratio = grid.median_ratio
    share = f"{grid.num_at_par} of {len(grid.ratios)}" if grid.compares and grid.ratios else "-"
    return grid.title, grid.metric, "-" if ratio is None else ratio_text(ratio), share


def _column(grid: Grid, column: Sequence[str]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(grid.column_names, column, strict=True))


def _place(entry: Entry) -> str:
    if entry.ours is None:
        printed = f" / {number_text(entry.paper)}" if entry.paper is not None else ""
        return ("failed" if entry.status == "failed" else "-") + printed
    text = number_text(entry.ours) + (f" ± {number_text(entry.std)}" if entry.std is not None else "")
    if entry.ratio is not None:
        text += f" / {number_text(entry.paper)} / {ratio_text(entry.ratio)}"
    return text + (f" [{entry.footnote}]" if entry.footnote else "") + (" unexplained" if entry.is_unexplained else "")
