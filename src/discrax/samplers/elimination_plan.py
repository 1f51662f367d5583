"""Blocks of sites that can be drawn together by elimination, and the order in which their sites are eliminated.

Found on the host from the scopes of a target's tables. To eliminate a site, the tables that hold it are multiplied and
summed over it, which leaves a table over its neighbours. Where all of these are small the block can be as large as the
space; else sites leave it, and are drawn in another block.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import jax

from discrax.core.kernel import Caution
from discrax.core.supports import num_parts, states_of, support_of
from discrax.core.target import Factored, Target, offered


class Elimination(NamedTuple):
    """One site, its neighbours, and what is multiplied; elimination i makes potential `len(block.factors) + i`."""

    site: int
    scope: tuple[int, ...]  # of the block's sites that are still there
    inputs: tuple[int, ...]  # numbers of potentials: the block's factors first, then what eliminations made


class Block(NamedTuple):
    """Sites that are drawn together."""

    factors: tuple[int, ...]  # numbers of the target's tables that hold one of its sites
    steps: tuple[Elimination, ...]
    given: tuple[int, ...]  # other free sites in those tables: what they are decides the law of the block


class Plan(NamedTuple):
    """Blocks that together hold every free site, and what is to be said of them."""

    blocks: tuple[Block, ...]
    note: Caution | None

    @property
    def num_draws(self) -> int:
        """Sites that a sweep draws: one that is in two blocks is drawn twice."""
        return sum(len(block.steps) for block in self.blocks)

    @property
    def is_whole(self) -> bool:
        """Whether one block has all free sites: its draws are independent."""
        return len(self.blocks) == 1


def plan_blocks(target: Factored, most_at_once: int, most_in_block: int) -> Plan:
    """Blocks whose tables have at most so many entries: `most_at_once` where one block has all sites."""
    support = support_of(target)
    scopes, _ = target.tables()
    sizes, free = support.num_levels, [site for site, code in enumerate(support.codes) if code < 0]
    order, left = _shrink(scopes, sizes, free, [], most_at_once)
    if not left:
        return Plan((_block(scopes, free, free, order),), None)
    units, torn = [], []
    for group in support.groups:
        if _shrink(scopes, sizes, group, [], most_in_block)[1]:
            torn.append(group)
        else:
            units.append(group)
    together = {site for unit in units for site in unit}
    units += [[site] for site in free if site not in together]
    blocks, waiting = [], list(units)
    while waiting:
        order, left = _shrink(scopes, sizes, free, units, most_in_block, keep=waiting)
        gone = {site for unit in left for site in unit}
        blocks.append(_block(scopes, free, [site for site in free if site not in gone], order))
        waiting = [unit for unit in waiting if unit[0] in gone]
    return Plan(tuple(blocks), _note(torn))


def _note(torn: Sequence[Collection[int]]) -> Caution | None:
    if not torn:
        return None
    return Caution(
        f"Tables with zeros join {max(map(len, torn)):,} sites, too many for one block: whether the blocks can go from "
        "every possible state to every other is not known; compare chains from different starts."
    )


def single_site_note(target: Target) -> Caution | None:
    """A sentence, where changes of one site at a time cannot reach all possible states, or may not."""
    factored = offered(target, Factored)
    if factored is None:
        return None
    try:
        support = support_of(factored)
    except jax.errors.TracerArrayConversionError:  # inside a program
        return None
    names = getattr(factored, "names", range(len(support.num_levels)))
    unknown = None
    for group in support.groups:
        states = states_of(support, group)
        who = ", ".join(str(names[site]) for site in group[:4]) + (", ..." if len(group) > 4 else "")
        if states is None:
            unknown = Caution(
                f"Tables with zeros join {len(group)} sites ({who}): whether changes of one site at a time reach every "
                "possible state is not known; gibbs('elimination') draws sites together."
            )
        elif len(states) and (parts := num_parts(states)) > 1:
            return Caution(
                f"Changes of one site at a time cannot reach every possible state: those of {who} fall into {parts} "
                "parts, and a chain stays where it starts; use gibbs('elimination'), which draws sites together."
            )
    return unknown


def _block(
    scopes: Sequence[tuple[int, ...]], free: Collection[int], sites: Iterable[int], order: Sequence[int]
) -> Block:
    """The eliminations of the sites of a block, in an order."""
    inside = {*sites}
    factors = tuple(f for f, scope in enumerate(scopes) if inside & {*scope})
    rest = dict(enumerate([inside & {*scopes[f]} for f in factors]))
    given = ({site for f in factors for site in scopes[f]} & {*free}) - inside
    steps = []
    for site in (each for each in order if each in inside):
        inputs = tuple(number for number, scope in rest.items() if site in scope)
        scope = set().union(*(rest.pop(number) for number in inputs)) - {site}
        rest[len(factors) + len(steps)] = scope
        steps.append(Elimination(site, tuple(sorted(scope)), inputs))
    return Block(factors, tuple(steps), tuple(sorted(given)))


# The units that leave are in `units`; those of `keep` stay as long as others can go, and the first of them always.
def _shrink(
    scopes: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    sites: Sequence[int],
    units: Sequence[Sequence[int]],
    most: int,
    keep: Sequence[Sequence[int]] = (),
) -> tuple[list[int], list[Sequence[int]]]:
    """An order of elimination in which no table has more than `most` entries, and the units that had to leave.

    The site with the smallest table is next. Without units, those that are in the way are said to be one.
    """
    around: dict[int, set[int]] = {site: set() for site in sites}
    for scope in scopes:
        members = [site for site in scope if site in around]
        for site in members:
            around[site].update(members)

    def weight(site: int) -> float:
        return math.prod(sizes[each] for each in around[site] | {site})

    weights = {site: weight(site) for site in around}
    unit_of = {site: number for number, unit in enumerate(units) for site in unit}
    wanted = {unit[0] for unit in keep}
    order, left = [], []
    while around:
        site = min(weights, key=lambda each: (weights[each], each))
        if weights[site] > most:
            if not units:
                return order, [tuple(around)]
            heaviest = max(
                (each for each in around if not (keep and each in keep[0])),
                key=lambda each: (units[unit_of[each]][0] not in wanted, weights[each], -each),
            )
            unit = units[unit_of[heaviest]]
            left.append(unit)
            for gone in unit:
                _remove(gone, around, weights, weight, join=False)
            order = [each for each in order if each not in unit]
        else:
            order.append(site)
            _remove(site, around, weights, weight, join=True)
    return order, left


def _remove(
    site: int,
    around: dict[int, set[int]],
    weights: dict[int, float],
    weight: Callable[[int], float],
    *,
    join: bool,
) -> None:
    """Takes a site out of the graph; where it was summed over, its neighbours become neighbours of each other."""
    if site not in around:
        return
    neighbours = around.pop(site) - {site}
    del weights[site]
    for each in neighbours:
        around[each].discard(site)
        if join:
            around[each] |= neighbours
    for each in neighbours:
        weights[each] = weight(each)
