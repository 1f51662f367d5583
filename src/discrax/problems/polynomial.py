"""Polynomials of bits or spins, of any order, to be made as small or as large as possible.

    value(x) = constant + sum over terms of weight times the product of the term's variables,

with x in {0, 1}^n, or spins s = 2 x - 1 in place of x. No term is quadratised: a product of k variables stays one term.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.checks import describe, real_array
from discrax.core.space import Binary, Space, Spin
from discrax.problems.graph import check_sum
from discrax.problems.problem import Problem
from discrax.problems.products import Products, make_products
from discrax.problems.states import plain_keys
from discrax.targets.polynomial import Polynomial as PolynomialTarget


class ProductProblem(Problem):
    """A problem whose penalised objective is a sum of products of literals or of spins."""

    @property
    def model(self) -> Products:
        raise NotImplementedError

    @cached_property
    def target(self) -> PolynomialTarget:
        return self.model.target()

    @cached_property
    def space(self) -> Space:
        model = self.model  # not the target's, which a search site by site never builds
        return Spin(model.num_sites) if model.is_spin else Binary(model.num_sites)

    def repair(self, x: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """Flips single sites as long as that gains."""
        return self.repair_in_time(x, lambda: False)

    def repair_in_time(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        return self.model.strict().climb(x, is_over)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Polynomial(ProductProblem):
    """Minimise (or, with sense "max", maximise) a polynomial, `Polynomial({("a", "b", "c"): 1.0, ("a",): -2.0})`.

    A term is a tuple of names, whatever can be hashed, and () is the constant. Terms of the same variables add up. A
    variable that comes twice in a term counts once, x x = x; of spins, vartype "SPIN", s s = 1. A dimod
    `BinaryPolynomial` brings its vartype along. States are codes 0 and 1 in the order of `names`: sorted, where names
    can be compared.
    """

    sense: str
    polynomial: Products  # the value itself, of codes 0 and 1
    names: tuple[Hashable, ...]

    def __init__(self, terms: Any, *, sense: str = "min", vartype: str | None = None):
        if not isinstance(sense, str) or sense not in ("min", "max"):
            raise ValueError(f'sense must be "min" or "max", but got {describe(sense)}.')
        if hasattr(terms, "vartype"):
            if vartype is not None:
                raise ValueError("A dimod polynomial has its own vartype: leave it out.")
            vartype = terms.vartype.name
        vartype = "BINARY" if vartype is None else vartype
        if not isinstance(vartype, str) or vartype not in ("BINARY", "SPIN"):
            raise ValueError(f'vartype must be "BINARY" or "SPIN", but got {describe(vartype)}.')
        keys, weights = _parts(terms, vartype == "SPIN")
        names = _order(chain.from_iterable(terms))
        if not names:
            raise ValueError("A polynomial needs at least one variable, but this one has none.")
        places = {name: i for i, name in enumerate(names)}
        sizes = [len(key) for key in keys]
        sites = np.fromiter((places[name] for key in keys for name in key), np.int64, sum(sizes))
        terms_of = np.repeat(np.arange(len(keys)), sizes)
        made = make_products(
            len(names), terms_of, sites, np.ones(len(sites), np.int8), weights, is_spin=vartype == "SPIN"
        )
        vars(self).update(sense=sense, polynomial=made, names=names)

    @classmethod
    def from_dimod(cls, polynomial: Any, *, sense: str = "min") -> "Polynomial":
        """The energy of a `dimod.BinaryPolynomial`, its names and its vartype."""
        if not isinstance(polynomial, Mapping) or not hasattr(polynomial, "vartype"):
            raise TypeError(f"Expected a dimod.BinaryPolynomial, but got {describe(polynomial)}.")
        return cls(polynomial, sense=sense)

    def to_dimod(self) -> Any:
        """The value as a `dimod.BinaryPolynomial`, with the same names."""
        try:
            from dimod.higherorder.polynomial import BinaryPolynomial
        except ImportError:
            raise ImportError("A dimod polynomial needs dimod: pip install 'discrax[dimod]'.") from None
        made = self.polynomial
        members = np.split(made.sites, made.start[1:-1]) if made.num_terms else []
        terms = {tuple(self.names[i] for i in sites): float(w) for sites, w in zip(members, made.weights, strict=True)}
        terms |= {(): made.offset} if made.offset else {}
        return BinaryPolynomial(terms, "SPIN" if made.is_spin else "BINARY")

    @cached_property
    def model(self) -> Products:
        return self.polynomial if self.sense == "max" else self.polynomial.negative()

    def objective(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The value of the polynomial."""
        return self.polynomial.value(x)

    def violations(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """None: every state is feasible."""
        return np.zeros(np.shape(x)[:-1])

    def bound(self) -> float:
        """All terms at their best."""
        model = self.model
        best = float((np.abs(model.weights) if model.is_spin else np.maximum(model.weights, 0)).sum())
        return self.polynomial.offset + (best if self.sense == "max" else -best)

    def describe(self, x: Integer[np.ndarray, " n"]) -> dict:
        values = np.asarray(x, np.int64)
        values = 2 * values - 1 if self.polynomial.is_spin else values
        sample = dict(zip(plain_keys(self.names), values.tolist(), strict=True))
        return {"sample": sample, "value": float(self.objective(x))}

    def __repr__(self) -> str:
        made = self.polynomial
        order, spins = int(np.diff(made.start).max(initial=0)), ", spins" if made.is_spin else ""
        return (
            f"Polynomial({len(self.names):,} variables, {made.num_terms:,} terms, order {order}{spins}, {self.sense})"
        )


def _parts(terms: Any, is_spin: bool) -> tuple[list[frozenset[Hashable]], Float[np.ndarray, " terms"]]:
    """Sets of names, each once, and the sums of their weights."""
    if not isinstance(terms, Mapping):
        raise TypeError(
            "A polynomial is a dict of tuples of names and their weights, such as {('a', 'b', 'c'): 1.0}, or a "
            f"dimod.BinaryPolynomial, but got {describe(terms)}."
        )
    for key in terms:
        if not isinstance(key, tuple | frozenset):
            raise TypeError(f"A term is a tuple of names, such as ('a', 'b') or ('a',), but got {describe(key)}.")
    weights = real_array("The weights of a polynomial", [*terms.values()])
    if weights.shape != (len(terms),):
        raise TypeError("The weight of a term is one number, but some are not.")
    check_sum("The weights of a polynomial", weights)
    sums: dict[frozenset[Hashable], float] = {}
    for key, weight in zip(terms, weights.tolist(), strict=True):
        names = frozenset(key)
        if is_spin and len(names) < len(key):
            names = frozenset(name for name in names if tuple(key).count(name) % 2)
        sums[names] = sums.get(names, 0.0) + weight
    return [*sums], np.array([*sums.values()], np.float64)


def _order(names: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Each name once, in an order that is the same in every process, as far as names allow."""
    names = dict.fromkeys(names)
    try:
        return tuple(sorted(names))  # ty: ignore[invalid-argument-type]
    except TypeError:
        return tuple(sorted(names, key=lambda name: (type(name).__name__, repr(name))))
