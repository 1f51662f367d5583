"""Laws with many modes as cells.

normaliser      log Z of a periodic Ising lattice over many keys, beside Kaufman's, and how often 95 % intervals
                hold it
thermodynamics  energy and heat capacity of such a lattice by a scan of temperatures, likewise
magnetisation   ESS of the magnetisation, a draw and a second
overlap         R-hat of the overlap of two chains, over pairs of chains, and round trips where there is a ladder
marginals       the largest error of a marginal of chains that all begin in one mode
cost            seconds of a draw of a ladder, beside those of a draw without, by rung
"""

import math
import time
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.bench.experiments.ess import LONG_ENOUGH
from discrax.bench.plan.cell import Call, Cell
from discrax.bench.plan.measure import Measured, Number, Timing, check_complete, experiment, kernel_of, target_of
from discrax.core.target import Target
from discrax.diagnostics.ess import ess
from discrax.diagnostics.rank import rank_rhat
from discrax.exact import law, square_ising
from discrax.sampling import Ladder, Result, log_normaliser, sample, scan_temperatures
from discrax.targets import LogisticRegression, PolynomialMixture, QuarticMixture, TallLogisticRegression

_HALF = 1.96  # standard errors on each side of an interval of 95 %
_TURNS = 5  # of runs whose seconds are compared
_FEW = 64  # draws at a time, of which overlaps are taken
_MANY_ROWS = 10_000  # of a regression: counts far from the likeliest then have probability 0


def draw(cell: Cell, key: Array, *, ladder: Ladder | None = None, keep: Any = "draws") -> Result:
    """As the cell says, with a ladder or without."""
    target, budget = target_of(cell.target), cell.budget
    result = sample(
        key,
        target,
        kernel_of(cell, target),
        num_chains=budget.num_chains,
        num_warmup=budget.num_warmup,
        num_samples=budget.num_samples,
        thinning=budget.thinning,
        init=cell.make_init(target),
        adaptation=cell.make_adapter(),
        keep=keep,
        progress=False,
        tempering=ladder,
    )
    check_complete(result)
    return result


def timing_of(result: Result) -> Timing:
    """Of a run."""
    return Timing(result.seconds, result.warmup_seconds, result.compile_seconds)


def _beside(what: str, found: np.ndarray, errors: np.ndarray, exact: float) -> list[Number]:
    """How far estimates are from what they estimate, in its units and in their own errors; deviations over keys."""
    scores, n = (found - exact) / errors, len(found)
    covered = float((np.abs(scores) <= _HALF).mean())
    spread = float(found.std(ddof=1)) if n > 1 else None
    return [
        Number(f"{what}_difference", float(found.mean()) - exact, spread),
        Number(f"{what}_error", float(errors.mean())),
        Number(f"{what}_first_score", float(scores[0])),
        Number(f"{what}_coverage", covered, math.sqrt(covered * (1 - covered))),
    ]


def _keys(cell: Cell, count: int) -> Array:
    return jax.random.split(jax.random.key(cell.seed), count)


# --- What is known exactly -------------------------------------------------------------------------------------------


@experiment
def normaliser(cell: Cell, method: str, side: int, coupling: float, repeats: int, **settings: Any) -> Measured:
    """log Z of a periodic lattice by a method of `log_normaliser`."""
    target, began = target_of(cell.target), time.perf_counter()
    exact = square_ising((side, side), coupling).log_Z
    found = []
    for key in _keys(cell, repeats):
        its = log_normaliser(key, target, method, sampler=kernel_of(cell, target), progress=False, **settings)
        found.append((its.log_Z, (its.interval[1] - its.interval[0]) / (2 * _HALF)))
    values, errors = np.array(found).T
    seconds = time.perf_counter() - began
    numbers = _beside("log_Z", values, errors, exact)
    return [*numbers, Number("time_s", seconds / repeats), Number("instances", repeats)], Timing(seconds)


def _nothing(x: Array) -> Array:
    return jnp.zeros((), jnp.int8)


@experiment
def thermodynamics(cell: Cell, side: int, betas: tuple[float, ...], at: float, repeats: int) -> Measured:
    """Energy and heat capacity of a site at an inverse temperature, by a scan over several."""
    target, budget, began = target_of(cell.target), cell.budget, time.perf_counter()
    exact = square_ising((side, side), at)
    found = []
    for key in _keys(cell, repeats):
        scan = scan_temperatures(
            key,
            target,
            betas,
            sampler=kernel_of(cell, target),
            num_chains=budget.num_chains,
            num_warmup=budget.num_warmup,
            num_samples=budget.num_samples,
        ).at(at)
        pairs = ((getattr(scan, name), scan.errors[name]) for name in ("energy", "heat_capacity"))
        found.append([float(np.squeeze(each)) for pair in pairs for each in pair])
    energy, energy_error, heat, heat_error = np.array(found).T
    seconds = time.perf_counter() - began
    numbers = _beside("energy", energy, energy_error, exact.energy)
    numbers += _beside("heat_capacity", heat, heat_error, exact.heat_capacity)
    return [*numbers, Number("time_s", seconds / repeats), Number("instances", repeats)], Timing(seconds)


@experiment
def marginals(
    cell: Cell, is_tempered: bool = False, long_run: tuple[int, int] = (32, 10_000), **settings: Any
) -> Measured:
    """The largest distance of a marginal to the exact one, of all chains together and of a chain on average.

    `long_run`: chains and draws of the run that stands for what is exact where nothing is.
    """
    target = target_of(cell.target)
    result = draw(cell, jax.random.key(cell.seed), ladder=Ladder(**settings) if is_tempered else None)
    exact = (
        _marginals_of_long_run(cell.target, *long_run)
        if isinstance(target, QuarticMixture)
        else known_marginals(target)
    )
    found = _shares(result, exact.shape[-1])
    of_chains, errors = np.abs(found - exact).max(axis=(1, 2)), np.abs(found.mean(axis=0) - exact)
    worst = np.unravel_index(errors.argmax(), errors.shape)
    numbers = [
        Number("marginal_error", float(errors[worst]), float(found[:, *worst].std(ddof=1))),
        Number("marginal_error_of_a_chain", float(of_chains.mean()), float(of_chains.std())),
        Number("time_s", result.seconds),
    ]
    return [*numbers, *trips_of(result)], timing_of(result)


def _shares(result: Result, num_levels: int) -> Float[np.ndarray, "chains sites levels"]:
    """How often each chain has each level at each site."""
    draws = np.asarray(result.draws)
    draws = draws.reshape(*draws.shape[:2], -1)
    return np.stack([(draws == level).mean(axis=1) for level in range(num_levels)], axis=-1)


def known_marginals(target: Target) -> Float[np.ndarray, "sites levels"]:
    """The probability of every level at every site: by enumeration; of a mixture of products by its formula, of a
    regression by how many copies of each of its columns are on.
    """
    if isinstance(target, PolynomialMixture):
        values = np.asarray(target.space.values, float)
        log_p = np.stack([np.polyval(target.coefficients, values - c) for c in np.asarray(target.centres, float)])
        p = np.exp(log_p)
        return np.tile((p / p.sum(axis=1, keepdims=True)).mean(axis=0), (target.space.num_sites, 1))
    if isinstance(target, LogisticRegression):
        regression = TallLogisticRegression((target.X, target.y), batch_size=1)
        on = regression.exact_marginals(radius=None if len(target.y) <= _MANY_ROWS else 2)
        return np.stack([1 - on, on], axis=-1)
    states = target.space.enumerate().reshape(-1, target.space.num_sites)
    p = law(target)
    return np.stack([p @ (states == level) for level in range(target.space.num_levels)], axis=-1)


@lru_cache(maxsize=4)
def _marginals_of_long_run(made: Call, num_chains: int, num_samples: int) -> Float[np.ndarray, "sites levels"]:
    """Of chains of another key that begin at random states and are tempered."""
    target = target_of(made)
    result = sample(
        jax.random.key(1),
        target,
        "dmala",
        num_chains=num_chains,
        num_warmup=1_000,
        num_samples=num_samples,
        tempering=Ladder(),
        progress=False,
    )
    check_complete(result)
    return _shares(result, target.space.num_levels).mean(axis=0)


# --- How fast chains move --------------------------------------------------------------------------------------------


def _magnetisation(x: Array) -> Array:
    return jnp.mean(2 * x.astype(jnp.float32) - 1)


@experiment
def magnetisation(cell: Cell) -> Measured:
    """ESS of the magnetisation, of which the mean is 0: a chain that never turns over has next to none."""
    result = draw(cell, jax.random.key(cell.seed), keep=_magnetisation)
    values = np.asarray(result.kept, np.float64)
    numbers, of_all = [], {"ESS": ess(values, mean=0.0), "ESS_of_size": ess(np.abs(values))}
    for name, of_chains in of_all.items():
        total, spread = float(of_chains.sum()), float(of_chains.std(ddof=1)) * len(of_chains)
        numbers.append(Number(f"{name}_per_draw", total / values.size, spread / values.size))
        numbers.append(Number(f"{name}_per_second", total / result.seconds, spread / result.seconds))
    length = float(of_all["ESS"].mean())  # of a chain, in autocorrelation times
    numbers += [Number("autocorrelation_times", length), Number("is_long_enough", float(length >= LONG_ENOUGH))]
    numbers += [Number("rhat", float(rank_rhat(values))), Number("time_s", result.seconds)]
    return numbers, timing_of(result)


@experiment
def overlap(cell: Cell, is_tempered: bool = False, **settings: Any) -> Measured:
    """R-hat of q = mean_i s_i s'_i, of chain 2k and chain 2k + 1, over all k."""
    ladder = Ladder(**settings) if is_tempered else None
    result = draw(cell, jax.random.key(cell.seed), ladder=ladder)
    draws = np.asarray(result.draws)
    draws = draws.reshape(*draws.shape[:2], -1)
    parts = range(0, draws.shape[1], _FEW)
    q = np.concatenate([_overlaps(draws[:, first : first + _FEW]) for first in parts], axis=1)
    numbers = [Number("rhat_of_overlap", float(rank_rhat(q))), Number("overlap", float(np.abs(q).mean()))]
    return [*numbers, *trips_of(result), Number("time_s", result.seconds)], timing_of(result)


def _overlaps(draws: np.ndarray) -> Float[np.ndarray, "pairs draws"]:
    spins = 2 * draws.astype(np.float32) - 1
    return (spins[::2] * spins[1::2]).mean(axis=-1)


def trips_of(result: Result) -> list[Number]:
    """Round trips of a chain's replicas, where it has a ladder."""
    report = result.tempering
    if report is None or report.round_trips is None:
        return []
    trips = report.round_trips
    numbers = [Number("round_trips", float(trips.mean()), float(trips.std())), Number("num_rungs", len(report.betas))]
    return [*numbers, Number("barrier", report.barrier)]


@experiment
def cost(cell: Cell, num_rungs: int) -> Measured:
    """Seconds of a draw of a ladder of so many rungs over those of a draw without, and that by rung.

    Both run by turns, and the least of their seconds count: what else a machine does makes any of them longer.
    """
    ladders, seconds = (None, Ladder(num_rungs=num_rungs)), ([], [])
    for _ in range(_TURNS):
        for ladder, its in zip(ladders, seconds, strict=True):
            result = draw(cell, jax.random.key(cell.seed), ladder=ladder, keep=_nothing)
            its.append(result.seconds)
    ratio = min(seconds[1]) / min(seconds[0])
    return [Number("cost", ratio), Number("cost_by_rung", ratio / num_rungs)], timing_of(result)
