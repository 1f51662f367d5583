"""`discrax demo`: an Ising model, every sampler there is, a table and a picture."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import PRNGKeyArray

from discrax.core.files import check_writable, write_whole
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel
from discrax.core.seeds import key_of
from discrax.core.target import Target
from discrax.diagnostics import autocorrelation, ess
from discrax.samplers import REGISTRY, gibbs, pas_exact
from discrax.sampling import Result, sample
from discrax.targets import Ising

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Row:
    """What one sampler did."""

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
        """The row of the table, in the order of `HEADINGS`."""
        stats = self.result.stats
        return [
            self.name,
            f"{stats['accept_prob'].mean():.3f}",
            f"{stats['jump'].mean():.2f}",
            f"{self.ess / stats['jump'].size:.2g}",
            f"{self.ess / stats['evals'].sum():.2g}",
            f"{self.ess / self.result.seconds:,.0f}",
        ]


_COLUMNS = 7  # of pictures of spins
HEADINGS = ("sampler", "accepted", "jump", "ESS/step", "ESS/evaluation", "ESS/second")


def candidates(target: Target) -> dict[str, str | Kernel]:
    """Every registry row that takes the space, and chromatic Gibbs."""
    rows: dict[str, str | Kernel] = {name: name for name, row in REGISTRY.items() if row.fits(target)}
    rows["pas_exact"] = pas_exact(4.0)
    return rows | {"gibbs, chromatic": gibbs("chromatic")}


def demo(
    side: int = 16,
    coupling: float = 0.3,
    num_chains: int = 16,
    num_warmup: int = 300,
    num_samples: int = 700,
    seed: int = 0,
    out: Path = Path("demo"),
) -> None:
    """Samples an Ising model with every sampler, prints a table and saves a picture.

    Args:
        side: The lattice has side x side spins.
        coupling: The strength of the bonds; 0.4407 is critical.
        num_chains: Chains per sampler.
        num_warmup: Steps of warm-up.
        num_samples: Draws per chain.
        seed: Of the random numbers.
        out: The folder for the picture.
    """
    from rich.console import Console
    from rich.table import Table

    key, path = key_of(seed), check_writable(Path(out) / "ising.png")
    target = Ising.lattice((side, side), coupling=coupling)
    console = Console()
    console.print(
        f"Ising model, {side} x {side} spins, coupling {coupling}; {num_chains} chains, "
        f"{num_warmup} steps of warm-up, {num_samples} draws."
    )
    settings: dict[str, Any] = {"num_chains": num_chains, "num_warmup": num_warmup, "num_samples": num_samples}
    rows, is_complete = sample_with_all(key, target, settings, console)
    if not rows:
        raise KeyboardInterrupt
    table = Table(caption="ESS of the magnetisation, all chains; seconds without compilation, beside two others")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "sampler" else "right")
    for row in rows:
        table.add_row(*row.cells())
    console.print(table)
    draw_picture(rows, coupling, path)
    console.print(f"Picture: {path}")
    if not is_complete:
        raise SystemExit("discrax: interrupted; the samplers that are missing were not begun.")


def sample_with_all(
    key: PRNGKeyArray, target: Target, settings: dict[str, Any], console: "Console"
) -> tuple[list[Row], bool]:
    """A row for each sampler, and whether these are all: after a signal no other sampler is begun."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    samplers = candidates(target)
    # Most of the time goes into tracing, which only one thread can do at a time, and compiling, which several can.
    pool = ThreadPoolExecutor(3)
    with Interrupts() as interrupts, Progress(*columns, console=console) as progress:
        task = progress.add_task("compiling".rjust(17), total=len(samplers))

        def run_one(name: str, sampler: str | Kernel) -> Row | None:
            if interrupts.requested:
                return None
            # An exact path is accepted so often that tuning would make it as long, and as dear, as the model is large.
            adaptation = None if name == "pas_exact" else "auto"
            row = Row(name, sample(key, target, sampler, adaptation=adaptation, progress=False, **settings))
            progress.update(task, description=f"{name:>17}", advance=1)
            return row

        try:
            rows = [row for row in pool.map(run_one, *zip(*samplers.items(), strict=True)) if row is not None]
        finally:  # after a second signal, or an error, nothing more is started
            pool.shutdown(cancel_futures=True)
        progress.update(task, description="done".rjust(17))
    return rows, len(rows) == len(samplers)


def draw_picture(rows: list[Row], coupling: float, path: Path) -> None:
    """The last spins of one chain for each sampler, and the autocorrelation of the magnetisation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(_COLUMNS, len(rows))
    lines = -(-len(rows) // columns)
    figure = plt.figure(figsize=(12, 5.2 + 1.8 * lines), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(lines, 2.6))  # ty: ignore[not-iterable]
    top.suptitle(f"Spins after warm-up and sampling, one chain each (Ising model, coupling {coupling})")
    panels = np.ravel(top.subplots(lines, columns))
    for axes in panels:
        axes.set_axis_off()
    for axes, row in zip(panels, rows, strict=False):
        assert row.result.draws is not None
        axes.imshow(row.result.draws[0, -1], cmap="gray", interpolation="nearest", vmin=0, vmax=1)
        axes.set_title(row.name, fontsize=9)
    axes = bottom.subplots()
    for number, row in enumerate(rows):
        curve = np.nanmean(autocorrelation(row.magnetisation, mean=0.0), axis=0)
        lags = np.arange(1, max(2, len(curve) // 3))
        axes.plot(
            lags, curve[lags], label=row.name, color=f"C{number % 10}", linestyle=("-", "--", ":")[number // 10 % 3]
        )
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(
        xscale="log",
        xlabel="lag (steps)",
        ylabel="autocorrelation",
        title="Autocorrelation of the magnetisation, mean of all chains: lower is better",
        ylim=(-0.15, 1.05),
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=130))
    plt.close(figure)
