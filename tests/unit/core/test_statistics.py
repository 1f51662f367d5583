"""Running sums and moments against numpy in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from discrax.core.statistics import RunningMoments, add_to_moments, compensated_add, no_moments


def test_a_million_small_changes_do_not_drift():
    """A plain float32 sum of the same terms is off by more than 0.1; the compensated one by about one rounding."""
    terms = jnp.asarray(np.random.default_rng(0).normal(size=1_000_000) * 0.1 + 0.01, jnp.float32)

    def both(carry, term):
        total, error, plain = carry
        return (*compensated_add(total, error, term), plain + term), None

    zero = jnp.float32(0)
    (total, _, plain), _ = jax.jit(lambda t: lax.scan(both, (jnp.float32(5000), zero, jnp.float32(5000)), t))(terms)
    exact = 5000 + np.asarray(terms, np.float64).sum()
    assert abs(float(total) - exact) < 2e-3  # float32 has a spacing of 1e-3 there
    assert abs(float(plain) - exact) > 0.1  # the test has teeth


def run(values, weights) -> RunningMoments:
    def add(moments, pair):
        return add_to_moments(moments, *pair), None

    values = jnp.asarray(values, jnp.float32)
    with np.errstate(divide="ignore"):
        pairs = (values, jnp.asarray(np.log(weights), jnp.float32))
    return jax.jit(lambda pairs: lax.scan(add, no_moments(values[0]), pairs)[0])(pairs)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(
    st.integers(0, 10_000), st.floats(-50, 50), st.floats(0.1, 10), st.sampled_from(["ones", "random", "leading zeros"])
)
def test_moments_are_weighted_means_and_variances(seed, shift, scale, kind):
    rng = np.random.default_rng(seed)
    values = (shift + scale * rng.normal(size=(64, 3))).astype(np.float32).astype(np.float64)
    weights = np.ones(64) if kind == "ones" else rng.exponential(size=64).astype(np.float32).astype(np.float64)
    if kind == "leading zeros":
        weights[:5] = 0
    moments = run(values, weights)
    mean = np.average(values, axis=0, weights=weights)
    variance = np.average((values - mean) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(np.exp(moments.log_weight), weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(moments.mean, mean, atol=1e-4 * (abs(shift) + scale))
    np.testing.assert_allclose(moments.variance, variance, rtol=1e-3)


def test_a_large_mean_does_not_swallow_the_variance():
    """Sums of squares would lose a variance of 1 next to a mean of 10^5 in float32."""
    rng = np.random.default_rng(1)
    values = (1e5 + rng.integers(-1, 2, size=(2000, 1))).astype(np.float64)
    moments = run(values, np.ones(2000))
    np.testing.assert_allclose(moments.variance, values.var(axis=0), rtol=0.05)
    naive = (
        np.square(values.astype(np.float32)).mean(dtype=np.float32)
        - values.astype(np.float32).mean(dtype=np.float32) ** 2
    )
    assert abs(naive - values.var()) > 0.5 * values.var()  # the test has teeth


def test_variance_of_a_batch_divides_each_chain_by_its_own_weight():
    batch = RunningMoments(jnp.array([2.0, 4.0]), jnp.zeros((2, 3)), jnp.full((2, 3), 8.0), jnp.zeros(2))
    np.testing.assert_allclose(batch.variance, [[4, 4, 4], [2, 2, 2]])


def test_no_draws_have_no_weight():
    empty = no_moments(jnp.zeros((2, 2)))
    assert float(empty.log_weight) == -np.inf
    assert empty.mean.shape == (2, 2)
    untouched = add_to_moments(empty, jnp.ones((2, 2)), jnp.float32(-jnp.inf))
    assert np.isfinite(untouched.mean).all()
    assert float(untouched.log_weight) == -np.inf


def test_weights_may_differ_by_more_than_a_float_can_hold():
    """exp(+-500) is no float32, but the mean of draws with such weights is that of the heaviest."""
    values = jnp.arange(6.0)[:, None]
    log_weights = jnp.array([-500.0, -500.0, 499.0, 500.0, 0.0, -500.0])
    moments = no_moments(values[0])
    for value, log_weight in zip(values, log_weights, strict=True):
        moments = add_to_moments(moments, value, log_weight)
    weights = np.exp([-1.0, 0.0])
    mean = np.average([2.0, 3.0], weights=weights)
    np.testing.assert_allclose(moments.mean, [mean], rtol=1e-5)
    np.testing.assert_allclose(
        moments.variance, [np.average((np.array([2.0, 3.0]) - mean) ** 2, weights=weights)], rtol=1e-4
    )
    np.testing.assert_allclose(moments.log_weight, 500 + np.log(weights.sum()), rtol=1e-6)
