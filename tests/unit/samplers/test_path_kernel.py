"""Scales and capacities of the kernels that can be tuned."""

import jax.numpy as jnp
import numpy as np
import pytest

from discrax import samplers, targets
from discrax.adaptation.acceptance import scale_of, with_scale
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
    assert float(scale_of(LARGE, kernel)[1]) == pytest.approx(np.log(length), abs=1e-6)
    again = with_scale(LARGE, kernel, scale_of(LARGE, kernel)[1])[0]
    assert float(again.path_length) == pytest.approx(length, rel=1e-5)


@paths
def test_path_length_is_clipped_to_what_makes_sense(build):
    kernel = build(5.0)
    assert float(with_scale(LARGE, kernel, jnp.float32(-3.0))[0].path_length) == 1
    most = longest(kernel.capacity, 1000)
    assert float(with_scale(LARGE, kernel, jnp.float32(20.0))[0].path_length) == most
    assert float(with_scale(SMALL, kernel, jnp.float32(20.0))[0].path_length) == 6  # no longer than there are sites


@paths
@pytest.mark.parametrize("length", [1.0, 2.0, 9.0, 100.0, 700.0])
def test_capacity_holds_the_path(build, length):
    fitted = build(length).prepare(LARGE, tuning=False)[0]
    assert fitted.capacity <= 1000
    assert longest(fitted.capacity, 1000) >= length
    growing = build(length).prepare(LARGE, tuning=True)[0]
    assert longest(growing.capacity, 1000) >= min(998, 1.25 * length)


@paths
def test_a_path_may_visit_every_site_of_a_small_space(build):
    for n in (2, 4, 5, 6, 20):
        target = targets.Bernoulli(np.full(n, 0.5))
        reach = [longest(build(float(n)).prepare(target, tuning=room)[0].capacity, n) for room in (False, True)]
        assert reach == [n, n]


@paths
def test_capacity_grows_when_the_path_outgrows_it(build):
    kernel = build(1.0).prepare(LARGE, tuning=True)[0]
    small = kernel.capacity
    assert kernel.prepare(LARGE, tuning=True)[0].capacity == small  # and stays while there is room
    long = replaced(kernel, path_length=jnp.float32(longest(small, 1000)))
    assert long.prepare(LARGE, tuning=True)[0].capacity > small
    assert kernel.prepare(LARGE, tuning=False)[0].capacity == 1  # one site a step needs no more


@pytest.mark.parametrize("step_size", [0.05, 0.2, 0.5, 3.0, 100.0])
def test_step_size_round_trip(step_size):
    kernel = samplers.dmala(step_size)
    again = with_scale(SMALL, kernel, scale_of(SMALL, kernel)[1])[0]
    assert float(again.step_size) == pytest.approx(step_size, rel=1e-4)


def test_larger_scales_are_larger_steps():
    kernel, scales = samplers.dmala(0.2), np.linspace(-40, 20, 61)
    steps = [float(with_scale(SMALL, kernel, jnp.float32(scale))[0].step_size) for scale in scales]
    assert (np.diff(steps) >= 0).all()
    assert 0 < steps[0] < 0.02
    assert np.isfinite(steps[-1])
    assert steps[-1] > 1e3
