"""Simulated annealing with any sampler: many chains of one or several instances, their temperature falling together.

The temperature is constant for a turn of some steps, of which a search has about a thousand; the best state of every
chain is kept step by step. A search may be cut into rounds: every round but the first begins with the share `reheat` of
the schedule done, from where the chains are, or with `reheat` = 0 at the hot end again.
"""

from collections.abc import Iterator, Sequence

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

_TURNS = 1000
_LONGEST_TURN = 256  # steps


def anneal(
    key: PRNGKeyArray,
    targets: Sequence[Target],
    sampler: str | Kernel,
    x: Integer[np.ndarray, "instances chains n"],
    schedules: Sequence[BetaSchedule],
    clock: Clock,
    *,
    num_rounds: int = 1,
    reheat: float = 0.0,
    devices: Devices | None = None,
    checkpoint: Checkpoint | None = None,
) -> Iterator[list[Report]]:
    """Reports of all instances, five times a second, and when the budget is spent."""
    places = Places(key, targets, sampler, x, [schedule.beta(0.0) for schedule in schedules], devices)
    if checkpoint is not None:
        checkpoint.follow(places)
    blocks = Blocks(clock, count=_TURNS, longest=_LONGEST_TURN, most_turns=MOST_TURNS, first_guess=places.seconds)
    reports = Reports(clock)
    while block := blocks.next_block(places.num_steps):
        spent = blocks.fractions(block, places.num_steps)
        shares = [progress(each, num_rounds, reheat) for each in spent]
        betas = np.array([[schedule.beta(p) for schedule in schedules] for p in shares])
        seconds = places.seconds
        places.anneal(betas, block.num_steps, resize=block.resizes)
        blocks.note(block, places.seconds - seconds, places.last_compile_seconds)
        if reports.is_due(places.num_steps):
            yield from reports.emit(lambda: _reports(places, clock))
    yield _reports(places, clock)


def progress(spent: float, num_rounds: int, reheat: float) -> float:
    """The share of the schedule that is done when so much of the budget is spent."""
    turn, within = divmod(min(spent, 1 - 1e-9) * num_rounds, 1)
    return within if turn == 0 else reheat + (1 - reheat) * within


def _reports(places: Places, clock: Clock) -> list[Report]:
    fraction = clock.fraction(places.num_steps)
    values, best_values, best_states = places.values, places.best_values, places.best_states
    return [
        Report(places.num_steps, fraction, float(places.betas[i]), values[i], best_values[i], best_states[i])
        for i in range(len(places.betas))
    ]
