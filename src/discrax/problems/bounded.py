"""What a bounded quadratic form needs of a problem: how far states are from their bounds, and a repair that keeps them.

With the fields h = linear + W x, turning site i off and site j on gains h_j - h_i - W_ij.
"""

import numpy as np
from jaxtyping import Float, Int, Integer

from discrax.core.totals import Totals
from discrax.problems.problem import BoundedQuadratic

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
        self.rows, self.x, self.h = rows, np.array(x, np.int64), form.linear.copy()
        self.least = _ROUNDING * max(np.abs(form.linear).max(initial=0), np.abs(form.weights).max(initial=0))
        order, first = np.asarray(totals.order), np.asarray(totals.first)
        sites = np.split(order, first[1:-1])
        self.groups = list(zip(sites, np.asarray(totals.low).tolist(), np.asarray(totals.high).tolist(), strict=True))
        for site in np.flatnonzero(self.x).tolist():
            self._tell(site, 1)

    def _tell(self, site: int, move: int) -> None:
        start, others, weights = self.rows
        row = slice(start[site], start[site + 1])
        self.h[others[row]] += move * weights[row]

    def _flip(self, site: int) -> None:
        move = 1 - 2 * int(self.x[site])
        self.x[site] += move
        self._tell(site, move)

    def _weight(self, i: int, j: int) -> float:
        start, others, weights = self.rows
        row = slice(start[i], start[i + 1])
        return float(weights[row][others[row] == j].sum())

    def run(self) -> Integer[np.ndarray, " n"]:
        """Brings totals within their bounds at the least loss, then makes single gains until there are none."""
        for sites, low, high in self.groups:
            total = int(self.x[sites].sum())
            while not low <= total <= high:
                code = int(total > high)  # of the site to be flipped
                here = sites[self.x[sites] == code]
                self._flip(int(here[np.argmax((1 - 2 * code) * self.h[here])]))
                total += 1 - 2 * code
        for group in self.groups:
            while self._improve(*group):
                pass
        return self.x

    def _improve(self, sites: Int[np.ndarray, " members"], low: int, high: int) -> bool:
        """Makes what gains: the best flip that the bounds allow, or the swap of the two best sites."""
        on, off = sites[self.x[sites] == 1], sites[self.x[sites] == 0]
        worst = int(on[np.argmin(self.h[on])]) if len(on) else None
        best = int(off[np.argmax(self.h[off])]) if len(off) else None
        falls = -self.h[worst] if worst is not None and len(on) > low else -np.inf
        rises = self.h[best] if best is not None and len(on) < high else -np.inf
        if worst is not None and best is not None:
            swap = self.h[best] - self.h[worst] - self._weight(worst, best)
            if swap > max(falls, rises, self.least):
                self._flip(worst)
                self._flip(best)
                return True
        if max(falls, rises) > self.least:
            site = worst if falls >= rises else best
            assert site is not None
            self._flip(site)
            return True
        return False
