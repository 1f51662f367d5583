"""The discrete sites of a NumPyro model as one space: every element of every site is a site of ours."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer

from discrax.core.extras import import_extra
from discrax.core.space import Space
from discrax.core.target import (
    Evaluation,
    ExactRatios,
    FunctionTarget,
    Target,
    effective_ratios,
    embedding_of,
    evaluate,
    log_prob,
    value_and_changes,
)
from discrax.interop.multilinear import Choice, NotMultilinear, Table, multilinear
from discrax.interop.variables import Variables
from discrax.samplers.conditionals import conditional_ratios

_SITES_TRIED = 64
_WHAT = "discrax.interop.numpyro needs"
constraints = import_extra("numpyro.distributions", _WHAT, "numpyro").constraints
handlers = import_extra("numpyro.handlers", _WHAT, "numpyro")
init_to_sample = import_extra("numpyro.infer", _WHAT, "numpyro").init_to_sample


class Sites(Variables):
    """The discrete sites of a model."""

    def tables(self, e: Float[Array, "..."]) -> dict[str, Table]:
        """The sites at the embedding of a state, each element with all of its values."""
        weights = self.split(self.one_hot(e))
        numbers = self.split(np.arange(self.space.num_sites))
        tables = {}
        for name, who, low, count, mine in zip(self.names, numbers, self.lows, self.counts, weights, strict=True):
            levels = int(count.max())
            values = jnp.asarray(low[..., None] + np.arange(levels))
            tables[name] = Table(values, (Choice(who, mine[..., :levels]),))
        return tables

    def has_form(self, log_density: Callable[[dict[str, Array]], Array]) -> bool:
        """Whether a log-density of the values of the sites has a multilinear form, and so gradients."""
        try:
            jax.eval_shape(lambda e: multilinear(log_density, self.tables(e)), embedding_of(self.space))
        except NotMultilinear:
            return False
        return True

    def target(self, log_density: Callable[[dict[str, Array]], Array], has_form: bool) -> Target:
        """The law of the sites: with gradients where it has a multilinear form, else with the exact change by each
        single site.
        """
        space = self.space
        if has_form:
            return FunctionTarget(
                function=lambda e: multilinear(log_density, self.tables(e)).astype(e.dtype), space=space
            )
        return OneByOne(function=lambda e: log_density(self.values(_codes_of(e, space))).astype(e.dtype), space=space)

    def odds(self, log_density: Callable[[dict[str, Array]], Array]) -> Float[Array, " n"]:
        """The log-odds of value 1 of indicators by their log-density, each where all others are 0."""
        target = self.target(log_density, self.has_form(log_density))
        x = jnp.zeros(target.space.shape, target.space.dtype)
        return effective_ratios(target, x, evaluate(target, x).ratios).reshape(x.shape[0], -1)[:, -1]


def is_first_order_far(target: Target, x: Integer[Array, " n"]) -> Bool[Array, ""]:
    """Whether most log-ratios from the gradient at a state are further than 1 from the exact ones, at some sites."""
    space = target.space
    sites = np.unique(np.linspace(0, space.num_sites - 1, _SITES_TRIED).astype(int))
    exact = jax.vmap(lambda site: conditional_ratios(target, x, site))(jnp.asarray(sites))
    first = effective_ratios(target, x, evaluate(target, x).ratios)[sites]
    is_change = jnp.isfinite(exact) & (exact != 0)
    return jnp.sum(is_change & (jnp.abs(first - exact) > 1)) > 0.5 * jnp.sum(is_change)


class OneByOne(ExactRatios, FunctionTarget):
    """A law without gradients: the log-ratios are those of all single-site changes, evaluated one by one."""

    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        return Evaluation(*value_and_changes(lambda x: log_prob(self, x), self.space, x))


def _codes_of(e: Float[Array, "..."], space: Space) -> Integer[Array, " n"]:
    codes = jnp.round(e) if e.ndim == 1 else jnp.argmax(e, axis=-1)
    return codes.astype(space.dtype)


def find_sites(model: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sites, list[str]]:
    """The discrete latent sites of a model, but for those that NumPyro enumerates, and the names of its other ones."""
    found: list[dict[str, tuple[Any, Any]]] = [{}, {}]
    others = []
    for end in (0, 1):  # every site at its smallest value, then at its largest
        with jax.ensure_compile_time_eval():
            trace = latent_trace(jax.random.key(end), model, args, kwargs, partial(_at_end, end))
        for name, site in trace.items():
            if _is_ours(site):
                low, high = (np.asarray(each, np.int64) for each in _bounds(name, site["fn"]))
                shape = jnp.shape(site["value"])
                found[end][name] = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
            elif not end:
                others.append(name)
    names = tuple(sorted(found[0]))
    for name in names:
        if not all(map(np.array_equal, found[0][name], found[1][name])):
            raise ValueError(
                f"The support of the discrete site {name!r} must not depend on other sites, but it does; give it the "
                "largest support that it can have, and let numpyro.factor or its probabilities bar what is too large."
            )
    lows, counts = (
        tuple(found[0][n][0] for n in names),
        tuple(np.asarray(1 + np.subtract(*found[0][n][::-1])) for n in names),
    )
    for name, count in zip(names, counts, strict=True):
        if (count < 2).any():
            raise ValueError(
                f"Every element of a discrete site must have two values at least, but one of {name!r} has "
                f"{int(count.min())}; condition the model on what is known, by numpyro.handlers.condition."
            )
    return Sites(names, lows, counts), others


def _is_ours(site: Any) -> bool:
    return site["fn"].support.is_discrete and site["infer"].get("enumerate") != "parallel"


def _at_end(end: int, site: Any) -> Any:
    """The smallest or the largest value of a discrete site; others are drawn."""
    if site["type"] != "sample" or site["is_observed"] or not _is_ours(site):
        return init_to_sample(site)
    shape = site["fn"].shape(site["kwargs"].get("sample_shape", ()))
    return jnp.broadcast_to(jnp.asarray(_bounds(site["name"], site["fn"])[end], jnp.result_type(int)), shape)


def latent_trace(
    key: Array,
    model: Callable,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    substitute: Callable[[Any], Any] = init_to_sample,
) -> dict[str, Any]:
    """The sites of a model that are neither observed nor deterministic, with values drawn from their priors."""
    seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=substitute)
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
