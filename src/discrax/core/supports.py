"""Which states have positive probability, where tables of a target bar some: on the host, before a run.

Only tables with zeros matter. Sites that they join form a group; the support is the product of those of the groups.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from discrax.core.target import Factored

_MOST_STATES = 1 << 15  # of a group, that are enumerated
_MOST_GUESSES = 20_000  # of a search for one state


class Support(NamedTuple):
    """Tables that bar something, with the frozen sites put in."""

    num_levels: tuple[int, ...]  # of each site
    codes: Int[np.ndarray, " n"]  # of the frozen sites; -1 where a site is free
    scopes: tuple[tuple[int, ...], ...]
    allowed: tuple[Bool[np.ndarray, "..."], ...]

    @property
    def groups(self) -> list[list[int]]:
        """The free sites that tables join, group by group."""
        owner: dict[int, int] = {}
        members: dict[int, list[int]] = {}
        for scope in self.scopes:
            for site in scope:
                if site not in owner:
                    owner[site], members[site] = site, [site]
            for site in scope[1:]:
                keep, gone = owner[scope[0]], owner[site]
                if keep != gone:
                    for each in members[gone]:
                        owner[each] = keep
                    members[keep] += members.pop(gone)
        return [sorted(group) for group in members.values()]


def tables_of(target: Factored) -> list[tuple[tuple[int, ...], Float[np.ndarray, "..."]]]:
    """The sites of each table, and it with an axis for each; on the host."""
    space, (scopes, entries) = target.space, target.tables()
    num_levels = np.broadcast_to(np.asarray(space.levels_at()), (space.num_sites,))
    shapes = [tuple(num_levels[list(scope)].tolist()) for scope in scopes]
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    values = np.asarray(entries)
    return [
        (scope, values[ends[f] : ends[f + 1]].reshape(shape))
        for f, (scope, shape) in enumerate(zip(scopes, shapes, strict=True))
    ]


def support_of(target: Factored) -> Support:
    """What the tables bar."""
    space = target.space
    num_levels = np.broadcast_to(np.asarray(space.levels_at()), (space.num_sites,))
    codes = np.full(space.num_sites, -1)
    if space.frozen is not None:
        mask = np.asarray(space.frozen.mask).reshape(-1)
        codes[mask] = np.asarray(space.frozen.codes).reshape(-1)[mask]
    scopes, allowed = [], []
    for scope, table in tables_of(target):
        known = tuple(slice(None) if codes[site] < 0 else int(codes[site]) for site in scope)
        is_possible = ~np.isneginf(table[known])
        if not is_possible.all():
            scopes.append(tuple(site for site in scope if codes[site] < 0))
            allowed.append(np.asarray(is_possible))
    return Support(tuple(num_levels.tolist()), codes, tuple(scopes), tuple(allowed))


def states_of(support: Support, group: Sequence[int]) -> Int[np.ndarray, "states sites"] | None:
    """All possible codes of a group; None where there may be many.

    Sites are put in one after another, and what a table bars is left out as soon as all its sites are in.
    """
    tables = [
        (scope, table) for scope, table in zip(support.scopes, support.allowed, strict=True) if set(scope) <= {*group}
    ]
    order, rows = _join_order([scope for scope, _ in tables], group), np.zeros((1, 0), np.int64)
    for count, site in enumerate(order, 1):
        size = support.num_levels[site]
        if len(rows) * size > 16 * _MOST_STATES:
            return None
        rows = np.column_stack([np.repeat(rows, size, axis=0), np.tile(np.arange(size), len(rows))])
        for scope, table in tables:
            if site in scope and {*scope} <= {*order[:count]}:
                rows = rows[table[tuple(rows[:, order.index(each)] for each in scope)]]
    return rows[:, [order.index(site) for site in group]] if len(rows) <= _MOST_STATES else None


def _join_order(scopes: list[tuple[int, ...]], group: Sequence[int]) -> list[int]:
    """Sites of the table that is nearest to complete first."""
    order: list[int] = []
    waiting = list(scopes)
    while waiting:
        nearest = min(waiting, key=lambda scope: len({*scope} - {*order}))
        waiting.remove(nearest)
        order += [site for site in nearest if site not in order]
    return order + [site for site in group if site not in order]


def num_parts(states: Int[np.ndarray, "states sites"]) -> int:
    """Into how many parts states fall, if one site changes at a time."""
    places = {tuple(state): i for i, state in enumerate(states.tolist())}
    levels = [np.unique(column).tolist() for column in states.T]
    is_met, parts = np.zeros(len(states), bool), 0
    for first in range(len(states)):
        if is_met[first]:
            continue
        parts, waiting, is_met[first] = parts + 1, [first], True
        while waiting:
            state = states[waiting.pop()].tolist()
            for i, codes in enumerate(levels):
                for code in codes:
                    there = places.get((*state[:i], code, *state[i + 1 :]))
                    if there is not None and not is_met[there]:
                        is_met[there] = True
                        waiting.append(there)
    return parts


def possible_states(target: Factored, seed: int, count: int) -> Int[np.ndarray, "count n"]:
    """States of positive probability, at random, by guesses whose consequences are drawn at once.

    Raises a ValueError where there are none, or none is found.
    """
    support, rng = support_of(target), np.random.default_rng(seed)
    return np.stack([_find(support, rng) for _ in range(count)])


def _find(support: Support, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    state = np.where(support.codes < 0, rng.integers(0, support.num_levels), support.codes)
    tables = list(zip(support.scopes, support.allowed, strict=True))
    domains = {site: np.ones(support.num_levels[site], bool) for scope, _ in tables for site in scope}
    # What is to be narrowed, and by which tables: a guess is looked at when its turn comes.
    stack = [] if any(not table.any() for _, table in tables) else [(domains, tables)]
    for _ in range(_MOST_GUESSES):
        narrower = None
        while stack and narrower is None:
            narrower = _narrow(*stack.pop(), tables)
        if narrower is None:
            raise ValueError("No state has a positive probability: the tables, with what is given, bar them all.")
        open_sites = [site for site, domain in narrower.items() if domain.sum() > 1]
        if not open_sites:
            for site, domain in narrower.items():
                state[site] = np.argmax(domain)
            return state
        site = open_sites[rng.integers(len(open_sites))]
        mine = [each for each in tables if site in each[0]]
        for code in rng.permutation(np.flatnonzero(narrower[site])).tolist():
            stack.append((narrower | {site: np.arange(len(narrower[site])) == code}, mine))
    raise ValueError(
        f"Chains must start where log_prob is finite, but no such state was found in {_MOST_GUESSES:,} guesses; pass "
        "`init` with states of positive probability."
    )


Tables = Sequence[tuple[tuple[int, ...], Bool[np.ndarray, "..."]]]


def _narrow(
    domains: dict[int, Bool[np.ndarray, " levels"]], waiting: Tables, tables: Tables
) -> dict[int, Bool[np.ndarray, " levels"]] | None:
    """The levels that every table by itself leaves to its sites; None where it leaves none to one."""
    domains, queue = dict(domains), list(waiting)
    while queue:
        scope, table = queue.pop()
        if not scope:
            continue
        left = table
        for axis, site in enumerate(scope):
            left = left & domains[site].reshape([-1 if each == axis else 1 for each in range(table.ndim)])
        for axis, site in enumerate(scope):
            others = tuple(other for other in range(left.ndim) if other != axis)
            domain = np.asarray(left.any(axis=others))
            if not domain.any():
                return None
            if (domain != domains[site]).any():
                domains[site] = domain
                queue += [each for each in tables if site in each[0] and each[0] != scope]
    return domains
