"""Ordinal GWG and MH-uniform: proposals seen from inside a step, against their formulas in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from discrax import Ordinal, Target, Tempered, samplers, targets
from discrax.adaptation.acceptance import scale_of, with_scale
from discrax.core import random
from discrax.samplers.ordinal import MHUniform, OrdinalGWG, round_at_random
from discrax.targets import Quadratic

from ..helpers import P_VALUE, Z_SCORE, chi_square_p_value, z_score
from ..targets.reference import structure
from .reference import Proposal, Spy, frozen_mask, move_weights
from .test_acceptance_ratio import FROZEN, KEYS, NUM, check, ratios, start

GRID = [-1.0, 0.0, 0.5, 2.0, 2.5]
TARGETS = {
    "five-levels": lambda: Tempered(
        Quadratic(Ordinal(8, GRID, **FROZEN), 0.2 * structure("dense diagonal", (8,)).matrix), 0.6
    ),
    "two-levels": lambda: Quadratic(Ordinal(8, [-0.4, 1.1]), 0.5 * structure("dense", (8,)).matrix, 0.1),
}


def proposals(monkeypatch, kernel, target, proposed_by: str, argument: int) -> list[Proposal]:
    """What `NUM` independent steps proposed; the path is the radius."""
    spy = Spy(monkeypatch, "discrax.samplers.ordinal").on("decide", lambda given, _: given[1:])
    spy.on(proposed_by, lambda given, _: given[argument]).on("round_at_random", lambda _, out: out)
    x = start(target)

    def step(key, x):
        state = kernel.init(target, x)
        spy.seen.clear()  # what `init` did is not of interest
        return kernel.step(key, target, state)

    (_, info), seen = spy.watch(step)(KEYS, jnp.asarray(x))
    change, ratio = (np.asarray(part) for part in seen["decide"][0])
    y, radii = np.asarray(seen[proposed_by][0]), np.asarray(seen["round_at_random"][0])
    assert len(seen[proposed_by]) == 1  # evaluations
    np.testing.assert_array_equal(info.evals, 1)
    return [
        Proposal(x[i], y[i], radii[i : i + 1], float(change[i]), float(ratio[i]), float(info.accept_prob[i]))
        for i in range(NUM)
    ]


def test_ordinal_gwg(monkeypatch):
    target, radius, g = TARGETS["five-levels"](), 1.5, "max"
    space = target.space
    steps = proposals(monkeypatch, OrdinalGWG(radius, g), target, "evaluate_change", 3)
    codes = np.arange(space.num_levels)

    def log_q(x, y, radius):
        weights = move_weights(g, x, ratios(target, x), frozen_mask(space))
        weights[np.abs(codes - x[:, None]) > radius] = -np.inf
        (site,) = np.flatnonzero(x != y)
        return weights[site, y[site]] - logsumexp(weights)

    def log_proposal_ratio(step: Proposal) -> float:
        return log_q(step.y, step.x, step.path[0]) - log_q(step.x, step.y, step.path[0])

    check(target, steps, log_proposal_ratio)
    lengths = {int(np.abs(step.x.astype(int) - step.y).max()) for step in steps}
    assert lengths == set(range(1, int(np.ceil(radius)) + 1))


def test_mh_uniform(monkeypatch):
    target = TARGETS["five-levels"]()
    steps = proposals(monkeypatch, MHUniform(1.5), target, "log_prob", 1)
    codes = np.arange(target.space.num_levels)

    def log_num_in_boxes(x, radius) -> float:
        return np.log((np.abs(codes - x[:, None]) <= radius).sum(axis=1)).sum()

    def log_proposal_ratio(step: Proposal) -> float:
        assert np.abs(step.x.astype(int) - step.y).max() <= step.path[0]
        return log_num_in_boxes(step.x, step.path[0]) - log_num_in_boxes(step.y, step.path[0])

    check(target, steps, log_proposal_ratio)
    assert np.mean([(step.x != step.y).sum() for step in steps]) > 2


def test_boxes_are_filled_uniformly():
    """Four levels, radius 1 and every move from level 1 accepted: chi-square on 20,000 steps, p = 1e-6."""
    target, kernel = Target.from_log_prob(lambda e: 0 * e.sum(), Ordinal(2, [0.0, 1.0, 2.0, 3.0])), MHUniform(1.0)
    state = kernel.init(target, jnp.ones(2, jnp.int8))
    keys = random.split(jax.random.key(1), 20_000)
    after, info = jax.jit(jax.vmap(lambda key: kernel.step(key, target, state)))(keys)
    assert np.asarray(info.is_accepted).all()
    counts = np.bincount(target.space.index(after.x), minlength=16).reshape(4, 4)
    np.testing.assert_array_equal(counts[3], 0)
    np.testing.assert_array_equal(counts[:, 3], 0)
    assert chi_square_p_value(counts[:3, :3], np.full((3, 3), 1 / 9)) > P_VALUE


def test_a_value_is_rounded_to_its_neighbours_with_its_mean():
    """20,000 draws each, within 4.9 standard errors."""
    keys = random.split(jax.random.key(2), 20_000)
    draws = jax.jit(jax.vmap(round_at_random, in_axes=(0, None)))
    for value in (1.0, 2.25, 6.9):
        rounded = np.asarray(draws(keys, jnp.float32(value)))
        assert set(rounded.tolist()) == {int(np.floor(value)), int(np.ceil(value))}
        assert value == 1 or z_score(rounded, value) < Z_SCORE


kernels = pytest.mark.parametrize("build", [OrdinalGWG, MHUniform], ids=["gwg", "mh-uniform"])


@kernels
def test_radius_is_its_log_scale(build):
    target, kernel = TARGETS["five-levels"](), build(2.5)
    assert float(scale_of(target, kernel)[1]) == pytest.approx(np.log(2.5), abs=1e-6)
    assert float(with_scale(target, kernel, jnp.float32(1.0))[0].radius) == pytest.approx(np.e, rel=1e-5)
    assert float(with_scale(target, kernel, jnp.float32(-3.0))[0].radius) == 1
    assert float(with_scale(target, kernel, jnp.float32(9.0))[0].radius) == 4
    assert float(with_scale(TARGETS["two-levels"](), kernel, jnp.float32(9.0))[0].radius) == 1


@pytest.mark.usefixtures("as_a_user")
@kernels
@pytest.mark.parametrize("radius", [0.5, -1.0, np.nan, np.inf])
def test_a_bad_radius_meets_a_sentence(build, radius):
    with pytest.raises(ValueError, match=rf"radius must be .*{radius}\.$"):
        build(radius)


@pytest.mark.usefixtures("as_a_user")
@kernels
def test_other_spaces_meet_a_sentence(build):
    with pytest.raises(ValueError, match="takes Ordinal spaces, but the target's is Binary"):
        samplers.build_kernel(build(), targets.Bernoulli(np.full(4, 0.5)))
