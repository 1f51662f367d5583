"""`discrax data`: which data sets are there, which are missing, and where they can be had."""

import os
import urllib.request
from pathlib import Path
from typing import NamedTuple

from discrax.core.files import whole_file
from discrax.data.folder import SOURCES, VARIABLE, data_files
from discrax.data.originals import ORIGINALS, Original, check_original
from discrax.voice import Voice

_SECONDS = 60.0  # without a byte


class Stock(NamedTuple):
    """What a data folder has of a set: its state is "prepared", "originals", "some originals" or "missing"."""

    of_set: str
    state: str
    prepared: list[str]
    originals: list[str]
    missing: list[str]  # of the originals

    @property
    def files(self) -> str:
        """What may be put there, in a few words."""
        prepared = [Path(name).name for name in self.prepared]
        return " or ".join(", ".join(_ends(each)) for each in (self.originals, prepared) if each)


def _ends(names: list[str]) -> list[str]:
    return names if len(names) <= 3 else [names[0], "...", names[-1]]


def take_stock(folder: Path | None) -> list[Stock]:
    """What a data folder has of every set; of no folder, nothing."""
    found = []
    for of_set in SOURCES:
        prepared, originals = data_files(of_set), [each.name for each in ORIGINALS if each.of_set == of_set]
        missing = [name for name in originals if folder is None or not (folder / of_set / name).is_file()]
        if folder is not None and all((folder / name).is_file() for name in prepared):
            state = "prepared"
        elif len(missing) == len(originals):
            state = "missing"
        else:
            state = "some originals" if missing else "originals"
        found.append(Stock(of_set, state, prepared, originals, missing))
    return found


def fetch_originals(of_set: str, folder: Path) -> list[Path]:
    """Fetches the originals of a set that are not there yet, and checks them where a checksum is known."""
    wanted = [each for each in ORIGINALS if each.of_set == of_set and each.url]
    if not wanted:
        known = ", ".join(dict.fromkeys(each.of_set for each in ORIGINALS if each.url))
        where = f"; it can be had from {SOURCES[of_set]}" if of_set in SOURCES else ""
        raise ValueError(f"Sets that can be downloaded are {known}, but not {of_set!r}{where}.")
    return [_fetch(each, folder / of_set / each.name) for each in wanted if not (folder / of_set / each.name).is_file()]


def _fetch(original: Original, path: Path) -> Path:
    try:
        with urllib.request.urlopen(original.url, timeout=_SECONDS) as answer:
            content = answer.read()
    except OSError as error:
        raise ValueError(f"{original.url} could not be fetched: {error}.") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:  # which is dropped if it is not what it should be
        part.write_bytes(content)
        check_original(part, original)
    return path


def data(folder: Path | None = None, /, download: tuple[str, ...] = (), voice: Voice = Voice()) -> None:  # noqa: B008
    """Lists the data sets: which are there, which are missing, where they can be had, and where to put them.

    Args:
        folder: The data folder; by default the environment variable DISCRAX_DATA.
        download: Sets whose original files are fetched into it first. Sets have licences of their own.
        voice: What is printed.
    """
    given = os.environ.get(VARIABLE) if folder is None else folder
    folder = None if given is None else Path(given)
    if download and folder is None:
        raise ValueError(f"Say where to: give a data folder, or set {VARIABLE}.")
    for of_set in download:
        for path in fetch_originals(of_set, folder):  # ty: ignore[invalid-argument-type]
            voice.say(path)
    title = f"no data folder: give one, or set {VARIABLE}" if folder is None else f"data folder {folder}"
    fetched, stocks = {each.of_set for each in ORIGINALS if each.url}, take_stock(folder)
    voice.give([stock._asdict() | {"where": SOURCES[stock.of_set]} for stock in stocks])
    rows = [
        (stock.of_set, stock.state, stock.files,
         (f"--download {stock.of_set}, or " if stock.of_set in fetched else "") + SOURCES[stock.of_set])
        for stock in stocks
    ]  # fmt: skip
    headings = ("set", "state", "files, in a folder of the set's name", "where")
    voice.show(headings, rows, title=title, title_justify="left")
