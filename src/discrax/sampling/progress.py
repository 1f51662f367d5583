"""The progress bar: rich's, in terminals and notebooks, not in CI."""

import os
import sys
from typing import Any


def wants_progress(progress: bool | None) -> bool:
    """Whether to show a progress bar: as asked, else in terminals and notebooks."""
    if progress is not None:
        return progress
    if os.environ.get("CI"):
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class ProgressBar:
    """Steps done, time left and a few numbers; silent where it is not wanted or rich is absent."""

    def __init__(self, title: str, total: int, wanted: bool, *, done: int = 0, numbers: str = "acceptance ..."):
        self._bar: Any = None
        if not wanted:
            return
        try:
            from rich import progress
            from rich.console import Console
        except ImportError:
            return
        self._bar = progress.Progress(
            progress.TextColumn("{task.description:>9}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[numbers]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
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
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, numbers=numbers)
