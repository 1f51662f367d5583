"""The eliminations of a plan as gathers: those that do not wait for each other are one layer, of a few operations.

All numbers lie in one buffer: 0, -inf, the entries of the target's tables, and then what each layer adds, a number for
every setting of the neighbours of each of its sites. What a site's table is made of are places in it.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from discrax.core.supports import tables_of
from discrax.core.target import Factored
from discrax.samplers.elimination_plan import Block, Plan

_ZERO, _BARRED, FIRST_TABLE = 0, 1, 2  # places in the buffer


class Layer(eqx.Module):
    """Sites that are eliminated at once. A row is a setting of the neighbours of one of them."""

    entries: Int[Array, "rows levels inputs"]  # places of what is added up
    shifts: Int[Array, "rows inputs"]  # which shift is added to them
    sites: Int[Array, " sites"]
    rows: Int[Array, " sites"]  # the first row of each, in the rows of all layers
    scopes: Int[Array, "sites arity"]  # its neighbours
    strides: Int[Array, "sites arity"]  # of their codes, in rows; 0 where there are fewer


class BlockTables(eqx.Module):
    """The layers of a block. Shift s is what the codes of other sites add to the places of a table's entries."""

    layers: tuple[Layer, ...]
    outside: Int[Array, "shifts arity"]  # other sites
    outside_strides: Int[Array, "shifts arity"]  # 0 where there are fewer; all of them, in the first shift
    is_fixed: bool = eqx.field(static=True)  # no free site is among them
    num_sites: int = eqx.field(static=True)


def lay_out(target: Factored, plan: Plan) -> tuple[BlockTables, ...]:
    """The blocks of a plan, as arrays."""
    tables = tables_of(target)
    space = target.space
    levels = np.broadcast_to(np.asarray(space.levels_at()), (space.num_sites,)).astype(np.int64)
    return tuple(_Builder(tables, levels, space.num_levels, block).build() for block in plan.blocks)


class _Builder:
    """Places and strides of one block, on the host."""

    def __init__(self, tables: list, levels: Int[np.ndarray, " n"], num_levels: int, block: Block):
        self.levels, self.num_levels, self.block = levels, num_levels, block
        sizes = [table.size for _, table in tables]
        ends = FIRST_TABLE + np.cumsum([0, *sizes])
        self.end = int(ends[-1])
        self.inside = {step.site for step in block.steps}
        self.outside: list[dict[int, int]] = [{}]  # of each shift: sites and strides
        self.inputs: list[tuple[int, dict[int, int], int]] = []  # first place, strides of sites, number of the shift
        for f in block.factors:
            scope, table = tables[f]
            strides = {site: stride // table.itemsize for site, stride in zip(scope, table.strides, strict=True)}
            others = {site: stride for site, stride in strides.items() if site not in self.inside}
            if others:
                self.outside.append(others)
            shift = len(self.outside) - 1 if others else 0
            self.inputs.append((int(ends[f]), {s: d for s, d in strides.items() if s in self.inside}, shift))

    def build(self) -> BlockTables:
        layers, num_rows = [], 0
        for numbers in self.layers():
            parts, rows = [], []
            for number in numbers:
                rows.append(num_rows)
                parts.append(self.places(number))
                num_rows += len(parts[-1][0])
            layers.append(self.layer(numbers, parts, rows))
        outside = _padded([list(each) for each in self.outside])
        strides = _padded([list(each.values()) for each in self.outside])
        is_fixed = not self.block.given
        return BlockTables(tuple(layers), outside, strides, is_fixed, len(self.block.steps))

    def layers(self) -> list[list[int]]:
        """Numbers of eliminations: each comes after those whose results it takes. Results get their places here."""
        depth: list[int] = []
        num_factors = len(self.block.factors)
        for step in self.block.steps:
            before = [depth[number - num_factors] for number in step.inputs if number >= num_factors]
            depth.append(1 + max(before, default=-1))
        layers = [[i for i, each in enumerate(depth) if each == level] for level in range(max(depth) + 1)]
        made: dict[int, tuple[int, dict[int, int], int]] = {}
        for numbers in layers:
            for number in numbers:
                strides, size = self.row_strides(number)
                made[number] = (self.end, strides, 0)
                self.end += size
        self.inputs += [made[number] for number in range(len(depth))]
        return layers

    def row_strides(self, number: int) -> tuple[dict[int, int], int]:
        """Of the neighbours of a site, and how many rows there are."""
        size, strides = 1, {}
        for site in reversed(self.block.steps[number].scope):
            strides[site] = size
            size *= int(self.levels[site])
        return strides, size

    def places(self, number: int) -> tuple[Int[np.ndarray, "rows levels inputs"], Int[np.ndarray, " inputs"]]:
        """Where the numbers are of which the table of an elimination is made."""
        step = self.block.steps[number]
        strides, size = self.row_strides(number)
        codes = {site: np.arange(size) // stride % self.levels[site] for site, stride in strides.items()}
        own = np.arange(self.num_levels)
        is_level = own < self.levels[step.site]
        places, shifts = [], []
        for i, each in enumerate(step.inputs):
            first, of_sites, shift = self.inputs[each]
            rows = first + sum(
                (of_sites[site] * codes[site] for site in codes if site in of_sites), np.zeros(size, int)
            )
            full = rows[:, None] + of_sites[step.site] * own
            places.append(np.where(is_level, full, _BARRED if i == 0 else _ZERO))
            shifts.append(shift)
        if not places:  # a site of no table
            places, shifts = [np.tile(np.where(is_level, _ZERO, _BARRED), (size, 1))], [0]
        return np.stack(places, axis=-1), np.array(shifts)

    def layer(self, numbers: list[int], parts: list, rows: list[int]) -> Layer:
        width = max(shifts.size for _, shifts in parts)
        entries, shifts = [], []
        for places, own in parts:
            lacking = width - own.size
            entries.append(np.pad(places, ((0, 0), (0, 0), (0, lacking)), constant_values=_ZERO))
            shifts.append(np.tile(np.pad(own, (0, lacking)), (len(places), 1)))
        strides = [self.row_strides(number)[0] for number in numbers]
        return Layer(
            jnp.asarray(np.concatenate(entries), jnp.int32),
            jnp.asarray(np.concatenate(shifts), jnp.int32),
            jnp.asarray([self.block.steps[number].site for number in numbers], jnp.int32),
            jnp.asarray(rows, jnp.int32),
            _padded([list(each) for each in strides]),
            _padded([list(each.values()) for each in strides]),
        )


def _padded(rows: list[list[int]]) -> Int[Array, "rows width"]:
    width = max(1, *map(len, rows))
    return jnp.asarray([row + [0] * (width - len(row)) for row in rows], jnp.int32)
