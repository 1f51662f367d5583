"""Grids: the numbers of a table of ours, each beside the printed one.

    error = sqrt(standard error of ours^2 + standard error of print^2)
    within   |ours - print| <= 2 error
    above, below   otherwise, whichever is better

The error of ours is that of `rows.mean_of`, that of print that of `printed`, and of an ESS the spread over reference
states, for print has one, as it has one of random instances (`Table.instance_spread`). Where the error of ours is not
known there is no verdict. What is outside has a cause that was tested (a note with a test), or is unexplained. Cells
whose chains are too short are not judged, unless they are as long as print's (`Table.print_steps`). Seconds say by
which device they are where a table has those of several.

Of many numbers some are outside by chance. Let n be those of a table that are within or unexplained, k the unexplained
ones and z the furthest of these. With normal errors

    P(as many) = P(Binomial(n, P(|Z| > 2)) >= k)        P(as far) = 1 - P(|Z| <= |z|)^n

and where n is at least 20 and neither is below 0.05, the k are no more than chance has.

    ratio = factor(labels) * ours / print        (the inverse where smaller is better)
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from discrax.bench.plan.cell import OF_SAMPLER
from discrax.bench.plan.printed import NOT_LABELS, canonical, match_printed, printed_rows
from discrax.bench.plan.rows import OF_SECONDS, Row, group_by, mean_of, reference_std, steps_of
from discrax.bench.plan.suite import Note, Table

BEYOND_CHANCE = 2.0  # standard errors of a difference
VERDICTS = {
    "within": "within",
    "tested": "outside, cause tested",
    "chance": "outside, as chance has",
    "unexplained": "outside, unexplained",
    "no error": "no error known",
}

_QUOTED = "quoted"  # begins the note of a number that a paper has from others
_OUTSIDE = ("tested", "chance", "unexplained")  # verdicts
_FEWEST, _UNLIKELY = 20, 0.05  # numbers that tell chance from more, and how probable chance must be

Key = tuple[float | str, ...]


@dataclass(frozen=True)
class Entry:
    """One place of a grid."""

    status: str = "missing"  # or "ok", "too short", "failed", "quoted": not measured by the paper itself, nor here
    ours: float | None = None
    std: float | None = None
    error: float | None = None  # standard error of ours
    seeds: int = 0
    paper: float | None = None
    paper_error: float | None = None
    ratio: float | None = None
    z: float | None = None  # ours - print, in standard errors of the difference
    verdict: str = ""  # one of VERDICTS where it is judged
    footnote: int | None = None  # counts from 1
    failure: str | None = None
    remark: str = ""  # on the printed number
    times: float | None = None  # chains that are too short: how many autocorrelation times they are long
    device: str = ""  # of seconds, where their table has those of several devices

    @property
    def side(self) -> str:
        """On which side of print it is: "above", "below" or "within"; "" where it is not judged."""
        if self.verdict in _OUTSIDE:
            return "above" if (self.ours or 0.0) > (self.paper or 0.0) else "below"
        return self.verdict if self.verdict == "within" else ""


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
    lengths: tuple[str, ...] = field(default=())  # of each column: steps kept a chain, and chains; () where unknown

    @property
    def entries(self) -> list[Entry]:
        """All places, line by line."""
        return [entry for line in self.lines for entry in line.entries]

    @property
    def ratios(self) -> list[float]:
        """Those of chains that are long enough."""
        return [entry.ratio for entry in self.entries if entry.ratio is not None and entry.status == "ok"]

    @property
    def median_ratio(self) -> float | None:
        """None where there is no ratio."""
        return median(self.ratios) if self.ratios else None

    def count(self, status: str) -> int:
        """How many places are "ok", "too short", "failed", "quoted" or "missing"."""
        return sum(entry.status == status for entry in self.entries)

    def count_verdict(self, verdict: str) -> int | None:
        """How many places have one of VERDICTS; None where nothing is judged."""
        if not (self.compares and self.has_print):
            return None
        return sum(entry.verdict == verdict for entry in self.entries)


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
    devices = {row.get("device") for row in ours if row["status"] == "ok"}
    is_by_device = table.ours in OF_SECONDS and len(devices) > 1
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
            entries.append(_entry(table, place, labels, reference, footnotes, is_by_device))
        shown.append(Line(head, tuple(entries), line in printed_lines))
    shown = _judge_chance(shown, footnotes)
    lengths = _lengths(rows, {row.get("cell") for row in ours}, table.columns, list(columns))
    inside = table.columns, tuple(columns.values()), tuple(shown), tuple(footnotes), lengths
    return Grid(table.title, table.metric, table.compares, bool(print_rows), *inside)


def _lengths(
    rows: Sequence[Row], cells: Set[str | None], names: Sequence[str], columns: Sequence[Key]
) -> tuple[str, ...]:
    """How many steps the chains of each column's cells were, and how many chains; () where no cell says it."""
    found = group_by(
        (row for row in rows if row.get("cell") in cells and row["metric"] in ("num_steps", "num_chains")),
        lambda row: (_key(row["labels"], names), row["metric"]),
    )

    def between(column: Key, metric: str) -> str:
        values = {row["value"] for row in found.get((column, metric), [])}
        return "-".join(f"{value:,.0f}" for value in sorted({min(values), max(values)})) if values else ""

    parts = [(between(column, "num_steps"), between(column, "num_chains")) for column in columns]
    return tuple(" × ".join(part) if all(part) else "-" for part in parts) if any(map(all, parts)) else ()


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
    table: Table,
    place: list[Row],
    labels: Mapping[str, str],
    reference: Row | None,
    footnotes: list[str],
    is_by_device: bool,
) -> Entry:
    printed: dict[str, Any] = {}
    if reference:
        printed = {"paper": reference["value"], "paper_error": reference["error"], "remark": reference["note"]}
    newest = {row["seed"]: row for row in sorted(place, key=lambda row: row.get("finished") or "")}
    found = [row for row in newest.values() if row["status"] == "ok" and row["value"] is not None]
    if not found:
        failures = [row["error"] for row in newest.values() if row["status"] == "failed"]
        absent = "quoted" if reference and reference["note"].startswith(_QUOTED) else "missing"
        return Entry("failed" if failures else absent, failure=next(iter(failures), None), **printed)

    factor = 1.0 if table.factor is None else table.factor(dict(labels))
    mean = mean_of(found)
    ours = factor * mean.value
    std, error = (None if each is None else factor * each for each in (mean.std, mean.error))
    known: dict[str, Any] = {"ours": ours, "std": std, "error": error, "seeds": mean.count, **printed}
    if is_by_device:
        known["device"] = ", ".join(sorted({row.get("device") or "unknown" for row in found}))
    known["ratio"] = _ratio(ours, printed.get("paper"), table.smaller_is_better)
    if mean.times is not None and not (table.print_steps and min(map(steps_of, found)) >= table.print_steps):
        return Entry("too short", times=mean.times, **known)
    if reference and reference["error"] is not None:
        known["paper_error"] = math.hypot(reference["error"], factor * reference_std(found))
        if table.instance_spread is not None:  # ours is one more draw, unless several are averaged
            draws = 2 if mean.count == 1 else 1
            spread = math.sqrt(draws) * table.instance_spread(dict(labels)) * reference["value"]
            known["paper_error"] = math.hypot(known["paper_error"], spread)
    if reference is None or reference["value"] is None or not table.compares:
        return Entry("ok", **known)
    if error is None:
        return Entry("ok", verdict="no error", **known)
    z = (ours - reference["value"]) / math.hypot(error, known["paper_error"])
    if abs(z) <= BEYOND_CHANCE:
        return Entry("ok", z=z, verdict="within", **known)
    cause = _cause(table.notes, labels)
    text = "" if cause is None else _footnote(cause)
    if text and text not in footnotes:
        footnotes.append(text)
    verdict = "tested" if cause is not None and cause.tested else "unexplained"
    return Entry("ok", z=z, verdict=verdict, footnote=footnotes.index(text) + 1 if text else None, **known)


def _judge_chance(lines: list[Line], footnotes: list[str]) -> list[Line]:
    """The lines of a table; what is outside by chance says so in a footnote."""
    judged = [entry for line in lines for entry in line.entries if entry.verdict in ("within", "unexplained")]
    outside = [abs(entry.z) for entry in judged if entry.verdict == "unexplained" and entry.z is not None]
    n, k = len(judged), len(outside)
    if not k or n < _FEWEST:
        return lines
    beyond, furthest = (math.erfc(z / math.sqrt(2)) for z in (BEYOND_CHANCE, max(outside)))
    as_many = 1 - sum(math.comb(n, i) * beyond**i * (1 - beyond) ** (n - i) for i in range(k))
    as_far = 1 - (1 - furthest) ** n
    if min(as_many, as_far) < _UNLIKELY:
        return lines
    footnotes.append(
        f"No more than chance has: {k} of {n} numbers without a tested cause are outside, {beyond * n:.1f} are to be "
        f"expected, and the furthest, at {max(outside):.1f} standard errors, is as far in {as_far:.0%} of such tables."
    )
    by_chance = {"verdict": "chance", "footnote": len(footnotes)}
    return [
        replace(line, entries=tuple(replace(e, **by_chance) if e.verdict == "unexplained" else e for e in line.entries))
        for line in lines
    ]


def _footnote(cause: Note) -> str:
    """As sentences, whether the test ends as one or not."""
    tested = cause.tested.removesuffix(".")
    return f"{cause.text} {f'Tested: {tested}.' if tested else '(Not tested.)'}"


def _cause(notes: Sequence[Note], labels: Mapping[str, str]) -> Note | None:
    """The first note on these labels that was tested, else the first."""
    found = [each for each in notes if each.applies(dict(labels))]
    return next((each for each in found if each.tested), next(iter(found), None))


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
    """Two decimals; three for small ones."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def number_text(value: float | None) -> str:
    """Three to five digits."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        return f"{value:.2e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.{2 if size >= 10 else 3}f}"
