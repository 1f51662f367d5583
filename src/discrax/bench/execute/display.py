"""What a run says while it works: a live line on a terminal, else a line now and then."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from discrax.bench.execute import store
from discrax.bench.execute.store import Standing
from discrax.bench.execute.timing import UNTIMED
from discrax.bench.plan.cell import Cell
from discrax.sampling.progress import is_drawn, plain_lines


class Display(AbstractContextManager):
    """Cells done, to be timed, failed, and the time left."""

    def __init__(
        self, cells: Sequence[Cell], done: Mapping[str, Standing], stale: Mapping[str, int], progress: bool | None
    ):
        self._total, self._done = len(cells), {key: standing.is_failed for key, standing in done.items()}
        self.stale = stale  # files of cells that are run again, and when they were written
        self._names = {cell.id: cell.name for cell in cells}
        self._begin, self._before = time.perf_counter(), len(self._done)
        self._aside = 0  # cells that have their statistics, and wait to be timed
        self._live, self._lines = None, plain_lines(progress)
        if is_drawn(progress):
            from rich.live import Live

            self._live = Live(self._line(), refresh_per_second=4)

    def __enter__(self) -> "Display":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live:
            self._live.update(self._line())
            self._live.stop()

    def update(self, folder: Path) -> None:
        """Counts the files that have come into the folder since."""
        for path in (folder / store.ROWS).glob("*.parquet"):
            if path.stem not in self._done and path.stem in self._names:
                standing = store.read_standing(path)
                if standing is not None and standing.written != self.stale.get(path.stem):
                    self._done[path.stem] = standing.is_failed
        self._aside = sum(path.name in self._names for path in (folder / UNTIMED).glob("*"))
        if self._live:
            self._live.update(self._line())
        if self._lines:
            self._lines.say(self._line)

    def _line(self) -> str:
        done, spent = len(self._done), time.perf_counter() - self._begin
        failed = sum(self._done.values())
        now = done - self._before + self._aside
        left = f", about {_duration(spent / now * (self._total - done - self._aside))} left" if now else ""
        waiting = [name for key, name in self._names.items() if key not in self._done]
        running = f"\n  next or running: {waiting[0]}" if waiting else ""
        aside = f", {self._aside} to be timed" if self._aside else ""
        return f"{done}/{self._total} cells done{aside}, {failed} failed, {_duration(spent)} spent{left}{running}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
