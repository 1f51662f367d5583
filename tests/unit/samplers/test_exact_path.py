"""LB and exact-path PAS against transition matrices built from the probabilities of all states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from discrax import Binary, Categorical, Ordinal, Spin, Target, Tempered, exact, samplers, targets
from discrax.adaptation.acceptance import scale_of, with_scale
from discrax.core import random
from discrax.core.target import exact_evaluation
from discrax.samplers.balancing import Power
from discrax.samplers.exact_path import LB, ExactPAS
from discrax.targets import Quadratic

from ..helpers import P_VALUE, brute_force_ratios
from ..targets.reference import structure
from .reference import LOG_G

NUM = 20_000
KEYS = random.split(jax.random.key(7), NUM)
FROZEN = {"frozen": np.arange(5) == 1, "frozen_codes": np.ones(5, int)}


def bumpy(e):
    slopes = jnp.linspace(-1.0, 1.5, e.size).reshape(e.shape)
    return 0.5 * jnp.sum(slopes * e) + jnp.cos(2 * jnp.sum(e * slopes[::-1]))


TARGETS = {
    "spin": lambda: Tempered(Quadratic(Spin(4), 0.6 * structure("dense", (4,)).matrix, 0.3), 0.6),  # adds rows of J
    "categorical-frozen": lambda: Quadratic(Categorical(5, 3, **FROZEN), 0.5 * structure("dense", (5,)).matrix),
}


# --- exact ratios of any target ---

SPACES = {
    "spin": Spin((2, 3)),
    "ordinal": Ordinal((2, 2), [-1.0, 0.5, 2.0]),
    "categorical": Categorical((2, 2), 3),
}


@pytest.mark.parametrize("space", list(SPACES.values()), ids=list(SPACES))
def test_exact_ratios_of_a_function_target(space):
    target = Tempered(Target.from_log_prob(bumpy, space), 0.3)  # what is evaluated is not tempered
    x = np.random.default_rng(2).integers(0, space.num_levels, space.shape)

    def value(x) -> float:
        return float(bumpy(space.embed(jnp.asarray(x, space.dtype))))

    evaluation = eqx.filter_jit(exact_evaluation)(target, jnp.asarray(x, space.dtype))
    np.testing.assert_allclose(evaluation.log_prob, value(x), rtol=1e-5)
    np.testing.assert_allclose(evaluation.ratios, brute_force_ratios(value, x, space.num_levels), atol=1e-5)


def test_exact_ratios_of_more_sites_than_are_evaluated_at_once():
    logits = jnp.linspace(-2.0, 2.0, 150)
    target = Target.from_log_prob(lambda e: jnp.sum(logits * e), Binary(150))
    x = target.space.random(jax.random.key(0))
    ratios = eqx.filter_jit(exact_evaluation)(target, x).ratios
    np.testing.assert_allclose(ratios, logits * (1 - 2 * x), atol=1e-4)


def test_the_current_level_has_ratio_0_where_the_state_is_impossible():
    target = Target.from_log_prob(lambda e: jnp.where(e.sum() > 2, -jnp.inf, e.sum()), Ordinal(3, [0.0, 1.0, 2.0]))
    x = jnp.full(3, 2, jnp.int8)
    np.testing.assert_array_equal(eqx.filter_jit(exact_evaluation)(target, x).ratios[:, 2], 0)


# --- the law of a step ---

ALPHA = 0.8
LOG_WEIGHT = LOG_G | {"power": lambda log_ratio: ALPHA * log_ratio}
LENGTHS = {"lb": {1: 1.0}, "pas": {1: 0.05, 2: 0.9, 3: 0.05}}  # a path of length 2 makes a detour now and then


class Matrices:
    """Proposals and acceptance over all states of a target, from their probabilities."""

    def __init__(self, target: Target, g: str):
        states = target.space.enumerate().reshape(-1, target.space.num_sites)
        log_pi = np.log(exact.law(target))
        log_ratios = log_pi[None, :] - log_pi[:, None]
        is_neighbour = (states[:, None] != states[None]).sum(axis=2) == 1
        weights = np.where(is_neighbour, np.exp(LOG_WEIGHT[g](log_ratios)), 0)
        Z = weights.sum(axis=1)
        self.moves = weights / Z[:, None]
        # The bracket of t^alpha is (1 - 2 alpha) l, so its sum depends on the ends of the path alone.
        bracket = (1 - 2 * ALPHA) * log_ratios if g == "power" else 0
        self.accept = np.minimum(1, np.exp(bracket + np.log(Z)[:, None] - np.log(Z)[None, :]))

    def row(self, start: int, lengths: dict[int, float]) -> np.ndarray:
        proposal = sum(share * np.linalg.matrix_power(self.moves, R)[start] for R, share in lengths.items())
        row = proposal * self.accept[start]
        row[start] += 1 - row.sum()
        return row


@eqx.filter_jit
def one_step(kernel, target, x):
    state = kernel.init(target, x)
    return jax.vmap(lambda key: kernel.step(key, target, state))(KEYS)


CASES = [
    ("lb", "spin", "sqrt"),
    ("lb", "categorical-frozen", "ratio"),
    ("pas", "spin", "power"),
]


@pytest.mark.parametrize(("sampler", "name", "g"), CASES)
def test_the_law_of_a_step(sampler, name, g):
    """Acceptance at every end reached, and chi-square of 20,000 steps against the transition matrix, p = 1e-6."""
    target, balancing = TARGETS[name](), Power(ALPHA) if g == "power" else g
    kernel = LB(balancing) if sampler == "lb" else ExactPAS(2.0, balancing)
    matrices, space = Matrices(target, g), target.space
    states = space.enumerate()
    for start in (1, len(states) // 2):
        after, info = one_step(kernel, target, jnp.asarray(states[start]))
        ends, is_accepted = space.index(after.x), np.asarray(info.is_accepted)
        expected = matrices.accept[start][ends[is_accepted]]
        np.testing.assert_allclose(np.asarray(info.accept_prob)[is_accepted], expected, atol=2e-4)
        counts = np.bincount(ends, minlength=len(states))
        assert exact.chi_square(counts, matrices.row(start, LENGTHS[sampler])) > P_VALUE
        assert not np.asarray(info.is_invalid).any()
        assert set(np.unique(info.evals)) == set(LENGTHS[sampler])  # one evaluation a move


def test_what_a_state_carries_is_what_a_fresh_evaluation_gives():
    """After up to three moves, each of which adds a row of J to what was there."""
    target, x = TARGETS["spin"](), jnp.asarray([0, 1, 0, 0], jnp.int8)
    after, _ = one_step(ExactPAS(2.0, Power(ALPHA)), target, x)
    fresh = jax.jit(jax.vmap(lambda x: exact_evaluation(target, x)))(after.x)
    np.testing.assert_allclose(after.log_prob, fresh.log_prob, atol=1e-5)
    np.testing.assert_allclose(after.cache, fresh.ratios, atol=1e-5)


def test_lb_is_gwg_of_one_site_where_ratios_are_exact():
    """Both accept a move with the same probability, and both make all moves."""
    target = TARGETS["spin"]()
    found = []
    for kernel in (LB(), samplers.gwg()):
        after, info = one_step(kernel, target, jnp.asarray([1, 0, 0, 1], jnp.int8))
        moved, accept_probs = np.asarray(info.is_accepted), np.asarray(info.accept_prob)
        ends = target.space.index(after.x)
        found.append({int(end): float(accept_probs[moved][ends[moved] == end][0]) for end in set(ends[moved])})
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert len(found[0]) == 4


# --- hard constraints ---


class Table(eqx.Module):
    """The log-probability of each of eight states; a leaf, so that the tests below share a program."""

    values: Float[Array, " 8"]

    def __call__(self, e: Float[Array, " 3"]) -> Float[Array, ""]:
        return self.values[(4 * e[0] + 2 * e[1] + e[2]).astype(int)]


def from_zero(*values: float):
    """Steps from state 0, whose neighbours are 1, 2 and 4. As max(1, 0) = 1, it is not g that bars a move."""
    target = Target.from_log_prob(Table(jnp.array(values)), Binary(3))
    after, info = one_step(LB("max"), target, jnp.zeros(3, jnp.int8))
    assert (np.asarray(info.evals) == 3).all()  # a function target is evaluated at every neighbour
    assert np.isfinite(np.asarray(after.log_prob)).all()
    assert all(np.isfinite(np.asarray(stat, float)).all() for stat in info)
    return set(target.space.index(after.x)), info


def test_a_state_without_possible_neighbours_is_kept():
    reached, info = from_zero(0.2, -np.inf, -np.inf, 0.0, -np.inf, 0.0, 0.0, 0.0)
    assert reached == {0}
    assert not np.asarray(info.accept_prob).any()
    assert not np.asarray(info.is_invalid).any()


def test_an_impossible_neighbour_is_not_drawn():
    reached, info = from_zero(0.2, 0.0, -np.inf, 0.0, 0.5, 0.0, 0.0, 0.0)
    assert reached == {0, 1, 4}
    assert not np.asarray(info.is_invalid).any()


def test_a_neighbour_without_a_probability_is_not_drawn_but_counted():
    reached, info = from_zero(0.2, 0.0, np.inf, 0.0, np.nan, 0.0, 0.0, 0.0)
    assert reached == {0, 1}
    assert np.asarray(info.is_invalid).all()


# --- settings ---

LARGE = targets.Bernoulli(np.full(50, 0.5))


def test_path_length_is_its_log_scale():
    kernel = ExactPAS(3.7)
    assert float(scale_of(LARGE, kernel)[1]) == pytest.approx(np.log(3.7), abs=1e-6)
    assert float(with_scale(LARGE, kernel, jnp.float32(1.5))[0].path_length) == pytest.approx(np.exp(1.5), rel=1e-5)
    assert float(with_scale(LARGE, kernel, jnp.float32(-3.0))[0].path_length) == 1
    assert float(with_scale(LARGE, kernel, jnp.float32(9.0))[0].path_length) == 32  # of 50 sites: more do not pay


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("build", "part"),
    [(lambda: ExactPAS(0.5), "0.5"), (lambda: ExactPAS(np.nan), "nan"), (lambda: LB("sqr"), "'sqrt'")],
    ids=["short", "nan", "unknown-weight"],
)
def test_bad_settings_meet_a_sentence(build, part):
    with pytest.raises(ValueError) as caught:
        build()
    assert part in str(caught.value)
    assert str(caught.value).endswith(".")
