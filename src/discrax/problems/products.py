"""`Products`: a polynomial of bits or spins as plain arrays, for searches that go site by site.

A term is a weight times a product of factors, of literals (x_i or 1 - x_i) or of spins (2 x_i - 1). Nothing is
expanded: a clause of k literals is one term, not 2^k monomials. `discrax.targets.Polynomial` has the maths.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Int8, Integer

from discrax.core.space import Binary, Spin
from discrax.core.sparse import compress_rows
from discrax.problems.graph import check_num_nodes
from discrax.targets.polynomial import Polynomial

_ROUNDING = 1e-9  # of sums of weights, relative to the largest


@dataclass(frozen=True, eq=False)
class Products:
    """offset + sum over terms of weight times product, x in {0, 1}^n: to be made as large as possible.

    The sites of term t are `sites[start[t]:start[t + 1]]`, each once, and `codes` are those at which its factors are 1:
    1 for x_i, 0 for 1 - x_i; spins have 1 throughout. Of two states the better one has the larger value less the
    `surcharges` of its products that are 1: where a term must not be 1, a search may pass through states where it is,
    at the price of its weight, but prefers in the end those where it is not.
    """

    num_sites: int
    start: Int[np.ndarray, " ends"]
    sites: Int[np.ndarray, " factors"]
    codes: Int8[np.ndarray, " factors"]
    weights: Float[np.ndarray, " terms"]
    surcharges: Float[np.ndarray, " terms"]
    offset: float = 0.0
    is_spin: bool = False

    @property
    def num_terms(self) -> int:
        """How many products there are, the constant aside."""
        return len(self.weights)

    @cached_property
    def terms(self) -> Int[np.ndarray, " factors"]:
        """The term of each factor."""
        return np.repeat(np.arange(self.num_terms), np.diff(self.start))

    @property
    def edges(self) -> Int[np.ndarray, "factors 2"]:
        """Which sites stand in which terms: a pair (site, term) for each factor."""
        return np.stack([self.sites, self.terms], axis=1)

    def by_sites(self) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " factors"], Int8[np.ndarray, " factors"]]:
        """Where the factors of each site begin once they are sorted by sites, their terms and their codes."""
        first, order = compress_rows(self.sites, self.num_sites)
        return first, self.terms[order], self.codes[order]

    def counts(self, x: Integer[np.ndarray, " n"]) -> Int[np.ndarray, " terms"]:
        """How many factors of each term are not 1."""
        return np.bincount(self.terms[np.asarray(x)[self.sites] != self.codes], minlength=self.num_terms)

    def products(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, " terms"]:
        """What the products are at a state, without their weights."""
        counts = self.counts(x)
        return 1.0 - 2.0 * (counts & 1) if self.is_spin else (counts == 0).astype(np.float64)

    def value(self, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """The polynomial at states of codes 0 and 1."""
        x = np.asarray(x)
        values = [self.offset + self.products(state) @ self.weights for state in x.reshape(-1, self.num_sites)]
        return np.array(values, np.float64).reshape(x.shape[:-1])

    def gains(self, x: Integer[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """What the flip of each site adds to the value."""
        counts, terms = self.counts(x), self.terms
        if self.is_spin:
            changes = (-2.0 * (1 - 2 * (counts & 1)) * self.weights)[terms]
        else:
            is_one = np.asarray(x)[self.sites] == self.codes
            changes = self.weights[terms] * np.where(is_one, -1.0 * (counts == 0)[terms], 1.0 * (counts == 1)[terms])
        return np.bincount(self.sites, changes, minlength=self.num_sites).astype(np.float64)

    def climb(self, x: Integer[np.ndarray, " n"], is_over: Callable[[], bool]) -> Integer[np.ndarray, " n"]:
        """Flips sites that gain until none does: at once those that gain the most in each of their terms."""
        x, least = np.array(x), _ROUNDING * np.abs(self.weights).max(initial=0)
        while not is_over():
            gains = self.gains(x)
            if not (gains > least).any():
                break
            rank = np.empty(self.num_sites, np.int64)
            rank[np.argsort(gains, kind="stable")] = np.arange(self.num_sites)
            most = np.maximum.reduceat(rank[self.sites], self.start[:-1])
            is_beaten = np.zeros(self.num_sites, bool)
            is_beaten[self.sites[rank[self.sites] < most[self.terms]]] = True
            x[(gains > least) & ~is_beaten] ^= 1
        return x

    def strict(self) -> "Products":
        """The same with the surcharges in the weights: its value is that by which states are compared."""
        return replace(self, weights=self.weights - self.surcharges, surcharges=np.zeros(self.num_terms))

    def negative(self) -> "Products":
        """The same, to be made as small as possible."""
        return replace(self, weights=-self.weights, offset=-self.offset)

    def target(self) -> Polynomial:
        """Its law: log_prob is the polynomial without its offset."""
        space = Spin(self.num_sites) if self.is_spin else Binary(self.num_sites)
        return Polynomial(space, self.start, self.sites, self.weights, self.codes)


def make_products(
    num_sites: int,
    terms: Int[np.ndarray, " factors"],
    sites: Int[np.ndarray, " factors"],
    codes: Integer[np.ndarray, " factors"],
    weights: Float[np.ndarray, " terms"],
    offset: float = 0.0,
    *,
    surcharges: Float[np.ndarray, " terms"] | None = None,
    is_spin: bool = False,
) -> Products:
    """Products of factors in any order; terms of weight 0 are left out.

    A literal that comes twice counts once, x_i (1 - x_i) is 0, s_i s_i is 1, and a term without factors is a constant.
    """
    check_num_nodes(num_sites, len(sites))
    order = np.lexsort((codes, sites, terms))
    terms, sites, codes = terms[order], sites[order], codes[order].astype(np.int8)
    is_again = np.zeros(len(terms), bool)
    is_again[1:] = (terms[1:] == terms[:-1]) & (sites[1:] == sites[:-1])
    is_zero = np.zeros(len(weights), bool)
    if is_spin:  # factors of an even number vanish, and of an odd number one is left
        group = np.cumsum(~is_again) - 1
        is_odd = (np.bincount(group, minlength=1) % 2 == 1)[group] if len(group) else is_again
        keep = ~is_again & is_odd
    else:
        is_opposite = is_again.copy()
        is_opposite[1:] &= codes[1:] != codes[:-1]
        is_zero[terms[is_opposite]] = True
        keep = ~is_again & ~is_zero[terms]
    terms, sites, codes = terms[keep], sites[keep], codes[keep]
    sizes = np.bincount(terms, minlength=len(weights))
    is_left = (sizes > 0) & (weights != 0)
    offset = float(offset + weights[(sizes == 0) & ~is_zero].sum())
    keep = is_left[terms]
    start = np.append(0, np.cumsum(sizes[is_left]))
    surcharges = np.zeros(len(weights)) if surcharges is None else surcharges
    return Products(num_sites, start, sites[keep], codes[keep], weights[is_left], surcharges[is_left], offset, is_spin)
