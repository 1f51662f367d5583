"""Totals that hold: bounds on what the codes of groups of sites add up to.

    low_g <= sum of x_i over the sites i of group g <= high_g

Exactly k of n is one group with low = high = k; one-hot variables are groups with high = 1. Groups do not overlap. The
sites that are in none make one more group, the last, whose total may be anything.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, describe, real_array
from discrax.core.sites import Frozen
from discrax.core.xla import numpy_for

_ROUNDING = 1e-6  # of a total of values, in steps of the grid


class Totals(eqx.Module):
    """The groups of a space's sites, and the bounds on their totals."""

    labels: Int[Array, " n"]  # the group of each flat site
    low: Int[Array, " groups"]
    high: Int[Array, " groups"]
    order: Int[Array, " n"]  # the sites group by group
    first: Int[Array, " groups_and_1"]  # the place in that order where each group begins, and the end
    largest: int = eqx.field(static=True)  # how many sites the largest group has

    @property
    def num_groups(self) -> int:
        """How many groups there are, that of the sites in none too."""
        return self.low.shape[0]

    def sums(self, x: Integer[Array | np.ndarray, "*shape"]) -> Int[Array | np.ndarray, " groups"]:
        """The total of each group, of codes."""
        xp = numpy_for(x, self.order)
        codes = xp.asarray(x).reshape(-1).astype(xp.int32)
        if self.num_groups == 1:
            return xp.sum(codes, dtype=xp.int32)[None]
        running = _running(xp, codes[xp.asarray(self.order)])
        ends = running[xp.asarray(self.first)]
        return ends[1:] - ends[:-1]

    def are_kept(self, x: Integer[Array, "*shape"]) -> Bool[Array, ""]:
        """Whether all totals of a state are within their bounds."""
        totals = self.sums(x)
        return jnp.all((totals >= self.low) & (totals <= self.high))

    def mend(
        self,
        x: Integer[Array | np.ndarray, "*shape"],
        ranks: Float[Array | np.ndarray, " n"],
        most: int,
        frozen: Frozen | None,
    ) -> Int[Array | np.ndarray, "*shape"]:
        """The state with what a total lacks given to the sites of its group that rank lowest, and excess taken from
        them; sites hold at most `most`. Uniform ranks make a uniform state of exactly k of n out of a uniform one.
        """
        xp = numpy_for(x, ranks, self.labels)
        labels = xp.asarray(self.labels)
        order = xp.lexsort((ranks, labels))  # group by group
        group, codes = labels[order], xp.asarray(x).reshape(-1).astype(xp.int32)[order]
        is_free = True if frozen is None else ~xp.asarray(frozen.mask).reshape(-1)[order]
        totals = self.sums(x)

        def taken(wanted: Any, offers: Any) -> Any:
            running = _running(xp, offers)
            before = running[:-1] - running[xp.asarray(self.first)[group]]
            return xp.clip(wanted[group] - before, 0, offers)

        lack, excess = xp.maximum(self.low - totals, 0), xp.maximum(totals - self.high, 0)
        codes = codes + taken(lack, xp.where(is_free, most - codes, 0)) - taken(excess, xp.where(is_free, codes, 0))
        return codes[xp.argsort(order)].reshape(np.shape(x))

    def check(self, x: np.ndarray) -> None:
        """Raises a ValueError if a state of a batch, with axes of chains before those of sites, breaks a bound."""
        low, high, order, first = (np.asarray(each) for each in (self.low, self.high, self.order, self.first))
        codes = x.reshape(-1, len(order))[:, order].astype(np.int64)
        totals = np.add.reduceat(codes, first[:-1], axis=1)
        wrong = (totals < low) | (totals > high)
        if wrong.any():
            state, g = np.argwhere(wrong)[0]
            raise ValueError(
                f"The codes of group {g} must total {_between(low[g], high[g])}, but those of the state total "
                f"{totals[state, g]}; start from `space.random(key)`."
            )

    def log_num_states(self, most: int, frozen: Frozen | None) -> float:
        """The logarithm of the number of states, group by group: coefficients of (1 + z + ... + z^most)^free."""
        is_free, fixed = _free_and_fixed(self.labels, frozen)
        found = 0.0
        for g, (low, high) in enumerate(zip(np.asarray(self.low), np.asarray(self.high), strict=True)):
            mine = np.asarray(self.labels) == g
            free, base = int((mine & is_free).sum()), int(fixed[mine].sum())
            if low <= base and high >= base + most * free:
                found += free * math.log(most + 1)
                continue
            ways, scale = np.zeros(int(high) - base + 1), 0.0
            ways[0] = 1
            for _ in range(free):
                running = np.cumsum(ways)
                running[most + 1 :] -= running[: -most - 1].copy()
                ways, scale = running / running.max(), scale + math.log(running.max())
            found += scale + math.log(ways[max(0, int(low) - base) :].sum())
        return found

    def enumerate(self, most: int, frozen: Frozen | None) -> Integer[np.ndarray, "states n"]:
        """All states, the last site running fastest: site after site, what cannot keep its bounds is left out."""
        is_free, fixed = _free_and_fixed(self.labels, frozen)
        labels, low, high = (np.asarray(each) for each in (self.labels, self.low, self.high))
        least_left, most_left = (
            np.bincount(labels, np.where(is_free, free, fixed), len(low)).astype(np.int64) for free in (0, most)
        )
        states, totals = np.zeros((1, 0), np.int64), np.zeros((1, len(low)), np.int64)
        for site, g in enumerate(labels):
            codes = np.arange(most + 1) if is_free[site] else fixed[site : site + 1]
            least_left[g] -= codes[0]
            most_left[g] -= codes[-1]
            chosen = np.tile(codes, len(states))
            states, totals = np.repeat(states, len(codes), axis=0), np.repeat(totals, len(codes), axis=0)
            states = np.concatenate([states, chosen[:, None]], axis=1)
            totals[:, g] += chosen
            can_keep = (totals[:, g] + least_left[g] <= high[g]) & (totals[:, g] + most_left[g] >= low[g])
            states, totals = states[can_keep], totals[can_keep]
        return states


def unbounded(num_sites: int, most: int) -> Totals:
    """One group of all sites, whose total may be anything."""
    low, high, first = np.array([0]), np.array([most * num_sites]), np.array([0, num_sites])
    arrays = (
        jnp.asarray(np.asarray(each, np.int32))
        for each in (np.zeros(num_sites), low, high, np.arange(num_sites), first)
    )
    return Totals(*arrays, largest=num_sites)


def _running(xp: Any, values: Any) -> Any:
    """Cumulative sums that begin with 0."""
    return xp.concatenate([xp.zeros(1, xp.int32), xp.cumsum(values, dtype=xp.int32)])


def _free_and_fixed(
    labels: Int[Array | np.ndarray, " n"], frozen: Frozen | None
) -> tuple[Bool[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Which sites are free, and the codes of the others."""
    n = labels.shape[0]
    if frozen is None:
        return np.ones(n, bool), np.zeros(n, np.int64)
    return ~np.asarray(frozen.mask).reshape(-1), np.asarray(frozen.codes).reshape(-1).astype(np.int64)


def _between(low: Any, high: Any) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def bound_totals(
    shape: tuple[int, ...],
    values: Float[np.ndarray, " levels"],
    frozen: Frozen | None,
    groups: ArrayLike | None,
    exactly: ArrayLike | None,
    at_least: ArrayLike | None,
    at_most: ArrayLike | None,
) -> Totals | None:
    """What a space keeps of its arguments; None where no total is bounded. Bounds are on totals of the values."""
    if exactly is None and at_least is None and at_most is None:
        if groups is not None:
            raise ValueError("groups were given without exactly, at_least or at_most, the bound on their totals.")
        return None
    if exactly is not None and not (at_least is None and at_most is None):
        raise ValueError("A total is bounded by exactly, or by at_least and at_most, not by both.")
    steps = np.diff(values)
    if np.ptp(steps) > _ROUNDING * steps[0]:
        raise ValueError(
            f"Totals are for equally spaced values, but the steps between these are {steps.min():g} to {steps.max():g}."
        )
    labels, num_given = _labels(groups, shape)
    num_groups, most = int(labels.max()) + 1, len(values) - 1
    is_free, fixed = _free_and_fixed(labels, frozen)
    counts, least = np.bincount(labels), np.bincount(labels, np.where(is_free, 0, fixed)).astype(np.int64)
    largest = least + most * np.bincount(labels, is_free).astype(np.int64)
    low, high = least.copy(), largest.copy()
    bounds = {"exactly": exactly, "at_least": at_least, "at_most": at_most}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    for name, bound in given.items():
        wanted = (_per_group(name, bound, num_given) - counts[:num_given] * values[0]) / steps[0]  # of codes
        slack = _ROUNDING * (1 + np.abs(wanted))
        if name != "at_most":
            low[:num_given] = np.maximum(low[:num_given], np.ceil(wanted - slack))
        if name != "at_least":
            high[:num_given] = np.minimum(high[:num_given], np.floor(wanted + slack))
    if (low > high).any():
        g = int(np.argmax(low > high))
        can = counts[g] * values[0] + steps[0] * np.array([least[g], largest[g]])
        raise ValueError(
            f"The values of group {g} can total {_between(*can)} in steps of {steps[0]:g}, but "
            f"{' and '.join(f'{name}={describe(bound)}' for name, bound in given.items())} leaves none of these."
        )
    order = np.argsort(labels, kind="stable")
    first = np.searchsorted(labels[order], np.arange(num_groups + 1))
    arrays = (jnp.asarray(np.asarray(each, np.int32)) for each in (labels, low, high, order, first))
    return Totals(*arrays, largest=int(counts.max()))


def _per_group(name: str, bound: ArrayLike, num_groups: int) -> Float[np.ndarray, " groups"]:
    """A bound for each group, from one for all or one for each."""
    found = real_array(name, bound)
    if found.shape not in ((), (num_groups,)):
        raise ValueError(f"{name} is a number, or one for each of {num_groups} groups, but its shape is {found.shape}.")
    return np.broadcast_to(found, num_groups)


def _labels(groups: ArrayLike | None, shape: tuple[int, ...]) -> tuple[Int[np.ndarray, " n"], int]:
    """The group of each flat site, those in none the last; and how many groups are given."""
    if groups is None:
        return np.zeros(math.prod(shape), np.int64), 1
    labels = as_array("groups", groups)
    if labels.shape != shape or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"groups has the number of its group for each site, shape {shape}, and -1 for a site in none, but got "
            f"{labels.dtype} of shape {labels.shape}."
        )
    num_groups = int(labels.max()) + 1
    missing = np.setdiff1d(np.arange(num_groups), labels)
    if num_groups < 1 or labels.min() < -1 or missing.size:
        came = f"group {missing[0]} has no site" if missing.size else f"they are {labels.min()}..{labels.max()}"
        raise ValueError(f"Groups are numbered 0, 1, ..., and -1 is for a site in none, but {came}.")
    return np.where(labels < 0, num_groups, labels).reshape(-1).astype(np.int64), num_groups
