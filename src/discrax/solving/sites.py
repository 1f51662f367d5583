"""Annealing and tempering site by site, compiled for CPUs: the search for models whose flips are cheap one at a time.

A sweep offers every site a Metropolis move at inverse temperature beta, which leaves the law proportional to
exp(beta v) invariant, where v is the model's value. An anneal takes beta from hot to cold along a straight line. Where
`betas` are not given,

    hot = 1 / sqrt(mean g_i^2),   the gains g_i of flips at uniform states,
    cold solves  sum_i |g_i| exp(-beta |g_i|) = median |g_i| / 4   over nonzero gains at a local maximum,

so that at the end next to nothing is left to gain by cooling on. A budget is spent on anneals of 1/32, 1/32, 1/16, 1/8,
1/4 and 1/2 of it, each from new uniform states, so that something good is there early. If what is left after the third
allows enough rounds for replicas to travel the ladder a few times, it goes to parallel tempering instead: tempering is
better on small models, and anneals are on large ones. The ladder's rungs are at equal steps of sqrt(dv / dbeta) dbeta,
which makes neighbours exchange equally often.
"""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from discrax.core.memory import num_cores
from discrax.problems.problem import BinaryQuadratic, Labelling
from discrax.problems.products import Products
from discrax.solving.clock import Clock, Reports, SearchBudget
from discrax.solving.engine import Report
from discrax.solving.polynomial_chains import PolynomialChains
from discrax.solving.schedules import KINDS, BetaSchedule, check_betas
from discrax.solving.sites_chains import BinaryChains, Chains, LabelChains

SCHEDULES = ("auto", *KINDS, "tempering")
SLICE = 0.03  # seconds between looks at the clock
STEPS_FOR_TEMPERING = 20_000  # fewer are never enough, and not worth the search for a ladder
TRAVELS = 2.5  # of a replica along the ladder, which takes rungs^2 rounds: fewer are not worth it


# A door of its own to this search: what `solve` passes on, and what only this search has.
def search_by_sites(
    model: BinaryQuadratic | Labelling | Products,
    *,
    num_chains: int,
    seed: int,
    init: Integer[np.ndarray, "*chains n"] | None,
    budget: SearchBudget,
    betas: tuple[float, float] | None = None,
    schedule: str = "auto",
    num_rounds: int | None = None,
    reheat: float = 0.0,
    num_threads: int | None = None,
    clock: Clock | None = None,
) -> Iterator[Report]:
    """Reports about every 0.2 s and at the end. A step is a sweep; a round of tempering is one for each rung.

    Chains are independent, and the best use of a time budget is one for each core. With a budget of steps, results
    depend on the seed only. The states of `init` are kept if nothing better is found, and the first anneal
    begins half way to the cold end. `num_rounds` makes so many equal anneals of the budget instead, each but the first
    from where the chains are and with the share `reheat` of the schedule done. Local maxima at the end of an anneal,
    the scale of temperatures and compilation cost no steps; compilation costs no seconds either. `clock` is that of a
    search of which this is a part.
    """
    schedule = "geometric" if schedule == "exponential" else schedule
    _check(model, num_chains, init, budget, betas, schedule, num_threads)
    is_open = betas is None and schedule == "auto" and num_rounds is None
    chains = make_chains(model, num_chains, seed, is_open)
    num_threads = min(num_chains, num_threads or num_cores())
    plan = _plan(schedule, num_rounds, reheat)
    return _search(chains, init, clock or Clock(budget), betas, plan, num_threads)


def make_chains(
    model: BinaryQuadratic | Labelling | Products, num_chains: int, seed: int, is_open: bool = False
) -> Chains:
    """The chains of a kind of model; `is_open`: nobody asked for a schedule or for temperatures."""
    if isinstance(model, Labelling):
        return LabelChains(model, num_chains, seed)
    if isinstance(model, Products):
        return PolynomialChains(model, num_chains, seed, may_walk=is_open)
    return BinaryChains(model, num_chains, seed)


def _check(
    model: BinaryQuadratic | Labelling | Products,
    num_chains: int,
    init: Integer[np.ndarray, "..."] | None,
    budget: SearchBudget,
    betas: tuple[float, float] | None,
    schedule: str,
    num_threads: int | None,
) -> None:
    num_sites, num_levels = (
        (model.num_nodes, model.num_labels) if isinstance(model, Labelling) else (model.num_sites, 2)
    )
    if num_sites == 0:
        raise ValueError("The model has no sites, so there is nothing to search. Give it at least one.")
    if num_levels < 1:
        raise ValueError(f"A labelling has at least one label, but got {num_levels}.")
    if init is not None:
        if init.shape not in ((num_sites,), (num_chains, num_sites)):
            raise ValueError(
                f"init has shape ({num_sites},) or ({num_chains}, {num_sites}), but got shape {init.shape}."
            )
        if init.min() < 0 or init.max() >= num_levels:
            raise ValueError(f"init has codes 0 to {num_levels - 1}, but got {init.min()} to {init.max()}.")
    if num_chains < 1:
        raise ValueError(f"A search needs at least one chain, but num_chains is {num_chains}.")
    if num_threads is not None and num_threads < 1:
        raise ValueError(f"A search needs at least one thread, but num_threads is {num_threads}.")
    if budget.seconds is None and budget.num_steps is None:
        raise ValueError("A search needs a budget of seconds or of steps, but got neither.")
    if (budget.seconds or 0) < 0 or (budget.num_steps or 0) < 0:
        raise ValueError(f"A budget is not negative, but got {budget}.")
    if betas is not None:
        check_betas(betas, may_be_equal=True)
    if schedule not in SCHEDULES:
        raise ValueError(f"The schedule is one of {', '.join(SCHEDULES)}, but got {schedule!r}.")


class _Phase(NamedTuple):
    end: float  # as a share of the budget
    kind: str  # of the schedule
    begins: float = 0.0  # with so much of the schedule done
    goes_on: bool = False  # from where the chains are, not from new states


def _plan(schedule: str, num_rounds: int | None, reheat: float) -> list[_Phase]:
    kind = "linear" if schedule == "auto" else schedule
    if schedule == "tempering":
        return [_Phase(1 / 16, "linear"), _Phase(1.0, "tempering")]
    if num_rounds is not None:
        later = [_Phase((i + 1) / num_rounds, kind, reheat, True) for i in range(1, num_rounds)]
        return [_Phase(1 / num_rounds, kind), *later]
    return [
        *(_Phase(end, kind) for end in (1 / 32, 1 / 16, 1 / 8)),
        *(_Phase(end, schedule) for end in (1 / 4, 1 / 2, 1)),
    ]


def _search(
    chains: Chains,
    init: Integer[np.ndarray, "*chains n"] | None,
    clock: Clock,
    betas: tuple[float, float] | None,
    plan: list[_Phase],
    num_threads: int,
) -> Iterator[Report]:
    with clock.compiling():
        chains.compile()
    slices, reports = _Slices(clock), Reports(clock)
    with ThreadPoolExecutor(num_threads) as pool:
        bounds = np.linspace(0, chains.num_chains, num_threads + 1).astype(int).tolist()

        def everywhere(work: Callable[[int, int], None]) -> None:
            list(pool.map(work, bounds[:-1], bounds[1:]))

        def polish() -> None:
            begin = clock.seconds()
            everywhere(chains.polish)
            slices.polish_seconds = clock.seconds() - begin

        everywhere(functools.partial(chains.begin, init))
        hot, cold = chains.temperatures() if betas is None else betas
        holds_still = hot == cold  # the law at one temperature is wanted, not an anneal
        beta = hot
        for index, phase in enumerate([_Phase(1.0, "linear")] if holds_still else plan):
            if slices.is_over():
                break
            ladder = _affordable_ladder(chains, phase.kind, hot, cold, slices.steps_until(1.0))
            if ladder is not None:
                chains.begin_tempering(ladder)
            elif index > 0 and not phase.goes_on:
                everywhere(chains.restart)
            kind = "linear" if phase.kind in ("auto", "tempering") else phase.kind
            begins_in_the_middle = index == 0 and init is not None
            path = BetaSchedule((hot + cold) / 2 if begins_in_the_middle else hot, cold, kind)
            group, num_rounds = 1 if ladder is None else len(ladder), 0
            slices.begin_phase(phase.end if ladder is None else 1.0)
            while count := slices.next_sweeps(group):
                if ladder is None or count < group:
                    at = phase.begins + (1 - phase.begins) * slices.positions(count)
                    along = path.beta(at)
                    beta = float(along[-1])
                    everywhere(functools.partial(chains.anneal, along))
                else:
                    beta = float(ladder[-1])
                    everywhere(functools.partial(chains.temper, ladder, num_rounds, count // group))
                    num_rounds += count // group
                slices.advance(count)
                if reports.is_due():
                    yield from reports.emit(lambda: chains.report(slices.num_steps, slices.fraction(), beta))  # noqa: B023
            if not holds_still:
                polish()
            if ladder is not None:
                break
    yield chains.report(slices.num_steps, 1.0, beta)


def _affordable_ladder(
    chains: Chains, kind: str, hot: float, cold: float, num_steps: float
) -> Float[np.ndarray, " rungs"] | None:
    """None where anneals are the better use of so many steps, or all that the chains can do."""
    if kind not in ("auto", "tempering") or (kind == "auto" and num_steps < STEPS_FOR_TEMPERING):
        return None
    ladder = chains.ladder(hot, cold, min(2048, int(num_steps / 20)))
    if ladder is not None and kind == "auto" and num_steps < TRAVELS * len(ladder) ** 3:
        return None
    return ladder


class _Slices:
    """Counts sweeps, and says how many of them make the next slice."""

    def __init__(self, clock: Clock):
        self._clock, self.limit = clock, clock.budget.num_steps
        self.slice_began = clock.seconds()
        self.num_steps, self.first_step = 0, 0
        self.phase = (0.0, 1.0)
        self.seconds_per_sweep = None
        self.polish_seconds = 0.0  # of the last time: it comes after the last sweep

    def fraction(self) -> float:
        return self._clock.fraction(self.num_steps)

    def is_over(self) -> bool:
        return self._clock.is_over(self.num_steps)

    def _steps_left(self, end: float) -> int | None:
        return None if self.limit is None else round(end * self.limit) - self.num_steps

    def _seconds_left(self, end: float) -> float | None:
        """Until a share of the seconds is spent."""
        if self._clock.budget.seconds is None:
            return None
        spent = self._clock.seconds()
        return end * (spent + self._clock.seconds_left()) - spent - self.polish_seconds

    def steps_until(self, end: float) -> float:
        """Sweeps that the budget allows until a share of it is spent."""
        left, seconds = self._steps_left(end), self._seconds_left(end)
        steps = np.inf if left is None else left
        if seconds is None:
            return steps
        return min(steps, seconds / self.seconds_per_sweep if self.seconds_per_sweep else 0)

    def begin_phase(self, end: float) -> None:
        self.phase = (self.fraction(), end)
        self.first_step = self.num_steps

    def next_sweeps(self, group: int) -> int:
        """Sweeps of the next slice, in whole groups as long as they fit; 0 where the phase is over."""
        if self._clock.is_asked_to_stop():
            return 0
        end = self.phase[1]
        count = group
        seconds = self._seconds_left(end)
        if self.seconds_per_sweep is not None:
            slice_ = SLICE if seconds is None else min(SLICE, seconds)
            count = max(group, int(slice_ / self.seconds_per_sweep) // group * group)
            if seconds is not None and seconds < 0.5 * group * self.seconds_per_sweep:
                return 0
        if seconds is not None and seconds <= 0:
            return 0
        left = self._steps_left(end)
        if left is not None and left < count:
            count = left // group * group or left
        self.slice_began = self._clock.seconds()
        return count

    def positions(self, count: int) -> Float[np.ndarray, " count"]:
        """Where in the phase, from 0 to 1, the sweeps of the next slice are."""
        begin, end = self.phase
        if self.limit is not None:
            steps = max(1, round(end * self.limit) - self.first_step)
            return (self.num_steps - self.first_step + np.arange(count) + 0.5) / steps
        at = (self.fraction() - begin) / max(end - begin, 1e-12)
        step = (self.seconds_per_sweep or 0.0) / (max(end - begin, 1e-12) * max(self._clock.budget.seconds or 0, 1e-9))
        return np.minimum(1.0, at + step * np.arange(count))

    def advance(self, count: int) -> None:
        self.num_steps += count
        measured = (self._clock.seconds() - self.slice_began) / count
        known = self.seconds_per_sweep
        self.seconds_per_sweep = max(1e-9, measured if known is None else max(measured, known / 4))
