"""`discrax.sample`: what is kept, what an interruption leaves, what is timed."""

import inspect
import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax
from discrax import Binary, Ordinal, Spin, Target, samplers, targets
from discrax.core.kernel import Kernel

from ..helpers import OneFlip

KEY = jax.random.key(0)
TARGET = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
# One length of chunks for all tests, so that they share their programs.
SHORT = {"num_chains": 3, "num_warmup": 0, "num_samples": 30, "chunk_size": 10}
TUNED = {"num_chains": 3, "num_warmup": 20, "num_samples": 10, "chunk_size": 10}


def sample(kernel=None, target=TARGET, key=KEY, **changes):
    return discrax.sample(key, target, OneFlip() if kernel is None else kernel, **SHORT | changes)


def spins(draws) -> np.ndarray:
    return 2.0 * np.asarray(draws) - 1


@pytest.fixture(scope="module")
def whole():
    return sample()


# --- what is kept ---


def test_draws_are_codes_by_chain_and_draw(whole):
    assert whole.draws.shape == (3, 30, 4)
    assert whole.draws.dtype == np.int8
    assert set(np.unique(whole.draws)) == {0, 1}
    np.testing.assert_array_equal(whole.draws[:, -1], whole.states.x)
    for chain, draws in enumerate(whole.draws):
        lp = [float(TARGET.log_prob(TARGET.space.embed(jnp.asarray(x)))) for x in draws]
        np.testing.assert_allclose(whole.stats["lp"][chain], lp, atol=1e-5)
    assert whole.is_complete
    assert whole.num_draws == 30


def magnetisation(x):
    return {"total": jnp.sum(2 * x.astype(jnp.float32) - 1), "first": x[0]}


def test_a_statistic_is_kept_instead_of_the_draws(whole):
    result = sample(keep=magnetisation)
    assert result.draws is None
    np.testing.assert_array_equal(result.kept["total"], spins(whole.draws).sum(-1))
    np.testing.assert_array_equal(result.kept["first"], whole.draws[..., 0])
    np.testing.assert_array_equal(result.stats["lp"], whole.stats["lp"])


@pytest.fixture(scope="module")
def moments():
    return sample(keep="moments")


def test_running_moments_are_those_of_the_draws(whole, moments):
    assert moments.draws is None
    np.testing.assert_allclose(moments.moments.mean, spins(whole.draws).mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(moments.moments.variance, spins(whole.draws).var(axis=1), atol=1e-5)
    np.testing.assert_allclose(moments.moments.weight, [30, 30, 30])
    for name, per_chain in whole.mean_stats.items():
        np.testing.assert_allclose(moments.mean_stats[name], per_chain, atol=1e-4, err_msg=name)
    np.testing.assert_array_equal(moments.states.x, whole.states.x)


def test_warm_up_draws_are_no_part_of_the_moments():
    """A kernel without a scale warms up by walking on: its draws are those of a longer run."""
    longer, warmed = sample(), sample(num_warmup=10, num_samples=20, keep="moments")
    np.testing.assert_allclose(warmed.moments.mean, spins(longer.draws[:, 10:]).mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(warmed.moments.weight, [20, 20, 20])


class Weighted(OneFlip):
    """Draws with more ones count longer."""

    def step(self, key, target, state):
        after, info = OneFlip.step(self, key, target, state)
        return after, info._replace(log_weight=jnp.log(1 + jnp.sum(after.x).astype(jnp.float32)))


def test_moments_honour_weights():
    draws, moments = sample(Weighted()), sample(Weighted(), keep="moments")
    weights = draws.stats["weight"]
    np.testing.assert_allclose(weights, 1 + draws.draws.sum(-1), rtol=1e-6)
    for chain in range(3):
        mean = np.average(spins(draws.draws[chain]), axis=0, weights=weights[chain])
        np.testing.assert_allclose(moments.moments.mean[chain], mean, atol=1e-5)
    np.testing.assert_allclose(np.exp(moments.moments.log_weight), weights.sum(axis=1), rtol=1e-5)
    assert np.abs(moments.moments.mean - spins(draws.draws).mean(axis=1)).max() > 0.01  # weights mattered


def num_bytes(result) -> int:
    fields = [getattr(result, name) for name in result.__dataclass_fields__ if name != "target"]
    return sum(leaf.nbytes for leaf in jax.tree.leaves(fields) if hasattr(leaf, "nbytes"))


def test_memory_of_moments_does_not_grow_with_the_draws(run_module, monkeypatch, moments):
    handed_over = []
    original = run_module.drive

    def watching(*arguments, **settings):
        for chunk in original(*arguments, **settings):
            handed_over.append(sum(leaf.nbytes for leaf in jax.tree.leaves(chunk.handed)))
            yield chunk

    monkeypatch.setattr(run_module, "drive", watching)
    many = sample(keep="moments", num_samples=300)
    assert handed_over == [0] * 30  # nothing of a draw's size leaves the device
    assert num_bytes(many) == num_bytes(moments)
    assert num_bytes(sample(num_samples=20)) < num_bytes(sample(num_samples=30))  # the measure can tell


def test_thinning_keeps_every_third_draw(whole):
    result = sample(num_samples=10, thinning=3)
    np.testing.assert_array_equal(result.draws, whole.draws[:, 2::3])
    np.testing.assert_allclose(result.stats["evals"], 3)
    np.testing.assert_allclose(result.stats["jump"], whole.stats["jump"].reshape(3, 10, 3).mean(-1), rtol=1e-6)
    assert result.thinning == 3


# --- what draws depend on ---


def test_draws_depend_on_the_key_and_on_nothing_else(whole):
    np.testing.assert_array_equal(sample().draws, whole.draws)
    np.testing.assert_array_equal(sample(key=jax.random.PRNGKey(0)).draws, whole.draws)
    assert (sample(key=jax.random.key(1)).draws != whole.draws).any()
    np.testing.assert_array_equal(sample(num_chains=2).draws, whole.draws[:2])


def test_chunk_size_never_changes_the_draws(whole):
    np.testing.assert_array_equal(sample(chunk_size=7).draws, whole.draws)


def test_chunk_size_never_changes_the_draws_of_a_tuned_path():
    """Every proposal is accepted here, so the path outgrows its capacity in warm-up."""
    target = targets.Bernoulli(np.full(40, 0.5))
    settings = {"num_chains": 2, "num_warmup": 20, "num_samples": 10}
    one, other = (discrax.sample(KEY, target, "rwm", chunk_size=size, **settings) for size in (20, 10))
    assert float(one.kernel.path_length) == float(other.kernel.path_length)
    np.testing.assert_array_equal(one.draws, other.draws)


def test_chains_start_apart_and_do_not_repeat_each_other(whole):
    assert len(np.unique(whole.draws.reshape(3, -1), axis=0)) == 3


# --- where chains start ---

STILL = OneFlip(1.0)  # never moves, so the draws are the start


@pytest.mark.parametrize(
    "init",
    [np.array([0, 1, 1, 0]), np.arange(12).reshape(3, 4) % 2, jnp.ones((3, 4), jnp.int8), np.zeros(4, np.uint8)],
    ids=["one-state", "one-each", "jax", "unsigned"],
)
def test_chains_start_where_they_are_told(init):
    draws = sample(STILL, init=init).draws
    np.testing.assert_array_equal(draws, np.broadcast_to(np.broadcast_to(init, (3, 4))[:, None], draws.shape))
    assert draws.dtype == np.int8


def test_a_run_goes_on_from_the_last_states(whole):
    more = sample(STILL, init=whole.states.x)
    np.testing.assert_array_equal(more.draws[:, 0], whole.draws[:, -1])


def test_random_starts_keep_frozen_codes():
    space = Spin(4, frozen=np.array([True, False, False, True]), frozen_codes=np.array([1, 0, 0, 0]))
    target = targets.Quadratic(space, targets.Uncoupled((4,)))
    draws = sample(STILL, target, num_chains=40).draws
    assert (draws[..., 0] == 1).all()
    assert (draws[..., 3] == 0).all()
    assert 0 < draws[:, 0, 1].sum() < 40


# --- interruptions ---


def interrupt(monkeypatch, module, *, after: int):
    """Ctrl-C once `after` chunks of the run (of its warm-up, if it has one) are done."""
    original = module.drive

    def drive(*arguments, **settings):
        for done, chunk in enumerate(original(*arguments, **settings)):
            if done == after:
                raise KeyboardInterrupt
            yield chunk

    monkeypatch.setattr(module, "drive", drive)


def test_interrupted_sampling_returns_the_draws_so_far(monkeypatch, run_module, whole):
    interrupt(monkeypatch, run_module, after=2)
    result = sample()
    assert not result.is_complete
    assert result.num_draws == 20
    np.testing.assert_array_equal(result.draws, whole.draws[:, :20])
    np.testing.assert_array_equal(result.stats["lp"], whole.stats["lp"][:, :20])
    np.testing.assert_array_equal(result.states.x, whole.draws[:, 19])
    summary = result.summary()
    assert summary.num_draws == 20
    assert "The run was interrupted after 20 draws" in str(summary)
    assert result.to_arviz().posterior.sizes["draw"] == 20
    assert "interrupted" not in str(whole.summary())


def test_interrupted_moments_are_those_of_the_draws_so_far(monkeypatch, run_module, whole):
    interrupt(monkeypatch, run_module, after=2)
    result = sample(keep="moments")
    np.testing.assert_allclose(result.moments.mean, spins(whole.draws[:, :20]).mean(axis=1), atol=1e-5)
    assert "The run was interrupted after 20 draws" in str(result.summary())


def test_interrupted_statistics_are_those_so_far(monkeypatch, run_module, whole):
    interrupt(monkeypatch, run_module, after=1)
    result = sample(keep=magnetisation)
    np.testing.assert_array_equal(result.kept["first"], whole.draws[:, :10, 0])


@pytest.mark.parametrize("keep", ["draws", "moments"])
@pytest.mark.parametrize(
    ("num_warmup", "after"),
    [(20, 0), (20, 1), (0, 0)],
    ids=["at-once", "in-warm-up", "before-the-first-draw"],
)
def test_interrupted_before_the_first_draw(monkeypatch, run_module, num_warmup, after, keep):
    """There is nothing to return but the fact; asking for it must not fail."""
    interrupt(monkeypatch, run_module, after=after)
    result = discrax.sample(KEY, TARGET, samplers.dmala(), keep=keep, **TUNED | {"num_warmup": num_warmup})
    assert not result.is_complete
    assert result.num_draws == 0
    assert result.num_chains == 3
    text = str(result.summary())
    assert "The run was interrupted after 0 draws" in text
    if after:
        assert result.warmup_stats["lp"].shape == (3, 10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_signal_ends_a_run_between_chunks_with_all_that_was_drawn(monkeypatch, sample_module, whole, number):
    """It comes while a chunk is being stored, where an exception would fall between two lines."""
    original = sample_module.Phase._store

    def store(self, chunk):
        if self.filled == 10:
            os.kill(os.getpid(), number)
        return original(self, chunk)

    monkeypatch.setattr(sample_module.Phase, "_store", store)
    result = sample()
    assert not result.is_complete
    np.testing.assert_array_equal(result.draws, whole.draws[:, :20])
    np.testing.assert_array_equal(result.states.x, whole.draws[:, 19])


def test_a_signal_after_the_last_chunk_loses_nothing(monkeypatch, sample_module, whole):
    original = sample_module._result

    def result(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return original(*arguments)

    monkeypatch.setattr(sample_module, "_result", result)
    np.testing.assert_array_equal(sample().draws, whole.draws)


def test_an_error_is_not_an_interruption(monkeypatch, run_module):
    def drive(*_, **__):
        raise RuntimeError("out of memory")
        yield

    monkeypatch.setattr(run_module, "drive", drive)
    with pytest.raises(RuntimeError, match="out of memory"):
        sample()


# --- warm-up ---


@pytest.fixture(scope="module")
def tuned():
    return discrax.sample(KEY, TARGET, samplers.dmala(), keep_warmup=True, **TUNED)


def test_warm_up_tunes_and_keeps_its_draws_apart(tuned):
    assert tuned.report.num_steps == 20
    assert float(tuned.kernel.step_size) == pytest.approx(tuned.report.value)
    assert float(tuned.kernel.step_size) != pytest.approx(0.2)
    assert tuned.warmup_draws.shape == (3, 20, 4)
    assert tuned.draws.shape == (3, 10, 4)
    assert tuned.warmup_stats["accept_prob"].shape == (3, 20)
    assert tuned.warmup_seconds > 0


def test_without_adaptation_the_kernel_stays_as_it_is():
    result = discrax.sample(KEY, TARGET, samplers.dmala(0.7), adaptation=None, **TUNED)
    assert result.report is None
    assert float(result.kernel.step_size) == pytest.approx(0.7)


def test_warm_up_of_a_kernel_without_a_scale_is_a_part_of_the_walk(whole):
    result = sample(num_warmup=10, num_samples=20, keep_warmup=True)
    assert result.report is None
    np.testing.assert_array_equal(np.concatenate([result.warmup_draws, result.draws], axis=1), whole.draws)


def test_chains_move_on_after_warm_up(tuned):
    """The first draw is one step from the end of warm-up, not from where the chains began."""
    jump = tuned.stats["jump"][:, 0]
    np.testing.assert_array_equal((tuned.draws[:, 0] != tuned.warmup_draws[:, -1]).sum(-1), jump)
    began = tuned.warmup_draws[:, 0]
    assert ((tuned.draws[:, 0] != began).sum(-1) != jump).any()  # a walk that begins again is told apart


# --- time ---


def test_compilation_is_timed_apart_and_happens_once():
    changes = {"kernel": samplers.gibbs(), "num_chains": 7}
    first, second = sample(**changes), sample(**changes)
    assert first.compile_seconds > 0
    assert second.compile_seconds == 0
    assert second.seconds > 0
    text = str(first.summary())
    assert f"{first.seconds:.2f} (+ {first.compile_seconds:.2f} compiling)" in text


def test_new_parameters_compile_nothing(whole):
    other = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), -0.3, 0.9)
    sample(samplers.dmala(0.5))
    assert sample(samplers.dmala(0.5), target=other).compile_seconds == 0
    assert sample(samplers.dmala(0.25)).compile_seconds == 0
    assert sample(samplers.dmala(0.5), target=other, key=jax.random.key(8)).compile_seconds == 0
    assert not np.allclose(sample(target=other).stats["lp"], whole.stats["lp"])


# --- which sampler ---


def test_auto_is_the_default():
    assert inspect.signature(discrax.sample).parameters["sampler"].default == "auto"


@pytest.mark.parametrize("name", list(samplers.REGISTRY))
def test_every_name_builds_a_kernel(name):
    spaces = samplers.get_sampler(name).spaces
    target = TARGET if type(TARGET.space) in spaces else Target.from_log_prob(jnp.sum, Ordinal(3, [0, 1, 2]))
    if not samplers.get_sampler(name).fits(target):
        target = targets.GaussianBernoulli()
    assert isinstance(samplers.build_kernel(name, target), Kernel)
    assert samplers.get_sampler(name).about


# --- double precision ---


@pytest.mark.slow
def test_double_precision():
    with jax.enable_x64(True):
        target = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
        result = discrax.sample(jax.random.key(0), target, samplers.dmala(), **TUNED | {"num_warmup": 10})
        assert result.states.log_prob.dtype == jnp.float64
        exact = [float(target.log_prob(target.space.embed(jnp.asarray(x)))) for x in result.states.x]
        np.testing.assert_allclose(result.states.log_prob, exact, rtol=1e-13)
        assert result.stats["accept_prob"].mean() > 0.1


def test_parameters_may_be_numpy_arrays():
    class Linear(eqx.Module):
        weight: np.ndarray

        def __call__(self, e):
            return jnp.dot(self.weight, e)

    target = Target.from_log_prob(Linear(np.arange(4, dtype=np.float32)), Binary(4))
    result = sample(target=target)
    np.testing.assert_allclose(result.stats["lp"], result.draws @ np.arange(4), atol=1e-5)
