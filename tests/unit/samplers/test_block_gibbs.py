"""Block Gibbs and Hamming balls: the law of a step, the order of the blocks, and what a step costs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Categorical, Ordinal, Spin, Target, Tempered, exact, targets
from discrax.core import random
from discrax.samplers.block_gibbs import BlockGibbs, HammingBall
from discrax.targets import Lattice, Quadratic

from ..helpers import P_VALUE
from ..targets.reference import structure

NUM = 20_000
KEYS = random.split(jax.random.key(6), NUM)


def bumpy(e):
    slopes = jnp.linspace(-1.0, 1.5, e.size).reshape(e.shape)
    return jnp.sum(slopes * e) + jnp.cos(3 * jnp.sum(e * slopes[::-1]))


FROZEN = {"frozen": np.arange(5) == 1, "frozen_codes": np.ones(5, int)}
TARGETS = {
    "spin-frozen": lambda: Quadratic(Spin(5, **FROZEN), 0.4 * structure("dense", (5,)).matrix, 0.2),  # local changes
    "categorical": lambda: Tempered(Target.from_log_prob(bumpy, Categorical(3, 3)), 0.6),
    "ordinal-frozen": lambda: Target.from_log_prob(bumpy, Ordinal(5, [-1.0, 0.0, 0.5], **FROZEN)),
}


def transitions(target: Target, block: list[int], radius: int) -> np.ndarray:
    """P(x' | x) of a step on all states: a uniform draw from the ball around x, then one by pi from that around u."""
    states = target.space.enumerate().reshape(-1, target.space.num_sites)
    differs = states[:, None] != states[None]
    is_in_ball = ~np.delete(differs, block, axis=2).any(axis=2) & (differs[:, :, block].sum(axis=2) <= radius)
    weights = is_in_ball * exact.law(target)[None]
    uniform = is_in_ball / is_in_ball.sum(axis=1, keepdims=True)
    return uniform @ (weights / weights.sum(axis=1, keepdims=True))


@eqx.filter_jit
def one_step(kernel, target, x, position):
    def step(key):
        state = kernel.init(target, x)
        state, info = kernel.step(key, target, state._replace(cache=(position, state.cache[1])))
        return state, info

    return jax.vmap(step)(KEYS)


# Kernel, target, and its first and its last, shorter block with the number of their candidates.
CASES = {
    "gibbs-of-one": (BlockGibbs(1), "categorical", [([0], 3), ([2], 3)]),  # as systematic Gibbs, at its price
    "gibbs-levels": (BlockGibbs(2), "categorical", [([0, 1], 9), ([2], 3)]),
    "ball-local": (HammingBall(3, 2), "spin-frozen", [([0, 2, 3], 7), ([4], 2)]),
    "ball-frozen": (HammingBall(3, 1), "ordinal-frozen", [([0, 2, 3], 7), ([4], 3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_law_of_a_step(name):
    """Chi-square of 20,000 steps from two states and two blocks against the transition matrix, p = 1e-6."""
    kernel, target, blocks = CASES[name][0], TARGETS[CASES[name][1]](), CASES[name][2]
    space = target.space
    states = space.enumerate()
    for position, (block, num_candidates) in zip((0, int(space.num_free) - len(blocks[1][0])), blocks, strict=True):
        P = transitions(target, block, min(kernel.radius, len(block)))
        for start in (0, len(states) // 2):
            after, info = one_step(kernel, target, jnp.asarray(states[start]), jnp.int32(position))
            counts = np.bincount(space.index(after.x), minlength=len(states))
            assert exact.chi_square(counts, P[start]) > P_VALUE
            np.testing.assert_array_equal(info.evals, num_candidates - 1)
            assert not np.asarray(info.is_invalid).any()


def test_a_ball_of_all_sites_is_block_gibbs():
    """Whatever u was: the matrix of the ball has the conditional of the block in every row."""
    assert (BlockGibbs(2).block_size, BlockGibbs(2).radius) == (2, 2)
    target = TARGETS["categorical"]()
    last_site = target.space.enumerate()[:, 2]
    weights = (last_site[:, None] == last_site[None]) * exact.law(target)[None]
    conditionals = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(transitions(target, [0, 1], 2), conditionals, atol=1e-12)


MASK = np.array([[False, True, False], [False, True, False]])


def lattice(field: float) -> Target:
    return Quadratic(Spin((2, 3), frozen=MASK), Lattice((2, 3), 0.5), field)


@eqx.filter_jit
def walk(target):
    """The states after each of 300 steps on blocks of three, and what the steps said."""
    kernel = BlockGibbs(3)

    def step(state, key):
        state, info = kernel.step(key, target, state)
        return state, (state, info)

    start = kernel.init(target, jnp.zeros(target.space.shape, target.space.dtype))
    return jax.lax.scan(step, start, KEYS[:300])[1]


def test_blocks_follow_one_another_through_the_free_sites():
    """A field that no neighbour can overcome: every block becomes 1, the shorter one last."""
    states, info = walk(lattice(200.0))
    free = np.flatnonzero(~MASK)
    for x, number in zip(np.asarray(states.x), (3, 4, 4, 4), strict=False):
        np.testing.assert_array_equal(np.flatnonzero(x), free[:number])
    np.testing.assert_array_equal(info.jump[:4], [3, 1, 0, 0])
    np.testing.assert_array_equal(info.evals[:4], [7, 1, 7, 1])
    np.testing.assert_array_equal(states.cache[0][:4], [3, 0, 3, 0])


def test_the_carried_log_probability_is_that_of_the_state():
    """300 steps of sums of changes, in a field so weak that every site moves all the time."""
    target = lattice(0.1)
    states, info = walk(target)
    values = jax.vmap(lambda x: target.log_prob(target.space.embed(x)))(states.x)
    np.testing.assert_allclose(states.log_prob, values, atol=1e-4)
    assert float(info.jump.sum()) > 50
    assert (np.asarray(info.accept_prob) == 1).all()


def test_a_candidate_without_a_probability_is_not_drawn_but_counted():
    table = jnp.array([0.2, 0.0, jnp.inf, jnp.nan])
    target = Target.from_log_prob(lambda e: table[(2 * e[0] + e[1]).astype(int)], Binary(2))
    after, info = one_step(BlockGibbs(2), target, jnp.zeros(2, jnp.int8), jnp.int32(0))
    counts = np.bincount(target.space.index(after.x), minlength=4)
    assert (counts[:2] > 0).all()
    assert (counts[2:] == 0).all()
    assert np.asarray(info.is_invalid).all()
    assert np.isfinite(np.asarray(after.log_prob)).all()


LARGE = targets.Bernoulli(np.full(40, 0.5))
BAD = {
    "no-site": (lambda: BlockGibbs(0), ("block_size", "at least 1", "0")),
    "half-a-site": (lambda: HammingBall(2.5), ("block_size", "whole number", "2.5")),
    "no-radius": (lambda: HammingBall(4, 0), ("radius", "at least 1", "0")),
    "radius-beyond-the-block": (lambda: HammingBall(4, 5), ("radius", "at most block_size = 4", "5")),
    "too-many-settings": (lambda: BlockGibbs(17).init(LARGE, jnp.zeros(40, jnp.int8)), ("131,072", "65,536")),
    "too-large-a-ball": (lambda: HammingBall(40, 6).init(LARGE, jnp.zeros(40, jnp.int8)), ("65,536", "radius")),
}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("name", BAD)
def test_bad_settings_meet_a_sentence(name):
    build, parts = BAD[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        build()
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert str(caught.value).endswith(".")
