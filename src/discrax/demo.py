"""`discrax demo`: six samplers on one Ising model, a table and a picture; `--all` has every sampler there is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from discrax.voice import Voice

STORY = {  # the six, and what a step of each does
    "rwm": "flips sites at random",
    "gibbs": "redraws one site",
    "gwg": "flips sites chosen by gradients",
    "pas": "flips a path of distinct sites",
    "dmala": "moves all sites at once",
    "dlmc": "moves all sites, for a time",
}
HEADINGS = ("sampler", "accepted", "jump", "ESS/step", "ESS/evaluation", "ESS/second")
NEXT = """What to run next:
  discrax demo --all                 every sampler, on the same model
  discrax samplers                   what each of them is, and which spaces it takes
  discrax solve --help               cuts, independent sets, cliques, QUBOs and formulas from files
  discrax train --out run            an energy model of handwritten digits, which learns in minutes
  discrax bench list                 the papers' experiments, our numbers beside theirs
"""
_COLUMNS = 7  # of pictures of spins, at most
# Okabe and Ito's colours, which all eyes can tell apart.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7")


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

    def numbers(self) -> dict[str, Any]:
        """In the order of `HEADINGS`."""
        stats = self.result.stats
        found = (stats["accept_prob"].mean(), stats["jump"].mean(), self.ess / stats["jump"].size)
        found += (self.ess / stats["evals"].sum(), self.ess / self.result.seconds)
        return dict(zip(HEADINGS, (self.name, *map(float, found)), strict=True))

    def cells(self) -> list[str]:
        """The row of the table."""
        name, *numbers = self.numbers().values()
        forms = (".3f", ".2f", ".2g", ".2g", ",.0f")
        return [name, *(format(number, form) for number, form in zip(numbers, forms, strict=True))]


def candidates(target: Target) -> dict[str, str | Kernel]:
    """Every registry row that takes the space, and chromatic Gibbs."""
    rows: dict[str, str | Kernel] = {name: name for name, row in REGISTRY.items() if row.fits(target)}
    rows["pas_exact"] = pas_exact(4.0)
    return rows | {"gibbs, chromatic": gibbs("chromatic")}


def demo(
    all: bool = False,
    side: int = 16,
    coupling: float = 0.3,
    num_chains: int = 16,
    num_warmup: int = 300,
    num_samples: int = 700,
    seed: int = 0,
    out: Path = Path("demo"),
    voice: Voice = Voice(),  # noqa: B008
) -> None:
    """Samples an Ising model with six samplers, prints a table and saves a picture.

    Args:
        all: Every sampler there is, in a few minutes.
        side: The lattice has side x side spins.
        coupling: The strength of the bonds; 0.4407 is critical.
        num_chains: Chains per sampler.
        num_warmup: Steps of warm-up.
        num_samples: Draws per chain.
        seed: Of the random numbers.
        out: The folder for the picture.
        voice: What is printed.
    """
    key, path = key_of(seed), check_writable(Path(out) / "ising.png")
    target = Ising.lattice((side, side), coupling=coupling)
    samplers = candidates(target) if all else dict.fromkeys(STORY)
    voice.say(
        f"{len(samplers)} samplers draw from one Ising model: {side} x {side} spins, coupling {coupling}; {num_chains} "
        f"chains, {num_warmup} steps of warm-up, in which each is tuned, and {num_samples} draws."
    )
    settings: dict[str, Any] = {"num_chains": num_chains, "num_warmup": num_warmup, "num_samples": num_samples}
    samplers = {name: name if kernel is None else kernel for name, kernel in samplers.items()}
    rows = sample_with_all(key, target, samplers, settings, voice)
    if not rows:
        raise KeyboardInterrupt
    _tell(rows, path, voice)
    draw_picture(rows, coupling, path)
    voice.say(f"Picture: {path}")
    if len(rows) < len(samplers):
        raise SystemExit("discrax: interrupted; the samplers that are missing were not begun.")
    voice.say("" if all else f"\n{NEXT}")


def _tell(rows: list[Row], path: Path, voice: Voice) -> None:
    """The table, what it says, or both as JSON."""
    voice.give({"samplers": [row.numbers() for row in rows], "picture": str(path)})
    caption = "ESS of the magnetisation, all chains; seconds without compilation, beside two others"
    voice.show(HEADINGS, [row.cells() for row in rows], caption=caption)
    best, worst = max(rows, key=lambda row: row.ess), min(rows, key=lambda row: row.ess)
    if best.ess > 1.5 * worst.ess:
        voice.say(
            f"Of as many draws, those of {best.name} are worth {best.ess / worst.ess:.0f} times those of {worst.name}: "
            "a good sampler forgets where it was."
        )


def sample_with_all(
    key: PRNGKeyArray, target: Target, samplers: dict[str, Any], settings: dict[str, Any], voice: Voice
) -> list[Row]:
    """A row for each sampler; after a signal no other sampler is begun."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Most of the time goes into tracing, which only one thread can do at a time, and compiling, which several can.
    pool = ThreadPoolExecutor(3)
    bar = Progress(*columns, console=Console(stderr=True), disable=voice.quiet)
    with Interrupts() as interrupts, bar as progress:
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
    return rows


def draw_picture(rows: list[Row], coupling: float, path: Path) -> None:
    """The last spins of one chain for each sampler, and the autocorrelation of the magnetisation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(_COLUMNS, len(rows))
    lines = -(-len(rows) // columns)
    figure = plt.figure(figsize=(12, 5.2 + 1.8 * lines), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(lines, 2.6))
    top.suptitle(f"Spins after warm-up and sampling, one chain each (Ising model, coupling {coupling})")
    panels = np.ravel(top.subplots(lines, columns))
    styles = [_style(number, len(rows)) for number in range(len(rows))]
    for axes in panels:
        axes.set_axis_off()
    for axes, row, style in zip(panels, rows, styles, strict=False):
        assert row.result.draws is not None
        axes.imshow(row.result.draws[0, -1], cmap="gray", interpolation="nearest", vmin=0, vmax=1)
        axes.set_title(row.name, fontsize=11 if len(rows) <= len(STORY) else 9, color=style["color"])
    _draw_autocorrelations(bottom.subplots(), rows, styles)
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=130))
    plt.close(figure)


def _style(number: int, count: int) -> dict[str, Any]:
    """The colour, the dashes and the mark of a curve: of six a colour each, of more a mark each beside it."""
    if count <= len(_COLOURS):
        return {"color": _COLOURS[number], "linewidth": 2.2}
    marks = "osv^D*X<>pP"
    colour = _COLOURS[number % len(_COLOURS)]
    return {"color": colour, "marker": marks[number // len(_COLOURS) + 3 * (number % 3)], "markersize": 5}


def _draw_autocorrelations(axes: Any, rows: list[Row], styles: list[dict[str, Any]]) -> None:
    """The legend has the curves in the order in which they lie, the slowest on top."""
    curves = [np.nanmean(autocorrelation(row.magnetisation, mean=0.0), axis=0) for row in rows]
    lags = np.arange(1, max(2, len(curves[0]) // 3))
    marked = np.unique(np.geomspace(1, len(lags), 12).astype(int) - 1).tolist()
    for each in np.argsort([-curve[lags].sum() for curve in curves], kind="stable"):
        about = STORY.get(rows[each].name) if len(rows) <= len(STORY) else None
        label = rows[each].name if about is None else f"{rows[each].name}: {about}"
        axes.plot(lags, curves[each][lags], label=label, markevery=marked, **styles[each])
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(
        xscale="log",
        xlabel="lag (steps)",
        ylabel="autocorrelation",
        title="How long a sampler remembers: autocorrelation of the magnetisation, mean of all chains; lower is better",
        ylim=(-0.15, 1.05),
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=10 if len(rows) <= len(STORY) else 9)
