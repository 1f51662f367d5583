"""The line that says how training goes: rich's, in terminals and notebooks, not in CI."""

from typing import Any

from discrax.sampling.progress import wants_progress


class Line:
    """Updates done, energy gap, acceptance, jump and gradient norm, time left; silent where it is not wanted."""

    def __init__(self, total: int, done: int, progress: bool | None):
        self._bar: Any = None
        if not wants_progress(progress):
            return
        try:
            from rich import progress as parts
            from rich.console import Console
        except ImportError:
            return
        self._bar = parts.Progress(
            parts.TextColumn("training"),
            parts.BarColumn(bar_width=20),
            parts.MofNCompleteColumn(),
            parts.TextColumn("{task.fields[numbers]}"),
            parts.TimeElapsedColumn(),
            parts.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("training", total=total, completed=done, numbers="compiling")

    def __enter__(self) -> "Line":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, row: dict[str, float]) -> None:
        if self._bar is not None:
            numbers = (
                f"gap {row['gap']:.3g}  acceptance {row['acceptance']:.2f}  jump {row['jump']:.3g}  "
                f"gradient {row['gradient_norm']:.3g}"
            )
            self._bar.update(self._task, completed=row["update"], numbers=numbers)
