"""Results as files: all of it comes back, what cannot is named, and a failed write leaves what was there."""

import json
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import discrax as dx
from discrax import targets
from discrax.core.files import UnusableFile

from ..helpers import OneFlip

KEY = jax.random.key(0)
TARGET = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
SETTINGS = {"num_chains": 3, "num_warmup": 20, "num_samples": 10}


def run(sampler="dmala", target=TARGET, **settings):
    return dx.sample(KEY, target, sampler, **SETTINGS | settings)


@pytest.fixture(scope="module")
def result():
    return run(keep_warmup=True)


@pytest.fixture
def loaded(result, tmp_path):
    return dx.load(result.save(tmp_path / "run.nc"))


def test_all_of_it_comes_back(result, loaded):
    np.testing.assert_array_equal(loaded.draws, result.draws)
    assert loaded.draws.dtype == result.draws.dtype
    np.testing.assert_array_equal(loaded.warmup_draws, result.warmup_draws)
    for name in ("stats", "warmup_stats", "mean_stats"):
        before, after = getattr(result, name), getattr(loaded, name)
        assert set(before) == set(after)
        for key, values in before.items():
            np.testing.assert_array_equal(after[key], values)
    assert str(loaded.summary()) == str(result.summary())
    np.testing.assert_allclose(loaded.mean(), result.mean())
    assert loaded.num_chains == 3
    assert (loaded.num_draws, loaded.thinning, loaded.is_complete) == (10, 1, True)


def test_a_target_and_a_kernel_of_ours_are_the_same_again(result, loaded):
    assert jax.tree.structure(loaded.target) == jax.tree.structure(result.target)
    for before, after in zip(jax.tree.leaves(result.target), jax.tree.leaves(loaded.target), strict=True):
        np.testing.assert_array_equal(before, after)
    assert float(loaded.kernel.step_size) == float(result.kernel.step_size)
    on = dx.sample(KEY, loaded.target, loaded.kernel, init=loaded.states.x, **SETTINGS | {"num_warmup": 0})
    again = dx.sample(KEY, result.target, result.kernel, init=result.states.x, **SETTINGS | {"num_warmup": 0})
    np.testing.assert_array_equal(on.draws, again.draws)


def test_xarray_and_arviz_find_their_groups(result, tmp_path):
    tree = xarray.open_datatree(result.save(tmp_path / "run.nc"))
    assert dict(tree["posterior"].sizes) == {"chain": 3, "draw": 10, "axis_0": 4}
    assert "lp" in tree["sample_stats"]
    tree.close()


@pytest.mark.parametrize(
    "target",
    [
        targets.Potts.lattice((2, 2), 3, 0.5),
        targets.Bernoulli(np.full(4, 0.3)),
        dx.Tempered(targets.Ising.dense(np.zeros((3, 3))), 0.5),
        targets.Quadratic(dx.Ordinal(3, [0.0, 1.0, 3.0]), np.zeros((3, 3))),
        targets.Quadratic(dx.Binary(3, frozen=np.array([True, False, False])), np.zeros((3, 3))),
    ],
    ids=["potts", "bernoulli", "tempered", "ordinal", "frozen"],
)
def test_targets_of_every_space_come_back(target, tmp_path):
    loaded = dx.load(run("gibbs", target, num_warmup=0).save(tmp_path / "run.nc"))
    assert eqx.tree_equal(loaded.target, target)


def test_code_of_the_users_is_left_out_with_a_note(tmp_path):
    target = dx.Target.from_log_prob(lambda e: jnp.sum(e), dx.Binary(3))
    path = run(OneFlip(), target, num_warmup=0).save(tmp_path / "run.nc")
    loaded = dx.load(path)
    assert "OneFlip on FunctionTarget" in str(loaded.summary())
    assert loaded.mean().shape == (3,)
    with pytest.raises(ValueError, match="The target FunctionTarget was not stored with the result"):
        loaded.target.log_prob(jnp.zeros(3))
    with pytest.raises(ValueError, match="The kernel OneFlip was not stored"):
        loaded.kernel.init(loaded.target, jnp.zeros(3, jnp.int8))
    with xarray.open_datatree(path) as tree:
        notes = tree["discrax"].attrs["notes"]
    assert "The target was left out: it holds a function" in notes
    assert "The kernel was left out: it holds OneFlip" in notes


def test_statistics_and_moments_come_back(tmp_path):
    kept = run("gibbs", num_warmup=0, keep=lambda x: {"first": x[0], "rest": (x[1:], x.sum())})
    loaded = dx.load(kept.save(tmp_path / "kept.nc"))
    np.testing.assert_array_equal(loaded.kept["rest"][0], kept.kept["rest"][0])
    moments = run("gibbs", num_warmup=0, keep="moments")
    loaded = dx.load(moments.save(tmp_path / "moments.nc"))
    np.testing.assert_allclose(loaded.mean(), moments.mean())


def test_a_file_that_is_no_result_is_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is none at"):
        dx.load(tmp_path / "nothing.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(ValueError, match=r"must be a file that Result.save wrote"):
        dx.load(tmp_path / "text.nc")


def test_a_file_cannot_name_code_that_is_not_ours(result, tmp_path):
    path = result.save(tmp_path / "run.nc")
    with xarray.open_datatree(path) as tree:
        tree = tree.load()
    description = json.loads(tree["discrax"].attrs["description"])
    description["kernel"] = {"class": "os:system", "fields": {}}
    tree["discrax"].attrs["description"] = json.dumps(description)
    tree.to_netcdf(tmp_path / "bad.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="A stored object must come from discrax, but got os:system"):
        dx.load(tmp_path / "bad.nc")


def test_a_write_that_fails_leaves_what_was_there_and_nothing_beside_it(result, tmp_path, monkeypatch):
    path = result.save(tmp_path / "run.nc")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnusableFile, match=r"run.nc cannot be written: no space left on device\."):
        result.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


def test_a_place_that_cannot_be_written_is_a_sentence(result, tmp_path):
    with pytest.raises(UnusableFile, match="it is a folder, and a file was expected"):
        result.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableFile, match="it is a file, and a folder was expected"):
        result.save(tmp_path / "file" / "run.nc")


def test_the_representation_is_short(result):
    text = repr(result)
    assert len(text.splitlines()) <= 10
    assert "dmala on Ising" in text
    assert "3 chains x 10 draws" in text
