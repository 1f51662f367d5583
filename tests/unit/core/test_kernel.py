"""What kernels share."""

import jax.numpy as jnp
import numpy as np
import pytest

from discrax import samplers
from discrax.core.kernel import replaced, scalar_info


def test_replaced_copies_and_leaves_the_original_alone():
    kernel = samplers.pas(3.0)
    other = replaced(kernel, capacity=99, path_length=jnp.float32(5))
    assert (other.capacity, float(other.path_length)) == (99, 5.0)
    assert other.balancing is kernel.balancing
    assert (kernel.capacity, float(kernel.path_length)) != (99, 5.0)


@pytest.mark.parametrize("accept_prob", [1, 1.0, np.float64(0.5), jnp.float32(0.25)])
def test_info_has_the_same_types_whatever_came(accept_prob):
    """A kernel that hands over Python numbers must not make a second program."""
    info = scalar_info(accept_prob, True, 2, 1, np.bool_(False))
    assert [str(field.dtype) for field in info] == ["float32", "bool", "float32", "float32", "float32", "bool"]
    assert not any(field.weak_type for field in info)
    assert float(info.log_weight) == 0
