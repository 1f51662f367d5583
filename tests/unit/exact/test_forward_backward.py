"""Forward-backward against enumeration, and samplers against forward-backward."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, exact, samplers
from discrax.exact.forward_backward import chain_law
from discrax.targets.fhmm import FHMM, CategoricalFHMM

from ..helpers import P_VALUE, Z_SCORE, chi_square_p_value, one_hot


def frozen() -> FHMM:
    mask = np.zeros((4, 2), bool)
    mask[0, 1] = mask[2, 0] = True
    target = FHMM.simulated(5, 4, 2, 0.5)
    space = Binary((4, 2), frozen=mask, frozen_codes=mask.astype(int))
    return eqx.tree_at(lambda t: t.space, target, space, is_leaf=lambda node: isinstance(node, Binary))


TARGETS = {
    "binary": lambda: FHMM.simulated(1, 4, 3, 0.5),
    "other prior": lambda: FHMM([0.4, -0.8, 1.1], [0.7, -0.3, 0.1], -0.2, initial_logit=2.2, stay_logit=0.2),
    "changing": lambda: FHMM([0.5, -1.0, 2.0], [1.0, -0.4], 0.1, 0.7, stay_logit=-1.5),
    "categorical": lambda: CategoricalFHMM.simulated(3, 3, 2, 3, 0.5),
    "one time": lambda: CategoricalFHMM.simulated(4, 1, 2, 3),
    "frozen": frozen,
}


@pytest.fixture(scope="module", params=TARGETS)
def case(request):
    target = TARGETS[request.param]()
    return target, target.space.enumerate(), exact.law(target), chain_law(target)


def test_log_normaliser_and_log_prob(case):
    target, states, probabilities, ours = case
    x = jnp.asarray(states)
    unnormalised = jax.jit(jax.vmap(lambda x: target.log_prob(target.space.embed(x))))(x)
    log_sum = np.logaddexp.reduce(np.asarray(unnormalised, np.float64))
    assert ours.log_normaliser == pytest.approx(log_sum, abs=1e-5)
    np.testing.assert_allclose(np.exp(ours.log_prob(states)), probabilities, atol=1e-6)


def test_normalised(case):
    _, states, _, ours = case
    assert np.exp(ours.log_prob(states)).sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(ours.marginals.sum(axis=-1), 1, atol=1e-12)


def test_marginals(case):
    target, states, probabilities, ours = case
    expected = np.tensordot(probabilities, one_hot(states, target.space.num_levels), 1)
    np.testing.assert_allclose(ours.marginals, expected, atol=1e-5)


def test_draws_follow_the_law(case):
    target, _, _, ours = case
    draws = ours.draw(jax.random.key(0), 10_000)
    target.space.check(draws)
    assert draws.dtype == target.space.dtype
    states = target.space.enumerate()
    probabilities = np.exp(ours.log_prob(states))
    counts = np.bincount(target.space.index(draws), minlength=len(states))
    assert exact.chi_square(counts, probabilities) > P_VALUE


def test_a_longer_chain_agrees_with_itself():
    """Draws of a chain that cannot be enumerated have the marginals, and the chain rule gives their log-probability."""
    target = FHMM.simulated(0, 30, 5)
    ours = chain_law(target)
    draws = ours.draw(jax.random.key(1), 1_000)
    p = ours.marginals[..., 1]
    z = (np.asarray(draws, float).mean(axis=0) - p) / np.sqrt(p * (1 - p) / len(draws))
    assert np.abs(z).max() < Z_SCORE
    unnormalised = jax.jit(jax.vmap(lambda x: target.log_prob(target.space.embed(x))))(draws)
    np.testing.assert_allclose(ours.log_prob(draws), unnormalised - ours.log_normaliser, atol=1e-3)


def test_draws_of_one_site_of_many_levels():
    target = CategoricalFHMM.simulated(0, 1, 1, 6, 2.0)
    ours = chain_law(target)
    counts = np.bincount(np.asarray(ours.draw(jax.random.key(2), 20_000)).ravel(), minlength=6)
    assert chi_square_p_value(counts, ours.marginals[0, 0]) > P_VALUE


def test_gibbs_reaches_the_marginals():
    """2,000 chains from one state, 20 sweeps each: their ends are independent draws."""
    target = FHMM.simulated(7, 8, 3, 0.5)
    start = jnp.zeros((2_000, 8, 3), jnp.int8)
    ends = exact.walk(jax.random.key(3), target, samplers.gibbs("systematic"), start, 24, 20)
    p = chain_law(target).marginals[..., 1]
    z = (np.asarray(ends, float).mean(axis=0) - p) / np.sqrt(p * (1 - p) / len(ends))
    assert np.abs(z).max() < Z_SCORE


def test_too_many_joint_states():
    with pytest.raises(ValueError, match=r"at most 4,096 joint states a time, but 13 factors of 2 levels"):
        chain_law(FHMM.simulated(0, 3, 13))


def test_log_prob_of_another_shape():
    ours = chain_law(FHMM.simulated(0, 3, 2))
    with pytest.raises(ValueError, match=r"Expected states of shape \(3, 2\)"):
        ours.log_prob(np.zeros((3, 3), int))
