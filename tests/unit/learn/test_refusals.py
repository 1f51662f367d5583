"""What learning refuses, before anything is compiled: each call ends in an exception of ours that says what came."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, samplers, targets
from discrax.data import Images, RowStream, load_images
from discrax.data.rows import as_rows
from discrax.data.stream import write_rows
from discrax.learn import (
    NetworkModel,
    PairwisePotts,
    ais,
    convnet,
    frequencies,
    from_function,
    marginal_error,
    mixing_curves,
    mmd,
    pcd,
    random_couplings,
    rbm_log_Z,
    resnet,
    snapshots,
    train_rbm,
)
from discrax.learn.pictures import image_grid

pytest.importorskip("optax")
KEY = jax.random.key(0)
ROWS = np.random.default_rng(0).integers(0, 2, (30, 4)).astype(np.int8)
IMAGES = Images("x", np.zeros((5, 3, 3), np.uint8), np.zeros((1, 3, 3), np.uint8), is_dynamic=True)


def model():
    return targets.Ising.dense(np.zeros((4, 4)))


KEYS = {"int": 0, "numpy": np.int64(3), "float": 1.5, "batch": jax.random.split(KEY, 3), "none": None, "text": "0"}
VERBS = {
    "pcd": lambda key: pcd(key, model(), ROWS),
    "ais": lambda key: ais(key, model()),
    "mixing_curves": lambda key: mixing_curves(key, model(), {"a": "rwm"}, init=ROWS[0], num_steps=2, every=1),
    "snapshots": lambda key: snapshots(key, model(), "rwm"),
    "train_rbm": lambda key: train_rbm(key, ROWS, 2),
    "random_couplings": lambda key: random_couplings(key, 3),
    "resnet": lambda key: resnet(key, (8, 8)),
    "convnet": lambda key: convnet(key),
}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_key_is_one_jax_key(verb, kind):
    with pytest.raises(TypeError, match="key must be one JAX key, such as"):
        VERBS[verb](KEYS[kind])


SETTINGS = [
    (
        {"optimiser": "adam"},
        r"optimiser must be an optax transformation, such as optax.adam\(1e-3\), but got 'adam'",
    ),
    ({"l1": -1}, "l1 must be at least 0, but got -1"),
    ({"l1": np.nan}, "l1 must be finite, but holds nan"),
    ({"weight_decay": np.inf}, "weight_decay must be finite"),
    ({"learning_rate": np.nan}, "learning_rate must be finite"),
    ({"learning_rate": None}, "learning_rate must be real numbers, but got None"),
    ({"ema": "x"}, "ema, a decay, must be real numbers"),
    ({"num_updates": 2.0}, "num_updates must be a whole number, but got 2.0"),
    ({"buffer_size": 10**13}, r"buffer_size = 10,000,000,000,000 chains of 4 sites need .* TiB"),
    ({"adaptation": 3}, "adaptation is 'auto', None or a rule of discrax.adaptation, but got 3"),
    ({"trains": 3}, "trains must be a function"),
    ({"trains": lambda model: model.nope}, r"trains\(model\) must return a part of the model"),
    ({"trains": lambda model: 3}, r"trains\(model\) must return a part of the model"),
    ({"penalty": lambda model: jnp.ones(2)}, r"penalty\(model\) must return one float"),
    ({"penalty": lambda model: model.nope}, r"penalty\(model\) cannot be traced: AttributeError"),
    ({"refresh": lambda kernel, model: None}, "must return a kernel, but returned None"),
    ({"largest_gap": np.nan}, "largest_gap must be "),
    ({"out": 3}, "out must be a folder, but got 3"),
    ({"out": "/etc/passwd"}, "/etc/passwd cannot be written: it is a file, and a folder was expected"),
    ({"data": np.full((5, 4), np.nan)}, r"data must be integer codes \(rows, \*sites\), but got float64"),
    ({"data": ROWS[0]}, "data must be integer codes"),
    ({"data": None}, "data must be integer codes"),
    ({"data": [[0, 1], [1]]}, "data must be integer codes"),
    ({"model": "x"}, "target must be (a discrax|of type) Target"),
]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("settings", "sentence"), SETTINGS)
def test_pcd_refuses(settings, sentence):
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        pcd(**({"key": KEY, "model": model(), "data": ROWS, "sampler": "rwm", "progress": False} | settings))


def curves(**settings):
    defaults = {"samplers": {"a": "rwm"}, "init": ROWS[0], "num_steps": 2, "every": 1, "num_chains": 2}
    return mixing_curves(KEY, model(), **(defaults | settings))


OTHERS = [
    (lambda: ais(KEY, model(), reference="x"), "reference must be real numbers"),
    (lambda: ais(KEY, model(), num_chains=10**13), "must fit into the machine's"),
    (lambda: ais(KEY, "x"), "target must be (a discrax|of type) Target"),
    (lambda: curves(samplers=["pas"]), "samplers must map names to samplers"),
    (lambda: curves(num_steps="x"), "num_steps must be a whole number"),
    (lambda: curves(num_chains=2.5), "num_chains must be a whole number"),
    (lambda: curves(num_warmup=-1), "num_warmup must be at least 0"),
    (
        lambda: mixing_curves(KEY, None, {"a": "rwm"}, init=ROWS[0], num_steps=1),
        "target must be (a discrax|of type) Target",
    ),
    (lambda: rbm_log_Z("x"), "machine must be an RBM or a CategoricalRBM, but got 'x'"),
    (lambda: train_rbm(KEY, ROWS, 2, num_levels=10**9), "must fit into the machine's"),
    (lambda: mmd(-ROWS.astype(int) - 1, ROWS), "Codes are 0 or more, but the smallest is -2"),
    (lambda: mmd(IMAGES, ROWS), "Both sets must be integer codes"),
    (lambda: marginal_error(None, ROWS), "Both sets must be integer codes"),
    (lambda: frequencies(np.full((3, 2), np.nan)), "rows must be integer codes"),
    (lambda: random_couplings(KEY, 0), "num_sites must be at least 1"),
    (lambda: random_couplings(KEY, 3, np.nan), "scale must be finite"),
    (lambda: resnet(KEY, (8, 8, 8)), r"Images have a shape \(height, width\)"),
    (lambda: resnet(KEY, (8, 8), width=0), "width must be at least 1"),
    (lambda: resnet(KEY, (8, 8), num_levels=1), "num_levels must be at least 2"),
    (lambda: convnet(KEY, num_levels=4, quadratic=True), "for binary images"),
    (lambda: PairwisePotts(np.full((2, 2, 2, 2), np.nan), np.zeros((2, 2))), "couplings must be finite"),
    (lambda: PairwisePotts("a", "b"), "fields must be real numbers"),
    (lambda: PairwisePotts.untrained(np.full((3, 2), 2.0)), "frequencies must be probabilities"),
    (lambda: NetworkModel(3, Binary((2, 2))), "network must be a function of images"),
    (lambda: NetworkModel(jnp.sum, Binary((2, 2)), base=np.full((2, 2), np.nan)), "base must be finite"),
    (lambda: from_function(lambda p, e: jnp.sum(e), "x", Binary(2)), "parameters must be a tree of arrays"),
    (lambda: load_images(["a"]), "There is no image set"),
    (lambda: load_images("mnist", 3), "There is no data folder 3"),
    (lambda: IMAGES.binarise(-1), "A seed is a whole number from 0"),
    (lambda: as_rows(np.full((3, 2), np.nan), 1), "Rows must be finite, but row 0"),
    (lambda: as_rows(np.array(["a", "b"]), 1), "Rows must be numbers or booleans"),
    (lambda: RowStream(ROWS, seed=-1), "seed must be a whole number of at least 0"),
    (lambda: write_rows("/etc/passwd/x.npy", lambda a, b: ROWS[a:b], 5), "cannot be written: it is a file"),
    (lambda: write_rows("x.npy", 3, 5), "make_block must be a function"),
    (lambda: image_grid(np.zeros((2, 3, 3), int), "x.what"), r"A picture ends in .png, .pdf or .svg, but x.what"),
    (lambda: image_grid(np.zeros((2, 3, 3), int), "x.png", columns=-1), "columns must be at least 1"),
    (lambda: image_grid(np.zeros((2, 3, 3), int), "x.png", num_levels=1), "num_levels must be at least 2"),
    (lambda: ais(KEY, model(), sampler=samplers.dula()), "does not leave its target invariant"),
]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("call", "sentence"), OTHERS)
def test_others_refuse(call, sentence, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        call()
    assert not list(tmp_path.iterdir())


def test_rows_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows.npy"
    write_rows(path, lambda begin, end: ROWS[begin:end], 30, 7)
    np.testing.assert_array_equal(np.load(path), ROWS)

    def fails(begin, end):
        if begin:
            raise RuntimeError("no more")
        return ROWS[begin:end]

    with pytest.raises(RuntimeError, match="no more"):
        write_rows(path, fails, 30, 7)
    np.testing.assert_array_equal(np.load(path), ROWS)
    assert [each.name for each in tmp_path.iterdir()] == ["rows.npy"]
