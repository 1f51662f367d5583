"""The page that is made of the rows of a script search_*.py: tables, and a picture beside it."""

import argparse
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import peers

if TYPE_CHECKING:
    from search_table import Script

Row = dict[str, Any]
MOST_LISTED = 200  # instances; with more of them a page has families alone


class Cell(NamedTuple):
    """What one search reached on one instance."""

    median: float
    best: float
    seconds: float
    num_seeds: int


def write_page(script: "Script", rows: list[Row], arguments: argparse.Namespace) -> None:
    """The page of the rows with this budget, and its picture beside it."""
    rows = of_one_budget([row for row in rows if row["script"] == script.name], arguments.seconds)
    if not rows:
        sys.exit(f"{arguments.out} has no rows of {script.name} with such a budget.")
    solvers = _in_order({row["solver"] for row in rows}, script.searches)
    by_instance = group(rows, "instance")
    marks = {name: reference(its_rows) for name, its_rows in by_instance.items()}
    cells = {name: cells_of(its_rows) for name, its_rows in by_instance.items()}
    lines = [f"# {arguments.title}", "", script.text.strip(), ""]
    told = [f"- `{family}`: {script.families[family]}" for family in group(rows, "family") if family in script.families]
    lines += [*told, "", *header(rows, solvers), ""] if told else [*header(rows, solvers), ""]
    lines += ["## In short", "", *summary(by_instance, cells, marks, solvers), ""]
    lines += ["## By family", "", *families(by_instance, cells, marks, solvers), ""]
    if script.tells_time:
        lines += ["## Time to solution", "", *times(by_instance, marks, solvers), ""]
    if script.is_fresh:
        lines += ["## Memory", "", *memory(by_instance, solvers), ""]
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    picture = arguments.page.with_suffix(".png")
    if draw(picture, by_instance, cells, marks, solvers, script.title):
        lines += [f"![Gap to the best known, by instance]({picture.name})", ""]
    if len(by_instance) <= MOST_LISTED:
        lines += ["## By instance", "", *listing(by_instance, cells, marks, solvers), ""]
    arguments.page.write_text("\n".join(lines).rstrip() + "\n")
    print(f"{arguments.page}: {len(rows)} rows, {len(by_instance)} instances, {len(solvers)} searches")


def of_one_budget(rows: list[Row], seconds: float | None) -> list[Row]:
    """The rows with these seconds, or of each family those of the seconds that it has most rows of."""
    if seconds is not None:
        return [row for row in rows if row["asked"] == seconds]
    usual = {
        family: statistics.mode(row["asked"] for row in its_rows) for family, its_rows in group(rows, "family").items()
    }
    return [row for row in rows if row["asked"] == usual[row["family"]]]


def group(rows: list[Row], name: str) -> dict[str, list[Row]]:
    """Rows by a field, in the order in which its values came."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups


def reference(rows: list[Row]) -> tuple[float | None, str]:
    """What the rows of an instance are compared with, and what that is: where nothing is known, the best row."""
    first = rows[0]
    if first["best"] is not None:
        return first["best"], first["mark"]
    values = [row["value"] for row in rows if row["value"] is not None]
    return ((max if first["sense"] == "max" else min)(values), "best found here") if values else (None, "nothing found")


def cells_of(rows: list[Row]) -> dict[str, Cell]:
    """Median and best of the seeds of each search. A seed that found nothing counts as the worst there is."""
    cells = {}
    for solver, its_rows in group(rows, "solver").items():
        is_max = its_rows[0]["sense"] == "max"
        nothing = float("-inf") if is_max else float("inf")
        values = sorted((nothing if row["value"] is None else row["value"] for row in its_rows), reverse=is_max)
        # Of an even number of seeds the worse of the two in the middle, so that a median is a value that was reached.
        cells[solver] = Cell(
            values[len(values) // 2], values[0], statistics.median(row["seconds"] for row in its_rows), len(values)
        )
    return cells


def gap(value: float, best: float) -> float:
    """How far from the reference, in percent of it; 0 where a value is as good or better."""
    return 100 * abs(best - value) / max(abs(best), 1e-9)


def _is_at(value: float, best: float, sense: str) -> bool:
    slack = 1e-6 * max(1.0, abs(best))
    return value >= best - slack if sense == "max" else value <= best + slack


def header(rows: list[Row], solvers: list[str]) -> list[str]:
    """Machine, budget, versions, and what each search did with its seconds."""
    machines = " and ".join(sorted({f"{row['machine']}, {row['cores']} cores" for row in rows}))
    seeds = len({row["seed"] for row in rows})
    budgets = ", ".join(f"{each:g}" for each in sorted({row["asked"] for row in rows}))
    lines = [
        f"- machine: {machines}; every search is held to these cores",
        f"- seconds: {budgets}{' (by family, see there)' if ',' in budgets else ''} "
        "for each search of each instance: wall time, building the model and all, imports and compilation apart",
        f"- seeds: {seeds}; tables have the median of the seeds, and in brackets the best where it is another",
        f"- python {', '.join(sorted({row['python'] for row in rows}))}",
        "- a search on one thread runs on each core with its own seed, and the better counts "
        f"({', '.join(_single(solvers))})",
        "",
        "| search | versions | seconds taken of those asked, median and most | cores kept busy | failures |",
        "|---|---|---|---|---|",
    ]
    by_solver = group(rows, "solver")
    for solver in solvers:
        its_rows = by_solver[solver]
        named = ", ".join(f"{name} {number}" for name, number in its_rows[-1]["versions"].items())
        shares = [row["seconds"] / row["asked"] for row in its_rows]
        busy = statistics.median(row["cpu_seconds"] / max(row["seconds"], 1e-3) for row in its_rows)
        failures = sum(row["value"] is None for row in its_rows)
        lines.append(
            f"| {solver} | {named} | {statistics.median(shares):.2f}, {max(shares):.2f} | {busy:.1f} | "
            f"{f'{failures} of {len(its_rows)}' if failures else '-'} |"
        )
    return lines


def summary(by_instance, cells, marks, solvers) -> list[str]:
    """How many instances each search has at the reference, and how it stands beside the first."""
    first = solvers[0]
    lines = [
        "| search | instances | median at the reference | best seed at it | mean gap, % | largest gap, % | "
        f"beside {first}: better, equal, worse |",
        "|---|---|---|---|---|---|---|",
    ]
    for solver in solvers:
        names = [name for name in by_instance if solver in cells[name] and marks[name][0] is not None]
        gaps, at, best_at, beside = [], 0, 0, [0, 0, 0]
        for name in names:
            cell, best, sense = cells[name][solver], marks[name][0], by_instance[name][0]["sense"]
            at += _is_at(cell.median, best, sense)
            best_at += _is_at(cell.best, best, sense)
            gaps.append(0.0 if _is_at(cell.median, best, sense) else gap(cell.median, best))
            if first in cells[name]:
                other = cells[name][first].median
                sign = 1 if sense == "max" else -1
                beside[0 if sign * (cell.median - other) > 1e-9 else 1 if cell.median == other else 2] += 1
        finite = [each for each in gaps if each != float("inf")]
        none = f" ({len(gaps) - len(finite)} without)" if len(finite) < len(gaps) else ""
        mean = f"{statistics.mean(finite):.4f}{none}" if finite else "-"
        most = f"{max(finite):.3f}" if finite else "-"
        compared = "" if solver == first else ", ".join(map(str, beside))
        lines.append(f"| {solver} | {len(names)} | {at} | {best_at} | {mean} | {most} | {compared} |")
    return lines


def families(by_instance, cells, marks, solvers) -> list[str]:
    """Mean over the instances of a family of the medians; a search that ran on some alone says on how many."""
    lines = [
        f"| family | instances | seconds | reference | {' | '.join(solvers)} |",
        "|---|---|---|---" + "|---" * len(solvers) + "|",
    ]
    by_family: dict[str, list[str]] = {}
    for name, rows in by_instance.items():
        by_family.setdefault(rows[0]["family"], []).append(name)
    for family, names in by_family.items():
        references = [marks[name][0] for name in names if marks[name][0] is not None]
        kinds = "/".join(sorted({marks[name][1] for name in names}))
        columns = []
        for solver in solvers:
            found = [cells[name][solver].median for name in names if solver in cells[name]]
            finite = [each for each in found if abs(each) != float("inf")]
            part = f" (on {len(finite)})" if len(finite) < len(names) else ""
            columns.append(f"{_mean(finite)}{part}" if finite else "-")
        seconds = by_instance[names[0]][0]["asked"]
        lines.append(
            f"| {family} | {len(names)} | {seconds:g} | {_mean(references)} ({kinds}) | {' | '.join(columns)} |"
        )
    return lines


def listing(by_instance, cells, marks, solvers) -> list[str]:
    """A line an instance: median (best) and, where it falls short, the gap of the median."""
    lines = [
        f"| instance | n | m | reference | {' | '.join(solvers)} |",
        "|---|---|---|---" + "|---" * len(solvers) + "|",
    ]
    for name, rows in by_instance.items():
        best, mark = marks[name]
        row, columns = rows[0], []
        for solver in solvers:
            cell = cells[name].get(solver)
            if cell is None or best is None:
                columns.append("")
                continue
            if abs(cell.median) == float("inf"):
                columns.append("none" if abs(cell.best) == float("inf") else f"none ({number_text(cell.best)})")
                continue
            also = "" if cell.best == cell.median else f" ({number_text(cell.best)})"
            short = "" if _is_at(cell.median, best, row["sense"]) else f", {gap(cell.median, best):.3f} %"
            text = f"{number_text(cell.median)}{also}{short}"
            columns.append(text if short else f"**{text}**")
        star = "" if mark in ("best known", "optimum") else f" ({mark})"
        lines.append(f"| {name} | {row['n']:,} | {row['m']:,} | {number_text(best)}{star} | {' | '.join(columns)} |")
    return lines


def times(by_instance, marks, solvers) -> list[str]:
    """By family, the share of runs that reach the reference and the median of the seconds when those found it."""
    lines = [
        "The share of all runs that reach the reference, and the median of the seconds after which those runs had it "
        "(the history of a search has an entry every now and then, so the seconds are upper bounds).",
        "",
        f"| family | {' | '.join(solvers)} |",
        "|---" * (len(solvers) + 1) + "|",
    ]
    runs: dict[str, dict[str, list[float | None]]] = {}
    for name, rows in by_instance.items():
        for row in rows:
            best = marks[name][0]
            at = best is not None and row["value"] is not None and _is_at(row["value"], best, row["sense"])
            when = row["notes"].get("found_at", row["seconds"]) if at else None
            runs.setdefault(row["family"], {}).setdefault(row["solver"], []).append(when)
    for family, by_solver in runs.items():
        columns = []
        for solver in solvers:
            all_runs = by_solver.get(solver, [])
            good = [each for each in all_runs if each is not None]
            text = f"{100 * len(good) / len(all_runs):.0f} %" if all_runs else ""
            columns.append(f"{text}, {statistics.median(good):.1f} s" if good else text)
        lines.append(f"| {family} | {' | '.join(columns)} |")
    return lines


def memory(by_instance, solvers) -> list[str]:
    """Most memory of all processes of a search, and of that what the search itself added."""
    lines = [
        "MiB of all processes of a search at their peak, and in brackets what was added to them as they stood before.",
        "",
        f"| instance | {' | '.join(solvers)} |",
        "|---" * (len(solvers) + 1) + "|",
    ]
    for name, rows in by_instance.items():
        by_solver, columns = group(rows, "solver"), []
        for solver in solvers:
            peaks = [(row["peak_mib"], row["peak_mib"] - row["start_mib"]) for row in by_solver.get(solver, [])]
            columns.append(f"{max(peaks)[0]:,} ({max(peaks)[1]:,})" if peaks else "")
        lines.append(f"| {name} | {' | '.join(columns)} |")
    return lines


def draw(path: Path, by_instance, cells, marks, solvers, title: str) -> bool:
    """The gap of each search's median, instance by instance; False where there is nothing to draw."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("There is no matplotlib here, so there is no picture.")
        return False
    names = [name for name in by_instance if marks[name][0] is not None]
    if len(names) < 2:
        return False
    figure = Figure(figsize=(max(6.0, min(16.0, 0.28 * len(names) + 3)), 4.2), layout="constrained")
    axes = figure.subplots()
    for place, solver in enumerate(solvers):
        points = []
        for x, name in enumerate(names):
            cell, best = cells[name].get(solver), marks[name][0]
            if cell is None or abs(cell.median) == float("inf"):
                continue
            is_at = _is_at(cell.median, best, by_instance[name][0]["sense"])
            points.append((x, 0.0 if is_at else gap(cell.median, best)))
        if points:
            axes.plot(*zip(*points, strict=True), "os^vDPX*<>h"[place % 11], ms=5, alpha=0.75, label=solver)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(bottom=-0.003)
    axes.set_ylabel("gap of the median, %")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if len(names) <= 60:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    else:
        axes.set_xlabel("instance, in the order of the table")
    figure.legend(fontsize=8, ncols=4, loc="outside lower center")
    figure.savefig(path, dpi=110)
    return True


def _single(solvers: list[str]) -> list[str]:
    return [name for name in solvers if peers.peer(name).is_single] or ["none here"]


def _in_order(names: set[str], order: tuple[str, ...]) -> list[str]:
    known = list(dict.fromkeys([*order, *peers.PEERS]))
    return sorted(names, key=lambda name: (known.index(name.partition(":")[0]), name))


def number_text(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value == round(value) else f"{value:,.3f}"


def _mean(values: list[float]) -> str:
    if not values:
        return "-"
    mean = statistics.mean(values)
    return f"{mean:,.0f}" if mean == round(mean) and len(values) == 1 else f"{mean:,.2f}"


if __name__ == "__main__":
    sys.exit("Run one of the scripts search_*.py; this is what they share.")
