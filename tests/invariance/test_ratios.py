"""Samplers that are informed by gradients alone are exact where the target has exact ratios that differ from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.factorised import factorised_step
from discrax.samplers.informed import Informed
from discrax.samplers.langevin import DMALA
from invariance.exactness import THRESHOLD, assert_exact, invariance_p_value
from invariance.small_targets import symmetric
from repeats import repeats

pytestmark = pytest.mark.runs_long

Q = np.array([[1.2, 0.5, -0.3], [0.5, 0.9, 0.2], [-0.3, 0.2, 1.5]])
GAUSSIAN = dx.targets.LatticeGaussian.from_matrix(Q, num_levels=4, centre=1.7)
W = symmetric(3, 0.6)
SAMPLERS = {
    "gwg": {"path_length": 2.0},
    "gwg_ordinal": {"radius": 2.0},
    "pas": {"path_length": 2.0},
    "dmala": {"step_size": 1.5},
    "dlp_trace": {"step_size": 1.5, "diagonal": np.array([0.5, 1.0, 2.0])},
    "dlmc": {"step_size": 2.0},
    "dlmcf": {"step_size": 2.0},
    "avg": {"step_size": 2.0},
    "pavg": {"step_size": 2.0, "M": W, "gamma": -0.7},
    "ab_first": {"sigma": 3.0, "alpha": 0.7},
    "ab_diagonal": {"sigma": 3.0, "alpha": 0.7, "W": np.array([-1.2, 0.4, -0.5])},
    "ab_shift": {"sigma": 3.0, "alpha": 0.7, "W": W},
    "ab_max": {"sigma": 3.0, "alpha": 0.7, "W": W, "ties": "none"},
    "ab_trace": {"sigma": 3.0, "alpha": 0.7, "W": W},
    "swap": {"path_length": 1.0},
}


def informed(name: str, ratios: str) -> dx.Kernel:
    return dx.samplers.get_sampler(name).build(**SAMPLERS[name], ratios=ratios)


def test_the_list_above_has_every_informed_sampler_with_the_switch():
    rows = {name: row.build() for name, row in dx.samplers.REGISTRY.items()}
    have = {name for name, kernel in rows.items() if isinstance(kernel, Informed) and kernel.uses_gradient}
    assert have == {*SAMPLERS, "dula"}  # which is not exact


# The switch belongs to what all of them share: one of each family.
OF_A_FAMILY = ("gwg", "gwg_ordinal", "dmala", "dlmc", "pavg", "ab_trace", "swap")


@pytest.mark.slow
@pytest.mark.parametrize("name", repeats(OF_A_FAMILY, SAMPLERS))
def test_exact_by_gradients_alone(name, key):
    assert_exact(informed(name, "gradient"), dx.Tempered(GAUSSIAN, 0.8), key)


def test_invariant_by_gradients_alone(key):
    assert invariance_p_value(informed("dmala", "gradient"), GAUSSIAN, key) > THRESHOLD


class ForthAndBack(DMALA):
    """A broken twin: forth by gradients, back by exact ratios."""

    def step(self, key, target, state):
        forth = self.logits(target, self.init(target, state.x))
        return factorised_step(key, target, state, forth, lambda there: (self.logits(target, there), 0.0))


def test_a_twin_that_goes_back_by_other_ratios_than_forth_is_found(key):
    assert invariance_p_value(ForthAndBack(1.5, ratios="gradient"), GAUSSIAN, key) < THRESHOLD


def test_gradients_and_exact_ratios_differ_by_the_diagonal():
    x = jnp.array([0, 2, 3])
    at = jax.jit(lambda target, x: [informed("dmala", each).init(target, x).cache for each in ("exact", "gradient")])
    exact, first_order = at(GAUSSIAN, x)
    z = np.arange(4.0)[None] - np.array([0.0, 2.0, 3.0])[:, None]
    np.testing.assert_allclose(first_order - exact, np.array([1.2, 0.9, 1.5])[:, None] * z**2 / 2, atol=1e-5)
    ising, here = dx.targets.Ising.lattice((2, 2), 0.4), jnp.zeros((2, 2), jnp.int8)
    np.testing.assert_allclose(*at(ising, here), atol=1e-6)


def test_ratios_have_a_name():
    with pytest.raises(ValueError, match="ratios must be 'exact' or 'gradient', but got 'gradients'"):
        dx.samplers.pas(ratios="gradients")
