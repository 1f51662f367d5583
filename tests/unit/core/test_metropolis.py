"""The accept/reject step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core import random
from discrax.core.metropolis import decide, select

from ..helpers import Z_SCORE

KEY = jax.random.key(1)


def decisions(log_prob_change: float, log_proposal_ratio: float, num: int = 1):
    keys = random.split(KEY, num)
    change, ratio = jnp.float32(log_prob_change), jnp.float32(log_proposal_ratio)
    return jax.jit(jax.vmap(lambda key: decide(key, change, ratio)))(keys)


@pytest.mark.parametrize(
    ("change", "ratio"), [(-1.0, 0.0), (0.5, -1.2), (-3.0, 2.7), (40.0, -41.0)], ids=["plain", "up", "down", "cancel"]
)
def test_accepts_with_the_metropolis_hastings_probability(change, ratio):
    """100,000 independent decisions: the frequency is within 4.9 standard errors."""
    out = decisions(change, ratio, 100_000)
    p = min(1.0, np.exp(change + ratio))
    np.testing.assert_allclose(out.accept_prob, p, rtol=1e-5)
    standard_error = np.sqrt(p * (1 - p) / 100_000)
    assert abs(float(out.is_accepted.mean()) - p) < Z_SCORE * standard_error


@pytest.mark.parametrize(("change", "ratio"), [(0.0, 0.0), (3.0, 0.0), (200.0, 50.0), (1.0, np.inf)])
def test_always_accepts_what_is_at_least_as_good(change, ratio):
    out = decisions(change, ratio, 1000)
    assert bool(out.is_accepted.all())
    assert (np.asarray(out.accept_prob) == 1).all()


@pytest.mark.parametrize(
    ("change", "ratio", "is_invalid"),
    [
        (np.nan, 0.0, True),
        (np.inf, 0.0, True),
        (np.inf, -np.inf, True),
        (-np.inf, 0.0, False),
        (-np.inf, np.inf, False),
        (1.0, np.nan, False),
        (1.0, -np.inf, False),
    ],
    ids=["nan", "inf", "inf-unreachable", "impossible", "impossible-but-likely", "undefined-reverse", "no-reverse"],
)
def test_rejects_and_counts_only_bad_log_probabilities(change, ratio, is_invalid):
    out = decisions(change, ratio, 100)
    assert not bool(out.is_accepted.any())
    assert (np.asarray(out.accept_prob) == 0).all()
    assert (np.asarray(out.is_invalid) == is_invalid).all()


def test_select_moves_all_leaves_together():
    here, there = (
        {"x": jnp.zeros(3, jnp.int8), "lp": jnp.float32(1)},
        {"x": jnp.ones(3, jnp.int8), "lp": jnp.float32(2)},
    )
    accepted, rejected = select(jnp.array(True), there, here), select(jnp.array(False), there, here)
    assert (accepted["x"].tolist(), float(accepted["lp"])) == ([1, 1, 1], 2)
    assert (rejected["x"].tolist(), float(rejected["lp"])) == ([0, 0, 0], 1)
    assert accepted["x"].dtype == jnp.int8
