"""Factorial hidden Markov models against their formula in plain double precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import exact
from discrax.core.target import evaluate
from discrax.targets.fhmm import FHMM, CategoricalFHMM

from ..helpers import Z_SCORE, brute_force_ratios

L, K = 6, 3


def reference(target):
    """log pi of codes, summed term by term."""
    y, b, variance, stay = (
        np.asarray(a, np.float64) for a in (target.series, target.offset, target.noise_variance, target.stay_logit)
    )
    if isinstance(target, FHMM):
        w = np.stack([np.zeros(K), np.asarray(target.weights, np.float64)], axis=1)
        initial = np.array([0.0, float(target.initial_logit)])
    else:
        w, initial = np.asarray(target.weights, np.float64), np.asarray(target.initial_logits, np.float64)

    def log_prob(x):
        total = sum(initial[x[0, k]] for k in range(K))
        for time in range(L):
            mean = b + sum(w[k, x[time, k]] for k in range(K))
            total -= (y[time] - mean) ** 2 / (2 * variance)
            if time:
                total += stay * sum(x[time, k] == x[time - 1, k] for k in range(K))
        return float(total)

    return log_prob


TARGETS = {
    "stated": lambda: FHMM.simulated(3, L, K, 0.5),
    "other prior": lambda: FHMM(np.arange(L) / 3, [0.7, -0.3, 0.1], -0.2, 2.0, initial_logit=2.2, stay_logit=0.2),
    "categorical": lambda: CategoricalFHMM.simulated(4, L, K, 4, 0.7),
    "categorical of two": lambda: CategoricalFHMM.simulated(5, L, K, 2, 0.7),
}


@eqx.filter_jit
def everything(target, x, sites, codes):
    """All a target offers, at a batch of states."""

    def at(x, sites, codes):
        idle = x.reshape(-1)[sites[:2]]  # a site may come again with its old code
        return {
            "log_prob": target.log_prob(target.space.embed(x)),
            "evaluation": evaluate(target, x),
            "change": target.change(x, jnp.append(sites, sites[:2]), jnp.append(codes, idle)),
            "ratios at": jax.vmap(lambda site: target.ratios_at(x, site))(jnp.arange(L * K)),
        }

    return jax.vmap(at)(x, sites, codes)


@eqx.filter_jit
def hessian(target):
    e = target.space.embed(jnp.zeros((L, K), target.space.dtype))
    return jax.hessian(lambda flat: target.log_prob(flat.reshape(e.shape)))(e.reshape(-1))


@pytest.fixture(scope="module", params=TARGETS)
def case(request):
    """A target and, at a batch of states, all it offers; the first states change sites of one time and of one chain."""
    target = TARGETS[request.param]()
    rng, q = np.random.default_rng(0), target.space.num_levels
    x = rng.integers(0, q, (8, L, K))
    sites = np.stack([rng.permutation(L * K)[:4] for _ in range(len(x))])
    sites[0] = [0, 1, 2, 5]  # a whole time, and the site after one of it
    sites[1] = [1, 4, 7, 10]  # a stretch of one chain
    sites[2] = [L * K - 1, L * K - 1 - K, 0, K]  # both ends
    y = x.reshape(len(x), -1).copy()
    for row, where in zip(y, sites, strict=True):
        row[where] = (row[where] + rng.integers(1, q, 4)) % q
    codes = np.take_along_axis(y, sites, 1)

    dtype = target.space.dtype
    arrays = jnp.asarray(x, dtype), jnp.asarray(sites, jnp.int32), jnp.asarray(codes, dtype)
    return target, x, y.reshape(x.shape), everything(target, *arrays)


def close(ours, expected):
    np.testing.assert_allclose(ours, np.array(expected), atol=5e-5)


def test_log_prob(case):
    target, x, _, ours = case
    close(ours["log_prob"], list(map(reference(target), x)))
    close(ours["evaluation"].log_prob, ours["log_prob"])


def test_ratios_of_all_changes_and_of_one_site(case):
    target, x, _, ours = case
    expected = np.array([brute_force_ratios(reference(target), each, target.space.num_levels) for each in x])
    close(ours["evaluation"].ratios, expected)
    close(ours["ratios at"], expected.reshape(ours["ratios at"].shape))


def test_change_of_several_sites(case):
    target, x, y, ours = case
    log_prob = reference(target)
    close(ours["change"], [log_prob(after) - log_prob(before) for before, after in zip(x, y, strict=True)])


def test_sites_of_a_colour_do_not_interact(case):
    """The Hessian of log_prob between different sites of one colour is 0, and every colour is used."""
    target = case[0]
    per_site = np.abs(hessian(target))
    per_site = per_site.reshape(L * K, len(per_site) // (L * K), L * K, -1).max(axis=(1, 3))
    np.fill_diagonal(per_site, 0)
    colours = target.colours().reshape(-1)
    assert not per_site[colours[:, None] == colours].any()
    assert set(colours.tolist()) == set(range(colours.max() + 1))


@pytest.mark.parametrize(("length", "num_factors", "num_colours"), [(5, 1, 2), (1, 1, 1), (1, 4, 4), (7, 2, 2)])
def test_number_of_colours(length, num_factors, num_colours):
    target = FHMM.simulated(0, length, num_factors)
    assert target.colours().max() + 1 == num_colours


def test_a_series_of_one_time_is_independent_of_staying():
    short = FHMM([0.3], [1.0, -0.5], stay_logit=0.0), FHMM([0.3], [1.0, -0.5], stay_logit=3.0)
    np.testing.assert_allclose(*(exact.law(target) for target in short))


def test_two_levels_are_a_special_case_of_categories():
    binary = FHMM.simulated(1, 4, 2, 0.8)
    categorical = CategoricalFHMM(
        binary.series, binary.level_means, binary.offset, 0.8, initial_logits=binary.initial_logits
    )
    np.testing.assert_allclose(exact.law(binary), exact.law(categorical), rtol=1e-4)


def test_the_stated_prior_is_the_default():
    target = FHMM.simulated(0, 10, 2)
    assert float(target.initial_logit) == pytest.approx(np.log(0.1 / 0.9))
    assert float(target.stay_logit) == pytest.approx(np.log(0.8 / 0.2))
    categorical = CategoricalFHMM.simulated(0, 10, 2, 5)
    np.testing.assert_allclose(np.exp(categorical.initial_logits), [0.9, *[0.025] * 4], rtol=1e-5)
    stay = np.exp(float(categorical.stay_logit))
    assert stay / (stay + 4) == pytest.approx(0.8)


def test_simulated_series_follow_the_model():
    """The chains start at 1 with probability 0.1 and forget it at rate 0.6: the mean and variance of y_1 and y_40."""
    weights, offset, variance = np.array([1.5, -0.7]), 0.3, 0.25
    series = np.array(
        [FHMM.simulated(seed, 40, 2, variance, weights=weights, offset=offset).series for seed in range(400)]
    )
    for time, p in ((0, 0.1), (39, 0.5)):
        expected_variance = variance + (weights**2).sum() * p * (1 - p)
        error = abs(series[:, time].mean() - (offset + weights.sum() * p))
        assert error < Z_SCORE * np.sqrt(expected_variance / len(series))
        assert series[:, time].var() == pytest.approx(expected_variance, rel=0.4)


def test_seeds_are_reproducible():
    first, again, other = (FHMM.simulated(seed, 5, 2).series for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_parameters_are_leaves():
    target = FHMM.simulated(0, 4, 2)
    log_prob = eqx.filter_jit(lambda target: target.log_prob(jnp.ones((4, 2), jnp.float32)))
    louder = eqx.tree_at(lambda t: t.noise_variance, target, jnp.asarray(100.0))
    assert float(log_prob(target)) != float(log_prob(louder))


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: FHMM([[1.0]], [1.0]), "series must be a row of numbers"),
        (lambda: FHMM([1.0, np.nan], [1.0]), "series must be finite"),
        (lambda: FHMM([1.0], [[1.0]]), "weights must be a row of numbers"),
        (lambda: FHMM([1.0], [1.0], 0.0, 0.0), "noise_variance must be positive"),
        (lambda: CategoricalFHMM([1.0], [1.0]), "weights must be a table"),
        (lambda: CategoricalFHMM([1.0], [[1.0, 2.0]], initial_logits=[0.0]), "one number per level"),
        (lambda: FHMM.simulated(0, 0, 2), "length must be at least 1, but got 0"),
        (lambda: FHMM.simulated(0, 5, 2, stay_prob=1.0), "stay_prob must lie strictly between"),
        (lambda: FHMM.simulated(0, 5, 2, weights=[1.0]), "one number per factor"),
        (lambda: CategoricalFHMM.simulated(0, 5, 2, 1), "num_levels must be at least 2, but got 1"),
    ],
)
def test_bad_input(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()
