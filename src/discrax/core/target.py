"""Targets, what a target may offer, and the generic fallbacks.

A target is an unnormalised log-probability of the embedding. Beyond that it may offer *capabilities*, each an
abstract class:

- `ExactRatios`: exact log-ratios of all single-site changes at the price of one evaluation;
- `LocalChanges`: the change of the log-probability when a few sites change, at a price that does not grow with the
  sites;
- `RatioUpdates`: new log-ratios after a few sites changed, cheaper than from scratch;
- `Rearrangeable`: exact log-ratios of some sites, with all of them in another order;
- `Coloured`: a colouring such that sites of one colour are independent given the others;
- `Factored`: tables over a few sites each, whose sum is the log-probability;
- `QuadraticForm`: a Hessian that does not depend on the state;
- `Layered`: hidden units, given which the sites are independent, and the other way round.

A kernel names the capabilities it cannot do without in `Kernel.needs`. Everything else falls back to `log_prob` and
its gradient.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer
from numpy.typing import ArrayLike

from discrax.core.checks import describe, in_words, leaf_number
from discrax.core.closures import capture
from discrax.core.conditioning import freeze_sites, with_space
from discrax.core.levels import bar_missing, is_level
from discrax.core.space import Space, check_space


class Evaluation(NamedTuple):
    """What one evaluation of a target yields at a state."""

    log_prob: Float[Array, ""]
    ratios: Float[Array, "..."]  # of all single-site changes; `(*shape,)` for two levels, `(*shape, levels)` for more


class Target(eqx.Module):
    """An unnormalised distribution over a space. Its array fields are leaves: changing them never recompiles."""

    space: eqx.AbstractVar[Space]

    @property
    def gathers(self) -> bool:
        """Whether an evaluation reads sites from all over the state, as that of a graph does; it decides the layout."""
        return False

    @property
    def site_names(self) -> tuple[str, ...] | None:
        """What tables call the sites, in the order of a flat state; None where they have numbers only."""
        return None

    @abstractmethod
    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        """Unnormalised log-probability of the embedding `e` of a state."""

    @staticmethod
    def from_log_prob(log_prob: Callable[[Array], Array], space: Space) -> "Target":
        """A target from any function of the embedding of a state, as it is now: it is traced here, once.

        What the function reads from elsewhere may change later; the target does not. An Equinox module keeps its
        parameters as leaves, to be trained.
        """
        if not callable(log_prob):
            raise TypeError(f"log_prob must be a function of the embedding, but got {type(log_prob).__name__}.")
        check_space(space)
        check_log_prob(log_prob, space)
        return FunctionTarget(function=capture(log_prob, embedding_of(space)), space=space)

    @staticmethod
    def from_apply(apply: Callable[[Any, Array], Array], params: Any, space: Space) -> "Target":
        """A target whose log-probability is `apply(params, e)` of the embedding e of a state.

        So write networks whose parameters are apart from them, as those of Flax and Haiku. The arrays of `params` are
        leaves: they can be trained, and `target.params` has them. `apply` must stay the function it is.
        """
        if not callable(apply):
            raise TypeError(f"apply must be a function of parameters and an embedding, but got {describe(apply)}.")
        check_space(space)
        check_log_prob(lambda e: apply(params, e), space)
        return AppliedTarget(params=jax.tree.map(_as_leaf, params), apply=apply, space=space)

    def condition_on(self, known: ArrayLike, codes: ArrayLike) -> Self:
        """The law of the other sites where those of the mask `known` have their `codes`: they are frozen.

        Both have the shape of a state; what `codes` holds where nothing is known means nothing.
        """
        return with_space(self, self.space, freeze_sites(self.space, known, codes))


def _as_leaf(value: Any) -> Any:
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


def embedding_of(space: Space) -> jax.ShapeDtypeStruct:
    """The shape and type of an embedded state."""
    return jax.eval_shape(space.embed, jax.ShapeDtypeStruct(space.shape, space.dtype))


def check_log_prob(log_prob: Callable[[Array], Array], space: Space) -> None:
    """Raises a ValueError that says what is wrong if a log-probability is not a float scalar of the embedding."""
    e = embedding_of(space)
    where = f"on the embedding of shape {e.shape} of a {type(space).__name__} space"
    try:
        value = jax.eval_shape(lambda e: log_prob(e), e)
    except Exception as error:
        raise ValueError(f"log_prob cannot be evaluated {where}, but raises {in_words(error)}") from error
    if not hasattr(value, "shape") or value.shape != ():
        raise ValueError(f"log_prob must return a scalar, but {where} it returns {_kind_of(value)}.")
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"log_prob must return a float, but {where} it returns {value.dtype}.")


def _kind_of(value: object) -> str:
    return f"shape {value.shape}" if hasattr(value, "shape") else f"a {type(value).__name__}"


def check_target(target: Target) -> None:
    """Raises an error that says what is wrong if this is not a target with a float scalar for a log-probability."""
    if not isinstance(target, Target):
        raise TypeError(
            f"target must be a discrax Target, but got {describe(target)}; "
            "wrap a function with discrax.Target.from_log_prob(function, space)."
        )
    check_space(target.space)
    check_log_prob(bare(target).log_prob, target.space)


class FunctionTarget(Target):
    """What `Target.from_log_prob` makes: the log-probability is a function that was traced."""

    function: Callable[[Array], Array]
    space: Space

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.function(e)


class AppliedTarget(Target):
    """What `Target.from_apply` makes: a function of parameters, which are leaves, and of the embedding."""

    params: Any
    apply: Callable[[Any, Array], Array] = eqx.field(static=True)
    space: Space

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.apply(self.params, e)


class Tempered(Target):
    """`beta * log_prob`. `beta` is a leaf, and kernels cache untempered values: changing it costs nothing."""

    target: Target
    beta: Float[Array, ""]

    def __init__(self, target: Target, beta: float | Float[Array, ""]):
        if not isinstance(target, Target):
            raise TypeError(f"Tempered takes a discrax Target, but got {type(target).__name__}.")
        self.target = bare(target)
        self.beta = leaf_number("beta", beta) * inverse_temperature(target)

    @property
    def space(self) -> Space:
        """That of the target."""
        return self.target.space

    @property
    def gathers(self) -> bool:
        return self.target.gathers

    @property
    def site_names(self) -> tuple[str, ...] | None:
        return self.target.site_names

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.beta * self.target.log_prob(e)


class ExactRatios(Target):
    """exact log-ratios of all single-site changes"""

    @abstractmethod
    def evaluate(self, x: Integer[Array, "*shape"]) -> Evaluation:
        """log_prob and the exact log-ratios at a state."""


class LocalChanges(Target):
    """the change of the log-probability when a few sites change"""

    @abstractmethod
    def change(
        self, x: Integer[Array, "*shape"], sites: Int[Array, " k"], codes: Integer[Array, " k"]
    ) -> Float[Array, ""]:
        """log_prob(y) - log_prob(x), where y is x with `codes` at the distinct flat `sites`."""

    @abstractmethod
    def ratios_at(self, x: Integer[Array, "*shape"], site: Int[Array, ""]) -> Float[Array, "..."]:
        """Exact log-ratios of one site: a scalar for two levels, else `(levels,)`."""


class RatioUpdates(Target):
    """new log-ratios after a few sites changed"""

    @abstractmethod
    def update(
        self,
        x: Integer[Array, "*shape"],
        evaluation: Evaluation,
        y: Integer[Array, "*shape"],
        sites: Int[Array, " k"],
    ) -> Evaluation:
        """The evaluation at `y`, given the one at `x`; they differ at most at `sites` (an index >= n is ignored)."""


class Coloured(Target):
    """a colouring of the sites"""

    @abstractmethod
    def colours(self) -> Int[np.ndarray, "*shape"]:
        """A colour per site, 0, 1, ...; found on the host, when it is asked for."""


class Factored(Target):
    """tables over a few sites each"""

    @abstractmethod
    def tables(self) -> tuple[tuple[tuple[int, ...], ...], Float[Array, " entries"]]:
        """The flat sites of each table, and the entries of all tables one after another.

        A table has an axis for each of its sites, as long as the site has levels; the last runs fastest. log_prob is
        what the tables add up to, and an entry of -inf is a combination that cannot be.
        """


@runtime_checkable
class OrderPlan(Protocol):
    """An order of the sites and blocks of places in it, found on the host; `Rearrangeable` makes it."""

    order: Int[Array, " n"]  # place p holds site order[p]
    places: Int[Array, " n"]  # site i is at places[i]
    spans: tuple[tuple[int, int], ...]  # first place and end of each block


@runtime_checkable
class BlockRatios(Protocol):
    """A target whose sites lie in another order."""

    def ratios(self, x: Integer[Array, " n"], block: int) -> Float[Array, "k ..."]:
        """Exact log-ratios of the sites of a block, given the codes of all in that order."""
        ...


class Rearrangeable(Target):
    """exact log-ratios of some sites, with all of them in another order"""

    @abstractmethod
    def in_order(self, order: Int[np.ndarray, " n"], ends: Sequence[int]) -> OrderPlan:
        """A plan for the sites in about this order, on the host; none of its blocks crosses one of the `ends`."""

    @abstractmethod
    def blocks(self, plan: OrderPlan) -> BlockRatios:
        """The target's own arrays, laid out by a plan."""


class QuadraticForm(Target):
    """a Hessian that does not depend on the state"""

    @abstractmethod
    def hessian(self) -> tuple[Int[np.ndarray, "m 2"], Float[np.ndarray, " m"]]:
        """Pairs of sites, each once, and the entry there; on one-hot embeddings it is the same for every level."""


class Layered(Target):
    """hidden units, given which the sites are independent"""

    @abstractmethod
    def hidden_logits(self, e: Float[Array, "..."]) -> Float[Array, " hidden"]:
        """Log-odds of the hidden units to be on, given the embedding of the sites."""

    @abstractmethod
    def site_logits(self, h: Float[Array, " hidden"]) -> Float[Array, "..."]:
        """Given which hidden units are on: log-odds of code 1, or with more than two levels a logit for each."""


Capability = TypeVar("Capability", bound=Target)

_SITES_AT_ONCE = 64  # whose changes are evaluated side by side: memory does not grow with the sites


def bare(target: Target) -> Target:
    """The target without its temperature."""
    return target.target if isinstance(target, Tempered) else target


def offered(target: Target, capability: type[Capability]) -> Capability | None:
    """The untempered target if it offers `capability`, else None."""
    base = bare(target)
    return base if isinstance(base, capability) else None


def inverse_temperature(target: Target) -> float | Float[Array, ""]:
    """beta of a tempered target, and 1 of any other."""
    return target.beta if isinstance(target, Tempered) else 1.0


def temper(target: Target, value: Float[Array, "..."]) -> Float[Array, "..."]:
    """An untempered log-probability or log-ratio at the target's temperature."""
    return target.beta * value if isinstance(target, Tempered) else value


def log_prob(target: Target, x: Integer[Array, "*shape"]) -> Float[Array, ""]:
    """Untempered log-probability of a state."""
    base = bare(target)
    return base.log_prob(base.space.embed(x))


def evaluate(target: Target, x: Integer[Array, "*shape"]) -> Evaluation:
    """Untempered value and log-ratios at a state: exact where the target offers them, else from one gradient."""
    base = bare(target)
    if isinstance(base, ExactRatios):
        return base.evaluate(x)
    value, gradient = jax.value_and_grad(base.log_prob)(base.space.embed(x))
    return Evaluation(value, base.space.ratios_from_gradient(x, gradient))


def exact_evaluation(target: Target, x: Integer[Array, "*shape"]) -> Evaluation:
    """Untempered value and exact log-ratios at a state: from the target, else from `log_prob` at every change."""
    base = bare(target)
    if isinstance(base, ExactRatios):
        return base.evaluate(x)
    return Evaluation(*value_and_changes(lambda x: log_prob(base, x), base.space, x))


def value_and_changes(
    function: Callable[[Array], Array], space: Space, x: Integer[Array, "*shape"]
) -> tuple[Float[Array, ""], Float[Array, "..."]]:
    """A function of the codes at a state, and its change by every single-site change."""
    here, value = x.reshape(-1), function(x)

    def value_with(site: Array, code: Array) -> Array:
        return function(here.at[site].set(code).reshape(space.shape))

    def values_at(site: Array) -> Array:
        if space.has_two_levels:
            return value_with(site, 1 - here[site])
        return jax.vmap(lambda code: value_with(site, code))(jnp.arange(space.num_levels, dtype=space.dtype))

    values = jax.lax.map(values_at, jnp.arange(space.num_sites), batch_size=_SITES_AT_ONCE)
    changes = bar_missing(values - value, space.levels_at()).reshape(*space.shape, *values.shape[1:])
    return value, changes if space.has_two_levels else jnp.where(is_level(x, space.num_levels), 0, changes)


def evaluate_change(
    target: Target,
    x: Integer[Array, "*shape"],
    evaluation: Evaluation,
    y: Integer[Array, "*shape"],
    sites: Int[Array, " k"],
) -> Evaluation:
    """Like `evaluate(target, y)`, using that `y` differs from `x` at most at `sites`."""
    updates = offered(target, RatioUpdates)
    return evaluate(target, y) if updates is None else updates.update(x, evaluation, y, sites)


def effective_ratios(target: Target, x: Integer[Array, "*shape"], ratios: Float[Array, "..."]) -> Float[Array, "n ..."]:
    """Cached log-ratios as a sampler needs them: tempered, with one flat axis of sites.

    Those of changes that cannot be are -inf: of frozen sites, and to levels that a site does not have.
    """
    space = target.space
    ratios = temper(target, ratios)
    if space.frozen is not None:
        barred = space.frozen.mask
        if not space.has_two_levels:
            barred = barred[..., None] & ~is_level(x, space.num_levels)
        ratios = jnp.where(barred, -jnp.inf, ratios)
    ratios = ratios.reshape(space.num_sites, *ratios.shape[len(space.shape) :])
    return bar_missing(ratios, space.levels_at())
