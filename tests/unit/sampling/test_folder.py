"""Runs in a folder: killed anywhere they end as if nothing had happened, and whatever goes wrong is a sentence."""

import os
import signal
import sys
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

import discrax as dx
from discrax import targets
from discrax.core.devices import Devices
from discrax.core.files import UnusableFile
from discrax.sampling.fingerprint import surroundings
from discrax.sampling.folder import FolderPlace
from discrax.sampling.stored_array import StoredArray, draw_blocks, import_zarr, write_draws
from discrax.sampling.together import sample_together
from repeats import repeats

from ..faulty_files import faulty_files
from ..helpers import OneFlip
from .folders import KEY, assert_same, dying, sample


@pytest.fixture(scope="module")
def whole():
    return sample(keep_warmup=True)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return sample(folder, keep_warmup=True), folder


# --- what is in it ---


def test_a_folder_has_the_draws_that_memory_would_have(whole, stored):
    result, folder = stored
    assert_same(whole, result)
    assert_same(whole, dx.load(folder))
    assert isinstance(result.draws, StoredArray)
    np.testing.assert_allclose(result.mean(), whole.mean(), rtol=1e-12)
    np.testing.assert_allclose(result.mean(lambda x: x.sum(-1) > 2), whole.mean(lambda x: x.sum(-1) > 2), rtol=1e-12)
    lines, expected = (str(each.summary()).splitlines() for each in (result, whole))
    assert [line for line in lines if " s" not in line] == [line for line in expected if " s" not in line]


@pytest.mark.parametrize(
    "index",
    [0, np.s_[:, -1], np.s_[1, 7], np.s_[:, 5:25:3], np.s_[..., 2], np.s_[1:, ::-1], np.s_[[0, 2]], np.s_[:, :0]],
    ids=str,
)
def test_stored_draws_are_indexed_as_arrays_are(whole, stored, index):
    np.testing.assert_array_equal(stored[0].draws[index], whole.draws[index])


def test_arviz_reads_draws_when_they_are_used(monkeypatch, whole, stored):
    read, original = [], StoredArray._read

    def note(self, chains, draws):
        read.append((self._path.parent.name, self._path.name, draws))
        return original(self, chains, draws)

    monkeypatch.setattr(StoredArray, "_read", note)
    tree, expected = stored[0].to_arviz(), whole.to_arviz()
    assert {(group, name) for group, name, _ in read} <= {("draws", "log_weight")}  # whether draws count the same
    read.clear()
    last = tree["posterior"]["x"].isel(draw=slice(-3, None))
    assert not read
    np.testing.assert_array_equal(last.values, whole.draws[:, -3:])
    assert read == [("draws", "x", range(27, 30))]
    for group in expected.children:
        for name, values in expected[group].data_vars.items():
            assert values.identical(tree[group][name].load())


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (3, 5)])
def test_bits_come_back_for_any_number_of_sites(tmp_path, shape):
    draws = np.random.default_rng(0).integers(0, 2, (2, 10, *shape)).astype(np.int8)
    group = import_zarr().open_group(tmp_path / "arrays", mode="a")
    for first in (0, 4, 8):
        write_draws(group, "x", draws[:, first : first + 4], first, 10, True)
    found = StoredArray(group["x"], 0, 10)
    assert (found.shape, found.dtype) == (draws.shape, draws.dtype)
    np.testing.assert_array_equal(found, draws)
    part = StoredArray(group["x"], 3, 5)
    np.testing.assert_array_equal(part, draws[:, 3:8])
    assert part.chunks == [slice(0, 1), slice(1, 5)]
    blocks = list(draw_blocks(part))
    assert [place for place, _ in blocks] == part.chunks
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks], axis=1), part)
    assert group["x"].dtype == np.uint8


def both(x):
    return {"total": jnp.sum(x.astype(jnp.float32)), "first": (x[0],)}


@pytest.mark.parametrize("keep", ["moments", both], ids=["moments", "function"])
def test_moments_and_statistics_survive_too(tmp_path, monkeypatch, keep):
    expected = sample(keep=keep)
    with dying(monkeypatch, "commit", 4):
        sample(tmp_path, keep=keep)
    result = sample(tmp_path, keep=keep)
    for found in (result, dx.load(tmp_path)):
        assert jax.tree.structure(found.kept) == jax.tree.structure(expected.kept)
        for name in ("kept", "moments", "mean_stats"):
            before, after = jax.tree.leaves(getattr(expected, name)), jax.tree.leaves(getattr(found, name))
            for one, other in zip(before, after, strict=True):
                np.testing.assert_allclose(one, other, rtol=0 if name != "mean_stats" else 1e-5)


# --- killed ---


def test_a_run_that_dies_in_every_chunk_ends_as_if_it_had_not(tmp_path, monkeypatch, whole):
    """Before a chunk is written, between a chunk and the state, and after the state of every chunk there is."""
    for _ in range(5):
        for method, number in (("write", 1), ("commit", 1), ("write", 2)):
            with dying(monkeypatch, method, number):
                sample(tmp_path, keep_warmup=True)
    assert dx.load(tmp_path).is_complete
    assert_same(whole, sample(tmp_path, keep_warmup=True))


@pytest.mark.parametrize("keep", ["moments", both], ids=["moments", "function"])
def test_runs_that_share_a_program_survive_together(tmp_path, monkeypatch, keep):
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    models = [targets.Ising.graph(edges, coupling, 0.2) for coupling in (0.5, 0.1)]
    settings = {"num_chains": 3, "num_warmup": 20, "num_samples": 30, "keep": keep}

    def run(folder=None, models=models):
        return sample_together(list(jax.random.split(KEY, 2)), models, [OneFlip()] * 2, folder=folder, **settings)

    monkeypatch.setattr("discrax.sampling.run.chunk_length", lambda *_: 10)
    expected = run()
    for number in (1, 3, 2):
        with dying(monkeypatch, "commit", number):
            run(tmp_path)
    for one, other in zip(expected, run(tmp_path), strict=True):
        for name in ("kept", "moments", "stats", "warmup_stats"):
            pairs = zip(*(jax.tree.leaves(getattr(result, name)) for result in (one, other)), strict=True)
            assert all(np.array_equal(before, after) for before, after in pairs)
        np.testing.assert_array_equal(one.states.x, other.states.x)
    with pytest.raises(ValueError, match="another targets"):
        run(tmp_path, models[:1] * 2)


@pytest.mark.parametrize("count", [3, pytest.param(repeats(10, 100), id="many", marks=pytest.mark.slow)])
def test_a_half_written_file_costs_a_chunk_at_most(tmp_path, whole, count):
    with faulty_files(tmp_path / "counted") as faults:
        sample(tmp_path / "counted", keep_warmup=True)
    for each in np.random.default_rng(0).choice(faults.count, count, replace=False) + 1:
        folder = tmp_path / str(each)
        with faulty_files(folder, "dead", at=each), suppress(OSError, ValueError):
            sample(folder, keep_warmup=True)
        assert_same(whole, sample(folder, keep_warmup=True))


# --- going on ---


def test_a_file_that_a_kill_left_among_the_arrays_is_not_read(tmp_path, whole):
    sample(tmp_path / "run")
    (tmp_path / "run" / "arrays" / "draws" / "zarr.0fbd4c05.partial").write_text("{")
    found = dx.load(tmp_path / "run")
    assert found.stats.keys() == whole.stats.keys()
    np.testing.assert_array_equal(found.draws, whole.draws)


def test_a_finished_run_is_returned_and_a_longer_one_extends_it(tmp_path, monkeypatch, whole):
    sample(tmp_path, keep_warmup=True, num_samples=15)
    with monkeypatch.context() as patch:
        patch.setattr(FolderPlace, "write", lambda *_: pytest.fail("there was nothing to draw"))
        assert sample(tmp_path, keep_warmup=True, num_samples=15).num_draws == 15
    assert_same(whole, sample(tmp_path, keep_warmup=True))


def test_a_run_can_be_read_while_it_is_written(tmp_path, monkeypatch, whole):
    with dying(monkeypatch, "write", 4):
        sample(tmp_path, keep_warmup=True)
    result = dx.load(tmp_path)
    assert (result.is_complete, result.num_draws) == (False, 10)
    np.testing.assert_array_equal(result.draws, whole.draws[:, :10])
    assert "interrupted after 10 draws" in str(result.summary())


def test_a_signal_ends_a_run_that_goes_on_later(tmp_path, monkeypatch, whole):
    original = FolderPlace.commit

    def commit(self, run, done):
        original(self, run, done)
        if done.filled == 10 and self._title == "sampling":
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(FolderPlace, "commit", commit)
        result = sample(tmp_path, keep_warmup=True)
    assert (result.is_complete, result.num_draws) == (False, 10)
    assert_same(whole, sample(tmp_path, keep_warmup=True))


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": jax.random.key(1)}, "another key"),
        ({"target": targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.3)}, "another target"),
        ({"sampler": "dmala"}, "another sampler"),
        ({"sampler": OneFlip(0.5)}, "another sampler"),
        ({"adaptation": None}, "another adaptation"),
        ({"init": np.zeros(4, np.int8)}, "another init"),
        ({"keep": both}, "another keep"),
        ({"keep": "moments"}, "keep draws instead of moments"),
        ({"num_chains": 4}, "num_chains 3 instead of 4"),
        ({"thinning": 2, "num_warmup": 30}, "num_warmup 20 instead of 30 and thinning 1 instead of 2"),
        ({"keep_warmup": False}, "keep_warmup True instead of False"),
        ({"num_samples": 20}, "has 30 draws a chain, but num_samples is 20"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_run_in_the_same_folder_is_refused(stored, changes, what):
    with pytest.raises(ValueError, match=what):
        sample(stored[1], **{"keep_warmup": True} | changes)
    assert dx.load(stored[1]).is_complete


def test_other_versions_are_told(tmp_path, monkeypatch):
    with dying(monkeypatch, "write", 2):
        sample(tmp_path)
    monkeypatch.setattr("discrax.sampling.folder.surroundings", lambda devices: surroundings(devices) | {"jax": "9.9"})
    with pytest.warns(UserWarning, match=r"was begun with jax [\d.]+, which is 9.9 now"):
        sample(tmp_path)


def test_the_number_of_devices_is_told_apart():
    """What becomes of a run on another number is in `on_eight_devices.py`."""
    alone, two = (
        surroundings(None),
        surroundings(Devices(Mesh(np.asarray(jax.devices()[:1] * 2), ("chains",)), frozenset())),
    )
    assert {name: two[name] for name in two if two[name] != alone[name]} == {"devices for chains": "2"}


def test_two_writers_are_one_too_many(tmp_path, monkeypatch):
    original = FolderPlace.write

    def write(self, *arguments):
        with pytest.raises(UnusableFile, match=f"process {os.getpid()} .* is writing there"):
            sample(tmp_path)
        return original(self, *arguments)

    monkeypatch.setattr(FolderPlace, "write", write)
    sample(tmp_path, num_warmup=0, num_samples=10)


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path, whole):
    with faulty_files(tmp_path / "counted") as faults:
        sample(tmp_path / "counted", keep_warmup=True)
    folder = tmp_path / "run"
    with faulty_files(folder, "full", at=int(0.8 * faults.count)), pytest.raises(UnusableFile, match="no space left"):
        sample(folder, keep_warmup=True)
    result = dx.load(folder)
    assert 0 < result.num_draws < 30
    np.testing.assert_array_equal(result.draws, whole.draws[:, : result.num_draws])
    assert_same(whole, sample(folder, keep_warmup=True))


def test_a_folder_without_permission_or_with_other_files_is_refused(tmp_path):
    with faulty_files(tmp_path, "denied", at=1), pytest.raises(UnusableFile, match="permission denied"):
        sample(tmp_path / "run")
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UnusableFile, match="other files"):
        sample(tmp_path)
    with pytest.raises(FileNotFoundError, match="must hold a run"):
        dx.load(tmp_path)


@pytest.mark.parametrize("is_missing", [False, True], ids=["damaged", "missing"])
def test_a_damaged_chunk_is_named_and_the_others_are_read(tmp_path, whole, is_missing):
    sample(tmp_path, keep_warmup=True)
    chunk = tmp_path / "arrays" / "draws" / "x" / "c" / "0" / "1" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.unlink()
    if not is_missing:
        chunk.write_bytes(content)
    result = dx.load(tmp_path)
    with pytest.raises(ValueError, match=r"draws 10 to 20 of .* cannot be read, but all others can"):
        np.asarray(result.draws)
    np.testing.assert_array_equal(result.draws[:, 20:], whole.draws[:, 20:])


def test_a_damaged_state_is_told(tmp_path):
    sample(tmp_path, num_warmup=0, num_samples=10)
    (tmp_path / "state-0.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"state-0.npz must be a file of a run"):
        dx.load(tmp_path)


def test_a_run_of_several_processes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="must have one writer, but 2 processes"):
        sample(tmp_path)


def test_zarr_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"Runs in a folder need zarr.*discrax\[zarr\]"):
        sample(tmp_path)
