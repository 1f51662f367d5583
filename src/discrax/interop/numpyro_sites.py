"""The discrete sites of a NumPyro model as one space: every element of every site is a site of ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from discrax.core.extras import import_extra
from discrax.core.space import Binary, Categorical, Space
from discrax.core.target import Evaluation, ExactRatios, FunctionTarget, Target, embedding_of, log_prob, value_and_changes
from discrax.interop.multilinear import Choice, NotMultilinear, Table, multilinear

_WHAT = "discrax.interop.numpyro needs"
constraints = import_extra("numpyro.distributions", _WHAT, "numpyro").constraints
handlers = import_extra("numpyro.handlers", _WHAT, "numpyro")
init_to_sample = import_extra("numpyro.infer", _WHAT, "numpyro").init_to_sample


@dataclass(frozen=True, eq=False)  # compared, as a static field, by identity
class Sites:
    """Where each discrete site of a model lies among the sites of a space."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    lows: tuple[Int[np.ndarray, "..."], ...]  # the smallest value of each element
    counts: tuple[Int[np.ndarray, "..."], ...]  # how many values it may have
    dtypes: tuple[Any, ...]

    @property
    def space(self) -> Space:
        """All elements in a row: `Binary` where each has two values, else `Categorical`."""
        counts = np.concatenate([count.reshape(-1) for count in self.counts])
        return Binary(len(counts)) if (counts == 2).all() else Categorical(len(counts), counts)

    def values(self, x: Integer[Array | np.ndarray, "*batch n"]) -> dict[str, Array]:
        """The values of the sites, of shape (*batch, *shape of the site), from codes."""
        ends, batch = np.cumsum([count.size for count in self.counts]), x.shape[:-1]
        pieces = jnp.split(jnp.asarray(x), ends[:-1], axis=-1)
        parts = zip(self.names, pieces, self.shapes, self.lows, self.dtypes, strict=True)
        return {
            name: piece.reshape(*batch, *shape).astype(dtype) + jnp.asarray(low, dtype)
            for name, piece, shape, low, dtype in parts
        }

    def codes(self, values: Mapping[str, Array]) -> Integer[Array, " n"]:
        """The codes of values of the sites."""
        parts = zip(self.names, self.lows, strict=True)
        flat = [(jnp.asarray(values[name]).astype(jnp.int32) - low).reshape(-1) for name, low in parts]
        return jnp.concatenate(flat).astype(self.space.dtype)

    def tables(self, e: Float[Array, "..."]) -> dict[str, Table]:
        """The sites at the embedding of a state, each element with all of its values."""
        weights = jnp.stack([1 - e, e], axis=-1) if e.ndim == 1 else e
        tables, first = {}, 0
        for name, shape, low, count, dtype in zip(
            self.names, self.shapes, self.lows, self.counts, self.dtypes, strict=True
        ):
            end, levels = first + count.size, int(count.max())
            who = np.arange(first, end).reshape(shape)
            mine = weights[first:end, :levels].reshape(*shape, levels)
            tables[name] = Table(jnp.asarray(low[..., None] + np.arange(levels), dtype), (Choice(who, mine),))
            first = end
        return tables

    def target(self, log_density: Callable[[dict[str, Array]], Array]) -> Target:
        """The law of the sites from a log-density of their values: with gradients where that has a multilinear form,
        else with the exact change by each single site.
        """
        space = self.space

        def relaxed(e: Array) -> Array:
            return multilinear(log_density, self.tables(e)).astype(e.dtype)

        try:
            jax.eval_shape(relaxed, embedding_of(space))
        except NotMultilinear:
            return OneByOne(lambda e: log_density(self.values(_codes_of(e, space))).astype(e.dtype), space)
        return FunctionTarget(relaxed, space)


class OneByOne(ExactRatios, FunctionTarget):
    """A law without gradients: the log-ratios are those of all single-site changes, evaluated one by one."""

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        return Evaluation(*value_and_changes(lambda x: log_prob(FunctionTarget(self.function, self.space), x), self.space, x))


def _codes_of(e: Float[Array, "..."], space: Space) -> Integer[Array, " n"]:
    codes = jnp.round(e) if e.ndim == 1 else jnp.argmax(e, axis=-1)
    return codes.astype(space.dtype)


def find_sites(key: Array, model: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sites, list[str]]:
    """The discrete latent sites of a model, but for those that NumPyro enumerates, and the names of its other ones."""
    names, others = [], []

    def bounds(key: Array) -> dict[str, tuple[Any, Any, Any]]:
        found = {}
        for name, site in latent_trace(key, model, args, kwargs).items():
            if not site["fn"].support.is_discrete:
                others.append(name)
            elif site["infer"].get("enumerate") != "parallel":
                found[name] = (*_bounds(name, site["fn"]), site["value"])
        names.extend(found)
        return found

    traced = jax.make_jaxpr(bounds)(key)
    depend = _reached(traced.jaxpr, traced.jaxpr.invars)
    outs = traced.jaxpr.outvars
    for i, name in enumerate(sorted(names)):
        if any(atom in depend for atom in outs[3 * i : 3 * i + 2] if not hasattr(atom, "val")):
            raise ValueError(
                f"The support of the discrete site {name!r} must not depend on other sites, but it does; give it the "
                "largest support that it can have, and let numpyro.factor or its probabilities bar what is too large."
            )
    with jax.ensure_compile_time_eval():
        found = bounds(key)
    return _sites(found), list(dict.fromkeys(others))


def latent_trace(key: Array, model: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The sites of a model that are neither observed nor deterministic, with values drawn from their priors."""
    seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_sample)
    trace = handlers.trace(seeded).get_trace(*args, **kwargs)
    return {name: site for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]}


def _bounds(name: str, distribution: Any) -> tuple[Any, Any]:
    """The smallest and the largest value of the elements of a discrete site."""
    support = distribution.support
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if support is constraints.boolean:
        return jnp.zeros((), jnp.int32), jnp.ones((), jnp.int32)
    if isinstance(support, type(constraints.integer_interval(0, 1))):
        return support.lower_bound, support.upper_bound
    raise ValueError(
        f"The elements of a discrete site must lie between two whole numbers, but the support of {name!r} "
        f"({type(distribution).__name__}) is {support}; truncate it, as a Categorical or a DiscreteUniform with a "
        "numpyro.factor, or mark it with infer={'enumerate': 'parallel'} where NumPyro can enumerate it."
    )


def _reached(jaxpr: Any, sources: Sequence[Any]) -> set[Any]:
    """The variables of a program that depend on some of its inputs."""
    reached = set(sources)
    for equation in jaxpr.eqns:
        if any(atom in reached for atom in equation.invars if not hasattr(atom, "val")):
            reached.update(equation.outvars)
    return reached


def _sites(found: Mapping[str, tuple[Any, Any, Any]]) -> Sites:
    names = tuple(sorted(found))
    values = [np.asarray(found[name][2]) for name in names]
    lows, highs = (
        [np.broadcast_to(np.asarray(found[name][i], np.int64), value.shape) for name, value in zip(names, values)]
        for i in (0, 1)
    )
    counts = tuple(high - low + 1 for low, high in zip(lows, highs, strict=True))
    for name, count in zip(names, counts, strict=True):
        if (count < 2).any():
            raise ValueError(
                f"Every element of a discrete site must have two values at least, but one of {name!r} has "
                f"{int(count.min())}; condition the model on what is known, by numpyro.handlers.condition."
            )
    return Sites(names, tuple(v.shape for v in values), tuple(lows), counts, tuple(v.dtype for v in values))
