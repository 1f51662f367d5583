"""`discrax demo`: an Ising model, every sampler there is, a table and a picture."""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from discrax.core.kernel import Kernel
from discrax.diagnostics import autocorrelation, ess
from discrax.samplers import REGISTRY, gibbs
from discrax.sampling import Result, sample
from discrax.targets import Ising


@dataclass(frozen=True)
class Row:
    name: str
    result: Result

    @property
    def magnetisation(self) -> np.ndarray:
        """(chain, draw): the mean spin."""
        assert self.result.draws is not None
        return 2 * self.result.draws.mean(axis=(2, 3)) - 1

    @property
    def ess(self) -> float:
        """Of the magnetisation, summed over chains; without a field its mean is 0."""
        return float(ess(self.magnetisation, mean=0.0).sum())

    def cells(self) -> list[str]:
        summary, steps = self.result.summary(), self.result.num_draws * self.result.num_chains
        return [
            self.name,
            f"{summary.acceptance:.3f}",
            f"{summary.jump:.2f}",
            f"{self.ess / steps:.2g}",
            f"{self.ess / summary.evaluations:.2g}",
            f"{self.ess / summary.seconds:,.0f}",
        ]


HEADINGS = ("sampler", "acceptance", "jump distance", "ESS / step", "ESS / evaluation", "ESS / second")


def candidates() -> dict[str, str | Kernel]:
    """Every registry row, and Gibbs' other scans."""
    rows: dict[str, str | Kernel] = {name: name for name in REGISTRY}
    return rows | {"gibbs, systematic": gibbs("systematic"), "gibbs, chromatic": gibbs("chromatic")}


def run(side: int, coupling: float, num_chains: int, num_warmup: int, num_samples: int, seed: int, out: Path) -> Path:
    """Samples, prints the table and saves the picture; returns its path."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    target = Ising.lattice((side, side), coupling=coupling)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console, rows = Console(), []
    console.print(
        f"Ising model, {side} x {side} spins, coupling {coupling}; {num_chains} chains, "
        f"{num_warmup} steps of warm-up, {num_samples} draws."
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("sampling", total=len(candidates()))
        for name, sampler in candidates().items():
            progress.update(task, description=f"{name:>17}")
            result = sample(
                jax.random.key(seed),
                target,
                sampler,
                num_chains=num_chains,
                num_warmup=num_warmup,
                num_samples=num_samples,
                progress=False,
            )
            rows.append(Row(name, result))
            progress.advance(task)
        progress.update(task, description="done".rjust(17))

    table = Table(caption="ESS of the magnetisation, all chains; seconds without compilation")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "sampler" else "right")
    for row in rows:
        table.add_row(*row.cells())
    console.print(table)
    path = picture(rows, coupling, out)
    console.print(f"Picture: {path}")
    return path


def picture(rows: list[Row], coupling: float, out: Path) -> Path:
    """The last spins of one chain for each sampler, and the autocorrelation of the magnetisation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 6.5), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1, 1.7))  # pyright: ignore[reportGeneralTypeIssues]
    top.suptitle(f"Spins after warm-up and sampling, one chain each (Ising model, coupling {coupling})")
    for axes, row in zip(np.ravel(top.subplots(1, len(rows))), rows, strict=True):
        assert row.result.draws is not None
        axes.imshow(row.result.draws[0, -1], cmap="gray", interpolation="nearest", vmin=0, vmax=1)
        axes.set_title(row.name, fontsize=9)
        axes.set_axis_off()
    axes = bottom.subplots()
    for row in rows:
        curve = np.nanmean(autocorrelation(row.magnetisation, mean=0.0), axis=0)
        lags = np.arange(1, max(2, len(curve) // 3))
        axes.plot(lags, curve[lags], label=row.name)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(
        xscale="log",
        xlabel="lag (steps)",
        ylabel="autocorrelation",
        title="Autocorrelation of the magnetisation, mean of all chains: lower is better",
        ylim=(-0.15, 1.05),
    )
    axes.legend(loc="lower left", fontsize=9)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "ising.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
