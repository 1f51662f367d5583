"""Stochastic targets, pi(x) = phi(E_xi psi(x, xi)): the expectation is too dear, and a mini-batch xi of it is cheap.

- Quenched models: phi is the identity and psi a mean of conditional probabilities pi(x | u). They are computed in
  logarithms (`in_logs`): `psi` returns log psi, and what is averaged is psi.
- Bayesian learning and expected costs: phi = exp and psi is a sum of log-likelihoods over a mini-batch, scaled to the
  whole data set, or minus a cost.

A mini-batch tells psi at a state and its change by every single-site change. While a chain stays, it averages what its
mini-batches told (`Average`); the log-ratios of pi are those of the averages,

    log r_z = log phi(mean psi(z)) - log phi(mean psi(x)).
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray

from discrax.core.target import Target, Tempered, bare, value_and_changes

NOTHING = -1e30  # stands for log 0 where a difference of two of them must be a number


def has_exact_log_prob(target: Target) -> bool:
    """Whether `log_prob` is the target's, and not an estimate of it."""
    base = bare(target)
    return not isinstance(base, StochasticTarget) or base.is_log_prob_exact


class Batch(NamedTuple):
    """What a mini-batch tells at a state x."""

    here: Float[Array, ""]  # psi(x, xi); log psi(x, xi) where the target works in logs
    changes: Float[Array, "..."]  # by every single-site change; -inf bars one


class Average(NamedTuple):
    """What the mini-batches tell that were drawn at one state."""

    here: Float[Array, ""]  # the mean of psi(x); its logarithm where the target works in logs
    changes: Float[Array, "..."]  # of `here`
    count: Float[Array, ""]  # of mini-batches


class StochasticTarget(Target):
    """mini-batches of an expectation"""

    in_logs: ClassVar[bool] = False  # psi returns log psi
    is_exponential: ClassVar[bool] = True  # log phi is the identity on what psi returns
    is_log_prob_exact: ClassVar[bool] = True  # False where `log_prob` is an estimate, which exact kernels must not take

    @abstractmethod
    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Any:
        """A mini-batch xi. `step` counts those of a chain, for targets that go through their data in order."""

    @abstractmethod
    def psi(self, e: Float[Array, "..."], xi: Any) -> Float[Array, ""]:
        """psi(x, xi), or its logarithm where `in_logs`; e is the embedding of x."""

    def log_phi(self, mean: Float[Array, "..."]) -> Float[Array, "..."]:
        """log phi of a mean of psi; the identity where `is_exponential`, and unless a target has another."""
        return mean


class BatchRatios(StochasticTarget):
    """the changes of psi by all single-site changes at the price of a few evaluations"""

    @abstractmethod
    def batch(self, x: Integer[Array, "*shape"], xi: Any) -> Batch:
        """psi at x and its changes, by one mini-batch."""


class Rows(eqx.Module):
    """A data set of `num_rows` rows: a pytree of arrays whose first axis they are."""

    num_rows: eqx.AbstractVar[int]
    num_resident: eqx.AbstractVar[int | None]  # rows of a block on the device; None where all of them are there

    @abstractmethod
    def draw(self, key: PRNGKeyArray, step: Int[Array, ""], count: int) -> Any:
        """`count` rows for a mini-batch."""

    @abstractmethod
    def renewed(self) -> "Rows":
        """With the next block on the device, where data come block by block. Called by the host, between chunks."""

    @abstractmethod
    def resident(self) -> Any:
        """All rows that are on the device."""

    @abstractmethod
    def once(self, rows_at_once: int) -> Iterator[Any]:
        """All rows of the data set, each once, some at a time."""


class DataTarget(StochasticTarget):
    """mini-batches of a data set"""

    rows: eqx.AbstractVar[Rows]
    batch_size: eqx.AbstractVar[int]

    @property
    def is_log_prob_exact(self) -> bool:
        """Where the data come block by block, only one block of them is there to be summed over."""
        return self.rows.num_resident is None

    def draw(self, key: PRNGKeyArray, step: Int[Array, ""]) -> Any:
        return self.rows.draw(key, step, self.batch_size)


def base_of(target: Target) -> StochasticTarget:
    """The stochastic target that a sampler's target is, or is made of by tempering."""
    base: Any = bare(target)
    return base


def renewed(target: Target) -> Target:
    """A target of streamed data with their next block; any other target as it is."""
    base = bare(target)
    if not isinstance(base, DataTarget) or base.rows.num_resident is None:
        return target
    fresh = eqx.tree_at(lambda it: it.rows, base, base.rows.renewed())
    return eqx.tree_at(lambda it: it.target, target, fresh) if isinstance(target, Tempered) else fresh


def steps_per_block(target: Target) -> int | None:
    """For how many steps the rows on the device last, each used once; None where all rows are there."""
    base = bare(target)
    if not isinstance(base, DataTarget) or base.rows.num_resident is None:
        return None
    return base.rows.num_resident // base.batch_size


def evaluate_batch(target: StochasticTarget, x: Integer[Array, "*shape"], xi: Any, *, exact: bool = True) -> Batch:
    """What a mini-batch tells at x: from the target, else from psi at every neighbour, or from one gradient."""
    space = target.space
    if not exact:
        value, gradient = jax.value_and_grad(lambda e: target.psi(e, xi))(space.embed(x))
        return Batch(value, space.ratios_from_gradient(x, gradient))
    if isinstance(target, BatchRatios):
        return target.batch(x, xi)
    return Batch(*value_and_changes(lambda x: target.psi(space.embed(x), xi), space, x))


def empty_average(target: StochasticTarget) -> Average:
    """The average before the first mini-batch."""
    space, dtype = target.space, jnp.result_type(float)
    shape = space.shape if space.has_two_levels else (*space.shape, space.num_levels)
    return Average(jnp.zeros((), dtype), jnp.zeros(shape, dtype), jnp.zeros((), dtype))


def add_batch(target: StochasticTarget, average: Average, batch: Batch, *, exact: bool) -> Average:
    """The average with one more mini-batch."""
    count = average.count + 1
    if not target.in_logs:
        here = average.here + (batch.here - average.here) / count
        return Average(here, _move_mean(average.changes, batch.changes, 1 / count), count)
    before = average.here + jnp.log(average.count)  # log of the sum of psi(x) so far
    new = jnp.maximum(batch.here, NOTHING)
    total = jnp.logaddexp(before, new)
    if not exact:  # the slope of log mean psi is the mean of slopes of log psi, weighted with psi
        return Average(total - jnp.log(count), _move_mean(average.changes, batch.changes, jnp.exp(new - total)), count)
    there = jnp.logaddexp(before + average.changes, new + batch.changes)
    return Average(total - jnp.log(count), there - total, count)


def _move_mean(old: Array, new: Array, share: Array) -> Array:
    """The mean `old` moved by a share of the way to `new`; -inf, which bars a change, stays."""
    return jnp.where(jnp.isneginf(new), -jnp.inf, old + share * (new - jnp.where(jnp.isneginf(new), 0, old)))


def log_ratios(target: StochasticTarget, average: Average) -> Float[Array, "..."]:
    """Untempered, of all single-site changes."""
    if target.is_exponential:
        return average.changes
    return target.log_phi(average.here + average.changes) - target.log_phi(average.here)
