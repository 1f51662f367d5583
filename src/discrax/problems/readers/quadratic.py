"""Quadratic forms: the `.coo` files of dimod and the `.qubo` files of qbsolv."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from discrax.problems.readers.lines import Text, as_path, read_bytes


class QuadraticForm(NamedTuple):
    """offset + sum of linear_i x_i + sum over edges of weight x_i x_j: an energy, so that less is better."""

    linear: Float[np.ndarray, " n"]
    edges: Int[np.ndarray, "m 2"]
    weights: Float[np.ndarray, " m"]
    offset: float
    vartype: str  # "BINARY": x in {0, 1}, or "SPIN": x in {-1, +1}


def read_qubo(path: str | Path) -> QuadraticForm:
    """A quadratic form from lines `i j bias`, nodes from 0, where `i i bias` is linear and repeated entries add up.

    This is dimod's `.coo`, which may say `# vartype=SPIN` (else it is BINARY), and qbsolv's `.qubo`, which has comments
    `c ...` and a line `p qubo 0 max-nodes diagonals elements`.
    """
    path = as_path(path)
    text = Text(path, read_bytes(path))
    vartype, header = "BINARY", None
    numbers, rows = [], []
    for number, line in enumerate(text.lines, 1):
        words = line.split()
        said = re.match(r"\s*#.*?vartype[:=]\s*([-_.a-zA-Z0-9]+)", line)
        if said:
            vartype = said[1]
            if vartype not in ("BINARY", "SPIN"):
                raise text.error(number, f"A vartype is BINARY or SPIN, but got {vartype!r}.")
        elif words and words[0] == "p":
            header = text.p_line(number, header, ("qubo",), "p qubo 0 n diagonals elements")
        elif words and words[0][0] not in "#c":
            numbers.append(number)
            rows.append(line)
    if header is None and not rows:
        raise text.error(len(text.lines), "There are no lines `i j bias`.")
    table = text.table(numbers, rows, "i j bias")
    pairs, biases = table[:, :2].astype(np.int64), table[:, 2]
    is_linear = pairs[:, 0] == pairs[:, 1]
    if header is None:
        num_nodes = int(pairs.max()) + 1
        text.check_num_nodes(numbers[int(pairs.max(axis=1).argmax())], num_nodes, len(rows))
    else:
        at, (_, num_nodes, num_linear, num_couplings) = header
        text.check_num_nodes(at, num_nodes, len(rows))
        for what, said, there in [
            ("linear terms", num_linear, is_linear.sum()),
            ("couplings", num_couplings, (~is_linear).sum()),
        ]:
            if said != there:
                raise text.error(at, f"The p line announces {said} {what}, but there are {there}.")
    text.check_range(numbers, pairs, 0, num_nodes - 1)
    linear = np.bincount(pairs[is_linear, 0], biases[is_linear], minlength=num_nodes)
    edges, entry = np.unique(np.sort(pairs[~is_linear], axis=1), axis=0, return_inverse=True)
    weights = np.bincount(entry.ravel(), biases[~is_linear], minlength=len(edges))
    return QuadraticForm(linear, edges.reshape(-1, 2), weights, 0.0, vartype)
