"""What a command asks for: suites, which of their rows, and what is put beside them: samplers and tasks of one's own.

Budgets and tuning belong to the task. A sampler that is put beside has, for each task and seed, one cell: with the
budget, first states and measure of the task's own cells, and tuned as they are. A task that is put beside has a cell
of every sampler, with the budget and measure of the first task that was asked for.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from discrax.bench.execute.samplers import Beside, parse_samplers
from discrax.bench.plan.cell import OF_SAMPLER, Budget, Call, Cell, resolve
from discrax.bench.plan.measure import Experiment, has_sampler
from discrax.bench.plan.suite import Size, Suite, Table, check_budgets, find, tasks_of
from discrax.core import checks

_FIELDS = {"steps": "num_samples", "chains": "num_chains", "warmup": "num_warmup"}
_OWN = "tasks of your own"
_SHOWN = {  # of tasks of one's own, by how they are measured
    True: {"ESS_t": "ESS per second", "ESS_n": "ESS per 10,000 queries", "ESS_per_step": "ESS per step"},
    False: {"size": "Objective", "ratio": "Objective over the reference", "time_s": "Seconds"},
}


class NothingFits(ValueError):
    """No cell is as --only has it."""


@dataclass(frozen=True)
class Request:
    """What was asked for, as plain values: suites, and what is changed in all their cells alike."""

    suites: tuple[str, ...]  # names, and whole paths of files
    size: Size = Size.DEFAULT
    samplers: tuple[Beside, ...] = ()
    tasks: tuple[Call, ...] = ()
    only: tuple[str, ...] = ()  # of the suites' own rows: "pas", "task=ising"
    budget: tuple[tuple[str, int], ...] = ()  # of all cells: "steps", "chains", "warmup"
    seeds: int = 1
    is_checked: bool = True  # whether foreign kernels are proved before they run

    def cells(self) -> list[Cell]:
        """All cells, each once; an error if `only` leaves nothing, or if a part of it fits nothing."""
        suites = as_asked(self)
        own = [cell for name in self.suites for suite in find(name) for cell in suite.cells(self.size)]
        for text in self.only:
            if not any(all(_is_wanted(cell, [text], of_sampler=each) for each in (True, False)) for cell in own):
                raise NothingFits(f"No cell fits --only {text}; {_what_there_is(self)}.")
        planned = {suite.name: list(suite.cells(self.size)) for suite in suites}
        cells = {cell.id: cell for of_suite in planned.values() for cell in of_suite}
        if not cells:
            raise NothingFits(f"No cell is left by --only {' '.join(self.only)}; {_what_there_is(self)}.")
        if (self.samplers or self.tasks or self.budget) and not any(map(has_sampler, cells.values())):
            raise ValueError(
                f"{', '.join(planned)} measures no sampler, so that --sampler, --task and --set "
                "change nothing there; leave them out, or choose another suite."
            )
        check_labels(planned)
        return list(cells.values())


# As many as there are things to ask for.
def make_request(
    names: Sequence[str],
    size: Size,
    *,
    samplers: Sequence[str] = (),
    tasks: Sequence[str] = (),
    only: Sequence[str] = (),
    budget: Mapping[str, int] | None = None,
    seeds: int = 1,
    is_checked: bool = True,
) -> Request:
    """A request out of what a user wrote, checked."""
    for name, given in (("samplers", samplers), ("tasks", tasks), ("only", only)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f"{name} must be a list of texts, such as ['pas'], but got {checks.describe(given)}.")
    for name, value in (budget or {}).items():
        if name not in _FIELDS:
            raise ValueError(f"A budget has {', '.join(_FIELDS)}, but got {name!r}.")
        checks.whole(name, value, least=0 if name == "warmup" else 1)
    return Request(
        tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in names),
        size,
        tuple(beside for text in samplers for beside in parse_samplers(text)),
        tuple(map(_parse_task, tasks)),
        tuple(filter(None, (part.strip() for text in only for part in text.split(",")))),
        tuple(sorted((budget or {}).items())),
        checks.whole("seeds", seeds, least=1, most=10_000),
        is_checked,
    )


def _parse_task(address: str) -> Call:
    where, separator, name = address.rpartition(":")
    if not separator:
        raise ValueError(f"A task is 'file.py:function' or 'package.module:function', but got {address!r}.")
    address = f"{Path(where).resolve()}:{name}" if where.endswith(".py") else address
    made = resolve(address)
    if not callable(made):
        raise ValueError(f"{address} must be a function that makes a target, but it is {made!r}.")
    try:
        inspect.signature(made).bind()
    except TypeError as error:
        raise ValueError(f"{address} must make a target without arguments, but: {error}.") from error
    return Call(address)


def as_asked(request: Request, find: Callable[[str], list[Suite]] = find) -> list[Suite]:
    """The suites of a request, with the cells that it asks for and what it changes in their titles."""
    suites = list({suite.name: suite for name in request.suites for suite in find(name)}.values())
    changed = ", ".join(f"{name} = {value:,}" for name, value in request.budget)
    extra = f" (all cells with {changed})" if changed else ""
    found = [
        replace(each, about=each.title + extra, unequal="", cells=partial(_cells, request, each)) for each in suites
    ]
    if not request.tasks:
        return found
    own = partial(_own_cells, request, suites)
    is_sampled = not any(isinstance(cell.measure(), Experiment) for cell in own(request.size)[:1])
    tables = (Table(what, "", 0, name, name, ("task",)) for name, what in _SHOWN[is_sampled].items())
    return [*found, Suite(f"own/{'+'.join(map(_name_of, request.tasks))}", _OWN + extra, own, tuple(tables))]


def merge(requests: Iterable[Request], find: Callable[[str], list[Suite]] = find) -> list[Suite]:
    """The suites of several requests: each once, with the cells of all."""
    merged: dict[str, Suite] = {}
    for request in requests:
        for suite in as_asked(request, find):
            parts = [merged[suite.name].cells, suite.cells] if suite.name in merged else [suite.cells]
            merged[suite.name] = replace(suite, cells=partial(_chain, parts))
    return list(merged.values())


def check_labels(planned: Mapping[str, Iterable[Cell]]) -> None:
    """Raises an error if two cells of a suite have equal labels and seeds: tables and figures go by these."""
    for name, cells in planned.items():
        seen: dict[Any, Cell] = {}
        for cell in cells:
            other = seen.setdefault((cell.labels, cell.seed), cell)
            if other.id != cell.id:
                part = next(each.name for each in fields(Cell) if getattr(cell, each.name) != getattr(other, each.name))
                one, two = (_shown(getattr(each, part)) for each in (other, cell))
                raise ValueError(
                    f"Two cells of {name} are called {cell.name!r}, and no table could tell them apart: the "
                    f"{part} of one is {one}, that of the other {two}. Give what you put beside a name "
                    "of its own (it has that of its class or function), or choose another --out."
                )


def _shown(part: Any) -> str:
    return f"{part.address}{part.arguments or ''}" if isinstance(part, Call) else repr(part)


def _chain(parts: Sequence[Callable[[Size], Iterable[Cell]]], size: Size) -> list[Cell]:
    return list({cell.id: cell for part in parts for cell in part(size)}.values())


def _cells(request: Request, suite: Suite, size: Size) -> list[Cell]:
    cells = list(suite.cells(size))
    check_budgets(suite, cells)
    cells = [cell for cell in cells if _is_wanted(cell, request.only, of_sampler=False)]
    rows = [cell for cell in cells if _is_wanted(cell, request.only, of_sampler=True)]
    rows += [each for beside in request.samplers for each in put_beside(cells, beside)]
    return _changed(request, rows)


def _own_cells(request: Request, suites: Sequence[Suite], size: Size) -> list[Cell]:
    """Every sampler that was asked for on the tasks of the user's own; those of equal labels are one."""
    plain = replace(request, budget=(), seeds=1)
    cells = [cell for suite in suites for cell in _cells(plain, suite, size) if has_sampler(cell)]
    if not cells:
        return []
    first = model_cell([cell for cell in cells if cell.task == cells[0].task])
    rows = {}
    for cell in cells:
        if cell.measure == first.measure or cell.label("sampler") in {each.name for each in request.samplers}:
            rows.setdefault(tuple(pair for pair in cell.labels if pair[0] in OF_SAMPLER), cell)
    common = {"budget": first.budget, "measure": first.measure, "init": None, "seed": 0}
    made = [
        replace(cell, labels=(("task", _name_of(task)), *labels), target=task, **common)
        for task in request.tasks
        for labels, cell in rows.items()
    ]
    return _changed(request, made)


def _name_of(task: Call) -> str:
    return task.address.rpartition(":")[2]


def put_beside(cells: Sequence[Cell], beside: Beside) -> Iterator[Cell]:
    """One cell of another sampler for each task and seed of these cells."""
    for task, group in tasks_of(filter(has_sampler, cells)).items():
        for seed in dict.fromkeys(cell.seed for cell in group):
            yield replace(
                model_cell([cell for cell in group if cell.seed == seed]),
                labels=(*task, ("sampler", beside.name)),
                sampler=beside.sampler,
                adaptation="auto" if beside.is_tuned else None,
            )


def model_cell(group: Sequence[Cell]) -> Cell:
    """Whose budget, first states and measure another sampler takes: of a task's cells one that is tuned by "auto".

    In a suite that says that its budgets are unequal it is the one with the most steps.
    """
    tuned = [cell for cell in group if cell.adaptation == "auto"]
    return max(tuned or group, key=lambda cell: cell.budget.num_steps)


def _changed(request: Request, cells: Sequence[Cell]) -> list[Cell]:
    """The cells with the request's budget and seeds. A suite's own seeds (of instances) are all repeated."""
    strides: dict[Any, int] = {}
    for cell in cells:
        strides[cell.labels] = max(strides.get(cell.labels, 1), cell.seed + 1)
    return [
        replace(
            cell, budget=change_budget(cell.budget, dict(request.budget)), seed=cell.seed + k * strides[cell.labels]
        )
        for k in range(request.seeds)
        for cell in cells
    ]


def change_budget(budget: Budget, changes: Mapping[str, int]) -> Budget:
    """The budget with other numbers; "steps" are draws times thinning."""
    found = {_FIELDS[name]: value for name, value in changes.items()}
    if "steps" in changes:
        found["num_samples"] = max(1, changes["steps"] // budget.thinning)
    return replace(budget, **found)


def _is_wanted(cell: Cell, only: Sequence[str], *, of_sampler: bool) -> bool:
    """Whether the labels of the sampler, or the others, are among those asked for: of each label one."""
    patterns: dict[str, list[str]] = {}
    for text in only:
        name, separator, value = text.partition("=")
        patterns.setdefault(name if separator else "sampler", []).append((value if separator else name).casefold())
    labels = dict(cell.labels)
    return all(
        any(fnmatchcase(labels.get(name, "").casefold(), pattern) for pattern in wanted)
        for name, wanted in patterns.items()
        if (name in OF_SAMPLER) == of_sampler
    )


def _what_there_is(request: Request) -> str:
    cells = [cell for name in request.suites for suite in find(name) for cell in suite.cells(request.size)]
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in cell.labels:
            found.setdefault(name, {})[value] = None
    return "there are " + "; ".join(f"{name}: {', '.join(list(values)[:20])}" for name, values in found.items())


def requests_of(about: Mapping[str, Any]) -> list[Request]:
    """The requests that a run.json lists; a run of a time when it listed none has one, for the suites' own cells."""
    names = [*about["suites"], *about.get("user_files", ())]
    found = about.get("requests") or [{"suites": names, "size": about.get("size", Size.DEFAULT)}]
    try:
        return [_from_json(each) for each in found]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"What run.json says was asked for is no request ({type(error).__name__}: {error}); choose another folder, "
            "or delete it."
        ) from error


def _from_json(found: Mapping[str, Any]) -> Request:
    def call(given: Mapping[str, Any]) -> Call:
        return Call(given["address"], tuple((name, value) for name, value in given.get("arguments", ())))

    samplers = tuple(replace(Beside(**each), sampler=call(each["sampler"])) for each in found.get("samplers", ()))
    return Request(
        tuple(found["suites"]),
        Size(found["size"]),
        samplers,
        tuple(map(call, found.get("tasks", ()))),
        tuple(found.get("only", ())),
        tuple(sorted((name, value) for name, value in found.get("budget", ()))),
        found.get("seeds", 1),
        found.get("is_checked", True),
    )


def part_of(about: Mapping[str, Any], suites: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
    """What a run of these suites would say of itself, asked for as this run was, and the ids of its cells."""
    names = make_request(suites, Size.DEFAULT).suites
    parts, cells = [], set()
    for part in dict.fromkeys(replace(each, suites=names) for each in requests_of(dict(about))):
        try:
            cells |= {cell.id for cell in part.cells()}
        except NothingFits:  # its --only was of other suites
            continue
        parts.append(part)
    return dict(about) | {"suites": list(names), "requests": [asdict(each) for each in parts]}, cells
