"""Suites: functions that yield cells, and the tables and figures that are made of them.

A *task* is what the cells with equal labels, those that name the sampler left out, have in common. Its budget is the
task's: a suite whose rows have different ones is refused, unless it says in its title that it is so.
"""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from discrax.bench.plan.cell import Cell, load_file
from discrax.bench.plan.rows import group_by

Task = tuple[tuple[str, str], ...]  # labels that say what is sampled


class Size(StrEnum):
    """How much of the paper's effort is spent: minutes on two cores, an hour on them, or as the paper did."""

    QUICK = "quick"
    DEFAULT = "default"
    PAPER = "paper"


@dataclass(frozen=True)
class Note:
    """Why the cells with these labels differ from print."""

    where: tuple[tuple[str, str], ...]
    text: str
    tested: str = ""  # what came of a test of this cause, with its number; without one it explains nothing

    def applies(self, labels: dict[str, str]) -> bool:
        """Whether these labels are those of the note."""
        return all(labels.get(name) == value for name, value in self.where)


def note(text: str, tested: str = "", **where: str) -> Note:
    """A note on the cells with these labels (on all where none is given), and what a test of it gave."""
    return Note(tuple(where.items()), text, tested)


@dataclass(frozen=True)
class Table:
    """Numbers beside the printed ones of a table."""

    title: str
    paper: str
    number: int
    metric: str  # as printed
    ours: str  # our metric
    columns: tuple[str, ...]  # labels
    rows: tuple[str, ...] = ("sampler", "weight_fn")
    factor: Callable[[dict], float] | None = None  # ours times this, given the labels
    compares: bool = True  # False: seconds of another machine
    notes: tuple[Note, ...] = ()
    derive: Callable[[list[dict]], list[dict]] | None = None  # more rows out of the rows of a run
    smaller_is_better: bool = False  # then a ratio is that of print to ours
    print_steps: int | None = None  # of print's chains: ours that make as many are judged also where they are too short
    is_reading: bool = False  # of another law than the one that print states: beside print, and not counted
    # Print has one instance drawn at random: how much its number would differ with another, as a part of it.
    instance_spread: Callable[[dict], float] | None = None


@dataclass(frozen=True)
class Figure:
    """A plot; `kind` is a function of `discrax.bench.report.plots`."""

    title: str
    kind: str
    options: tuple[tuple[str, Any], ...] = ()
    derive: Callable[[list[dict]], list[dict]] | None = None


def figure(title: str, kind: str, derive: Callable[[list[dict]], list[dict]] | None = None, **options: Any) -> Figure:
    """A plot of some kind with its options."""
    return Figure(title, kind, tuple(options.items()), derive)


@dataclass(frozen=True)
class Suite:
    """Cells under a name, with the tables and figures that they make."""

    name: str  # "paper/table05"
    about: str
    cells: Callable[[Size], Iterable[Cell]]
    exhibits: tuple[Table | Figure, ...] = ()
    unequal: str = ""  # how and why the budgets of a task differ; nothing: they do not

    @property
    def title(self) -> str:
        """What it is about and, where budgets of a task differ, how."""
        return f"{self.about} (unequal budgets: {self.unequal})" if self.unequal else self.about


def suite(
    name: str, about: str, *exhibits: Table | Figure, unequal: str = ""
) -> Callable[[Callable[[Size], Iterable[Cell]]], Suite]:
    """Makes a suite of the function that yields its cells; `unequal` says why the budgets of a task differ."""
    return lambda cells: Suite(name, about, cells, exhibits, unequal)


def tasks_of(cells: Iterable[Cell]) -> dict[Task, list[Cell]]:
    """Cells by their tasks, in the order in which these come."""
    return group_by(cells, lambda cell: cell.task)


def check_budgets(suite: Suite, cells: Sequence[Cell]) -> None:
    """Raises an error if rows of one task have different budgets and the suite does not say so."""
    if suite.unequal:
        return
    for group in tasks_of(cells).values():
        other = next((cell for cell in group if cell.budget != group[0].budget), None)
        if other is not None:
            raise ValueError(
                f"All rows of a task must have the same budget, but in {suite.name} {group[0].name!r} has "
                f"{group[0].budget} and {other.name!r} has {other.budget}. Make them equal, or say why they differ by "
                "@suite(..., unequal=...), which stands in the title."
            )


def shipped_suites() -> dict[str, Suite]:
    """Every suite of the package, by name."""
    return {found.name: found for module in _modules() for found in _suites_of(module)}


def aliases() -> dict[str, tuple[str, ...]]:
    """Other names for one or more suites, such as "discs/ising"."""
    return {name: names for module in _modules() for name, names in getattr(module, "ALIASES", {}).items()}


def _modules() -> list[Any]:
    """Found by name: a plan does not know the papers."""
    papers = import_module("discrax.bench.papers")
    found = [each.name for each in pkgutil.iter_modules(papers.__path__) if each.ispkg]
    packages = [import_module(f"{papers.__name__}.{name}") for name in found]
    return [import_module(f"{package.__name__}.{name}") for package in packages for name in package.SUITES]


def _suites_of(module: Any) -> list[Suite]:
    return [value for value in vars(module).values() if isinstance(value, Suite)]


def find(name: str) -> list[Suite]:
    """The suites of a name, of a paper ("optimal-scaling"), or of a Python file."""
    if not isinstance(name, str):
        raise TypeError(f"A suite has a name, or is a file that ends in .py, but got {name!r}.")
    if name.endswith(".py"):
        found = _suites_of(load_file(Path(name)))
        if not found:
            raise ValueError(
                f"{name} defines no suite; decorate a function that yields cells with @discrax.bench.suite."
            )
        return found
    known, others = shipped_suites(), aliases()
    if name in others:
        return [known[each] for each in others[name]]
    found = [each for each in known.values() if each.name == name or each.name.startswith(f"{name}/")]
    if not found:
        papers = sorted({each.partition("/")[0] for each in known})
        raise ValueError(
            f"There is no suite {name!r}; `discrax bench list` shows them (papers: {', '.join(papers)}), "
            "and a file of your own ends in .py."
        )
    return found
