"""The measure of most tables: jump distance, acceptance and effective sample size.

The statistic is the distance to a random reference state, or the sum of the codes.
"""

from collections.abc import Callable
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measure, Number
from discrax.core.kernel import rated_knob
from discrax.diagnostics import ess
from discrax.sampling import Result


def mixing(statistic: str = "distance", rule: str = "first_negative", per_chain: bool = False) -> Measure:
    """Jump distance, acceptance, and ESS of a scalar statistic, per step, per 10,000 queries and per second."""

    def numbers(cell: Cell, result: Result) -> list[Number]:
        return movement(cell, result) + ess_numbers(cell, result, result.kept, rule, per_chain)

    return Measure(lambda target: scalar(statistic, target.space.shape, target.space.num_levels), numbers)


@lru_cache(maxsize=256)  # the same function for the same shape, so that programs are shared
def scalar(statistic: str, shape: tuple[int, ...], num_levels: int) -> Callable:
    """A scalar of the codes: their L1 distance to one fixed random state, or their sum."""
    if statistic not in ("distance", "sum"):
        raise ValueError(f"A statistic is 'distance' or 'sum', but got {statistic!r}.")
    reference = np.zeros(shape, np.int32)
    if statistic == "distance":
        reference = np.random.default_rng(0).integers(0, num_levels, shape).astype(np.int32)

    def of_codes(x):
        return jnp.sum(jnp.abs(x.astype(jnp.int32) - reference)).astype(jnp.int32)

    return of_codes


def movement(cell: Cell, result: Result) -> list[Number]:
    """Jump distance, acceptance, seconds, steps and the tuned scale."""
    jump, accepted = result.mean_stats["jump"], result.mean_stats["accept_prob"]
    num_steps = result.num_draws * result.thinning
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


def ess_numbers(cell: Cell, result: Result, values: np.ndarray, rule: str, per_chain: bool) -> list[Number]:
    """The ESS of a scalar of the draws, (chains, draws): per step, per 10,000 queries, per second."""
    per_step = ess(values, rule) / (result.num_draws * result.thinning)
    mean, std = float(per_step.mean()), float(per_step.std())
    queries = result.kernel.queries(result.target)
    seconds_per_step = max(result.seconds, 1e-12) / (result.num_draws * result.thinning)
    numbers = [
        Number("ESS_per_step", mean, std),
        Number("ESS_n", 1e4 * mean / queries, 1e4 * std / queries),
        # Per second of the whole ensemble's steps, of one chain: as the papers divide.
        Number("ESS_t", mean / seconds_per_step, std / seconds_per_step),
        Number("ESS_all_t", mean * result.num_chains / seconds_per_step),
    ]
    if per_chain:
        numbers += [Number("ESS_chain", float(value), x=float(chain)) for chain, value in enumerate(per_step)]
        numbers += [
            Number("ESS_chain_t", float(value / seconds_per_step), x=float(chain))
            for chain, value in enumerate(per_step)
        ]
    return numbers
