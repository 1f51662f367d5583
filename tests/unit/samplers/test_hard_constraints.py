"""Targets that forbid states: an informed path must stay exact where fewer moves are allowed than it is long."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Space, exact, samplers
from discrax.core.target import Evaluation, ExactRatios

from ..helpers import P_VALUE, chi_square_p_value

pytestmark = pytest.mark.runs_long
N = 6


class AtMostTwo(ExactRatios):
    """Independent sites, given that at most two are 1. At two ones, only two of the six moves are allowed."""

    space: Space
    logits: jax.Array

    def log_prob(self, e):
        return jnp.where(e.sum() < 2.5, jnp.sum(self.logits * e), -jnp.inf)

    def evaluate(self, x):
        e = self.space.embed(x)
        here = self.log_prob(e)
        flipped = jnp.where(jnp.eye(N, dtype=bool), 1 - e[None], e[None])
        return Evaluation(here, jax.vmap(self.log_prob)(flipped) - here)


@pytest.mark.parametrize("sampler", ["pas", "gwg"])
def test_long_paths_are_exact_between_forbidden_states(sampler):
    """50,000 chains make two steps from exact draws: chi-square against the exact law, p = 1e-6."""
    target = AtMostTwo(Binary(N), jnp.linspace(-1.0, 1.0, N))
    kernel = getattr(samplers, sampler)(4.0).prepare(target, tuning=False)[0]
    x = exact.draw(jax.random.key(0), target, 50_000)
    ends = exact.walk(jax.random.key(1), target, kernel, x, 2)
    counts = np.bincount(target.space.index(ends), minlength=2**N)
    assert chi_square_p_value(counts, exact.law(target)) > P_VALUE
