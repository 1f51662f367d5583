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
from dataclasses import asdict
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
    input_of,
    kernel_of,
)
from discrax.core import random
from discrax.core.stochastic import evaluate_batch
from discrax.diagnostics.weighted import effective_weights, shares, weighted_rhat
from discrax.samplers.schedules import Exponential
from discrax.samplers.stochastic import SGDLD
from discrax.sampling import Result, sample
from discrax.targets import TallLogisticRegression

_RESAMPLED = 50  # sets of chains for the error of a distance
_BUDGETS = 12  # at which errors are taken
_PILOT = 400  # steps


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
        return [
            Number("total_variation", float(0.5 * np.abs(laws.mean(axis=0) - exact).sum()), float(distances.std())),
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
    return regression(seed, num_rows, num_distinct, 1).exact_marginals(radius=None if num_distinct <= 9 else 2)


@experiment
def selection(
    cell: Cell, data_seed: int, num_rows: int, num_distinct: int, matched_step: float | None = None
) -> Measured:
    """`matched_step`: the sampler has a fixed time (SGDLD-noP), chosen so that it jumps as often as SGDLD with h."""
    target: TallLogisticRegression = input_of(cell.target)
    truth = _truth(data_seed, num_rows, num_distinct)
    kernel = kernel_of(cell, target)
    sees_batches = bool(kernel.needs)
    # The random-walk oracle sees exact ratios at the price of a mini-batch: what no real sampler can.
    is_charged_a_batch = sees_batches or cell.label("sampler") == "RWM-oracle"
    begin = time.perf_counter()
    if matched_step is not None:
        kernel = _fixed_time(cell, target, matched_step)
    tuning = time.perf_counter() - begin
    adaptation = "auto" if cell.budget.num_warmup and not sees_batches else None
    settings: dict[str, Any] = {**asdict(cell.budget), "adaptation": adaptation, "progress": False}
    result = sample(jax.random.key(cell.seed), target, kernel, **settings)
    check_complete(result)
    price = target.batch_size if is_charged_a_batch else num_rows
    timing = Timing(result.seconds, result.warmup_seconds + tuning, result.compile_seconds)
    return _against_rows(result, truth, price, cell.budget.num_warmup), timing


def _against_rows(result: Result, truth: np.ndarray, price: int, num_before: int) -> list[Number]:
    assert result.draws is not None
    numbers, draws, weights = [], result.draws, np.asarray(result.stats["weight"])
    for end in np.unique(np.geomspace(min(8, result.num_draws), result.num_draws, _BUDGETS).astype(int)):
        some = slice(end // 2, end)
        rows = float((end + num_before) * price)
        part = shares(weights[:, some])
        chains = np.einsum("cd,cdj->cj", part, draws[:, some])
        numbers.append(Number("marginal_error", float(np.abs(chains.mean(axis=0) - truth).sum()), x=rows))
        if end >= 16:
            numbers.append(Number("rhat", _largest_rhat(draws[:, some], np.full_like(part, 1 / part.shape[1])), x=rows))
            numbers.append(Number("weighted_rhat", _largest_rhat(draws[:, some], part), x=rows))
    half = slice(result.num_draws // 2, None)
    numbers.append(Number("effective_weights", float(np.median(effective_weights(weights[:, half])))))
    numbers.append(Number("jump", float(result.stats["jump"].mean())))
    return numbers


def _largest_rhat(draws: np.ndarray, weights: np.ndarray) -> float | None:
    """The largest R-hat of sites that are not nearly always at one level; None where chains froze at both."""
    ups = np.einsum("cd,cdj->j", weights, draws) / len(draws)
    sites = np.flatnonzero(ups * (1 - ups) > 1e-3)
    found = [weighted_rhat(draws[..., site].astype(np.float64), weights) for site in sites]
    return max(found) if found and np.isfinite(found).all() else None


def _fixed_time(cell: Cell, target: TallLogisticRegression, jump: float) -> SGDLD:
    """SGDLD-noP with the time eps, found by bisection of log eps, whose chains jump as often as SGDLD's."""

    def kernel(log_time: float) -> SGDLD:
        return samplers.sgdld(Exponential(log_time), polyak=False, moves="one")

    low, high = -5000.0, 5000.0
    for _ in range(16):
        middle = (low + high) / 2
        pilot = sample(
            jax.random.key(cell.seed + 1), target, kernel(middle),
            num_chains=cell.budget.num_chains, num_warmup=0, num_samples=_PILOT, adaptation=None, progress=False,
        )  # fmt: skip
        check_complete(pilot)
        if pilot.stats["jump"][:, _PILOT // 2 :].mean() < jump:
            low = middle
        else:
            high = middle
    return kernel((low + high) / 2)


@experiment
def jump_rates(cell: Cell, num_batches: int = 200) -> Measured:
    """At the state that no flip improves: the spread of log10 Z over mini-batches, against that of gradient norms."""
    target: TallLogisticRegression = input_of(cell.target)
    x = jnp.asarray(target.mode(), target.space.dtype)
    keys = random.split(random.as_threefry(jax.random.key(cell.seed)), num_batches)

    @jax.jit
    def norm_and_rate(key: PRNGKeyArray) -> tuple[Array, Array]:
        xi = target.draw(key, jnp.zeros((), jnp.int32))
        gradient = jax.grad(lambda e: target.psi(e, xi))(target.space.embed(x))
        return jnp.linalg.norm(gradient), logsumexp(evaluate_batch(target, x, xi).changes / 2) / jnp.log(10.0)

    begin = time.perf_counter()
    norms, rates = (np.asarray(part, np.float64) for part in jax.vmap(norm_and_rate)(keys))
    order = np.argsort(norms)
    numbers = [
        Number("log10_jump_rate", float(rate), x=float(norm))
        for norm, rate in zip(norms[order], rates[order], strict=True)
    ]
    numbers.append(Number("spread_of_log10_gradient_norm", float(np.ptp(np.log10(norms)))))
    numbers.append(Number("spread_of_log10_jump_rate", float(np.ptp(rates))))
    return numbers, Timing(time.perf_counter() - begin)
