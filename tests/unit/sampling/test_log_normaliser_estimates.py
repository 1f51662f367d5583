"""log Z from draws along a path: both estimators, their errors, and a twin that forgets a stone."""

import numpy as np
import pytest

from discrax.sampling.log_normaliser_estimates import log_normaliser_of_path

LEVELS = np.linspace(-3.0, 4.0, 50)  # values of V, of which the reference has as many each
LOG_Z = float(np.log(np.exp(LEVELS).sum()))
BETAS = np.array([1e-3, 0.2, 0.5, 1.0])


def draws(seed, chains=4, num=400, held=1):
    """V at independent draws of each rung; each is seen `held` times in a row, as of a chain that moves slowly."""
    rng = np.random.default_rng(seed)
    laws = np.exp(BETAS[:, None] * LEVELS)
    picks = [rng.choice(LEVELS, size=(chains, num // held), p=law / law.sum()) for law in laws]
    return np.repeat(np.stack(picks, axis=-1), held, axis=1)


@pytest.mark.parametrize("held", [1, 8])
def test_errors_are_honest(held):
    found = [log_normaliser_of_path(draws(seed, held=held), BETAS, np.log(len(LEVELS))) for seed in range(60)]
    stones = np.array([(each.log_Z - LOG_Z) / each.error for each in found])
    integral = np.array([(each.integral - LOG_Z) / each.integral_error for each in found])
    for off in (stones, integral):
        assert 0.88 <= np.mean(np.abs(off) < 1.96) <= 1.0
        assert np.abs(off).max() < 5
        assert np.std(off) > 0.5  # nor are they much too large


def test_more_draws_know_more_and_a_stone_cannot_be_left_out():
    few, many = (log_normaliser_of_path(draws(0, num=num), BETAS, np.log(len(LEVELS))) for num in (400, 40_000))
    assert many.error < few.error / 5
    assert abs(many.log_Z - LOG_Z) < 4 * many.error < 0.02
    without = log_normaliser_of_path(draws(0, num=40_000)[..., :-1], BETAS[:-1], np.log(len(LEVELS)))
    assert abs(without.log_Z - LOG_Z) > 100 * without.error


def test_large_values_do_not_overflow():
    shifted = log_normaliser_of_path(draws(0) + 1e5, BETAS)
    assert abs(shifted.log_Z - 1e5 - log_normaliser_of_path(draws(0), BETAS).log_Z) < 1e-6
    assert "by stepping stones" in str(shifted)


def test_one_draw_has_no_error():
    assert np.isnan(log_normaliser_of_path(draws(0, chains=1, num=1), BETAS).error)
