"""The numbers of tables and figures as text: CSV with all of them, and tables of what a figure shows."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from discrax.bench.report.axes import Point
from discrax.bench.report.grid import Grid, number_text

Item = TypeVar("Item")
_MOST_COLUMNS, _MOST_LINES = 12, 40  # of a table of points; the CSV has all


def to_csv(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A table as CSV: numbers with seven digits, nothing where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"{value:.7g}" if isinstance(value, float) else "" if value is None else value


_ENTRY = ("status", "ours", "std", "error", "seeds", "paper", "paper_error", "ratio", "z", "verdict", "side", "times",
          "device")  # fmt: skip


def grid_csv(grid: Grid) -> str:
    """A table beside print: a line for each of its places."""
    heads = ("line", *grid.column_names, "metric", *_ENTRY, "footnote")
    lines = (
        (
            " ".join(filter(None, line.head)), *column, grid.metric, *(getattr(entry, name) for name in _ENTRY),
            grid.footnotes[entry.footnote - 1] if entry.footnote else None,
        )
        for line in grid.lines
        for column, entry in zip(grid.columns, line.entries, strict=True)
    )  # fmt: skip
    return to_csv(heads, lines)


def points_csv(points: Sequence[Point]) -> str:
    """What a figure shows: a line for each point."""
    return to_csv(Point._fields, points)


class PointTable(NamedTuple):
    """The points of a panel as a table of text."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    is_part: bool  # of more lines


def point_tables(points: Sequence[Point]) -> list[PointTable]:
    """A table for each panel.

    Few places x are its columns, many its lines; where the figure's lines do not share their places, each point is one.
    """
    panels: dict[str, list[Point]] = {}
    for point in points:
        panels.setdefault(point.panel, []).append(point)
    return [_table_of(title, inside) for title, inside in panels.items()]


def _table_of(title: str, points: Sequence[Point]) -> PointTable:
    names = list(dict.fromkeys(point.line for point in points))
    places = list(dict.fromkeys(point.x for point in points))
    if not any(isinstance(x, str) for x in places):
        places.sort()
    longest = max(sum(point.line == name for point in points) for name in names)
    if len(places) > 2 * longest:
        lines = [(point.line, _place(point.x), _value(point)) for point in points]
        return _cut(title, ("", "x", "y"), lines)
    found = {(point.line, point.x): _value(point) for point in points}
    if len(places) <= _MOST_COLUMNS:
        heads = ("", *(_place(x) or "value" for x in places))
        return _cut(title, heads, [(name, *(found.get((name, x), "") for x in places)) for name in names])
    lines = [(_place(x), *(found.get((name, x), "") for name in names)) for x in places]
    return _cut(title, ("", *names), lines)


def _cut(title: str, heads: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> PointTable:
    kept = spread_out(lines, _MOST_LINES)
    return PointTable(title, heads, tuple(kept), len(kept) < len(lines))


def spread_out(items: Sequence[Item], most: int) -> list[Item]:
    """So many items at most, from the first to the last at about equal steps."""
    if len(items) <= most:
        return list(items)
    places = (round(place * (len(items) - 1) / (most - 1)) for place in range(most))
    return [items[place] for place, _ in itertools.groupby(places)]


def _place(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:.6g}"


def _value(point: Point) -> str:
    return value_text(point.y, point.error) + (" (too short)" if point.is_too_short else "")


def value_text(value: float | None, error: float | None) -> str:
    """A number and its standard error, where that is known."""
    return number_text(value) + (f" ± {number_text(error)}" if error is not None else "")
