"""Images as codes that energy models are trained on.

- "digits": scikit-learn's 1,797 handwritten digits of 8x8 pixels in 0..16, 1 where a pixel is 8 or more. It comes with
  scikit-learn, so it needs no data folder. Split here, 1500 / 297.
- "mnist": MNIST as Larochelle binarised it once and for all ("static"), 50000 / 10000 / 10000. The test images, which
  come ordered by digit, are shuffled.
- "dynamic_mnist": the greys of MNIST, 60000 / 10000.
- "fashion_mnist": the greys of Fashion-MNIST, 60000 / 10000.
- "omniglot": greys, strokes white. From chardata.mat as Burda et al. (2016) split it, 24345 / 8070. The prepared file
  has the same drawings made small by another program, without their split: it is made here, and 45 are left over.
- "caltech": Caltech 101 silhouettes, upright, the object 1. From Marlin's file with his split, 4100 / 2264 / 2307; the
  prepared file and his other one have none: it is made here with his sizes.
- "usps": 16x16 pixels, 1 where a grey is above half, 7291 / 2007.

Splits made here follow a permutation with a fixed seed, so they are the same for everybody. Greys 0..255 are *dynamic*:
a pixel v is 1 with probability v / 255, drawn anew each time the image is used.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray, UInt8

from discrax.core import random
from discrax.core.seeds import key_of
from discrax.data.folder import data_arrays

_SPLIT_SEED = 0
_GREYS = 256


class Images(NamedTuple):
    """Images of (rows, height, width): codes below `num_levels`, or greys 0..255 where they are dynamic."""

    name: str
    train: UInt8[np.ndarray, "rows height width"]
    test: UInt8[np.ndarray, "rows height width"]
    num_levels: int = 2
    is_dynamic: bool = False
    valid: UInt8[np.ndarray, "rows height width"] | None = None  # where the set has images for choosing between models

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.train.shape[1:]

    @property
    def mean(self) -> Float[np.ndarray, "height width ..."]:
        """Frequencies in `train`: of 1 at each pixel, or of each level on a last axis where there are more than two."""
        if self.is_dynamic:
            return self.train.mean(axis=0) / (_GREYS - 1)
        return shares(self.train, self.num_levels)

    def binarise(self, rng_seed: int) -> "Images":
        """Draws dynamic images once and for all; others are returned as they are."""
        if not self.is_dynamic:
            return self
        for_train, for_test = random.split(key_of(rng_seed), 2)
        return self._replace(
            train=np.asarray(binarise(for_train, self.train)),
            test=np.asarray(binarise(for_test, self.test)),
            is_dynamic=False,
        )


def shares(rows: Integer[np.ndarray, "rows *shape"], num_levels: int) -> Float[np.ndarray, "..."]:
    """How often a site is 1 where there are two levels, else how often it has each level, on a last axis."""
    if num_levels == 2:
        return rows.mean(axis=0)
    return np.stack([(rows == level).mean(axis=0) for level in range(num_levels)], axis=-1)


def load_images(name: str, folder: str | os.PathLike | None = None, *, levels: int | None = None) -> Images:
    """An image set by name, read from a data folder (by default that of the environment variable DISCRAX_DATA).

    `levels=4` cuts the greys of "mnist", "dynamic_mnist" and "fashion_mnist" into 4 ranges of equal width.
    """
    if not isinstance(name, str) or name not in IMAGE_SETS:
        raise ValueError(f"There is no image set {name!r}; known: {', '.join(IMAGE_SETS)}.")
    if levels is None:
        return IMAGE_SETS[name](folder)
    if name not in _GREY_FILES:
        raise ValueError(f"levels is for the greys of {', '.join(_GREY_FILES)}, but {name} is binary or nearly so.")
    if not isinstance(levels, int | np.integer) or not 2 <= levels <= _GREYS:
        raise ValueError(f"levels is a whole number from 2 to {_GREYS}, but got {levels!r}.")
    return _cut(_greys(name, folder), int(levels))


def binarise(key: PRNGKeyArray, greys: Integer[Array, "*any"] | Integer[np.ndarray, "*any"]) -> UInt8[Array, "*any"]:
    """Draws each pixel: it is 1 with probability v / 255, v being its grey."""
    # A word modulo 255 is below v with probability v / 255, up to 2^-24.
    words = random.words(key, greys.size).reshape(greys.shape) % np.uint32(_GREYS - 1)
    return (words < greys).astype(jnp.uint8)


def _cut(images: Images, levels: int) -> Images:
    def codes(greys: np.ndarray) -> np.ndarray:
        return (greys.astype(np.int32) * levels // _GREYS).astype(np.uint8)

    return images._replace(train=codes(images.train), test=codes(images.test), num_levels=levels, is_dynamic=False)


def _digits(folder: Any) -> Images:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("The digits come with scikit-learn, which is missing: pip install scikit-learn.") from error
    pixels = load_digits().images
    train, test = _split((pixels >= 8).astype(np.uint8), 1500, 297)
    return Images("digits", train, test)


def _static_mnist(folder: Any) -> Images:
    arrays = data_arrays("mnist_static/binarized_mnist.npz", folder)
    train, valid, test = (_unpack(arrays[f"{part}_bits"]) for part in ("train", "valid", "test"))
    (shuffled,) = _split(test, len(test))  # they come ordered by digit
    return Images("mnist", train, shuffled, valid=valid)


_GREY_FILES = {
    "mnist": "mnist/mnist.npz",
    "dynamic_mnist": "mnist/mnist.npz",
    "fashion_mnist": "fashion_mnist/fashion_mnist.npz",
}


def _greys(name: str, folder: Any) -> Images:
    arrays = data_arrays(_GREY_FILES[name], folder)
    return Images(name, arrays["train_x"], arrays["test_x"], is_dynamic=True)


def _omniglot(folder: Any) -> Images:
    arrays = data_arrays("omniglot28/omniglot28.npz", folder)
    if "train_x" in arrays:  # of the original, which has a split
        return Images("omniglot", arrays["train_x"], arrays["test_x"], is_dynamic=True)
    drawings = np.concatenate([arrays["background_x"], arrays["evaluation_x"]])
    train, test = _split(drawings, 24345, 8070)
    return Images("omniglot", train, test, is_dynamic=True)


def _caltech(folder: Any) -> Images:
    arrays = data_arrays("caltech101_silhouettes28/caltech101_silhouettes_28.npz", folder)

    def stand_up(bits: UInt8[np.ndarray, "rows 98"]) -> UInt8[np.ndarray, "rows 28 28"]:
        return 1 - np.ascontiguousarray(_unpack(bits).transpose(0, 2, 1))

    if "train_bits" in arrays:  # of the original with its split
        train, valid, test = (stand_up(arrays[f"{part}_bits"]) for part in ("train", "valid", "test"))
    else:
        train, valid, test = _split(stand_up(arrays["x_bits"]), 4100, 2264, 2307)
    return Images("caltech", train, test, valid=valid)


def _usps(folder: Any) -> Images:
    arrays = data_arrays("usps/usps.npz", folder)
    train, test = ((arrays[f"{part}_x_milli"] > 1000).astype(np.uint8) for part in ("train", "test"))
    return Images("usps", train.reshape(-1, 16, 16), test.reshape(-1, 16, 16))


IMAGE_SETS: dict[str, Callable[[Any], Images]] = {
    "digits": _digits,
    "mnist": _static_mnist,
    "dynamic_mnist": lambda folder: _greys("dynamic_mnist", folder),
    "fashion_mnist": lambda folder: _greys("fashion_mnist", folder),
    "omniglot": _omniglot,
    "caltech": _caltech,
    "usps": _usps,
}


def _unpack(bits: UInt8[np.ndarray, "rows 98"]) -> UInt8[np.ndarray, "rows 28 28"]:
    return np.ascontiguousarray(np.unpackbits(bits, axis=1)).reshape(-1, 28, 28)


def _split(rows: Integer[np.ndarray, "rows ..."], *sizes: int) -> list[np.ndarray]:
    """Parts of these sizes from the rows in a fixed random order; what is left over is dropped."""
    order = np.argsort(np.asarray(random.words(jax.random.key(_SPLIT_SEED), len(rows))), kind="stable")
    ends = np.cumsum(sizes)
    return [rows[order[end - size : end]] for size, end in zip(sizes, ends, strict=True)]
