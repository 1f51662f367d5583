"""The scans of Gibbs sampling, seen where every redraw is certain."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Spin, samplers
from discrax.core import random
from discrax.targets import Lattice, Quadratic

from ..helpers import P_VALUE, chi_square_p_value

N = 6
FROZEN = np.array([False, True, False, False, True, False])
FREE = np.flatnonzero(~FROZEN)


def target():
    """A field that no neighbour can overcome: whichever free site is redrawn becomes 1."""
    return Quadratic(Spin(N, frozen=FROZEN), Lattice((N,), 0.5), 200.0)


@eqx.filter_jit
def walk(kernel, target, num_steps: int):
    """The states after each step, and what the steps said."""

    def step(state, key):
        state, info = kernel.step(key, target, state)
        return state, (state, info)

    start = kernel.init(target, jnp.zeros(N, jnp.int8))
    return jax.lax.scan(step, start, random.split(jax.random.key(0), num_steps))[1]


def test_systematic_scan_goes_through_the_free_sites_in_order():
    states, info = walk(samplers.gibbs("systematic"), target(), 6)
    for step, x in enumerate(np.asarray(states.x), start=1):
        np.testing.assert_array_equal(np.flatnonzero(x), FREE[:step])
    np.testing.assert_array_equal(info.jump, [1, 1, 1, 1, 0, 0])


def test_random_scan_redraws_one_uniformly_chosen_free_site():
    """Chi-square on 4,000 independent steps, p = 1e-6."""
    kernel, start = samplers.gibbs(), jnp.zeros(N, jnp.int8)

    @eqx.filter_jit
    def one_step(target, keys):
        return jax.vmap(lambda key: kernel.step(key, target, kernel.init(target, start))[0].x)(keys)

    x = np.asarray(one_step(target(), random.split(jax.random.key(0), 4000)))
    assert (x.sum(axis=1) == 1).all()
    assert chi_square_p_value(x.sum(axis=0), ~FROZEN / len(FREE)) > P_VALUE


def test_chromatic_scan_redraws_all_free_sites_at_once():
    states, info = walk(samplers.gibbs("chromatic"), target(), 2)
    np.testing.assert_array_equal(np.flatnonzero(states.x[0]), FREE)
    np.testing.assert_array_equal(info.jump, [4, 0])
    assert info.evals.tolist() == [2, 2]  # one evaluation a colour


@pytest.mark.parametrize("scan", ["random", "chromatic"])
def test_the_carried_log_probability_is_that_of_the_state(scan):
    """300 steps of sums of changes; the field is weak here, so that every site moves all the time."""
    weak = Quadratic(Spin(N, frozen=FROZEN), Lattice((N,), 0.5), 0.1)
    states, info = walk(samplers.gibbs(scan), weak, 300)
    exact = jax.vmap(lambda x: weak.log_prob(weak.space.embed(x)))(states.x)
    np.testing.assert_allclose(states.log_prob, exact, atol=1e-4)
    assert float(info.jump.sum()) > 50
    assert (np.asarray(info.accept_prob) == 1).all()
