"""Layouts change where numbers lie, never what is drawn."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import discrax as dx
from discrax.core import layout, random
from discrax.core.driver import drive, start
from discrax.core.observers import Draws, Stats

TARGET = dx.targets.Ising.graph(nx.wheel_graph(6), np.linspace(-0.8, 0.6, 10), 0.2)
CHAINS, DRAWS, THINNING = 3, 4, 2


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
