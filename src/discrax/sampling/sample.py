"""`sample`: checks, warm-up, drawing, and collecting what the driver hands over."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from discrax.adaptation import AcceptanceRate
from discrax.core import random
from discrax.core.driver import STATS, Chunk, Ensemble, Recorder, chunk_length, drive, start
from discrax.core.kernel import Kernel, Sized, Tunable
from discrax.core.target import Target
from discrax.samplers import build_kernel
from discrax.sampling.checks import check_counts, check_gradient, check_start, check_target, initial_states
from discrax.sampling.progress import ProgressBar, wants_progress
from discrax.sampling.result import Result

_WARMUP_CHUNK = 50  # short, so that a kernel that outgrows its capacity is enlarged soon


def sample(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel = "auto",
    *,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_samples: int = 1000,
    thinning: int = 1,
    init: Array | np.ndarray | None = None,
    keep: str | Callable[[Array], Any] = "draws",
    keep_warmup: bool = False,
    adaptation: AcceptanceRate | str | None = "auto",
    chunk_size: int | None = None,
    progress: bool | None = None,
) -> Result:
    """Draws `num_samples` states per chain after `num_warmup` steps of warm-up.

    - `sampler`: a registry name, or a kernel such as `discrax.samplers.pas(balancing="ratio")`. "auto" takes PAS on
      two-level spaces, else DMALA.
    - `thinning`: steps per kept draw.
    - `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default.
    - `keep`: "draws" (all codes), a function of the codes (its values are kept), or "moments" (running mean and
      variance of the embedding: memory does not grow with the number of draws).
    - `adaptation`: "auto" tunes a tunable kernel to its optimal acceptance rate during warm-up and freezes it; None
      leaves it as it is; or `discrax.AcceptanceRate(rate, rule)`.
    - `chunk_size`: draws per compiled scan; it changes when the host hears of the run, never the draws.
    - `progress`: a progress bar; by default in terminals and notebooks, not in CI.

    Ctrl-C returns what was drawn so far, with `is_complete` False.
    """
    check_counts(num_chains, num_warmup, num_samples, thinning, chunk_size)
    check_target(target)
    kernel = build_kernel(sampler, target)
    check_gradient(target, kernel)
    adapter = _adapter(adaptation, kernel)
    if not num_warmup:
        adapter = None
    if not callable(keep) and keep not in ("draws", "moments"):
        raise ValueError(f"keep is 'draws', 'moments' or a function of the codes, but got {keep!r}.")
    if isinstance(kernel, Sized):
        kernel = kernel.sized(target, room=adapter is not None)

    for_init, for_chains = random.split(random.as_threefry(key), 2)
    x = initial_states(for_init, target, num_chains, init)
    keys = random.split(for_chains, num_chains)
    recorder = Recorder(_codes if keep == "draws" else keep if callable(keep) else None, keep == "moments")
    work = num_chains * target.space.num_sites * (1 if target.space.has_two_levels else target.space.num_levels)
    shown = wants_progress(progress)

    ensemble, compile_seconds = start(target, kernel, x, recorder)
    check_start(ensemble.states, kernel)
    empty = ensemble.moments
    warmup, drawn, report = _Phase("warm-up", num_warmup, shown), _Phase("sampling", num_samples, shown), None
    if num_warmup:
        chunks = _warm_up(
            keys,
            target,
            ensemble,
            num_warmup,
            chunk_size or chunk_length(num_warmup, work),
            adapter,
            keep_warmup,
        )
        ensemble = warmup.collect(chunks, ensemble)
        if adapter is not None and ensemble.memory is not None:  # None: interrupted before the first chunk
            kernel, report = adapter.freeze(target, ensemble.kernel, ensemble.memory)
    if isinstance(kernel, Sized):
        kernel = kernel.sized(target, room=False)
    ensemble = ensemble._replace(kernel=kernel, memory=None, moments=empty)
    if not warmup.is_interrupted:
        length = chunk_size or chunk_length(num_samples, work * thinning)
        chunks = drive(keys, target, ensemble, num_samples, chunk=length, thinning=thinning, recorder=recorder)
        ensemble = drawn.collect(chunks, ensemble)

    stats = drawn.stats()
    mean_stats = {name: values.mean(axis=1) for name, values in stats.items() if values.shape[1]}
    moments = None
    if ensemble.moments is not None:
        moments, scalars = jax.tree.map(np.asarray, ensemble.moments)
        mean_stats = dict(zip(STATS, scalars.mean.T, strict=True))
    return Result(
        target=target,
        kernel=kernel,
        draws=drawn.kept() if keep == "draws" else None,
        kept=drawn.kept() if callable(keep) else None,
        moments=moments,
        stats=stats,
        mean_stats=mean_stats,
        warmup_stats=warmup.stats(),
        warmup_draws=warmup.kept() if keep_warmup else None,
        report=report,
        seconds=drawn.seconds,
        warmup_seconds=warmup.seconds,
        compile_seconds=compile_seconds + warmup.compile_seconds + drawn.compile_seconds,
        is_complete=not (warmup.is_interrupted or drawn.is_interrupted),
        thinning=thinning,
        num_draws=drawn.filled,
        states=ensemble.states,
    )


def _codes(x: Array) -> Array:
    return x


def _adapter(adaptation: AcceptanceRate | str | None, kernel: Kernel) -> AcceptanceRate | None:
    if adaptation is None:
        return None
    if adaptation == "auto":
        return AcceptanceRate() if isinstance(kernel, Tunable) else None
    if not isinstance(adaptation, AcceptanceRate):
        raise TypeError(f"adaptation is 'auto', None or an AcceptanceRate, but got {adaptation!r}.")
    if not isinstance(kernel, Tunable):
        raise ValueError(f"{type(kernel).__name__} has no scale to tune; pass adaptation=None.")
    adaptation.check(kernel)
    return adaptation


def _warm_up(
    keys, target, ensemble: Ensemble, num_steps: int, chunk: int, adapter, keep_draws: bool
) -> Iterator[Chunk]:
    """Statistics are recorded, draws where asked; a kernel that outgrows its capacity is enlarged between chunks."""
    recorder = Recorder(_codes if keep_draws else None)
    ensemble = ensemble._replace(moments=None)
    if adapter is None:
        return drive(keys, target, ensemble, num_steps, chunk=chunk, recorder=recorder)

    def resize(kernel: Kernel) -> Kernel:
        return kernel.sized(target, room=True) if isinstance(kernel, Sized) else kernel

    if isinstance(ensemble.kernel, Sized):
        chunk = _WARMUP_CHUNK  # whatever chunk_size is: when a kernel may grow decides what is drawn
    ensemble = ensemble._replace(memory=adapter.init(target, ensemble.kernel))
    return drive(keys, target, ensemble, num_steps, chunk=chunk, adapter=adapter, recorder=recorder, resize=resize)


class _Phase:
    """Collects the chunks of warm-up or of drawing on the host. Ctrl-C ends it with what it has."""

    def __init__(self, title: str, total: int, show_progress: bool):
        self.filled, self.seconds, self.compile_seconds, self.is_interrupted = 0, 0.0, 0.0, False
        self._title, self._total, self._show_progress = title, total, show_progress
        self._buffers: Any = None

    def collect(self, chunks: Iterator[Chunk], ensemble: Ensemble) -> Ensemble:
        with ProgressBar(self._title, self._total, self._show_progress) as bar:
            try:
                for chunk in chunks:
                    count = self._store(chunk)
                    self.seconds += chunk.seconds
                    self.compile_seconds += chunk.compile_seconds
                    ensemble = chunk.ensemble
                    bar.advance(count, chunk.acceptance)
            except KeyboardInterrupt:
                self.is_interrupted = True
        return ensemble

    def _store(self, chunk: Chunk) -> int:
        recorded = jax.tree.map(np.asarray, chunk.recorded)
        if self._buffers is None:
            shape = lambda leaf: (leaf.shape[1], self._total, *leaf.shape[2:])  # noqa: E731
            self._buffers = jax.tree.map(lambda leaf: np.empty(shape(leaf), leaf.dtype), recorded)
        place = slice(self.filled, self.filled + chunk.num_draws)

        def fill(buffer, leaf):
            buffer[:, place] = np.moveaxis(leaf, 0, 1)

        jax.tree.map(fill, self._buffers, recorded)
        self.filled = place.stop
        return chunk.num_draws

    def kept(self) -> Any:
        if self._buffers is None:
            return None
        return jax.tree.map(lambda buffer: buffer[:, : self.filled], self._buffers.kept)

    def stats(self) -> dict[str, np.ndarray]:
        return {} if self._buffers is None else {k: v[:, : self.filled] for k, v in self._buffers.stats.items()}
