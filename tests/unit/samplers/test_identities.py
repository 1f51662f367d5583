"""Which sampler is which other one, in a special case."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import random
from discrax.core.kernel import replaced, start_state
from discrax.core.target import effective_ratios
from discrax.curvature.metric import Isotropic, Spectral
from discrax.samplers import ab_first, ab_shift, ab_trace, avg, dlmc, dlmcf, dlp_trace, dmala, pavg
from discrax.samplers.langevin import langevin_logits

NUM_CHAINS = 200
KEYS = random.split(jax.random.key(3), NUM_CHAINS)
W = np.array([[0.3, 0.5, 0.0, -0.2], [0.5, -0.4, 0.7, 0.1], [0.0, 0.7, 0.2, -0.6], [-0.2, 0.1, -0.6, 0.5]])
SPACES = {
    "binary": dx.Binary(4),
    "spin": dx.Spin(4),
    "ordinal": dx.Ordinal(4, [-1.0, 0.0, 0.5, 2.0]),
    "categorical": dx.Categorical(4, 3),
}


def bumpy(e):
    return 0.5 * jnp.sum(jnp.sin(2 * e)) + 0.1 * jnp.sum(e) ** 3


def target_on(space: str) -> dx.Target:
    return dx.Target.from_log_prob(bumpy, SPACES[space])


def steps(kernel: dx.Kernel, target: dx.Target) -> tuple[np.ndarray, dx.Info]:
    """One step of many chains from random states."""

    x, info = _steps(kernel, target, KEYS)
    assert float(info.jump.sum()) > 0
    return np.asarray(x), info


@eqx.filter_jit
def _steps(kernel, target, keys):
    x = jax.vmap(target.space.random)(keys)
    states, info = jax.vmap(lambda key, x: kernel.step(key, target, kernel.init(target, x)))(keys, x)
    return states.x, info


def assert_same(one: dx.Kernel, other: dx.Kernel, target: dx.Target) -> None:
    (x, info), (y, other_info) = steps(one, target), steps(other, target)
    np.testing.assert_array_equal(x, y)
    np.testing.assert_allclose(info.accept_prob, other_info.accept_prob, rtol=1e-4, atol=1e-5)


def test_ncg_is_dlp_on_binary_spaces():
    """A site flips with probability sigmoid(delta / 2 - 1 / (2 eps))."""
    target, eps = target_on("binary"), 0.7
    x = jnp.array([0, 1, 1, 0], jnp.int8)
    state = start_state(target, x)
    gradient = np.asarray(jax.grad(bumpy)(target.space.embed(x)))
    expected = (1 - 2 * np.asarray(x)) * gradient / 2 - 1 / (2 * eps)
    logits = langevin_logits(target, state, dmala(eps).balancing, 1 / dmala(eps).step_size)
    np.testing.assert_allclose(logits, expected, rtol=1e-5)


@pytest.mark.parametrize("space", ["spin", "categorical"])
def test_dlp_with_an_even_diagonal_is_dmala(space):
    assert_same(dlp_trace(0.8, diagonal=np.ones(4)), dmala(0.8), target_on(space))


def often(space: str, *others: str) -> list:
    """The first in `make test`, the others in `make test-slow`."""
    return [space, *(pytest.param(each, marks=pytest.mark.slow) for each in others)]


@pytest.mark.parametrize("space", often("ordinal", "binary", "spin"))
def test_any_scale_of_first_order_with_half_power_is_dmala(space):
    assert_same(ab_first(0.8, 0.5), dmala(0.8), target_on(space))


@pytest.mark.parametrize("space", often("categorical", "ordinal"))
def test_avg_is_pavg_without_a_matrix(space):
    assert_same(avg(1.5), pavg(1.5, np.zeros((4, 4))), target_on(space))


@pytest.mark.parametrize("space", often("ordinal", "binary", "spin"))
def test_any_scale_without_a_kernel_scale_is_pavg(space):
    """alpha = 1, sigma = infinity, D = d_eps I."""
    preconditioned = pavg(1.5, W)
    assert_same(replaced(ab_shift(np.inf, 1.0), metric=Spectral.of(W, 1.5)), preconditioned, target_on(space))


def test_any_scale_with_an_isotropic_metric_is_avg():
    isotropic = Isotropic(jnp.float32(1.5))
    assert_same(replaced(ab_shift(np.inf, 1.0), metric=isotropic), avg(1.5), target_on("ordinal"))


def test_pavg_with_a_large_step_is_any_scale_with_the_smallest_shift():
    limit = pavg(1e6, W)
    shift = ab_shift(np.inf, 1.0, W)
    values = np.asarray(shift.metric.diagonal)
    np.testing.assert_allclose(values, float(limit.metric.diagonal), rtol=1e-3)


@pytest.mark.parametrize("eps", [0.3, 3.0, 300.0])
@pytest.mark.parametrize("space", SPACES)
def test_pavg_with_the_coupling_of_a_quadratic_target_accepts_always(space, eps):
    target = dx.targets.Quadratic(SPACES[space], W - np.diag(np.diag(W)), 0.3)
    _, info = steps(pavg(eps, W - np.diag(np.diag(W))), target)
    np.testing.assert_allclose(info.accept_prob, 1, atol=1e-3)
    if eps > 1:  # with a shorter step few of so few chains move at all
        _, other = steps(pavg(eps, -W), target)
        assert float(other.accept_prob.min()) < 0.9


@pytest.mark.parametrize(
    "kernel", [pavg(2.0), ab_shift(np.inf, 1.0), ab_trace(np.inf, 1.0)], ids=["pavg", "shift", "trace"]
)
@pytest.mark.parametrize("space", ["binary", "ordinal"])
def test_a_kernel_prepared_from_a_quadratic_target_accepts_always(kernel, space):
    """Also where J has a diagonal, which the exact log-ratios of the target hold already."""

    target = dx.Tempered(dx.targets.Quadratic(SPACES[space], W, 0.3), 0.6)
    prepared, how = kernel.prepare(target, tuning=False)
    assert "exact" in how
    _, info = steps(prepared, target)
    np.testing.assert_allclose(info.accept_prob, 1, atol=1e-3)


@pytest.mark.parametrize("space", ["spin", "categorical"])
@pytest.mark.parametrize("weight", ["sqrt", "ratio"])
def test_short_times_agree_to_first_order(space, weight):
    """The probability of a move is tau g + O(tau^2) for DMALA, DLMC and DLMCf alike."""
    target = target_on(space)
    x = target.space.random(jax.random.key(1))
    state = start_state(target, x)
    errors = []
    for tau in (1e-3, 1e-4):
        step_size = float(target.space.smallest_squared_move) / (-2 * np.log(tau))
        langevin = langevin_logits(target, state, dmala(1.0, weight).balancing, jnp.float32(1 / step_size))
        rates = tau * np.exp(dmala(1.0, weight).balancing(effective_ratios(target, x, state.cache)))
        two_levels = target.space.has_two_levels
        away = np.ones(x.shape, bool) if two_levels else np.arange(3) != np.asarray(x)[:, None]
        probabilities = (
            jax.nn.sigmoid(langevin) if two_levels else jax.nn.softmax(langevin, axis=-1),
            *(build(tau, weight, per_rate=False).chances(target, state).probs.T for build in (dlmc, dlmcf)),
        )
        worst = [np.max(np.abs(np.asarray(moves)[away] / np.asarray(rates)[away] - 1)) for moves in probabilities]
        errors.append(worst)
    errors = np.array(errors)
    assert (errors[0] < 0.3).all()
    assert (errors[1] < 0.2 * errors[0] + 1e-4).all()


def test_interpolation_with_barkers_weight_is_lazy_parallel_gibbs():
    """p_flip = (1 - e^-tau) sigmoid(delta)."""
    target, tau = target_on("spin"), 0.8
    state = start_state(target, jnp.array([0, 1, 1, 0], jnp.int8))
    flips = dlmc(tau, "ratio", per_rate=False).chances(target, state).probs
    expected = (1 - np.exp(-tau)) * np.asarray(jax.nn.sigmoid(state.cache))
    np.testing.assert_allclose(flips, expected, rtol=1e-5)


def test_a_long_interpolation_resamples_every_site():
    target = target_on("categorical")
    state = start_state(target, jnp.array([0, 1, 2, 0], jnp.int8))
    levels = dlmc(1e6, per_rate=False).chances(target, state).probs
    np.testing.assert_allclose(levels.T, jax.nn.softmax(state.cache, -1), atol=1e-5)


def test_time_counts_expected_moves():
    """With `per_rate` the probabilities of all moves add up to `time` while it is small."""
    target = target_on("categorical")
    state = start_state(target, jnp.array([0, 1, 2, 0], jnp.int8))
    for build in (dlmc, dlmcf):
        stays = build(1e-2).chances(target, state).probs[np.array([0, 1, 2, 0]), np.arange(4)]
        assert float(jnp.sum(1 - stays)) == pytest.approx(1e-2, rel=0.02)


def test_the_unadjusted_step_is_the_proposal_of_the_adjusted_one():
    target = target_on("spin")
    (x, info), (y, adjusted) = steps(dx.samplers.dula(2.0), target), steps(dmala(2.0), target)
    accepted = np.asarray(adjusted.is_accepted)
    assert 0 < accepted.sum() < NUM_CHAINS
    np.testing.assert_array_equal(x[accepted], y[accepted])
    np.testing.assert_array_equal(info.accept_prob, 1)


def test_the_unadjusted_step_never_enters_a_state_without_probability():
    def half(e):
        return jnp.where(e[0] > 0.5, -jnp.inf, jnp.sum(e))

    target = dx.Target.from_log_prob(half, dx.Binary(3))
    kernel = dx.samplers.dula(50.0)

    @jax.jit
    def run(key):
        return jax.lax.scan(
            lambda state, key: (kernel.step(key, target, state)[0],) * 2,
            kernel.init(target, jnp.zeros(3, jnp.int8)),
            random.split(key, 100),
        )[1].x

    x = np.asarray(run(jax.random.key(0)))
    assert (x[:, 0] == 0).all()
    assert x[:, 1].any()
