"""Stochastic targets: mini-batches against whole data sets, control variates, streams, and bad data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import random
from discrax.core.stochastic import evaluate_batch
from discrax.core.target import value_and_changes
from discrax.data import RowStream
from discrax.sampling.auto import candidates_for
from discrax.targets import Bayesian, GaussianBernoulli, Quenched, TallLogisticRegression

STEP = jnp.zeros((), jnp.int32)


def keys(count, seed=0):
    return random.split(random.as_threefry(jax.random.key(seed)), count)


def regression(batch_size=20, num_rows=300):
    return TallLogisticRegression.simulated(0, num_rows, num_distinct=3, batch_size=batch_size)


def logistic(e, row):
    X, y = row
    v = jnp.dot(X, e)
    return y * v - jax.nn.softplus(v)


def bayesian(tall, batch_size=20):
    return Bayesian(logistic, tall.rows.resident(), tall.space, batch_size=batch_size)


X_SOME = np.array([1, 0, 1, 1, 0, 0])


@pytest.mark.parametrize("is_controlled", [False, True])
def test_changes_of_a_mini_batch_are_those_of_psi(is_controlled):
    tall = regression()
    tall = tall.with_control([1, 1, 0, 0, 0, 0]) if is_controlled else tall
    x, xi = jnp.asarray(X_SOME, tall.space.dtype), tall.draw(keys(1)[0], STEP)
    told = tall.batch(x, xi)
    here, changes = value_and_changes(lambda x: tall.psi(tall.space.embed(x), xi), tall.space, x)
    np.testing.assert_allclose(told.here, here, rtol=1e-5)
    np.testing.assert_allclose(told.changes, changes, rtol=1e-3, atol=2e-3)


def test_the_general_bayesian_target_is_the_regression():
    tall = regression()
    general = bayesian(tall)
    e, xi = tall.space.embed(jnp.asarray(X_SOME, tall.space.dtype)), tall.draw(keys(1)[0], STEP)
    np.testing.assert_allclose(general.psi(e, xi), tall.psi(e, xi), rtol=1e-5)
    np.testing.assert_allclose(general.log_prob(e), tall.log_prob(e), rtol=1e-5)
    np.testing.assert_allclose(
        dx.targets.LogisticRegression(*tall.rows.resident()).log_prob(e), tall.log_prob(e), rtol=1e-5
    )
    reference = [1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(
        general.with_control(reference).psi(e, xi), tall.with_control(reference).psi(e, xi), rtol=1e-4
    )


@pytest.mark.parametrize("is_controlled", [False, True])
def test_mini_batches_have_the_right_mean_and_controlled_ones_less_noise(is_controlled):
    """All rows as one mini-batch tell log pi itself; the mean of many small ones is near."""
    whole = regression(300)
    tall = regression(20)
    if is_controlled:
        whole, tall = whole.with_control(whole.mode()), tall.with_control(tall.mode())
    x = jnp.asarray(whole.mode(), whole.space.dtype).at[0].set(1).at[3].set(1)
    e = whole.space.embed(x)
    np.testing.assert_allclose(whole.psi(e, whole.rows.resident()), whole.log_prob(e), rtol=1e-5)
    exact = whole.batch(x, whole.rows.resident()).changes
    told = np.asarray(jax.vmap(lambda key: tall.batch(x, tall.draw(key, STEP)).changes)(keys(4000)))
    errors = told.std(axis=0) / np.sqrt(4000)
    assert (np.abs(told.mean(axis=0) - exact) < 4.5 * errors + 1e-3).all()
    noise = told.std(axis=0).max()
    assert noise < 4 if is_controlled else noise > 8


def test_exact_marginals_are_those_of_enumeration():
    tall = TallLogisticRegression.simulated(1, 40, num_distinct=2, batch_size=5)
    states = tall.space.enumerate()
    values = np.asarray(jax.vmap(lambda x: tall.log_prob(tall.space.embed(x)))(jnp.asarray(states)), np.float64)
    law = np.exp(values - values.max())
    np.testing.assert_allclose(tall.exact_marginals(), law @ states / law.sum(), rtol=1e-4)


@pytest.mark.slow
def test_sgdld_finds_the_marginals_of_a_posterior():
    """With control variates mini-batches of 10 of 60 rows have little noise, and averages are right."""
    tall = TallLogisticRegression.simulated(1, 60, num_distinct=2, batch_size=10)
    tall = tall.with_control(tall.mode())
    result = dx.sample(
        jax.random.key(0), tall, dx.samplers.sgdld(0.2), num_chains=100, num_warmup=50, num_samples=2000, progress=False
    )
    np.testing.assert_allclose(result.mean(), tall.exact_marginals(), atol=0.03)


def test_a_prior_is_counted_once():
    data = (np.eye(3), np.ones(3))
    flat, sparse = (TallLogisticRegression(data, batch_size=1, inclusion_prob=p) for p in (0.5, 0.1))
    e, xi = jnp.ones(3), flat.draw(keys(1)[0], STEP)
    assert float(sparse.psi(e, xi) - flat.psi(e, xi)) == pytest.approx(3 * np.log(1 / 9), rel=1e-5)
    x = jnp.zeros(3, jnp.int8)
    np.testing.assert_allclose(sparse.batch(x, xi).changes - flat.batch(x, xi).changes, np.log(1 / 9), rtol=1e-4)


# --- quenched models ---


def test_the_gaussian_bernoulli_model_is_the_mean_of_its_conditionals():
    model = GaussianBernoulli(batch_size=20_000)
    xi, states = model.draw(keys(1)[0], STEP), jnp.asarray(model.space.enumerate())
    estimate = np.exp(np.asarray(jax.vmap(lambda x: model.psi(model.space.embed(x), xi))(states)))
    np.testing.assert_allclose(estimate, model.probabilities, atol=0.004)
    assert estimate.sum() == pytest.approx(1, abs=1e-4)  # conditionals are normalised
    np.testing.assert_allclose(
        model.probabilities[[0, 1, 3, 7, 15]], [0.12522, 0.05915, 0.04606, 0.05915, 0.12522], atol=1e-5
    )


@pytest.mark.slow
def test_a_quenched_model_from_functions_is_the_same_model():
    model = GaussianBernoulli(batch_size=3)
    made = Quenched(
        lambda e, t: jnp.sum(jax.nn.log_sigmoid((2 * e - 1) * t)), lambda key: model.draw(key, STEP)[0], model.space,
        batch_size=3,
    )  # fmt: skip
    xi = model.draw(keys(1)[0], STEP)
    x = jnp.array([1, 0, 0, 1], model.space.dtype)
    ours, theirs = model.batch(x, xi), evaluate_batch(made, x, xi)
    np.testing.assert_allclose(theirs.here, ours.here, rtol=1e-5)
    np.testing.assert_allclose(theirs.changes, ours.changes, rtol=1e-4, atol=1e-5)
    assert made.draw(keys(1)[0], STEP).shape == (3, 4)


# --- streams ---


def test_a_stream_gives_a_chain_every_row_once_a_block():
    data = (np.arange(64, dtype=np.float32)[:, None], np.zeros(64, np.float32))
    with RowStream(data, block_rows=32, piece_rows=8) as stream:
        tall = TallLogisticRegression(stream, batch_size=4)
        rows = tall.rows.renewed()
        seen = [np.asarray(rows.draw(keys(1)[0], jnp.int32(step), 4)[0])[:, 0] for step in range(100, 108)]
        assert len(np.unique(np.concatenate(seen))) == 32
        again = rows.renewed()
        assert not set(np.asarray(again.resident()[0])[:, 0]) & set(np.concatenate(seen))  # the other half


def test_streamed_data_tell_what_resident_data_tell():
    tall = TallLogisticRegression.simulated(1, 4096, num_distinct=2, batch_size=64)
    X, y = (np.asarray(part) for part in tall.rows.resident())
    settings = {"num_chains": 20, "num_warmup": 20, "num_samples": 200, "progress": False}
    with RowStream((X, y), block_rows=2048, piece_rows=256) as stream:
        streamed = TallLogisticRegression(stream, batch_size=64)
        result = dx.sample(jax.random.key(0), streamed, dx.samplers.sgdld(0.1), **settings)
        assert stream.position >= 220 * 64 // 2048  # new blocks came while it ran
        both = streamed.with_control([1, 0, 0, 0]), tall.with_control([1, 0, 0, 0])
        np.testing.assert_allclose(both[0].control.gradient, both[1].control.gradient, rtol=1e-4, atol=1e-2)
    # The data say that one of the two copies of each column is on: a quarter of all states, did they say nothing.
    assert result.mean(lambda x: (x[..., :2] + x[..., 2:] == 1).all(-1)) > 0.8


def small_stream(**settings):
    return RowStream((np.ones((8, 2), np.float32), np.ones(8, np.float32)), **settings)


MISTAKES = {
    "empty": (lambda: Bayesian(logistic, np.zeros((0, 2)), dx.Binary(2), batch_size=1), "The data set is empty"),
    "nothing": (lambda: Bayesian(logistic, (), dx.Binary(2), batch_size=1), "The data set is empty"),
    "large batch": (lambda: regression(301), "which has 300 rows, but batch_size is 301"),
    "large batch of a stream": (
        lambda: TallLogisticRegression(small_stream(block_rows=4), batch_size=5),
        "larger than a block of the stream, which has 4",
    ),
    "batch_size": (lambda: regression(0), "batch_size must be a whole number of at least 1"),
    "rows": (
        lambda: Bayesian(logistic, (np.ones((3, 2)), np.ones(4)), dx.Binary(2), batch_size=1),
        "must have the same number of rows",
    ),
    "shapes": (lambda: TallLogisticRegression((np.ones(3), np.ones(3)), batch_size=1), "a pair \\(X, y\\) of shapes"),
    "outcomes": (lambda: TallLogisticRegression((np.ones((3, 2)), 2 * np.ones(3)), batch_size=1), "are 0 or 1"),
    "prior": (lambda: TallLogisticRegression((np.eye(2), np.ones(2)), batch_size=1, inclusion_prob=1), "strictly"),
    "stream of one": (
        lambda: TallLogisticRegression(RowStream(np.ones((8, 2)), block_rows=4), batch_size=2), "rows \\(X_i, y_i\\)",
    ),
    "reference": (lambda: regression().with_control([2] * 6), "Codes must lie in 0..1"),
    "thinning": (
        lambda: dx.sample(
            jax.random.key(0), TallLogisticRegression(small_stream(block_rows=4), batch_size=2), "sgdld", thinning=3
        ),
        "A block of the data lasts for 2 steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_input(name):
    mistake, sentence = MISTAKES[name]
    with pytest.raises(ValueError, match=sentence):
        mistake()


def streamed():
    X, y = np.ones((64, 3), np.float32), np.ones(64, np.float32)
    return TallLogisticRegression(RowStream((X, y), block_rows=16), batch_size=4)


ESTIMATES = {
    "stream": (streamed, "its data come block by block"),
    "expectation": (
        lambda: dx.targets.Expectation(lambda e, xi: jnp.sum(e) * xi, random.uniform_scalar, dx.Binary(3)),
        "its log_prob is an estimate from a few mini-batches",
    ),
    "quenched": (
        lambda: Quenched(lambda e, u: jnp.sum(e) * u, random.uniform_scalar, dx.Binary(3)),
        "its log_prob is an estimate",
    ),
}


@pytest.mark.parametrize("name", list(ESTIMATES))
@pytest.mark.parametrize("sampler", ["dmala", "gibbs"])
def test_exact_samplers_refuse_a_log_probability_that_is_an_estimate(name, sampler):
    build, words = ESTIMATES[name]
    with pytest.raises(ValueError, match=f"needs the exact log_prob of .*, but {words}.*'sgdld'"):
        dx.sample(jax.random.key(0), build(), sampler, num_chains=2, num_warmup=0, num_samples=2)


def test_an_expectation_that_is_known_is_taken_by_exact_samplers():
    def psi(e, xi):
        return jnp.sum(e) * xi

    known = dx.targets.Expectation(psi, random.uniform_scalar, dx.Binary(3), log_prob=lambda e: jnp.sum(e) / 2)
    assert dx.exact.check_kernel(dx.samplers.gibbs(), known, num_chains=5000)
    result = dx.sample(jax.random.key(0), known, "gibbs", num_chains=2, num_warmup=0, num_samples=2)
    assert result.num_draws == 2


def test_auto_takes_mini_batches_where_nothing_else_is_exact():
    assert [name for name, _ in candidates_for(ESTIMATES["expectation"][0](), differentiable=True)] == ["sgdld"]
