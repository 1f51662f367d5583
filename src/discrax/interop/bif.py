"""Bayesian networks from BIF files, as the bnlearn repository has them; no other package is needed.

from discrax.interop.bif import read_bif

graph = read_bif("asia.bif.gz", evidence={"xray": "yes"})
"""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discrax.interop.factor_files import Words, graph_of, observe, open_text, potential
from discrax.problems.readers.lines import Text, shorten
from discrax.targets.factor_graph import FactorGraph

__all__ = ["read_bif"]

_WORD = re.compile(r'"[^"]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+')
_FAR_FROM_ONE = 0.02  # by which the rounded numbers of a row may miss it


def read_bif(path: str | Path, evidence: Mapping[str, Any] | None = None) -> FactorGraph:
    """The factor graph of a Bayesian network in a `.bif` file, as it is or compressed by gzip.

    Sites have the names and levels the labels of the file. There is a table for each variable, with its parents.

    Args:
        evidence: names of variables and what they are, `{name: label or code}`.
    """
    reader = _Reader(open_text(path))
    reader.read()
    names = list(reader.labels)
    scopes = [[names.index(each) for each in (*parents, child)] for child, (parents, _) in reader.tables.items()]
    sizes = [len(each) for each in reader.labels.values()]
    graph = graph_of(sizes, scopes, [table for _, table in reader.tables.values()], names, list(reader.labels.values()))
    return graph if evidence is None else observe(graph, evidence)


class _Reader(Words):
    """The words of a file, and what has been read of it."""

    def __init__(self, text: Text):
        source = re.sub(r"/\*.*?\*/", lambda c: "\n" * c.group().count("\n"), "\n".join(text.lines), flags=re.DOTALL)
        lines = enumerate((line.split("//")[0] for line in source.split("\n")), 1)
        super().__init__(text, [(number, word.strip('"')) for number, line in lines for word in _WORD.findall(line)])
        self.labels: dict[str, tuple[str, ...]] = {}
        self.tables: dict[str, tuple[list[str], np.ndarray]] = {}
        self.lines: dict[str, int] = {}  # of the table of each variable

    def expect(self, wanted: str) -> None:
        """The next word must be this one."""
        if (word := self.next(wanted)) != wanted:
            raise self.error(f"Expected {wanted}, but got {shorten(word)}.")

    def list_until(self, end: str) -> list[str]:
        """Words between commas or spaces."""
        found = []
        while (token := self.next()) != end:
            if token in "{}()[];|":
                raise self.error(f"Expected {end}, but got {shorten(token)}.")
            found += [token] if token != "," else []
        return found

    def read(self) -> None:
        while self.place < len(self.words):
            kind = self.next()
            if kind == "network":
                self.next()
                self.expect("{")
                while self.next() != "}":
                    pass
            elif kind == "variable":
                self.variable()
            elif kind == "probability":
                self.probability()
            else:
                raise self.error(f"Expected network, variable or probability, but got {shorten(kind)}.")
        if not self.labels:
            raise self.error("The file has no variables.")
        for name in self.labels:
            if name not in self.tables:
                raise self.error(f"The variable {name} has no table of probabilities.")
        self.check_acyclic()

    def variable(self) -> None:
        name = self.next()
        if name in self.labels:
            raise self.error(f"There are two variables {name}.")
        self.expect("{")
        while (token := self.next()) != "}":
            if token == "property":
                self.list_until(";")
                continue
            if token != "type":
                raise self.error(f"Expected type, property or }}, but got {shorten(token)}.")
            if (kind := self.next()) != "discrete":
                raise self.error(f"Variables are discrete here, but {name} is {shorten(kind)}.")
            self.expect("[")
            count = self.next()
            self.expect("]")
            self.expect("{")
            labels = self.list_until("}")
            self.expect(";")
            if count != str(len(labels)) or len({*labels}) < len(labels):
                raise self.error(f"{name} has {count} different levels, but {len(labels)} are named.")
            self.labels[name] = tuple(labels)
        if name not in self.labels:
            raise self.error(f"The variable {name} has no type.")

    def probability(self) -> None:
        self.expect("(")
        child, parents = self.known(self.next()), []
        separator = self.next()
        if separator == "|":
            parents = [self.known(name) for name in self.list_until(")")]
        elif separator != ")":
            raise self.error(f"Expected | or ), but got {shorten(separator)}.")
        if child in self.tables:
            raise self.error(f"There are two tables of {child}; the first is on line {self.lines[child]}.")
        if len({child, *parents}) < 1 + len(parents):
            raise self.error(f"The table of {child} names a variable twice.")
        self.lines[child] = self.line
        self.expect("{")
        shape = [len(self.labels[name]) for name in (*parents, child)]
        table = np.full(shape, np.nan)
        while (token := self.next()) != "}":
            self.rows(token, child, parents, table)
        missing = np.argwhere(np.isnan(table))
        if len(missing):
            which = ", ".join(self.labels[name][code] for name, code in zip(parents, missing[0], strict=False))
            raise self.error(f"The table of {child} has no row for ({which}).")
        self.tables[child] = parents, table

    def rows(self, token: str, child: str, parents: list[str], table: np.ndarray) -> None:
        """One entry of a table's body: all of it, a row, the row of all others, or a property."""
        if token == "property":
            self.list_until(";")
        elif token == "table":  # the child changes slowest
            values = self.numbers(child, table.size).reshape(table.shape[-1], -1)
            self.check_sums(child, values.sum(axis=0))
            table[...] = values.T.reshape(table.shape)
        elif token == "default":
            row = self.numbers(child, table.shape[-1])
            self.check_sums(child, row.sum(keepdims=True))
            table[...] = np.where(np.isnan(table), row.reshape((1,) * (table.ndim - 1) + (-1,)), table)
        elif token == "(":
            where = self.list_until(")")
            if len(where) != len(parents):
                raise self.error(f"{child} has {len(parents)} parents, but the row is of {len(where)}.")
            for name, label in zip(parents, where, strict=True):
                if label not in self.labels[name]:
                    known = ", ".join(self.labels[name])
                    raise self.error(f"{name} has the levels {known}, but got {shorten(label)}.")
            row = self.numbers(child, table.shape[-1])
            self.check_sums(child, row.sum(keepdims=True))
            table[tuple(self.labels[name].index(label) for name, label in zip(parents, where, strict=True))] = row
        else:
            raise self.error(f"Expected table, default, property or a row, but got {shorten(token)}.")

    def numbers(self, child: str, count: int) -> np.ndarray:
        values = np.array([potential(word, self) for word in self.list_until(";")])
        if len(values) != count:
            raise self.error(f"{count} probabilities of {child} were expected, but there are {len(values)}.")
        return values

    def check_sums(self, child: str, sums: np.ndarray) -> None:
        off = np.abs(sums - 1) > _FAR_FROM_ONE
        if off.any():
            raise self.error(f"The probabilities of {child} in a row add up to 1, but here to {sums[off][0]:.6g}.")

    def known(self, name: str) -> str:
        if name not in self.labels:
            raise self.error(f"There is no variable {shorten(name)} above this line.")
        return name

    def check_acyclic(self) -> None:
        """Takes away variables without parents; those that remain have a cycle among them."""
        waiting = {child: {*parents} for child, (parents, _) in self.tables.items()}
        while done := {child for child, parents in waiting.items() if not parents}:
            waiting = {child: parents - done for child, parents in waiting.items() if child not in done}
        if not waiting:
            return
        path = [next(iter(waiting))]
        while path[-1] not in path[:-1]:
            path.append(sorted(waiting[path[-1]])[0])
        cycle = path[path.index(path[-1]) :]
        steps = " <- ".join(name for name, _ in itertools.groupby(cycle))
        raise self.text.error(self.lines[cycle[0]], f"A Bayesian network has no cycles, but here is {steps}.")
