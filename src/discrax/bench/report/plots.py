"""Plots by kind. Each takes rows and options and gives a matplotlib figure; none fails for want of rows.

`axes` says which options all kinds know.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from discrax.bench.plan.rows import Mean, Row
from discrax.bench.report import axes
from discrax.bench.report.axes import Options
from discrax.bench.report.looks import COLOURS, INK, name_of, palette, words
from discrax.bench.report.theory import efficiency, slopes, weights


def draw(kind: str, rows: Sequence[Row], options: Mapping[str, Any]) -> Figure:
    """The plot of a kind, or a figure that says what is missing."""
    if kind not in KINDS:
        raise ValueError(f"There is no plot {kind!r}; the kinds are {', '.join(KINDS)}.")
    given = dict(options)
    kept = [row for row in rows if row["status"] == "ok" and row["value"] is not None and _is_wanted(row, given)]
    kept = [row for row in kept if math.isfinite(row["value"])]
    names = [name_of(row["labels"], axes.label_names(given, "hue", axes.HUE)) for row in kept]
    given["palette"] = {**palette(names), **given.get("palette", {})}
    figure = KINDS[kind](kept, given)
    return figure if figure is not None else _nothing(kind, given)


def _is_wanted(row: Row, options: Options) -> bool:
    labels = row["labels"]
    samplers = options.get("samplers")
    if samplers and labels.get("sampler") not in samplers:
        return False
    return all(labels.get(name) == value for name, value in dict(options.get("where", ())).items())


def _nothing(kind: str, options: Options) -> Figure:
    figure = Figure(figsize=(7, 2.2))
    missing = list(options.get("missing", ()))
    said = [f"Nothing to draw ({kind}): no cell with the numbers it needs has finished."]
    if missing:
        said += ["Not run:", *missing[:4]] + ([f"and {len(missing) - 4} more"] if len(missing) > 4 else [])
    figure.text(0.5, 0.5, "\n".join(said), ha="center", va="center", color=INK, fontsize=10, linespacing=1.5)
    return figure


def curve(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric `y` against a numeric label `x`; logx, logy."""
    x, y = options.get("x", "N"), options.get("y", "ESS_per_step")
    rows = axes.select(rows, y, x)
    if not rows:
        return None
    figure, panels = axes.make_canvas(axes.group_by_panel(rows, options), options)
    for ax, group in panels:
        axes.draw_lines(ax, group, options, lambda row: axes.label_number(row, x))
        axes.set_scales(ax, options, xs=[axes.label_number(row, x) for row in group])
    return axes.finish(figure, options, x, words(y))


def errors(rows: Sequence[Row], options: Options) -> Figure | None:
    """Series over seconds or steps, a panel for each of `metrics`, with a band of one standard error."""
    metrics = options.get("metrics") or tuple(dict.fromkeys(row["metric"] for row in rows if row["x"] is not None))
    metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    rows = [row for row in rows if row["metric"] in metrics and row["x"] is not None]
    if not rows:
        return None
    groups = axes.group_by_panel(rows, options)
    panels = {
        f"{title}: {words(metric)}" if title else words(metric): [row for row in group if row["metric"] == metric]
        for title, group in groups.items()
        for metric in metrics
    }
    figure, drawn = axes.make_canvas(panels, options)
    for ax, group in drawn:
        axes.draw_lines(ax, group, options, lambda row: row["x"], most_markers=15)
        if not group:
            axes.say(ax, "nothing measured")
        axes.set_scales(ax, {"logy": True} | options, xs=None)
    return axes.finish(figure, options, "seconds", "error")


_QUARTILES = ("lowest", "lower quartile", "median", "upper quartile", "highest")


def boxes(rows: Sequence[Row], options: Options) -> Figure | None:
    """Boxes over the values of a series (default: ESS per step of each chain), one a sampler."""
    metric = options.get("metric", "ESS_chain")
    rows = [row for row in rows if row["metric"] == metric and row["x"] is not None]
    if not rows:
        return None
    names = list(axes.group_by_hue(rows, options))
    width = max(3.4, 0.55 * len(names) + 1.4)
    figure, panels = axes.make_canvas(axes.group_by_panel(rows, options), options, width, height=3.6)
    for ax, group in panels:
        by_name = axes.group_by_hue(group, options)
        for place, name in enumerate(names):
            values = [row["value"] for row in by_name.get(name, [])]
            if not values:
                continue
            colour = options["palette"][name].colour
            parts = zip(_QUARTILES, np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist(), strict=True)
            axes.record(options, ax.get_title(), name, {part: Mean(at) for part, at in parts})
            drawn = ax.boxplot(values, positions=[place], widths=0.6, patch_artist=True, manage_ticks=False)
            for part in ("whiskers", "caps", "boxes"):
                for artist in drawn[part]:
                    artist.set(color=colour, linewidth=1.2)
            for artist in drawn["boxes"]:
                artist.set(facecolor=colour, alpha=0.55)
            for artist in drawn["medians"]:
                artist.set(color=INK, linewidth=1.4)
            for artist in drawn["fliers"]:
                artist.set(marker=".", markeredgecolor=colour, markersize=4)
        axes.name_ticks(ax, names)
        axes.set_scales(ax, {"logy": True} | options, xs=None)
    axes.finish(figure, options, "", words(metric), legend=False)
    for ax, _ in panels:
        ax.grid(False, axis="x")
    return figure


def heat(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric on the grid of two numeric labels, written into its squares; the best one is framed."""

    x, y, metric = options.get("x", "sigma"), options.get("y", "alpha"), options.get("metric", "ESS_per_step")
    rows = axes.select(rows, metric, x, y)
    if not rows:
        return None
    xs, ys = sorted({axes.label_number(row, x) for row in rows}), sorted({axes.label_number(row, y) for row in rows})
    size = max(4.2, 0.62 * len(xs) + 1.4), max(2.8, 0.36 * len(ys) + 1.0)
    figure, panels = axes.make_canvas(axes.group_by_panel(rows, options), options, *size)
    for ax, group in panels:
        cells = axes.mean_by(group, lambda row: (axes.label_number(row, x), axes.label_number(row, y)))
        for b in ys:
            here = {a: cells[a, b] for a in xs if (a, b) in cells}
            axes.record(options, ax.get_title(), f"{y} = {b:g}", here)
        grid = np.array([[cells[a, b].value if (a, b) in cells else np.nan for a in xs] for b in ys])
        low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
        ax.pcolormesh(np.ma.masked_invalid(grid), cmap="cividis", vmin=low, vmax=high, edgecolors="face", linewidth=0.3)
        for b, a in np.argwhere(np.isfinite(grid)):
            is_dark = (grid[b, a] - low) < 0.5 * (high - low)
            text = f"{grid[b, a]:.3g}"
            ax.text(a + 0.5, b + 0.5, text, ha="center", va="center", fontsize=8, color="white" if is_dark else "black")
        b, a = divmod(int(np.nanargmax(grid)), len(xs))
        ax.add_patch(Rectangle((a, b), 1, 1, fill=False, edgecolor=COLOURS[3], linewidth=2.2))
        ax.set_xticks(np.arange(len(xs)) + 0.5, [f"{value:g}" for value in xs], rotation=45 if len(xs) > 8 else 0)
        ax.set_yticks(np.arange(len(ys)) + 0.5, [f"{value:g}" for value in ys])
    axes.finish(figure, options, x, y, legend=False)
    for ax, _ in panels:
        ax.grid(False)
    return figure


def bars(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric per sampler, in groups named by the panel labels."""
    metric = options.get("metric", "ESS_per_step")
    rows = axes.select(rows, metric)
    if not rows:
        return None
    groups = axes.group_by_panel(rows, options)
    names = list(axes.group_by_hue(rows, options))
    figure = Figure(figsize=(min(max(5.0, 0.24 * len(names) * len(groups) + 2.5), 13), 3.8), layout="constrained")
    ax = figure.subplots()
    is_alone = list(groups) == [""]
    width = 0.84 / len(names)
    lowest = math.inf
    colours: list[str] = []
    for place, name in enumerate(names):
        heights, spots, spreads, short = [], [], [], []
        for spot, (title, group) in enumerate(groups.items()):
            found = axes.mean_by(axes.group_by_hue(group, options).get(name, []), lambda row, at=title: at)
            axes.record(options, "", name, found)
            if found and (found[title].value > 0 or not options.get("logy", True)):
                heights.append(found[title].value)
                spreads.append(found[title].error or 0.0)
                spots.append(place if is_alone else spot + (place - (len(names) - 1) / 2) * width)
                if found[title].times is not None:
                    short.append((spots[-1], heights[-1]))
        look = options["palette"][name]
        hatch = ("", "///", "...", "xxx", "\\\\\\")[colours.count(look.colour) % 5]
        colours.append(look.colour)
        lowest = min([lowest, *heights])
        inside: dict[str, Any] = {
            "color": look.colour,
            "alpha": 0.85,
            "hatch": hatch,
            "edgecolor": "white",
            "linewidth": 0,
        }
        if any(spreads):
            inside |= {"yerr": spreads, "error_kw": {"ecolor": INK, "elinewidth": 0.8}}
        ax.bar(spots, heights, 0.72 if is_alone else 0.92 * width, label=name, **inside)
        axes.mark_short(ax, short)
    if is_alone:
        axes.name_ticks(ax, names)
    else:
        ax.set_xticks(range(len(groups)), [title.replace(" ", "\n") for title in groups])
    has_log = options.get("logy", True) and math.isfinite(lowest)  # without a bar there is nothing to scale
    if has_log:
        ax.set_yscale("log")
        ax.set_ylim(bottom=10 ** math.floor(math.log10(0.9 * lowest)))  # bars that start at a power of ten
    axes.set_scales(ax, {**options, "logy": has_log}, xs=None)
    axes.finish(figure, options, "", words(metric), legend=not is_alone)
    ax.grid(False, axis="x")
    return figure


def pictures(rows: Sequence[Row], options: Options) -> Figure | None:
    """Snapshots of chains as pictures: a line for each sampler, a block of chains for each snapshot.

    Pictures are the numbers of `training.pixels`: the bits of a number are a row of pixels.
    """
    sheets: dict[str, np.ndarray] = {}
    shape: dict[str, int] = {}
    for name, members in axes.group_by_hue(rows, options).items():
        single = {row["metric"]: int(row["value"]) for row in members if row["metric"].startswith("pixels_")}
        lines = sorted((row["x"], int(row["value"])) for row in members if row["metric"] == "pixels")
        if lines:
            shape = shape or single
            bits = np.array([each for _, each in lines], np.int64)
            sheets[name + _standing_still(bits, single)] = _sheet(bits, single)
    if not sheets:
        return None
    sheets = {name: sheet for name, sheet in sheets.items() if sheet.shape == next(iter(sheets.values())).shape}
    picture = np.concatenate(list(sheets.values()))
    across = 10.7 - 0.08 * max(len(line) for name in sheets for line in name.splitlines())  # inches that names leave
    figure = Figure(figsize=(11, across * picture.shape[0] / picture.shape[1] + 0.6), layout="constrained")
    ax = figure.subplots()
    ax.imshow(np.ma.masked_invalid(picture), cmap="gray", vmin=0, vmax=1, interpolation="none")
    ax.set_yticks((np.arange(len(sheets)) + 0.5) * picture.shape[0] / len(sheets), list(sheets))
    steps = [f"{shape['pixels_every'] * (place + 1):,}" for place in range(shape["pixels_snapshots"])]
    ax.set_xticks((np.arange(len(steps)) + 0.5) * picture.shape[1] / len(steps), steps)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(options.get("xlabel", "steps"))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    axes.recolour(figure)
    return figure


def _standing_still(lines: np.ndarray, shape: Mapping[str, int]) -> str:
    """A second line for a sampler's name, where some of its chains are the same picture in all snapshots."""
    snapshots, shown = shape["pixels_snapshots"], shape["pixels_shown"]
    chains = lines.reshape(snapshots, shown, -1)
    count = int((chains == chains[:1]).all(axis=(0, 2)).sum()) if snapshots > 1 else 0
    return f"\n{count} of {shown} never move" if count else ""


def _sheet(lines: np.ndarray, shape: Mapping[str, int]) -> np.ndarray:
    """All pictures of a sampler side by side, with gaps (NaN) between them and wider ones between snapshots."""
    snapshots, shown, height, width = (shape[f"pixels_{name}"] for name in ("snapshots", "shown", "height", "width"))
    across = math.ceil(math.sqrt(shown))
    down = math.ceil(shown / across)
    bits = (lines[:, None] >> np.arange(width)) & 1
    blocks = np.full((snapshots, down * across, height + 1, width + 1), np.nan)
    blocks[:, :shown, :height, :width] = bits.reshape(snapshots, shown, height, width)
    blocks = blocks.reshape(snapshots, down, across, height + 1, width + 1).transpose(0, 1, 3, 2, 4)
    blocks = blocks.reshape(snapshots, down * (height + 1), across * (width + 1))
    blocks = np.pad(blocks, ((0, 0), (2, 2), (2, 2)), constant_values=np.nan)
    return np.concatenate(list(blocks), axis=1)


_DRAW = (curve, efficiency, slopes, errors, boxes, heat, weights, bars, pictures)
KINDS: dict[str, Callable[[Sequence[Row], Options], Figure | None]] = {each.__name__: each for each in _DRAW}
