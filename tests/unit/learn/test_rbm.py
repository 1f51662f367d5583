"""Contrastive divergence: the law of a small machine approaches the law of its data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import exact
from discrax.learn import train_rbm
from discrax.learn.rbm import untrained
from discrax.targets.rbm import RBM, CategoricalRBM

pytest.importorskip("optax")


def patterns(num_levels: int, visible: int) -> np.ndarray:
    """Rows of three patterns, each site redrawn with probability 0.1."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, num_levels, (3, visible))[rng.integers(0, 3, 4000)]
    return np.where(rng.random(rows.shape) < 0.1, rng.integers(0, num_levels, rows.shape), rows)


def divergence(data: np.ndarray, machine) -> float:
    """Kullback-Leibler divergence of the machine's enumerated law from the data's."""
    probabilities = exact.law(machine)
    counts = np.bincount(machine.space.index(jnp.asarray(data)), minlength=len(probabilities))
    seen = counts > 0
    p = counts[seen] / counts.sum()
    return float(np.sum(p * np.log(p / probabilities[seen])))


@pytest.mark.parametrize(
    ("num_levels", "visible", "persistent"), [(2, 6, True), (3, 4, False)], ids=["binary-pcd", "categorical-cd"]
)
def test_training_approaches_the_data(num_levels, visible, persistent):
    data = patterns(num_levels, visible)
    machine = train_rbm(
        jax.random.key(0),
        data,
        4,
        num_levels=num_levels,
        num_gibbs=5,
        batch_size=200,
        num_epochs=25,
        learning_rate=0.02,
        persistent=persistent,
        progress=False,
    )
    assert isinstance(machine, RBM if num_levels == 2 else CategoricalRBM)
    start = untrained(jax.random.key(0), data, 4, num_levels)
    before, after = divergence(data, start), divergence(data, machine)
    assert after < 0.2 * before


def test_start():
    """Nothing is impossible; weights are uniform within 1 / sqrt(visible)."""
    data = np.zeros((10, 400), int)
    data[:, 1] = 1
    data[:4, 2] = 1
    machine = untrained(jax.random.key(0), data, 50, 2)
    np.testing.assert_allclose(machine.visible_bias[:3], np.log([0.01 / 0.99, 0.99 / 0.01, 0.402 / 0.598]), rtol=1e-4)
    assert not machine.hidden_bias.any()
    weights = np.asarray(machine.weights)
    assert 0.049 < np.abs(weights).max() <= 0.05
    assert weights.std() == pytest.approx(0.05 / np.sqrt(3), rel=0.02)


def test_fewer_rows_than_a_batch():
    machine = train_rbm(jax.random.key(0), np.eye(3, dtype=int), 2, num_gibbs=1)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(machine))


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("data", "settings", "sentence"),
    [
        (np.zeros((0, 3), int), {}, "data must be integer codes"),
        (np.zeros((2, 3, 3), int), {}, "flatten images first"),
        (np.zeros((2, 3)), {}, "data must be integer codes .*, but got float64"),
        (np.full((2, 3), 255), {}, "they run from 255 to 255; quantise it"),
        (np.full((2, 3), -1), {"num_levels": 4}, "codes 0..3, but they run from -1"),
        (np.zeros((2, 3), int), {"num_gibbs": 0}, "num_gibbs must be at least 1, but got 0"),
        (np.zeros((2, 3), int), {"num_levels": 1}, "at least 2"),
        (np.zeros((2, 3), int), {"learning_rate": 0.0}, "learning_rate must be greater than 0"),
    ],
)
def test_bad_input(data, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        train_rbm(jax.random.key(0), data, 2, **settings)
