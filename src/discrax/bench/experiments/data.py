"""What the benchmark keeps and reads: a cache folder, and the images that RBMs are trained on."""

import os
from pathlib import Path

import numpy as np

from discrax.data.folder import SOURCES, data_folder
from discrax.data.originals import read_originals

CACHE_VARIABLE = "DISCRAX_CACHE"


def images(name: str) -> np.ndarray:
    """The training images of a data set, (count, height, width) uint8.

    They are in DATA/NAME/*.npz with an array train_x, or in the set's original files.
    """
    wanted = f"{name}/*.npz with an array train_x of (count, 28, 28) bytes; the set can be had from {SOURCES[name]}"
    folder = data_folder(name, wanted)
    for path in sorted((folder / name).glob("*.npz")):
        with np.load(path) as arrays:
            if "train_x" in arrays:
                return arrays["train_x"]
    originals = read_originals(f"{name}/{name}.npz", folder)
    if originals is not None:
        return originals["train_x"]
    raise ValueError(f"There is no {name} in {folder}; expected {wanted}.")


def cache_folder() -> Path:
    """Where models trained for a benchmark are kept: DISCRAX_CACHE, by default ~/.cache/discrax."""
    folder = Path(os.environ.get(CACHE_VARIABLE, Path.home() / ".cache" / "discrax"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
