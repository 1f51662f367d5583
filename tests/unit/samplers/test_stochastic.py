"""Samplers from mini-batches: laws against enumeration, the cache, the weights, and mini-batches that are NaN."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import random
from discrax.core.stochastic import Batch, add_batch, empty_average, evaluate_batch, log_ratios
from discrax.core.target import value_and_changes
from discrax.diagnostics.weighted import shares, weights_from_logs
from discrax.samplers import schedules, sgdld
from discrax.samplers.schedules import Exponential, Geometric, Power

pytestmark = pytest.mark.runs_long
WEIGHTS = np.array([0.9, -0.7, 0.5])


def cubic(e):
    total = jnp.sum(
        jnp.asarray(WEIGHTS if e.ndim == 1 else WEIGHTS[:, None] * np.array([[0.3, 1.0, -0.5]]), e.dtype) * e
    )
    return total + 0.4 * total**3


def certain(e, xi):
    return cubic(e)


def noisy(e, xi):
    """The mean over xi is `cubic`."""
    return cubic(e) + 1.5 * (2 * xi - 1) * jnp.sum(e)


SPACES = {
    "binary": dx.Binary(3),
    "spin": dx.Spin(3),
    "ordinal": dx.Ordinal(3, [-0.8, 0.1, 0.9]),
    "categorical": dx.Categorical(3, 3),
}


def expectation(psi, space):
    return dx.targets.Expectation(psi, random.uniform_scalar, space)


def exact_law(space):
    states = space.enumerate()
    values = np.asarray(jax.vmap(lambda x: cubic(space.embed(x)))(jnp.asarray(states)), np.float64)
    law = np.exp(values - values.max())
    return law / law.sum()


def run(target, kernel, num_samples=1500, num_chains=100, seed=0, **settings):
    return dx.sample(
        jax.random.key(seed), target, kernel, num_chains=num_chains, num_warmup=0, num_samples=num_samples,
        adaptation=None, progress=False, **settings,
    )  # fmt: skip


def law_of(result, *, is_weighted=True):
    space = result.target.space
    weights = result.stats["weight"] if is_weighted else np.ones(result.draws.shape[:2])
    places = space.index(result.draws).reshape(-1)
    law = np.bincount(places, weights.reshape(-1), minlength=len(space.enumerate()))
    return law / law.sum()


def total_variation(a, b):
    return 0.5 * np.abs(a - b).sum()


QUICK = ("categorical",)
EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SPACES]


@pytest.mark.parametrize("name", EVERY)
def test_without_noise_the_weighted_law_is_the_target_for_any_step(name):
    """One site at a time: the jump chain has the law pi Z, and a state counts for 1 / Z."""
    space = SPACES[name]
    result, law = run(expectation(certain, space), sgdld(0.9)), exact_law(space)
    assert total_variation(law_of(result), law) < 0.015
    assert total_variation(law_of(result, is_weighted=False), law) > 0.05  # a broken twin: weights forgotten


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binary", "categorical"])
def test_without_noise_all_sites_at_once_tend_to_the_target(name):
    space = SPACES[name]
    target, law = expectation(certain, space), exact_law(space)
    coarse, fine = (
        total_variation(law_of(run(target, sgdld(h, moves="all"), num_samples=n)), law)
        for h, n in ((2.0, 500), (0.2, 3000))
    )
    assert fine < 0.03 < coarse


def test_the_cache_takes_the_bias_away_and_small_steps_do_not():
    """Figure 2: with the cache the error falls with the step, without it stays."""
    target = dx.targets.GaussianBernoulli(batch_size=1)
    errors = {
        (cache, h): total_variation(law_of(run(target, sgdld(h, cache=cache), 3000, 200)), target.probabilities)
        for cache in (True, False)
        for h in (0.8, 0.1)
    }
    assert errors[True, 0.1] < 0.035 < 0.055 < errors[True, 0.8]
    assert abs(errors[False, 0.1] - errors[False, 0.8]) < 0.015
    assert errors[False, 0.1] > 0.065


@pytest.mark.slow
def test_weights_of_whole_stays_have_the_same_limit():
    target = dx.targets.GaussianBernoulli(batch_size=1)
    by_steps, by_stays = (run(target, sgdld(0.1, weigh=weigh), 3000, 200) for weigh in ("steps", "stays"))
    np.testing.assert_array_equal(by_steps.draws, by_stays.draws)  # only weights differ
    has_moved = (by_stays.draws[:, 1:] != by_stays.draws[:, :-1]).any(axis=-1)
    np.testing.assert_array_equal(by_stays.stats["weight"][:, :-1] > 0, has_moved)
    assert total_variation(law_of(by_stays), target.probabilities) < 0.025


@pytest.mark.slow
def test_minibatch_gibbs_is_biased_and_without_noise_it_is_gibbs():
    space = SPACES["categorical"]
    kernel = dx.samplers.minibatch_gibbs()
    assert total_variation(law_of(run(expectation(certain, space), kernel)), exact_law(space)) < 0.02
    space = SPACES["binary"]
    assert total_variation(law_of(run(expectation(noisy, space), kernel)), exact_law(space)) > 0.05


@pytest.mark.slow
def test_pseudo_marginal_is_exact_where_estimates_are_unbiased_and_only_there():
    model = dx.targets.GaussianBernoulli(batch_size=1)
    kernel = dx.samplers.pseudo_marginal()
    assert total_variation(law_of(run(model, kernel)), model.probabilities) < 0.02
    space = SPACES["binary"]
    assert total_variation(law_of(run(expectation(certain, space), kernel)), exact_law(space)) < 0.02
    assert total_variation(law_of(run(expectation(noisy, space), kernel)), exact_law(space)) > 0.05  # phi = exp


@pytest.mark.slow
def test_a_fixed_time_weighs_all_draws_alike_and_tends_to_the_target():
    space = SPACES["binary"]
    result = run(expectation(certain, space), sgdld(Exponential(-2.5), polyak=False))
    assert result.has_equal_weights
    assert total_variation(law_of(result), exact_law(space)) < 0.04


def test_local_search_stops_at_the_best_neighbour_of_all():
    space = SPACES["categorical"]
    result = run(expectation(certain, space), dx.samplers.local_search(), 70, 4)
    for x in np.asarray(result.states.x):
        _, changes = value_and_changes(lambda x: cubic(space.embed(x)), space, jnp.asarray(x))
        assert changes.max() <= 0
    assert (result.stats["jump"][:, -1] == 0).all()


@pytest.mark.slow
def test_a_temperature_is_that_of_a_tempered_target():
    target = expectation(noisy, SPACES["categorical"])
    by_kernel = run(target, sgdld(0.5, temperature=4.0), 50, 3)
    by_target = run(dx.Tempered(target, 0.25), sgdld(0.5), 50, 3)
    np.testing.assert_array_equal(by_kernel.draws, by_target.draws)
    np.testing.assert_allclose(by_kernel.stats["log_weight"], by_target.stats["log_weight"], rtol=1e-5)


def test_a_step_moves_first_and_then_asks():
    """The weight of a draw is h / Z there, by the mini-batches drawn since the chain came."""
    space = SPACES["binary"]
    target, kernel = expectation(noisy, space), sgdld(0.4)
    state = kernel.init(target, jnp.zeros(3, space.dtype))
    step = eqx.filter_jit(kernel.step)
    for t, key in enumerate(random.split(random.as_threefry(jax.random.key(1)), 30)):
        after, info = step(key, target, state)
        stayed = bool((after.x == state.x).all())
        assert stayed or t > 0  # nothing is known before the first mini-batch
        assert float(after.cache.average.count) == (float(state.cache.average.count) + 1 if stayed else 1)
        assert (np.asarray(after.x) == np.asarray(state.cache.next)).all()
        rates = np.exp(np.asarray(after.cache.average.changes) / 2)
        assert float(info.log_weight) == pytest.approx(np.log(0.4 / rates.sum()), abs=1e-4)
        state = after


# --- averages of mini-batches ---


def batches(target, x, count, *, exact=True):
    keys = random.split(random.as_threefry(jax.random.key(3)), count)
    return [evaluate_batch(target, x, target.draw(key, jnp.zeros((), jnp.int32)), exact=exact) for key in keys]


def average_of(target, x, told, *, exact=True):
    average = empty_average(target)
    for batch in told:
        average = add_batch(target, average, batch, exact=exact)
    return average


def test_the_cache_is_the_mean_of_what_was_told():
    target = expectation(noisy, SPACES["categorical"])
    x = jnp.array([0, 2, 1], target.space.dtype)
    told = batches(target, x, 5)
    average = average_of(target, x, told)
    np.testing.assert_allclose(average.here, np.mean([batch.here for batch in told]), rtol=1e-5)
    np.testing.assert_allclose(
        average.changes, np.mean([batch.changes for batch in told], axis=0), rtol=1e-4, atol=1e-5
    )


def test_in_logs_it_is_psi_that_is_averaged():
    target = dx.targets.GaussianBernoulli(batch_size=2)
    x = jnp.array([0, 1, 1, 0], target.space.dtype)
    told = batches(target, x, 6)
    average = average_of(target, x, told)
    here = np.mean([np.exp(batch.here) for batch in told])
    there = np.mean([np.exp(batch.here + batch.changes) for batch in told], axis=0)
    np.testing.assert_allclose(np.exp(average.here), here, rtol=1e-5)
    np.testing.assert_allclose(log_ratios(target, average), np.log(there / here), rtol=1e-4, atol=1e-5)


def test_in_logs_the_slope_is_that_of_the_log_of_the_mean():
    target = dx.targets.GaussianBernoulli(batch_size=2)
    x = jnp.array([0, 1, 1, 0], target.space.dtype)
    keys = random.split(random.as_threefry(jax.random.key(3)), 6)
    drawn = [target.draw(key, jnp.zeros((), jnp.int32)) for key in keys]
    slopes = jax.grad(lambda e: jax.nn.logsumexp(jnp.stack([target.psi(e, xi) for xi in drawn])))(target.space.embed(x))
    average = average_of(target, x, batches(target, x, 6, exact=False), exact=False)
    np.testing.assert_allclose(average.changes, target.space.ratios_from_gradient(x, slopes), rtol=1e-4, atol=1e-5)


def test_a_general_phi_is_applied_to_means():
    space = SPACES["binary"]
    target = dx.targets.Expectation(lambda e, xi: 2 + jnp.sum(e) + xi, random.uniform_scalar, space, phi=jnp.square)
    x = jnp.array([0, 1, 0], space.dtype)
    average = average_of(target, x, batches(target, x, 4))
    ratios = 2 * (np.log(np.asarray(average.here + average.changes)) - np.log(float(average.here)))
    np.testing.assert_allclose(log_ratios(target, average), ratios, rtol=1e-4)


def test_a_psi_of_zero_in_a_mini_batch_is_no_end():
    target = dx.targets.GaussianBernoulli()
    x = jnp.zeros(4, target.space.dtype)
    nothing = Batch(jnp.array(-jnp.inf), jnp.zeros(4))
    some = Batch(jnp.array(-1.0), jnp.array([0.5, -jnp.inf, 0.0, 1.0]))
    average = average_of(target, x, [nothing, some])
    assert float(average.here) == pytest.approx(-1 - np.log(2), rel=1e-5)
    np.testing.assert_allclose(average.changes[jnp.array([0, 2, 3])], [0.5, 0.0, 1.0], atol=1e-5)
    assert average.changes[1] < -1e20


class NotANumber(eqx.Module):
    """psi is NaN for a twentieth of all mini-batches."""

    def __call__(self, e, xi):
        return cubic(e) + jnp.where(xi < 0.05, jnp.nan, 0.0)


def test_mini_batches_that_are_no_numbers_tell_nothing():
    space = SPACES["binary"]
    result = run(expectation(NotANumber(), space), sgdld(0.5), seed=8, init=np.zeros(3, int))
    assert result.stats["is_invalid"].mean() == pytest.approx(0.05, abs=0.005)
    assert total_variation(law_of(result), exact_law(space)) < 0.05
    assert any("NaN" in line for line in result.summary().warnings())


# --- weights ---


def test_every_statistic_honours_weights():
    result = run(expectation(certain, SPACES["binary"]), sgdld(0.9), 400, 20)
    weights = shares(result.stats["weight"])
    mean = np.einsum("cd,cdi->i", weights, result.draws) / 20
    np.testing.assert_allclose(result.mean(), mean, rtol=1e-5)
    np.testing.assert_allclose(result.mean(lambda x: x[..., 0]), mean[0], rtol=1e-6)
    by_moments = run(result.target, sgdld(0.9), 400, 20, keep="moments")
    np.testing.assert_allclose(by_moments.mean(), mean, atol=1e-4)
    assert np.abs(result.draws.mean(axis=(0, 1)) - mean).max() > 0.03  # weights matter
    lp = result.summary().scalars[0]
    assert lp.mean == pytest.approx(np.sum(weights * result.stats["lp"]) / 20, rel=1e-6)
    posterior = result.to_arviz()["posterior"]["x"].values
    np.testing.assert_allclose(posterior.mean(axis=(0, 1)), mean, atol=0.01)


@pytest.mark.slow
def test_the_effective_number_of_draws_is_what_the_scatter_of_chains_says():
    result = run(expectation(certain, SPACES["binary"]), sgdld(0.9), 400, 200)
    values = result.draws[..., 0].astype(float)
    means = (shares(result.stats["weight"]) * values).sum(axis=1)
    told = dx.diagnostics.weighted_ess(values, result.stats["weight"]).mean()
    pooled = means.mean()
    assert told == pytest.approx(pooled * (1 - pooled) / means.var(ddof=1), rel=0.3)


def test_weights_that_are_no_floats_are_told_chain_by_chain():
    logs = np.array([[-2000.0, -2001.0], [900.0, 0.0]])
    np.testing.assert_allclose(weights_from_logs(logs), [[1, np.exp(-1)], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(weights_from_logs(logs / 100), np.exp(logs / 100))  # as they are where they can be


def test_a_few_heavy_draws_are_told():
    weights = np.ones((2, 100))
    weights[:, 7] = 1e6
    assert dx.diagnostics.effective_weights(weights) == pytest.approx([1, 1], rel=1e-3)


# --- schedules and bad input ---


def test_schedules():
    t = jnp.float32(0)
    assert float(Power(9, 10, 0.3)(t)) == pytest.approx(np.sqrt(0.9))
    assert float(Power(9, 10, 0.3)(jnp.float32(90))) == pytest.approx(0.3)
    assert Power(9, 10, 0.3).steps_to_floor == 90
    assert float(Power(1000, 100, 0.3)(t)) == pytest.approx(np.sqrt(10))
    assert float(Geometric(200, 0.999)(jnp.float32(1000))) == pytest.approx(200 * 0.999**1000, rel=1e-4)
    assert sgdld(Power(1000, 100, 0.3)).moves == "all"
    assert sgdld(0.3).moves == "one"
    assert schedules.log_of(Exponential(-900.0), t) == -900


SPACE = dx.Binary(3)
MISTAKES = {
    "step": (lambda: sgdld(0.0), "step_size must be greater than 0"),
    "schedule": (lambda: sgdld(lambda t: -1.0 - t), "step_size must be a positive number"),
    "moves": (lambda: sgdld(moves="some"), "moves is 'one', 'all' or 'auto'"),
    "temperature": (lambda: sgdld(temperature=0.0), "temperature must be greater than 0"),
    "no mini-batches": (lambda: run(dx.targets.Bernoulli(logits=np.zeros(3)), sgdld()), "needs mini-batches"),
    "NaN": (
        lambda: run(expectation(lambda e, xi: jnp.log(-1 - jnp.sum(e)), SPACE), sgdld()),
        "psi must be a number where a chain starts, but it is nan",
    ),
    "phi": (
        lambda: run(
            dx.targets.Expectation(lambda e, xi: jnp.sum(e) - 5, random.uniform_scalar, SPACE, phi=lambda m: m), sgdld()
        ),
        "phi must be positive",
    ),
    "scalar": (lambda: run(expectation(lambda e, xi: e, SPACE), sgdld()), "cannot be evaluated|must be a real number"),
    "batch_size": (lambda: dx.targets.GaussianBernoulli(batch_size=0), "batch_size must be at least 1"),
    "symmetric": (lambda: dx.targets.GaussianBernoulli(np.triu(np.ones((3, 3)))), "W must be symmetric"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_input(name):
    mistake, sentence = MISTAKES[name]
    with pytest.raises(ValueError, match=sentence):
        mistake()
