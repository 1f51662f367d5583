"""The arithmetic of a last axis of levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from discrax.core import random
from discrax.core.levels import at_level, draw_levels, is_level, log_sum_exp_levels
from discrax.core.sites import code_dtype

from ..helpers import P_VALUE, chi_square_p_value, one_hot


@pytest.mark.parametrize("num_levels", [2, 3, 200])
def test_at_level_reads_the_entry_of_the_code(num_levels):
    rng = np.random.default_rng(0)
    values, x = rng.normal(size=(7, num_levels)).astype(np.float32), rng.integers(0, num_levels, 7)
    codes = jnp.asarray(x, code_dtype(num_levels))
    np.testing.assert_array_equal(at_level(jnp.asarray(values), codes), values[np.arange(7), x])
    np.testing.assert_array_equal(is_level(codes, num_levels), one_hot(x, num_levels) == 1)


def test_at_level_is_not_spoilt_by_minus_infinity_elsewhere():
    values = jnp.array([[1.0, -jnp.inf, -jnp.inf], [-jnp.inf, -jnp.inf, 2.0]])
    np.testing.assert_array_equal(at_level(values, jnp.array([0, 2], jnp.int8)), [1.0, 2.0])
    assert float(at_level(values, jnp.array([0, 0], jnp.int8))[1]) == -np.inf


@pytest.mark.parametrize("num_levels", [2, 3, 50])
def test_log_sum_exp_of_levels_against_scipy(num_levels):
    values = np.random.default_rng(1).normal(scale=40, size=(9, num_levels)).astype(np.float32)
    values[0, 1] = -np.inf
    ours = log_sum_exp_levels(jnp.asarray(values))
    np.testing.assert_allclose(ours, scipy.special.logsumexp(values.astype(np.float64), axis=-1), rtol=1e-6)


def test_log_sum_exp_of_barred_levels_is_minus_infinity():
    """All moves of a frozen site are barred: its weight is 0, not NaN."""
    values = jnp.array([[-jnp.inf, -jnp.inf, -jnp.inf], [0.0, -jnp.inf, 0.0]])
    np.testing.assert_allclose(log_sum_exp_levels(values), [-np.inf, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize(
    "logits",
    [
        [0.3, -1.0, 2.0, 0.0],
        [-np.inf, 1.0, -np.inf, 0.5],
        [200.0, 199.0, -300.0, 198.0],
        [-np.inf, -np.inf, 0.0, -np.inf],
    ],
    ids=["ordinary", "barred", "large", "only-one"],
)
def test_levels_are_drawn_with_their_probabilities(logits):
    """Chi-square on 40,000 independent draws, p = 1e-6; levels of probability 0 are never drawn."""
    bits = random.words(jax.random.key(2), 40_000)
    levels = draw_levels(bits, jnp.broadcast_to(jnp.array(logits, jnp.float32), (40_000, 4)))
    probabilities = scipy.special.softmax(logits)
    probabilities[probabilities < 1e-20] = 0
    assert chi_square_p_value(np.bincount(levels, minlength=4), probabilities) > P_VALUE


def test_extreme_words_never_draw_a_barred_level():
    bits = jnp.array([0, 0xFFFFFFFF], jnp.uint32)
    first_barred = jnp.array([-jnp.inf, 0.0, 0.0], jnp.float32)
    last_barred = first_barred[::-1]
    assert draw_levels(bits, jnp.stack([first_barred] * 2)).tolist() == [1, 2]
    assert draw_levels(bits, jnp.stack([last_barred] * 2)).tolist() == [0, 1]
