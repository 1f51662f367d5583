"""How far a run is: rich's bar in terminals and notebooks; elsewhere a plain line every ten seconds."""

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from discrax.voice import is_silent

_SECONDS_APART = 10.0


def is_drawn(progress: bool | None) -> bool:
    """Whether a bar is drawn: where rich can draw it over, in terminals and notebooks, as asked; else not in CI."""
    is_notebook = "ipykernel" in sys.modules
    needed = ("rich", "ipywidgets") if is_notebook else ("rich",)  # rich warns above every bar of a notebook without
    if any(find_spec(name) is None for name in needed) or not (sys.stderr.isatty() or is_notebook):
        return False
    return not is_silent() and not os.environ.get("CI") if progress is None else progress


def plain_lines(progress: bool | None) -> "PlainLines | None":
    """What speaks where no bar is drawn; None where nobody asked, or is to be disturbed, or where there is a bar."""
    is_wanted = not is_silent() if progress is None else progress
    return PlainLines(is_asked=bool(progress)) if is_wanted and not is_drawn(progress) else None


class PlainLines:
    """Lines on the error stream, the first after ten seconds and then one every ten.

    A short run says nothing, or, where lines were asked for, how it ended.
    """

    def __init__(self, is_asked: bool = False, clock: Callable[[], float] = time.monotonic):
        self._is_asked, self._clock, self._last = is_asked, clock, clock()

    def say(self, line: Callable[[], str], is_last: bool = False) -> None:
        """Prints the line if it is time for one."""
        if self._clock() - self._last >= _SECONDS_APART or (is_last and self._is_asked):
            self._last = self._clock()
            print(line(), file=sys.stderr, flush=True)


class ProgressBar:
    """Steps done, time left and a few numbers; silent where it is declined."""

    def __init__(
        self, title: str, total: int, progress: bool | None, *, done: int = 0, numbers: str = "acceptance ..."
    ):
        self._bar: Any = None
        self._lines = plain_lines(progress)
        self._title, self._total, self._done = title, total, done
        if not is_drawn(progress):
            return
        from rich import progress as bars
        from rich.console import Console

        self._bar = bars.Progress(
            bars.TextColumn("{task.description:>9}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[numbers]}"),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(title, total=total, completed=done, numbers=numbers)

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, steps: int, acceptance: float) -> None:
        """So many more are done, with this mean acceptance."""
        self.show(steps, f"acceptance {acceptance:.3f}")

    def show(self, steps: int, numbers: str) -> None:
        """So many steps more, and what to say of them."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, numbers=numbers)
        if self._lines is not None:
            line = f"{self._title}: {self._done} of {self._total}, {numbers}"
            self._lines.say(lambda: line, is_last=self._done >= self._total)
