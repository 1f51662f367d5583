"""Targets from functions, temperature, and the generic fallbacks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import Binary, Categorical, Ordinal, Spin, Target, Tempered, targets
from discrax.core.target import (
    Coloured,
    ExactRatios,
    LocalChanges,
    RatioUpdates,
    bare,
    effective_ratios,
    evaluate,
    evaluate_change,
    log_prob,
    offered,
    temper,
)
from discrax.samplers.conditionals import conditional_ratios

from ..helpers import brute_force_ratios, one_hot

SPACES = {
    "binary": Binary((2, 2)),
    "spin": Spin((2, 2)),
    "ordinal": Ordinal((2, 2), [-1.0, 0.5, 2.0]),
    "categorical": Categorical((2, 2), 3),
    "categorical-of-two": Categorical((2, 2), 2),
}
spaces = pytest.mark.parametrize("space", list(SPACES.values()), ids=list(SPACES))


def bumpy(e):
    """A smooth function that is not quadratic, so exact and first-order ratios differ."""
    slopes = jnp.linspace(-1.0, 1.5, e.size).reshape(e.shape)
    return jnp.sum(slopes * e) + jnp.cos(jnp.sum(e * slopes[::-1]))


def reference(space):
    def of_codes(x):
        e = (
            one_hot(x, 3 if space.num_levels == 3 else 2)
            if isinstance(space, Categorical)
            else np.asarray(space.values)[x]
        )
        slopes = np.linspace(-1.0, 1.5, e.size).reshape(e.shape)
        return float(np.sum(slopes * e) + np.cos(np.sum(e * slopes[::-1])))

    return of_codes


def some_state(space, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, space.num_levels, space.shape)


@spaces
def test_function_targets_have_first_order_ratios(space):
    target, x = Target.from_log_prob(bumpy, space), some_state(space)
    codes = jnp.asarray(x, space.dtype)
    value, ratios = eqx.filter_jit(evaluate)(target, codes)
    gradient = jax.grad(bumpy)(space.embed(codes))
    np.testing.assert_allclose(value, reference(space)(x), rtol=1e-5)
    if isinstance(space, Categorical):
        moves = np.eye(space.num_levels) - one_hot(x, space.num_levels)[..., None, :]
        expected = (moves * np.asarray(gradient)[..., None, :]).sum(-1)
    else:
        expected = (np.asarray(space.values) - np.asarray(space.values)[x][..., None]) * np.asarray(gradient)[..., None]
    if space.num_levels == 2:
        expected = np.take_along_axis(expected, (1 - x)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(ratios, expected, atol=1e-5)


@spaces
def test_conditional_ratios_of_a_function_target_are_exact(space):
    target, x = Target.from_log_prob(bumpy, space), some_state(space, 1)
    expected = brute_force_ratios(reference(space), x, space.num_levels)
    conditional = eqx.filter_jit(lambda site: conditional_ratios(target, jnp.asarray(x, space.dtype), site))
    for site, ratios in enumerate(expected.reshape(4, *expected.shape[2:])):
        np.testing.assert_allclose(conditional(jnp.int32(site)), ratios, atol=1e-5)


def test_evaluate_change_falls_back_to_an_evaluation():
    space = Spin(4)
    target = Target.from_log_prob(bumpy, space)
    x, y = jnp.array([0, 1, 1, 0], jnp.int8), jnp.array([0, 0, 1, 0], jnp.int8)
    changed = evaluate_change(target, x, evaluate(target, x), y, jnp.array([1], jnp.int32))
    fresh = evaluate(target, y)
    np.testing.assert_allclose(changed.ratios, fresh.ratios)
    assert float(changed.log_prob) == float(fresh.log_prob)


def test_targets_offer_what_they_have():
    quadratic, function = targets.Bernoulli(np.full(3, 0.5)), Target.from_log_prob(bumpy, Binary(3))
    for capability in (ExactRatios, LocalChanges, RatioUpdates, Coloured):
        assert offered(quadratic, capability) is quadratic
        assert offered(Tempered(quadratic, 0.5), capability) is quadratic
        assert offered(function, capability) is None


def test_temperature_multiplies_the_log_probability():
    target = targets.Ising.lattice((2, 3), 0.7, 0.2)
    x = jnp.asarray(some_state(target.space), jnp.int8)
    e = target.space.embed(x)
    hot = Tempered(target, 0.25)
    assert float(hot.log_prob(e)) == pytest.approx(0.25 * float(target.log_prob(e)), rel=1e-6)
    assert float(temper(hot, jnp.float32(8.0))) == 2.0
    assert float(log_prob(hot, x)) == pytest.approx(float(target.log_prob(e)))  # caches hold untempered values


def test_nested_temperatures_multiply():
    target = targets.Ising.lattice((2, 3), 0.7, 0.2)
    nested = Tempered(Tempered(target, 0.5), 0.1)
    e = target.space.embed(jnp.asarray(some_state(target.space), jnp.int8))
    assert float(nested.beta) == pytest.approx(0.05)
    assert bare(nested) is target
    assert float(nested.log_prob(e)) == pytest.approx(0.05 * float(target.log_prob(e)), rel=1e-6)


@pytest.mark.parametrize("num_levels", [2, 3], ids=["two-levels", "three-levels"])
def test_effective_ratios_are_tempered_and_bar_frozen_sites(num_levels):
    mask = np.array([[True, False], [False, True]])
    space = Categorical((2, 2), num_levels, frozen=mask, frozen_codes=np.ones((2, 2), int))
    target = Tempered(Target.from_log_prob(bumpy, space), 0.5)
    x = np.array([[1, 0], [1, 1]])
    codes = jnp.asarray(x, space.dtype)
    raw = np.asarray(evaluate(target, codes).ratios)
    ours = np.asarray(effective_ratios(target, codes, jnp.asarray(raw)))
    expected = 0.5 * raw.reshape(4, *raw.shape[2:])
    barred = np.flatnonzero(mask.reshape(-1))
    if num_levels == 2:
        expected[barred] = -np.inf
    else:
        expected[barred] = -np.inf
        expected[barred, x.reshape(-1)[barred]] = 0  # staying is not barred
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_parameters_of_a_module_are_leaves():
    """An Equinox module as the function keeps its arrays out of the compiled program."""

    class Linear(eqx.Module):
        weight: jax.Array

        def __call__(self, e):
            return jnp.dot(self.weight, e)

    target = Target.from_log_prob(Linear(jnp.arange(3.0)), Binary(3))
    leaves = jax.tree.leaves(target)
    assert any(leaf.shape == (3,) for leaf in leaves)
    traces = []

    @eqx.filter_jit
    def value(target, x):
        traces.append(1)
        return log_prob(target, x)

    x = jnp.array([1, 0, 1], jnp.int8)
    assert float(value(target, x)) == 2.0
    other = eqx.tree_at(lambda t: t.function.weight, target, jnp.ones(3))
    assert float(value(other, x)) == 2.0 - 0.0
    assert len(traces) == 1
