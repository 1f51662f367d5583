"""Targets that a paper's released code has, and its text has not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.bench.papers.optimal_scaling.targets import fhmm_released
from discrax.exact.forward_backward import chain_law


def test_the_released_hidden_markov_model():
    """2.197 * sum_k x_1k + 0.2 * stays, with the printed weights."""
    target = fhmm_released(50, 1.0)
    assert float(target.initial_logit) == pytest.approx(2.197, abs=1e-3)
    assert float(target.stay_logit) == pytest.approx(0.2)
    np.testing.assert_allclose(target.weights, [0.6614, 0.2669, 0.0617, 0.6213, -0.4519], rtol=1e-6)
    assert float(target.offset) == pytest.approx(-0.1661)


@pytest.mark.parametrize(("noise_variance", "printed"), [(2.0, 0.83), (1.0, 0.79), (0.5, 0.74)])
def test_it_reproduces_the_printed_acceptance(noise_variance, printed):
    """Single random flips at exact draws, against Table 11 of Sun et al. (2022) at L = 200."""
    target = fhmm_released(200, noise_variance)
    draws = chain_law(target).draw(jax.random.key(0), 50)
    ratios = eqx.filter_jit(jax.vmap(lambda target, x: target.evaluate(x).ratios, in_axes=(None, 0)))(target, draws)
    assert float(jnp.minimum(1, jnp.exp(ratios)).mean()) == pytest.approx(printed, abs=0.015)
