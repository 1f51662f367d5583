"""The measure of most tables: jump distance, acceptance and effective sample size.

The statistic is the distance to random reference states r, d_r(x) = sum_i |x_i - r_i|, or the sum of the codes. With

    E_cr = ESS of d_r along chain c / steps,       E = mean over c and r of E_cr,       tau = 1 / E

`ESS_per_step` is E, and its std that of mean_r E_cr over chains; `ESS_reference_std` is that of mean_c E_cr over
references, which no longer chains make smaller. A cell goes on until its chains are `LONG_ENOUGH` autocorrelation
times tau long, the standard error of E over chains, as a part of E, is small enough, and E of the first halves of the
chains is larger by no more than that, or until its budget ends. (Short chains overstate E, since what is slow in them
passes for their mean, and shorter ones overstate it more.)

Chains that do not agree with each other are shorter than each by itself would tell: where the means m_cr of the
statistic differ more between chains than their ESS explains, the length in autocorrelation times is

    mean_r (variance of d_r over draws of all chains) / mean_r (variance of m_cr over chains)
"""

import math
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measure, Number
from discrax.core.checks import number, whole
from discrax.core.kernel import rated_knob
from discrax.diagnostics.ess import ess_of_centred
from discrax.sampling import Result

LONG_ENOUGH = 50  # autocorrelation times
_REFERENCES = 30
_ERROR = 0.03
_FEWEST = 4  # draws that tell anything
_FEW = 4  # references
_MOST_EFFECTIVE = 0.375  # of a draw of a chain that is thinned: of this AR(1) loses 5 % of its ESS, of 0.2 1.4 %


def mixing(
    statistic: str = "distance",
    rule: str = "first_negative",
    per_chain: bool = False,
    num_references: int = _REFERENCES,
    error: float | None = _ERROR,
) -> Measure:
    """Jump distance, acceptance, and ESS of a scalar statistic, per step, per 10,000 queries and per second.

    A cell ends when its chains are long enough and the relative error of its ESS and its bias are at most `error`, when
    its budget does, or when its draws are so nearly independent that fewer of them would hide it: so do chains that mix
    well, each in a mode of its own. Without `error` it always ends with its budget.
    """
    if error is not None:
        number("error", error, above=0)

    def is_known(found: Mixing) -> bool:
        return error is not None and found.is_known(error)

    def numbers(cell: Cell, result: Result) -> list[Number]:
        found = mix(result, result.kept, rule)
        numbers = movement(cell, result) + ess_numbers(result, found, per_chain) + length_numbers(found)
        return [*numbers, Number("ended_by_error", float(is_known(found)))]

    def has_enough(result: Result) -> bool:
        few = _mix(result.kept[..., :_FEW], rule, _num_steps(result))
        if 2 * few.autocorrelation_times < LONG_ENOUGH:  # few tell; where they mislead it is one more stage
            return False
        return is_known(mix(result, result.kept, rule))

    def can_thin(result: Result, every: int) -> bool:
        return every * mix(result, result.kept, rule).per_step.mean() * result.thinning <= _MOST_EFFECTIVE

    def keep(target):
        return scalars(statistic, target.space.shape, target.space.num_levels, num_references)

    return Measure(keep, numbers) if error is None else Measure(keep, numbers, has_enough, can_thin)


@lru_cache(maxsize=16)
def scalars(statistic: str, shape: tuple[int, ...], num_levels: int, num_references: int = _REFERENCES) -> Callable:
    """Scalars of the codes: their L1 distances to uniformly random states, which a seed fixes, or their sum."""
    if statistic not in ("distance", "sum"):
        raise ValueError(f"A statistic is 'distance' or 'sum', but got {statistic!r}.")
    count = whole("num_references", num_references, least=1, most=10_000)
    sites, most = math.prod(shape), math.prod(shape) * (num_levels - 1)
    kind = next(kind for kind in (np.int8, np.int16, np.int32) if most <= np.iinfo(kind).max)
    if statistic == "sum":
        return _Sum(kind)
    references = np.random.default_rng(0).integers(0, num_levels, (count, sites))
    return _Distances(jnp.asarray(references, jnp.uint8 if num_levels <= 256 else jnp.int32), num_levels, kind)


class _Sum(eqx.Module):
    kind: Any = eqx.field(static=True)

    def __call__(self, x: Integer[Array, "*shape"]) -> Integer[Array, "1"]:
        return jnp.sum(x, dtype=jnp.int32)[None].astype(self.kind)


class _Distances(eqx.Module):
    """The references are an argument of the program, not a part of it: XLA takes minutes over large constants."""

    references: Integer[Array, "references sites"]
    num_levels: int = eqx.field(static=True)
    kind: Any = eqx.field(static=True)

    def __call__(self, x: Integer[Array, "*shape"]) -> Integer[Array, " references"]:
        codes, references = x.reshape(-1).astype(jnp.int32), self.references.astype(jnp.int32)
        if self.num_levels > 2 or codes.size > 2**24:  # a float32 counts to 2^24
            return jax.lax.map(lambda r: jnp.sum(jnp.abs(codes - r)), references).astype(self.kind)
        # |x - r| = r + (1 - 2r) x, a product of matrices of all draws at once, exact since its entries are 0, 1 and -1
        signed = (1 - 2 * references).astype(jnp.float32) @ codes.astype(jnp.float32)
        return (references.sum(axis=-1) + signed.astype(jnp.int32)).astype(self.kind)


class Mixing(NamedTuple):
    """How well chains mix, by E_cr."""

    per_step: np.ndarray  # (chain, reference)
    autocorrelation_times: float  # in a chain
    overstated: float  # by which part of it the first halves of the chains have a larger E

    @property
    def of_chains(self) -> np.ndarray:
        """The mean over references, of each chain."""
        return self.per_step.mean(axis=1)

    @property
    def relative_error(self) -> float:
        """The standard error over chains of E, as a part of it."""
        mean, count = float(self.per_step.mean()), len(self.per_step)
        return float(self.of_chains.std(ddof=1)) / math.sqrt(count) / mean if count > 1 and mean > 0 else math.inf

    @property
    def is_long_enough(self) -> bool:
        """Whether the chains are long enough for their ESS to mean anything."""
        return self.autocorrelation_times >= LONG_ENOUGH

    def is_known(self, error: float) -> bool:
        """Whether they are, and the relative error and the bias are small enough: then a cell ends."""
        return self.is_long_enough and self.relative_error <= error and self.overstated <= error


def mix(result: Result, values: np.ndarray, rule: str) -> Mixing:
    """The ESS of scalars of the draws, (chain, draw) or (chain, draw, reference).

    What was found is kept as long as the values are: whether they are enough and what they say is asked one by one.
    """
    key = (id(values), rule)
    if key not in _known:
        found = _mix(values if values.ndim == 3 else values[..., None], rule, _num_steps(result))
        _known[key] = found
        weakref.finalize(values, _known.pop, key, None)
    return _known[key]


_known: dict[tuple[int, str], Mixing] = {}


def _mix(values: np.ndarray, rule: str, num_steps: int) -> Mixing:
    """Of values (chain, draw, reference).

    Transforms of Fourier would take the host longer than the whole run takes an accelerator, so there it makes them.
    """
    effective, spread, between = _of_references(values, rule)
    times = min(float(effective.mean()), spread.sum() / between.sum() if between.sum() > 0 else math.inf)
    mean, half = float(effective.mean()) / max(1, values.shape[1]), values.shape[1] // 2
    of_half = float(_of_references(values[:, :half], rule)[0].mean()) / half if half >= _FEWEST else mean
    return Mixing(effective.T / num_steps, times, of_half / mean - 1 if mean > 0 else 0.0)


def _of_references(values: np.ndarray, rule: str) -> tuple[np.ndarray, ...]:
    """The numbers of `_of_one` for each reference."""
    if jax.default_backend() == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        with ThreadPoolExecutor(cores) as pool:  # a transform is one thread
            found = zip(*pool.map(partial(_of_one, rule=rule), np.moveaxis(values, -1, 0)), strict=True)
    else:
        found = _of_each(values, rule=rule)
    return tuple(np.asarray(each, np.float64) for each in found)


def _of_one(values: Any, rule: str) -> tuple[Any, Any, Any]:
    """Of a scalar: the ESS of each chain, the variance of all draws, and that of the chains' means.

    In single precision, as an accelerator has it: the first value of a chain is taken away before anything is summed,
    so that one that never moves is 0.
    """
    xp = np if isinstance(values, np.ndarray) else jnp
    wide = values.astype(np.int32) if xp.issubdtype(values.dtype, np.integer) else values
    first = wide[:, :1]
    its = (wide - first).astype(np.float32)
    own = its.mean(axis=1)
    its, means = its - own[:, None], own + (first[:, 0] - first[0, 0]).astype(np.float32)
    between = means.var(ddof=1) if len(its) > 1 else xp.zeros(())
    of_chains = partial(ess_of_centred, rule=rule) if xp is np else jax.vmap(partial(ess_of_centred, rule=rule))
    effective = of_chains(its) if its.shape[1] >= _FEWEST else xp.zeros(len(its))
    return effective, xp.square(its).mean() + means.var(), between


@partial(jax.jit, static_argnames="rule")
def _of_each(values: Any, rule: str) -> Any:
    return jax.lax.map(partial(_of_one, rule=rule), jnp.moveaxis(values, -1, 0))


def _num_steps(result: Result) -> int:
    return max(1, result.num_draws * result.thinning)


def movement(cell: Cell, result: Result) -> list[Number]:
    """Jump distance, acceptance, seconds, steps and the tuned scale."""
    jump, accepted = result.mean_stats["jump"], result.mean_stats["accept_prob"]
    num_steps = _num_steps(result)
    numbers = [
        Number("EJD", float(jump.mean()), float(jump.std())),
        Number("acceptance", float(accepted.mean()), float(accepted.std())),
        Number("time_s", result.seconds),
        Number("num_steps", num_steps),
        Number("num_chains", result.num_chains),
        Number("microseconds_per_step", 1e6 * result.seconds / num_steps),
    ]
    scale = rated_knob(result.kernel, result.target)
    if scale is not None:
        numbers.append(Number("scale", float(scale[1].value)))
    return numbers


def ess_numbers(result: Result, found: Mixing, per_chain: bool) -> list[Number]:
    """The ESS per step, per 10,000 queries and per second, and what a step costs."""
    of_chains = found.of_chains
    mean, std = float(of_chains.mean()), float(of_chains.std())
    evals = float(np.mean(result.mean_stats["evals"])) / result.thinning
    queries = result.kernel.queries(result.target, evals)
    seconds_per_step = max(result.seconds, 1e-12) / _num_steps(result)
    numbers = [
        Number("ESS_per_step", mean, std),
        Number("ESS_n", 1e4 * mean / queries, 1e4 * std / queries),
        # Per second of the whole ensemble's steps, of one chain: as the papers divide.
        Number("ESS_t", mean / seconds_per_step, std / seconds_per_step),
        Number("ESS_all_t", mean * result.num_chains / seconds_per_step),
        Number("evals_per_step", evals),
        Number("queries_per_step", queries),
    ]
    if per_chain:
        numbers += [Number("ESS_chain", float(value), x=float(chain)) for chain, value in enumerate(of_chains)]
        numbers += [
            Number("ESS_chain_t", float(value / seconds_per_step), x=float(chain))
            for chain, value in enumerate(of_chains)
        ]
    return numbers


def length_numbers(found: Mixing) -> list[Number]:
    """Whether the chains are long enough, the error of the ESS, and how it differs between references."""
    numbers = [
        Number("autocorrelation_times", found.autocorrelation_times),
        Number("is_long_enough", float(found.is_long_enough)),
        Number("ESS_relative_error", found.relative_error),
        Number("ESS_overstated", found.overstated),
    ]
    of_references = found.per_step.mean(axis=0)
    if len(of_references) > 1:
        numbers.append(Number("ESS_reference_std", float(of_references.std(ddof=1))))
        numbers.append(Number("num_references", len(of_references)))
    return numbers
