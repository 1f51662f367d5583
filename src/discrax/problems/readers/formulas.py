"""Formulas in conjunctive normal form: DIMACS `.cnf`, and `.wcnf` with weights, of the old kind and of the new.

cnf       p cnf n m             clauses of literals that end with 0, over as many lines as they like
old wcnf  p wcnf n m [top]      a clause a line, its weight first; weights of at least `top` are hard
new wcnf  no p line             a clause a line, `h` or its weight first
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from discrax.problems.readers.lines import Text, as_path, read_bytes, shorten


class Formula(NamedTuple):
    """Clauses of variables 1..n: the literals of clause c are `literals[start[c]:start[c + 1]]`, -3 for "not 3"."""

    num_variables: int
    start: Int[np.ndarray, " ends"]
    literals: Int[np.ndarray, " literals"]
    weights: Float[np.ndarray, " clauses"]  # 0 for hard ones
    is_hard: Bool[np.ndarray, " clauses"]


def read_formula(path: str | Path) -> Formula:
    """The formula in a `.cnf` file, whose clauses are all soft and weigh 1, or in a `.wcnf` file."""
    path = as_path(path)
    text = Text(path, read_bytes(path))
    kind = next((line.split()[1:2] for line in text.lines if line.split()[:1] == ["p"]), None)
    if kind == ["wcnf"] or (kind is None and path.suffix.lower() == ".wcnf"):
        return _read_weighted(text)
    return read_clauses(text)


def read_clauses(text: Text) -> Formula:
    """`p cnf n m`, then clauses; `c` begins comments, and SATLIB's `%` the end."""
    header = None
    numbers, rows = [], []
    for number, line in enumerate(text.lines, 1):
        kind = (line.split(maxsplit=1) or ["c"])[0]
        if kind == "%":
            break
        if kind == "p":
            header = text.p_line(number, header, ("cnf",), "p cnf n m")
        elif kind != "c":
            if header is None:
                raise text.error(number, f"Expected `p cnf n m` before the clauses, but got {shorten(line)}.")
            numbers.append(number)
            rows.append(line)
    if header is None:
        raise text.error(len(text.lines), "Expected a line `p cnf n m`, but there is none.")
    at, (num_variables, num_clauses) = header
    literals = _literals(text, numbers, rows, num_variables)
    ends = np.flatnonzero(literals == 0)
    if len(literals) and literals[-1] != 0:
        raise text.error(numbers[-1], "The last clause does not end with 0.")
    if len(ends) != num_clauses:
        raise text.error(at, f"The p line announces {num_clauses} clauses, but there are {len(ends)}.")
    sizes = np.diff(ends, prepend=-1) - 1
    if (sizes == 0).any():
        position = ends[np.argmax(sizes == 0)]
        line = np.searchsorted(np.cumsum([len(row.split()) for row in rows]), position, side="right")
        raise text.error(numbers[line], "This clause is empty, so that nothing satisfies the formula.")
    start = np.append(0, np.cumsum(sizes))
    return Formula(num_variables, start, literals[literals != 0], np.ones(num_clauses), np.zeros(num_clauses, bool))


def _read_weighted(text: Text) -> Formula:
    header, top = None, np.inf
    numbers, weights, rows = [], [], []
    for number, line in enumerate(text.lines, 1):
        word, rest = (*line.split(maxsplit=1), "", "")[:2]
        if word == "p":
            if numbers:
                raise text.error(number, "The p line must come before the clauses, but is below some.")
            has_top = len(line.split()) == 5
            header = text.p_line(number, header, ("wcnf",), "p wcnf n m top" if has_top else "p wcnf n m", num_counts=2)
            top = _weight(text, number, line.split()[4], np.inf, may_be_h=False) if has_top else np.inf
        elif word not in ("", "c"):
            numbers.append(number)
            weights.append(_weight(text, number, word, top, may_be_h=header is None))
            rows.append(rest)
    if not numbers:
        raise text.error(max(1, len(text.lines)), "There are no clauses.")
    words = [row.split() for row in rows]
    for number, row in zip(numbers, words, strict=True):
        if row[-1:] != ["0"] or "0" in row[:-1]:
            raise text.error(number, "A line has a weight and the literals of one clause, and ends with 0.")
    most = np.inf if header is None else header[1][0]
    literals = _literals(text, numbers, rows, most)
    if header is None:
        num_variables = int(np.abs(literals).max())
        text.check_num_nodes(numbers[0], num_variables, len(literals))
    else:
        num_variables = header[1][0]
        if header[1][1] != len(rows):
            raise text.error(header[0], f"The p line announces {header[1][1]} clauses, but there are {len(rows)}.")
    is_hard, sizes = np.isinf(weights), np.array([len(row) - 1 for row in words])
    if (is_hard & (sizes == 0)).any():
        line = numbers[int(np.argmax(is_hard & (sizes == 0)))]
        raise text.error(line, "This hard clause is empty, so that nothing satisfies the formula.")
    start = np.append(0, np.cumsum(sizes))
    return Formula(num_variables, start, literals[literals != 0], np.where(is_hard, 0.0, weights), is_hard)


def _weight(text: Text, number: int, word: str, top: float, *, may_be_h: bool) -> float:
    """Of the clause on a line; infinite if it is hard."""
    if word == "h" and may_be_h:
        return np.inf
    try:
        weight = float(word)
    except ValueError:
        weight = np.nan
    if not 0 <= weight < np.inf:
        wanted = "`h` or a weight of 0 or more" if may_be_h else "a weight of 0 or more"
        raise text.error(number, f"A clause begins with {wanted}, but got {shorten(word)}.")
    return np.inf if weight >= top else weight


def _literals(text: Text, numbers: list[int], rows: list[str], num_variables: float) -> Int[np.ndarray, " words"]:
    """All words of the clauses as numbers, the zeros that end clauses among them."""
    try:
        literals = np.array(" ".join(rows).split() or np.zeros(0), dtype=np.int64)
        if (np.abs(literals) <= num_variables).all():
            return literals
    except (ValueError, OverflowError):
        pass
    for number, row in zip(numbers, rows, strict=True):
        for word in row.split():
            if not re.fullmatch(r"[+-]?\d+", word):
                raise text.error(number, f"Expected literals, which are whole numbers, but got {shorten(word)}.")
            if abs(int(word)) > num_variables:
                raise text.error(number, f"Variables are 1..{num_variables} here, but got the literal {word}.")
    raise text.error(numbers[0], "There are literals here that are not numbers.")
