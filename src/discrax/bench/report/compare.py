"""Two runs beside each other: every number's ratio, and whether it moved by more than chance.

    ratio = b / a,    z = (b - a) / sqrt(error_a^2 + error_b^2)

The errors are standard errors over chains or instances. A number has moved where |z| > 3. Where an error is not known,
or the chains of either are too short, there is no z, and no verdict; nor has what needs a clock between two devices.
Cells of equal labels may have other budgets, such as those of two sizes, and other targets or samplers, where a suite
was edited between the runs; which these are is said.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discrax.bench.execute import store
from discrax.bench.plan.rows import OF_SECONDS, Row, add_facts, group_by, is_too_short, standard_error
from discrax.bench.report.grid import markdown_table, number_text

BEYOND_CHANCE = 3.0
_SHOWN = 5  # of what a remark lists
_CALLS = ("target", "sampler", "adaptation", "measure", "init")

_HEADS = ("cell", "metric", "a", "b", "b / a", "z", "")


@dataclass(frozen=True)
class Difference:
    """A number in both runs."""

    name: str
    metric: str
    a: float
    b: float
    z: float | None

    @property
    def ratio(self) -> float | None:
        """b / a; None where a is 0."""
        return self.b / self.a if self.a else None

    @property
    def has_moved(self) -> bool:
        """Whether chance does not explain the difference."""
        return self.z is not None and abs(self.z) > BEYOND_CHANCE


@dataclass(frozen=True)
class Comparison:
    """All numbers that two runs share, and the cells that cannot be compared."""

    differences: tuple[Difference, ...]
    only_a: tuple[str, ...]  # cells
    only_b: tuple[str, ...]
    broken: tuple[str, ...]  # ok in a, failed in b
    mended: tuple[str, ...]
    unequal: tuple[tuple[str, str], ...] = ()  # the budgets in a and b of each pair of cells where they differ
    changed: tuple[tuple[str, str], ...] = ()  # what else differs in what cells call, such as "target", and their names
    devices: tuple[tuple[str, str], ...] = ()  # in a and b of each pair of cells where they differ

    @property
    def moved(self) -> list[Difference]:
        """The numbers that moved by more than chance."""
        return [each for each in self.differences if each.has_moved]

    def lines(self, metrics: Iterable[str] = ()) -> list[tuple[str, ...]]:
        """The numbers as lines of a table, of some metrics or of all."""
        wanted = set(metrics)
        return [
            (
                each.name,
                each.metric,
                number_text(each.a),
                number_text(each.b),
                "-" if each.ratio is None else f"{each.ratio:.2f}",
                "-" if each.z is None else f"{each.z:+.1f}",
                ("up" if each.b > each.a else "down") if each.has_moved else "",
            )
            for each in self.differences
            if not wanted or each.metric in wanted
        ]

    def remarks(self) -> list[str]:
        """What a table of numbers does not say."""
        judged = [each for each in self.differences if each.z is not None]
        said = [
            f"{len(self.moved)} of {len(judged)} numbers with a known error moved by more than {BEYOND_CHANCE:g} of it."
        ]
        if self.unequal:
            pairs = Counter(self.unequal).most_common()
            shown = ", ".join(f"{a} with {b} ({count})" for (a, b), count in pairs[:_SHOWN])
            shown += ", ..." if len(pairs) > _SHOWN else ""
            said.append(
                f"{len(self.unequal)} pairs of cells have other budgets in a than in b (chains x steps, and how many "
                f"pairs): {shown}."
            )
        for part, names in group_by(self.changed, lambda each: each[0]).items():
            shown = ", ".join(name for _, name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
            said.append(f"{len(names)} pairs of cells have another {part} in a than in b: {shown}.")
        if self.devices:
            pairs = ", ".join(f"{a} in a, {b} in b ({count})" for (a, b), count in Counter(self.devices).most_common())
            said.append(f"What needs a clock is not judged where devices differ: {pairs}.")
        kinds = (("only in a", self.only_a), ("only in b", self.only_b), ("failed in b", self.broken))
        for what, names in (*kinds, ("failed in a", self.mended)):
            if names:
                shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
                said.append(f"{len(names)} cells {what}: {shown}.")
        return said

    def markdown(self, metrics: Iterable[str] = ()) -> str:
        """The table and the remarks as Markdown."""
        return "\n\n".join([markdown_table(_HEADS, self.lines(metrics)), *self.remarks()]) + "\n"

    def __rich__(self) -> Any:
        return self.table()

    def table(self, metrics: Iterable[str] = ()) -> Any:
        """As a rich table; what moved is coloured."""
        from rich.table import Table
        from rich.text import Text

        made = Table(*_HEADS, caption="\n".join(self.remarks()), caption_justify="left")
        for column in made.columns[2:6]:
            column.justify = "right"
        for line in self.lines(metrics):
            style = {"up": "green", "down": "red", "": ""}[line[-1]]
            made.add_row(*(Text(cell, style=style) for cell in line))
        return made


def compare_runs(run_a: str | Path, run_b: str | Path) -> Comparison:
    """Cells of equal id are compared, else cells of equal labels (which name the sampler) and seed."""
    rows = [store.read_rows(run) for run in (run_a, run_b)]
    for run, found in zip((run_a, run_b), rows, strict=True):
        if not found:
            raise ValueError(f"{run} holds a run without a single finished cell; `discrax bench run` goes on with it.")
    return compare_rows(*rows)


def compare_rows(rows_a: list[Row], rows_b: list[Row]) -> Comparison:
    """The rows of two runs; cells are paired by their ids, else by their labels and seeds."""
    cells_a, cells_b = (group_by(add_facts(rows), lambda row: row["cell"]) for rows in (rows_a, rows_b))
    by_labels = {_identity(group[0]): id for id, group in cells_b.items()}
    pairs = {id: id if id in cells_b else by_labels.get(_identity(group[0])) for id, group in cells_a.items()}
    found = set(pairs.values())
    differences: list[Difference] = []
    broken, mended, unequal, changed, devices = [], [], [], [], []
    for id_a, id_b in pairs.items():
        if id_b is None:
            continue
        a, b = cells_a[id_a], cells_b[id_b]
        budgets = _budget(a[0]), _budget(b[0])
        if budgets[0] != budgets[1]:
            unequal.append(budgets)
        changed += [(part, a[0]["name"]) for part in _CALLS if _called(a[0], part) != _called(b[0], part)]
        if a[0]["device"] != b[0]["device"]:
            devices.append((a[0]["device"] or "unknown", b[0]["device"] or "unknown"))
        was_ok, is_ok = a[0]["status"] == "ok", b[0]["status"] == "ok"
        if was_ok and is_ok:
            differences += _differences(a, b)
        elif was_ok:
            broken.append(a[0]["name"])
        elif is_ok:
            mended.append(a[0]["name"])
    return Comparison(
        tuple(differences),
        tuple(cells_a[id][0]["name"] for id, other in pairs.items() if other is None),
        tuple(group[0]["name"] for id, group in cells_b.items() if id not in found),
        tuple(broken),
        tuple(mended),
        tuple(unequal),
        tuple(changed),
        tuple(devices),
    )


def _differences(a: list[Row], b: list[Row]) -> list[Difference]:
    """Number by number, series left out; the seconds of the cell last."""
    numbers_b = {row["metric"]: row for row in b if row["x"] is None and row["value"] is not None}
    found = []
    for row in a:
        other = numbers_b.get(row["metric"])
        if row["x"] is None and row["value"] is not None and other is not None:
            found.append(Difference(row["name"], row["metric"], row["value"], other["value"], _z(row, other)))
    for metric in ("seconds", "warmup_seconds", "compile_seconds"):
        found.append(Difference(a[0]["name"], metric, a[0][metric] or 0.0, b[0][metric] or 0.0, None))
    return found


def _z(a: Row, b: Row) -> float | None:
    error_a, error_b = standard_error(a), standard_error(b)
    if error_a is None or error_b is None or is_too_short(a) or is_too_short(b):
        return None
    if a["metric"] in OF_SECONDS and a["device"] != b["device"]:
        return None
    error = math.hypot(error_a, error_b)
    return (b["value"] - a["value"]) / error if error > 0 else None


def _budget(row: Row) -> str:
    """The budget of the row's cell, "100 x 50,000 after 12,500 of warm-up"; steps count, not draws."""
    found = json.loads(row["settings"])["budget"]
    steps, warmup = found["num_samples"] * found["thinning"], found["num_warmup"]
    return f"{found['num_chains']:,} x {steps:,}" + (f" after {warmup:,} of warm-up" if warmup else "")


def _called(row: Row, part: str) -> Any:
    """What a cell calls, but for where a user's file lies: a copy of it may have moved."""
    found = json.loads(row["settings"]).get(part)
    return found | {"address": found["address"].rpartition("/")[2]} if isinstance(found, dict) else found


def _identity(row: Row) -> tuple:
    return row["seed"], *sorted(row["labels"].items())
