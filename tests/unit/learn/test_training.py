"""Contrastive divergence: it finds the law of the data, and a run that was killed is the run that was not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import exact, samplers, targets
from discrax.adaptation import AcceptanceRate
from discrax.core.kernel import State, replaced, scalar_info
from discrax.core.programs import _programs
from discrax.core.space import Binary
from discrax.core.target import evaluate
from discrax.data import Images
from discrax.learn import NetworkModel, from_function, pcd, random_couplings
from discrax.learn.inputs import adam
from discrax.learn.updates import _reshuffled

optax = pytest.importorskip("optax")
KEY = jax.random.key(0)
TRUE = targets.Ising.dense(np.array([[0, 0.8, 0, -0.5], [0.8, 0, 0.4, 0], [0, 0.4, 0, 0.6], [-0.5, 0, 0.6, 0]]))
DATA = np.asarray(exact.draw(jax.random.key(5), TRUE, 4000))
SHORT = {"num_steps": 3, "num_updates": 20, "batch_size": 20, "buffer_size": 100, "every": 10, "progress": False}


def untrained():
    return targets.Ising.dense(np.asarray(random_couplings(KEY, 4)))


@pytest.mark.parametrize(
    "sampler", ["pas", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dmala", "gibbs"))]
)
def test_the_couplings_of_the_data_are_found(sampler):
    trained = pcd(
        KEY, untrained(), DATA, sampler=sampler, num_steps=3, num_updates=1200, batch_size=100, buffer_size=1000,
        learning_rate=5e-3, ema=0.99, every=400, progress=False,
    )  # fmt: skip
    assert trained.is_complete
    distance = exact.total_variation(exact.law(TRUE), exact.law(trained.ema))
    assert exact.total_variation(exact.law(TRUE), exact.law(untrained())) > 0.2
    assert distance < 0.05
    assert trained.curves["update"].tolist() == [400, 800, 1200]
    assert abs(trained.curves["gap"][-1]) < 0.2
    if sampler != "gibbs":
        assert abs(trained.curves["acceptance"][-1] - 0.574) < 0.3


def test_the_rate_grows_from_nothing():
    """As in the papers' code: the first update has rate 0, and the one after `num_warmup` all of it."""
    optimiser, ones = adam(1e-2, 10), {"weight": jnp.ones(3)}
    state = optimiser.init(ones)
    sizes = []
    for _ in range(12):
        updates, state = optimiser.update(ones, state, ones)
        sizes.append(-float(updates["weight"][0]))
    np.testing.assert_allclose(sizes, 1e-2 * np.minimum(np.arange(12) / 10, 1), atol=1e-6)


def test_chains_from_the_data_need_no_buffer():
    trained = pcd(KEY, untrained(), DATA, sampler="gibbs", persistent=False, **SHORT)
    again = pcd(KEY, untrained(), DATA, sampler="gibbs", persistent=False, init=DATA[:100], **SHORT)
    np.testing.assert_array_equal(trained.model.coupling.matrix, again.model.coupling.matrix)
    np.testing.assert_array_equal(again.buffer, DATA[:100])


@pytest.mark.parametrize("kind", ["frozen", "bounded"])
def test_chains_begin_in_their_space(kind):
    couplings = np.triu(np.full((4, 4), 0.1), 1)
    space = Binary(4, exactly=2) if kind == "bounded" else Binary(4, frozen=np.arange(4) < 2, frozen_codes=[1, 0, 0, 0])
    model = targets.Quadratic(space, couplings + couplings.T)
    rows = np.array([[1, 0, 0, 1], [1, 0, 1, 0]] * 100, np.int8)
    sampler = "swap" if kind == "bounded" else "gibbs"
    trained = pcd(KEY, model, rows, sampler=sampler, **(SHORT | {"buffer_size": 600, "num_updates": 2}))
    space.check(trained.buffer)


def test_a_buffer_is_reshuffled_before_each_pass():
    """Chains that stay where they are: the buffer itself shows its order."""
    still = samplers.dmala(step_size=1e-9)
    states = np.array([[i >> site & 1 for site in range(4)] for i in range(16)], np.int8)
    settings = {"sampler": still, "num_steps": 1, "batch_size": 4, "init": states, "adaptation": None, "every": 8}

    def order(num_updates, **more):
        buffer = pcd(KEY, untrained(), DATA, num_updates=num_updates, progress=False, **settings, **more).buffer
        return (buffer @ (1 << np.arange(4))).tolist()

    assert order(8) == list(range(16))
    one, another, third = (order(updates, reshuffle=True) for updates in (1, 4, 5))
    assert one == another  # within a pass it stays
    assert sorted(one) == sorted(third) == list(range(16))
    assert len({tuple(range(16)), tuple(one), tuple(third)}) == 3


def test_the_scan_of_a_chain_is_shuffled_with_it():
    buffer = jnp.arange(10)
    after, (scan,) = _reshuffled(KEY, (buffer, (3 * buffer,)))
    np.testing.assert_array_equal(scan, 3 * after)
    assert after.tolist() != buffer.tolist()


def test_new_parameters_do_not_compile_again():
    before = set(_programs)
    first = pcd(KEY, untrained(), DATA, sampler="dmala", **SHORT)
    made = set(_programs) - before
    second = pcd(jax.random.key(1), first.model, DATA[::-1], sampler=first.kernel, **(SHORT | {"num_updates": 17}))
    assert len(made) == 1
    assert set(_programs) - before == made
    assert second.num_updates == 17


def test_the_diagonal_of_couplings_between_spins_is_not_trained():
    """It only adds a constant; its gradient would be rounding errors, of which Adam makes steps."""
    start = untrained()
    trained = pcd(KEY, start, DATA, sampler="dmala", **SHORT)
    changed = np.asarray(trained.model.coupling.matrix != start.coupling.matrix)
    np.testing.assert_array_equal(changed, ~np.eye(4, dtype=bool))


def test_only_a_part_is_trained():
    start = targets.Ising.dense(np.asarray(random_couplings(KEY, 4)), field=0.3)
    trained = pcd(KEY, start, DATA, sampler="rwm", trains=lambda model: model.coupling.matrix, **SHORT)
    np.testing.assert_array_equal(trained.model.linear, start.linear)
    np.testing.assert_array_equal(trained.ema.linear, start.linear)
    assert np.abs(trained.model.coupling.matrix - start.coupling.matrix).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["weight_decay", "l1", "penalty"])
def test_penalties_keep_parameters_small(penalty):
    strong = {penalty: (lambda m: 10 * jnp.sum(m.coupling.matrix**2)) if penalty == "penalty" else 10.0}
    settings = SHORT | {"num_updates": 60, "learning_rate": 0.01}
    free, held = (pcd(KEY, untrained(), DATA, sampler="rwm", **settings, **kwargs) for kwargs in ({}, strong))
    assert np.abs(held.model.coupling.matrix).sum() < 0.3 * np.abs(free.model.coupling.matrix).sum()
    if penalty == "weight_decay":  # biases are not held
        assert np.abs(held.model.linear).max() > 0


def test_refresh_makes_the_kernel_follow_the_model():
    """The step size that `refresh` sets is that of the trained parameters."""
    trained = pcd(
        KEY, untrained(), DATA, sampler="dmala", adaptation=None,
        refresh=_with_size_of, **SHORT,
    )  # fmt: skip
    assert trained.kernel.step_size == pytest.approx(1 + float(jnp.sum(trained.model.coupling.matrix**2)))


def _with_size_of(kernel, model):
    return replaced(kernel, step_size=(1 + jnp.sum(model.coupling.matrix**2)).astype(jnp.float32))


def test_greys_are_drawn_anew_in_every_batch():
    """With one grey of 51 a pixel is on in a fifth of the batches, and the model learns that."""
    greys = np.full((50, 2, 2), 51, np.uint8)
    model = from_function(lambda p, e: jnp.sum(p * e), np.zeros((2, 2), np.float32), Binary((2, 2)))
    trained = pcd(
        KEY, model, Images("greys", greys, greys, is_dynamic=True), sampler="gibbs", num_steps=8, num_updates=800,
        batch_size=50, buffer_size=50, learning_rate=0.02, every=400, progress=False,
    )  # fmt: skip
    p = 1 / (1 + np.exp(-np.asarray(trained.ema.parameters)))
    np.testing.assert_allclose(p, 0.2, atol=0.06)


def test_divergence_ends_with_a_sentence_and_the_last_good_parameters(tmp_path):
    start = NetworkModel(lambda image: jnp.sum(image) * 0.0, Binary((2, 2)), bias=np.zeros((2, 2)))
    data = np.ones((40, 2, 2), np.int8)
    bad = pcd(KEY, start, data, optimiser=optax.sgd(1e30), sampler="rwm", adaptation=None, **SHORT)
    assert "Training diverged" in bad.stopped
    assert not bad.is_complete
    assert np.isfinite(bad.model.bias).all()
    gap = pcd(KEY, start, data, optimiser=optax.sgd(3.0), sampler="rwm", adaptation=None, largest_gap=1.0,
              out=tmp_path / "run", **SHORT)  # fmt: skip
    assert "differ by" in gap.stopped
    assert str(tmp_path / "run") in gap.stopped
    assert (tmp_path / "run" / "checkpoints").is_dir()


SCRIPT = """
import sys
import jax
import numpy as np
from discrax import targets
from discrax.learn import pcd, random_couplings

rows = np.load(sys.argv[1])
model = targets.Ising.dense(np.asarray(random_couplings(jax.random.key(0), 4)))
pcd(jax.random.key(3), model, rows, sampler="pas", num_steps=3, num_updates=10**7, batch_size=20, buffer_size=100,
    every=10, save_every=10, out=sys.argv[2], progress=False)
"""


def test_killed_and_resumed_is_not_killed(tmp_path):
    """SIGKILL in the middle of training; parameters, their mean, chains and sampler are the same, bit for bit."""
    np.save(tmp_path / "rows.npy", DATA)
    (tmp_path / "train.py").write_text(SCRIPT)
    folder = tmp_path / "run"
    process = subprocess.Popen([sys.executable, tmp_path / "train.py", tmp_path / "rows.npy", folder])
    try:
        deadline = time.monotonic() + 120
        while len(_finished(folder)) < 2 and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    last = max(_finished(folder))
    settings = {"sampler": "pas", "num_steps": 3, "batch_size": 20, "buffer_size": 100, "every": 10, "progress": False}
    num_updates = last + 40
    resumed = pcd(
        jax.random.key(3),
        untrained(),
        DATA,
        num_updates=num_updates,
        save_every=10,
        out=folder,
        resume=True,
        **settings,
    )
    undisturbed = pcd(jax.random.key(3), untrained(), DATA, num_updates=num_updates, **settings)
    assert resumed.num_updates == undisturbed.num_updates == num_updates
    for ours, theirs in zip(
        jax.tree.leaves((resumed.model, resumed.ema, resumed.kernel, resumed.buffer)),
        jax.tree.leaves((undisturbed.model, undisturbed.ema, undisturbed.kernel, undisturbed.buffer)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(resumed.curves["gap"][-3:], undisturbed.curves["gap"][-3:])
    assert resumed.curves["update"].tolist() == undisturbed.curves["update"].tolist()
    with pytest.raises(ValueError, match="another key"):
        pcd(KEY, untrained(), DATA, num_updates=num_updates, out=folder, resume=True, **settings)
    with pytest.raises(ValueError, match="already holds a run"):
        pcd(KEY, untrained(), DATA, num_updates=num_updates, out=folder, **settings)
    other = settings | {"buffer_size": 200}
    with pytest.raises(ValueError, match="of another model, sampler, optimiser or buffer size"):
        pcd(jax.random.key(3), untrained(), DATA, num_updates=num_updates, out=folder, resume=True, **other)


def _finished(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "checkpoints").glob("*.npz") if path.stem.isdigit())


def test_a_steady_rule_follows_a_target_that_changes():
    """Its step is as long after ten thousand updates as after one."""
    rule = AcceptanceRate(rule="steady")
    target = targets.Bernoulli(np.full(50, 0.3))
    kernel = samplers.dmala(0.2)
    adapter = rule.plan(target, kernel, 1)
    memory = adapter.init(target, kernel)._replace(crossings=jnp.asarray(1e4), steps=jnp.asarray(1e4))
    x = target.space.random(KEY)[None]
    evaluation = jax.vmap(lambda x: evaluate(target, x))(x)
    states = State(x, evaluation.log_prob, evaluation.ratios)
    info = jax.tree.map(lambda leaf: leaf[None], scalar_info(0.9, True, 1.0, 1, False))
    _, after = adapter.update(target, kernel, memory, states, info)
    assert float(after.log_scale - memory.log_scale) == pytest.approx((0.9 - 0.574) / 5.74, rel=1e-4)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("data", "settings", "sentence"),
    [
        (np.zeros((0, 4), np.int8), {}, "data must be integer codes"),
        (np.zeros((5, 3), np.int8), {}, r"data must have shape \(rows, 4\), but has \(5, 3\)"),
        (np.full((5, 4), 2), {}, "Codes must lie in 0..1"),
        (DATA, {"num_steps": 0}, "num_steps must be at least 1, but got 0"),
        (DATA, {"ema": 1.0}, "ema, a decay, must be at least 0 and less than 1, but got 1.0"),
        (DATA, {"resume": True}, "needs `out`"),
        (DATA, {"sampler": "pavg"}, "wants a matrix of second derivatives"),
        (DATA, {"adaptation": "none"}, "adaptation is 'auto', None or a rule"),
        (DATA, {"learning_rate": -1.0}, "learning_rate must be greater than 0"),
        (DATA, {"init": DATA[:7]}, "multiple of 100 states"),
    ],
)
def test_bad_input(data, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        pcd(KEY, untrained(), data, progress=False, **settings)


def test_nothing_to_resume(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint to resume from"):
        pcd(KEY, untrained(), DATA, out=tmp_path / "none", resume=True, **SHORT)
