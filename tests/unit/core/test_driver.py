"""The loop: what the draws depend on, what is compiled, and what is handed over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discrax import Tempered, targets
from discrax.core import random
from discrax.core.driver import chunk_length, drive, start
from discrax.core.kernel import Info
from discrax.core.observers import STATS, Best, Draws, Moments, Stats

from ..helpers import OneFlip

TARGET = targets.Ising.lattice((2, 3), 0.4, 0.1)
KERNEL = OneFlip(0.1)
KEYS = random.split(jax.random.key(7), 3)
X = jnp.zeros((3, 2, 3), jnp.int8)
CODES = (Draws(), Stats())


def run(num_draws=12, *, target=TARGET, kernel=KERNEL, keys=KEYS, x=X, observers=CODES, **settings):
    settings = {"chunk": num_draws, **settings}
    ensemble, _ = start(target, kernel, x)
    return list(drive(keys, target, ensemble, num_draws, observers=observers, **settings))


def codes(chunks) -> np.ndarray:
    """(draw, chain, sites) of all chunks together."""
    return np.concatenate([np.asarray(chunk.handed[0]) for chunk in chunks])


@pytest.fixture(scope="module")
def whole():
    return run(12)


def test_draws_do_not_depend_on_the_chunk_length(whole):
    parts = run(12, chunk=4)
    assert [chunk.num_draws for chunk in parts] == [4, 4, 4]
    np.testing.assert_array_equal(codes(parts), codes(whole))
    assert codes(whole).std() > 0


def test_a_last_chunk_may_be_shorter(whole):
    parts = run(12, chunk=5)
    assert [chunk.num_draws for chunk in parts] == [5, 5, 2]
    np.testing.assert_array_equal(codes(parts), codes(whole))


def test_draws_do_not_depend_on_the_other_chains(whole):
    alone = run(12, keys=KEYS[:1], x=X[:1])
    np.testing.assert_array_equal(codes(alone)[:, 0], codes(whole)[:, 0])


@pytest.mark.parametrize("observers", [(), (Moments(),), (Best(), Stats())], ids=["nobody", "moments", "best"])
def test_draws_do_not_depend_on_who_looks(whole, observers):
    (chunk,) = run(12, observers=observers)
    np.testing.assert_array_equal(chunk.ensemble.states.x, whole[0].ensemble.states.x)


def test_thinning_keeps_every_third_draw_and_adds_up_costs(whole):
    (thinned,) = run(4, thinning=3)
    np.testing.assert_array_equal(codes([thinned]), codes(whole)[2::3])
    every, ours = whole[0].handed[1], thinned.handed[1]
    by_three = {name: np.asarray(stat, np.float64).reshape(4, 3, 3) for name, stat in every.items()}
    np.testing.assert_allclose(ours["evals"], by_three["evals"].sum(axis=1))
    for name in ("accept_prob", "is_accepted", "jump", "is_invalid"):
        np.testing.assert_allclose(ours[name], by_three[name].mean(axis=1), rtol=1e-6)
    for name in ("lp", "log_weight"):
        np.testing.assert_allclose(ours[name], by_three[name][:, -1])


def test_every_statistic_is_recorded_for_every_draw(whole):
    stats = whole[0].handed[1]
    assert set(stats) == set(STATS) == {*Info._fields, "lp"}
    assert all(stat.shape == (12, 3) for stat in stats.values())
    assert float(whole[0].info.accept_prob) == pytest.approx(float(np.mean(stats["accept_prob"])), rel=1e-5)


def test_recorded_log_probability_is_tempered():
    """Chain states carry the untempered value, and what is recorded is the law that is sampled."""
    target = Tempered(TARGET, 0.5)
    (chunk,) = run(12, target=target)
    last = np.asarray(chunk.ensemble.states.x)
    expected = [float(TARGET.log_prob(TARGET.space.embed(jnp.asarray(x)))) for x in last]
    np.testing.assert_allclose(chunk.ensemble.states.log_prob, expected, atol=1e-5)
    np.testing.assert_allclose(chunk.handed[1]["lp"][-1], 0.5 * np.array(expected), atol=1e-5)


def test_the_best_state_is_that_of_all_steps_also_between_draws(whole):
    """Thinned by three, the observer has seen the nine states that nobody kept."""
    (thinned,) = run(4, thinning=3, observers=(Best(),))
    best = thinned.ensemble.observed[0]
    lp = np.asarray(whole[0].handed[1]["lp"])
    start_lp = float(TARGET.log_prob(TARGET.space.embed(X[0])))
    np.testing.assert_allclose(best.log_prob, np.maximum(lp.max(axis=0), start_lp), rtol=1e-5)
    for x, value in zip(best.x, best.log_prob, strict=True):
        assert float(TARGET.log_prob(TARGET.space.embed(x))) == pytest.approx(float(value), rel=1e-5)
    assert (lp[2::3].max(axis=0) < lp.max(axis=0)).any()  # looking at draws only would have missed some


def test_observers_go_on_with_what_they_remember():
    """In two runs of six draws the moments are those of one run of twelve."""
    (whole,) = run(12, observers=(Moments(),))
    ensemble, _ = start(TARGET, KERNEL, X)
    for _ in range(2):
        (half,) = drive(KEYS, TARGET, ensemble, 6, chunk=6, observers=(Moments(),))
        ensemble = half.ensemble
    np.testing.assert_allclose(ensemble.observed[0][0].mean, whole.ensemble.observed[0][0].mean, rtol=1e-5)


class First(Draws):
    """A program that no other test has made."""

    def look(self, target, memory, states, info):
        return None, states.x[:, 0]


def test_only_the_first_chunk_compiles():
    """Neither a later chunk, nor new parameters of the target, nor another value of a tunable is a new program."""
    recording = {"observers": (First(),), "chunk": 4}
    first = run(12, **recording)
    assert first[0].compile_seconds > 0
    assert [chunk.compile_seconds for chunk in first[1:]] == [0, 0]
    for other in (
        run(12, **recording),
        run(12, kernel=OneFlip(0.3), **recording),
        run(12, target=targets.Ising.lattice((2, 3), -0.9, 2.0), **recording),
    ):
        assert [chunk.compile_seconds for chunk in other] == [0, 0, 0]


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 10**6), st.floats(1, 1e9))
def test_chunks_are_neither_too_long_nor_too_many(num_draws, work):
    length = chunk_length(num_draws, work)
    assert 1 <= length <= min(num_draws, 2000)
    ideal = np.clip(5e7 // work, 1, 2000)
    assert length <= ideal
    assert length >= min(num_draws, ideal // 4)


@pytest.mark.parametrize(("num_draws", "length"), [(1000, 1000), (3000, 1500), (10_000, 2000), (2003, 2000)])
def test_chunks_divide_the_draws_where_they_can(num_draws, length):
    assert chunk_length(num_draws, 1.0) == length
