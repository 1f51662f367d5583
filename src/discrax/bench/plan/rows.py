"""Rows of a run as tables and figures take them, and what suites make of them before they are shown."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

Row = dict[str, Any]
Item = TypeVar("Item")
Place = TypeVar("Place")
Derive = Callable[[list[Row]], list[Row]]
OF_SECONDS = (  # metrics that need a clock
    "time_s", "microseconds_per_step", "ESS_t", "ESS_all_t", "ESS_chain_t", "ESS_per_second", "ESS_of_size_per_second",
)  # fmt: skip


def group_by(items: Iterable[Item], place: Callable[[Item], Place]) -> dict[Place, list[Item]]:
    """Rows, cells or the like by their place, in the order in which the places come."""
    groups: dict[Place, list[Item]] = {}
    for item in items:
        groups.setdefault(place(item), []).append(item)
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


class Spread(NamedTuple):
    """What the standard deviation of a number is over."""

    over: str  # "chains", "instances" or "seeds"
    count: int


def add_facts(rows: Sequence[Row]) -> list[Row]:
    """Rows with what their cell says of all of its numbers.

    `spread`: its numbers are means over as many instances as its number `instances` says (else over its chains).
    `autocorrelation_times`: how long its chains are, where its number `is_long_enough` says that this is too short.
    `reference_spread`: the standard deviation of its ESS over reference states, as a part of it.
    `is_exact`: there is no chance in its numbers.
    """
    found = []
    for cell in group_by(rows, lambda row: row["cell"]).values():
        single = {row["metric"]: row["value"] for row in cell if row["x"] is None and row["value"] is not None}
        facts: Row = {}
        if "instances" in single:
            facts["spread"] = Spread("instances", int(single["instances"]))
        if single.get("is_long_enough") == 0:
            facts["autocorrelation_times"] = single.get("autocorrelation_times", 0.0)
        if single.get("ESS_reference_std") and single.get("ESS_per_step"):
            facts["reference_spread"] = single["ESS_reference_std"] / single["ESS_per_step"]
        if single.get("is_exact"):
            facts["is_exact"] = True
        found += [row | facts for row in cell]
    return found


def is_too_short(row: Row) -> bool:
    """Whether the chains of the row's cell are too short for its numbers to mean anything but at their length."""
    return "autocorrelation_times" in row


def standard_error(row: Row) -> float | None:
    """std / sqrt(count) over chains, instances or seeds; 0 of what is exact, None where it is not known."""
    if row.get("is_exact"):
        return 0.0
    spread = row.get("spread") or Spread("chains", _budget(row.get("settings") or "{}").get("num_chains", 0))
    if row["std"] is None or spread.count < 2:
        return None
    return row["std"] / math.sqrt(spread.count)


@lru_cache(maxsize=4096)
def _budget(settings: str) -> dict[str, int]:
    return json.loads(settings).get("budget", {})


def steps_of(row: Row) -> int:
    """How many steps the budget of the row's cell lets a chain make after warm-up."""
    budget = _budget(row.get("settings") or "{}")
    return budget.get("num_samples", 0) * budget.get("thinning", 1)


def reference_std(rows: Sequence[Row]) -> float:
    """How much an ESS, the mean of the rows', would differ against one reference state; 0 of what has none.

    All our cells of a task share their references; a paper has one of its own.
    """
    return fmean(row.get("reference_spread", 0.0) * row["value"] * row["metric"].startswith("ESS") for row in rows)


class Mean(NamedTuple):
    """Of the rows at one place, such as those of several seeds."""

    value: float
    std: float | None = None
    error: float | None = None  # standard error; None where it is not known
    count: int = 1
    times: float | None = None  # where chains are too short: how many autocorrelation times they are long


def mean_of(rows: Sequence[Row]) -> Mean:
    """The mean of the rows' values, and its standard error: the larger of what the seeds' spread and their own say.

        of the spread:  stdev(values) / sqrt(n)
        of their own:   sqrt(sum error_i^2) / n,  for seeds have chains of their own,
                        sqrt(sum error_i^2 / n)   over instances, which all seeds share

    Where chains of one row are too short the mean is: those that found no end are not left out.
    """
    times = min((row["autocorrelation_times"] for row in rows if is_too_short(row)), default=None)
    values, n = [row["value"] for row in rows], len(rows)
    if n == 1:
        return Mean(values[0], rows[0]["std"], standard_error(rows[0]), 1, times)
    std = stdev(values)
    errors = [error for row in rows if (error := standard_error(row)) is not None]
    is_shared = any((row.get("spread") or ("",))[0] == "instances" for row in rows)
    own = math.hypot(*errors) / (math.sqrt(n) if is_shared else n)
    return Mean(fmean(values), std, max(std / math.sqrt(n), own), n, times)


def over_seeds(rows: list[Row]) -> list[Row]:
    """Cells that differ only by their seeds as one: the mean and the standard deviation of each number."""
    groups = group_by(rows, lambda row: (frozenset(row["labels"].items()), row["metric"], row["x"], row["status"]))
    merged = []
    for group in groups.values():
        values = [row["value"] for row in group if row["value"] is not None]
        if len(values) > 1:
            spread = Spread("seeds", len(values))
            merged.append(group[0] | {"value": fmean(values), "std": stdev(values), "spread": spread})
        else:
            merged += group
    return merged
