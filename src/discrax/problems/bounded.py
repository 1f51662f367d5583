"""What a bounded quadratic form needs of a problem: how far states are from their bounds, and a repair that keeps them.

With the fields h = linear + W x, turning site i off and site j on gains h_j - h_i - W_ij.
"""

import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.core.totals import Totals
from discrax.problems.problem import BoundedQuadratic

_PASSES = 3  # over a group; what a search has found has little left to gain
_ROUNDING = 1e-9  # of sums of coefficients, relative to the largest

Rows = tuple[Int[np.ndarray, " starts"], Int[np.ndarray, " ends"], Float[np.ndarray, " ends"]]


def units_out_of_bounds(totals: Totals, x: Integer[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
    """How many sites have to change until all totals are within their bounds."""
    order, first = np.asarray(totals.order), np.asarray(totals.first)
    sums = np.add.reduceat(np.asarray(x)[..., order].astype(np.int64), first[:-1], axis=-1)
    lack, excess = np.asarray(totals.low) - sums, sums - np.asarray(totals.high)
    return np.asarray((np.maximum(lack, 0) + np.maximum(excess, 0)).sum(axis=-1), np.float64)


class Repair:
    """A state on its way to a better one within bounds."""

    def __init__(self, model: BoundedQuadratic, rows: Rows, x: Integer[np.ndarray, " n"]):
        form, totals = model.form, model.totals
        self.rows, self.x, (i, j) = rows, np.array(x, np.int64), form.edges.T
        ends, among = np.concatenate([i, j]), np.concatenate([self.x[j], self.x[i]])
        self.h = form.linear + np.bincount(ends, among * np.tile(form.weights, 2), form.num_sites)
        self.least = _ROUNDING * max(np.abs(form.linear).max(initial=0), np.abs(form.weights).max(initial=0))
        order, first = np.asarray(totals.order), np.asarray(totals.first)
        sites = np.split(order, first[1:-1])
        self.groups = list(zip(sites, np.asarray(totals.low).tolist(), np.asarray(totals.high).tolist(), strict=True))

    def _flip(self, site: int) -> None:
        (start, others, weights), move = self.rows, 1 - 2 * int(self.x[site])
        row = slice(start[site], start[site + 1])
        self.x[site] += move
        self.h[others[row]] += move * weights[row]

    def _weight(self, i: int, j: int) -> float:
        start, others, weights = self.rows
        row = slice(start[i], start[i + 1])
        return float(weights[row][others[row] == j].sum())

    def run(self) -> Integer[np.ndarray, " n"]:
        """Brings totals within their bounds at the least loss, then flips and swaps what gains, a few times over."""
        for sites, low, high in self.groups:
            total = int(self.x[sites].sum())
            while not low <= total <= high:
                code = int(total > high)  # of the site to be flipped
                here = sites[self.x[sites] == code]
                self._flip(int(here[np.argmax((1 - 2 * code) * self.h[here])]))
                total += 1 - 2 * code
        for group in self.groups:
            for _ in range(_PASSES):
                if not self._improve(*group):
                    break
        return self.x

    def _improve(self, sites: Int[np.ndarray, " members"], low: int, high: int) -> bool:
        """Whether something gained: flips that the bounds allow, the best first, then swaps of the best pairs."""
        total = int(self.x[sites].sum())
        before = total
        for site in self._ordered(sites, 1) if total > low else []:
            if total == low or -self.h[site] <= self.least:
                break
            self._flip(site)
            total -= 1
        for site in self._ordered(sites, 0) if total < high else []:
            if total == high or self.h[site] <= self.least:
                break
            self._flip(site)
            total += 1
        num_swaps = 0
        for i, j in zip(self._ordered(sites, 1), self._ordered(sites, 0), strict=False):
            if self.h[j] - self.h[i] <= self.least:
                break
            if self.h[j] - self.h[i] - self._weight(i, j) > self.least:
                self._flip(i)
                self._flip(j)
                num_swaps += 1
        return total != before or num_swaps > 0

    def _ordered(self, sites: Int[np.ndarray, " members"], code: int) -> list[int]:
        """The sites of a code, those whose flips gain most first."""
        here = sites[self.x[sites] == code]
        return here[np.argsort((2 * code - 1) * self.h[here], kind="stable")].tolist()
