"""Data sets that the user has: where they lie, whether a file is the known one, and what to say when it is not.

A data folder has a folder for each set, `FOLDER/SET/FILE`. It is given by hand or by the environment variable
DISCRAX_DATA. The sets are listed in sets.csv. Their files are prepared ones (mostly .npz, listed in SHA256SUMS) or the
originals as they are published (`discrax.data.originals`). Nothing is downloaded unless it is asked for by
`discrax data --download SET`: sets have licences of their own.
"""

import csv
import hashlib
import os
from functools import cache
from pathlib import Path

import numpy as np

from discrax.data.originals import ORIGINALS, read_originals

VARIABLE = "DISCRAX_DATA"
_HERE = Path(__file__).parent
_SETS = list(csv.DictReader((_HERE / "sets.csv").read_text(encoding="utf-8").splitlines()))
SOURCES = {each["name"]: each["source"] for each in _SETS}
_LAYOUTS = {each["name"]: each["layout"] for each in _SETS}  # mostly of the arrays in .npz files; nodes count from 0
_SHA256 = {name: digest for digest, name in map(str.split, (_HERE / "SHA256SUMS").read_text().splitlines())}


def use_data(folder: Path) -> None:
    """Makes a folder the one where data sets are looked for, here and in worker processes."""
    if not folder.is_dir():
        raise ValueError(f"There is no data folder {folder}.")
    os.environ[VARIABLE] = str(folder.resolve())


def data_arrays(name: str, folder: str | os.PathLike | None = None) -> dict[str, np.ndarray]:
    """The arrays of a prepared file of a set, such as "gset/gset.npz", or the same made of the set's originals."""
    of_set = name.partition("/")[0]
    if of_set not in SOURCES:
        raise ValueError(f"There is no data set {of_set!r}; known: {', '.join(SOURCES)}.")
    base = data_folder(of_set, f"{name}; the set can be had from {SOURCES[of_set]}", folder)
    if not (base / name).is_file():
        arrays = read_originals(name, base)
        if arrays is not None:
            return arrays
    with np.load(data_file(name, folder)) as arrays:
        return dict(arrays)


def data_file(name: str, folder: str | os.PathLike | None = None) -> Path:
    """A file of a set, such as "gset/gset.npz", in a data folder; checked once a process to be the known one."""
    if name not in _SHA256:
        raise ValueError(f"There is no data file {name!r}; known: {', '.join(_SHA256)}.")
    of_set = name.partition("/")[0]
    layout = f".npz: {_LAYOUTS[of_set]}" if name.endswith(".npz") else _LAYOUTS[of_set]
    wanted = f"{name} ({layout}); the set can be had from {SOURCES[of_set]}"
    path = data_folder(of_set, wanted, folder) / name
    if not path.is_file():
        others = ", ".join(each.name for each in ORIGINALS if each.of_set == of_set) or "none that are read"
        raise ValueError(f"There is no {path}; expected {wanted}; or in {path.parent} the originals: {others}.")
    found = _sha256(path)
    if found != _SHA256[name]:
        raise ValueError(
            f"{path} is not the known file: its SHA-256 should be {_SHA256[name]}, but is {found}; expected {wanted}."
        )
    return path


def data_files(name: str) -> list[str]:
    """The names of the prepared files of a set."""
    return [each for each in _SHA256 if each.partition("/")[0] == name]


def data_folder(name: str, wanted: str, folder: str | os.PathLike | None = None) -> Path:
    """The folder of all sets; `name` and `wanted` say what is missing where there is none."""
    folder = os.environ.get(VARIABLE) if folder is None else folder
    if folder is None:
        raise ValueError(
            f"This needs the data set {name}: pass its folder (--data, for `discrax train` --data-folder; in Python: "
            f"folder=...) or set {VARIABLE}; expected {wanted}."
        )
    if not isinstance(folder, str | os.PathLike) or not Path(folder).is_dir():
        raise ValueError(
            f"There is no data folder {folder}, in which the data set {name} should be; expected {wanted}."
        )
    return Path(folder)


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
