"""Parallel tempering: copies of every chain at a ladder of temperatures, which now and then change places.

A swap of the states of two neighbouring rungs is accepted with probability

    min(1, exp((beta_i - beta_j) (value_j - value_i)))

The ladder tunes itself: a gap between rungs that swaps less than the mean shrinks, one that swaps more grows,

    gap_i <- gap_i exp(gain (a_i - mean a)),     log beta_i = log hot + sum of gaps, scaled to end at cold

where a_i is the mean acceptance probability of the gap's swaps since the last change.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import Devices
from discrax.core.kernel import Kernel
from discrax.core.target import Target
from discrax.solving.clock import Blocks, Clock, Reports
from discrax.solving.engine import Report
from discrax.solving.places import Places
from discrax.solving.schedules import BetaSchedule

_STEPS_BETWEEN_SWAPS = 8  # fewer, if a budget has hardly the time for that
_LEAST_SWAPS = 50
_SWAPS_BETWEEN_TUNINGS = 50


def temper(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel,
    x: Integer[np.ndarray, "rungs chains n"],
    schedule: BetaSchedule,
    clock: Clock,
    devices: Devices | None = None,
) -> Iterator[Report]:
    """Reports five times a second, and when the budget is spent. A chain's best is that of all its rungs.

    The schedule says where the rungs are in the beginning.
    """
    rungs = len(x)
    for_chains, for_swaps = random.split(key, 2)
    betas = np.array([schedule.beta(p) for p in np.linspace(0, 1, rungs)])
    places = Places(for_chains, [target], sampler, x, betas, devices)
    blocks = Blocks(clock, count=_LEAST_SWAPS, longest=_STEPS_BETWEEN_SWAPS, first_guess=places.seconds)
    reports, turn = Reports(clock), 0
    total, count = np.zeros(rungs - 1), 0
    while steps := blocks.next_steps(places.num_steps):
        is_due = reports.is_due()
        seconds = places.seconds
        places.run(steps, resize=is_due and clock.affords_compilation(places.last_compile_seconds))
        blocks.note(steps, places.seconds - seconds, places.last_compile_seconds)
        total += places.exchange(for_swaps, turn)
        turn, count = turn + 1, count + 1
        if count == _SWAPS_BETWEEN_TUNINGS:
            places.betas = tune_ladder(places.betas, total / count, gain=1 / np.sqrt(turn / count))
            total, count = np.zeros(rungs - 1), 0
        if is_due:
            yield from reports.emit(lambda: _report(places, clock))
    yield _report(places, clock)


def tune_ladder(
    betas: Float[np.ndarray, " rungs"], rates: Float[np.ndarray, " gaps"], gain: float
) -> Float[np.ndarray, " rungs"]:
    """The ladder with its gaps changed towards equal rates; its ends stay."""
    gaps = np.diff(np.log(betas)) * np.exp(gain * (rates - rates.mean()))
    inner = np.cumsum(gaps) * np.log(betas[-1] / betas[0]) / gaps.sum()
    return betas[0] * np.exp(np.concatenate([[0.0], inner]))


def _report(places: Places, clock: Clock) -> Report:
    steps, beta, values = places.num_steps, float(places.betas[-1]), places.best_values
    states = places.best_states[values.argmax(axis=0), np.arange(values.shape[1])]
    return Report(steps, clock.fraction(steps), beta, places.values[-1], values.max(axis=0), states)
