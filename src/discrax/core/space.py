"""Spaces: what a state is, and how the target sees it.

A state `x` is an array of small integer codes `0 .. num_levels - 1`, one per site. `space.embed(x)` is the float array
that the target differentiates: {0, 1}, {-1, +1}, the values of an ordinal grid, or a one-hot vector per site. Sites of
a `Categorical` space may have different numbers of levels; `num_levels` is then the largest of them, by which arrays
are padded: levels that a site does not have are never drawn, and changes to them have log-ratio -inf.

The *log-ratios* of all single-site changes, `log pi(x with site i at level c) - log pi(x)`, have the shape of the
sites where there are two levels (the only change is the other level) and a last axis of `num_levels` otherwise (0 at
the current level).
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import random
from discrax.core.checks import as_array, real_array
from discrax.core.levels import at_level
from discrax.core.sites import Frozen, checked_levels, checked_shape, code_dtype, freeze
from discrax.core.totals import Totals, bound_totals
from discrax.core.xla import numpy_for


class Space(eqx.Module):
    """Base of Binary, Spin, Ordinal and Categorical."""

    shape: tuple[int, ...] = eqx.field(static=True)
    frozen: Frozen | None
    num_levels: int = eqx.field(static=True)  # of the site that has most
    counts: eqx.AbstractVar[Int[Array, "*shape"] | None]  # levels of each site; None where all have as many
    totals: Totals | None = eqx.field(default=None, kw_only=True)  # bounds on totals of groups of sites

    @abstractmethod
    def embed(self, x: Integer[Array | np.ndarray, "*shape"]) -> Float[Array, "..."]:
        """The float array the target sees."""

    @abstractmethod
    def ratios_from_gradient(self, x: Integer[Array, "*shape"], gradient: Array) -> Float[Array, "..."]:
        """First-order log-ratios of all single-site changes, from the gradient at `embed(x)`."""

    @abstractmethod
    def squared_moves(self, x: Integer[Array, "*shape"]) -> Float[Array, "..."]:
        """|embed(y_i) - embed(x_i)|^2 for all single-site changes; its shape broadcasts to that of log-ratios."""

    @property
    @abstractmethod
    def smallest_squared_move(self) -> Float[Array, ""]:
        """The smallest non-zero value of `squared_moves`."""

    def distance(
        self, x: Integer[Array | np.ndarray, "..."], y: Integer[Array | np.ndarray, "..."]
    ) -> Float[Array, ""]:
        """The jump distance of the papers: Hamming, or L1 between the values of an ordinal grid."""
        return hamming(x, y)

    @property
    def dtype(self) -> np.dtype:
        """Of codes: the smallest integer type that holds them."""
        return code_dtype(self.num_levels)

    @property
    def num_sites(self) -> int:
        """How many sites there are, frozen ones too."""
        return math.prod(self.shape)

    @property
    def has_two_levels(self) -> bool:
        """Whether every site has two levels: then the only change of a site is to the other one."""
        return self.num_levels == 2

    @property
    def num_free(self) -> int | Int[Array, ""]:
        """How many sites are not frozen: an array where some are, which may differ between stacked spaces."""
        return self.num_sites if self.frozen is None else self.frozen.num_free

    def levels_at(
        self, sites: Int[Array | np.ndarray, "..."] | np.integer | slice = slice(None)
    ) -> int | Int[Array, "..."]:
        """How many levels the flat `sites` have: one number where all sites have as many."""
        return self.num_levels if self.counts is None else self.counts.reshape(-1)[sites]

    def free_site(self, index: Int[Array, "..."]) -> Int[Array, "..."]:
        """The flat index of the `index`-th free site."""
        return index if self.frozen is None else self.frozen.free_sites[index]

    def random(self, key: PRNGKeyArray) -> Integer[Array, "*shape"]:
        """A random state: uniform, unless totals are bounded. Then those of a uniform state that break their bounds are
        mended at random sites, which is uniform where exactly k sites of two levels are on.
        """
        key = random.as_threefry(key)
        codes = random.integers(key, self.num_sites, self.levels_at())
        x = codes.reshape(self.shape).astype(self.dtype)
        x = self.hold(x)
        if self.totals is None:
            return jnp.asarray(x)
        ranks = random.uniform(random.fold_in(key, 0), self.num_sites)
        return jnp.asarray(self.mend(x, ranks), self.dtype)

    def hold(self, x: Integer[Array | np.ndarray, "..."]) -> Integer[Array | np.ndarray, "..."]:
        """States, sites last, with the codes of the frozen sites."""
        if self.frozen is None:
            return x
        where = np.where if isinstance(x, np.ndarray) else jnp.where
        return where(self.frozen.mask, self.frozen.codes.astype(x.dtype), x)

    def mend(
        self, x: Integer[Array | np.ndarray, "*shape"], ranks: Float[Array | np.ndarray, " n"]
    ) -> Integer[Array | np.ndarray, "*shape"]:
        """The state with its totals within their bounds: sites of the lowest ranks are changed."""
        return x if self.totals is None else self.totals.mend(x, ranks, self.num_levels - 1, self.frozen)

    def _free_levels(self) -> Int[np.ndarray, " free"]:
        """The numbers of levels of the free sites."""
        levels = np.broadcast_to(np.asarray(self.num_levels if self.counts is None else self.counts), self.shape)
        return levels.reshape(-1) if self.frozen is None else levels[~np.asarray(self.frozen.mask)]

    def log_num_states(self) -> float:
        """The logarithm of the number of states."""
        if self.totals is not None:
            return self.totals.log_num_states(self.num_levels - 1, self.frozen)
        return float(np.log(self._free_levels()).sum())

    def enumerate(self, limit: int = 1 << 20) -> Integer[np.ndarray, "states *shape"]:
        """All states, the last free site running fastest."""
        if self.log_num_states() > math.log(limit) + 1e-9:
            number = f"{self.num_levels}^{int(self.num_free)}"
            if self.counts is not None or self.totals is not None:
                number = f"about 10^{self.log_num_states() / math.log(10):.1f}"
            raise ValueError(
                f"Enumeration is for at most {limit:,} states, but this space has {number}; use a smaller space or "
                "raise `limit`."
            )
        if self.totals is not None:
            states = self.totals.enumerate(self.num_levels - 1, self.frozen)
            return states.reshape(-1, *self.shape).astype(self.dtype)
        free = np.array(list(itertools.product(*map(range, self._free_levels().tolist()))), self.dtype)
        if self.frozen is None:
            return free.reshape(-1, *self.shape)
        states = np.tile(np.asarray(self.frozen.codes).reshape(-1), (len(free), 1))
        states[:, ~np.asarray(self.frozen.mask).reshape(-1)] = free
        return states.reshape(-1, *self.shape)

    def index(self, x: Integer[Array | np.ndarray, "*batch_and_shape"]) -> np.ndarray:
        """The position of each state of a batch in `enumerate()`."""
        codes = np.asarray(x).reshape(-1, self.num_sites).astype(np.int64)
        if self.totals is not None:
            places = {state.tobytes(): i for i, state in enumerate(self.enumerate().astype(np.int64))}
            return np.array([places[state.tobytes()] for state in codes], np.int64)
        if self.frozen is not None:
            codes = codes[:, ~np.asarray(self.frozen.mask).reshape(-1)]
        levels = self._free_levels().astype(np.int64)
        return codes @ np.append(np.cumprod(levels[:0:-1])[::-1], 1)

    def check(self, x: Array | np.ndarray) -> None:
        """Raises a ValueError that says what is wrong if `x` is not a state (or a batch of states) of this space."""
        x = as_array("A state", x)
        batch = x.ndim - len(self.shape)
        if batch < 0 or x.shape[batch:] != self.shape:
            raise ValueError(f"Expected a state of shape {self.shape}, but got an array of shape {x.shape}.")
        if not np.issubdtype(x.dtype, np.integer):
            raise ValueError(
                f"A state holds integer codes 0..{self.num_levels - 1}, but got an array of {x.dtype}; "
                "codes are positions in the list of values, not the values."
            )
        levels = self.num_levels if self.counts is None else np.asarray(self.counts)
        outside = (x < 0) | (x >= levels)
        if outside.any():
            most = np.broadcast_to(levels, x.shape)[outside][0] - 1
            where = "" if self.counts is None else " at a site with that many levels"
            raise ValueError(f"Codes must lie in 0..{most}{where}, but the state holds {int(x[outside][0])}.")
        if self.frozen is not None:
            moved = (x != np.asarray(self.frozen.codes)) & np.asarray(self.frozen.mask)
            num_moved = int(moved.reshape(-1, *self.shape).any(axis=0).sum())
            if num_moved:
                raise ValueError(
                    f"{num_moved} frozen sites of the state differ from the space's frozen codes; "
                    "start from `space.random(key)` or set those sites to the frozen codes."
                )
        if self.totals is not None:
            self.totals.check(x)


def check_space(space: object) -> None:
    """Raises a TypeError that says what is wrong if this is not a space."""
    if isinstance(space, Space):
        return
    if isinstance(space, type) and issubclass(space, Space):
        raise TypeError(f"space must be a space with a shape, such as {space.__name__}(...), but got the class itself.")
    raise TypeError(f"space must be a discrax space, such as Binary(100), but got {type(space).__name__}.")


def _float() -> np.dtype:
    return jnp.result_type(float)


class _Scalar(Space):
    """What Binary, Spin and Ordinal share: one number per site."""

    @property
    def counts(self) -> None:
        """All sites have as many levels."""
        return None

    @property
    @abstractmethod
    def values(self) -> Float[Array, " levels"]:
        """The number each code stands for."""

    def ratios_from_gradient(self, x: Integer[Array, "*shape"], gradient: Array) -> Float[Array, "..."]:
        return self.moves(x) * (gradient if self.has_two_levels else gradient[..., None])

    def moves(self, x: Integer[Array, "*shape"]) -> Float[Array, "..."]:
        """embed(y_i) - embed(x_i) for all single-site changes, in the shape of log-ratios."""
        if self.has_two_levels:
            low, high = self.values
            return (high - low) * (1 - 2 * x.astype(_float()))
        return self.values.reshape((1,) * x.ndim + (-1,)) - self.embed(x)[..., None]

    def squared_moves(self, x: Integer[Array, "*shape"]) -> Float[Array, "..."]:
        return self.smallest_squared_move if self.has_two_levels else jnp.square(self.moves(x))

    @property
    def smallest_squared_move(self) -> Float[Array, ""]:
        xp = numpy_for(self.values)
        return jnp.asarray(xp.min(xp.square(xp.diff(xp.asarray(self.values)))))


def hamming(x: Integer[Array | np.ndarray, "..."], y: Integer[Array | np.ndarray, "..."]) -> Float[Array, ""]:
    """At how many sites two states differ."""
    return jnp.sum(x != y, dtype=jnp.float32)


class Binary(_Scalar):
    """Sites in {0, 1}: the embedding is the code.

    `exactly`, or `at_least` and `at_most`, say how many sites are on: of all, or of each group (one number for all
    groups, or one for each). `groups` numbers the group of every site from 0, -1 for a site that is in none.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        exactly: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        frozen_codes: ArrayLike | None = None,
    ):
        self.shape, self.num_levels = checked_shape(shape), 2
        self.frozen = freeze(self.shape, 2, frozen, frozen_codes)
        self.totals = bound_totals(self.shape, np.array([0.0, 1.0]), self.frozen, groups, exactly, at_least, at_most)

    @property
    def values(self) -> Float[Array, " levels"]:
        return jnp.array([0.0, 1.0], _float())

    def embed(self, x: Integer[Array | np.ndarray, "*shape"]) -> Float[Array, "..."]:
        return jnp.asarray(x, _float())


class Spin(_Scalar):
    """Sites in {-1, +1}: code 0 is -1 and code 1 is +1.

    `exactly`, `at_least` and `at_most` bound the sum of the spins, of all or of each of the `groups`, as in `Binary`.
    """

    # Written again: type checkers make a constructor of the fields for a module that only inherits one.
    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        exactly: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        frozen_codes: ArrayLike | None = None,
    ):
        self.shape, self.num_levels = checked_shape(shape), 2
        self.frozen = freeze(self.shape, 2, frozen, frozen_codes)
        self.totals = bound_totals(self.shape, np.array([-1.0, 1.0]), self.frozen, groups, exactly, at_least, at_most)

    @property
    def values(self) -> Float[Array, " levels"]:
        return jnp.array([-1.0, 1.0], _float())

    def embed(self, x: Integer[Array | np.ndarray, "*shape"]) -> Float[Array, "..."]:
        return 2 * jnp.asarray(x, _float()) - 1


class Ordinal(_Scalar):
    """Sites on a grid of increasing numbers; code c stands for `values[c]`.

    `exactly`, `at_least` and `at_most` bound what the values add up to, of all sites or of each of the `groups`, as in
    `Binary`; the values are equally spaced then.
    """

    grid: Float[Array, " levels"]

    def __init__(
        self,
        shape: int | Sequence[int],
        values: ArrayLike,
        *,
        exactly: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        frozen_codes: ArrayLike | None = None,
    ):
        grid = real_array("values", values)
        if grid.ndim != 1 or grid.size < 2 or (np.diff(grid) <= 0).any():
            raise ValueError(
                "Ordinal needs at least two increasing values, "
                f"but got an array of shape {grid.shape}: {np.array2string(grid.reshape(-1), threshold=6)}."
            )
        if (np.diff(grid.astype(_float())) <= 0).any():
            raise ValueError(f"Ordinal needs increasing values, but some of these are equal in {_float()}.")
        self.shape = checked_shape(shape)
        self.num_levels = grid.size
        self.grid = jnp.asarray(grid, _float())
        self.frozen = freeze(self.shape, grid.size, frozen, frozen_codes)
        self.totals = bound_totals(self.shape, grid, self.frozen, groups, exactly, at_least, at_most)

    @property
    def values(self) -> Float[Array, " levels"]:
        return self.grid

    def embed(self, x: Integer[Array | np.ndarray, "*shape"]) -> Float[Array, "..."]:
        return self.grid[x.astype(jnp.int32)]

    def distance(
        self, x: Integer[Array | np.ndarray, "..."], y: Integer[Array | np.ndarray, "..."]
    ) -> Float[Array, ""]:
        return jnp.sum(jnp.abs(self.embed(x) - self.embed(y))).astype(jnp.float32)


class Categorical(Space):
    """Sites with levels without order; the embedding has a last one-hot axis.

    `num_levels` is one number, or one per site: then site i has the codes 0 .. num_levels[i] - 1, and all one-hot
    vectors are as long as the longest.
    """

    counts: Int[Array, "*shape"] | None

    def __init__(
        self,
        shape: int | Sequence[int],
        num_levels: int | Sequence[int] | np.ndarray,
        *,
        frozen: ArrayLike | None = None,
        frozen_codes: ArrayLike | None = None,
    ):
        self.shape = checked_shape(shape)
        levels = checked_levels(num_levels, self.shape)
        self.num_levels = int(np.max(levels))
        self.counts = None if np.min(levels) == self.num_levels else jnp.asarray(levels, jnp.int32)
        self.frozen = freeze(self.shape, levels, frozen, frozen_codes)
        self.totals = None

    def embed(self, x: Integer[Array | np.ndarray, "*shape"]) -> Float[Array, "..."]:
        return jax.nn.one_hot(x, self.num_levels, dtype=_float())

    def ratios_from_gradient(self, x: Integer[Array, "*shape"], gradient: Array) -> Float[Array, "..."]:
        if self.has_two_levels:
            return (gradient[..., 1] - gradient[..., 0]) * (1 - 2 * x.astype(gradient.dtype))
        return gradient - at_level(gradient, x)[..., None]

    def squared_moves(self, x: Integer[Array, "*shape"]) -> Float[Array, "..."]:
        return self.smallest_squared_move

    @property
    def smallest_squared_move(self) -> Float[Array, ""]:
        return jnp.array(2.0, _float())
