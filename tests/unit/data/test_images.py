import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from discrax.data import IMAGE_SETS, Images, folder, load_images
from discrax.data.images import _split

ROWS = {  # train, valid, test
    "digits": (1500, None, 297),
    "mnist": (50000, 10000, 10000),
    "dynamic_mnist": (60000, None, 10000),
    "fashion_mnist": (60000, None, 10000),
    "omniglot": (24345, None, 8070),
    "caltech": (4100, 2264, 2307),
    "usps": (7291, None, 2007),
}


@pytest.fixture
def greys(tmp_path, monkeypatch):
    """A data folder whose MNIST is four images of one grey each."""
    path = tmp_path / "mnist" / "mnist.npz"
    path.parent.mkdir()
    pictures = np.array([0, 64, 128, 255], np.uint8)[:, None, None] * np.ones((4, 28, 28), np.uint8)
    np.savez(path, train_x=pictures, test_x=pictures[::-1])
    monkeypatch.setitem(folder._SHA256, "mnist/mnist.npz", hashlib.sha256(path.read_bytes()).hexdigest())
    return tmp_path


def test_digits_need_no_folder(monkeypatch):
    monkeypatch.delenv(folder.VARIABLE, raising=False)
    digits = load_images("digits")
    assert digits.train.shape == (1500, 8, 8)
    assert digits.test.shape == (297, 8, 8)
    assert digits.train.dtype == np.uint8
    assert (digits.num_levels, digits.is_dynamic, digits.shape) == (2, False, (8, 8))
    np.testing.assert_allclose(digits.mean, digits.train.mean(axis=0))
    np.testing.assert_array_equal(load_images("digits").train, digits.train)
    from sklearn.datasets import load_digits

    everything = np.concatenate([digits.train, digits.test])
    pixels = load_digits().images >= 8
    np.testing.assert_array_equal(np.sort(np.packbits(everything)), np.sort(np.packbits(pixels)))


def test_dynamic_images_are_greys_until_they_are_drawn(greys):
    images = load_images("dynamic_mnist", greys)
    assert images.is_dynamic
    np.testing.assert_allclose(images.mean, (64 + 128 + 255) / 4 / 255)
    drawn = images.binarise(0)
    assert not drawn.is_dynamic
    assert drawn.train.max() == 1
    rates = drawn.train.mean(axis=(1, 2))
    assert (rates[0], rates[3]) == (0, 1)
    np.testing.assert_allclose(rates[1:3], [64 / 255, 128 / 255], atol=0.07)  # 4 standard errors of 784 pixels
    assert drawn.test[0].all()
    np.testing.assert_array_equal(images.binarise(0).train, drawn.train)
    assert (images.binarise(1).train != drawn.train).any()
    assert drawn.binarise(1) is drawn


def test_levels_cut_greys_into_equal_ranges(greys):
    images = load_images("mnist", greys, levels=4)
    assert (images.num_levels, images.is_dynamic) == (4, False)
    assert images.train[:, 0, 0].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(images.mean, np.full((28, 28, 4), 0.25))
    assert load_images("mnist", greys, levels=2).train[:, 0, 0].tolist() == [0, 0, 1, 1]


def test_mistakes_are_sentences(greys, monkeypatch):
    with pytest.raises(ValueError, match="no image set 'minst'; known: digits, mnist"):
        load_images("minst")
    with pytest.raises(ValueError, match="levels is for the greys of mnist"):
        load_images("caltech", greys, levels=4)
    with pytest.raises(ValueError, match="from 2 to 256, but got 1"):
        load_images("mnist", greys, levels=1)
    with pytest.raises(ValueError, match=r"There is no .*usps.npz; expected .*github.com/niuers"):
        load_images("usps", greys)
    monkeypatch.setitem(folder._SHA256, "mnist/mnist.npz", "0" * 64)
    with pytest.raises(ValueError, match="is not the known file"):
        load_images("dynamic_mnist", greys)


def test_a_split_is_fixed_and_loses_nothing():
    rows = np.arange(10)[:, None, None]
    train, test = _split(rows, 6, 4)
    assert sorted([*train.ravel(), *test.ravel()]) == list(range(10))
    assert train.ravel().tolist() != list(range(6))
    assert train.ravel().tolist() == _split(rows, 6)[0].ravel().tolist()


@pytest.mark.parametrize("name", [name for name in IMAGE_SETS if name != "digits"])
def test_the_real_sets(name):
    if not Path(os.environ.get(folder.VARIABLE, "/nowhere")).is_dir():
        pytest.skip(f"{folder.VARIABLE} names no data folder")
    images = load_images(name)
    assert isinstance(images, Images)
    train, valid, test = ROWS[name]
    assert len(images.train) == train
    assert len(images.test) == test
    assert (None if images.valid is None else len(images.valid)) == valid
    assert images.train.dtype == np.uint8
    assert images.train.max() == (255 if images.is_dynamic else 1)
    # Strokes and objects are 1, the ground is 0, and the middle of a picture has more ink than its rim.
    height, width = images.shape
    middle = images.mean[height // 4 : -height // 4, width // 4 : -width // 4].mean()
    rim = np.concatenate([images.mean[[0, -1]].ravel(), images.mean[:, [0, -1]].ravel()]).mean()
    assert rim < middle
    assert images.mean.mean() < 0.5
