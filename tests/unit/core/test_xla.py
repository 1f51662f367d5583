"""`materialised` is the identity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core.xla import materialised


@pytest.mark.parametrize("first", [np.inf, -np.inf, np.nan, 3e38, -3e38, 0.0, 2.0, -2.0])
def test_every_number_passes_through(first):
    """An endless loop would be found here."""
    v = jnp.array([[first, 1.0, np.nan], [0.0, np.inf, first]], jnp.float32)
    np.testing.assert_array_equal(jax.jit(materialised)(v), v)
    np.testing.assert_array_equal(jax.jit(jax.vmap(materialised))(v), v)


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.int32, bool])
def test_codes_and_scalars_pass_through(dtype):
    v = jnp.array([1, 0, 1], dtype)
    np.testing.assert_array_equal(jax.jit(materialised)(v), v)
    assert jax.jit(materialised)(v[0]) == v[0]
