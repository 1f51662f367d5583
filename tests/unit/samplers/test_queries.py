"""Queries of a step as the papers count them, by the evaluations that it says it made, on 6 sites of 4 levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Ordinal, samplers, targets
from discrax.core.kernel import Kernel
from discrax.samplers import REGISTRY

LEVELS, SITES = 4, 6
KNOWN = {
    "rwm": 2,  # values at x and y
    "mh_uniform": 2,
    "gibbs": LEVELS,
    "block_gibbs": LEVELS**2,
    "hamming_ball": 3 * SITES + 1,  # the block is all sites
    "lb": 2,
    "pas_exact": 2,
    "global_flip": 2,
}
OTHERS = {
    "systematic": (lambda: samplers.gibbs("systematic"), LEVELS),
    "chromatic": (lambda: samplers.gibbs("chromatic"), LEVELS * SITES),
    "block of three": (lambda: samplers.block_gibbs(3), LEVELS**3),
    "ball in five": (lambda: samplers.hamming_ball(5, radius=1), 3 * 5 + 1),
}
WITHOUT = (
    "swap",
    "swap_uniform",
    "swendsen_wang",
    "wolff",
    "sgdld",
    "minibatch_gibbs",
    "pseudo_marginal",
    "local_search",
)  # which do not take such a target


def queries_of(kernel: Kernel, target) -> float:
    """What a step is charged, given what it says of itself."""
    kernel, _ = kernel.prepare(target, tuning=False)
    x = jnp.zeros(SITES, jnp.int8)
    _, info = jax.jit(lambda: kernel.step(jax.random.key(0), target, kernel.init(target, x)))()
    return kernel.queries(target, float(info.evals))


@pytest.fixture(scope="module")
def target():
    return targets.Quadratic(Ordinal(SITES, np.arange(LEVELS)), -np.eye(SITES))


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in WITHOUT])
def test_of_registered_samplers(name, target):
    """Four where there is a gradient: value and gradient at x and y."""
    assert queries_of(REGISTRY[name].build(), target) == KNOWN.get(name, 4)


@pytest.mark.parametrize("name", OTHERS)
def test_of_samplers_with_settings(name, target):
    build, queries = OTHERS[name]
    assert queries_of(build(), target) == queries
