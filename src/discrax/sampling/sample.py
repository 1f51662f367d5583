"""`sample`: checks, warm-up, drawing, and collecting what the run hands over."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, PRNGKeyArray

from discrax.core.checks import yes_or_no
from discrax.core.devices import bring_home, find_devices, gather
from discrax.core.driver import Adapter
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.observers import STATS, Draws, Moments, Stats
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.samplers import build_kernel
from discrax.sampling.auto import Auto, candidates_of, check_clock, default_adapter, pilot
from discrax.sampling.checks import check_moved
from discrax.sampling.fingerprint import fingerprint
from discrax.sampling.folder import DRAWING, RunFolder, load_fields
from discrax.sampling.ladder import Ladder, can_temper, check_ladder
from discrax.sampling.left_behind import bring_along
from discrax.sampling.left_out import LeftOutKernel
from discrax.sampling.phase import InMemory, Phase
from discrax.sampling.plan import Plan
from discrax.sampling.result import Result
from discrax.sampling.run import Run
from discrax.sampling.stored_array import mean_over_draws
from discrax.sampling.tempering_report import LadderStats

_LEAST_BURN_IN = 10


# The verb: its parameters are what a user may say of a run, and all but three have defaults.
@reads_user_code()
@listening()
def sample(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel | Auto = "auto",
    *,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_samples: int = 1000,
    thinning: int = 1,
    init: Array | np.ndarray | None = None,
    keep: str | Callable[[Array], Any] = "draws",
    keep_warmup: bool = False,
    adaptation: Adapter | Sequence[Adapter] | str | None = "auto",
    chunk_size: int | None = None,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    progress: bool | None = None,
    folder: str | Path | None = None,
    tempering: Ladder | None = None,
) -> Result:
    """Draws `num_samples` states per chain after `num_warmup` steps of warm-up.

    - `sampler`: a registry name, or a kernel such as `discrax.samplers.pas(balancing="ratio")`. "auto" lets a pilot of
      some seconds choose; `discrax.auto(seconds=60, score="ess")` says how. Where its chains stay apart it tempers.
    - `thinning`: steps per kept draw.
    - `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default.
    - `keep`: "draws" (all codes), a function of the codes (its values are kept), or "moments" (running mean and
      variance of the embedding: memory does not grow with the number of draws).
    - `adaptation`: "auto" tunes the kernel during warm-up as suits it (to its optimal acceptance rate, or to the
      longest jumps) and freezes it; None leaves it as it is; or one or more of the rules in `discrax.adaptation`.
    - `chunk_size`: draws per compiled scan; it changes when the host hears of the run, never the draws.
    - `devices`: a number of devices, or a list of them, over which the chains are spread; or a `jax.sharding.Mesh` with
      axes "chains", "sites" or both. The draws are those of one device.
    - `progress`: a progress bar; by default in terminals and notebooks, and elsewhere a plain line every ten seconds.
    - `folder`: draws go there chunk by chunk and are read when they are looked at. If the run ends early, however that
      comes, the same call goes on with it; one with more `num_samples` extends it. `discrax.load` reads it at any time.
    - `tempering`: `discrax.Ladder()` for laws with many modes: each chain is a ladder of replicas from an easy law to
      the target, which exchange their states. Draws are those of the target; `result.tempering` tells how it went.

    Ctrl-C and SIGTERM return what was drawn so far, with `is_complete` False; a second one raises at once.
    """
    check_target(target)
    in_memory = folder is None
    plan = Plan(num_warmup, num_samples, thinning, keep, keep_warmup, chunk_size, progress, in_memory)
    plan.check(target, num_chains)
    if check_ladder(tempering, target):
        plan = plan._replace(stats=LadderStats())
    yes_or_no("progress", progress is not None and progress)
    check_adaptation(adaptation)
    found = find_devices(devices, target.space, num_chains)
    with Interrupts() as interrupts, ExitStack() as opened:
        if isinstance(sampler, str) and sampler == "auto":
            sampler = Auto()
        if not isinstance(sampler, Auto):
            sampler = build_kernel(sampler, target)
        store = None
        if folder is not None:
            parts: dict[str, Any] = {"sampler": sampler, "adaptation": adaptation}
            if tempering is not None:
                parts["tempering"] = tempering
            words = fingerprint(key, target, init, plan, num_chains, parts)
            store = opened.enter_context(RunFolder(folder, target, plan, words, found))
            if store.is_complete:
                result = replace(Result(**load_fields(store.path)), target=target)
                if not isinstance(result.kernel, LeftOutKernel):
                    return result
        chosen: tuple[Any, ...] = ()
        if isinstance(sampler, Auto):
            check_clock(sampler)
            report = None if store is None else store.chosen
            if report is None:
                report = pilot(key, sampler, target, num_chains, init, interrupts)
            sampler = dict(candidates_of(sampler, target))[report.chosen]
            if report.apart is not None and tempering is None and num_warmup and can_temper(sampler, target):
                tempering, report = Ladder(), report._replace(is_tempered=True)
                plan = plan._replace(stats=LadderStats())
            if store is not None:
                store.choose(report)
            chosen = (report,)
        kernel = build_kernel(sampler, target)
        if tempering is not None:
            ladder = tempering.measured(key, target, kernel, num_chains, init)
            kernel, adaptation = ladder.kernel(kernel, target), ladder.tuning(adaptation, kernel, target)
        adapters_of(adaptation, kernel, target)  # what cannot tune it says so before anything is compiled
        run = Run.prepare(key, target, kernel, num_chains, init, found)
        run = replace(run, reports=(chosen + run.reports[0],))
        return draw(run, [adaptation], plan, interrupts, store)[0]


def draw(
    run: Run, adaptations: Sequence[Any], plan: Plan, interrupts: Interrupts, folder: RunFolder | None = None
) -> list[Result]:
    """Warms a run up and draws; a result for each run that is stacked in it, as for each adaptation."""
    count, warmup = len(run.targets), []

    def phase(title: str, total: int, keep: Callable[[Array], Any] | bool) -> Phase:
        place = InMemory(count, total) if folder is None else folder.place(title, total)
        return Phase(title, total, plan.progress, interrupts, place, keep)

    stages = _stages(run, adaptations, plan.num_warmup)
    for stage in stages:
        needs_draws = plan.keep_warmup or stage.learns
        warmup.append(phase(stage.title, stage.num_steps, keep=needs_draws))
        if stage.adapters is not None:
            # One program tunes and draws; not in a folder, where a run may be extended, or over devices, which then
            # would hear of each other at every draw.
            shares = stage is stages[-1] and plan.is_short and folder is None and run.devices is None
            run = run.begin_tuning(stage.adapters, stage.num_steps, plan.num_samples if shares else None)
        observe = (Stats(), Draws()) if needs_draws else (Stats(),)
        observe = observe if run.shared_chunk is None else plan.observers  # one program has the same observers
        run = warmup[-1].collect(run, observe, chunk_size=plan.chunk_size)
        run = run.freeze() if warmup[-1].filled else run.stop_tuning()
        if warmup[-1].is_interrupted:
            break
        if stage.learns:
            run = run.learn([np.asarray(warmup[-1].kept(i)) for i in range(count)])
    drawn = phase(DRAWING, plan.num_samples, plan.keep_of_draw)
    drawn.is_interrupted = any(each.is_interrupted for each in warmup)
    if not drawn.is_interrupted and warmup:
        _check_moved(run, warmup[-1])
        if (tuned := stages[-1].adapters) is not None:
            rates = [np.asarray(warmup[-1].stats(i)["accept_prob"]) for i in range(count)]
            whole = bring_along(run, rates, tuned, interrupts)
            drawn.is_interrupted = interrupts.requested  # then the same call does all of it again
            run = run if drawn.is_interrupted else whole
    if not drawn.is_interrupted:
        run = drawn.collect(run, plan.observers, thinning=plan.thinning, chunk_size=plan.chunk_size)
    ends = run.split(gather(run.ensemble._replace(kernel=bring_home(run.ensemble.kernel))))
    if folder is not None and count == 1:
        live: dict[str, Any] = {"target": run.targets[0], "kernel": ends[0].kernel}
        live |= {"reports": run.reports[0], "states": ends[0].states}
        return [Result(**load_fields(folder.path) | live)]
    return [_result(i, run, ends[i], warmup, drawn, plan) for i in range(count)]


def _check_moved(run: Run, phase: Phase) -> None:
    states, starts = run.split(gather(run.ensemble.states.x)), run.split(run.x)
    for i, kernel in enumerate(run.kernels):
        has_moved = bool((np.asarray(starts[i]) != np.asarray(states[i])).any())  # a kernel need not count its jumps
        check_moved(
            kernel, {name: np.asarray(each) for name, each in phase.stats(i).items()}, run.reports[i], has_moved
        )


def _result(i: int, run: Run, end: Any, warmup: list[Phase], drawn: Phase, plan: Plan) -> Result:
    """The result of what the phases of the i-th run have stored."""
    stats = drawn.stats(i)
    mean_stats = {name: mean_over_draws(stats[name]) for name in STATS if name in stats and stats[name].shape[1]}
    moments = None
    if plan.keep == "moments":
        seen = end.observed[0] if drawn.filled else Moments().init(run.targets[i], end.states)
        moments, scalars = jax.tree.map(np.asarray, seen)
        mean_stats = dict(zip(STATS, scalars.mean.T, strict=True))
    return Result(
        target=run.targets[i],
        kernel=end.kernel,
        draws=drawn.kept(i) if plan.keep == "draws" else None,
        kept=drawn.kept(i) if callable(plan.keep) else None,
        moments=moments,
        stats=stats,
        mean_stats=mean_stats,
        warmup_stats=_join([phase.stats(i) for phase in warmup]),
        warmup_draws=_join([phase.kept(i) for phase in warmup]) if plan.keep_warmup else None,
        reports=run.reports[i],
        seconds=drawn.done.seconds,
        warmup_seconds=sum(phase.done.seconds for phase in warmup),
        compile_seconds=run.compile_seconds / len(run.targets)
        + sum(phase.done.compile_seconds for phase in [*warmup, drawn]),
        is_complete=not drawn.is_interrupted,
        thinning=plan.thinning,
        num_draws=drawn.filled,
        states=end.states,
    )


class Stage(NamedTuple):
    """A part of warm-up."""

    title: str
    num_steps: int
    adapters: tuple[Adapter, ...] | None  # one a run
    learns: bool = False  # the kernels learn from the draws of this stage what the targets do not tell


def _stages(run: Run, adaptations: Sequence[Any], num_warmup: int) -> list[Stage]:
    """A burn-in of a third of warm-up where kernels must learn from it; then the tuning of the kernels as they will be.

    Several adapters share warm-up equally.
    """
    kernels = run.kernels
    learns = any(not kernel.is_prepared for kernel in kernels)
    if learns and num_warmup < 3 * _LEAST_BURN_IN:
        raise ValueError(
            f"{type(kernels[0]).__name__} estimates the Hessian of this target in warm-up, which takes at least "
            f"{3 * _LEAST_BURN_IN} steps, but num_warmup is {num_warmup}; raise it or pass the matrix to the sampler."
        )
    parts = list(zip(adaptations, kernels, run.targets, strict=True))
    adapters = list(zip(*(adapters_of(*part) for part in parts), strict=True))  # one or more a run
    if not num_warmup:
        return []  # but mistakes in `adaptation` are mistakes all the same
    stages, left = [], num_warmup
    if learns:
        left -= num_warmup // 3
        first = [None if each is None else default_adapter(target, kernel) for each, kernel, target in parts]
        stages.append(Stage("burn-in", num_warmup // 3, _all_or_none(first), learns=True))
    for i, each in enumerate(adapters or [None]):
        share = left // max(1, len(adapters)) + (left % len(adapters) if adapters and i == 0 else 0)
        stages.append(Stage("warm-up", share, each))
    return stages


def _all_or_none(adapters: Sequence[Adapter | None]) -> tuple[Adapter, ...] | None:
    return tuple(adapters) if all(adapter is not None for adapter in adapters) else None  # ty: ignore[invalid-return-type]


def adapters_of(adaptation: Any, kernel: Kernel, target: Target) -> tuple[Adapter, ...]:
    """The adapters that a user asked for, one after another; a sentence if they cannot tune the kernel."""
    if isinstance(adaptation, str) and adaptation == "auto":
        adapter = default_adapter(target, kernel)
        return () if adapter is None else (adapter,)
    adapters = check_adaptation(adaptation)
    if kernel.is_prepared:  # else it may yet get the knobs
        for adapter in adapters:
            adapter.plan(target, kernel, 1000)
    return adapters


def check_adaptation(adaptation: Any) -> tuple[Adapter, ...]:
    """The adapters that a user asked for by themselves; a TypeError, in a sentence, for anything else."""
    if adaptation is None or (isinstance(adaptation, str) and adaptation == "auto"):
        return ()
    adapters: tuple[Any, ...] = tuple(adaptation) if isinstance(adaptation, tuple | list) else (adaptation,)
    for adapter in adapters:
        if not isinstance(adapter, Adapter) or isinstance(adapter, type):
            raise TypeError(
                "adaptation must be 'auto', None, or one or more rules such as discrax.adaptation.AcceptanceRate() and "
                f"JumpProbes(), but got {adapter!r}."
            )
    return adapters


def _join(parts: list[Any]) -> Any:
    """The stages of warm-up one after another along the axis of draws."""
    parts = [part for part in parts if part is not None and jax.tree.leaves(part)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts) if parts else {}
