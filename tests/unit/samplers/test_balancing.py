"""Weight functions against their formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from discrax.samplers import WEIGHT_FUNCTIONS, Power
from discrax.samplers.balancing import get_balancing

FORMULAS = {
    "sqrt": np.sqrt,
    "ratio": lambda t: t / (1 + t),
    "min": lambda t: np.minimum(1, t),
    "max": lambda t: np.maximum(1, t),
    "power": np.sqrt,  # its exponent is 1/2 unless told otherwise
}
LOG_T = np.linspace(-12, 12, 49)


def test_every_weight_function_is_tested():
    assert set(WEIGHT_FUNCTIONS) == set(FORMULAS)


@pytest.mark.parametrize("name", list(FORMULAS))
def test_formula(name):
    ours = get_balancing(name)(jnp.asarray(LOG_T, jnp.float32))
    np.testing.assert_allclose(ours, np.log(FORMULAS[name](np.exp(LOG_T))), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", list(FORMULAS))
def test_balance(name):
    """g(t) = t g(1/t), that is log g(l) = l + log g(-l)."""
    g, l = get_balancing(name), jnp.asarray(LOG_T, jnp.float32)  # noqa: E741
    np.testing.assert_allclose(g(l), l + g(-l), atol=1e-5)


@pytest.mark.parametrize("alpha", [0.1, 0.9])
def test_other_powers_are_not_balanced(alpha):
    g, l = Power(alpha), jnp.asarray(LOG_T, jnp.float32)  # noqa: E741
    np.testing.assert_allclose(g(l), alpha * LOG_T, rtol=1e-5)
    assert float(jnp.max(jnp.abs(g(l) - l - g(-l)))) > 1


@pytest.mark.parametrize("name", list(FORMULAS))
def test_extreme_ratios_stay_finite(name):
    ours = np.asarray(get_balancing(name)(jnp.array([-1e4, -200.0, 0.0, 200.0, 1e4], jnp.float32)))
    assert np.isfinite(ours).all()
    assert (np.diff(ours) >= 0).all()


def test_any_function_of_the_log_ratio_will_do():
    def own(log_ratio):
        return log_ratio / 4

    assert get_balancing(own) is own
