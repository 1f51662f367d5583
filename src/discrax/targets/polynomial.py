"""Polynomials of bits or spins of any order: sums of weighted products, none of which is expanded or quadratised.

A term is a product of factors: of literals, x_i or 1 - x_i, for x in {0, 1}^n, or of spins s_i for s in {-1, +1}^n.
With c_t, the number of factors of term t that are not 1 (literals that are 0, spins that are -1),

    log pi(x) = offset + sum_t w_t v(c_t),    v(c) = [c = 0] for literals,  (-1)^c for spins.

A flip of site i changes each of its terms by one factor:

    literals: - w_t [c_t = 0] where the factor is 1,  + w_t [c_t = 1] where it is 0;      spins: - 2 w_t (-1)^c_t,

so the exact log-ratios of all flips are read off the counts: one gather from the sites to the terms, one back.
"""

from collections.abc import Mapping
from functools import reduce
from itertools import chain

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, describe, leaf_number, real_array
from discrax.core.space import Binary, Spin, check_space
from discrax.core.sparse import colour_groups, compress_rows, pad_rows
from discrax.core.target import Coloured, Evaluation, ExactRatios, LocalChanges
from discrax.targets.rows import cut_blocks


class Lists(eqx.Module):
    """Rows of indices with a code each, in blocks of one width; `num_columns` and code 1 stand where there is none."""

    indices: tuple[Int[Array, "_ _"], ...]  # the narrowest first
    codes: tuple[Integer[Array, "_ _"], ...]
    num_columns: int = eqx.field(static=True)

    def take(self, rows: Int[Array, "*k"]) -> tuple[Int[Array, "*k width"], Integer[Array, "*k width"]]:
        """Some rows, as wide as the widest; one beyond the last is empty."""
        width, found = self.indices[-1].shape[1], []
        for block, codes in zip(self.indices, self.codes, strict=True):  # a row is in one block; elsewhere it is beyond
            wider = [(0, 0)] * rows.ndim + [(0, width - block.shape[1])]
            some = block.at[rows].get(mode="fill", fill_value=self.num_columns, wrap_negative_indices=False)
            theirs = codes.at[rows].get(mode="fill", fill_value=1, wrap_negative_indices=False)
            padded = jnp.pad(some, wider, constant_values=self.num_columns), jnp.pad(theirs, wider, constant_values=1)
            found.append(padded)
            rows = rows - len(block)
        indices, codes = zip(*found, strict=True)
        return reduce(jnp.minimum, indices), reduce(jnp.minimum, codes)


class Polynomial(ExactRatios, LocalChanges, Coloured):
    """log pi(x) = offset + sum of w_t times the product of the factors of term t, on a `Binary` or a `Spin` space.

    The flat sites of term t are `sites[start[t]:start[t + 1]]`, each once. On a binary space `codes` say at which code
    of its site a factor is 1: with code 1, as all have by default, it is x_i, and with code 0 it is 1 - x_i.
    `Polynomial.from_terms` takes a dict.
    """

    space: Binary | Spin
    weights: Float[Array, " terms"]  # in the order of the rows of `members`
    offset: Float[Array, ""]
    members: Lists  # a row a term: its sites, and the codes at which its factors are 1
    places: Lists  # a row a site: its terms, and the codes again
    order: Int[Array, " n"] | None  # of the sites in `places`; None: their own
    ranks: Int[Array, " n"] | None  # site i is row ranks[i]

    def __init__(
        self,
        space: Binary | Spin,
        start: Int[np.ndarray, " ends"],
        sites: Int[np.ndarray, " factors"],
        weights: ArrayLike,
        codes: Integer[np.ndarray, " factors"] | None = None,
        *,
        offset: float = 0.0,
    ):
        start, sites, weights, codes = _check(space, start, sites, weights, codes)
        n, num_terms = space.num_sites, len(weights)
        order, members = _blocks(start, sites, codes, n)
        terms = np.argsort(order)[
            np.repeat(np.arange(num_terms), np.diff(start))
        ]  # of each factor, as a row of members
        first, entries = compress_rows(sites, n)
        of_sites, self.places = _blocks(first, terms[entries], codes[entries], num_terms)
        self.space, self.members = space, members
        self.order = self.ranks = None
        if len(self.places.indices) > 1:
            self.order, self.ranks = jnp.asarray(of_sites, jnp.int32), jnp.asarray(np.argsort(of_sites), jnp.int32)
        self.weights = jnp.asarray(weights[order], jnp.result_type(float))
        self.offset = leaf_number("offset", offset)

    @classmethod
    def from_terms(
        cls, space: Binary | Spin, terms: Mapping[tuple[int, ...] | frozenset[int], float], *, offset: float = 0.0
    ) -> "Polynomial":
        """From weights of products of sites, `{(0, 1, 2): 0.5, (3,): -1.0, (): 2.0}`; no site comes twice in a product,
        and that of none is a constant.
        """
        if not isinstance(terms, Mapping):
            raise TypeError(f"terms are a dict of tuples of sites and their weights, but got {describe(terms)}.")
        for term in terms:
            if not isinstance(term, tuple | frozenset):
                raise TypeError(f"A term is a tuple of sites, such as (0, 1) or (0,), but got {describe(term)}.")
        constants, terms = [w for term, w in terms.items() if not term], {k: w for k, w in terms.items() if k}
        start = np.append(0, np.cumsum([len(term) for term in terms], dtype=np.int64))
        sites = as_array("The sites of terms", [*chain.from_iterable(terms)] or np.zeros(0, np.int64))
        return cls(space, start, sites, [*terms.values()], offset=sum(constants, offset))

    @property
    def gathers(self) -> bool:
        return True

    def colours(self) -> Int[np.ndarray, "*shape"]:
        """Sites of one term have different colours."""
        groups = [np.asarray(block) for block in self.members.indices]
        return colour_groups(groups, self.space.num_sites).reshape(self.space.shape)

    def log_prob(self, e: Float[Array, "*shape"]) -> Float[Array, ""]:
        flat, products = e.reshape(-1), []
        for sites, codes in zip(self.members.indices, self.members.codes, strict=True):
            factors = flat.at[sites].get(mode="fill", fill_value=1)
            products.append(jnp.prod(jnp.where(codes == 1, factors, 1 - factors), axis=1))
        return self.offset + jnp.sum(self.weights * jnp.concatenate(products))

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        flat, lists = x.reshape(-1), self.members
        counts = [_count_others(flat, *block) for block in zip(lists.indices, lists.codes, strict=True)]
        counts = jnp.concatenate(counts)
        value = self.offset + jnp.sum(self.weights * self._products(counts))
        ratios, here, end = [], flat if self.order is None else flat[self.order], 0
        for terms, codes in zip(self.places.indices, self.places.codes, strict=True):
            begin, end = end, end + len(terms)
            around = counts.at[terms].get(mode="fill", fill_value=2)
            weights = self.weights.at[terms].get(mode="fill", fill_value=0)
            ratios.append(self._ratios(here[begin:end, None] == codes, around, weights))
        ratios = jnp.concatenate(ratios)
        if self.ranks is not None:
            ratios = ratios.at[self.ranks].get(mode="promise_in_bounds", unique_indices=True)
        return Evaluation(value, ratios.reshape(x.shape))

    def _products(self, counts: Integer[Array, "*terms"]) -> Float[Array, "*terms"]:
        """v(c)."""
        values = 1 - 2 * (counts & 1) if isinstance(self.space, Spin) else counts == 0
        return values.astype(self.weights.dtype)

    def _ratios(
        self,
        is_one: Bool[Array, "*sites width"],
        counts: Integer[Array, "*sites width"],
        weights: Float[Array, "*sites width"],
    ) -> Float[Array, "*sites"]:
        """What flips change, from the factors of sites and the counts and weights of their terms."""
        if isinstance(self.space, Spin):
            return jnp.sum(-2 * weights * self._products(counts), axis=-1)
        here, there = (counts == 0).astype(weights.dtype), (counts == 1).astype(weights.dtype)
        return jnp.sum(weights * jnp.where(is_one, -here, there), axis=-1)

    def change(
        self, x: Integer[Array, "*shape"], sites: Int[Array, " k"], codes: Integer[Array, " k"]
    ) -> Float[Array, ""]:
        """A term of several changed sites is met at each of them, and counts there for its share."""
        flat = x.reshape(-1)
        y = flat.at[sites].add(codes - flat[sites])  # the padding of a path changes nothing
        terms, _ = self._terms_of(sites)
        members, ones = self.members.take(terms)
        before, after = _count_others(flat, members, ones), _count_others(y, members, ones)
        differ = jnp.sum(
            flat.at[members].get(mode="fill", fill_value=1) != y.at[members].get(mode="fill", fill_value=1), axis=-1
        )
        weights = self.weights.at[terms].get(mode="fill", fill_value=0)
        gains = weights * (self._products(after) - self._products(before)) / jnp.maximum(differ, 1)
        return jnp.sum(jnp.where(codes != flat[sites], jnp.sum(gains, axis=1), 0))

    def ratios_at(self, x: Integer[Array, "*shape"], site: Int[Array, ""]) -> Float[Array, ""]:
        flat = x.reshape(-1)
        terms, ones = self._terms_of(site[None])
        counts = _count_others(flat, *self.members.take(terms))
        weights = self.weights.at[terms].get(mode="fill", fill_value=0)
        return self._ratios(flat[site] == ones, counts, weights)[0]

    def _terms_of(self, sites: Int[Array, " k"]) -> tuple[Int[Array, "k width"], Integer[Array, "k width"]]:
        return self.places.take(sites if self.ranks is None else self.ranks[sites])


def _count_others(
    flat: Integer[Array, " n"], sites: Int[Array, "*terms width"], codes: Integer[Array, "*terms width"]
) -> Int[Array, "*terms"]:
    """c, how many factors of each term are not 1."""
    return jnp.sum(flat.at[sites].get(mode="fill", fill_value=1) != codes, axis=-1, dtype=jnp.int32)


def _blocks(
    first: Int[np.ndarray, " ends"],
    values: Int[np.ndarray, " m"],
    codes: Integer[np.ndarray, " m"],
    num_columns: int,
) -> tuple[Int[np.ndarray, " rows"], Lists]:
    """Compressed rows in blocks of like length, and the order of the rows there."""
    num_rows = len(first) - 1
    order, spans, widths = cut_blocks(np.diff(first), np.arange(num_rows), [num_rows])
    blocks = [(order[begin:end], width) for (begin, end), width in zip(spans, widths, strict=True)]
    indices = tuple(jnp.asarray(pad_rows(first, values, *block, num_columns), jnp.int32) for block in blocks)
    return order, Lists(indices, tuple(jnp.asarray(pad_rows(first, codes, *block, 1)) for block in blocks), num_columns)


def _check(
    space: Binary | Spin, start: ArrayLike, sites: ArrayLike, weights: ArrayLike, codes: ArrayLike | None
) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " m"], Float[np.ndarray, " terms"], Integer[np.ndarray, " m"]]:
    """Rows of at least one term: where there is none, one of weight 0 stands in."""
    check_space(space)
    if not isinstance(space, Binary | Spin):
        raise TypeError(
            f"A polynomial is one of bits or spins, on a Binary or a Spin space, but got {describe(space)}."
        )
    start, sites, weights = as_array("start", start), as_array("sites", sites), real_array("weights", weights)
    codes = np.ones(sites.shape, np.int8) if codes is None else as_array("codes", codes)
    for name, array in (("start", start), ("sites", sites), ("codes", codes)):
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"{name} must be one row of whole numbers, but got {describe(array)}.")
    if weights.shape != (len(start) - 1,) or codes.shape != sites.shape:
        raise ValueError(
            "There must be a weight for each term and a code for each factor, but there are "
            f"{len(start) - 1} terms, {weights.size} weights, {len(sites)} factors and {len(codes)} codes."
        )
    if start[0] != 0 or start[-1] != len(sites) or (np.diff(start) < 1).any():
        raise ValueError(
            f"start must grow from 0 to {len(sites)}, the number of factors, but does not: a term has at least one "
            "site, and a constant is the offset."
        )
    n = space.num_sites
    if len(sites) and (sites.min() < 0 or sites.max() >= n):
        outside = int(sites.min() if sites.min() < 0 else sites.max())
        raise ValueError(f"Terms join sites 0..{n - 1}, but one names site {outside}.")
    if not np.isin(codes, (0, 1) if isinstance(space, Binary) else (1,)).all():
        raise ValueError("codes are 0 or 1, and all 1 for spins: the sign of a spin belongs to the weight.")
    if not len(weights):
        start, sites, weights, codes = np.array([0, 1]), np.zeros(1, np.int64), np.zeros(1), np.ones(1, np.int8)
    of_term = np.repeat(np.arange(len(weights)), np.diff(start))
    if len(np.unique(of_term * n + sites)) < len(sites):
        raise ValueError("A site comes once in a term, but some term names one twice: x_i x_i = x_i, and s_i s_i = 1.")
    return start, sites, weights, codes.astype(np.int8)
