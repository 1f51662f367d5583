import numpy as np
import pytest
from matplotlib import image

from discrax.learn.mixing import MixingCurve
from discrax.learn.pictures import GAP, curves_picture, image_grid, mixing_picture, snapshots_picture
from discrax.samplers import gibbs

CODES = np.random.default_rng(0).integers(0, 4, (5, 6, 7))


def test_every_pixel_of_a_grid_is_its_level(tmp_path):
    path = image_grid(CODES, tmp_path / "new" / "grid.png", columns=3, num_levels=4)
    pixels = image.imread(path)[..., 0]
    scale = pixels.shape[0] // (2 * 7 + 1)
    assert pixels.shape == ((2 * 7 + 1) * scale, (3 * 8 + 1) * scale)
    small = pixels[scale // 2 :: scale, scale // 2 :: scale]
    for place, codes in enumerate(CODES):
        top, left = 1 + place // 3 * 7, 1 + place % 3 * 8
        np.testing.assert_allclose(small[top : top + 6, left : left + 7], codes / 3, atol=0.01)
    np.testing.assert_allclose(small[0], GAP, atol=0.01)
    np.testing.assert_allclose(small[8:14, 17:24], GAP, atol=0.01)  # the place of a sixth image
    # Crisp: every block of the picture has one colour.
    np.testing.assert_array_equal(pixels, small.repeat(scale, axis=0).repeat(scale, axis=1))


def test_a_title_takes_a_strip_of_its_own(tmp_path):
    plain = image.imread(image_grid(CODES, tmp_path / "plain.png", num_levels=4))
    titled = image.imread(image_grid(CODES, tmp_path / "titled.png", title="five", num_levels=4))
    assert titled.shape[0] > plain.shape[0]
    np.testing.assert_array_equal(titled[-plain.shape[0] :], plain)


def test_curves_and_snapshots_are_drawn(tmp_path):
    update = np.arange(10)
    names = ("gap", "acceptance", "jump", "gradient_norm")
    training = {"update": update} | {name: np.linspace(1, 0.1, 10) for name in names}
    curve = MixingCurve(update, np.linspace(0, 5, 10), np.full(10, 0.2), 1.0, gibbs())
    paths = [
        curves_picture(training, tmp_path / "curves.png"),
        mixing_picture({"a": curve, "b": curve._replace(mean=-curve.mean)}, tmp_path / "mixing.png", scale="log"),
        snapshots_picture({"a": CODES[None], "b": np.stack([CODES, CODES])}, tmp_path / "shots.png", num_levels=4),
    ]
    assert all(image.imread(path)[..., :3].std() > 0.02 for path in paths)


def test_mistakes_are_sentences(tmp_path, as_a_user):
    with pytest.raises(ValueError, match=r"codes \(rows, height, width\), but got int64 of shape \(4, 9\)"):
        image_grid(np.zeros((4, 9), np.int64), tmp_path / "a.png")
    with pytest.raises(ValueError, match="set num_levels"):
        image_grid(CODES, tmp_path / "a.png")
    with pytest.raises(ValueError, match="no curves"):
        mixing_picture({}, tmp_path / "a.png")
    with pytest.raises(ValueError, match="no snapshots"):
        snapshots_picture({}, tmp_path / "a.png")
