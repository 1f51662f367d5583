"""A part of a run, warm-up or drawing: its chunks are stored as they come, in memory or in a folder."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array

from discrax.core.interrupts import Interrupts
from discrax.core.observers import Observer
from discrax.core.programs import compiled
from discrax.sampling.progress import ProgressBar
from discrax.sampling.run import Progress, Run
from discrax.sampling.stored_array import with_weights


class Done(NamedTuple):
    """How far a phase is."""

    filled: int = 0  # draws
    seconds: float = 0.0
    compile_seconds: float = 0.0


@runtime_checkable
class Place(Protocol):
    """Where the chunks of a phase are stored."""

    def resume(self, run: Run, observe: tuple[Observer, ...]) -> tuple[Run, Done]:
        """The run as it was left here, and how far it was; the run as it is where nothing was begun."""
        ...

    def write(self, first: int, chunk: Progress) -> None:
        """Stores what the observers handed over, from draw `first` on."""
        ...

    def commit(self, run: Run, done: Done) -> None:
        """What was written counts from now on, and the run goes on from here."""
        ...

    def read(self, i: int, filled: int) -> tuple[Any, ...] | None:
        """What each observer handed over of the i-th run, (chain, draw, ...); None if nothing."""
        ...


class InMemory:
    """Arrays on the host, run by run. Nothing is left of them when the process ends."""

    def __init__(self, count: int, total: int):
        self._buffers: list[Any] = [None] * count
        self._total = total

    def resume(self, run: Run, observe: tuple[Observer, ...]) -> tuple[Run, Done]:
        """There is nothing to go on from."""
        return run, Done()

    def write(self, first: int, chunk: Progress) -> None:
        """Copies a chunk into the arrays, which have room for the whole phase."""
        place = slice(first, first + chunk.num_draws)

        def empty(leaf: np.ndarray) -> np.ndarray:
            return np.empty((leaf.shape[1], self._total, *leaf.shape[2:]), leaf.dtype)

        def fill(buffer: np.ndarray, leaf: np.ndarray) -> None:
            buffer[:, place] = np.moveaxis(leaf, 0, 1)

        for i, handed in enumerate(chunk.handed):
            handed = jax.tree.map(np.asarray, handed)
            if self._buffers[i] is None:
                self._buffers[i] = jax.tree.map(empty, handed)
            jax.tree.map(fill, self._buffers[i], handed)

    def commit(self, run: Run, done: Done) -> None:
        """Nobody will ask."""

    def read(self, i: int, filled: int) -> tuple[Any, ...] | None:
        """The arrays as far as they are filled."""
        return jax.tree.map(lambda buffer: buffer[:, :filled], self._buffers[i])


class Phase:
    """Runs and stores the chunks of warm-up or of drawing. A signal ends it with what it has.

    `keep`: what is stored of the codes of a draw; they themselves by default, nothing if it is False.
    """

    def __init__(
        self,
        title: str,
        total: int,
        progress: bool | None,
        interrupts: Interrupts,
        place: Place,
        keep: Callable[[Array], Any] | bool = True,
    ):
        self._interrupts, self._place, self._keep = interrupts, place, keep
        self._title, self._total, self._progress = title, total, progress
        self.done, self.is_interrupted = Done(), False

    @property
    def filled(self) -> int:
        """Draws, or steps of warm-up, that are stored."""
        return self.done.filled

    def collect(
        self, run: Run, observe: tuple[Observer, ...], *, thinning: int = 1, chunk_size: int | None = None
    ) -> Run:
        """Goes on from where the phase was left, to its end; the run after the last chunk."""
        run, self.done = self._place.resume(run, observe)
        chunks = run.steps(self._total, thinning=thinning, observe=observe, chunk=chunk_size, done=self.filled)
        with ProgressBar(self._title, self._total, self._progress, done=self.filled) as bar:
            try:
                while not self._interrupts.requested:
                    chunk = next(chunks, None)
                    if chunk is None:
                        break
                    self._store(chunk)
                    run = chunk.run
                    bar.advance(chunk.num_draws, chunk.acceptance)
            except KeyboardInterrupt:
                self.is_interrupted = True
        self.is_interrupted = self.is_interrupted or self._interrupts.requested
        return run

    def _store(self, chunk: Progress) -> None:
        filled, seconds, compile_seconds = self.done
        chunk = _select(chunk, self._keep)
        self._place.write(filled, chunk)
        done = Done(filled + chunk.num_draws, seconds + chunk.seconds, compile_seconds + chunk.compile_seconds)
        self._place.commit(chunk.run, done)
        self.done = done

    def kept(self, i: int) -> Any:
        """What was kept of the draws of the i-th run, (chain, draw, ...)."""
        parts = self._place.read(i, self.filled)
        return None if parts is None or len(parts) < 2 else parts[1]

    def stats(self, i: int) -> dict[str, Any]:
        """The statistics of the i-th run by name, (chain, draw)."""
        parts = self._place.read(i, self.filled)
        return {} if parts is None or not parts[0] else with_weights(parts[0])


def _select(chunk: Progress, keep: Callable[[Array], Any] | bool) -> Progress:
    """The chunk with what is to be stored of its draws.

    A function of the user is a program of its own, a small one: that of the steps does not depend on it.
    """
    if keep is True:
        return chunk
    if keep is False:
        return chunk._replace(handed=tuple(handed[:1] for handed in chunk.handed))
    codes = [handed[1] for handed in chunk.handed]
    program, more = compiled(keep_each, (codes, keep), {})
    kept = zip(chunk.handed, program((codes, keep)), strict=True)
    handed = tuple((stats, each) for (stats, _), each in kept)
    return chunk._replace(handed=handed, compile_seconds=chunk.compile_seconds + more)


def keep_each(codes: list[Any], keep: Callable[[Any], Any]) -> list[Any]:
    """What a user keeps of the codes of every draw, (draw, chain, *shape), or of what observers have there, by run."""
    return [jax.vmap(jax.vmap(keep))(each) for each in codes]
