"""Parallel tempering: copies of every chain at a ladder of temperatures, which now and then change places.

The rungs, their exchanges and the tuning of the ladder are one program: see `turns`.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core.devices import Devices
from discrax.core.kernel import Kernel
from discrax.core.target import Target
from discrax.solving.clock import Blocks, Clock, Reports
from discrax.solving.engine import Report
from discrax.solving.places import Places
from discrax.solving.protocol import Checkpoint
from discrax.solving.schedules import BetaSchedule
from discrax.solving.turns import MOST_TURNS

_STEPS_BETWEEN_SWAPS = 8  # fewer, if a budget has hardly the time for that
_LEAST_SWAPS = 50


def temper(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel,
    x: Integer[np.ndarray, "rungs chains n"],
    schedule: BetaSchedule,
    clock: Clock,
    devices: Devices | None = None,
    checkpoint: Checkpoint | None = None,
) -> Iterator[Report]:
    """Reports five times a second, and when the budget is spent. A chain's best is that of all its rungs.

    The schedule says where the rungs are in the beginning.
    """
    betas = np.array([schedule.beta(p) for p in np.linspace(0, 1, len(x))])
    places = Places(key, [target], sampler, x, betas, devices)
    if checkpoint is not None:
        checkpoint.follow(places)
    blocks = Blocks(
        clock, count=_LEAST_SWAPS, longest=_STEPS_BETWEEN_SWAPS, most_turns=MOST_TURNS, first_guess=places.seconds
    )
    reports = Reports(clock)
    while block := blocks.next_block(places.num_steps):
        seconds = places.seconds
        places.temper(block.num_turns, block.num_steps, resize=block.resizes)
        blocks.note(block, places.seconds - seconds, places.last_compile_seconds)
        if reports.is_due(places.num_steps):
            yield from reports.emit(lambda: _report(places, clock))
    yield _report(places, clock)


def _report(places: Places, clock: Clock) -> Report:
    steps, beta, values = places.num_steps, float(places.betas[-1]), places.best_values
    states = places.best_states[values.argmax(axis=0), np.arange(values.shape[1])]
    return Report(steps, clock.fraction(steps), beta, places.values[-1], values.max(axis=0), states)
