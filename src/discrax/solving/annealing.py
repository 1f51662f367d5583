"""Simulated annealing with any sampler: many chains of one or several instances, their temperature falling together.

The temperature is constant for a block of steps, of which a search has about a thousand; the best state of every chain
is kept step by step. A search may be cut into rounds: every round but the first begins with the share `reheat` of the
schedule done, from where the chains are, or with `reheat` = 0 at the hot end again.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Integer, PRNGKeyArray

from discrax.core.kernel import Kernel
from discrax.core.target import Target
from discrax.solving.engine import Budget, Report
from discrax.solving.population import Population
from discrax.solving.schedules import Schedule

_BLOCKS = 1000
_LONGEST_BLOCK = 256
_PILOT = 4  # steps of the block whose time is measured
SECONDS_BETWEEN_REPORTS = 0.2


def anneal(
    key: PRNGKeyArray,
    targets: Sequence[Target],
    sampler: str | Kernel,
    x: Integer[np.ndarray, "instances chains n"],
    schedules: Sequence[Schedule],
    budget: Budget,
    *,
    num_rounds: int = 1,
    reheat: float = 0.0,
) -> Iterator[list[Report]]:
    """Reports of all instances, five times a second, and when the budget is spent. Compilation costs no budget."""
    population = Population(key, targets, sampler, x, [schedule.beta(0) for schedule in schedules])
    block = block_length(population, budget)
    clock, last = Clock(budget), 0.0
    while True:
        spent = clock.fraction(population.num_steps)
        p = progress(spent, num_rounds, reheat)
        population.betas = np.array([schedule.beta(p) for schedule in schedules])
        steps = block if budget.num_steps is None else min(block, budget.num_steps - population.num_steps)
        is_time = clock.seconds() - last > SECONDS_BETWEEN_REPORTS or population.num_steps == 0
        compiled = population.compile_seconds
        population.run(steps, resize=is_time)
        clock.pause(population.compile_seconds - compiled)
        fraction = clock.fraction(population.num_steps)
        if is_time or fraction >= 1:
            last = clock.seconds()
            yield reports(population, fraction)
        if fraction >= 1:
            return


class Clock:
    """The share of a budget that is spent."""

    def __init__(self, budget: Budget):
        self._budget, self._begin = budget, time.perf_counter()

    def pause(self, seconds: float) -> None:
        """Does not count these."""
        self._begin += seconds

    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def fraction(self, num_steps: int) -> float:
        if self._budget.num_steps is not None:
            return min(1.0, num_steps / self._budget.num_steps)
        assert self._budget.seconds is not None
        return min(1.0, self.seconds() / self._budget.seconds)


def progress(spent: float, num_rounds: int, reheat: float) -> float:
    """The share of the schedule that is done when so much of the budget is spent."""
    turn, within = divmod(min(spent, 1 - 1e-9) * num_rounds, 1)
    return within if turn == 0 else reheat + (1 - reheat) * within


def block_length(population: Population, budget: Budget) -> int:
    """Steps at one temperature: a thousandth of the search, a power of two where it takes a measurement to know."""
    if budget.num_steps is not None:
        return max(1, min(_LONGEST_BLOCK, budget.num_steps // _BLOCKS))
    assert budget.seconds is not None
    population.run(_PILOT)  # compiles
    before = population.seconds
    population.run(_PILOT, resize=False)
    wanted = budget.seconds / _BLOCKS / max((population.seconds - before) / _PILOT, 1e-7)
    return int(2 ** np.clip(np.floor(np.log2(max(wanted, 1))), 0, np.log2(_LONGEST_BLOCK)))


def reports(population: Population, fraction: float) -> list[Report]:
    values, best_values, best_states = population.values, population.best_values, population.best_states
    return [
        Report(population.num_steps, fraction, float(population.betas[i]), values[i], best_values[i], best_states[i])
        for i in range(len(population.betas))
    ]
