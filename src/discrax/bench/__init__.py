"""The benchmark: cells, suites of them, a run that survives, and a report beside the printed numbers.

    plan         what is measured: cells, suites, tables and figures, the printed numbers
    execute      how it is run: executors, stored rows, which program made them
    experiments  what a cell does, where more than one paper or a suite of your own may want it
    papers       a folder a paper: its suites, its targets, its printed tables
    report       the page, the Markdown, and two runs beside each other

Imports go up this list, never down; `execute` and `experiments` do not know each other, nor do two papers.
"""

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Figure, Note, Size, Suite, Table, figure, find, note, suite

__all__ = [
    "Budget",
    "Call",
    "Cell",
    "Figure",
    "Note",
    "Size",
    "Suite",
    "Table",
    "call",
    "figure",
    "find",
    "note",
    "suite",
]
