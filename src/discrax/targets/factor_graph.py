"""Factor graphs: products of tables of any arity over variables with different numbers of levels.

With the tables f_1, f_2, ... and x_f the codes of the sites of table f,

    log pi(x) = sum_f log f(x_f).

All tables lie in one flat array. The entry of table f is at offset_f + sum_i stride_fi x_i, so a change of site i from
x_i to c moves the places of its own tables by stride_fi (c - x_i): exact log-ratios touch those alone.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import as_array, describe, real_array
from discrax.core.conditioning import freeze_sites
from discrax.core.levels import at_level, bar_missing
from discrax.core.space import Categorical
from discrax.core.sparse import colour_groups, compress_rows, pad_rows
from discrax.core.target import Coloured, Evaluation, ExactRatios, Factored, LocalChanges

_MOST_ENTRIES = 2**31 - 1


class FactorGraph(ExactRatios, LocalChanges, Coloured, Factored):
    """log pi(x) = sum of the logarithms of tables of a few sites each, on a `Categorical` space with one axis.

    Args:
        num_levels: of each site, `(n,)`.
        scopes: the sites of each table, no site twice in one.
        tables: non-negative numbers, an axis for each site of the scope; the logarithms, where `in_logs`. Of a table
            with one axis only the size must agree, the last site running fastest.
        names: of the sites; by default their numbers.
        labels: the names of the levels of each site; by default the codes.
        evidence: see `given`.

    Its `log_prob` reads the levels off the embedding, so a gradient says nothing; the exact log-ratios take its place.
    """

    space: Categorical
    values: Float[Array, " entries"]  # the logarithms of all tables, and a last 0
    offsets: Int[Array, " factors"]
    members: Int[Array, "factors arity"]  # the sites of each table; n where there are fewer
    strides: Int[Array, "factors arity"]
    places: Int[Array, "n degree"]  # the tables of each site; their number where there are fewer
    steps: Int[Array, "n degree"]  # the stride of the site in each of them
    scopes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    num_levels: tuple[int, ...] = eqx.field(static=True)
    names: tuple[Hashable, ...] = eqx.field(static=True)
    labels: tuple[tuple[Hashable, ...], ...] = eqx.field(static=True)

    def __init__(
        self,
        num_levels: Sequence[int] | np.ndarray,
        scopes: Sequence[Sequence[int]],
        tables: Sequence[ArrayLike] | np.ndarray,
        *,
        names: Sequence[Hashable] | None = None,
        labels: Sequence[Sequence[Hashable]] | None = None,
        evidence: Mapping[Any, Any] | None = None,
        in_logs: bool = False,
    ):
        space = Categorical(np.size(as_array("num_levels", num_levels)), np.atleast_1d(num_levels))
        self.num_levels = tuple(int(size) for size in np.atleast_1d(num_levels))
        self.names = _check_names(names, space.num_sites)
        self.labels = _check_labels(labels, self.num_levels, self.names)
        _check_list("scopes", scopes)
        _check_list("tables", tables)
        if len(scopes) != len(tables):
            raise ValueError(f"Every table has a scope, but there are {len(scopes)} scopes and {len(tables)} tables.")
        if not len(scopes):  # arrays without entries cannot be looked up in
            scopes, tables, in_logs = [()], [0.0], True
        self.scopes = tuple(_check_scope(f, scope, space.num_sites) for f, scope in enumerate(scopes))
        logs = [self._check_table(f, table, in_logs) for f, table in enumerate(tables)]
        self._lay_out(logs)
        self.space = space if not evidence else freeze_sites(space, *self._known(evidence))

    def _lay_out(self, logs: list[Float[np.ndarray, "..."]]) -> None:
        n, num_factors = len(self.num_levels), len(logs)
        entries = [each.size for each in logs]
        if sum(entries) >= _MOST_ENTRIES:
            raise ValueError(f"The tables must have fewer than 2^31 entries, but they have {sum(entries):,}.")
        sites = np.array([site for scope in self.scopes for site in scope], np.int64)
        steps = [np.append(np.cumprod(each.shape[:0:-1])[::-1], 1)[: each.ndim] for each in logs]
        steps = np.concatenate([np.zeros(0), *steps]).astype(np.int64)
        sizes = np.array([len(scope) for scope in self.scopes], np.int64)
        first, everyone = np.append(0, np.cumsum(sizes)), np.arange(num_factors)
        arity = max(1, int(sizes.max(initial=0)))
        self.values = jnp.asarray(np.concatenate([*(each.reshape(-1) for each in logs), [0.0]]), jnp.result_type(float))
        self.offsets = jnp.asarray(np.cumsum([0, *entries])[:-1], jnp.int32)
        self.members = jnp.asarray(pad_rows(first, sites, everyone, arity, n), jnp.int32)
        self.strides = jnp.asarray(pad_rows(first, steps, everyone, arity, 0), jnp.int32)
        begin, order = compress_rows(sites, n)
        degree = max(1, int(np.diff(begin).max()))
        owners = np.repeat(everyone, sizes)[order]
        self.places = jnp.asarray(pad_rows(begin, owners, np.arange(n), degree, num_factors), jnp.int32)
        self.steps = jnp.asarray(pad_rows(begin, steps[order], np.arange(n), degree, 0), jnp.int32)

    def _check_table(self, f: int, table: ArrayLike, in_logs: bool) -> Float[np.ndarray, "..."]:
        """The logarithms of a table, with an axis for each of its sites."""
        shape = tuple(self.num_levels[site] for site in self.scopes[f])
        who = f"Table {f}, of {', '.join(str(self.names[site]) for site in self.scopes[f]) or 'no site'},"
        raw = as_array(who, table)
        is_barred = raw == -np.inf if in_logs else np.zeros(raw.shape, bool)
        values = real_array(who, np.where(is_barred, 0, raw))
        if values.shape != shape and not (values.ndim == 1 and values.size == np.prod(shape, dtype=np.int64)):
            raise ValueError(
                f"{who} has shape {shape} by the levels of its sites, but got an array of shape {values.shape}."
            )
        if not in_logs and (values < 0).any():
            raise ValueError(f"{who} has no negative entries, but got {values[values < 0][0]}.")
        if in_logs:
            return np.where(is_barred, -np.inf, values).reshape(shape)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values)).reshape(shape)

    def site(self, name: Hashable) -> int:
        """The site of a variable by its name."""
        if name not in self.names:
            known = ", ".join(map(str, self.names[:5])) + (", ..." if len(self.names) > 5 else "")
            raise ValueError(f"There is no variable {name!r}, but there are {known}.")
        return self.names.index(name)

    def code(self, name: Hashable, level: Any) -> int:
        """The code of a level of a variable: of its label, or a code as it is."""
        site = self.site(name)
        if level in self.labels[site]:
            return self.labels[site].index(level)
        is_code = isinstance(level, int | np.integer) and not isinstance(level, bool)
        if not is_code or not 0 <= level < self.num_levels[site]:
            known = ", ".join(map(str, self.labels[site]))
            raise ValueError(f"{name} has the levels {known}, but got {level!r}.")
        return int(level)

    def given(self, evidence: Mapping[Any, Any]) -> "FactorGraph":
        """The law of the other variables where some are known, `{name: label or code}`: they are frozen sites."""
        if not isinstance(evidence, Mapping):
            raise TypeError(f"Evidence is a dict of names and levels, but got {describe(evidence)}.")
        return self.condition_on(*self._known(evidence)) if evidence else self

    def _known(self, evidence: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """A mask of the sites that are known, and their codes."""
        known = {self.site(name): self.code(name, level) for name, level in evidence.items()}
        mask, codes = np.zeros(len(self.names), bool), np.zeros(len(self.names), np.int64)
        mask[list(known)], codes[list(known)] = True, list(known.values())
        return mask, codes

    def marginals(self, draws: Integer[np.ndarray, "..."]) -> dict[Hashable, Float[np.ndarray, " levels"]]:
        """How often each level of each variable is met in draws `(..., n)`."""
        flat = np.asarray(draws).reshape(-1, len(self.names))
        counts = [np.bincount(flat[:, i], minlength=size) for i, size in enumerate(self.num_levels)]
        return {name: count / len(flat) for name, count in zip(self.names, counts, strict=True)}

    @property
    def site_names(self) -> tuple[str, ...] | None:
        return None if self.names == tuple(range(len(self.names))) else tuple(map(str, self.names))

    @property
    def gathers(self) -> bool:
        return True

    def colours(self) -> Int[np.ndarray, " n"]:
        """Sites of one table have different colours: those of the moral graph."""
        return colour_groups([np.asarray(self.members)], self.space.num_sites)

    def tables(self) -> tuple[tuple[tuple[int, ...], ...], Float[Array, " entries"]]:
        return self.scopes, self.values[:-1]

    def log_prob(self, e: Float[Array, "n levels"]) -> Float[Array, ""]:
        return jnp.sum(self.values[self._entries(jnp.argmax(e, axis=-1).astype(jnp.int32))])

    def _entries(self, x: Integer[Array, " n"]) -> Int[Array, " factors"]:
        """Where the entry of each table is."""
        codes = x.astype(jnp.int32).at[self.members].get(mode="fill", fill_value=0)
        return self.offsets + jnp.sum(self.strides * codes, axis=1)

    def _values_at(
        self, x: Integer[Array, " k"], tables: Int[Array, "k degree"], entries: Int[Array, "k degree"],
        steps: Int[Array, "k degree"],
    ) -> Float[Array, "k levels"]:  # fmt: skip
        """What the tables of sites add up to, for every level of each."""
        shifts = jnp.arange(self.space.num_levels, dtype=jnp.int32)[None] - x.astype(jnp.int32)[:, None]
        entries = entries[:, None] + steps[:, None] * shifts[..., None]
        last = len(self.values) - 1
        entries = jnp.where((tables == len(self.scopes))[:, None], last, jnp.clip(entries, 0, last))
        return jnp.sum(self.values[entries], axis=-1)

    def _ratios(self, values: Float[Array, "k levels"], x: Integer[Array, " k"]) -> Float[Array, "k ..."]:
        ratios = values - at_level(values, x)[:, None]
        return at_level(ratios, 1 - x) if self.space.has_two_levels else ratios

    def evaluate(self, x: Integer[Array, " n"]) -> Evaluation:
        entries = self._entries(x)
        around = entries.at[self.places].get(mode="fill", fill_value=0)
        ratios = self._ratios(self._values_at(x, self.places, around, self.steps), x)
        return Evaluation(jnp.sum(self.values[entries]), bar_missing(ratios, self.space.levels_at()))

    def ratios_at(self, x: Integer[Array, " n"], site: Int[Array, ""]) -> Float[Array, "..."]:
        tables = self.places[site][None]
        entries = self._entries_of(x, tables[0])[None]
        return self._ratios(self._values_at(x[site][None], tables, entries, self.steps[site][None]), x[site][None])[0]

    def _entries_of(self, x: Integer[Array, " n"], tables: Int[Array, " k"]) -> Int[Array, " k"]:
        """Those of some tables; of one that there is not, the last 0."""
        members = self.members.at[tables].get(mode="fill", fill_value=len(self.names))
        codes = x.astype(jnp.int32).at[members].get(mode="fill", fill_value=0)
        strides = self.strides.at[tables].get(mode="fill", fill_value=0)
        offsets = self.offsets.at[tables].get(mode="fill", fill_value=len(self.values) - 1)
        return offsets + jnp.sum(strides * codes, axis=-1)

    def change(self, x: Integer[Array, " n"], sites: Int[Array, " k"], codes: Integer[Array, " k"]) -> Float[Array, ""]:
        """The tables of several changed sites count at the first of them."""
        y = x.at[sites].set(codes.astype(x.dtype), mode="drop")
        tables = self.places.at[sites].get(mode="fill", fill_value=len(self.scopes)).reshape(-1)
        order = jnp.arange(len(tables), dtype=jnp.int32)
        first = jnp.full(len(self.scopes) + 1, len(tables), jnp.int32).at[tables].min(order)
        tables = jnp.where(first[tables] == order, tables, len(self.scopes))
        before, after = (self.values[self._entries_of(each, tables)] for each in (x, y))
        return jnp.sum(after - before)


def _check_names(names: Sequence[Hashable] | None, num_sites: int) -> tuple[Hashable, ...]:
    if names is None:
        return tuple(range(num_sites))
    names = tuple(names)
    if len(names) != num_sites or len(set(names)) != num_sites:
        raise ValueError(f"names are {num_sites} different ones, one a site, but got {describe(names)}.")
    return names


def _check_labels(
    labels: Sequence[Sequence[Hashable]] | None, num_levels: tuple[int, ...], names: tuple[Hashable, ...]
) -> tuple[tuple[Hashable, ...], ...]:
    if labels is None:
        return tuple(tuple(range(size)) for size in num_levels)
    labels = tuple(tuple(each) for each in labels)
    if len(labels) != len(num_levels):
        raise ValueError(f"labels are those of {len(num_levels)} sites, but got {len(labels)} lists.")
    for name, levels, size in zip(names, labels, num_levels, strict=True):
        if len(levels) != size or len(set(levels)) != size:
            raise ValueError(f"{name} has {size} levels with a label of its own each, but got {describe(levels)}.")
    return labels


def _check_list(name: str, value: object) -> None:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence | np.ndarray)
        or (isinstance(value, np.ndarray) and value.ndim == 0)
    ):
        raise TypeError(f"{name} must be a list, but got {describe(value)}.")


def _check_scope(f: int, scope: Sequence[int], num_sites: int) -> tuple[int, ...]:
    _check_list(f"Scope {f}", scope)
    sites = np.asarray(as_array(f"Scope {f}", scope if len(scope) else np.zeros(0, np.int64)))
    if sites.ndim != 1 or not np.issubdtype(sites.dtype, np.integer):
        raise ValueError(f"Scope {f} is a list of sites, but got {describe(scope)}.")
    if ((sites < 0) | (sites >= num_sites)).any():
        raise ValueError(f"Scope {f} has sites below {num_sites}, but got {describe(scope)}.")
    if len(np.unique(sites)) != len(sites):
        raise ValueError(f"Scope {f} has no site twice, but got {describe(scope)}.")
    return tuple(sites.tolist())
