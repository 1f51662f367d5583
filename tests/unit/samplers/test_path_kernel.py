"""Scales and capacities of the kernels that can be tuned."""

import jax.numpy as jnp
import numpy as np
import pytest

from discrax import samplers, targets
from discrax.core.kernel import replaced
from discrax.samplers.selection import longest

LARGE = targets.Bernoulli(np.full(1000, 0.5))
SMALL = targets.Bernoulli(np.full(6, 0.5))
PATHS = {"rwm": samplers.rwm, "gwg": samplers.gwg, "pas": samplers.pas}
paths = pytest.mark.parametrize("build", list(PATHS.values()), ids=list(PATHS))


@paths
@pytest.mark.parametrize("length", [1.0, 3.7, 20.0])
def test_path_length_is_its_log_scale(build, length):
    kernel = build(length)
    assert float(kernel.log_scale(LARGE)) == pytest.approx(np.log(length), abs=1e-6)
    again = kernel.with_log_scale(LARGE, kernel.log_scale(LARGE))
    assert float(again.path_length) == pytest.approx(length, rel=1e-5)


@paths
def test_path_length_is_clipped_to_what_makes_sense(build):
    kernel = build(5.0)
    assert float(kernel.with_log_scale(LARGE, jnp.float32(-3.0)).path_length) == 1
    most = longest(kernel.capacity, 1000)
    assert float(kernel.with_log_scale(LARGE, jnp.float32(20.0)).path_length) == most
    assert float(kernel.with_log_scale(SMALL, jnp.float32(20.0)).path_length) == 6  # no longer than there are sites


@paths
@pytest.mark.parametrize("length", [1.0, 2.0, 9.0, 100.0, 700.0])
def test_capacity_holds_the_path(build, length):
    fitted = build(length).sized(LARGE, room=False)
    assert fitted.capacity <= 1000
    assert longest(fitted.capacity, 1000) >= length
    growing = build(length).sized(LARGE, room=True)
    assert longest(growing.capacity, 1000) >= min(998, 2 * length)


@paths
def test_a_path_may_visit_every_site_of_a_small_space(build):
    for n in (2, 4, 5, 6, 20):
        target = targets.Bernoulli(np.full(n, 0.5))
        reach = [longest(build(float(n)).sized(target, room=room).capacity, n) for room in (False, True)]
        assert reach == [n, n]


@paths
def test_capacity_grows_when_the_path_outgrows_it(build):
    kernel = build(1.0).sized(LARGE, room=True)
    small = kernel.capacity
    assert kernel.sized(LARGE, room=True).capacity == small  # and stays while there is room
    long = replaced(kernel, path_length=jnp.float32(longest(small, 1000)))
    assert long.sized(LARGE, room=True).capacity > small
    assert kernel.sized(LARGE, room=False).capacity == 1  # one site a step needs no more


@pytest.mark.parametrize("step_size", [0.05, 0.2, 0.5, 3.0, 100.0])
def test_step_size_round_trip(step_size):
    kernel = samplers.dmala(step_size)
    again = kernel.with_log_scale(SMALL, kernel.log_scale(SMALL))
    assert float(again.step_size) == pytest.approx(step_size, rel=1e-4)


def test_larger_scales_are_larger_steps():
    kernel, scales = samplers.dmala(0.2), np.linspace(-40, 20, 61)
    steps = [float(kernel.with_log_scale(SMALL, jnp.float32(scale)).step_size) for scale in scales]
    assert (np.diff(steps) >= 0).all()
    assert 0 < steps[0] < 0.02
    assert np.isfinite(steps[-1])
    assert steps[-1] > 1e3
