"""Queries of a step as the papers count them, on 6 sites of 4 levels."""

import numpy as np
import pytest

from discrax import Ordinal, samplers, targets
from discrax.samplers import REGISTRY

LEVELS, SITES = 4, 6
KNOWN = {
    "rwm": 2,  # values at x and y
    "mh_uniform": 2,
    "swap_uniform": 2,
    "gibbs": LEVELS,
    "block_gibbs": LEVELS**2,
    "hamming_ball": 3 * 10 + 1,
}
WITH_SETTINGS = {
    "systematic": (lambda: samplers.gibbs("systematic"), LEVELS),
    "chromatic": (lambda: samplers.gibbs("chromatic"), LEVELS * SITES),
    "layers": (lambda: samplers.gibbs("layers"), LEVELS),
    "block of three": (lambda: samplers.block_gibbs(3), LEVELS**3),
    "ball in five": (lambda: samplers.hamming_ball(5, radius=2), 3 * 5 + 1),
}


@pytest.fixture(scope="module")
def target():
    return targets.Quadratic(Ordinal(SITES, np.arange(LEVELS)), -np.eye(SITES))


@pytest.mark.parametrize("name", REGISTRY)
def test_of_registered_samplers(name, target):
    """Four where nothing else is known: value and gradient at x and y."""
    assert REGISTRY[name].build().queries(target) == KNOWN.get(name, 4)


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_of_samplers_with_settings(name, target):
    build, queries = WITH_SETTINGS[name]
    assert build().queries(target) == queries
