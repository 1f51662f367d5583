"""Thousands of copies of binary models, swept colour by colour: the search for accelerators.

A model is offset + linear' x + sum of w_ij x_i x_j. Given its neighbours, site i is 1 with probability

    sigmoid(beta f_i),   f_i = linear_i + sum_j w_ij x_j,

and sites of one colour are no neighbours, so a colour is redrawn at once. Arrays have the sites first, in the order of
their colours, and the replicas last: a neighbour's row is then one piece of memory. Several models are one graph that
is not connected; sites know their owner, and every (owner, replica) has a temperature and a value of its own.

Where nearly all pairs are joined, colours are no help. Then rows go in blocks: the fields of a block are a product of
matrices, and within it sites take turns, with what changed before them in the block added.

Word s of replica r in sweep t is made of (key_r, t, s) alone, so results depend neither on the number of replicas nor
on the devices they are spread over.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, Shaped, UInt32

from discrax.core import random
from discrax.core.sparse import compress_rows, greedy_colouring, pad_rows
from discrax.problems.problem import BinaryQuadratic
from discrax.targets.rows import cut_blocks

_MOST_BLOCKS = 24  # that a program for an accelerator lists one by one; more are a loop over equal ones
_MOST_BLOCKS_ON_A_CPU = 4  # where a turn of a loop costs nothing
_MOST_COLOURS = 1 / 3  # of the sites; beyond, rows go in blocks
_FEW_COLOURS = 8
_ROWS_OF_A_BLOCK = 32
_SHARE_FOR_A_MATRIX = 1 / 32  # of the sites are neighbours: products of whole rows are cheaper than gathers
_MOST_BYTES_OF_A_MATRIX = 2**28
_UNROLLED = 8  # neighbours whose rows are added one by one; of more, the program would only grow


class Rows(eqx.Module):
    """Neighbours of sites that are redrawn at once: sites `start` to `start + k` in the order of the colours."""

    start: int | Int[Array, ""]
    indices: Int[Array, "k width"] | None  # None: the weights are whole rows of the matrix
    weights: Float[Array, "k width"]  # 0 where a row is shorter


class Arrangement(eqx.Module):
    """Models in the order in which they are swept."""

    linear: Float[Array, " n"]
    owner: Int[Array, " n"] | None  # which model a site belongs to; None: there is one
    blocks: tuple[Rows, ...] | Rows  # one by one, or equal ones along a leading axis
    matrix: Float[Array, "n n"] | None  # instead of blocks
    unit: Float[Array, ""]  # of the weights of whole rows, which may then be short numbers
    num_models: int = eqx.field(static=True)
    num_sites: int = eqx.field(static=True)  # without those that fill up equal blocks

    @property
    def num_rows(self) -> int:
        """With those that fill up."""
        return len(self.linear)


class Plan(NamedTuple):
    """An arrangement, and the way back."""

    arrangement: Arrangement
    order: Int[np.ndarray, " n"]  # the site of each row, of all models one after another; -1: none
    ends: Int[np.ndarray, " models"]  # of the models' sites

    def enter(self, states: Sequence[Integer[np.ndarray, "chains _"]]) -> Integer[np.ndarray, "n chains"]:
        """States of all models, laid out."""
        sites = np.concatenate([np.asarray(x, np.int8).T for x in states])
        filled = np.concatenate([sites, np.zeros((1, sites.shape[1]), np.int8)])  # the last row for site -1
        return filled[self.order]

    def leave(self, x: Integer[np.ndarray, "n chains"]) -> list[Integer[np.ndarray, "chains _"]]:
        """States of each model."""
        sites = np.empty((self.ends[-1], x.shape[1]), np.int8)
        sites[self.order[self.order >= 0]] = x[self.order >= 0]
        return [np.ascontiguousarray(part.T) for part in np.split(sites, self.ends[:-1])]


def arrange(models: Sequence[BinaryQuadratic]) -> Plan:
    """The order of the colours of all models together, or blocks of rows of one that is dense."""
    sizes = np.array([model.num_sites for model in models])
    ends = np.cumsum(sizes)
    shifts = ends - sizes
    n = int(ends[-1])
    linear = np.concatenate([model.linear for model in models])
    edges = np.concatenate([model.edges + shift for model, shift in zip(models, shifts, strict=True)])
    weights = np.concatenate([model.weights for model in models])
    owner = None if len(models) == 1 else np.repeat(np.arange(len(models)), sizes)
    first, entries = compress_rows(edges.T.reshape(-1), n)
    others = np.concatenate([edges[:, 1], edges[:, 0]])[entries].astype(np.int32)
    values = np.concatenate([weights, weights])[entries]
    colours = greedy_colouring(first, others)
    num_colours = int(colours.max(initial=0)) + 1
    if len(models) == 1 and num_colours > max(_FEW_COLOURS, _MOST_COLOURS * n):
        return _dense(models[0], ends)
    order = np.argsort(colours, kind="stable")
    ends_of_colours = np.cumsum(np.bincount(colours, minlength=num_colours)).tolist()
    order, spans, widths = cut_blocks(np.diff(first), order, ends_of_colours)
    most = _MOST_BLOCKS_ON_A_CPU if jax.default_backend() == "cpu" else _MOST_BLOCKS
    if len(spans) <= most and not any(_pays_as_a_matrix(width, n) for width in widths):
        places = np.empty(n, np.int32)
        places[order] = np.arange(n)
        blocks = tuple(
            _rows(start, order[start:stop], width, first, places[others], values, n)
            for (start, stop), width in zip(spans, widths, strict=True)
        )
    else:
        order, blocks = _equal_blocks(np.argsort(colours, kind="stable"), ends_of_colours, first, others, values)
    has_site = order >= 0
    row_owner = None if owner is None else jnp.asarray(np.where(has_site, owner[order], 0), jnp.int32)
    row_linear = np.where(has_site, linear[order], 0.0)
    blocks, unit = _shorten(blocks, weights)
    made = Arrangement(jnp.asarray(row_linear, jnp.float32), row_owner, blocks, None, unit, len(models), n)
    return Plan(made, order, ends)


def _pays_as_a_matrix(width: int, num_rows: int) -> bool:
    """Whether products of whole rows are cheaper than gathers. They take long to compile: such blocks are a loop."""
    is_wide = width > _UNROLLED and width >= _SHARE_FOR_A_MATRIX * num_rows
    return is_wide and 4 * num_rows**2 <= _MOST_BYTES_OF_A_MATRIX


# What a block is made of: a slice of the order, and the compressed rows of all sites.
def _rows(
    start: int,
    sites: Int[np.ndarray, " k"],
    width: int,
    first: Int[np.ndarray, " ends"],
    others: Int[np.ndarray, " m"],
    values: Float[np.ndarray, " m"],
    num_rows: int,
) -> Rows:
    real = np.maximum(sites, 0)
    indices = pad_rows(first, others, real, width, 0)
    weights = pad_rows(first, values, real, width, 0) * (sites >= 0)[:, None]
    if _pays_as_a_matrix(width, num_rows):
        matrix = np.zeros((len(sites), num_rows), np.float32)
        np.add.at(matrix, (np.arange(len(sites))[:, None], indices), weights)
        return Rows(start, None, jnp.asarray(matrix))
    return Rows(start, jnp.asarray(indices, jnp.int32), jnp.asarray(weights, jnp.float32))


def _equal_blocks(
    order: np.ndarray, ends: Sequence[int], first: np.ndarray, others: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, Rows]:
    """Colours cut into blocks of one size, filled up with sites that are joined to nothing."""
    counts = np.diff([0, *ends])
    n, size = len(order), int(np.clip(np.median(counts), 8, 4096))
    pieces = [
        np.pad(piece[at : at + size], (0, size - len(piece[at : at + size])), constant_values=-1)
        for piece in np.split(order, ends[:-1])
        for at in range(0, len(piece), size)
    ]
    filled = np.concatenate(pieces)
    places = np.empty(n, np.int32)
    places[filled[filled >= 0]] = np.flatnonzero(filled >= 0)
    width = max(1, int(np.diff(first).max()))
    rows = [_rows(i * size, piece, width, first, places[others], values, len(filled)) for i, piece in enumerate(pieces)]
    return filled, jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *rows)


def _dense(model: BinaryQuadratic, ends: np.ndarray) -> Plan:
    n, size = model.num_sites, _ROWS_OF_A_BLOCK
    padded = -(-n // size) * size
    matrix, linear = np.zeros((padded, padded), np.float32), np.zeros(padded, np.float32)
    i, j = model.edges.T
    matrix[i, j] = matrix[j, i] = model.weights
    linear[:n] = model.linear
    order = np.where(np.arange(padded) < n, np.arange(padded), -1)
    shortened, unit = _shorten(Rows(0, None, jnp.asarray(matrix)), model.weights)
    made = Arrangement(jnp.asarray(linear), None, (), shortened.weights, unit, 1, n)
    return Plan(made, order, ends)


def _shorten(blocks: Any, weights: Float[np.ndarray, " m"]) -> tuple[Any, Float[Array, ""]]:
    """Whole rows in 16 bits, where the weights are so in some unit: products of those are ten times as fast, on
    accelerators. And the unit.
    """
    sizes = np.abs(weights[weights != 0])
    short = jnp.bfloat16
    for unit in (1.0, float(sizes.min(initial=np.inf))):
        if jax.default_backend() == "cpu" or not np.isfinite(unit):
            break
        scaled = weights / unit
        if (np.abs(np.asarray(scaled, short).astype(np.float64) - scaled) <= 1e-12 * np.abs(scaled)).all():

            def shorten(rows: Rows, unit: float = unit) -> Rows:
                return rows if rows.indices is not None else Rows(rows.start, None, (rows.weights / unit).astype(short))

            is_rows = lambda node: isinstance(node, Rows)  # noqa: E731
            return jax.tree.map(shorten, blocks, is_leaf=is_rows), jnp.asarray(unit, jnp.float32)
    return blocks, jnp.ones((), jnp.float32)


# --- A sweep ----------------------------------------------------------------------------------------------------------


def sweep(
    arrangement: Arrangement,
    keys: UInt32[Array, "2 replicas"],
    turn: UInt32[Array, ""],
    x: Integer[Array, "n replicas"],
    beta: Float[Array, "models replicas"],
) -> Integer[Array, "n replicas"]:
    """Redraws every site of every replica once."""
    key = random.threefry(keys[0], keys[1], np.uint32(0), turn)
    dtype, blocks = x.dtype, arrangement.blocks
    x = x.astype(_product_type(arrangement))  # once a sweep, not once a block
    if arrangement.matrix is not None:
        return _sweep_rows(arrangement, key, x, beta).astype(dtype)
    if isinstance(blocks, tuple):
        for rows in blocks:
            x = _redraw(arrangement, rows, key, x, beta)
        return x.astype(dtype)
    count = len(blocks.weights)

    def redraw(b: Array, x: Array) -> Array:
        rows = jax.tree.map(lambda leaf: leaf[b], blocks)
        return _redraw(arrangement, rows, key, x, beta)

    return jax.lax.fori_loop(0, count, redraw, x).astype(dtype)


def _product_type(arrangement: Arrangement) -> Any:
    """The type in which states are multiplied by whole rows; the one they have, where there are none."""
    if arrangement.matrix is not None:
        return arrangement.matrix.dtype
    blocks = arrangement.blocks if isinstance(arrangement.blocks, tuple) else (arrangement.blocks,)
    return next((rows.weights.dtype for rows in blocks if rows.indices is None), jnp.int8)


def _redraw(
    arrangement: Arrangement, rows: Rows, key: tuple[Array, Array], x: Array, beta: Float[Array, "models replicas"]
) -> Shaped[Array, "n replicas"]:
    size = rows.weights.shape[0]
    linear = jax.lax.dynamic_slice_in_dim(arrangement.linear, rows.start, size)
    field = linear[:, None] + around(arrangement, rows, x)
    if arrangement.owner is None:
        own_beta = beta[:1]
    else:
        own_beta = beta[jax.lax.dynamic_slice_in_dim(arrangement.owner, rows.start, size)]
    half = (size + 1) // 2
    counter = jnp.asarray(rows.start, jnp.uint32) + jnp.arange(half, dtype=jnp.uint32)
    words = random.threefry(key[0][None], key[1][None], np.uint32(1), counter[:, None])
    uniform = random.to_uniform(jnp.concatenate(words)[:size])
    new = (uniform < jax.nn.sigmoid(own_beta * field)).astype(x.dtype)
    return jax.lax.dynamic_update_slice_in_dim(x, new, rows.start, axis=0)


def around(arrangement: Arrangement, rows: Rows, x: Array) -> Float[Array, "k replicas"]:
    """sum_j w_ij x_j of the rows' sites."""
    if rows.indices is None:
        return arrangement.unit * _product(rows.weights, x)
    if rows.indices.shape[1] > _UNROLLED:
        gathered = x.at[rows.indices].get(mode="promise_in_bounds")
        return jnp.sum(rows.weights[:, :, None] * gathered.astype(jnp.float32), axis=1)
    parts = [
        rows.weights[:, j, None] * x.at[rows.indices[:, j]].get(mode="promise_in_bounds").astype(jnp.float32)
        for j in range(rows.indices.shape[1])
    ]
    return functools.reduce(jnp.add, parts)


def _product(rows: Float[Array, "k n"], x: Array) -> Float[Array, "k replicas"]:
    precision = jax.lax.Precision.HIGHEST if rows.dtype == jnp.float32 else None
    return jnp.dot(rows, x.astype(rows.dtype), precision=precision, preferred_element_type=jnp.float32)


def _sweep_rows(
    arrangement: Arrangement, key: tuple[Array, Array], x: Array, beta: Float[Array, "models replicas"]
) -> Shaped[Array, "n replicas"]:
    """Blocks of rows of a matrix; within a block, sites take turns."""
    size, matrix = _ROWS_OF_A_BLOCK, arrangement.matrix
    assert matrix is not None

    def redraw_block(b: Array, x: Array) -> Array:
        start = b * size
        rows = jax.lax.dynamic_slice_in_dim(matrix, start, size)
        field = arrangement.unit * _product(rows, x)
        field = field + jax.lax.dynamic_slice_in_dim(arrangement.linear, start, size)[:, None]
        within = arrangement.unit * jax.lax.dynamic_slice_in_dim(rows, start, size, axis=1).astype(jnp.float32)
        old = jax.lax.dynamic_slice_in_dim(x, start, size).astype(jnp.float32)
        counter = start.astype(jnp.uint32) + jnp.arange(size, dtype=jnp.uint32)
        words, _ = random.threefry(key[0][None], key[1][None], np.uint32(1), counter[:, None])
        uniform = random.to_uniform(words)

        def redraw(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            field, new = carry
            mine = (uniform[i] < jax.nn.sigmoid(beta[0] * field[i])).astype(jnp.float32)
            return field + within[:, i, None] * (mine - old[i])[None], new.at[i].set(mine)

        _, new = jax.lax.fori_loop(0, size, redraw, (field, old), unroll=4)
        return jax.lax.dynamic_update_slice_in_dim(x, new.astype(x.dtype), start, axis=0)

    return jax.lax.fori_loop(0, arrangement.num_rows // size, redraw_block, x)


def values(arrangement: Arrangement, x: Integer[Array, "n replicas"]) -> Float[Array, "models replicas"]:
    """linear' x + sum of w_ij x_i x_j, of each model and replica, without the offsets."""
    ones, half = x.astype(jnp.float32), 0.5
    x = x.astype(_product_type(arrangement))
    if arrangement.matrix is not None:
        fields = arrangement.unit * _product(arrangement.matrix, x)
        return jnp.sum(ones * (arrangement.linear[:, None] + half * fields), axis=0)[None]

    def add(rows: Rows, total: Array) -> Array:
        size = rows.weights.shape[0]
        mine = jax.lax.dynamic_slice_in_dim(ones, rows.start, size)
        linear = jax.lax.dynamic_slice_in_dim(arrangement.linear, rows.start, size)
        terms = mine * (linear[:, None] + half * around(arrangement, rows, x))
        if arrangement.owner is None:
            return total + jnp.sum(terms, axis=0)[None]
        owner = jax.lax.dynamic_slice_in_dim(arrangement.owner, rows.start, size)
        return total.at[owner].add(terms)

    total = jnp.zeros((arrangement.num_models, x.shape[1]), jnp.float32)
    if isinstance(arrangement.blocks, tuple):
        for rows in arrangement.blocks:
            total = add(rows, total)
        return total
    count, blocks = len(arrangement.blocks.weights), arrangement.blocks
    return jax.lax.fori_loop(0, count, lambda b, t: add(jax.tree.map(lambda leaf: leaf[b], blocks), t), total)


def of_sites(arrangement: Arrangement, each: Any) -> Any:
    """What belongs to a site's model: arrays (models, ...) to (n, ...), or (1, ...) where there is one model."""
    return each[:1] if arrangement.owner is None else each[arrangement.owner]
