"""Rows of a run as tables and figures take them, and what suites make of them before they are shown."""

import json
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any

Row = dict[str, Any]
Derive = Callable[[list[Row]], list[Row]]


def group_by(rows: Iterable[Row], place: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by their place, in the order in which the places come."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(place(row), []).append(row)
    return groups


def relabel(row: Row, **labels: str) -> Row:
    """The row with these labels besides its own, or in their place."""
    return row | {"labels": row["labels"] | labels}


def without(row: Row, *names: str) -> Row:
    """The row without these labels."""
    return row | {"labels": {name: value for name, value in row["labels"].items() if name not in names}}


def only(**labels: str) -> Derive:
    """Keeps the rows that have these labels."""
    return lambda rows: [row for row in rows if labels.items() <= row["labels"].items()]


def name_panels(*names: str) -> Derive:
    """Rows whose label `model` is the values of some labels: what a panel shows."""

    def name(row: Row) -> str:
        return " ".join(filter(None, (row["labels"].get(name) for name in names)))

    return lambda rows: [relabel(row, model=name(row)) for row in rows]


def standard_error(row: Row) -> float:
    """std / sqrt(chains) of a row; 0 where either is not known."""
    chains = _num_chains(row.get("settings") or "{}")
    return row["std"] / math.sqrt(chains) if chains and row["std"] is not None else 0.0


@lru_cache(maxsize=4096)
def _num_chains(settings: str) -> int | None:
    return json.loads(settings).get("budget", {}).get("num_chains")


def over_seeds(rows: list[Row]) -> list[Row]:
    """Cells that differ only by their seeds as one: the mean and the standard deviation of each number."""
    groups = group_by(rows, lambda row: (frozenset(row["labels"].items()), row["metric"], row["x"], row["status"]))
    merged = []
    for group in groups.values():
        values = [row["value"] for row in group if row["value"] is not None]
        if len(values) > 1:
            merged.append(group[0] | {"value": fmean(values), "std": stdev(values)})
        else:
            merged += group
    return merged
