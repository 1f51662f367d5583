"""What a search was like: its history, as arrays and as a picture, and the line that shows it while it runs."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from discrax.core.files import check_writable, write_whole
from discrax.problems.problem import Problem
from discrax.sampling.progress import is_drawn, plain_lines
from discrax.solving.engine import Report

_MOST_CHECKED = 2_000_000  # pairs of an edge and a chain whose feasibility is checked at every report

FIELDS = ("seconds", "num_steps", "best", "mean", "beta", "feasible_share")


class History:
    """One entry a report: `seconds`, `num_steps`, `best`, `mean`, `beta`, `feasible_share`.

    `best` and `mean` are of the penalised objective, over chains, with the sign of the problem's objective. The share
    of chains whose best state is feasible as it is, before repair, is NaN where counting would take long.
    """

    def __init__(
        self, problem: Problem, num_instances: int = 1, rows: Float[np.ndarray, "reports fields"] | None = None
    ):
        self._problem, self._num_instances = problem, num_instances
        self._rows: list[tuple[float, ...]] = [] if rows is None else [tuple(row) for row in rows.tolist()]
        model = problem.model
        self._sign = 1.0 if problem.sense == "max" else -1.0
        self._num_edges = 0 if model is None else len(model.edges)
        self.fraction = 0.0

    def add(self, report: Report, seconds: float) -> None:
        """An entry for a report that came after so many seconds."""
        best = self._sign * float(np.nanmax(report.best_values))
        mean = self._sign * float(report.values.mean())
        share = np.nan
        if self._num_edges * len(report.best_states) * self._num_instances <= _MOST_CHECKED:
            states = report.best_states[:, : self._problem.space.num_sites]
            share = float(np.mean(self._problem.is_feasible(states)))
        self._rows.append((seconds, report.num_steps, best, mean, report.beta, share))
        self.fraction = report.fraction

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Float[np.ndarray, "reports fields"]:
        """All entries as one array."""
        return np.array(self._rows, np.float64).reshape(-1, len(FIELDS))

    def __getattr__(self, name: str) -> Float[np.ndarray, " reports"]:
        if name not in FIELDS:
            raise AttributeError(f"A history has {', '.join(FIELDS)}, but not {name!r}.")
        return np.array([row[FIELDS.index(name)] for row in self._rows], np.float64)

    def to_dict(self) -> dict[str, list[float]]:
        """All entries, a list a field."""
        return {name: getattr(self, name).tolist() for name in FIELDS}

    def plot(self, path: str | Path | None = None) -> Any:
        """The objective against steps and against seconds; saved if a path is given. Returns the figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.4), layout="constrained")
        for axes, x, label in zip(
            figure.subplots(1, 2, sharey=True), (self.num_steps, self.seconds), ("steps", "seconds"), strict=True
        ):
            axes.plot(x, self.best, color="C0", label="best of all chains")
            axes.plot(x, self.mean, color="C1", alpha=0.8, label="mean of the chains")
            axes.set_xlabel(label)
            axes.grid(alpha=0.3)
        figure.axes[0].set_ylabel(f"objective, penalised ({self._problem.sense})")
        figure.axes[1].legend(loc="lower right" if self._problem.sense == "max" else "upper right")
        figure.suptitle(repr(self._problem))
        if path is not None:
            path = check_writable(path)
            kind = path.suffix.lower().lstrip(".") or "png"
            if kind not in figure.canvas.get_supported_filetypes():
                known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
                raise ValueError(f"A history is drawn as {known}, but got {path.name!r}.")
            write_whole(path, lambda file: figure.savefig(file, dpi=150, format=kind))
        return figure


class Line(AbstractContextManager):
    """A line that is drawn anew, or plain ones where that cannot be: best objective, mean, feasible share, beta, time
    left; silent where it is declined.
    """

    def __init__(self, problem: Problem, progress: bool | None):
        self._live = None
        self._lines = plain_lines(progress)
        self._title = repr(problem)
        if not is_drawn(progress):
            return
        from rich.console import Console
        from rich.live import Live

        self._live = Live(self._title, console=Console(stderr=True), refresh_per_second=5)

    def __enter__(self) -> "Line":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, history: History) -> None:
        """Puts the last entry of a history on the screen, and the seconds that are left."""
        if (self._live is None and self._lines is None) or not len(history):
            return
        seconds, _, best, mean, beta, share = history._rows[-1]
        left = seconds / max(history.fraction, 1e-9) * (1 - history.fraction)
        feasible = "" if np.isnan(share) else f", feasible {share:.0%}"
        said = f"{self._title}: best {best:.6g}, mean {mean:.6g}{feasible}, beta {beta:.3g}, {left:.0f} s left"
        if self._live is not None:
            self._live.update(said)
        if self._lines is not None:
            self._lines.say(lambda: said, is_last=history.fraction >= 1)
