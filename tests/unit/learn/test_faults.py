"""Training that is disturbed: by signals, by a full disk, by another writer, by death inside a write."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax.learn.training as training
from discrax import exact, samplers, targets
from discrax.core.files import FolderLock, UnusableFile, write_whole
from discrax.core.space import Binary
from discrax.learn import ais, from_function, mixing_curves, pcd, random_couplings

from ..faulty_files import faulty_files

pytest.importorskip("optax")
KEY = jax.random.key(0)
DATA = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(np.int8)
SETTINGS = {
    "sampler": "rwm", "num_steps": 2, "batch_size": 10, "buffer_size": 20, "every": 4, "save_every": 4,
    "num_updates": 8, "adaptation": None, "progress": False,
}  # fmt: skip


def _linear(parameters, e):
    return jnp.sum(parameters * e)


MODEL = from_function(_linear, np.zeros(4, np.float32), Binary(4))  # one, so that all runs share a program


@pytest.fixture(scope="module")
def undisturbed():
    return pcd(KEY, MODEL, DATA, **SETTINGS)


@pytest.fixture(autouse=True)
def _plain_pictures(monkeypatch):
    """The picture of the curves takes longer than all the rest."""
    monkeypatch.setattr("discrax.learn.pictures.curves_picture", lambda curves, path: write_whole(path, "picture"))


def same(first, second) -> bool:
    leaves = [jax.tree.leaves((run.model, run.ema, run.buffer)) for run in (first, second)]
    return all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


@pytest.fixture
def signalled(monkeypatch):
    """Sends a signal to this process when the n-th chunk of training is shown."""

    def at(number, chunk):
        shown = []

        def show(self, steps, numbers):
            shown.append(steps)
            if len(shown) == chunk:
                os.kill(os.getpid(), number)

        monkeypatch.setattr(training.ProgressBar, "show", show)

    return at


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_learnt(tmp_path, signalled, undisturbed, number):
    signalled(number, 1)
    stopped = pcd(KEY, MODEL, DATA, out=tmp_path, **SETTINGS)
    assert stopped.is_interrupted
    assert not stopped.is_complete
    assert stopped.num_updates == 4
    assert stopped.stopped == f"Training was interrupted after 4 updates. The last good parameters are in {tmp_path}."
    resumed = pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    assert resumed.is_complete
    assert same(resumed, undisturbed)


def test_a_signal_is_heard_between_two_reports(tmp_path, monkeypatch, undisturbed):
    made, judge = [], training._divergence

    def judge_and_signal(recorded, update, most):
        made.append(len(recorded["gap"]))
        if update == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return judge(recorded, update, most)

    monkeypatch.setattr(training, "_ANSWER", 0.0)  # every update is a piece of its own
    monkeypatch.setattr(training, "_divergence", judge_and_signal)
    stopped = pcd(KEY, MODEL, DATA, out=tmp_path, **SETTINGS)
    assert (stopped.is_interrupted, stopped.num_updates, made) == (True, 2, [1, 1])
    resumed = pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    assert resumed.curves["update"].tolist() == [2, 4, 8]
    assert same(resumed, undisturbed)


def test_a_kernel_is_prepared_at_reports_alone(tmp_path, monkeypatch):
    """There a path kernel gets room for longer paths: elsewhere, training that goes on would be another."""
    prepared = []

    def prepare(self, target, **_):
        prepared.append(self)
        return self, None

    monkeypatch.setattr(type(samplers.rwm()), "prepare", prepare)
    pcd(KEY, MODEL, DATA, out=tmp_path, **(SETTINGS | {"num_updates": 2}))
    assert len(prepared) == 1 + 1  # before all, and at the first update
    pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    assert len(prepared) == 2 + 1 + 1  # before all, and at the fifth


EVERY = [4, pytest.param(1, marks=pytest.mark.slow)]  # so many writes apart


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ["full", "denied"])
def test_a_disk_that_cannot_be_written_ends_with_a_sentence_and_all_that_was_learnt(tmp_path, undisturbed, kind, every):
    with faulty_files(tmp_path) as counted:
        pcd(KEY, MODEL, DATA, out=tmp_path / "counted", **SETTINGS)
    assert counted.count > 20
    outcomes = set()
    for at in range(1, counted.count + 1, every):
        folder = tmp_path / f"run-{at}"
        with faulty_files(folder, kind, at=at):
            try:
                trained = pcd(KEY, MODEL, DATA, out=folder, **SETTINGS)
            except UnusableFile:  # nothing could be begun
                assert at < 13
                outcomes.add("refused")
                continue
        if trained.stopped is not None:
            assert "cannot be written: " in trained.stopped
            assert trained.stopped.endswith(f" in {folder}.")
            outcomes.add("stopped")
        assert trained.num_updates in (4, 8)
        assert trained.num_updates == 4 or same(trained, undisturbed)  # returned although it could not be written
    assert outcomes == {"refused", "stopped"}


@pytest.mark.parametrize("every", EVERY)
def test_dead_inside_any_write_the_run_can_be_resumed(tmp_path, undisturbed, every):
    with faulty_files(tmp_path) as counted:
        pcd(KEY, MODEL, DATA, out=tmp_path / "counted", **SETTINGS)
    resumed_from = set()
    for at in range(1, counted.count + 1, every):
        folder = tmp_path / f"run-{at}"
        with faulty_files(folder, "dead", at=at), suppress(UnusableFile):
            pcd(KEY, MODEL, DATA, out=folder, **SETTINGS)
        kept = [int(path.stem) for path in (folder / "checkpoints").glob("*.npz") if path.stem.isdigit()]
        after = pcd(KEY, MODEL, DATA, out=folder, resume=bool(kept), **SETTINGS)
        assert after.is_complete, at
        assert same(after, undisturbed), at
        assert after.curves["update"].tolist() == [4, 8], at
        assert not list(folder.rglob("*.part")), at
        resumed_from.add(max(kept, default=0))
    assert resumed_from == {0, 4, 8}


def test_one_writer_a_folder(tmp_path):
    pcd(KEY, MODEL, DATA, out=tmp_path, **SETTINGS)
    code = f"import sys, fcntl; f = open({str(tmp_path / '.lock')!r}, 'a+'); fcntl.flock(f, fcntl.LOCK_EX);"
    code += "import os; f.truncate(0); f.write(f'process {os.getpid()} on here'); f.flush(); print('held', flush=True);"
    other = subprocess.Popen([sys.executable, "-c", code + "sys.stdin.read()"], stdin=-1, stdout=-1, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(OSError, match=rf"process {other.pid} on .* is writing there; wait for it or stop it"):
            pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    finally:
        other.communicate("")
    assert pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS).is_complete
    with FolderLock(tmp_path):  # and it was given back
        pass


def test_damaged_files_are_sentences(tmp_path):
    pcd(KEY, MODEL, DATA, out=tmp_path, **SETTINGS)
    (tmp_path / "curves.csv").write_text("update,seconds\n4,oops\n")
    with pytest.raises(ValueError, match=r"curves.csv is damaged: .*; delete it to go on without"):
        pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    (tmp_path / "curves.csv").unlink()
    last = tmp_path / "checkpoints" / "8.npz"
    for content in (b"", last.read_bytes()[:-50], b"what"):
        last.write_bytes(content)
        with pytest.raises(ValueError, match=r"8.npz is damaged; delete it to go on from the one before"):
            pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS)
    last.unlink()
    assert pcd(KEY, MODEL, DATA, out=tmp_path, resume=True, **SETTINGS).is_complete


def test_sites_that_are_redrawn_in_turn_all_have_their_turn():
    """Two steps an update would redraw the first two of four sites for ever if each update began again."""
    settings = SETTINGS | {"sampler": samplers.gibbs("systematic"), "num_updates": 60, "every": 20}
    ones = np.ones((60, 4), np.int8)
    trained = pcd(KEY, MODEL, ones, init=np.zeros((20, 4), np.int8), **settings)
    assert (trained.buffer.mean(axis=0) > 0.2).all()


@pytest.mark.parametrize("sampler", [samplers.gibbs(), samplers.gibbs("chromatic")], ids=["random", "chromatic"])
def test_couplings_that_training_made_are_sampled_exactly(sampler):
    """Binary variables, couplings from zero: training makes a diagonal and bonds that were not there before."""
    rows = np.random.default_rng(1).integers(0, 2, (200, 3)).astype(np.int8)
    rows[:, 1] = rows[:, 0]
    start = targets.Quadratic(Binary(3), np.zeros((3, 3)), np.zeros(3))
    trained = pcd(KEY, start, rows, **(SETTINGS | {"num_updates": 60, "every": 60, "learning_rate": 0.05}))
    J = np.asarray(trained.model.coupling.matrix)
    assert np.abs(np.diag(J)).min() > 0.05
    assert np.abs(J[0, 1]) > 0.5
    verdict = exact.check_kernel(sampler, trained.model, num_chains=4000)
    assert verdict, str(verdict)


def test_signals_end_estimates_that_are_no_use_in_part(monkeypatch):
    target = targets.Ising.dense(np.asarray(random_couplings(KEY, 3)))
    module = sys.modules["discrax.sampling.annealed"]
    monkeypatch.setattr(module, "chunk_length", lambda *_: 5)
    monkeypatch.setattr(module.ProgressBar, "advance", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        ais(KEY, target, sampler=samplers.gibbs(), num_chains=2, num_temperatures=10, progress=False)
    monkeypatch.setattr("discrax.learn.mixing.log_probs_of", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        mixing_curves(KEY, target, {"gibbs": "gibbs"}, init=np.zeros(3, int), num_steps=2, every=1, num_warmup=0)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
