"""Schedules: the inverse temperature beta as a function of the share p of the search that is done.

    geometric            beta = hot (cold / hot)^p; also called exponential, as it is in the temperature by the papers
    linear               beta = hot + (cold - hot) p
    linear-temperature   1 / beta falls linearly: the papers' "linear"

`hot` and `cold` are inverse temperatures, hot < cold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from discrax.core.checks import describe, number
from discrax.core.programs import compiled
from discrax.core.target import Target, log_prob
from discrax.problems.problem import BinaryQuadratic, Labelling, Problem
from discrax.solving.clock import Clock

KINDS = ("geometric", "linear", "linear-temperature")
_SAMPLED_CHANGES, _CHANGES_AT_ONCE = 256, 8  # of a problem that is only a function
_SHARE_OF_COSTS = 0.02  # of a budget
_FLIP_ROUNDS = 200


@dataclass(frozen=True)
class BetaSchedule:
    """Inverse temperatures from `hot` to `cold`."""

    hot: float
    cold: float
    kind: str = "geometric"

    def __post_init__(self) -> None:
        number("hot", self.hot, least=0)
        number("cold", self.cold, least=0)
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, but got {describe(self.kind)}.")

    def beta(self, p: Any) -> Any:
        """At a share of the search, or at an array of them."""
        return interpolate(self.kind, self.hot, self.cold, p)


def interpolate(kind: str, hot: Any, cold: Any, p: Any) -> Any:
    """Inverse temperatures at a share p of a schedule, or at an array of them; several schedules lie along the last
    axis.
    """
    p = np.clip(p, 0.0, 1.0)
    if np.ndim(hot) and np.ndim(p):
        p = p[:, None]
    if kind == "geometric":
        return hot * (cold / hot) ** p
    if kind == "linear":
        return hot + (cold - hot) * p
    return 1 / (1 / hot + (1 / cold - 1 / hot) * p)


def make_schedule(
    problem: Problem, kind: str = "auto", betas: tuple[float, float] | None = None, clock: Clock | None = None
) -> BetaSchedule:
    """A schedule of that kind, between the given inverse temperatures or those that suit the problem."""
    kind = "geometric" if kind in ("auto", "exponential") else kind
    if kind not in KINDS:
        raise ValueError(f"Unknown schedule {kind!r}; known: {', '.join(KINDS)}.")
    hot, cold = suitable_betas(problem, clock) if betas is None else check_betas(betas)
    return BetaSchedule(hot, cold, kind)


def check_betas(betas: Any, *, may_be_equal: bool = False) -> tuple[float, float]:
    """Two inverse temperatures, hot < cold."""
    try:
        hot, cold = map(float, betas if isinstance(betas, Sequence | np.ndarray) else ())
    except (TypeError, ValueError, OverflowError):
        hot = cold = np.nan
    if not (0 < hot < cold < np.inf or (may_be_equal and 0 < hot == cold < np.inf)):
        raise ValueError(f"betas are two inverse temperatures, 0 < hot < cold, but got {describe(betas)}.")
    return hot, cold


def suitable_betas(problem: Problem, clock: Clock | None = None) -> tuple[float, float]:
    """Inverse temperatures between which the problem freezes: those of `binary_betas`, or for other problems

    they come from the costs of single changes at local optima: at the hot end the mean cost is paid easily (with
    probability e^-2.5), at the cold end the smallest that counts hardly ever (e^-10). Costs far below the mean, such as
    the 10^-4 by which a penalty outweighs what it forbids, do not count.
    """
    if isinstance(problem.model, BinaryQuadratic):
        return binary_betas(problem.model)
    costs = _costs_of_changes(problem, clock)
    costs = costs[np.isfinite(costs) & (costs > 0)]
    if not len(costs):
        return 1.0, 10.0
    mean = float(costs.mean())
    return 2.5 / mean, max(10 / float(costs[costs > 0.02 * mean].min()), 5 / mean)


def _costs_of_changes(problem: Problem, clock: Clock | None) -> Float[np.ndarray, " costs"]:
    generator, model = np.random.default_rng(0), problem.model
    if isinstance(model, Labelling):
        # A change of label costs about the edges it cuts: the mean degree, and one edge at least.
        degree = np.zeros(model.num_nodes)
        np.add.at(degree, model.edges.ravel(), np.repeat(np.abs(model.weights), 2))
        return model.cut_cost * degree[degree > 0] / 2
    return _sampled_costs(problem, generator, clock)


def _sampled_costs(
    problem: Problem, generator: np.random.Generator, clock: Clock | None
) -> Float[np.ndarray, " costs"]:
    """What random changes of single sites cost at random states, some at a time as long as that takes little time."""
    begin, found = 0.0 if clock is None else clock.seconds(), []
    space = problem.space
    for _ in range(_SAMPLED_CHANGES // _CHANGES_AT_ONCE):
        x = problem.init(generator, _CHANGES_AT_ONCE)
        site = generator.integers(space.num_sites, size=(_CHANGES_AT_ONCE, 1))
        shift = generator.integers(1, max(space.num_levels, 2), size=(_CHANGES_AT_ONCE, 1))
        y = x.copy()
        changed = (np.take_along_axis(x, site, 1).astype(np.int64) + shift) % np.asarray(space.levels_at(site))
        np.put_along_axis(y, site, changed.astype(y.dtype), 1)
        found.append(np.abs(_changes(problem.target, x, y)))
        if clock is not None and clock.seconds() - begin > _SHARE_OF_COSTS * (clock.budget.seconds or np.inf):
            break
    return np.concatenate(found)


def _changes(target: Target, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " changes"]:
    arguments = (target, jnp.asarray(x, target.space.dtype), jnp.asarray(y, target.space.dtype))
    program, _ = compiled(_differences, arguments, {})
    return np.asarray(program(arguments), np.float64)


def _differences(target: Target, x: Array, y: Array) -> Float[Array, " changes"]:
    def value(x: Array) -> Array:
        return log_prob(target, x.reshape(target.space.shape))

    return jax.vmap(value)(y) - jax.vmap(value)(x)


def binary_betas(model: BinaryQuadratic, generator: np.random.Generator | None = None) -> tuple[float, float]:
    """Where a plain binary model is hot and cold, as in `discrax.solving.sites`:

    hot = 1 / sqrt(mean g_i^2),   the gains g_i of flips at a uniform state,
    cold solves  sum_i |g_i| exp(-beta |g_i|) = median |g_i| / 4   over nonzero gains at a local maximum.
    """
    generator = generator or np.random.default_rng(0)
    x = generator.integers(0, 2, model.num_sites)
    first, last = _gains_below(model, x, generator)
    typical = float(np.sqrt((first**2).mean()))
    return (1.0, 1.0) if typical == 0 else (1 / typical, cold_beta(last, 1 / typical))


def cold_beta(gains: Float[np.ndarray, " moves"], hot: float) -> float:
    """Where sum |g| exp(-beta |g|) = median |g| / 4: the warmth left in a local maximum is next to nothing."""
    losses = np.abs(gains[gains < 0])
    if not len(losses):
        return hot
    aim, beta = np.median(losses) / 4, 1 / np.median(losses)
    while (losses * np.exp(-beta * losses)).sum() > aim and beta * np.median(losses) < 1e4:
        beta *= 1.02
    return max(float(beta), hot)


def _gains_below(
    model: BinaryQuadratic, x: Integer[np.ndarray, " n"], generator: np.random.Generator
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """What flips gain at a state, and at a local maximum above it, or near one: sites that gain are flipped with
    probability a half.
    """
    from scipy.sparse import coo_array

    n, (i, j) = model.num_sites, model.edges.T
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = coo_array((np.concatenate([model.weights, model.weights]), (rows, columns)), shape=(n, n)).tocsr()
    first = gain = (1 - 2 * x) * (model.linear + matrix @ x)
    for _ in range(_FLIP_ROUNDS):
        if not (gain > 0).any():
            break
        x = np.where((gain > 0) & (generator.random(n) < 0.5), 1 - x, x)
        gain = (1 - 2 * x) * (model.linear + matrix @ x)
    return first, gain
