"""The network whose couplings are learnt again: how it begins, what moves it, its pictures, and who makes it."""

import time
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.bench.experiments import data, training
from discrax.bench.papers.enhanced_gradient_mcmc import convolutional
from discrax.bench.papers.enhanced_gradient_mcmc import energy_models as enhanced_learning
from discrax.bench.report import plots
from discrax.core.kernel import replaced
from discrax.core.space import Binary
from discrax.learn.models import NetworkModel

from .fake_rows import cell as fake_cell
from .fake_rows import rows as fake_rows


def test_a_network_begins_as_in_the_released_code():
    rows = (np.random.default_rng(0).random((400, 16, 16)) < 0.3).astype(np.int8)
    model = convolutional._untrained(rows, seed=0)
    first, bound = model.network.layers[1], 1 / np.sqrt(16 * 4 * 4)  # 16 channels, 4 x 4
    assert 0.95 * bound < np.abs(first.weight).max() <= bound
    assert np.asarray(model.bias) == pytest.approx(2 * np.log(rows.mean(axis=0) + 0.01), rel=1e-5)
    assert np.asarray(model.couplings)[np.triu_indices(256, 1)].std() == pytest.approx(2 * 0.01 / np.sqrt(2), rel=0.02)


def test_couplings_and_biases_move_twice_as_far_as_the_network():
    """They are 2 J and 2 b; Adam moves all by its rate. Weight decay is of the network alone."""
    network = eqx.nn.Linear(1, "scalar", key=jax.random.key(0))
    model = NetworkModel(lambda image: network(image.reshape(-1)[:1]), Binary((1, 2)), couplings=np.eye(2) / 10)
    model = replaced(model, network=network, bias=jnp.ones((1, 2)))
    optimiser = convolutional._optimiser(1e-3)
    ones = jax.tree.map(jnp.ones_like, eqx.filter(model, eqx.is_inexact_array))
    moved, _ = optimiser.update(ones, optimiser.init(ones), ones)
    assert np.asarray(moved.couplings) == pytest.approx(-2e-3, rel=1e-3)
    assert np.asarray(moved.bias) == pytest.approx(-2e-3, rel=1e-3)
    assert np.asarray(moved.network.weight) == pytest.approx(-1e-3 * (1 + 1e-4), rel=1e-5)


def test_pictures_of_all_steps_stand_side_by_side():
    found = []
    for K, seed, fill in ((10, 0, 1), (5, 1, 0), (5, 0, 0)):
        of = fake_cell("NCG", "", seed=seed, task="conv-ebm-usps-pcd", K=K)
        numbers = training.pixels(np.full((1, 1, 2, 3), fill, np.int8), K)
        found += [row for n in numbers for row in fake_rows({n.metric: n.value if n.x is None else {n.x: n.value}}, of)]
    made = enhanced_learning._side_by_side(found)
    assert [(row["x"], row["value"]) for row in made if row["metric"] == "pixels"] == [(0, 0), (1, 0), (2, 7), (3, 7)]
    single = {row["metric"]: row["value"] for row in made if row["x"] is None}
    assert (single["pixels_snapshots"], single["pixels_every"], single["pixels_height"]) == (2, 5, 2)
    assert plots.draw("pictures", made, {}) is not None


def test_what_one_process_makes_others_wait_for(tmp_path, monkeypatch):
    monkeypatch.setenv(data.CACHE_VARIABLE, str(tmp_path))
    made = []

    def make():
        made.append(1)
        time.sleep(0.3)
        return np.arange(3)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: training.keep_in_cache("once", np.zeros(3, int), make), range(4)))
    assert made == [1]
    assert all((each == np.arange(3)).all() for each in found)
    assert [path.name for path in tmp_path.iterdir()] == ["once.eqx"]
