"""Grids: the numbers of a table of ours, each beside the printed one.

    ratio = factor(labels) * ours / paper        (the inverse where smaller is better)

A ratio has a shade: good (>= 1.1), even (0.9 to 1.1), low (0.5 to 0.9), bad (< 0.5).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from discrax.bench.plan.cell import OF_SAMPLER
from discrax.bench.plan.printed import NOT_LABELS, canonical, match_printed, printed_rows
from discrax.bench.plan.rows import Row, group_by
from discrax.bench.plan.suite import Table

AT_PAR = 0.9
_SHADES = ((1.1, "good"), (AT_PAR, "even"), (0.5, "low"), (float("-inf"), "bad"))

Key = tuple[float | str, ...]


@dataclass(frozen=True)
class Entry:
    """One place of a grid."""

    status: str = "missing"  # or "ok", "failed"
    ours: float | None = None
    std: float | None = None
    paper: float | None = None
    ratio: float | None = None
    shade: str = ""
    footnote: int | None = None  # counts from 1
    is_unexplained: bool = False
    error: str | None = None
    remark: str = ""  # on the printed number


@dataclass(frozen=True)
class Line:
    """A row of a grid."""

    head: tuple[str, ...]
    entries: tuple[Entry, ...]
    is_printed: bool


@dataclass(frozen=True)
class Grid:
    """A table of ours beside print."""

    title: str
    metric: str
    compares: bool
    has_print: bool
    column_names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    lines: tuple[Line, ...]
    footnotes: tuple[str, ...] = field(default=())

    @property
    def entries(self) -> list[Entry]:
        """All places, line by line."""
        return [entry for line in self.lines for entry in line.entries]

    @property
    def ratios(self) -> list[float]:
        """Those that there are."""
        return [entry.ratio for entry in self.entries if entry.ratio is not None]

    @property
    def median_ratio(self) -> float | None:
        """None where there is no ratio."""
        return median(self.ratios) if self.ratios else None

    @property
    def num_at_par(self) -> int:
        """How many ratios are at least 0.9."""
        return sum(ratio >= AT_PAR for ratio in self.ratios)

    @property
    def num_unexplained(self) -> int:
        """How many ratios below have no note."""
        return sum(entry.is_unexplained for entry in self.entries)

    def count(self, status: str) -> int:
        """How many places are "ok", "failed" or "missing"."""
        return sum(entry.status == status for entry in self.entries)


def shade(ratio: float) -> str:
    """The shade of a ratio."""
    return next(name for bound, name in _SHADES if ratio >= bound)


def make_grid(table: Table, rows: Sequence[Row]) -> Grid:
    """The grid of a table out of the rows of its suite's cells."""
    if table.derive is not None:
        rows = table.derive(list(rows))
    print_rows = printed_rows(table.paper, table.number) if table.paper and table.number else []
    print_rows = [row for row in print_rows if row["metric"] == table.metric]
    print_names = [name for name in print_rows[0] if name not in NOT_LABELS] if print_rows else []
    heads = tuple(name for name in table.rows if name in print_names or not print_names)

    ours = [row for row in rows if _belongs(row, table, print_rows, print_names)]
    found = _by_place(ours, heads, table.columns)
    extra = _extra_labels(found.values(), {*heads, *table.columns, *print_names})

    lines: dict[Key, tuple[str, ...]] = {}  # keys in the order of print, then ours, with the text that is shown
    columns: dict[Key, tuple[str, ...]] = {}
    places: dict[tuple[Key, Key], list[Row]] = {}
    for row in print_rows:
        lines.setdefault(_key(row, heads), _text(row, heads))
        columns.setdefault(_key(row, table.columns), _text(row, table.columns))
    printed_lines = set(lines)
    for group in found.values():
        for row in group:
            labels = row["labels"]
            more = tuple(f"{name}={labels[name]}" for name in extra if labels.get(name))
            line, column = (*_key(labels, heads), *more), _key(labels, table.columns)
            lines.setdefault(line, (*_text(labels, heads), *more))
            columns.setdefault(column, _text(labels, table.columns))
            places.setdefault((line, column), []).append(row)

    columns = _sort_columns(columns)
    footnotes: list[str] = []
    shown = []
    for line, head in lines.items():
        entries = []
        for column, text in columns.items():
            place = places.get((line, column), [])
            named = dict(zip(heads, head, strict=False)) | dict(zip(table.columns, text, strict=True))
            labels = place[0]["labels"] if place else named
            reference = match_printed(print_rows, table.metric, labels) if print_rows else None
            entries.append(_entry(table, place, labels, reference, footnotes))
        shown.append(Line(head, tuple(entries), line in printed_lines))
    inside = table.columns, tuple(columns.values()), tuple(shown), tuple(footnotes)
    return Grid(table.title, table.metric, table.compares, bool(print_rows), *inside)


def _belongs(row: Row, table: Table, print_rows: Sequence[Row], print_names: Sequence[str]) -> bool:
    """Is this a number (or a failure) of the table: its metric, its columns, and what print holds fixed?"""
    labels = row["labels"]
    if row["status"] == "ok" and (row["metric"] != table.ours or row["x"] is not None):
        return False
    if any(name not in labels for name in table.columns):
        return False
    fixed = [name for name in print_names if name in labels and name not in (*table.columns, *table.rows, *OF_SAMPLER)]
    return all(canonical(labels[name]) in {canonical(each[name]) for each in print_rows} for name in fixed)


def _by_place(rows: Iterable[Row], heads: Sequence[str], columns: Sequence[str]) -> dict[Any, list[Row]]:
    """Rows by line and column. Of a grid of runs and the best of them, only the best, which has fewer labels, stays."""
    places = group_by(rows, lambda row: (_key(row["labels"], heads), _key(row["labels"], columns)))
    for place, group in places.items():
        fewest = min(len(row["labels"]) for row in group)
        places[place] = [row for row in group if len(row["labels"]) == fewest]
    return places


def _extra_labels(groups: Iterable[list[Row]], known: set[str]) -> list[str]:
    """Labels, beyond those of the table, that tell rows at one place apart."""
    seen: dict[str, None] = {}
    for group in groups:
        group = [row for row in group if row["status"] == "ok"]
        names = {name: None for row in group for name in row["labels"] if name not in known}
        seen |= {name: None for name in names if len({row["labels"].get(name) for row in group}) > 1}
    return list(seen)


def _entry(
    table: Table, place: list[Row], labels: Mapping[str, str], reference: Row | None, footnotes: list[str]
) -> Entry:
    paper = reference["value"] if reference else None
    remark = reference["note"] if reference else ""
    newest = {row["seed"]: row for row in sorted(place, key=lambda row: row.get("finished") or "")}
    good = [row for row in newest.values() if row["status"] == "ok" and row["value"] is not None]
    if not good:
        errors = [row["error"] for row in newest.values() if row["status"] == "failed"]
        return Entry("failed" if errors else "missing", paper=paper, error=next(iter(errors), None), remark=remark)

    factor = 1.0 if table.factor is None else table.factor(dict(labels))
    value = factor * fmean(row["value"] for row in good)
    stds = [row["std"] for row in good if row["std"] is not None]
    std = factor * fmean(stds) if stds else None
    ratio = _ratio(value, paper, table.smaller_is_better)
    if ratio is None or not table.compares:
        return Entry("ok", value, std, paper, ratio, remark=remark)
    texts = [each.text for each in table.notes if each.applies(dict(labels))] if ratio < AT_PAR else []
    if texts and texts[0] not in footnotes:
        footnotes.append(texts[0])
    number = footnotes.index(texts[0]) + 1 if texts else None
    is_unexplained = ratio < AT_PAR and not texts
    return Entry("ok", value, std, paper, ratio, shade(ratio), number, is_unexplained, remark=remark)


def _ratio(ours: float, paper: float | None, smaller_is_better: bool) -> float | None:
    """How good ours is beside print. Printed numbers that are not positive (the bound of a failed search) have none."""
    if paper is None or paper <= 0:
        return None
    if not smaller_is_better:
        return ours / paper
    return paper / ours if ours > 0 else None


def _sort_columns(columns: dict[Key, tuple[str, ...]]) -> dict[Key, tuple[str, ...]]:
    """Columns with the same beginning stand together, in the order in which the beginnings came."""
    order: dict[Key, int] = {}
    for key in columns:
        for stop in range(1, len(key) + 1):
            order.setdefault(key[:stop], len(order))
    rank = {key: [order[key[:stop]] for stop in range(1, len(key) + 1)] for key in columns}
    return {key: columns[key] for key in sorted(columns, key=lambda key: rank[key])}


def _key(labels: Mapping[str, Any], names: Sequence[str]) -> Key:
    return tuple(canonical(labels.get(name) or "") for name in names)


def _text(labels: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(labels.get(name) or "" for name in names)


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of text as Markdown."""
    cells = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)


def ratio_text(ratio: float) -> str:
    """Two decimals; three for small ones and where two would show it in another shade."""
    is_plain = ratio >= 0.1 and shade(float(f"{ratio:.2f}")) == shade(ratio)
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2f}" if is_plain else f"{ratio:.3f}"


def number_text(value: float | None) -> str:
    """Three to five digits."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        return f"{value:.2e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.{2 if size >= 1 else 3}f}"
