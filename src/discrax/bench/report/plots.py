"""Plots by kind. Each takes rows and options and gives a matplotlib figure; none fails for want of rows.

Options that all kinds know:
    where    labels that a row must have, e.g. (("task", "ising"),)
    hue      labels whose values name a line (default: sampler, weight_fn)
    samplers which values of the label `sampler` are drawn
    panels   labels that make small multiples
    palette  name -> Style, so that figures agree on the looks of a sampler
    missing  names of cells that have not run, told when there is nothing to draw
    xlabel, ylabel
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from discrax.bench.plan.rows import Row, standard_error

Options = dict[str, Any]

# Text, axes and grid lines have colours of their own, which a page can exchange for those of its scheme.
INK, RULE = "#1c1d21", "#d9dade"
# Okabe and Ito's colours that are seen on white and on black, and two more.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", ":", "-.")
# A family of samplers keeps its colour in every report.
_FAMILIES = {
    **dict.fromkeys(("LBP", "PAS", "AB-1ST"), 0),
    **dict.fromkeys(("GWG", "ORDINAL-GWG", "AB-SHIFT"), 1),
    **dict.fromkeys(("AVG", "DLMC", "AB-MAX"), 2),
    **dict.fromkeys(("PAVG", "DMALA", "AB-TRACE"), 3),
    **dict.fromkeys(("NCG", "DLP-TRACE", "DLMCF"), 4),
    **dict.fromkeys(("GIBBS", "BLOCK-GIBBS", "BG"), 5),
    **dict.fromkeys(("RWM", "RW", "MH-UNIFORM"), 6),
    **dict.fromkeys(("DLP", "LB", "HAMMING-BALL", "HB"), 7),
}
_RATES = {"lbp": 0.574, "rwm": 0.234}
_WORDS = {
    "ESS_per_step": "ESS per step",
    "ESS_n": "ESS per 10,000 queries",
    "ESS_t": "ESS per second",
    "ESS_all_t": "ESS per second, all chains",
    "ESS_chain": "ESS per step",
    "ESS_chain_t": "ESS per second",
    "EJD": "jump distance (EJD)",
    "time_s": "seconds",
}


@dataclass(frozen=True)
class Style:
    colour: str
    marker: str = "o"
    dash: str = "-"
    is_hollow: bool = False

    @property
    def fill(self) -> str:
        return "none" if self.is_hollow else self.colour


def palette(names: Iterable[str]) -> dict[str, Style]:
    """A look for each name: known families keep their colour, others take free ones; no two names look the same."""
    styles: dict[str, Style] = {}
    names = list(dict.fromkeys(names))
    slots = {name: _FAMILIES.get(_family(name)) for name in names}
    others = sorted({_family(name) for name in names if slots[name] is None})
    used = {slot for slot in slots.values() if slot is not None}
    free = [slot for slot in range(len(COLOURS)) if slot not in used] or list(range(len(COLOURS)))
    given = {family: free[place % len(free)] for place, family in enumerate(others)}
    for name in names:
        slot = slots[name]
        slot = given[_family(name)] if slot is None else slot
        is_hollow = "t/(t+1)" in name
        looks = (Style(COLOURS[slot], marker, dash, is_hollow) for marker, dash in _looks(name))
        taken = set(styles.values())
        styles[name] = next((look for look in looks if look not in taken), Style(COLOURS[slot]))
    return styles


def _looks(name: str) -> Iterable[tuple[str, str]]:
    """Best of a grid or search dashed, one site dotted, the weight t/(t+1) square; then whatever is free."""
    sampler = name.split(" ")[0]
    is_best = sampler.endswith("-search") or _is_prefixed(sampler, "G")
    dash = ":" if re.fullmatch(r"[A-Za-z]+-1", sampler) else "--" if is_best else "-"
    marker = "s" if "t/(t+1)" in name else "o"
    return [(marker, dash), *((marker, dash) for dash in DASHES for marker in MARKERS)]


def _family(name: str) -> str:
    name = re.sub(r"(-\d+|-SEARCH)+$", "", name.split(" ")[0].upper().replace("_", "-"))  # HB-10-1 is of the family HB
    return name[1:] if name[1:] in _FAMILIES and name not in _FAMILIES else name


def _is_prefixed(sampler: str, letter: str) -> bool:
    return sampler.startswith(letter) and sampler.upper() not in _FAMILIES and sampler[1:].upper() in _FAMILIES


def name_of(labels: Mapping[str, str], hue: Sequence[str]) -> str:
    return " ".join(labels[name] for name in hue if labels.get(name)) or "-"


def words(metric: str) -> str:
    return _WORDS.get(metric, metric.replace("_", " "))


def draw(kind: str, rows: Sequence[Row], options: Mapping[str, Any]) -> Figure:
    """The plot of a kind, or a figure that says what is missing."""
    if kind not in KINDS:
        raise ValueError(f"There is no plot {kind!r}; the kinds are {', '.join(KINDS)}.")
    given = dict(options)
    kept = [row for row in rows if row["status"] == "ok" and row["value"] is not None and _is_wanted(row, given)]
    kept = [row for row in kept if math.isfinite(row["value"])]
    names = [name_of(row["labels"], _hue(given)) for row in kept]
    given["palette"] = {**palette(names), **given.get("palette", {})}
    figure = KINDS[kind](kept, given)
    return figure if figure is not None else _nothing(kind, given)


def _is_wanted(row: Row, options: Options) -> bool:
    labels = row["labels"]
    samplers = options.get("samplers")
    if samplers and labels.get("sampler") not in samplers:
        return False
    return all(labels.get(name) == value for name, value in dict(options.get("where", ())).items())


def _hue(options: Options) -> tuple[str, ...]:
    hue = options.get("hue", ("sampler", "weight_fn"))
    return (hue,) if isinstance(hue, str) else tuple(hue)


def _nothing(kind: str, options: Options) -> Figure:
    figure = Figure(figsize=(7, 2.2))
    missing = list(options.get("missing", ()))
    said = [f"Nothing to draw ({kind}): no cell with the numbers it needs has finished."]
    if missing:
        said += ["Not run:", *missing[:4]] + ([f"and {len(missing) - 4} more"] if len(missing) > 4 else [])
    figure.text(0.5, 0.5, "\n".join(said), ha="center", va="center", color=INK, fontsize=10, linespacing=1.5)
    return figure


# --- The kinds -------------------------------------------------------------------------------------------------------


def curve(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric `y` against a numeric label `x`; logx, logy."""
    x, y = options.get("x", "N"), options.get("y", "ESS_per_step")
    rows = [row for row in rows if row["metric"] == y and row["x"] is None and _number(row, x) is not None]
    if not rows:
        return None
    panels = _panels(rows, options)
    figure, axes = _canvas(panels, options)
    for ax, group in zip(axes, panels.values(), strict=True):
        for name, members in _by_hue(group, options).items():
            places = _mean_by(members, lambda row: _number(row, x))
            _line(ax, list(places), [each.value for each in places.values()], name, options)
            _band(ax, places, name, options)
        _scales(ax, options, xs=[_number(row, x) for row in group])
    return _finish(figure, axes, options, options.get("xlabel", x), options.get("ylabel", words(y)))


def efficiency(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric `y` against the acceptance rate, one point a run; `theory`: "lbp", "rwm", or (sampler, theory) pairs;
    `optimum`: a rate to mark, besides that of the theory.

    lbp: a = 2 Phi(-l^{3/2} / 2), EJD = a l; best at a = 0.574.   rwm: a = 2 Phi(-sqrt(z) / 2), EJD = a z; at 0.234.
    The curve is scaled so that its maximum is that of a cubic through the points.
    """
    y = options.get("y", "EJD")
    rates = {row["cell"]: row["value"] for row in rows if row["metric"] == "acceptance" and row["x"] is None}
    rows = [row for row in rows if row["metric"] == y and row["x"] is None and row["cell"] in rates]
    if not rows:
        return None
    panels = _panels(rows, options)
    figure, axes = _canvas(panels, options)
    for ax, group in zip(axes, panels.values(), strict=True):
        drawn: set[float] = set()
        for name, members in _by_hue(group, options).items():
            look = options["palette"][name]
            points = sorted((rates[row["cell"]], row["value"]) for row in members)
            rate, value = np.array(points).T
            ax.plot(rate, value, look.marker, color=look.colour, mfc=look.fill, ms=4.5, alpha=0.9, label=name, mew=1.1)
            theory = _theory_of(options, members[0]["labels"].get("sampler", ""))
            if theory:
                a = np.linspace(0.004, 0.996, 200)
                shape = expected(theory, a)
                ax.plot(
                    a,
                    shape * _smooth_maximum(rate, value) / shape.max(),
                    color=look.colour,
                    lw=1.2,
                    alpha=0.8,
                    ls="--" if look.is_hollow else "-",
                )
                drawn.add(_RATES[theory])
        drawn |= {float(options["optimum"])} if "optimum" in options else set()
        for rate in sorted(drawn):
            ax.axvline(rate, color=INK, lw=0.8, ls=(0, (4, 3)), alpha=0.6, label=f"{rate:g}, best in theory")
        ax.set_xlim(0, 1)
        if options.get("logy"):
            _log_axis(ax, "y")
            low = min(row["value"] for row in group)
            ax.set_ylim(bottom=low / 2)
        else:
            ax.set_ylim(bottom=0)
    return _finish(figure, axes, options, options.get("xlabel", "acceptance rate"), options.get("ylabel", words(y)))


def expected(theory: str, rate: np.ndarray) -> np.ndarray:
    """The efficiency that theory expects at an acceptance rate, up to a factor."""
    if theory not in _RATES:
        raise ValueError(f"A theory is one of {', '.join(_RATES)}, but got {theory!r}.")
    depth = np.array([-2 * NormalDist().inv_cdf(a / 2) for a in rate])  # l^{3/2}, or sqrt(z)
    return rate * depth ** (2 / 3 if theory == "lbp" else 2)


def slopes(rows: Sequence[Row], options: Options) -> Figure | None:
    """Log-log: the metric `y` (default: the tuned scale) against `x`, and the ratio of `efficiency` of two samplers.

    `informed` and `walk` are the two, by the names of the hue; without them there is no ratio.
    """
    x, y, gain = options.get("x", "N"), options.get("y", "scale"), options.get("efficiency", "EJD")
    rows = [row for row in rows if row["x"] is None and _number(row, x) is not None and row["value"] > 0]
    tuned = [row for row in rows if row["metric"] == y]
    if not tuned:
        return None
    panels = _panels(tuned, options)
    pair = (options["informed"], options["walk"]) if "informed" in options and "walk" in options else None
    across, levels = min(len(panels), options.get("across", 3)), 2 if pair else 1
    down = levels * -(-len(panels) // across)
    figure = Figure(figsize=(max(3.9 * across, 5.2), 2.7 * down + 0.3), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for place, (title, group) in enumerate(panels.items()):
        level, column = levels * (place // across), place % across
        ax = axes[level, column]
        ax.set_title(title, fontsize=10, color=INK)
        for name, members in _by_hue(group, options).items():
            places = _mean_by(members, lambda row: _number(row, x))
            values = [each.value for each in places.values()]
            _line(ax, list(places), values, name, options, label=f"{name}{_slope(list(places), values)}")
        _scales(ax, {"logx": True, "logy": True}, xs=[_number(row, x) for row in group])
        _legend(ax)
        _plain(ax)
        if column == 0:
            ax.set_ylabel(options.get("ylabel", words(y)))
        if not pair:
            continue
        ax = axes[level + 1, column]
        if column == 0:
            ax.set_ylabel(f"ratio of {words(gain)}")
        same = [row for row in rows if row["metric"] == gain and _title(row, options) == title]
        by_name = _by_hue(same, options)
        above, below = (_mean_by(by_name.get(name, []), lambda row: _number(row, x)) for name in pair)
        both = [place for place in above if place in below]
        if both:
            values = [above[place].value / below[place].value for place in both]
            label = f"{pair[0]} / {pair[1]}{_slope(both, values)}"
            ax.plot(both, values, "o-", color=COLOURS[3], lw=1.6, ms=5, label=label)
            _scales(ax, {"logx": True, "logy": True}, xs=both)
            _legend(ax)
        else:
            _say(ax, f"no {gain} of both\n{pair[0]} and {pair[1]}")
        _plain(ax)
    for ax in axes[-1]:
        ax.set_xlabel(options.get("xlabel", x))
    for place in range(len(panels), across * (down // levels)):
        for level in range(levels):
            axes[levels * (place // across) + level, place % across].remove()
    _recolour(figure)
    return figure


def errors(rows: Sequence[Row], options: Options) -> Figure | None:
    """Series over seconds or steps, a panel for each of `metrics`, with a band of one standard error."""
    metrics = options.get("metrics") or tuple(dict.fromkeys(row["metric"] for row in rows if row["x"] is not None))
    metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    rows = [row for row in rows if row["metric"] in metrics and row["x"] is not None]
    if not rows:
        return None
    groups = _panels(rows, options)
    panels = {
        f"{title}: {words(metric)}" if title else words(metric): [row for row in group if row["metric"] == metric]
        for title, group in groups.items()
        for metric in metrics
    }
    figure, axes = _canvas(panels, options)
    for ax, group in zip(axes, panels.values(), strict=True):
        for name, members in _by_hue(group, options).items():
            places = _mean_by(members, lambda row: row["x"])
            values = [each.value for each in places.values()]
            _line(ax, list(places), values, name, options, marker=len(places) <= 15)
            _band(ax, places, name, options)
        if not group:
            _say(ax, "nothing measured")
        _scales(ax, {"logy": True} | options, xs=None)
    return _finish(figure, axes, options, options.get("xlabel", "seconds"), options.get("ylabel", "error"))


def boxes(rows: Sequence[Row], options: Options) -> Figure | None:
    """Boxes over the values of a series (default: ESS per step of each chain), one a sampler."""
    metric = options.get("metric", "ESS_chain")
    rows = [row for row in rows if row["metric"] == metric and row["x"] is not None]
    if not rows:
        return None
    panels = _panels(rows, options)
    names = list(_by_hue(rows, options))
    figure, axes = _canvas(panels, options, width=max(3.4, 0.55 * len(names) + 1.4), height=3.6)
    for ax, group in zip(axes, panels.values(), strict=True):
        by_name = _by_hue(group, options)
        for place, name in enumerate(names):
            values = [row["value"] for row in by_name.get(name, [])]
            if not values:
                continue
            colour = options["palette"][name].colour
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
        _named_ticks(ax, names)
        _scales(ax, {"logy": True} | options, xs=None)
    figure = _finish(figure, axes, options, "", options.get("ylabel", words(metric)), legend=False)
    for ax in axes:
        ax.grid(False, axis="x")
    return figure


def heat(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric on the grid of two numeric labels, written into its squares; the best one is framed."""
    from matplotlib.patches import Rectangle

    x, y, metric = options.get("x", "sigma"), options.get("y", "alpha"), options.get("metric", "ESS_per_step")
    rows = [row for row in rows if row["metric"] == metric and row["x"] is None]
    rows = [row for row in rows if _number(row, x) is not None and _number(row, y) is not None]
    if not rows:
        return None
    panels = _panels(rows, options)
    xs, ys = sorted({_number(row, x) for row in rows}), sorted({_number(row, y) for row in rows})
    size = max(4.2, 0.62 * len(xs) + 1.4), max(2.8, 0.36 * len(ys) + 1.0)
    figure, axes = _canvas(panels, options, *size)
    for ax, group in zip(axes, panels.values(), strict=True):
        cells = _mean_by(group, lambda row: (_number(row, x), _number(row, y)))
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
    figure = _finish(figure, axes, options, options.get("xlabel", x), options.get("ylabel", y), legend=False)
    for ax in axes:
        ax.grid(False)
    return figure


def weights(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric against alpha for several sigma, and the best alpha against r = sigma / sigma0 beside theory:

        alpha(r) = (r - 2 + sqrt(r^2 + 4)) / (2 r)

    `sigma0` is fitted to the best alphas where it is not given.
    """
    import matplotlib

    x, hue, metric = options.get("x", "alpha"), options.get("by", "sigma"), options.get("metric", "ESS_per_step")
    rows = [row for row in rows if row["metric"] == metric and row["x"] is None]
    rows = [row for row in rows if _number(row, x) is not None and _number(row, hue) is not None]
    if not rows:
        return None
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    scales = sorted({_number(row, hue) for row in rows})
    colours = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.88, len(scales)))
    best = []
    for scale, colour in zip(scales, colours, strict=True):
        places = _mean_by([row for row in rows if _number(row, hue) == scale], lambda row: _number(row, x))
        values = [each.value for each in places.values()]
        left.plot(list(places), values, "-", color=colour, lw=1.5, label=f"{scale:g}")
        top = max(places, key=lambda place: places[place].value)
        left.plot([top], [places[top].value], "o", color=colour, ms=6)
        best.append(top)
    _scales(left, {"logy": True} | options, xs=None)
    left.set_xlabel(options.get("xlabel", x))
    left.set_ylabel(options.get("ylabel", words(metric)))
    handles, names = left.get_legend_handles_labels()
    figure.legend(
        handles, names, title=hue, loc="outside right center", frameon=False, fontsize=8.5, labelcolor=INK
    ).get_title().set(color=INK, fontsize=8.5)
    finite = [(scale, top, colour) for scale, top, colour in zip(scales, best, colours, strict=True) if scale > 0]
    finite = [each for each in finite if math.isfinite(each[0])]
    sigma0 = options.get("sigma0") or fit_sigma0([each[0] for each in finite], [each[1] for each in finite])
    ratios = [scale / sigma0 for scale, _, _ in finite]
    r = np.logspace(math.log10(min(ratios, default=0.1)) - 0.5, math.log10(max(ratios, default=10)) + 0.5, 200)
    right.plot(r, best_exponent(r), color=INK, lw=1.2, label="theory")
    for ratio, (_, top, colour) in zip(ratios, finite, strict=True):
        right.plot([ratio], [top], "o", color=colour, ms=6)
    _scales(right, {"logx": True}, xs=None)
    right.set_xlabel(f"r = {hue} / {sigma0:.3g}")
    right.set_ylabel(f"best {x}")
    _legend(right)
    for ax in (left, right):
        _plain(ax)
    _recolour(figure)
    return figure


def best_exponent(r: np.ndarray) -> np.ndarray:
    """alpha(r) = (r - 2 + sqrt(r^2 + 4)) / (2 r), written so that it keeps its digits for small r."""
    return 0.5 + 0.5 * r / (np.sqrt(r**2 + 4) + 2)


def fit_sigma0(sigma: Sequence[float], alpha: Sequence[float]) -> float:
    """The sigma0 whose curve is nearest to the best exponents, by least squares on a fine grid."""
    if not sigma:
        return 1.0
    candidates = np.logspace(math.log10(min(sigma)) - 2, math.log10(max(sigma)) + 2, 801)
    misfit = (best_exponent(np.array(sigma)[None] / candidates[:, None]) - np.array(alpha)[None]) ** 2
    return float(candidates[np.argmin(misfit.sum(1))])


def bars(rows: Sequence[Row], options: Options) -> Figure | None:
    """A metric per sampler, in groups named by the panel labels."""
    metric = options.get("metric", "ESS_per_step")
    rows = [row for row in rows if row["metric"] == metric and row["x"] is None]
    if not rows:
        return None
    groups = _panels(rows, options)
    names = list(_by_hue(rows, options))
    figure = Figure(figsize=(min(max(5.0, 0.24 * len(names) * len(groups) + 2.5), 13), 3.8), layout="constrained")
    ax = figure.subplots()
    is_alone = list(groups) == [""]
    width = 0.84 / len(names)
    lowest = math.inf
    colours: list[str] = []
    for place, name in enumerate(names):
        heights, spots, spreads = [], [], []
        for number, group in enumerate(groups.values()):
            found = _mean_by(_by_hue(group, options).get(name, []), lambda row: 0)
            if found and (found[0].value > 0 or not options.get("logy", True)):
                heights.append(found[0].value)
                spreads.append(found[0].error)
                spots.append(place if is_alone else number + (place - (len(names) - 1) / 2) * width)
        look = options["palette"][name]
        hatch = ("", "///", "...", "xxx", "\\\\\\")[colours.count(look.colour) % 5]
        colours.append(look.colour)
        lowest = min([lowest, *heights])
        ax.bar(
            spots,
            heights,
            0.72 if is_alone else 0.92 * width,
            yerr=spreads if any(spreads) else None,
            error_kw={"ecolor": INK, "elinewidth": 0.8},
            color=look.colour,
            alpha=0.85,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=name,
        )
    if is_alone:
        _named_ticks(ax, names)
    else:
        ax.set_xticks(range(len(groups)), [title.replace(" ", "\n") for title in groups])
    if options.get("logy", True) and math.isfinite(lowest):
        ax.set_yscale("log")
        ax.set_ylim(bottom=10 ** math.floor(math.log10(0.9 * lowest)))  # bars that start at a power of ten
    _scales(ax, {"logy": True} | options, xs=None)
    ylabel = options.get("ylabel", words(metric))
    figure = _finish(figure, [ax], options, options.get("xlabel", ""), ylabel, legend=not is_alone)
    ax.grid(False, axis="x")
    return figure


def pictures(rows: Sequence[Row], options: Options) -> Figure | None:
    """Snapshots of chains as pictures: a line for each sampler, a block of chains for each snapshot.

    Pictures are the numbers of `training.pixels`: the bits of a number are a row of pixels.
    """
    sheets: dict[str, np.ndarray] = {}
    shape: dict[str, int] = {}
    for name, members in _by_hue(rows, options).items():
        single = {row["metric"]: int(row["value"]) for row in members if row["metric"].startswith("pixels_")}
        lines = sorted((row["x"], int(row["value"])) for row in members if row["metric"] == "pixels")
        if lines:
            shape = shape or single
            sheets[name] = _sheet(np.array([bits for _, bits in lines], np.int64), single)
    if not sheets:
        return None
    sheets = {name: sheet for name, sheet in sheets.items() if sheet.shape == next(iter(sheets.values())).shape}
    picture = np.concatenate(list(sheets.values()))
    figure = Figure(figsize=(11, 11 * picture.shape[0] / picture.shape[1] + 0.6), layout="constrained")
    ax = figure.subplots()
    ax.imshow(np.ma.masked_invalid(picture), cmap="gray", vmin=0, vmax=1, interpolation="none")
    ax.set_yticks((np.arange(len(sheets)) + 0.5) * picture.shape[0] / len(sheets), list(sheets))
    steps = [f"{shape['pixels_every'] * (place + 1):,}" for place in range(shape["pixels_snapshots"])]
    ax.set_xticks((np.arange(len(steps)) + 0.5) * picture.shape[1] / len(steps), steps)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("steps")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    _recolour(figure)
    return figure


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


KINDS: dict[str, Callable[[Sequence[Row], Options], Figure | None]] = {
    "curve": curve,
    "efficiency": efficiency,
    "slopes": slopes,
    "errors": errors,
    "boxes": boxes,
    "heat": heat,
    "weights": weights,
    "bars": bars,
    "pictures": pictures,
}


# --- What they share -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mean:
    value: float
    error: float  # standard error; 0 where it is not known


def _mean_by(rows: Sequence[Row], place: Callable[[Row], Any]) -> dict[Any, Mean]:
    """The mean of the values at each place, in order."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(place(row), []).append(row)
    return {
        key: Mean(fmean(row["value"] for row in group), math.hypot(*map(standard_error, group)) / len(group))
        for key, group in sorted(groups.items())
    }


def _number(row: Row, label: str) -> Any:
    """A label as a number; None where it is none."""
    try:
        return float(row["labels"][label])
    except (KeyError, ValueError):
        return None


def _title(row: Row, options: Options) -> str:
    names = options.get("panels", ())
    names = (names,) if isinstance(names, str) else names
    bare = ("task", "config", "sampler", "weight_fn", "model", "size", "parameter")
    said = [(name, row["labels"].get(name)) for name in names]
    return " ".join(value if name in bare else f"{name}={value}" for name, value in said if value)


def _panels(rows: Sequence[Row], options: Options) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: _natural(row, options)):
        groups.setdefault(_title(row, options), []).append(row)
    return groups


def _natural(row: Row, options: Options) -> tuple:
    names = options.get("panels", ())
    names = (names,) if isinstance(names, str) else names
    found = [(_number(row, name), row["labels"].get(name) or "") for name in names]
    return tuple((0, number, "") if number is not None else (1, 0.0, text) for number, text in found)


def _by_hue(rows: Sequence[Row], options: Options) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(name_of(row["labels"], _hue(options)), []).append(row)
    return dict(sorted(groups.items(), key=lambda item: _rank(item[0], options)))


def _rank(name: str, options: Options) -> int:
    """Where a name stands in the palette; what is not in it comes last."""
    order = list(options["palette"])
    return order.index(name) if name in order else len(order)


def _canvas(
    panels: Mapping[str, Any], options: Options, width: float = 3.9, height: float = 3.1
) -> tuple[Figure, list[Axes]]:
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
    return figure, axes[:count]


def _line(
    ax: Axes, x: list, y: list, name: str, options: Options, label: str | None = None, marker: bool = True
) -> None:
    look = options["palette"][name]
    ax.plot(
        x, y, linestyle=look.dash, marker=look.marker if marker else "", color=look.colour, mfc=look.fill, mew=1.1,
        lw=1.6, ms=4.5, label=label or name,
    )  # fmt: skip


def _band(ax: Axes, places: Mapping[Any, Mean], name: str, options: Options) -> None:
    if not any(each.error for each in places.values()):
        return
    # Positive values may stand on a log axis, which ends above 0; others do not.
    low = [
        max(each.value - each.error, each.value * 1e-3) if each.value > 0 else each.value - each.error
        for each in places.values()
    ]
    high = [each.value + each.error for each in places.values()]
    ax.fill_between(list(places), low, high, color=options["palette"][name].colour, alpha=0.2, lw=0)


def _scales(ax: Axes, options: Options, xs: Sequence[float] | None) -> None:
    if options.get("logx"):
        _log_axis(ax, "x")
        places = sorted(set(xs or ()))
        if 1 < len(places) <= 7:
            ax.xaxis.set_major_locator(FixedLocator(places))
            ax.xaxis.set_minor_locator(NullLocator())
    if options.get("logy"):
        _log_axis(ax, "y")


def _log_axis(ax: Axes, which: str) -> None:
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


def _slope(x: Sequence[float], y: Sequence[float]) -> str:
    """The least-squares slope of log y on log x, as text for a legend."""
    if len(x) < 2:
        return ""
    return f" (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:.2f})"


def _smooth_maximum(x: np.ndarray, y: np.ndarray) -> float:
    if len(np.unique(x)) < 5:
        return float(y.max())
    fit = np.polynomial.Polynomial.fit(x, y, 3)
    return float(fit(np.linspace(x.min(), x.max(), 200)).max())


def _theory_of(options: Options, sampler: str) -> str | None:
    theory = options.get("theory")
    return theory if theory is None or isinstance(theory, str) else dict(theory).get(sampler)


def _named_ticks(ax: Axes, names: Sequence[str]) -> None:
    ax.set_xticks(
        range(len(names)), names, rotation=40 if len(names) > 3 else 0, ha="right" if len(names) > 3 else "center"
    )
    ax.set_xlim(-0.6, len(names) - 0.4)


def _say(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, color=INK, fontsize=9)


def _legend(ax: Axes, **options: Any) -> None:
    handles, names = ax.get_legend_handles_labels()
    if handles:
        ax.legend(handles, names, frameon=False, fontsize=8.5, labelcolor=INK, **options)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=RULE, lw=0.6)
    ax.set_axisbelow(True)


def _recolour(figure: Figure) -> None:
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


def _finish(
    figure: Figure, axes: Sequence[Axes], options: Options, xlabel: str, ylabel: str, legend: bool = True
) -> Figure:
    across = min(len(axes), options.get("across", 3))
    for number, ax in enumerate(axes):
        if number + across >= len(axes):
            ax.set_xlabel(xlabel)
        if number % across == 0:
            ax.set_ylabel(ylabel)
        _plain(ax)
    if legend:
        found: dict[str, Any] = {}
        for ax in axes:
            for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
                found.setdefault(name, handle)
        order = sorted(found, key=lambda name: _rank(name, options))
        if order:
            per_line = max(1, int(figure.get_figwidth() * 9 // (max(map(len, order)) + 6)))
            figure.legend(
                [found[name] for name in order], order, loc="outside lower center", ncols=min(per_line, len(order)),
                frameon=False, fontsize=8.5, labelcolor=INK,
            )  # fmt: skip
    _recolour(figure)
    return figure
