"""Data sets that the user has: where they lie, and what to say when they do not."""

import os
from pathlib import Path

import numpy as np

VARIABLE, CACHE_VARIABLE = "DISCRAX_DATA", "DISCRAX_CACHE"
_SOURCES = {
    "mnist": "http://yann.lecun.com/exdb/mnist",
    "fashion_mnist": "https://github.com/zalandoresearch/fashion-mnist",
}


def use_data(folder: Path) -> None:
    """Makes a folder the one where data sets are looked for, here and in worker processes."""
    if not folder.is_dir():
        raise ValueError(f"There is no data folder {folder}.")
    os.environ[VARIABLE] = str(folder.resolve())


def images(name: str) -> np.ndarray:
    """The training images of a data set, (count, height, width) uint8, from DATA/NAME/*.npz with an array train_x."""
    folder = os.environ.get(VARIABLE)
    wanted = f"{name}/*.npz with an array train_x of (count, 28, 28) bytes; the set can be had from {_SOURCES[name]}"
    if folder is None:
        raise ValueError(f"This needs the data set {name}: pass --data FOLDER or set {VARIABLE}; expected {wanted}.")
    for path in sorted((Path(folder) / name).glob("*.npz")):
        with np.load(path) as arrays:
            if "train_x" in arrays:
                return arrays["train_x"]
    raise ValueError(f"There is no {name} in {folder}; expected {wanted}.")


def cache_folder() -> Path:
    """Where models trained for a benchmark are kept: DISCRAX_CACHE, by default ~/.cache/discrax."""
    folder = Path(os.environ.get(CACHE_VARIABLE, Path.home() / ".cache" / "discrax"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
