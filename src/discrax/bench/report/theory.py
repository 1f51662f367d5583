"""Plots beside a theory: efficiency against acceptance, growth with the number of sites, the best exponent."""

import math
from collections.abc import Sequence
from statistics import fmean

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from discrax.bench.plan.rows import Mean, Row
from discrax.bench.report import axes
from discrax.bench.report.axes import Options
from discrax.bench.report.looks import COLOURS, INK, words
from discrax.exact import Scaling, best_exponent

POWERS = {"lbp_unit": 3 / 2, "rwm_unit": 1 / 2}  # of `exact.Scaling`, by the metric that its unit is


def efficiency(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric `y`, the jump distance ("EJD") or the number of sites changed ("scale"), against the acceptance rate.

    One point a run, and beside them what theory expects, where the runs have estimated the unit of `exact.Scaling`
    ("lbp_unit" of paths, "rwm_unit" of walks). Nothing of the curve is fitted to the points.
    """
    y = options.get("y", "EJD")
    rates = {row["cell"]: row["value"] for row in axes.select(rows, "acceptance")}
    units = {row["cell"]: Scaling(row["value"], POWERS[row["metric"]]) for row in rows if row["metric"] in POWERS}
    rows = [row for row in axes.select(rows, y) if row["cell"] in rates]
    if not rows:
        return None
    figure, panels = axes.make_canvas(axes.group_by_panel(rows, options), options)
    for ax, group in panels:
        marked = set()
        for name, members in axes.group_by_hue(group, options).items():
            look = options["palette"][name]
            points = axes.mean_by(members, lambda row: rates[row["cell"]])
            axes.record(options, ax.get_title(), name, points)
            rate, value = np.array([(rate, mean.value) for rate, mean in points.items()]).T
            ax.plot(rate, value, look.marker, color=look.colour, mfc=look.fill, ms=4.5, alpha=0.9, label=name, mew=1.1)
            theory = _mean_scaling([units[row["cell"]] for row in members if row["cell"] in units])
            if theory is not None:
                a = np.linspace(0.05, 0.99, 95)
                expected = theory.jump(a) if y == "EJD" else theory.path_length(a)
                ax.plot(a, expected, color=look.colour, lw=1.2, alpha=0.8, ls="--" if look.is_hollow else "-")
                told = {round(float(at), 2): Mean(float(each)) for at, each in zip(a, expected, strict=True)}
                told = dict(list(told.items())[5::10])
                axes.record(options, ax.get_title(), f"{name}, theory", told)
                marked.add(round(theory.optimum.acceptance, 3))
        for rate in sorted(marked):
            ax.axvline(rate, color=INK, lw=0.8, ls=(0, (4, 3)), alpha=0.6, label=f"{rate:g}, best in theory")
        ax.set_xlim(0, 1)
        if options.get("logy"):
            axes.set_log_axis(ax, "y")
            ax.set_ylim(bottom=min(row["value"] for row in group) / 2)
        else:
            ax.set_ylim(0, 1.5 * max(row["value"] for row in group))  # a theory that is far off leaves the picture
    return axes.finish(figure, options, "acceptance rate", words(y))


def _mean_scaling(found: Sequence[Scaling]) -> Scaling | None:
    """That of the mean unit of some runs; None where there is none."""
    return Scaling(fmean(each.unit for each in found), found[0].power) if found else None


def slopes(rows: Sequence[Row], options: Options) -> Figure | None:
    """Log-log: the metric `y` (default: the tuned scale) against `x`, and the ratio of `efficiency` of two samplers.

    `informed` and `walk` are the two, by the names of the hue; without them there is no ratio.
    """
    x, y, gain = options.get("x", "N"), options.get("y", "scale"), options.get("efficiency", "EJD")
    rows = [row for row in rows if row["value"] > 0]
    tuned = axes.select(rows, y, x)
    if not tuned:
        return None
    panels = axes.group_by_panel(tuned, options)
    pair = (options["informed"], options["walk"]) if "informed" in options and "walk" in options else None
    across, levels = min(len(panels), options.get("across", 3)), 2 if pair else 1
    down = levels * -(-len(panels) // across)
    figure = Figure(figsize=(max(3.9 * across, 5.2), 2.7 * down + 0.3), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for place, (title, group) in enumerate(panels.items()):
        level, column = levels * (place // across), place % across
        ax = grid[level, column]
        ax.set_title(title, fontsize=10, color=INK)
        axes.draw_lines(ax, group, options, lambda row: axes.label_number(row, x), with_slopes=True)
        axes.set_scales(ax, {"logx": True, "logy": True}, xs=[axes.label_number(row, x) for row in group])
        axes.add_legend(ax)
        axes.make_plain(ax)
        if column == 0:
            ax.set_ylabel(options.get("ylabel", words(y)))
        if not pair:
            continue
        ax = grid[level + 1, column]
        if column == 0:
            ax.set_ylabel(f"ratio of {words(gain)}")
        same = [row for row in axes.select(rows, gain, x) if axes.panel_title(row, options) == title]
        by_name = axes.group_by_hue(same, options)
        above, below = (axes.mean_by(by_name.get(name, []), lambda row: axes.label_number(row, x)) for name in pair)
        both = [place for place in above if place in below]
        if both:
            values = [above[place].value / below[place].value for place in both]
            ratios = {place: Mean(value) for place, value in zip(both, values, strict=True)}
            axes.record(options, title, f"{words(gain)}, {pair[0]} / {pair[1]}", ratios)
            label = f"{pair[0]} / {pair[1]}{axes.slope_text(both, values)}"
            ax.plot(both, values, "o-", color=COLOURS[3], lw=1.6, ms=5, label=label)
            axes.set_scales(ax, {"logx": True, "logy": True}, xs=both)
            axes.add_legend(ax)
        else:
            axes.say(ax, f"no {gain} of both\n{pair[0]} and {pair[1]}")
        axes.make_plain(ax)
    for ax in grid[-1]:
        ax.set_xlabel(options.get("xlabel", x))
    for place in range(len(panels), across * (down // levels)):
        for level in range(levels):
            grid[levels * (place // across) + level, place % across].remove()
    axes.recolour(figure)
    return figure


def weights(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric against alpha for several sigma, and the best alpha against r = sigma / sigma0 beside theory:

        alpha(r) = (r - 2 + sqrt(r^2 + 4)) / (2 r)

    `sigma0`, the variance of a site, is a number or a call that computes it from the target; without it there is no
    theory. Nothing of the curve is fitted to the points. A point is the best alpha of a grid; the bar goes to its
    neighbours there, between which the best of all lies if there is one peak.
    """

    x, hue, metric = options.get("x", "alpha"), options.get("by", "sigma"), options.get("metric", "ESS_per_step")
    rows = axes.select(rows, metric, x, hue)
    if not rows:
        return None
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    scales = sorted({axes.label_number(row, hue) for row in rows})
    colours = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.88, len(scales)))
    best = []
    for scale, colour in zip(scales, colours, strict=True):
        some = [row for row in rows if axes.label_number(row, hue) == scale]
        places = axes.mean_by(some, lambda row: axes.label_number(row, x))
        axes.record(options, "", f"{hue} = {scale:g}", places)
        values = [each.value for each in places.values()]
        left.plot(list(places), values, "-", color=colour, lw=1.5, label=f"{scale:g}")
        grid = list(places)
        top = max(places, key=lambda place: places[place].value)
        left.plot([top], [places[top].value], "o", color=colour, ms=6)
        at = grid.index(top)
        best.append((top, grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]))
    axes.set_scales(left, {"logy": True} | options, xs=None)
    left.set_xlabel(options.get("xlabel", x))
    left.set_ylabel(options.get("ylabel", words(metric)))
    looks = {"frameon": False, "fontsize": 8.5, "labelcolor": INK, "loc": "outside right center"}
    legend = figure.legend(*left.get_legend_handles_labels(), title=hue, **looks)
    legend.get_title().set(color=INK, fontsize=8.5)
    finite = [each for each in zip(scales, best, colours, strict=True) if 0 < each[0] < math.inf]
    given = options.get("sigma0")
    sigma0 = float(given() if callable(given) else given) if given is not None else None
    ratios = [scale / (sigma0 or 1.0) for scale, _, _ in finite]
    axes.record(options, f"best {x}", "of the grid", {scale: Mean(float(top)) for scale, (top, *_), _ in finite})
    if sigma0 is not None:
        r = np.logspace(math.log10(min(ratios, default=0.1)) - 0.5, math.log10(max(ratios, default=10)) + 0.5, 200)
        label = f"theory, unfitted: sigma_0 = {sigma0:.3g},\nthe mean variance of a site"
        right.plot(r, best_exponent(r), color=INK, lw=1.2, label=label)
        expected = {scale: Mean(float(best_exponent(scale / sigma0))) for scale, _, _ in finite}
        axes.record(options, f"best {x}", f"theory, sigma_0 = {sigma0:.3g}", expected)
    for ratio, (_, (top, below, above), colour) in zip(ratios, finite, strict=True):
        right.plot([ratio, ratio], [below, above], "-", color=colour, lw=1.0, alpha=0.7)
        right.plot([ratio], [top], "o", color=colour, ms=6)
    axes.set_scales(right, {"logx": True}, xs=None)
    right.set_xlabel(hue if sigma0 is None else f"r = {hue} / sigma_0")
    right.set_ylabel(f"best {x}, of those on the left")
    axes.add_legend(right)
    for ax in (left, right):
        axes.make_plain(ax)
    axes.recolour(figure)
    return figure
