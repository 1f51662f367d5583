"""Our samplers in BlackJAX's drivers: the same steps, the same laws, and sentences for what cannot be."""

import sys
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.util import run_inference_algorithm

import discrax as dx
from discrax.core.kernel import Kernel, State
from discrax.interop.blackjax import AlgorithmState, InnerKernel, as_algorithm, as_inner_kernel, log_density

SPACES = {
    "spin": dx.Spin((2, 2), frozen=np.array([[False, True], [False, False]])),
    "ordinal": dx.Ordinal(2, [0.0, 0.5, 2.0]),
    "categorical": dx.Categorical(3, (2, 3, 2)),
}


def random_target(space: dx.Space, seed: int = 0) -> dx.Target:
    rng, size = np.random.default_rng(seed), space.embed(jnp.zeros(space.shape, space.dtype)).size
    linear, pairs = rng.normal(size=size), 0.3 * rng.normal(size=(size, size))
    return dx.Target.from_log_prob(lambda e: e.reshape(-1) @ (linear + pairs @ e.reshape(-1)), space)


class Through(Kernel):
    """An algorithm of BlackJAX as a kernel again, for the house's own proof."""

    algorithm: Any = eqx.field(static=True)

    def init(self, target, x):
        return State(*self.algorithm.init(x))

    def step(self, key, target, state):
        after, info = self.algorithm.step(key, AlgorithmState(*state))
        return State(*after), info


class Forgetful(Through):  # a twin with one flaw: what was kept is not moved along
    def step(self, key, target, state):
        after, info = super().step(key, target, state)
        return State(after.x, after.log_prob, state.cache), info


def inner_algorithm(name: str, target: dx.Target) -> Any:
    """The moves of particles, as an algorithm."""
    inner, density = as_inner_kernel(name, target.space), log_density(target)
    return blackjax.base.SamplingAlgorithm(
        lambda x: inner.mcmc_init_fn(x, density),
        lambda key, state: inner.mcmc_step_fn(key, state, density, path_length=jnp.array(1.5)),
    )


def verdict_on(kernel: Kernel, target: dx.Target):
    return dx.exact.check_kernel(kernel, target, num_chains=20_000, num_convergence_steps=60)


@pytest.mark.parametrize("made", [as_algorithm, inner_algorithm])
@pytest.mark.parametrize("space", SPACES)
def test_steps_have_the_exact_law(space, made):
    target = dx.Tempered(random_target(SPACES[space]), 0.7)
    verdict = verdict_on(Through(made("pas", target)), target)
    assert verdict, verdict


def test_the_proof_fails_a_twin_that_keeps_what_is_stale():
    target = random_target(SPACES["categorical"])
    assert not verdict_on(Forgetful(as_algorithm("pas", target)), target)


def test_an_algorithm_makes_the_steps_of_its_kernel():
    target = random_target(SPACES["categorical"])
    algorithm, kernel, key = as_algorithm("pas", target), dx.samplers.pas(), jax.random.key(3)
    x = jnp.zeros(3, jnp.int8)
    final, (states, info) = run_inference_algorithm(key, algorithm, 20, initial_position=x)
    state, keys = kernel.init(target, x), jax.random.split(jax.random.split(key)[0], 20)
    step = jax.jit(lambda key, state: kernel.step(key, target, state))
    for t in range(20):
        state, told = step(keys[t], state)
        np.testing.assert_array_equal(states.position[t], state.x)
        np.testing.assert_allclose(info.accept_prob[t], told.accept_prob, atol=1e-5)
    np.testing.assert_array_equal(final.position, state.x)
    assert len(np.unique(states.position, axis=0)) > 2


def test_a_tuned_kernel_runs_on_in_blackjax():
    target = dx.targets.Ising.lattice((4, 4), coupling=0.2)
    tuned = dx.sample(jax.random.key(0), target, "pas", num_warmup=100, num_samples=10, progress=False)
    algorithm = as_algorithm(tuned.kernel, target)
    run = jax.vmap(lambda key, x: run_inference_algorithm(key, algorithm, 50, initial_position=x)[1])
    states, info = run(jax.random.split(jax.random.key(1), 4), tuned.states.x)
    assert states.position.shape == (4, 50, 4, 4)
    assert abs(float(info.accept_prob.mean()) - 0.574) < 0.2


def evidence(inner, space, target, num_particles=20_000):
    prior = dx.Target.from_log_prob(lambda e: 0.0 * jnp.sum(e), space)
    parameters = {"path_length": jnp.array([1.5])}
    schedule = blackjax.adaptive_tempered_smc(
        log_density(prior), log_density(target), *inner, parameters, blackjax.smc.resampling.systematic, 0.8,
        num_mcmc_steps=4,
    )  # fmt: skip
    state, key, total = schedule.init(dx.exact.draw(jax.random.key(1), prior, num_particles)), jax.random.key(2), 0.0
    step = jax.jit(schedule.step)
    while state.tempering_param < 1:
        key, now = jax.random.split(key)
        state, info = step(now, state)
        total += float(info.log_likelihood_increment)
    counts = np.bincount(space.index(state.particles), np.asarray(state.weights), len(dx.exact.law(target)))
    return total, dx.exact.total_variation(counts / counts.sum(), dx.exact.law(target))


def test_tempered_particles_find_the_law_and_the_normaliser():
    space = dx.Binary(4)
    linear = jnp.array([2.0, -3.0, 1.0, 2.5])
    target = dx.Target.from_log_prob(lambda e: e @ linear - 4.0 * e[0] * e[2], space)
    values = np.asarray(jax.vmap(log_density(target))(jnp.asarray(space.enumerate())), np.float64)
    known = np.log(np.exp(values).mean())
    inner = as_inner_kernel("pas", space)
    found, distance = evidence(inner, space, target)
    assert abs(found - known) < 0.05
    assert distance < 0.02
    flat = lambda e: 0.0 * jnp.sum(e)  # noqa: E731
    deaf = InnerKernel(
        lambda key, state, density, **knobs: inner.mcmc_step_fn(key, state, flat, **knobs),
        lambda x, density: inner.mcmc_init_fn(x, flat),
    )
    assert evidence(deaf, space, target)[1] > 0.05  # particles that move as if there were no target


def test_knobs_of_particles_are_not_cut_short():
    space = dx.Binary(200)
    inner, flat = as_inner_kernel("pas", space), lambda e: 0.0 * jnp.sum(e)
    state = inner.mcmc_init_fn(jnp.zeros(200, jnp.int8), flat)
    keys = jax.random.split(jax.random.key(0), 100)

    @jax.jit
    def move(length):
        return jax.vmap(lambda key: inner.mcmc_step_fn(key, state, flat, path_length=length)[1].jump)(keys)

    for length in (2.0, 40.0):
        assert np.mean(move(length)) == pytest.approx(length, rel=0.1)


def test_a_density_takes_codes_and_embeddings():
    space = SPACES["ordinal"]
    target = random_target(space)
    x = jnp.array([2, 1], jnp.int8)
    assert log_density(target)(x) == log_density(target)(space.embed(x)) == target.log_prob(space.embed(x))
    assert log_density(target)(np.array([2, 1])) == log_density(target)(x)


def test_bad_input_is_a_sentence(as_a_user):
    target = random_target(dx.Binary(3))
    algorithm = as_algorithm("gibbs", target)
    for position, said in {
        (0, 1): "Expected a state of shape",
        (0, 1, 2): "Codes must lie in 0..1",
        (0.0, 1.0, 0.0): "integer codes",
        ((0, 1, 0), (1, 1, 1)): "use jax.vmap for several chains",
    }.items():
        with pytest.raises(ValueError, match=said):
            algorithm.init(np.array(position))
    with pytest.raises(ValueError, match=r"whole numbers of shape \(3,\), but got float32 of shape \(3,\)"):
        jax.jit(algorithm.init)(jnp.zeros(3))
    with pytest.raises(TypeError, match="target must be a discrax Target"):
        as_algorithm("pas", lambda x: 0.0)
    with pytest.raises(ValueError, match="swap"):
        as_algorithm("pas", random_target(dx.Binary(3, exactly=1)))
    with pytest.raises(TypeError, match="space must be a discrax space"):
        as_inner_kernel("pas", 3)
    barred = dx.Target.from_log_prob(lambda e: jnp.log(e[0] + e[1] - 1), dx.Binary(2))
    with pytest.raises(ValueError, match="log_prob must be finite where a chain starts"):
        as_algorithm("gibbs", barred).init(np.array([0, 1]))


def test_a_space_without_sites_to_move_is_a_sentence(as_a_user):
    with pytest.raises(ValueError, match="All sites are frozen: there is nothing to sample"):
        dx.Binary(2, frozen=np.array([True, True]))


def test_a_missing_package_is_a_sentence(monkeypatch):
    target = random_target(dx.Binary(3))
    monkeypatch.setitem(sys.modules, "blackjax", None)
    monkeypatch.setitem(sys.modules, "blackjax.base", None)
    with pytest.raises(
        ImportError, match=r'BlackJAX needs blackjax, which is missing: pip install "discrax\[blackjax\]"'
    ):
        as_algorithm("pas", target)
