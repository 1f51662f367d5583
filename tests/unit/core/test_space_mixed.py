"""Categorical spaces whose sites have different numbers of levels."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.levels import bar_missing
from discrax.core.target import effective_ratios, evaluate, exact_evaluation
from discrax.samplers.conditionals import conditional_ratios

from ..helpers import P_VALUE, chi_square_p_value

LEVELS = np.array([[2, 4], [3, 2]])
SPACE = dx.Categorical((2, 2), LEVELS)
STATES = np.array(list(itertools.product(range(2), range(4), range(3), range(2))), np.int8).reshape(-1, 2, 2)


def test_all_states_and_their_places():
    np.testing.assert_array_equal(SPACE.enumerate(), STATES)
    np.testing.assert_array_equal(SPACE.index(STATES[::-1]), np.arange(48)[::-1])
    assert SPACE.log_num_states() == pytest.approx(math.log(48))
    assert (SPACE.num_levels, SPACE.has_two_levels) == (4, False)
    SPACE.check(STATES)
    assert SPACE.embed(jnp.asarray(STATES[0])).shape == (2, 2, 4)


def test_random_states_are_uniform():
    """Chi-square on 20,000 draws, p = 1e-6."""
    x = jax.vmap(SPACE.random)(jax.random.split(jax.random.key(0), 20_000))
    SPACE.check(np.asarray(x))
    counts = np.bincount(SPACE.index(x), minlength=48)
    assert chi_square_p_value(counts, np.full(48, 1 / 48)) > P_VALUE


def test_frozen_sites():
    mask = np.array([[False, True], [False, False]])
    space = dx.Categorical((2, 2), LEVELS, frozen=mask, frozen_codes=np.where(mask, 3, 0))
    np.testing.assert_array_equal(space.enumerate(), STATES[STATES[:, 0, 1] == 3])
    np.testing.assert_array_equal(space.index(space.enumerate()), np.arange(12))


def test_as_many_levels_everywhere_are_one_number():
    """Then nothing is masked: the compiled steps are those of a space with one number of levels."""
    space = dx.Categorical((2, 2), np.full((2, 2), 3))
    assert space.counts is None
    assert space.levels_at(jnp.asarray(1)) == 3
    values = jnp.ones((2, 2, 3))
    assert bar_missing(values, space.levels_at()) is values


def test_changes_to_levels_that_a_site_does_not_have_are_barred():
    target = dx.Target.from_log_prob(lambda e: jnp.sum(jnp.sin(jnp.arange(16.0)).reshape(2, 2, 4) * e), SPACE)
    x = jnp.asarray(STATES[17])
    exists = np.arange(4) < LEVELS.reshape(4, 1)
    for evaluation in (evaluate(target, x), exact_evaluation(target, x)):
        ratios = np.asarray(effective_ratios(target, x, evaluation.ratios))
        np.testing.assert_array_equal(np.isfinite(ratios), exists)
    np.testing.assert_array_equal(np.isfinite(conditional_ratios(target, x, jnp.asarray(2))), exists[2])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dx.Categorical(3, (2, 3)), r"one per site in an array of shape \(3,\), but got int64 of shape \(2,\)"),
        (lambda: dx.Categorical(2, (2.0, 3.0)), "num_levels is a whole number, or one per site"),
        (lambda: dx.Categorical(2, (1, 3)), r"num_levels holds 1\.\.3; freeze a site that cannot change"),
        (lambda: SPACE.check(np.array([[0, 3], [2, 2]])), r"lie in 0\.\.1 at a site with that many levels, but .* 2"),
        (lambda: dx.Categorical(30, np.arange(30) % 2 + 2).enumerate(), r"this space has about 10\^11\.7"),
        (
            lambda: dx.Categorical(2, (2, 3), frozen=[True, False], frozen_codes=[2, 0]),
            "codes in the levels of their sites, but got codes 0..2",
        ),
    ],
)
def test_mistakes_are_told(build, words, as_a_user):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("name", ["minibatch_gibbs", "pseudo_marginal", "local_search", "sgdld"])
def test_kernels_of_mini_batches_stay_in_the_space(name):
    """psi is not a number at levels that do not exist: it is never asked there, or not listened to."""
    missing = jnp.asarray(np.arange(4) >= LEVELS[..., None], jnp.float32)

    def psi(e, noise):
        return jnp.sum(jnp.log(1 - 2 * jnp.sum(missing * e, axis=-1))) + 0.1 * noise * jnp.sum(e[..., 0])

    target = dx.targets.Expectation(psi, dx.core.random.uniform_scalar, SPACE)
    kernel = dx.samplers.REGISTRY[name].build()
    result = dx.sample(
        jax.random.key(0), target, kernel, num_chains=4, num_warmup=0, num_samples=50, adaptation=None, progress=False
    )
    SPACE.check(result.draws)
    if name != "local_search":
        assert len(np.unique(SPACE.index(result.draws))) > 10


def test_problems_of_mixed_levels_start_and_are_repaired_within_them():
    levels = np.array([2, 4, 3, 2])
    wanted = levels - 1
    problem = dx.problems.Custom(
        lambda e: jnp.sum(e[:, 1]),
        dx.Categorical(4, levels),
        violations=lambda e: jnp.sum(1 - e[jnp.arange(4), jnp.asarray(wanted)]),
    )
    starts = problem.init(np.random.default_rng(0), 200)
    problem.space.check(starts)
    assert (starts.max(axis=0) == wanted).all()
    np.testing.assert_array_equal(problem.repair(np.zeros(4, np.int8)), wanted)
