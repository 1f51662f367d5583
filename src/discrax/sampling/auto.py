"""`sampler="auto"`: a short pilot tries the samplers that suit the space and the target, and the fastest mover wins.

Each candidate is tuned for a few hundred steps as a run would tune it (sweeps, for those that change one site a step),
and scored by its mean jump distance per second, or per evaluation of the target, in the last part of them. One whose
chains have not come to where another's have is passed over: long jumps among improbable states are worth nothing.
Where the chains of the winner disagree (R-hat of log pi, or of the share of sites at a level, as in a magnet below its
critical temperature) and clusters can be moved, Swendsen-Wang is tried too, and taken if its chains agree. Where they
still disagree when they have gone on (`agreement`) the run is to be tempered.

Candidates come from what the target offers, those that compile quickly first; some are compiled at a time, and one
whose steps change too few sites to win is not compiled at all. When the budget of seconds is spent, compilation
included, the best so far is taken, but never without a second to compare with. With cost "evaluations" the clock plays
no part: all candidates are tried, and one key gives one choice. The program of the pilot is that of the run, where the
run is short.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, Key, PRNGKeyArray

from discrax.adaptation import AcceptanceRate, JumpProbes, JumpReport, OneByOne
from discrax.core import random
from discrax.core.checks import describe, in_words, number
from discrax.core.driver import Adapter
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel, rated_knob, sites_per_step
from discrax.core.memory import num_cores
from discrax.core.observers import Draws, Stats
from discrax.core.space import Ordinal
from discrax.core.stochastic import has_exact_log_prob
from discrax.core.target import Coloured, ExactRatios, Factored, QuadraticForm, Target, offered
from discrax.diagnostics import ess
from discrax.samplers import build_kernel, get_sampler, gibbs
from discrax.samplers.composed import Composed
from discrax.samplers.elimination import EliminationGibbs
from discrax.samplers.elimination_plan import single_site_note
from discrax.samplers.registry import name_of
from discrax.sampling.agreement import look, stay_apart
from discrax.sampling.auto_report import AutoReport, Trial
from discrax.sampling.checks import chain_keys, gradient_error, initial_states, possible_starts
from discrax.sampling.run import PILOT_CHUNK, Progress, Run

SCORES = ("jump", "ess")
COSTS = ("seconds", "evaluations")
_CHUNKS = {"jump": 4, "ess": 12}
_MOST_COLOURS = 8
_MOST_ELIMINATED = 1500  # sites in all blocks, which a program draws one by one
_LARGEST_PREPARED = 20_000  # sites for which a D is found in seconds
_MOST_EXACT = 200  # sites of which the exact ratios of all are evaluated one by one
_MOST_SWEEP = 100  # steps of a draw, for samplers that change one site a step
_BEHIND = 3.0  # standard deviations of log pi by which a candidate may lag behind the best
_AT_A_TIME = 4  # candidates that are compiled together, on as many cores
_FASTER = 4.0  # than the fastest step seen a step may be
_CLUSTERS = "swendsen_wang"
_ELIMINATION = "gibbs, elimination"


class Auto(NamedTuple):
    """How "auto" chooses: seconds to spend at most, "jump" or "ess" per cost, and which samplers to consider."""

    seconds: float = 20.0
    score: str = "jump"
    candidates: tuple[str | Kernel, ...] | None = None
    cost: str = "seconds"


def auto(
    seconds: float = 20.0,
    score: str = "jump",
    candidates: Sequence[str | Kernel] | None = None,
    cost: str = "seconds",
) -> Auto:
    """A sampler to be chosen by a pilot; pass it as `sampler`.

    With cost="evaluations" the choice does not depend on the clock, and `seconds` is not looked at.
    """
    for name, value, known in (("score", score, SCORES), ("cost", cost, COSTS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, but got {describe(value)}.")
    seconds = number("seconds", seconds, above=0)
    if candidates is not None:
        if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
            raise TypeError(f"candidates must be a list of samplers, at least one, but got {describe(candidates)}.")
        for candidate in candidates:
            if isinstance(candidate, str):
                get_sampler(candidate)
            elif not isinstance(candidate, Kernel):
                raise TypeError(f"A candidate must be a name or a kernel, but got {describe(candidate)}.")
    return Auto(seconds, score, None if candidates is None else tuple(candidates), cost)


def check_clock(spec: Auto) -> None:
    """Processes that run together must choose alike, and each has a clock of its own."""
    if spec.cost == "seconds" and jax.process_count() > 1:
        raise ValueError(
            f"{jax.process_count()} processes must choose the same sampler, but 'auto' goes by the clock of each; name "
            "a sampler, or pass discrax.auto(cost='evaluations')."
        )


def candidates_for(target: Target, *, differentiable: bool) -> Iterator[tuple[str, str | Kernel]]:
    """Names and samplers in the order in which they are tried."""
    space = target.space
    if not has_exact_log_prob(target):
        yield "sgdld", "sgdld"
        return
    if space.totals is not None:
        yield from ((name, name) for name in (("swap",) if differentiable else ()) + ("swap_uniform",))
        return
    factored = offered(target, Factored)
    if factored is not None:
        blocks = EliminationGibbs().plan_for(factored)
        if blocks.num_draws <= _MOST_ELIMINATED:
            yield _ELIMINATION, gibbs("elimination")
            if blocks.is_whole or single_site_note(factored) is not None:
                return
    colouring = offered(target, Coloured)
    has_ratios = offered(target, ExactRatios) is not None
    if colouring is not None and has_ratios and colouring.colours().max() < _MOST_COLOURS:
        yield "gibbs, chromatic", gibbs("chromatic")
    names = []
    if not has_ratios:  # a gradient may tell little of what a change of one site does; Gibbs sees it
        names += ["gibbs"]
    if differentiable:
        names += ["dmala", "pas"]
    if not has_ratios and space.num_sites <= _MOST_EXACT:
        names += ["pas_exact"]
    if not differentiable:
        names += ["rwm", "block_gibbs"]
    else:
        if offered(target, QuadraticForm) and 1 < space.num_sites <= _LARGEST_PREPARED:
            names += ["ab_trace" if isinstance(space, Ordinal) or space.has_two_levels else "dlmc"]
        names += ["gwg_ordinal"] if isinstance(space, Ordinal) else []
        names += ["dlmc", "gwg", "gibbs"]
    yield from ((name, name) for name in names)
    if get_sampler(_CLUSTERS).fits(target):
        yield _CLUSTERS, _CLUSTERS


def pilot(
    key: PRNGKeyArray,
    spec: Auto,
    target: Target,
    num_chains: int,
    init: Array | np.ndarray | None,
    interrupts: Interrupts,
) -> AutoReport:
    """What was tried and chosen, and whether its chains stay apart; nothing is tried where draws are independent."""
    if spec.candidates is None and (only := _drawn_exactly(target)):
        return AutoReport(only, spec.score, (), (), (), (), 0.0, spec.cost)
    begin = time.perf_counter()
    for_init, keys = chain_keys(key, num_chains)
    x = initial_states(for_init, target, num_chains, init)
    x = possible_starts(for_init, target, x) if init is None else x
    keys = jax.vmap(random.fold_in, in_axes=(0, None))(keys, jnp.uint32(2**32 - 1))
    waiting, hopeless, at_a_time = candidates_of(spec, target), [], min(_AT_A_TIME, num_cores())
    if_needed = [each for each in waiting if each[0] == _CLUSTERS and spec.candidates is None]
    waiting = [each for each in waiting if each not in if_needed]
    tried = Tried([], [], {})
    while waiting:
        interrupts.raise_if_requested()
        spent, count = time.perf_counter() - begin, len(tried.trials) + len(tried.failed)
        # Candidates cost about as much as the dearest so far: stop before the budget is overspent.
        is_late = spent + spent / max(1, count / at_a_time) > spec.seconds
        if spec.cost == "seconds" and is_late and len(tried.trials) > 1:
            break
        batch, waiting = waiting[:at_a_time], waiting[at_a_time:]
        if (spec.score, spec.cost) == ("jump", "seconds"):
            hopeless += [name for name, sampler in batch if _cannot_win(sampler, target, tried.trials, len(x))]
            batch = [candidate for candidate in batch if candidate[0] not in hopeless]
        tried.add(batch, spec, target, keys, x)
    if if_needed and (not tried.trials or tried.choose()[0].disagrees):
        tried.add(if_needed, spec, target, keys, x)
        if_needed = []
    if not tried.trials:
        failures = "; ".join(f"{name}: {why}" for name, why in tried.failed)
        raise ValueError(f"No candidate could sample this target: {failures}.")
    chosen, behind = tried.choose()
    apart = stay_apart(*tried.chunks[chosen.name]) if chosen.disagrees else None
    return AutoReport(
        chosen.name,
        spec.score,
        tuple(sorted(tried.trials, key=lambda trial: -trial.score)),
        behind,
        (*hopeless, *(name for name, _ in [*waiting, *if_needed])),
        tuple(tried.failed),
        time.perf_counter() - begin,
        spec.cost,
        apart,
    )


def _drawn_exactly(target: Target) -> str | None:
    """The candidate that draws all sites at once, where there is one."""
    factored = None if target.space.totals is not None else offered(target, Factored)
    is_whole = factored is not None and EliminationGibbs().plan_for(factored).is_whole
    return _ELIMINATION if is_whole else None


class Tried(NamedTuple):
    """What was tried so far."""

    trials: list[Trial]
    failed: list[tuple[str, str]]
    chunks: dict[str, tuple[list[Progress], int, int]]  # as `stay_apart` takes them

    def add(
        self,
        batch: Sequence[tuple[str, str | Kernel]],
        spec: Auto,
        target: Target,
        keys: Key[Array, " chains"],
        x: Integer[Array, "chains *shape"],
    ) -> None:
        """Tries some candidates."""
        for (name, _), begun in zip(batch, _begin_all(batch, spec, target, keys, x), strict=True):
            try:
                chunks, a_sweep = [begun.result().first, *begun.result().rest], begun.result().steps_per_draw
                self.trials.append(_judge(name, chunks, a_sweep, spec, target, x))
                self.chunks[name] = (chunks, target.space.num_levels, a_sweep)
            except Exception as error:
                self.failed.append((name, in_words(error).rstrip(".")))

    def choose(self) -> tuple[Trial, tuple[str, ...]]:
        """The best of those whose chains came as far as any, and the names of the others.

        Where its chains disagree and those of clusters agree, these are better.
        """
        trials = sorted(self.trials, key=lambda trial: -trial.score)
        furthest = max(trials, key=lambda trial: trial.log_prob)
        least = furthest.log_prob - _BEHIND * max(furthest.spread, 1e-6)
        able = [trial for trial in trials if trial.log_prob >= least]
        agreeing = [trial for trial in able if trial.name == _CLUSTERS and not trial.disagrees]
        chosen = agreeing[0] if agreeing and able[0].disagrees else able[0]
        return chosen, tuple(trial.name for trial in trials if trial.log_prob < least)


def candidates_of(spec: Auto, target: Target) -> list[tuple[str, str | Kernel]]:
    """Names and samplers that are to be tried."""
    if spec.candidates is not None:
        return _name_apart(spec.candidates)
    return list(dict(candidates_for(target, differentiable=gradient_error(target) is None)).items())


def _name_apart(candidates: Sequence[str | Kernel]) -> list[tuple[str, str | Kernel]]:
    """Samplers with their names; a name that is there already gets a number."""
    named: dict[str, str | Kernel] = {}
    for sampler in candidates:
        name = sampler if isinstance(sampler, str) else name_of(sampler)
        count = 1 + sum(each == name or each.startswith(f"{name} (") for each in named)
        named[name if count == 1 else f"{name} ({count})"] = sampler
    return list(named.items())


def default_adapter(target: Target, kernel: Kernel) -> Adapter | None:
    """The rule that suits a kernel: its acceptance rate where it has an optimal one, else its jump distance.

    One that is made of others is tuned part by part.
    """
    if isinstance(kernel, Composed):
        rules = [default_adapter(target, part) for part in kernel.parts]
        return None if all(rule is None for rule in rules) else OneByOne(rules)
    if rated_knob(kernel, target) is not None:
        return AcceptanceRate()
    return JumpProbes() if kernel.knobs(target) else None


class Begun(NamedTuple):
    """A candidate whose first chunk is done, and with it compilation."""

    first: Progress
    rest: Iterator[Progress]
    steps_per_draw: int


def _begin_all(
    candidates: Sequence[tuple[str, str | Kernel]],
    spec: Auto,
    target: Target,
    keys: Key[Array, " chains"],
    x: Integer[Array, "chains *shape"],
) -> list[Future[Begun]]:
    """All of them at once: compilers do not share cores well with clocks, so nothing is timed meanwhile."""
    pool = ThreadPoolExecutor(max(1, len(candidates)))
    begun = [pool.submit(copy_context().run, _begin, sampler, spec, target, keys, x) for _, sampler in candidates]
    try:
        wait(begun)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return begun  # ty: ignore[invalid-return-type]


def _begin(
    sampler: str | Kernel, spec: Auto, target: Target, keys: Key[Array, " chains"], x: Integer[Array, "chains *shape"]
) -> Begun:
    run = Run.at(keys, target, sampler, x)
    kernel = run.ensemble.kernel
    if not kernel.is_prepared:
        raise ValueError("it estimates a Hessian in a burn-in, for which a pilot is too short")
    num_draws = PILOT_CHUNK * _CHUNKS[spec.score]
    adapter = default_adapter(target, kernel)
    if adapter is not None:
        run = run.begin_tuning([adapter], num_draws, num_draws)
    sweep = target.space.num_sites / sites_per_step(kernel, target.space)
    a_sweep = 1 if adapter is not None else int(min(_MOST_SWEEP, sweep))
    rest = run.steps(num_draws, thinning=a_sweep, observe=(Stats(), Draws()), chunk=PILOT_CHUNK)
    return Begun(next(rest), rest, a_sweep)


def _cannot_win(sampler: str | Kernel, target: Target, trials: Sequence[Trial], num_chains: int) -> bool:
    """Whether a step that changes a known number of sites would have to be much faster than any seen, to win."""
    try:
        kernel = build_kernel(sampler, target)
    except Exception:  # what is wrong with it is told when it is tried
        return False
    if not trials or not isinstance(kernel.sites_changed, int):
        return False
    fastest = min(trial.seconds_per_step for trial in trials) / _FASTER
    farthest = float(np.ptp(target.space.values)) if isinstance(target.space, Ordinal) else 1.0
    return kernel.sites_changed * farthest * num_chains / fastest < max(trial.score for trial in trials)


def _judge(
    name: str, chunks: Sequence[Progress], a_sweep: int, spec: Auto, target: Target, x: Integer[Array, "chains *shape"]
) -> Trial:
    late = chunks[len(chunks) // 2 :]
    stats = [chunk.handed[0][0] for chunk in late]
    lp, rhat, of_shares = look(chunks, target.space.num_levels)
    seconds = min(chunk.seconds for chunk in late) / PILOT_CHUNK  # of a draw of all chains
    evaluations = float(np.mean([np.asarray(each["evals"]) for each in stats])) * len(x)
    cost = seconds if spec.cost == "seconds" else evaluations
    if spec.score == "jump":
        jump = float(np.mean(stats[-1]["jump"])) * a_sweep
        report = late[-1].run.freeze().reports[0][-1:]
        if report and isinstance(report[0], JumpReport) and np.isfinite(report[0].jump):
            jump = report[0].jump
        per_draw = jump * len(x)
    else:
        per_draw = float(ess(lp).sum()) / lp.shape[1]
    acceptance = float(np.mean([chunk.acceptance for chunk in late]))
    score, a_step = per_draw / max(cost, 1e-12), max(seconds, 1e-12) / a_sweep
    return Trial(name, score, acceptance, float(lp.mean()), float(lp.std()), rhat, a_step, of_shares)
