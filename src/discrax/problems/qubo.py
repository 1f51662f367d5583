"""Quadratic unconstrained binary optimisation, and Ising models in spins.

An energy is to be made as small as possible:

    offset + linear' x + sum over pairs of weight_ij x_i x_j,    x in {0, 1}^n,

or the same with spins s = 2 x - 1 in place of x. A spin model is searched in x:

    h s = 2 h x - h,        J s s' = 4 J x x' - 2 J x - 2 J x' + J.

How many variables are on may be bounded, of all or of groups: such a bound holds at every state of a search.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import number, real_array
from discrax.core.space import Binary
from discrax.problems.bounded import Repair, units_out_of_bounds
from discrax.problems.graph import check_names, check_num_nodes, check_sum
from discrax.problems.problem import BinaryQuadratic, BoundedQuadratic
from discrax.problems.readers import QuadraticForm, read_qubo
from discrax.problems.states import Unconstrained, per_state, plain_keys, totals
from discrax.problems.terms import read_terms, terms_of

_FORMS = "a square matrix, a dict {(i, j): weight}, a dimod model, a file, or linear terms with `edges` and `weights`"


class _Energy(NamedTuple):
    linear: Float[np.ndarray, " n"]
    edges: Int[np.ndarray, "m 2"]
    weights: Float[np.ndarray, " m"]
    offset: float

    def in_bits(self) -> "_Energy":
        """The same energy in x, where this one is in s = 2 x - 1."""
        around = totals(self.edges.ravel(), np.repeat(self.weights, 2), len(self.linear))
        offset = self.offset - self.linear.sum() + self.weights.sum()
        return _Energy(2 * self.linear - 2 * around, self.edges, 4 * self.weights, float(offset))

    def in_spins(self) -> "_Energy":
        """The same energy in s, where this one is in x = (1 + s) / 2."""
        around = totals(self.edges.ravel(), np.repeat(self.weights, 2), len(self.linear))
        offset = self.offset + self.linear.sum() / 2 + self.weights.sum() / 4
        return _Energy(self.linear / 2 + around / 4, self.edges, self.weights / 4, float(offset))


@dataclass(frozen=True, init=False, repr=False, eq=False)
class QUBO(Unconstrained):
    """Minimise x'Qx (`QUBO(Q)`), a dimod model (`QUBO(bqm)`) or an energy of arrays (`QUBO(linear, edges, weights)`).

    Q is a matrix, dense or scipy.sparse, of any triangle, or a dict {(i, j): weight, i: weight} with names of any kind
    (`problems/terms.py`), which `QUBO(h, J)` may bring in two parts; Q_ij and Q_ji add up. So do pairs that are given
    twice, and a pair (i, i) is a linear term. A file is read by `read_qubo`. With vartype "SPIN", which a dimod model
    or a file brings along, the terms are those of spins, a pair (i, i) is a constant, and solutions are described in
    spins. States are codes 0 and 1 all the same.

    `exactly`, or `at_least` and `at_most`, say how many variables are on (1, or +1): of all, or of each group, one
    number for all groups or one for each. `groups` numbers the group of every variable from 0, -1 for one in none.
    """

    sense: ClassVar[str] = "min"

    energy: _Energy  # of codes 0 and 1
    space: Binary
    names: tuple[Hashable, ...] | None
    is_spin: bool

    def __init__(
        self,
        Q: Any,
        edges: Any = None,
        weights: Any = None,
        *,
        offset: float = 0.0,
        vartype: str = "BINARY",
        names: Sequence[Hashable] | None = None,
        exactly: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ):
        if isinstance(Q, str | Path):
            Q = read_qubo(Q)
        if hasattr(Q, "vartype"):
            if edges is not None or weights is not None or offset or vartype != "BINARY" or names is not None:
                raise ValueError("A dimod model comes alone: it has its own pairs, offset, vartype and labels.")
            if isinstance(Q, QuadraticForm):
                Q, edges, weights, offset, vartype = Q
            else:
                Q, edges, weights, offset, vartype, names = _parts_of_bqm(Q)
        elif isinstance(Q, Mapping) or isinstance(edges, Mapping):
            if weights is not None:
                raise ValueError("A dict has its own weights, so leave out `weights`.")
            Q, edges, weights, constant, names = _parts_of_dicts(Q, edges, names)
            offset = number("offset", offset) + constant
        elif edges is None and weights is not None:
            raise ValueError("weights are those of `edges`, but no edges were given.")
        elif edges is None:
            Q, edges, weights = _parts_of_matrix(Q)
        if vartype not in ("BINARY", "SPIN"):
            raise ValueError(f'vartype must be "BINARY" or "SPIN", but got {vartype!r}.')
        is_spin = vartype == "SPIN"
        energy = _energy(real_array("The linear terms of a QUBO", Q), edges, weights, offset, is_spin)
        n = len(energy.linear)
        if n == 0:
            raise ValueError("A QUBO needs at least one variable, but this one is empty.")
        names = check_names(names, n, "variables")
        space = Binary(n, exactly=exactly, at_least=at_least, at_most=at_most, groups=groups)
        vars(self).update(energy=energy.in_bits() if is_spin else energy, names=names, is_spin=is_spin, space=space)

    @cached_property
    def model(self) -> BinaryQuadratic | BoundedQuadratic:
        energy = self.energy
        form = BinaryQuadratic(-energy.linear, energy.edges, -energy.weights, -energy.offset)
        return form if self.space.totals is None else BoundedQuadratic(form, self.space)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """How many variables have to change until the bounds hold; 0 where there are none."""
        totals = self.space.totals
        return super().violations(x) if totals is None else units_out_of_bounds(totals, x)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Brings the state within its bounds at the least loss, and flips or swaps what gains."""
        if not isinstance(self.model, BoundedQuadratic):
            return super().repair(x)
        return Repair(self.model, self._rows, x).run().astype(np.asarray(x).dtype)

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The energy."""
        energy, (i, j) = self.energy, self.energy.edges.T
        return per_state(lambda x: float(energy.offset + x @ energy.linear + (x[i] & x[j]) @ energy.weights), x)

    def bound(self) -> float:
        """All terms at their least, in x or in s, whichever says more; rounded up where all terms are integers."""
        bits, spins = self.energy, self.energy.in_spins()
        least_in_bits = bits.offset + np.minimum(bits.linear, 0).sum() + np.minimum(bits.weights, 0).sum()
        least_in_spins = spins.offset - np.abs(spins.linear).sum() - np.abs(spins.weights).sum()
        bound = float(max(least_in_bits, least_in_spins))
        is_whole = all((each == np.rint(each)).all() for each in (bits.linear, bits.weights, np.array(bits.offset)))
        return float(np.ceil(bound)) if is_whole else bound

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        names = range(len(x)) if self.names is None else self.names
        values = 2 * np.asarray(x, np.int64) - 1 if self.is_spin else np.asarray(x, np.int64)
        sample = dict(zip(plain_keys(names), values.tolist(), strict=True))
        return {"sample": sample, "energy": float(self.objective(x))}

    def __repr__(self) -> str:
        spins = ", spins" if self.is_spin else ""
        spins += "" if self.space.totals is None else ", totals bounded"
        return f"QUBO({len(self.energy.linear):,} variables, {len(self.energy.edges):,} pairs{spins})"


def _energy(linear: Float[np.ndarray, "..."], edges: Any, weights: Any, offset: float, is_spin: bool) -> _Energy:
    """Each pair once, the smaller first: pairs given twice add up; x_i x_i = x_i is linear, and s_i s_i = 1."""
    try:
        edges = np.asarray(edges)
    except ValueError:
        raise ValueError("Edges are pairs of integers, (m, 2), but got rows of different lengths.") from None
    if edges.size == 0:
        edges = np.zeros((0, 2), np.int64)
    if linear.ndim != 1:
        raise ValueError(f"Linear terms are one number per variable, but their shape is {linear.shape}.")
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(f"Edges are pairs of integers, (m, 2), but got {edges.dtype} of shape {edges.shape}.")
    n = len(linear)
    if len(edges) and (edges.min() < 0 or edges.max() >= n):
        outside = int(edges.min() if edges.min() < 0 else edges.max())
        raise ValueError(f"Edges join variables 0..{n - 1}, but one names variable {outside}.")
    if weights is None:
        raise ValueError("Edges need `weights`, one number per edge.")
    weights = real_array("The weights of a QUBO", weights)
    offset = number("offset", offset)
    if weights.shape != (len(edges),):
        raise ValueError(f"There must be {len(edges)} weights, one per edge, but their shape is {weights.shape}.")
    check_sum("The terms of a QUBO", linear, weights, np.array(offset))
    edges = np.sort(edges.astype(np.int64), axis=1)
    is_loop = edges[:, 0] == edges[:, 1]
    if is_spin:
        offset = offset + weights[is_loop].sum()
    else:
        linear = linear + totals(edges[is_loop, 0], weights[is_loop], n)
    edges, weights = edges[~is_loop], weights[~is_loop]
    pairs, which = np.unique(edges[:, 0] * n + edges[:, 1], return_inverse=True)
    weights = totals(which, weights, len(pairs))
    pairs, weights = pairs[weights != 0], weights[weights != 0]
    return _Energy(linear, np.stack([pairs // n, pairs % n], axis=1), weights, float(offset))


def _parts_of_matrix(Q: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if hasattr(Q, "tocoo"):
        if len(Q.shape) != 2:
            raise ValueError(f"A QUBO is {_FORMS}, but got a sparse array of shape {Q.shape}.")
        entries = Q.tocoo()
        shape, edges, weights = Q.shape, np.stack([entries.row, entries.col], axis=1), entries.data
    else:
        try:
            given = np.asarray(Q)
        except ValueError:
            given = None  # rows of different lengths
        if given is None or (given.ndim == 0 and given.dtype.kind not in "biufc"):
            raise TypeError(f"A QUBO is {_FORMS}, but got {type(Q).__name__}.")
        Q = real_array("The terms of a QUBO", given)
        shape, edges, weights = Q.shape, np.argwhere(Q), Q[np.nonzero(Q)] if Q.ndim else Q
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"A QUBO is {_FORMS}, but got an array of shape {shape}.")
    check_num_nodes(shape[0], len(edges))
    return np.zeros(shape[0]), edges, weights


def _parts_of_dicts(
    Q: Any, couplings: Any, names: Sequence[Hashable] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, tuple[Hashable, ...] | None]:
    """Linear terms, pairs, weights, constant and names. In two parts, all keys of the first are names."""
    names = None if names is None else check_names(names, len(tuple(names)), "variables")
    if couplings is None:
        found = read_terms("a QUBO", Q, names)
    else:
        h = Q if isinstance(Q, Mapping) else dict(enumerate(real_array("The linear terms of a QUBO", Q).reshape(-1)))
        if not isinstance(couplings, Mapping) or not all(isinstance(key, tuple) and len(key) == 2 for key in couplings):
            raise TypeError("QUBO(h, J) takes linear terms {i: weight} and pairs {(i, j): weight}, but J holds others.")
        keys = [*((name,) for name in h), *couplings]
        found = terms_of("a QUBO", keys, [*h.values(), *couplings.values()], names)
    linear = totals(found.sites, found.linear, found.num_names)
    return linear, found.edges, found.weights, found.constant, found.names


def _parts_of_bqm(bqm: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, str, tuple[Hashable, ...]]:
    names = tuple(bqm.variables)
    linear, (i, j, weights), offset = bqm.to_numpy_vectors(variable_order=names)
    return linear, np.stack([i, j], axis=1).astype(np.int64), weights, float(offset), bqm.vartype.name, names
