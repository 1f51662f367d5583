"""Restricted Boltzmann machines against the sum over hidden units, and their files."""

import itertools
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core.target import evaluate
from discrax.targets.rbm import RBM, CategoricalRBM

from ..helpers import one_hot

HIDDEN, VISIBLE, LEVELS = 3, 6, 4


def machine(kind: str, shape=(2, 3)):
    rng = np.random.default_rng(0)
    sites = (VISIBLE,) if kind == "binary" else (VISIBLE, LEVELS)
    arrays = rng.normal(size=(HIDDEN, *sites)), rng.normal(size=sites), rng.normal(size=HIDDEN)
    return (RBM if kind == "binary" else CategoricalRBM)(*arrays, shape=shape)


kinds = pytest.mark.parametrize("kind", ["binary", "categorical"])


@kinds
def test_log_prob_sums_over_the_hidden_units(kind):
    target = machine(kind)
    W, b, c = (np.asarray(a, np.float64) for a in (target.weights, target.visible_bias, target.hidden_bias))
    for x in np.random.default_rng(1).integers(0, target.space.num_levels, (5, 2, 3)):
        v = (x if kind == "binary" else one_hot(x, LEVELS)).reshape(-1)
        joint = [b.reshape(-1) @ v + h @ (c + W.reshape(HIDDEN, -1) @ v) for h in itertools.product((0, 1), repeat=3)]
        ours = target.log_prob(target.space.embed(jnp.asarray(x)))
        assert float(ours) == pytest.approx(np.logaddexp.reduce(joint), abs=1e-4)


@kinds
def test_ratios_come_from_the_gradient_in_single_precision(kind):
    """The ratio of a site is the difference of logits b + W' E[h | v] between the new level and the old."""
    target = machine(kind)
    x = jnp.asarray(np.random.default_rng(2).integers(0, target.space.num_levels, (2, 3)), target.space.dtype)
    ours = jax.jit(lambda x: evaluate(target, x))(x)
    assert ours.log_prob.dtype == ours.ratios.dtype == jnp.float32
    W, b, c = (np.asarray(a, np.float64) for a in (target.weights, target.visible_bias, target.hidden_bias))
    v = np.asarray(target.space.embed(x), np.float64).reshape(-1)
    mean = 1 / (1 + np.exp(-(c + W.reshape(HIDDEN, -1) @ v)))
    logits = b + np.tensordot(mean, W, 1)
    codes = np.asarray(x).reshape(-1)
    expected = (1 - 2 * codes) * logits if kind == "binary" else logits - logits[np.arange(VISIBLE), codes][:, None]
    np.testing.assert_allclose(ours.ratios.reshape(expected.shape), expected, atol=1e-4)


@kinds
def test_sites_lie_in_a_row_by_default(kind):
    assert machine(kind, None).space.shape == (VISIBLE,)


@kinds
def test_a_saved_machine_comes_back(kind, tmp_path):
    target, path = machine(kind), tmp_path / "machine"  # the name is kept as it is
    target.save(path)
    again = type(target).load(path)
    assert again.space.shape == (2, 3)
    assert all(map(np.array_equal, jax.tree.leaves(target), jax.tree.leaves(again)))
    assert type(target).load(path, shape=6).space.shape == (6,)


@pytest.mark.parametrize(("kind", "levels", "limit"), [(RBM, 2, 100_000), (CategoricalRBM, 4, 200_000)])
def test_the_shipped_machines(kind, levels, limit):
    target = kind.pretrained(shape=(28, 28))
    assert target.space.shape == (28, 28)
    assert target.space.num_levels == levels
    assert len(target.hidden_bias) == 25
    assert all(leaf.dtype == jnp.float32 and np.isfinite(leaf).all() for leaf in jax.tree.leaves(target))
    name = "rbm_mnist.npz" if kind is RBM else "rbm_fashion_mnist.npz"
    assert len(resources.files("discrax.targets").joinpath("weights", name).read_bytes()) < limit
    # From a dark picture, a bright pixel is unlikely in the corners and less so in the middle.
    x = jnp.zeros((28, 28), target.space.dtype)
    brightest = np.asarray(jax.jit(lambda x: evaluate(target, x).ratios)(x)).reshape(28, 28, -1)[..., -1]
    corners = brightest[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.max() < -3
    assert brightest[10:18, 10:18].mean() > corners.mean() + 1


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: RBM(np.zeros(3), np.zeros(3), np.zeros(1)), r"weights must have shape \(hidden, visible\)"),
        (lambda: RBM(np.zeros((2, 3)), np.zeros(2), np.zeros(2)), r"visible_bias must have shape \(3,\)"),
        (lambda: RBM(np.zeros((2, 3)), np.zeros(3), np.zeros(3)), r"hidden_bias must have shape \(2,\)"),
        (lambda: RBM(np.zeros((2, 3)), np.zeros(3), np.zeros(2), shape=4), "arrange the 3 visible sites"),
        (lambda: CategoricalRBM(np.zeros((2, 3)), np.zeros(3), np.zeros(2)), r"\(hidden, visible, levels\)"),
    ],
)
def test_bad_arrays(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()


def test_wrong_files(tmp_path):
    path = tmp_path / "file.npz"
    with pytest.raises(FileNotFoundError):
        RBM.load(path)
    path.write_text("not an archive")
    with pytest.raises(ValueError, match="is not an npz file of arrays"):
        RBM.load(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match="is not an npz file of arrays"):
        RBM.load(tmp_path / "one.npy")
    np.savez(path, weights=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="visible_bias, hidden_bias, shape are missing"):
        RBM.load(path)
    machine("categorical").save(path)
    with pytest.raises(ValueError, match=r"does not hold a RBM: .* try CategoricalRBM.load"):
        RBM.load(path)
