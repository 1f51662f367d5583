"""Samplers from mini-batches as cells.

    total_variation   distance of the weighted draws of all chains to the known law of the Gaussian-Bernoulli model
    selection         variable selection in a tall logistic regression: the L1 error of the marginals and the
                      Gelman-Rubin statistic against the rows looked at
    jump_rates        200 mini-batches at one state: norms of gradients and jump rates

Marginals at a budget come from the second half of the draws up to it. Each chain is averaged with its own weights, and
then the chains are.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from discrax import samplers
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import (
    Measure,
    Measured,
    Number,
    Timing,
    check_complete,
    experiment,
    experiment_without_sampler,
    input_of,
    kernel_of,
)
from discrax.core import random
from discrax.core.kernel import Kernel
from discrax.core.stochastic import evaluate_batch
from discrax.diagnostics.weighted import effective_weights, shares, weighted_rhat
from discrax.samplers.schedules import Exponential
from discrax.samplers.stochastic import SGDLD
from discrax.sampling import Result, sample
from discrax.targets import TallLogisticRegression

_RESAMPLED = 50  # sets of chains for the error of a distance
_BUDGETS = 12  # at which errors are taken
_PILOTS = 20  # chains
LARGEST_RHAT = 100.0  # that is told from an infinite one


# --- A model whose law is known --------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _place(num_sites: int) -> Callable:
    """Of a binary state in the list of all states."""
    powers = 2 ** np.arange(num_sites - 1, -1, -1)
    return lambda x: jnp.sum(x.astype(jnp.int32) * jnp.asarray(powers, jnp.int32))


def total_variation() -> Measure:
    """Of all chains together, with its scatter over sets of chains drawn with replacement; and of single chains."""

    def numbers(cell: Cell, result: Result) -> list[Number]:
        exact = input_of(cell.target).probabilities
        weights = shares(result.stats["weight"])
        laws = np.zeros((result.num_chains, len(exact)))
        for law, places, weight in zip(laws, result.kept, weights, strict=True):
            np.add.at(law, places, weight)
        rng = np.random.default_rng(0)
        drawn = [laws[rng.integers(0, len(laws), len(laws))].mean(axis=0) for _ in range(_RESAMPLED)]
        distances = 0.5 * np.abs(np.stack(drawn) - exact).sum(axis=1)
        single = 0.5 * np.abs(laws - exact).sum(axis=1)
        together = float(0.5 * np.abs(laws.mean(axis=0) - exact).sum())
        return [
            Number("total_variation", together, float(distances.std() * np.sqrt(len(laws)))),  # as if over chains
            Number("total_variation_of_a_chain", float(single.mean()), float(single.std())),
            Number("jump", float(result.stats["jump"].mean())),
        ]

    return Measure(lambda target: _place(target.space.num_sites), numbers)


# --- Tall data -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def regression(
    seed: int, num_rows: int, num_distinct: int, batch_size: int, is_controlled: bool = False
) -> TallLogisticRegression:
    target = TallLogisticRegression.simulated(seed, num_rows, num_distinct, batch_size=batch_size)
    return target.with_control(target.mode()) if is_controlled else target


@lru_cache(maxsize=4)
def _truth(seed: int, num_rows: int, num_distinct: int) -> Float[np.ndarray, " d"]:
    # In more columns, or with more rows, all counts are too many, and but for a few they have probability 0.
    is_small = num_distinct <= 9 and num_rows <= 10_000
    return regression(seed, num_rows, num_distinct, 1).exact_marginals(radius=None if is_small else 2)


@experiment
def selection(
    cell: Cell, data_seed: int, num_rows: int, num_distinct: int, matched_step: float | None = None
) -> Measured:
    """Chains begin at random states. What is tuned is tuned before, in runs of its own that no rows are charged for.

    - `matched_step`: the sampler has a fixed time (SGDLD-noP), with which it jumps as far in all as SGDLD with h does.
    - the budget's warm-up is the length of the run that tunes an exact sampler to its acceptance rate.
    """
    target: TallLogisticRegression = input_of(cell.target)
    truth = _truth(data_seed, num_rows, num_distinct)
    kernel = kernel_of(cell, target)
    sees_batches = bool(kernel.needs)
    # The random-walk oracle sees exact ratios at the price of a mini-batch: what no real sampler can.
    is_charged_a_batch = sees_batches or cell.label("sampler") == "RWM-oracle"
    begin = time.perf_counter()
    if matched_step is not None:
        kernel = _fixed_time(cell, target, matched_step)
    elif cell.budget.num_warmup:
        settings: dict[str, Any] = {**asdict(cell.budget), "num_samples": 1, "progress": False}
        kernel = sample(jax.random.key(cell.seed + 1), target, kernel, **settings).kernel
    tuning = time.perf_counter() - begin
    result = _run(cell, target, kernel, cell.seed)
    price = target.batch_size if is_charged_a_batch else num_rows
    timing = Timing(result.seconds, result.warmup_seconds + tuning, result.compile_seconds)
    return _against_rows(result, truth, price), timing


def _run(cell: Cell, target: TallLogisticRegression, kernel: Kernel, seed: int) -> Result:
    """The cell's chains and steps, from random states."""
    settings: dict[str, Any] = {**asdict(cell.budget), "num_warmup": 0, "adaptation": None, "progress": False}
    result = sample(jax.random.key(seed), target, kernel, **settings)
    check_complete(result)
    return result


def _against_rows(result: Result, truth: np.ndarray, price: int) -> list[Number]:
    assert result.draws is not None
    numbers: list[Number] = []
    draws, weights, error = result.draws, np.asarray(result.stats["weight"]), 0.0
    for end in np.unique(np.geomspace(min(8, result.num_draws), result.num_draws, _BUDGETS).astype(int)):
        some = slice(end // 2, end)
        rows = float(end * price)
        part = shares(weights[:, some])
        chains = np.einsum("cd,cdj->cj", part, draws[:, some])
        error = float(np.abs(chains.mean(axis=0) - truth).sum())
        numbers.append(Number("marginal_error", error, x=rows))
        if end >= 16:
            equal = np.full_like(part, 1 / part.shape[1])
            for name, weight in (("rhat", equal), ("weighted_rhat", part)):
                largest, num_infinite = _largest_rhat(draws[:, some], weight)
                numbers.append(Number(name, largest, x=rows))
                numbers.append(Number(f"infinite_{name}", float(num_infinite), x=rows))
    numbers.append(Number("final_error", error))
    half = slice(result.num_draws // 2, None)
    numbers.append(Number("effective_weights", float(np.median(effective_weights(weights[:, half])))))
    numbers.append(Number("jump", float(result.stats["jump"].mean())))
    numbers.append(Number("acceptance", float(result.stats["accept_prob"].mean())))
    return numbers


def _largest_rhat(draws: np.ndarray, weights: np.ndarray) -> tuple[float | None, int]:
    """The largest R-hat of sites that are not nearly always at one level, and how many of them are infinite.

    One is where no chain leaves its level and not all have the same. It counts as LARGEST_RHAT, and so does what is
    larger. None where there are no such sites.
    """
    ups = np.einsum("cd,cdj->j", weights, draws) / len(draws)
    sites = np.flatnonzero(ups * (1 - ups) > 1e-3)
    found = np.array([weighted_rhat(draws[..., site].astype(np.float64), weights) for site in sites])
    is_infinite = ~np.isfinite(found)
    largest = float(np.where(is_infinite, LARGEST_RHAT, np.minimum(found, LARGEST_RHAT)).max()) if len(sites) else None
    return largest, int(is_infinite.sum())


def _fixed_time(cell: Cell, target: TallLogisticRegression, h: float) -> SGDLD:
    """SGDLD-noP with the time eps, found by bisection of log eps, whose chains jump as far in all as SGDLD's with h.

    Both are runs of the cell's length from random states: where a chain of noP rests for the most of it, its time is
    one with which it jumps the more before.
    """

    def kernel(log_time: float) -> SGDLD:
        return samplers.sgdld(Exponential(log_time), polyak=False, moves="one")

    def jump(kernel: SGDLD) -> float:
        return float(_run(pilot, target, kernel, cell.seed + 1).stats["jump"].mean())

    pilot = replace(cell, budget=replace(cell.budget, num_chains=min(_PILOTS, cell.budget.num_chains)))
    wanted = jump(samplers.sgdld(h))
    low, high = -5000.0, 5000.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if jump(kernel(middle)) < wanted else (low, middle)
    return kernel((low + high) / 2)


@experiment_without_sampler
def jump_rates(cell: Cell, num_batches: int = 200) -> Measured:
    """At the state that no flip improves: the spread of log10 Z over mini-batches, against that of gradient norms."""
    target: TallLogisticRegression = input_of(cell.target)
    x = jnp.asarray(target.mode(), target.space.dtype)
    keys = random.split(random.as_threefry(jax.random.key(cell.seed)), num_batches)

    @jax.jit
    def looks(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        xi = target.draw(key, jnp.zeros((), jnp.int32))
        gradient = jax.grad(lambda e: target.psi(e, xi))(target.space.embed(x))
        changes = evaluate_batch(target, x, xi).changes
        return jnp.linalg.norm(gradient), logsumexp(changes / 2) / jnp.log(10.0), changes

    begin = time.perf_counter()
    norms, rates, changes = (np.asarray(part, np.float64) for part in jax.vmap(looks)(keys))
    order = np.argsort(norms)
    numbers = [
        Number("log10_jump_rate", float(rate), x=float(norm))
        for norm, rate in zip(norms[order], rates[order], strict=True)
    ]
    numbers.append(Number("spread_of_log10_gradient_norm", float(np.ptp(np.log10(norms)))))
    numbers.append(Number("spread_of_log10_jump_rate", float(np.ptp(rates))))
    numbers.append(Number("log_ratio_std", float(changes.std(axis=0).mean())))
    return numbers, Timing(time.perf_counter() - begin)
