"""Factor graphs from UAI files, and what readers of such files share.

from discrax.interop.factor_files import read_uai

graph = read_uai("problem.uai", evidence="problem.uai.evid")
"""

import gzip
import zlib
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from discrax.problems.readers.lines import Text, as_path, read_bytes, shorten
from discrax.targets.factor_graph import FactorGraph

__all__ = ["read_uai"]

_MOST_ENTRIES = 1 << 30
_KINDS = ("MARKOV", "BAYES")
NO_LEVEL = "(none)"  # the second level, which cannot be, of a variable that has one


def read_uai(path: str | Path, evidence: str | Path | Mapping[int, int] | None = None) -> FactorGraph:
    """The factor graph of a `.uai` file, a Markov or a Bayesian network, as it is or compressed by gzip.

    Args:
        evidence: a file `.uai.evid`, or a dict of variables and their codes.
    """
    words = Words(open_text(path))
    kind = words.next("MARKOV or BAYES")
    if kind not in _KINDS:
        raise words.error(f"A UAI file begins with MARKOV or BAYES, but got {shorten(kind)}.")
    num_levels = [words.count("the number of levels of a variable", 1) for _ in range(words.count("how many", 1))]
    scopes = []
    for _ in range(words.count("the number of tables")):
        scope = [words.count("a variable") for _ in range(words.count("the size of a table's scope"))]
        if any(site >= len(num_levels) for site in scope) or len({*scope}) < len(scope):
            raise words.error(
                f"A scope has different variables below {len(num_levels)}, but got {shorten(str(scope))}."
            )
        scopes.append(scope)
    tables = []
    for f, scope in enumerate(scopes):
        wanted = int(np.prod([num_levels[site] for site in scope], dtype=np.int64))
        if (size := words.count("the number of a table's entries")) != wanted:
            raise words.error(f"Table {f} has {wanted} entries by the levels of its variables, but got {size}.")
        tables.append(np.array([words.potential() for _ in range(size)]))
    words.end()
    graph = graph_of(num_levels, scopes, tables)
    if evidence is None:
        return graph
    return observe(graph, evidence if isinstance(evidence, Mapping) else _read_evidence(evidence, num_levels))


def _read_evidence(path: str | Path, num_levels: Sequence[int]) -> dict[Hashable, int]:
    """`k variable code variable code ...`; before that there may be a 1, the number of such lists."""
    words = Words(open_text(path))
    numbers = len(words.words)
    count = words.count("the number of observed variables")
    if numbers != 1 + 2 * count and count == 1 and numbers > 1:
        count = words.count("the number of observed variables")
        numbers -= 1
    if numbers != 1 + 2 * count:
        raise words.error(f"{count} observed variables are {2 * count} numbers, but {numbers - 1} follow.")
    known: dict[Hashable, int] = {}
    for _ in range(count):
        site = words.count("a variable")
        if site >= len(num_levels):
            raise words.error(f"The network has the variables 0..{len(num_levels) - 1}, but evidence is of {site}.")
        code = words.count("a code")
        if code >= num_levels[site]:
            raise words.error(f"Variable {site} has the codes 0..{num_levels[site] - 1}, but evidence says {code}.")
        known[site] = code
    return known


def graph_of(
    num_levels: Sequence[int],
    scopes: Sequence[Sequence[int]],
    tables: Sequence[Float[np.ndarray, "..."]],
    names: Sequence[Hashable] | None = None,
    labels: Sequence[Sequence[Hashable]] | None = None,
) -> FactorGraph:
    """A factor graph; a variable with one level gets a second, which cannot be, and is frozen at the first."""
    names = range(len(num_levels)) if names is None else names
    alone = {site for site, size in enumerate(num_levels) if size == 1}
    full = []
    for scope, table in zip(scopes, tables, strict=True):
        shaped = np.asarray(table).reshape([num_levels[site] for site in scope])
        full.append(np.pad(shaped, [(0, int(site in alone)) for site in scope]) if scope else shaped)
    if labels is not None:
        labels = [(*each, NO_LEVEL) if site in alone else each for site, each in enumerate(labels)]
    sizes = [max(2, size) for size in num_levels]
    return FactorGraph(sizes, scopes, full, names=names, labels=labels, evidence={names[site]: 0 for site in alone})


def observe(graph: FactorGraph, evidence: Mapping[Any, Any]) -> FactorGraph:
    """With evidence, besides what is frozen already."""
    frozen = graph.space.frozen
    before = {} if frozen is None else {
        graph.names[site]: int(frozen.codes[site]) for site in np.flatnonzero(np.asarray(frozen.mask))
    }  # fmt: skip
    return graph.given({**before, **evidence} if isinstance(evidence, Mapping) else evidence)


def open_text(path: str | Path) -> Text:
    """The lines of a file, as it is or compressed by gzip."""
    path = as_path(path)
    data = read_bytes(path)
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read: it is compressed by gzip, but broken ({error}).") from None
    return Text(path, data)


class Words:
    """The words of a file one after another, with the line of each; by default those between spaces."""

    def __init__(self, text: Text, words: Sequence[tuple[int, str]] | None = None):
        spaced = ((number, word) for number, line in enumerate(text.lines, 1) for word in line.split())
        self.text, self.words, self.place = text, list(spaced if words is None else words), 0

    @property
    def line(self) -> int:
        """Of the last word that was read."""
        return self.words[max(self.place - 1, 0)][0] if self.words else 1

    def error(self, message: str) -> ValueError:
        """At the line of the last word that was read."""
        return self.text.error(self.line, message)

    def next(self, what: str = "more") -> str:
        """The next word."""
        if self.place >= len(self.words):
            raise self.error(f"The file ends where {what} was expected.")
        self.place += 1
        return self.words[self.place - 1][1]

    def count(self, what: str, least: int = 0) -> int:
        """A whole number."""
        word = self.next(what)
        if not word.isdecimal() or not least <= int(word) < _MOST_ENTRIES:
            raise self.error(f"Expected {what}, a whole number from {least}, but got {shorten(word)}.")
        return int(word)

    def potential(self) -> float:
        """An entry of a table."""
        return potential(self.next("an entry of a table"), self)

    def end(self) -> None:
        """Nothing may follow."""
        if self.place < len(self.words):
            self.place += 1
            raise self.error(
                f"Nothing was expected after the last table, but got {shorten(self.words[self.place - 1][1])}."
            )


def potential(word: str, words: Any) -> float:
    """A finite number that is not negative; `words.error` makes the error."""
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value >= 0):
        raise words.error(f"An entry of a table is a finite number that is not negative, but got {shorten(word)}.")
    return value
