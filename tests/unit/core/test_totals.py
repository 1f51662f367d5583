"""Spaces whose totals are bounded: which states there are, and what is refused."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.exact.enumeration import chi_square

FROZEN = {"frozen": np.arange(5) == 1, "frozen_codes": np.full(5, 2) * (np.arange(5) == 1)}
SPACES = {
    "exactly": (dx.Binary(6, exactly=2), lambda v: v.sum() == 2),
    "at most": (dx.Binary(5, at_most=2), lambda v: v.sum() <= 2),
    "groups": (
        dx.Binary((2, 3), groups=[[0, 0, -1], [1, 1, 1]], at_least=[0, 1], at_most=[1, 2]),
        lambda v: v[0, :2].sum() <= 1 and 1 <= v[1].sum() <= 2,
    ),
    "one number for groups": (
        dx.Binary(4, groups=[1, 0, 1, 0], exactly=1),
        lambda v: v[0] + v[2] == 1 and v[1] + v[3] == 1,
    ),
    "spin": (dx.Spin(6, exactly=0), lambda v: v.sum() == 0),
    "ordinal": (dx.Ordinal(4, [-0.5, 0.0, 0.5, 1.0], exactly=0.5), lambda v: abs(v.sum() - 0.5) < 1e-6),
    "frozen": (
        dx.Ordinal(5, [-1, 0, 1], groups=[0, 0, 0, 1, 1], at_least=[1, -1], **FROZEN),
        lambda v: v[1] == 1 and v[:3].sum() >= 1 and v[3:].sum() >= -1,
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_its_states_are_those_that_keep_the_bounds(name):
    space, is_kept = SPACES[name]
    everything = np.array(list(product(range(space.num_levels), repeat=space.num_sites))).reshape(-1, *space.shape)
    values = np.asarray(space.embed(jnp.asarray(everything, space.dtype)))
    expected = everything[[bool(is_kept(v)) for v in values]]
    states = space.enumerate()
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_array_equal(space.index(states[::-1]), np.arange(len(states))[::-1])
    assert space.log_num_states() == pytest.approx(np.log(len(states)))
    space.check(states)
    others = everything[[not is_kept(v) for v in values]]
    for state in others[:: max(1, len(others) // 50)]:
        with pytest.raises(ValueError, match=r"must total|frozen sites"):
            space.check(state)


@pytest.mark.parametrize("name", ["exactly", "groups", "frozen"])
def test_random_states_are_states_and_reach_all(name):
    space, _ = SPACES[name]
    x = np.asarray(jax.jit(jax.vmap(space.random))(jax.random.split(jax.random.key(0), 5000)))
    space.check(x)
    counts = np.bincount(space.index(x), minlength=len(space.enumerate()))
    assert counts.min() > 0
    if name == "exactly":
        assert chi_square(counts, np.full(len(counts), 1 / len(counts))) > 1e-6
    one = space.random(jax.random.key(1))
    assert one.dtype == space.dtype
    space.check(one)


def test_what_keeps_its_bounds_is_not_mended():
    space, _ = SPACES["groups"]
    ranks = np.random.default_rng(0).random(6)
    for state in space.enumerate():
        np.testing.assert_array_equal(space.mend(state, ranks), state)


def test_many_sites_of_which_few_are_on_can_be_enumerated():
    space = dx.Binary(60, exactly=2)
    assert len(space.enumerate()) == 60 * 59 // 2
    with pytest.raises(ValueError, match=r"at most 1,048,576 states, but this space has about 10\^10.9"):
        dx.Binary(60, exactly=10).enumerate()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dx.Binary(5, exactly=7), "can total 0 to 5 in steps of 1, but exactly=7"),
        (lambda: dx.Binary(5, exactly=2.5), "exactly=2.5 leaves none"),
        (lambda: dx.Spin(5, exactly=0), "can total -5 to 5 in steps of 2, but exactly=0"),
        (lambda: dx.Binary(5, at_least=3, at_most=2), "at_least=3 and at_most=2 leaves none"),
        (lambda: dx.Binary(5, exactly=1, at_most=2), "by exactly, or by at_least and at_most"),
        (lambda: dx.Binary(5, groups=[0, 0, 0, 1, 1]), "without exactly, at_least or at_most"),
        (lambda: dx.Binary(5, groups=[0, 0, 2, 2, 2], exactly=1), "group 1 has no site"),
        (lambda: dx.Binary(5, groups=[0, 0, -2, 1, 1], exactly=1), "they are -2..1"),
        (lambda: dx.Binary(5, groups=[0, 0, 1], exactly=1), r"shape \(5,\), and -1 .* but got int64 of shape \(3,\)"),
        (lambda: dx.Binary(4, groups=[0, 0, 1, 1], exactly=[1, 1, 1]), "one for each of 2 groups, but its shape"),
        (lambda: dx.Ordinal(3, [0.0, 1.0, 3.0], exactly=3), "equally spaced values, but the steps between these are"),
        (lambda: dx.Binary(3, exactly=1, frozen=[True, True, False], frozen_codes=[1, 1, 0]), "can total 2 to 3"),
    ],
)
def test_what_cannot_be_is_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("name", ["rwm", "gibbs", "pas", "dmala", "lb", "dlmc", "ab_first", "block_gibbs"])
def test_samplers_that_would_break_a_total_are_refused(name):
    target = dx.targets.Quadratic(dx.Binary(6, exactly=2), np.zeros((6, 6)))
    with pytest.raises(ValueError, match="the totals of this Binary space are bounded; use 'swap'"):
        dx.sample(jax.random.key(0), target, name, num_samples=10)
    assert not dx.samplers.get_sampler(name).fits(target)


def test_a_bridge_of_independent_sites_is_refused():
    target = dx.targets.Quadratic(dx.Binary(6, exactly=2), np.zeros((6, 6)))
    with pytest.raises(ValueError, match="begins at independent sites, but the totals of this space are bounded"):
        dx.learn.ais(jax.random.key(0), target, sampler="swap", num_chains=4, num_temperatures=4)
