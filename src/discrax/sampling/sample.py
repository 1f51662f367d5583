"""`sample`: checks, warm-up, drawing, and collecting what the driver hands over."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import yes_or_no
from discrax.core.driver import STATS, Adapter, Chunk, Ensemble, Recorder, chunk_length, drive, start
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel, Sized
from discrax.core.programs import reads_user_code
from discrax.core.stochastic import steps_per_block
from discrax.core.target import Target, check_target
from discrax.curvature.hessian import Preconditioned, estimated_hessian, exact_hessian
from discrax.diagnostics.weighted import weights_from_logs
from discrax.samplers import build_kernel
from discrax.sampling.auto import Auto, default_adapter, pilot
from discrax.sampling.checks import (
    chain_keys,
    check_batches,
    check_counts,
    check_gradient,
    check_keep,
    check_law,
    check_moved,
    check_run_memory,
    check_start,
    gradient_error,
    initial_states,
    possible_starts,
)
from discrax.sampling.progress import ProgressBar, wants_progress
from discrax.sampling.result import Result


@reads_user_code()
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
    progress: bool | None = None,
) -> Result:
    """Draws `num_samples` states per chain after `num_warmup` steps of warm-up.

    - `sampler`: a registry name, or a kernel such as `discrax.samplers.pas(balancing="ratio")`. "auto" lets a pilot of
      some seconds choose; `discrax.auto(seconds=60, score="ess")` says how.
    - `thinning`: steps per kept draw.
    - `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default.
    - `keep`: "draws" (all codes), a function of the codes (its values are kept), or "moments" (running mean and
      variance of the embedding: memory does not grow with the number of draws).
    - `adaptation`: "auto" tunes the kernel during warm-up as suits it (to its optimal acceptance rate, or to the
      longest jumps) and freezes it; None leaves it as it is; or one or more of the rules in `discrax.adaptation`.
    - `chunk_size`: draws per compiled scan; it changes when the host hears of the run, never the draws.
    - `progress`: a progress bar; by default in terminals and notebooks, not in CI.

    Ctrl-C and SIGTERM return what was drawn so far, with `is_complete` False; a second one raises at once.
    """
    with Interrupts() as interrupts:
        return _sample(
            key, target, sampler, num_chains, num_warmup, num_samples, thinning, init, keep, keep_warmup, adaptation,
            chunk_size, progress, interrupts,
        )  # fmt: skip


def _sample(
    key, target, sampler, num_chains, num_warmup, num_samples, thinning, init, keep, keep_warmup, adaptation,
    chunk_size, progress, interrupts: Interrupts,
) -> Result:  # fmt: skip
    check_counts(num_chains, num_warmup, num_samples, thinning, chunk_size)
    check_target(target)
    check_keep(keep, target.space)
    yes_or_no("keep_warmup", keep_warmup)
    yes_or_no("progress", progress is not None and progress)
    check_run_memory(target.space, keep, num_chains, num_samples, num_warmup if keep_warmup else 0)
    for_init, keys = chain_keys(key, num_chains)
    x = initial_states(for_init, target, num_chains, init)
    reports: list[Any] = []
    if isinstance(sampler, str) and sampler == "auto":
        sampler = Auto()
    if isinstance(sampler, Auto):
        if init is None:
            x = possible_starts(for_init, target, x)
        pilot_keys = jax.vmap(random.fold_in, in_axes=(0, None))(keys, jnp.uint32(2**32 - 1))
        sampler, report = pilot(sampler, target, pilot_keys, x, gradient_error(target) is None, interrupts)
        reports.append(report)
    kernel = build_kernel(sampler, target)
    check_law(target, kernel)
    check_gradient(target, kernel)
    check_batches(target, kernel, keys, x)
    longest = longest_chunk(target, thinning)
    kernel, wants_burn_in = _with_exact_hessian(kernel, target, num_warmup, reports)
    stages = _stages(adaptation, kernel, num_warmup, wants_burn_in)
    if isinstance(kernel, Sized):
        kernel = kernel.sized(target, room=any(stage.adapter is not None for stage in stages))

    recorder = Recorder(codes if keep == "draws" else as_told(keep) if callable(keep) else None, keep == "moments")
    work = work_per_step(target, num_chains)
    shown = wants_progress(progress)

    ensemble, compile_seconds = start(target, kernel, x, recorder)
    if init is None and np.isneginf(np.asarray(ensemble.states.log_prob)).any():
        x = possible_starts(for_init, target, x, lambda x: start(target, kernel, x, recorder)[0].states.log_prob)
        ensemble, _ = start(target, kernel, x, recorder)
    check_start(ensemble.states, kernel)
    empty = ensemble.moments
    warmup, drawn = [], Phase("sampling", num_samples, shown, interrupts)
    ensemble = ensemble._replace(moments=None)
    for stage in stages:
        phase = Phase(stage.title, stage.num_steps, shown, interrupts)
        warmup.append(phase)
        adapter = None if stage.adapter is None else _planned(stage.adapter, ensemble.kernel, stage.num_steps)
        chunks = _warm_up(
            keys,
            target,
            ensemble,
            stage.num_steps,
            min(chunk_size or chunk_length(stage.num_steps, work), longest * thinning),
            adapter,
            keep_warmup or stage.prepares,
        )
        ensemble = phase.collect(chunks, ensemble)
        if adapter is not None and ensemble.memory is not None:  # None: interrupted before the first chunk
            kernel, report = adapter.freeze(target, ensemble.kernel, ensemble.memory)
            reports.append(report)
            ensemble = ensemble._replace(kernel=kernel, memory=None)
        if phase.is_interrupted:
            break
        kernel = ensemble.kernel
        if stage.prepares:
            assert isinstance(kernel, Preconditioned)
            kernel, how = kernel.prepared(target, estimated_hessian(target, phase.kept(), kernel.estimator))
            reports.append(how)
            ensemble = ensemble._replace(kernel=kernel)
    is_interrupted = any(phase.is_interrupted for phase in warmup)
    if warmup and not is_interrupted:
        has_moved = bool((np.asarray(x) != np.asarray(ensemble.states.x)).any())  # a kernel need not count its jumps
        check_moved(kernel, warmup[-1].stats(), reports, has_moved)
    if isinstance(kernel, Sized):
        kernel = kernel.sized(target, room=False)
    ensemble = ensemble._replace(kernel=kernel, memory=None, moments=empty)
    if not is_interrupted:
        length = min(chunk_size or chunk_length(num_samples, work * thinning), longest)
        chunks = drive(keys, target, ensemble, num_samples, chunk=length, thinning=thinning, recorder=recorder)
        ensemble = drawn.collect(chunks, ensemble)

    if is_interrupted:
        drawn.is_interrupted = True
    return collected(target, ensemble, warmup, drawn, reports, keep, keep_warmup, thinning, compile_seconds)


def collected(
    target: Target,
    ensemble: Ensemble,
    warmup: "list[Phase]",
    drawn: "Phase",
    reports: list[Any],
    keep: str | Callable[[Array], Any],
    keep_warmup: bool,
    thinning: int,
    compile_seconds: float,
) -> Result:
    """The result of what the phases of a run have stored."""
    stats = drawn.stats()
    mean_stats = {name: stats[name].mean(axis=1) for name in STATS if name in stats and stats[name].shape[1]}
    moments = None
    if ensemble.moments is not None:
        moments, scalars = jax.tree.map(np.asarray, ensemble.moments)
        mean_stats = dict(zip(STATS, scalars.mean.T, strict=True))
    return Result(
        target=target,
        kernel=ensemble.kernel,
        draws=drawn.kept() if keep == "draws" else None,
        kept=drawn.kept() if callable(keep) else None,
        moments=moments,
        stats=stats,
        mean_stats=mean_stats,
        warmup_stats=_joined([phase.stats() for phase in warmup]),
        warmup_draws=_joined([phase.kept() for phase in warmup]) if keep_warmup else None,
        reports=tuple(reports),
        seconds=drawn.seconds,
        warmup_seconds=sum(phase.seconds for phase in warmup),
        compile_seconds=compile_seconds + sum(phase.compile_seconds for phase in [*warmup, drawn]),
        is_complete=not drawn.is_interrupted,
        thinning=thinning,
        num_draws=drawn.filled,
        states=ensemble.states,
    )


class Stage(NamedTuple):
    """A part of warm-up."""

    title: str
    num_steps: int
    adapter: Adapter | None
    prepares: bool  # the kernel gets its second-order information from the draws of this stage


_LEAST_BURN_IN = 10


def _with_exact_hessian(kernel: Kernel, target: Target, num_warmup: int, reports: list[Any]) -> tuple[Kernel, bool]:
    """The kernel with the Hessian of a quadratic target if it wants one, and whether a burn-in must estimate it."""
    if not isinstance(kernel, Preconditioned) or kernel.is_prepared:
        return kernel, False
    hessian = None if kernel.estimates else exact_hessian(target)
    if hessian is not None:
        kernel, how = kernel.prepared(target, hessian)
        reports.append(how)
        return kernel, False
    if num_warmup < 3 * _LEAST_BURN_IN:
        raise ValueError(
            f"{type(kernel).__name__} estimates the Hessian of this target in warm-up, which takes at least "
            f"{3 * _LEAST_BURN_IN} steps, but num_warmup is {num_warmup}; raise it or pass the matrix to the sampler."
        )
    return kernel, True


def _stages(adaptation: Any, kernel: Kernel, num_warmup: int, wants_burn_in: bool) -> list[Stage]:
    """A burn-in of a third of warm-up where the Hessian must be estimated; then the tuning of the kernel as it will be.

    Several adapters share warm-up equally.
    """
    if not num_warmup:
        adapters_of(adaptation, kernel)  # its mistakes are mistakes all the same
        return []
    stages, left = [], num_warmup
    if wants_burn_in:
        left -= num_warmup // 3
        first = adapters_of("auto" if adaptation is not None else None, kernel)
        stages.append(Stage("burn-in", num_warmup // 3, first[0] if first else None, True))
    adapters = adapters_of(adaptation, kernel) or (None,)
    for i, adapter in enumerate(adapters):
        share = left // len(adapters) + (left % len(adapters) if i == 0 else 0)
        stages.append(Stage("warm-up", share, adapter, False))
    return stages


def adapters_of(adaptation: Any, kernel: Kernel) -> tuple[Adapter, ...]:
    if adaptation is None:
        return ()
    if isinstance(adaptation, str) and adaptation == "auto":
        adapter = default_adapter(kernel)
        return () if adapter is None else (adapter,)
    adapters: tuple[Any, ...] = tuple(adaptation) if isinstance(adaptation, tuple | list) else (adaptation,)
    for adapter in adapters:
        if not isinstance(adapter, Adapter):
            raise TypeError(
                "adaptation is 'auto', None, or one or more of AcceptanceRate, JumpProbes, StepSearch and GammaRule, "
                f"but got {adapter!r}."
            )
        if not (isinstance(kernel, Preconditioned) and not kernel.is_prepared):  # it may yet get the knobs
            adapter.check(kernel)
    return adapters


def _planned(adapter: Adapter, kernel: Kernel, num_steps: int) -> Adapter:
    adapter.check(kernel)
    return adapter.planned(kernel, num_steps)


def _joined(parts: list[Any]) -> Any:
    """The stages of warm-up one after another along the axis of draws."""
    parts = [part for part in parts if part is not None and jax.tree.leaves(part)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts) if parts else {}


def codes(x: Array) -> Array:
    return x


def as_told(keep: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A user's function with an identity of its own: it may be unhashable, and what it reads may have changed."""
    return lambda x: keep(x)


def _warm_up(
    keys, target, ensemble: Ensemble, num_steps: int, chunk: int, adapter, keep_draws: bool
) -> Iterator[Chunk]:
    """Statistics are recorded, draws where asked; a kernel that outgrows its capacity is enlarged between chunks."""
    recorder = Recorder(codes if keep_draws else None)
    if adapter is None:
        return drive(keys, target, ensemble, num_steps, chunk=chunk, recorder=recorder)

    def resize(kernel: Kernel) -> Kernel:
        return kernel.sized(target, room=True) if isinstance(kernel, Sized) else kernel

    if isinstance(ensemble.kernel, Sized):
        chunk = warmup_chunk(num_steps)  # whatever chunk_size is: when a kernel may grow decides what is drawn
    ensemble = ensemble._replace(memory=adapter.init(target, ensemble.kernel))
    return drive(keys, target, ensemble, num_steps, chunk=chunk, adapter=adapter, recorder=recorder, resize=resize)


def longest_chunk(target: Target, thinning: int) -> int:
    """Draws for which the data on the device last, where they come block by block."""
    steps = steps_per_block(target)
    if steps is None:
        return 2**31 - 1
    if steps < thinning:
        raise ValueError(
            f"A block of the data lasts for {steps} steps, but a draw takes thinning = {thinning}; use larger blocks, "
            "smaller batches or less thinning."
        )
    return steps // thinning


def work_per_step(target: Target, num_chains: int) -> int:
    """What `chunk_length` weighs: the numbers that a step of all chains touches."""
    space = target.space
    return num_chains * space.num_sites * (1 if space.has_two_levels else space.num_levels)


def warmup_chunk(num_steps: int) -> int:
    """Short, so that a kernel that outgrows its capacity is enlarged soon, and that a signal is heard soon."""
    return min(max(50, num_steps // 20), 2000)


class Phase:
    """Collects the chunks of warm-up or of drawing on the host. A signal ends it with what it has."""

    def __init__(self, title: str, total: int, show_progress: bool, interrupts: Interrupts | None = None):
        self._interrupts = Interrupts() if interrupts is None else interrupts
        self.filled, self.seconds, self.compile_seconds, self.is_interrupted = 0, 0.0, 0.0, False
        self._title, self._total, self._show_progress = title, total, show_progress
        self._buffers: Any = None

    def collect(self, chunks: Iterator[Chunk], ensemble: Ensemble) -> Ensemble:
        with ProgressBar(self._title, self._total, self._show_progress) as bar:
            try:
                while not self._interrupts.requested:
                    chunk = next(chunks, None)
                    if chunk is None:
                        break
                    count = self.store(chunk)
                    ensemble = chunk.ensemble
                    bar.advance(count, chunk.acceptance)
            except KeyboardInterrupt:
                self.is_interrupted = True
        self.is_interrupted = self.is_interrupted or self._interrupts.requested
        return ensemble

    def store(self, chunk: Chunk) -> int:
        """Keeps what a chunk recorded, on the host."""
        recorded = jax.tree.map(np.asarray, chunk.recorded)
        if self._buffers is None:
            shape = lambda leaf: (leaf.shape[1], self._total, *leaf.shape[2:])  # noqa: E731
            self._buffers = jax.tree.map(lambda leaf: np.empty(shape(leaf), leaf.dtype), recorded)
        place = slice(self.filled, self.filled + chunk.num_draws)

        def fill(buffer, leaf):
            buffer[:, place] = np.moveaxis(leaf, 0, 1)

        jax.tree.map(fill, self._buffers, recorded)
        self.filled = place.stop
        self.seconds += chunk.seconds
        self.compile_seconds += chunk.compile_seconds
        return chunk.num_draws

    def kept(self) -> Any:
        if self._buffers is None:
            return None
        return jax.tree.map(lambda buffer: buffer[:, : self.filled], self._buffers.kept)

    def stats(self) -> dict[str, np.ndarray]:
        if self._buffers is None or not self._buffers.stats:
            return {}
        stats = {name: values[:, : self.filled] for name, values in self._buffers.stats.items()}
        return stats | {"weight": weights_from_logs(stats["log_weight"])}
