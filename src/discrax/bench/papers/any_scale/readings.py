"""Readings of what print leaves open: its Barabasi-Albert graph, and how walks and Gibbs choose the sites of spins."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from discrax.bench.papers.any_scale.sampling import (
    BUDGETS,
    COUPLINGS,
    PRINT_STEPS,
    mixing,
    our_rows,
    printed_rows,
    target,
)
from discrax.bench.plan.cell import Cell, call
from discrax.bench.plan.rows import Derive, Row, relabel
from discrax.bench.plan.suite import Size, Table, suite

# Of print's rows, by what they may have been.
_CHOICES = {"Gibbs (in turn)": "Gibbs", "RW (each site alone)": "RW"}
_NAMES, _PRINTED = _CHOICES | {"DLP": "LB"}, {"ba2-ising": "ba4-ising"}
_TABLES = {"grid-ising": 2, "ba4-ising": 3, "ba2-ising": 3}


def _of(task: str, *, choices: bool) -> Derive:
    """The rows of a task with print's names: those of the readings of its choices, or the others."""

    def derive(rows: list[Row]) -> list[Row]:
        found = []
        for row in rows:
            its, name = row["labels"]["task"], row["labels"]["sampler"]
            if its == task and (name in _CHOICES) == choices:
                found.append(relabel(row, sampler=_NAMES.get(name, name), task=_PRINTED.get(its, its)))
        return found

    return derive


def _table(task: str, title: str, *, choices: bool) -> Table:
    return Table(
        f"ESS per 10,000 queries, {title}", "any-scale", _TABLES[task], "ESS_n", "ESS_n", ("J",), ("sampler",),
        derive=_of(task, choices=choices), print_steps=PRINT_STEPS, is_reading=True,
    )  # fmt: skip


_TWO = "a Barabasi-Albert graph of two edges a node"
_SITES = "Gibbs in turn, and a walk that moves each site by itself with probability R / n"


@suite(
    "any-scale/readings",
    f"readings that print leaves open: table 3 on {_TWO} (print says four); Ising models by {_SITES}",
    _table("ba2-ising", _TWO, choices=False),
    _table("ba2-ising", f"{_TWO}: {_SITES}", choices=True),
    _table("ba4-ising", f"the Barabasi-Albert graph of four edges a node: {_SITES}", choices=True),
    _table("grid-ising", f"the 20 x 20 grid: {_SITES}", choices=True),
)
def readings(effort: Size) -> Iterator[Cell]:
    choices: dict[str, dict[str, Any]] = {
        name: {"sampler": sampler, "measure": mixing(whole=effort is not Size.QUICK)}
        for name, sampler in (
            ("Gibbs (in turn)", call("discrax.samplers:gibbs", scan="systematic")),
            ("RW (each site alone)", call("discrax.bench.papers.any_scale.kernels:EachAlone")),
        )
    }
    as_printed = printed_rows(effort, ordinal=False) | our_rows(effort, ordinal=False)
    for not_in_table3 in ("DLP-trace", "Gibbs (chromatic)"):
        del as_printed[not_in_table3]
    for task in _TABLES:
        rows = (as_printed if task == "ba2-ising" else {}) | choices
        for value in COUPLINGS:
            for name, how in rows.items():
                labels, made = (("task", task), ("J", value), ("sampler", name)), target(task, value)
                yield replace(Cell(labels=labels, target=made, budget=BUDGETS[effort], **how), is_timed=False)
