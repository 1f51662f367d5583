"""The numbers that the papers print, as files of the package: one a table, one row a number.

`std` is over `count` instances, seeds or runs, where both are known.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache, lru_cache
from importlib import resources
from typing import Any

NUMBERS = ("value", "std")
NOT_LABELS = ("paper", "table", "metric", "value", "std", "count", "note", "error")


def printed_tables() -> list[tuple[str, int]]:
    """Every (paper, table) that is here."""
    return sorted(_files())


@cache
def _read(paper: str, table: int) -> tuple[dict[str, Any], ...]:
    if (paper, table) not in _files():
        known = ", ".join(f"{name} {number}" for name, number in printed_tables())
        raise ValueError(f"Table {table} of {paper!r} is not among the printed ones: {known}.")
    rows = []
    for line in csv.DictReader(_files()[paper, table].read_text(encoding="utf-8").splitlines()):
        row: dict[str, Any] = dict(line)
        row["table"] = int(line["table"])
        row |= {name: float(line[name]) if line[name] else None for name in NUMBERS}
        row["error"] = _error(line["value"], row["std"], line.get("count"))
        rows.append(row)
    return tuple(rows)


def _error(value: str, std: float | None, count: str | None) -> float | None:
    """The standard error of a printed number: half of its last digit, and std / sqrt(count) where that is printed."""
    if not value:
        return None
    half_a_digit = 0.5 * 10.0 ** int(Decimal(value).as_tuple().exponent)
    return half_a_digit if std is None or not count else math.hypot(half_a_digit, std / math.sqrt(int(count)))


def printed_rows(paper: str, table: int) -> list[dict[str, Any]]:
    """The rows of a printed table: its labels as text, value, std and error as floats (std None: not printed)."""
    return [dict(row) for row in _read(paper, table)]


def find_printed(paper: str, table: int, metric: str, labels: Mapping[str, str]) -> dict[str, Any] | None:
    """The printed row of a metric whose columns agree with the labels; None where nothing is printed."""
    return match_printed(_read(paper, table), metric, labels)


def match_printed(rows: Iterable[Mapping[str, Any]], metric: str, labels: Mapping[str, str]) -> dict[str, Any] | None:
    """The one of these printed rows that agrees with the labels.

    A label that is no column says nothing. A column without a label says nothing either, except `weight_fn`, which a
    sampler either has or has not. Numbers agree as numbers: 0.3 is 0.3000.
    """
    found = [row for row in rows if row["metric"] == metric and _agrees(row, labels)]
    if len(found) > 1:
        raise ValueError(
            f"The labels {dict(labels)} fit {len(found)} rows of {found[0]['paper']} table {found[0]['table']}; "
            "give the cell the labels that tell them apart."
        )
    return dict(found[0]) if found else None


def _agrees(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    for name, value in row.items():
        if name in NOT_LABELS:
            continue
        if (name in labels or name == "weight_fn") and canonical(labels.get(name) or "") != canonical(value):
            return False
    return True


@lru_cache(maxsize=4096)
def canonical(text: str) -> float | str:
    """A label as it is compared: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


@cache
def _files() -> dict[tuple[str, int], Any]:
    """Each table's file by paper, as its suites name it, and number: papers/PAPER/printed/tableNN_WHAT.csv."""
    papers = [each for each in resources.files("discrax.bench").joinpath("papers").iterdir() if each.is_dir()]
    folders = {paper.name.replace("_", "-"): paper / "printed" for paper in papers}
    return {
        (paper, int(each.name[len("table") :][:2])): each
        for paper, folder in folders.items()
        if folder.is_dir()
        for each in folder.iterdir()
        if each.name.endswith(".csv")
    }
