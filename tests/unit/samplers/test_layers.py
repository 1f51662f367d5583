"""Gibbs sampling by layers: exact on machines with the hidden units summed out, and only there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Tempered, exact, samplers, targets
from discrax.core.space import Binary
from discrax.samplers import build_kernel
from discrax.samplers.gibbs import LayerGibbs
from discrax.targets.rbm import RBM, CategoricalRBM

P_VALUE = 1e-6


def machine(num_levels: int) -> RBM | CategoricalRBM:
    rng = np.random.default_rng(1)
    sites = (4,) if num_levels == 2 else (3, num_levels)
    arrays = rng.normal(size=(2, *sites)), rng.normal(size=sites), rng.normal(size=2)
    return (RBM if num_levels == 2 else CategoricalRBM)(*arrays)


@pytest.mark.parametrize("num_levels", [2, 3])
def test_exact(num_levels):
    verdict = exact.check_kernel(
        samplers.gibbs("layers"), machine(num_levels), num_chains=20_000, num_convergence_steps=40
    )
    assert verdict, str(verdict)


def test_a_machine_that_forgets_its_hidden_bias_is_found_out():
    class Forgetful(RBM):
        def hidden_logits(self, e):
            return self.weights @ e.reshape(-1)

        def log_prob(self, e):
            return machine(2).log_prob(e)

    true = machine(2)
    forgetful = Forgetful(true.weights, true.visible_bias, true.hidden_bias)
    assert not exact.check_kernel(samplers.gibbs("layers"), forgetful, num_chains=20_000, num_convergence_steps=40)


def test_what_a_step_carries_and_frozen_sites():
    true = machine(2)
    frozen = RBM(true.weights, true.visible_bias, true.hidden_bias)
    object.__setattr__(frozen, "space", Binary(4, frozen=np.array([True, False, False, True])))
    kernel, x = LayerGibbs(), jnp.array([0, 1, 1, 0], jnp.int8)
    state, info = jax.jit(kernel.step)(jax.random.key(3), frozen, kernel.init(frozen, x))
    assert state.x[0] == state.x[3] == 0
    np.testing.assert_allclose(state.log_prob, true.log_prob(state.x.astype(float)), rtol=1e-5)
    np.testing.assert_allclose(state.cache, true.hidden_logits(state.x.astype(float)), rtol=1e-5)
    assert info.jump == np.sum(np.asarray(state.x != x))


@pytest.mark.usefixtures("as_a_user")
def test_where_it_cannot_be():
    with pytest.raises(ValueError, match=r"LayerGibbs needs hidden units, given which the sites are independent"):
        build_kernel(samplers.gibbs("layers"), targets.Bernoulli(np.full(3, 0.5)))
    with pytest.raises(ValueError, match="takes no temperature"):
        LayerGibbs().init(Tempered(machine(2), 0.5), jnp.zeros(4, jnp.int8))
