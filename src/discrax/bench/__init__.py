"""The benchmark: cells, suites of them, a run that survives, and a report beside the printed numbers."""

from discrax.bench.cell import Budget, Call, Cell, call
from discrax.bench.suite import Figure, Note, Size, Suite, Table, figure, find, note, suite

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
