"""Turns of steps inside one program: swaps keep the law of every rung, and where the host looks changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core.kernel import State
from discrax.problems import MaxCut
from discrax.problems.generators import erdos_renyi
from discrax.solving.places import Places
from discrax.solving.turns import exchange, tune_ladder

KEY = jax.random.key(3)


def test_a_ladder_moves_rungs_to_where_swaps_are_rare():
    betas = np.array([1.0, 2.0, 4.0, 8.0])
    moved = tune_ladder(betas, np.array([0.9, 0.5, 0.1]), 0.5)
    gaps = np.diff(np.log(moved))
    assert gaps[0] > gaps[1] > gaps[2]
    assert moved[0] == 1.0
    assert moved[-1] == pytest.approx(8.0)
    inside = tune_ladder(jnp.asarray(betas, jnp.float32), jnp.array([0.9, 0.5, 0.1]), 0.5)
    assert np.allclose(inside, moved, rtol=1e-5)


def _after_swaps(betas, believed, chains=20_000):
    """Independent rungs of a two-state model, swapped as if their temperatures were others; how far the laws are."""
    chance = 1 / (1 + np.exp(-betas))  # of state 1, whose value is 1
    x = (np.random.default_rng(0).random((len(betas), chains)) < chance[:, None]).astype(np.int8)
    state = State(jnp.asarray(x[..., None]), jnp.asarray(x, jnp.float32), ())
    keys = jax.random.split(KEY, chains)
    for turn in range(4):
        state, rates = exchange(keys, state, jnp.asarray(believed), jnp.int32(turn))
    assert ((rates > 0) & (rates <= 1)).all()
    assert (rates.mean(axis=1) < 1).all()
    assert not np.array_equal(np.asarray(state.x[..., 0]), x)  # they did move
    assert np.array_equal(np.asarray(state.x[..., 0]), np.asarray(state.log_prob))  # with all that is theirs
    counts = np.asarray(state.x[..., 0]).mean(axis=1)
    return np.abs(counts - chance).max() / np.sqrt(0.25 / chains)


def test_swaps_leave_the_law_of_all_rungs_alone():
    betas = np.array([0.3, 1.0, 2.5], np.float32)
    assert _after_swaps(betas, betas) < 5
    assert _after_swaps(betas, betas[::-1].copy()) > 20  # a wrong sign is found


@pytest.fixture
def places():
    problem = MaxCut(erdos_renyi(12, 0.3, seed=1))
    x = np.random.default_rng(0).integers(0, 2, (3, 4, 12)).astype(np.int8)
    return lambda: Places(KEY, [problem.target], "gwg", x, np.array([0.2, 0.5, 1.0]))


def _same(one, other):
    assert one.num_steps == other.num_steps
    for name in ("values", "best_values", "best_states", "betas"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_a_ladder_does_not_depend_on_where_the_host_looks(places):
    together, apart = places(), places()
    together.temper(60, 2, resize=False)
    for _ in range(20):
        apart.temper(3, 2, resize=False)
    _same(together, apart)
    assert together.num_steps == 120
    assert not np.allclose(together.betas, [0.2, 0.5, 1.0])  # it was tuned
    assert np.allclose(together.betas[[0, 2]], [0.2, 1.0])


def test_falling_temperatures_do_not_depend_on_where_the_host_looks(places):
    betas = np.linspace(0.1, 3.0, 12)[:, None] * np.ones(3)
    together, apart = places(), places()
    together.anneal(betas, 2, resize=False)
    for part in np.split(betas, 4):
        apart.anneal(part, 2, resize=False)
    _same(together, apart)
    hot = places()
    hot.anneal(np.full((12, 3), 0.1), 2, resize=False)
    assert not np.array_equal(hot.values, together.values)  # the temperatures are heard of
