"""Pictures of energy models: images as crisp pixels, curves of training, mixing of samplers, snapshots of chains.

Every function writes one file, whose suffix says the format (.png, .pdf, .svg), and gives back its path.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from discrax.core import checks
from discrax.core.extras import import_extra
from discrax.core.files import check_writable, write_whole
from discrax.learn.frequencies import check_codes
from discrax.learn.mixing import MixingCurve

INK, RULE, GAP = "#1c1d21", "#d9dade", 0.55  # GAP: the grey between images
# Okabe and Ito's colours that are seen on white.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#999933")
_DPI = 150
_PANELS = {
    "gap": "log π of data minus chains",
    "acceptance": "acceptance",
    "jump": "sites changed a step",
    "gradient_norm": "gradient norm",
}


def image_grid(
    codes: Integer[np.ndarray, "rows height width"],
    path: str | os.PathLike,
    columns: int | None = None,
    title: str | None = None,
    num_levels: int = 2,
) -> Path:
    """Images side by side, level 0 black and the highest white, about as many rows as columns by default."""
    if columns is not None:
        checks.whole("columns", columns, least=1)
    sheet = _sheet(codes, columns, num_levels)
    height, width = sheet.shape
    scale = int(np.clip(900 // width, 1, 8))
    strip = 0 if title is None else 40  # pixels above the images
    figure = _figure(width * scale / _DPI, (height * scale + strip) / _DPI)
    axes = figure.add_axes((0, 0, 1, height * scale / (height * scale + strip)))
    _show(axes, sheet)
    if title is not None:
        figure.text(0.5, 1 - strip / 2 / (height * scale + strip), title, ha="center", va="center", color=INK)
    return _save(figure, path)


def snapshots_picture(
    chains: Mapping[str, Integer[np.ndarray, "snapshots chains height width"]],
    path: str | os.PathLike,
    *,
    every: int = 1000,
    num_shown: int = 16,
    num_levels: int = 2,
) -> Path:
    """A row for each sampler and a column for each snapshot: the first `num_shown` chains, each in its place."""
    if not chains:
        raise ValueError("There are no snapshots to show.")
    most = max(len(shots) for shots in chains.values())
    sheets = {name: [_sheet(shot[:num_shown], None, num_levels) for shot in shots] for name, shots in chains.items()}
    height, width = next(iter(sheets.values()))[0].shape
    cell = 1.1  # inches
    figure = _figure(cell * most + 0.5, cell * height / width * len(chains) + 0.35)
    panels = figure.subplots(len(chains), most, squeeze=False)
    figure.subplots_adjust(left=0.4 / (cell * most + 0.5), right=0.995, bottom=0.01, top=0.9, wspace=0.08, hspace=0.08)
    for row, (name, of_sampler) in zip(panels, sheets.items(), strict=True):
        for place, axes in enumerate(row):
            if place < len(of_sampler):
                _show(axes, of_sampler[place])
            else:
                axes.set_axis_off()
        row[0].set_ylabel(name, color=INK, fontsize=9)
    for place, axes in enumerate(panels[0]):
        axes.set_title(f"{every * (place + 1):,} steps", color=INK, fontsize=8, pad=4)
    figure.subplots_adjust(top=1 - 0.3 / figure.get_size_inches()[1])
    return _save(figure, path)


def curves_picture(curves: Mapping[str, np.ndarray], path: str | os.PathLike) -> Path:
    """What happened in training: energy gap, acceptance, jump and gradient norm against the update."""
    figure = _figure(8, 5)
    panels = figure.subplots(2, 2, sharex=True)
    for (name, label), axes in zip(_PANELS.items(), panels.flat, strict=True):
        values = np.asarray(curves[name], np.float64)
        axes.plot(np.asarray(curves["update"]), values, color=COLOURS[0], linewidth=1.2)
        if name == "gap":
            axes.axhline(0, color=INK, linewidth=0.6)
        elif name == "acceptance":
            axes.set_ylim(-0.02, 1.02)
        elif name == "gradient_norm" and (values > 0).any():
            axes.set_yscale("log")
        _dress(axes, "update" if axes in panels[1] else None, label)
    figure.tight_layout()
    return _save(figure, path)


def mixing_picture(
    curves: Mapping[str, MixingCurve], path: str | os.PathLike, *, title: str | None = None, scale: str = "linear"
) -> Path:
    """Mean log π of the chains of each sampler against steps, in a band of two standard errors.

    `scale="log"` stretches the first steps.
    """
    if not curves:
        raise ValueError("There are no curves to draw.")
    figure = _figure(6, 4)
    axes = figure.subplots()
    for place, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[place % len(COLOURS)]
        shown = slice(1 if scale == "log" else 0, None)  # step 0 has no place on a logarithmic axis
        steps, mean, error = curve.steps[shown], curve.mean[shown], curve.error[shown]
        style = ("-", "--", ":")[place // len(COLOURS) % 3]
        axes.plot(steps, mean, style, color=colour, linewidth=1.4, label=name)
        axes.fill_between(steps, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale(scale)
    _dress(axes, "steps", "mean log π of the chains (unnormalised)")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best")
    if title is not None:
        axes.set_title(title, color=INK, fontsize=10)
    figure.tight_layout()
    return _save(figure, path)


def _sheet(codes: Any, columns: int | None, num_levels: int) -> Float[np.ndarray, "pixels_down pixels_across"]:
    """One picture of all images (rows, height, width), a gap of one pixel around each; places left over are gap."""
    checks.whole("num_levels", num_levels, least=2)
    codes = np.asarray(codes)
    if codes.ndim != 3 or not codes.size or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"Expected integer codes (rows, height, width), but got {codes.dtype} of shape {codes.shape}; "
            "reshape the sites of an image first."
        )
    check_codes("Pictures", codes, num_levels, "set num_levels")
    count, height, width = codes.shape
    columns = columns or math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1), GAP)
    for place, image in enumerate(codes):
        down, across = divmod(place, columns)
        top, left = down * (height + 1) + 1, across * (width + 1) + 1
        sheet[top : top + height, left : left + width] = image / (num_levels - 1)
    return sheet


def _figure(width: float, height: float) -> Any:
    figures = import_extra("matplotlib.figure", "Pictures need", "plot")
    return figures.Figure(figsize=(width, height), dpi=_DPI, facecolor="white")


def _show(axes: Any, sheet: np.ndarray) -> None:
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _dress(axes: Any, xlabel: str | None, ylabel: str) -> None:
    axes.grid(color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(RULE)
    axes.tick_params(colors=INK, labelsize=8)
    axes.set_ylabel(ylabel, color=INK, fontsize=9)
    if xlabel is not None:
        axes.set_xlabel(xlabel, color=INK, fontsize=9)


def _save(figure: Any, path: str | os.PathLike) -> Path:
    path = checked_picture(path)
    return write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:]))


def checked_picture(path: str | os.PathLike) -> Path:
    """The path of a picture, if one can be written there in the format that its suffix names."""
    path, known = Path(path), _figure(1, 1).canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"A picture ends in .png, .pdf or .svg, but {path.name} ends in {path.suffix or 'nothing'}.")
    return check_writable(path)
