"""Layouts change where numbers lie, never what is drawn."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import discrax as dx
from discrax.core import layout, random
from discrax.core.driver import drive, run_chunk, start
from discrax.core.kernel import State
from discrax.core.layout import steps_in_a_turn
from discrax.core.observers import Draws, Stats

TARGET = dx.targets.Ising.graph(nx.wheel_graph(6), np.linspace(-0.8, 0.6, 10), 0.2)
CHAINS, DRAWS, THINNING = 3, 4, 2

pytestmark = pytest.mark.optimised  # a loop in turns is another program, compared bit for bit


@pytest.mark.parametrize("name", ["chromatic", "dmala"])
def test_draws_are_those_of_steps_one_by_one(name, monkeypatch):
    monkeypatch.setattr(layout, "_WORTH_IT", 1)
    kernel = dx.samplers.gibbs("chromatic") if name == "chromatic" else dx.samplers.dmala(1.0)
    kernel = kernel.prepare(TARGET, tuning=False)[0]
    assert (kernel.arrange(TARGET) is not None) == (name == "chromatic")
    keys = random.split(jax.random.key(1), CHAINS)
    x = jnp.zeros((CHAINS, *TARGET.space.shape), TARGET.space.dtype)
    ensemble, _ = start(TARGET, kernel, x)
    observers = (Draws(), Stats())
    (chunk,) = drive(keys, TARGET, ensemble, DRAWS, chunk=DRAWS, thinning=THINNING, observers=observers)

    states, step = ensemble.states, jax.jit(jax.vmap(kernel.step, in_axes=(0, None, 0)))
    for t in range(DRAWS * THINNING):
        now = jax.vmap(random.fold_in, in_axes=(0, None))(keys, jnp.uint32(t))
        states, _ = step(now, TARGET, states)
        if t % THINNING == THINNING - 1:
            np.testing.assert_array_equal(chunk.handed[0][t // THINNING], states.x)
            np.testing.assert_allclose(chunk.handed[1]["lp"][t // THINNING], states.log_prob, atol=1e-5)
    assert len(np.unique(np.asarray(chunk.handed[0]).reshape(-1, TARGET.space.num_sites), axis=0)) > 3


@pytest.mark.parametrize("thinning", [1, 6])
def test_steps_that_share_a_turn_of_the_loop_are_the_same(thinning):
    target, keys = dx.targets.Ising.lattice((3, 4), 0.3, 0.1), random.split(jax.random.key(1), 3)
    x = jax.vmap(target.space.random)(random.split(jax.random.key(0), 3))
    ensemble, _ = start(target, dx.samplers.dmala(1.0), x)
    ensemble = ensemble._replace(observed=(None, None))
    settings = {"num_draws": 10, "thinning": thinning, "observers": (Draws(), Stats())}
    one = jax.jit(lambda: run_chunk(keys, target, ensemble, None, **settings)[1])()
    four = jax.jit(lambda: run_chunk(keys, target, ensemble, None, unroll=4, **settings)[1])()
    np.testing.assert_array_equal(one[0], four[0])
    assert (np.asarray(one[0])[1:] != np.asarray(one[0])[:-1]).any()


def test_turns_are_long_where_that_is_repaid(monkeypatch):
    state = State(jnp.zeros((4, 100), jnp.int8), jnp.zeros(4), None)
    assert steps_in_a_turn(state, 10**7) == 1  # on a CPU
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert steps_in_a_turn(state, 10**7) == 4
    assert steps_in_a_turn(state, 10**5) == 1
    assert steps_in_a_turn(state._replace(x=jnp.zeros((2**11, 2**10), jnp.int8)), 10**7) == 1
