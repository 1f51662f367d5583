"""All samplers over all tasks of one or more runs, ranked.

A task is what a cell samples or searches, with its budget, and where seconds count with its device. In a task

    rank = 1 + number of samplers that are better by more than two standard errors of the difference

so that samplers within two standard errors share a rank. Cells whose chains are too short have none, nor has a number
whose error is not known. Runs at several values of one knob (labels `rate`, `sigma`, `alpha`) are not ranked,
nor are tasks in which fewer than two samplers have a number. A sampler whose weight is sqrt(t), the usual one, is the
same sampler whether its cells say so or not. Of kernels that are not the package's, two of one name are two samplers.
"""

import base64
import gzip
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from discrax.bench.execute import store
from discrax.bench.plan.cell import OF_SAMPLER
from discrax.bench.plan.rows import Row, add_facts, group_by, mean_of, standard_error
from discrax.bench.plan.suite import Size
from discrax.bench.report.grid import BEYOND_CHANCE, markdown_table
from discrax.bench.report.looks import name_of
from discrax.bench.report.numbers import to_csv, value_text
from discrax.bench.report.page import environment
from discrax.bench.report.write import current, place_of, rows_by_suite, suites_of
from discrax.core.files import check_writable, write_whole


class Board(NamedTuple):
    """What is ranked by: the first of these metrics that a task has, each with 1 if larger is better, -1 if smaller."""

    name: str
    metrics: dict[str, int]
    is_timed: bool = False


BOARDS = (
    Board("ESS per second", {"ESS_t": 1}, is_timed=True),
    Board("ESS per 10,000 evaluations", {"ESS_n": 1}),
    Board(
        "objective",
        # Cuts of equal parts: unequal ones can be had for nothing.
        {"edge_cut_ratio_repaired": -1, "edge_cut_ratio": -1, "ratio": 1, "set_size_lower_bound": 1, "cost": -1}
        | {"relative_error": -1, "J_estimation_error": -1, "log_likelihood": 1, "clip_similarity": 1},
    ),
)
_SAMPLER, _SWEPT = ("sampler", "weight_fn", "variant"), ("rate", "sigma", "alpha")  # labels
_USUAL_WEIGHT = "sqrt(t)"
_OWN = "own"  # in the place of a paper, for tasks of no suite


@dataclass(frozen=True)
class Standing:
    """A sampler in a task."""

    board: str
    paper: str
    family: str  # of tasks: the label `task`
    task: str
    sampler: str
    metric: str
    status: str  # "ok", "too short" or "failed"
    value: float | None = None
    error: float | None = None  # standard error; None where it is not known
    seeds: int = 0
    rank: int | None = None


class Overall(NamedTuple):
    """A sampler over the tasks of a board that it has run."""

    sampler: str
    mean_rank: float
    num_tasks: int
    num_first: int  # alone or with others


def write_leaderboard(runs: Sequence[str | Path], out: str | Path) -> tuple[Path, ...]:
    """Writes leaderboard.html, .md and .csv, and all single numbers of the cells as leaderboard-rows.csv."""
    if not isinstance(runs, list | tuple) or not runs:
        raise ValueError(f"A leaderboard is of one or more runs, a list of their folders, but got {runs!r}.")
    for run in runs:
        store.read_about(run)  # a folder that is no run is said before one is made for the page
    page = check_writable(Path(out) / "leaderboard.html")
    rows = [row for run in runs for row in _read(Path(run))]
    standings = make_standings(rows)
    all_rows = _rows_csv(rows)
    facts = [(Path(run).resolve().name, _about(Path(run), rows), _page_of(Path(run), page)) for run in runs]
    return (
        write_whole(page, _render(standings, all_rows, facts)),
        write_whole(page.with_suffix(".md"), _to_markdown(standings, facts)),
        write_whole(page.with_suffix(".csv"), to_csv(list(Standing.__annotations__), map(_values, standings))),
        write_whole(page.with_name("leaderboard-rows.csv"), all_rows),
    )


def _read(run: Path) -> list[Row]:
    """The rows of a run, with the run's name and their suite."""
    about, rows = store.read_about(run), add_facts(store.read_rows(run))
    size = Size(about.get("size", Size.DEFAULT))
    planned = {suite.name: {cell.id: cell for cell in suite.cells(size)} for suite in suites_of(about)}
    rows, suite_of = current(planned, rows), {}
    for name, members in rows_by_suite(planned, rows).items():
        for row in members:
            suite_of.setdefault(row["cell"], name)
    name = run.resolve().name
    return [row | {"run": name, "suite": suite_of.get(row["cell"], _OWN)} for row in rows]


def _page_of(run: Path, board: Path) -> str:
    """The page of a run's rows, from the leaderboard's, where it lies beside that; else nothing."""
    name = f"{run.resolve().stem}.html"
    return name if (board.parent / name).is_file() else ""


def _about(run: Path, rows: Iterable[Row]) -> str:
    name = run.resolve().name
    mine = [row for row in rows if row["run"] == name]
    devices = ", ".join(sorted({row["device"] for row in mine if row["device"]})) or "-"
    return f"{store.read_about(run).get('size', '')} size, {len({row['cell'] for row in mine})} cells, {devices}"


# --- Ranks -----------------------------------------------------------------------------------------------------------


def make_standings(rows: Sequence[Row]) -> list[Standing]:
    """Every sampler in every task of every board."""
    rows = [row for row in rows if row["x"] is None and not any(name in row["labels"] for name in _SWEPT)]
    found = []
    for board in BOARDS:
        tasks = group_by(rows, lambda row, board=board: _task_key(row, board))
        metrics = {key: _metric_of(board, group) for key, group in tasks.items()}
        names = _names({key: group[0] for key, group in tasks.items() if metrics[key]})
        for key, name in sorted(names.items(), key=lambda item: (item[0][0], _natural(item[1]))):
            inside = _standings_of(board, name, str(metrics[key]), tasks[key])
            found += inside if len(inside) > 1 else []
    return found


def _task_key(row: Row, board: Board) -> tuple:
    budget = _budget_of(row.get("settings") or "{}")
    return _paper(row), place_of(row["labels"]), budget, row["device"] if board.is_timed else ""


@lru_cache(maxsize=4096)
def _budget_of(settings: str) -> str:
    return json.dumps(json.loads(settings).get("budget"), sort_keys=True)


def _paper(row: Row) -> str:
    return row["suite"].partition("/")[0]


def _names(firsts: dict[tuple, Row]) -> dict[tuple, str]:
    """Tasks by their labels, with budget and device where labels alone would not tell them apart."""

    def short(row: Row) -> str:
        labels = {name: value for name, value in row["labels"].items() if name not in OF_SAMPLER and value}
        return " ".join(value if name == "task" else f"{name}={value}" for name, value in labels.items())

    names = {}
    for name, members in group_by(firsts, lambda key: short(firsts[key])).items():
        for key in members:
            paper, _, budget, device = key
            alike = [other for other in members if other[0] == paper]
            names[key] = f"{name} ({_budget_text(budget, device)})" if len(alike) > 1 else name
    return names


def _natural(text: str) -> list[tuple[int, float, str]]:
    """To sort by: numbers inside of names as numbers."""
    parts = re.split(r"(\d+\.?\d*)", text)
    return [(0, float(part), "") if place % 2 else (1, 0.0, part) for place, part in enumerate(parts)]


def _budget_text(budget: str, device: str) -> str:
    known = json.loads(budget) or {}
    steps = known.get("num_samples", 0) * known.get("thinning", 1)
    return f"{known.get('num_chains', 0)} chains, {steps:,} steps" + (f", {device}" if device else "")


def _metric_of(board: Board, rows: Sequence[Row]) -> str | None:
    there = {row["metric"] for row in rows if row["value"] is not None}
    return next((metric for metric in board.metrics if metric in there), None)


def _standings_of(board: Board, task: str, metric: str, rows: Sequence[Row]) -> list[Standing]:
    """The samplers of one task, the best first."""
    found, names = [], _samplers_in(rows)
    for sampler, members in group_by(rows, lambda row: names[_code_of(row)]).items():
        newest = {row["seed"]: row for row in sorted(members, key=_finished) if row["metric"] in (metric, "failed")}
        labels = members[0]["labels"]
        here = Standing(board.name, _paper(members[0]), labels.get("task", "-"), task, sampler, metric, "failed")
        measured = [row for row in newest.values() if row["metric"] == metric and row["value"] is not None]
        if measured:
            mean = mean_of(measured)
            status = "ok" if mean.times is None else "too short"
            here = replace(here, status=status, value=mean.value, error=mean.error, seeds=mean.count)
        if measured or newest:
            found.append(here)
    sign = board.metrics[metric]
    ok = [each for each in found if each.status == "ok" and each.error is not None]
    places = rank_all([(sign * (each.value or 0.0), each.error or 0.0) for each in ok])
    ranks = {each.sampler: place for each, place in zip(ok, places, strict=True)} if len(ok) > 1 else {}
    ranked = [replace(each, rank=ranks.get(each.sampler)) for each in found]
    return sorted(ranked, key=lambda each: (each.rank or math.inf, -sign * (each.value or 0.0)))


def _sampler_of(labels: dict[str, str]) -> str:
    said = {name: value for name, value in labels.items() if (name, value) != ("weight_fn", _USUAL_WEIGHT)}
    return name_of(said, _SAMPLER)


def _code_of(row: Row) -> tuple[str, str, str]:
    """The name of a row's sampler and, of a kernel that is not the package's, where it is and which version of it."""
    address = _address_of(row.get("settings") or "{}")
    if not address or address.startswith("discrax."):
        return _sampler_of(row["labels"]), "", ""
    return _sampler_of(row["labels"]), address.rpartition(":")[0], (row.get("program") or "").rpartition("-")[2]


@lru_cache(maxsize=4096)
def _address_of(settings: str) -> str:
    return json.loads(settings).get("sampler", {}).get("address", "")


def _samplers_in(rows: Iterable[Row]) -> dict[tuple[str, str, str], str]:
    """What each sampler is called: by its name, with file and version where several have that."""
    names = {}
    for name, alike in group_by(dict.fromkeys(map(_code_of, rows)), lambda code: code[0]).items():
        several_files = len({place for _, place, _ in alike}) > 1
        for code in alike:
            _, place, version = code
            parts = [place or "discrax"] if several_files else []
            parts += [version] if len([other for other in alike if other[1] == place]) > 1 else []
            names[code] = f"{name} ({', '.join(parts)})" if parts else name
    return names


def _finished(row: Row) -> str:
    return row.get("finished") or ""


def rank_all(numbers: Sequence[tuple[float, float]]) -> list[int]:
    """The rank of each (value, standard error), larger values first; within two standard errors it is shared."""

    def is_beaten(mine: tuple[float, float], other: tuple[float, float]) -> bool:
        return other[0] - mine[0] > BEYOND_CHANCE * math.hypot(mine[1], other[1])

    return [1 + sum(is_beaten(mine, other) for other in numbers) for mine in numbers]


def overall(standings: Iterable[Standing]) -> list[Overall]:
    """Every sampler over the tasks that it has run; those with fewer than half of the most that any has come last."""
    ranks: dict[str, list[int]] = {}
    for each in standings:
        if each.rank is not None:
            ranks.setdefault(each.sampler, []).append(each.rank)
    most = max(map(len, ranks.values()), default=0)
    found = [Overall(name, fmean(mine), len(mine), mine.count(1)) for name, mine in ranks.items()]
    return sorted(found, key=lambda each: (2 * each.num_tasks < most, each.mean_rank, each.sampler))


# --- What is written -------------------------------------------------------------------------------------------------


def _values(standing: Standing) -> tuple[Any, ...]:
    return tuple(vars(standing).values())


def _rows_csv(rows: Iterable[Row]) -> str:
    """A line for each cell, with its single numbers and their standard errors; series are in the run's own files."""
    single = [row for row in rows if row["x"] is None]
    metrics = dict.fromkeys(row["metric"] for row in single if row["status"] == "ok")
    about = ("run", "suite", "cell", "labels", "seed", "status", "error", "seconds", "device", "program", "finished")
    lines = []
    for mine in group_by(single, lambda row: (row["run"], row["suite"], row["cell"])).values():
        said = mine[0] | {
            "labels": "; ".join(f"{name}={value}" for name, value in mine[0]["labels"].items() if value),
            "error": " ".join((mine[0]["error"] or "").strip().splitlines()[-1:]),
        }
        for row in mine:
            said |= {row["metric"]: row["value"], f"{row['metric']} standard error": standard_error(row)}
        lines.append(said)
    known = {name for line in lines for name, value in line.items() if value is not None}
    numbers = [each for name in metrics for each in (name, f"{name} standard error") if each in known]
    columns = (*about, *numbers)
    return to_csv(columns, ([line.get(name) for name in columns] for line in lines))


def _render(standings: Sequence[Standing], all_rows: str, facts: Sequence[tuple[str, str, str]]) -> str:
    tasks = list(dict.fromkeys((each.board, each.paper, each.family, each.task, each.metric) for each in standings))
    samplers = list(dict.fromkeys(each.sampler for each in standings))
    entries = [
        (
            tasks.index((each.board, each.paper, each.family, each.task, each.metric)), samplers.index(each.sampler),
            each.value, each.error, each.seeds, each.rank, each.status,
        )
        for each in standings
    ]  # fmt: skip
    data = {"boards": [board.name for board in BOARDS], "tasks": tasks, "samplers": samplers, "entries": entries}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    packed = base64.b64encode(gzip.compress(all_rows.encode(), mtime=0)).decode()
    template = environment().get_template("leaderboard.html")
    return template.render(data=text, rows=packed, facts=facts, title=_title(standings))


def _title(standings: Iterable[Standing]) -> str:
    papers = dict.fromkeys(each.paper for each in standings)
    return f"Leaderboard: {', '.join(papers) or 'nothing to rank yet'}"


def _to_markdown(standings: Sequence[Standing], facts: Sequence[tuple[str, str, str]]) -> str:
    command = f"```sh\ndiscrax bench leaderboard {' '.join(name for name, *_ in facts)}\n```"
    told = [f"- {f'[{name}]({page})' if page else name}: {text}" for name, text, page in facts]
    parts = [f"# {_title(standings)}", "\n".join(told), command, _HOW]
    for board in BOARDS:
        mine = [each for each in standings if each.board == board.name]
        if not mine:
            continue
        order = overall(mine)
        lines = [(each.sampler, f"{each.mean_rank:.2f}", str(each.num_tasks), str(each.num_first)) for each in order]
        parts += [f"## {board.name}", markdown_table(("sampler", "mean rank", "tasks", "first"), lines)]
        samplers = [each.sampler for each in order]
        samplers += dict.fromkeys(each.sampler for each in mine if each.sampler not in samplers)
        for paper, inside in group_by(mine, lambda each: each.paper).items():
            places = group_by(inside, lambda each: each.task)
            there = [name for name in samplers if any(each.sampler == name for each in inside)]
            table = ((task, *_line(group, there)) for task, group in places.items())
            parts += [f"### {board.name}: {paper}", markdown_table(("task", *there), table)]
    return "\n\n".join(parts) + "\n"


_HOW = (
    "In each place the rank, the number and its standard error. Samplers within two standard errors of each other have "
    "the same rank; mean ranks are over the tasks that a sampler has run, and those with fewer than half of the most "
    "tasks that any has come last. Budgets are equal in a task. An informed sampler without a weight has sqrt(t). "
    "`leaderboard.csv` has this table, "
    "`leaderboard-rows.csv` a line for each cell with all its single numbers."
)


def _line(group: Sequence[Standing], samplers: Sequence[str]) -> list[str]:
    found = {each.sampler: each for each in group}

    def text(each: Standing | None) -> str:
        if each is None:
            return ""
        number = "" if each.value is None else value_text(each.value, each.error)
        return f"{each.rank or each.status}: {number}".removesuffix(": ")

    return [text(found.get(name)) for name in samplers]
