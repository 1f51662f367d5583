"""What the plots share: rows in groups, panels, lines with bands, axes, legends.

Options that all kinds know:
    where    labels that a row must have, e.g. (("task", "ising"),)
    hue      labels whose values name a line (default: sampler, weight_fn)
    samplers which values of the label `sampler` are drawn
    panels   labels that make small multiples
    palette  name -> Style, so that figures agree on the looks of a sampler
    missing  names of cells that have not run, told when there is nothing to draw
    points   a list, to which what is drawn is appended: a Point each
    xlabel, ylabel
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from discrax.bench.plan.rows import Mean, Row, group_by, mean_of
from discrax.bench.report.looks import INK, RULE, name_of

Options = dict[str, Any]
HUE = ("sampler", "weight_fn")


class Point(NamedTuple):
    """A number of a figure."""

    panel: str
    line: str
    x: float | str
    y: float
    error: float | None = None  # standard error; None where it is not known
    is_too_short: bool = False


def mean_by(rows: Sequence[Row], place: Callable[[Row], Any]) -> dict[Any, Mean]:
    """The mean of the values at each place, in order."""
    return {key: mean_of(group) for key, group in sorted(group_by(rows, place).items())}


def record(options: Options, panel: str, line: str, places: Mapping[Any, Mean]) -> None:
    """Writes down what is drawn of a line."""
    options.get("points", []).extend(
        Point(panel, line, x, mean.value, mean.error, mean.times is not None) for x, mean in places.items()
    )


def label_number(row: Row, label: str) -> Any:
    """A label as a number; None where it is none."""
    try:
        return float(row["labels"][label])
    except (KeyError, ValueError):
        return None


def select(rows: Sequence[Row], metric: str, *labels: str) -> list[Row]:
    """The single numbers of a metric whose cells have these labels, as numbers."""
    found = [row for row in rows if row["metric"] == metric and row["x"] is None]
    return [row for row in found if all(label_number(row, label) is not None for label in labels)]


def label_names(options: Options, option: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Labels that an option names: one, or several."""
    names = options.get(option, default)
    return (names,) if isinstance(names, str) else tuple(names)


def panel_title(row: Row, options: Options) -> str:
    """What stands above the panel of a row."""
    bare = ("task", "config", "sampler", "weight_fn", "model", "size", "parameter")
    said = [(name, row["labels"].get(name)) for name in label_names(options, "panels")]
    return " ".join(value if name in bare else f"{name}={value}" for name, value in said if value)


def group_by_panel(rows: Sequence[Row], options: Options) -> dict[str, list[Row]]:
    """Rows by the title of their panel, in the order of its numbers and words."""
    ordered = sorted(rows, key=lambda row: _natural(row, options))
    return group_by(ordered, lambda row: panel_title(row, options))


def _natural(row: Row, options: Options) -> tuple:
    found = [(label_number(row, name), row["labels"].get(name) or "") for name in label_names(options, "panels")]
    return tuple((0, number, "") if number is not None else (1, 0.0, text) for number, text in found)


def group_by_hue(rows: Sequence[Row], options: Options) -> dict[str, list[Row]]:
    """Rows by the name of their line, in the order of the palette."""
    hue = label_names(options, "hue", HUE)
    groups = group_by(rows, lambda row: name_of(row["labels"], hue))
    return dict(sorted(groups.items(), key=lambda item: _rank(item[0], options)))


def _rank(name: str, options: Options) -> int:
    """Where a name stands in the palette; what is not in it comes last."""
    order = list(options["palette"])
    return order.index(name) if name in order else len(order)


def make_canvas(
    panels: Mapping[str, list[Row]], options: Options, width: float = 3.9, height: float = 3.1
) -> tuple[Figure, list[tuple[Axes, list[Row]]]]:
    """A figure with a titled panel for each group of rows; sizes are inches of a panel."""
    count = len(panels)
    across = min(count, options.get("across", 3))
    down = -(-count // across)
    size = (max(width * across, 5.2), height * down + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax in axes[count:]:
        ax.remove()
    for ax, title in zip(axes[:count], panels, strict=True):
        ax.set_title(title, fontsize=10, color=INK)
    return figure, list(zip(axes[:count], panels.values(), strict=True))


def draw_lines(
    ax: Axes, rows: Sequence[Row], options: Options, place: Callable[[Row], Any], *,
    most_markers: float = math.inf, with_slopes: bool = False,
) -> None:  # fmt: skip
    """A line of means for each hue, with a band of one standard error; with slopes, those are told instead of it."""
    for name, members in group_by_hue(rows, options).items():
        places, look = mean_by(members, place), options["palette"][name]
        record(options, ax.get_title(), name, places)
        x, y = list(places), [each.value for each in places.values()]
        marker, dash = look.marker if len(places) <= most_markers else "", look.dash
        if options.get("dots"):  # no function of x
            marker, dash = ".", "none"
        ax.plot(
            x, y, linestyle=dash, marker=marker, color=look.colour, mfc=look.fill, mew=1.1, lw=1.6, ms=4.5,
            label=f"{name}{slope_text(x, y) if with_slopes else ''}",
        )  # fmt: skip
        if not with_slopes:
            _draw_band(ax, places, look.colour)
        mark_short(ax, [(at, mean.value) for at, mean in places.items() if mean.times is not None])


def mark_short(ax: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Crosses what comes of chains that are too short."""
    if points:
        ax.plot(*zip(*points, strict=True), "x", color=INK, ms=7, mew=1.2, label="chains too short")


def _draw_band(ax: Axes, places: Mapping[Any, Mean], colour: str) -> None:
    if not any(each.error for each in places.values()):
        return
    # Positive values may stand on a log axis, which ends above 0; others do not.
    bounds = [(each.value, each.value - (each.error or 0.0)) for each in places.values()]
    low = [max(least, value * 1e-3) if value > 0 else least for value, least in bounds]
    high = [2 * value - least for value, least in bounds]
    ax.fill_between(list(places), low, high, color=colour, alpha=0.2, lw=0)


def set_scales(ax: Axes, options: Options, xs: Sequence[float] | None) -> None:
    """Log axes where the options want them, with a tick at each of a few places `xs`."""
    if options.get("logx"):
        set_log_axis(ax, "x")
        places = sorted(set(xs or ()))
        if 1 < len(places) <= 7:
            ax.xaxis.set_major_locator(FixedLocator(places))
            ax.xaxis.set_minor_locator(NullLocator())
    if options.get("logy"):
        set_log_axis(ax, "y")


def set_log_axis(ax: Axes, which: str) -> None:
    """A log axis with plain numbers; the minor ones too where it spans less than a decade or so."""
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
    is_short = low > 0 and high / low < 30
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if is_short else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    return f"{value:g}" if 1e-4 < value < 1e5 else f"1e{math.log10(value):.0f}" if value > 0 else ""


def name_ticks(ax: Axes, names: Sequence[str]) -> None:
    """A name under each of the places 0, 1, ..."""
    ax.set_xticks(
        range(len(names)), names, rotation=40 if len(names) > 3 else 0, ha="right" if len(names) > 3 else "center"
    )
    ax.set_xlim(-0.6, len(names) - 0.4)


def say(ax: Axes, text: str) -> None:
    """A text in the middle of empty axes."""
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, color=INK, fontsize=9)


def add_legend(ax: Axes, **options: Any) -> None:
    """A legend without a frame, if there is anything to name."""
    handles, names = ax.get_legend_handles_labels()
    found = dict(zip(names, handles, strict=True))
    if found:
        ax.legend(list(found.values()), list(found), frameon=False, fontsize=8.5, labelcolor=INK, **options)


def make_plain(ax: Axes) -> None:
    """A grid behind, and no frame at the top and the right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=RULE, lw=0.6)
    ax.set_axisbelow(True)


def recolour(figure: Figure) -> None:
    """Ink for all text and axes; nothing behind them."""
    figure.patch.set_alpha(0)
    for ax in figure.axes:
        ax.patch.set_alpha(0)
        ax.tick_params(colors=INK, which="both", labelsize=8.5)
        ax.xaxis.label.set(color=INK, fontsize=9.5)
        ax.yaxis.label.set(color=INK, fontsize=9.5)
        for spine in ax.spines.values():
            spine.set(color=INK, linewidth=0.8)
        legend = ax.get_legend()
        if legend is not None:
            legend.get_title().set(color=INK, fontsize=8.5)


def finish(figure: Figure, options: Options, xlabel: str, ylabel: str, legend: bool = True) -> Figure:
    """The figure with labels on its outer axes (those of the options first), plain axes, and one legend below."""
    axes, across = figure.axes, min(len(figure.axes), options.get("across", 3))
    for place, ax in enumerate(axes):
        if place + across >= len(axes):
            ax.set_xlabel(options.get("xlabel", xlabel))
        if place % across == 0:
            ax.set_ylabel(options.get("ylabel", ylabel))
        make_plain(ax)
    found: dict[str, Any] = {}
    for ax in axes if legend else ():
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        order = sorted(found, key=lambda name: _rank(name, options))
        per_line = max(1, int(figure.get_figwidth() * 9 // (max(map(len, order)) + 6)))
        figure.legend(
            [found[name] for name in order], order, loc="outside lower center", ncols=min(per_line, len(order)),
            frameon=False, fontsize=8.5, labelcolor=INK,
        )  # fmt: skip
    recolour(figure)
    return figure


def slope_text(x: Sequence[float], y: Sequence[float]) -> str:
    """The least-squares slope of log y on log x, as text for a legend."""
    if len(x) < 2:
        return ""
    return f" (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:.2f})"
