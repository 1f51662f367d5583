"""log Z of small targets by every method against enumeration; `learn/test_ais.py` has more of annealing."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax import targets
from discrax.core.resampling import systematic
from discrax.core.target import log_prob
from discrax.sampling import population
from repeats import repeats

pytestmark = pytest.mark.runs_long

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)


def random_law(space, seed):
    rng, size = np.random.default_rng(seed), space.embed(jnp.zeros(space.shape, space.dtype)).size
    linear, pairs = rng.normal(size=size), 0.4 * rng.normal(size=(size, size))
    return dx.Target.from_log_prob(lambda e: e.reshape(-1) @ (linear + pairs @ e.reshape(-1)), space)


ISING = targets.Ising.lattice((3, 4), 0.4, 0.5 * RNG.normal(size=(3, 4)))
LEVELS = random_law(dx.Categorical((3,), (2, 4, 3)), 1)
GRID = dx.Tempered(random_law(dx.Ordinal(4, [0.0, 0.5, 2.0], frozen=np.array([True, False, False, False])), 2), 0.5)
BARRED = dx.Target.from_log_prob(lambda e: jnp.where(jnp.sum(e) < 4.5, e @ jnp.arange(8.0) / 4, -jnp.inf), dx.Binary(8))
FEW = {
    "annealing": {"num_temperatures": 100},
    "population": {"num_particles": 400},
    "tempering": {"num_warmup": 300, "num_samples": 500, "num_rungs": 6},
}


def exact_log_z(target):
    values = np.asarray(jax.vmap(target.log_prob)(jax.vmap(target.space.embed)(jnp.asarray(target.space.enumerate()))))
    return float(np.logaddexp.reduce(values.astype(np.float64)))


# --- log Z -----------------------------------------------------------------------------------------------------------


METHODS = ("annealing", "population")
# `learn/test_ais.py` anneals by PAS.
SLOW = [(ISING, "pas", "population"), *((BARRED, "gibbs", method) for method in METHODS)]
SLOW += [(target, "gibbs", m) for target, m in zip((LEVELS, GRID), METHODS, strict=True)]


@pytest.mark.parametrize(
    ("target", "sampler", "method"),
    [*((ISING, None, method) for method in METHODS), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_log_z_is_that_of_enumeration(target, sampler, method):
    found = dx.log_normaliser(KEY, target, method, sampler=sampler, progress=False, **FEW[method])
    assert abs(found.log_Z - exact_log_z(target)) < 3 * found.error
    assert found.error < 0.1
    assert found.warning is None
    assert found.interval[0] < found.log_Z < found.interval[1]
    assert found.states.shape[1:] == target.space.shape


@pytest.mark.parametrize("method", ["annealing", pytest.param("population", marks=pytest.mark.slow)])
def test_log_z_from_independent_sites(method):
    """As probabilities, or as a target: the same draws."""
    reference = targets.Quadratic(ISING.space, targets.Uncoupled((3, 4)), np.full((3, 4), 0.3))
    probabilities = np.full((3, 4), 1 / (1 + np.exp(-0.6)))
    first, second = (
        dx.log_normaliser(KEY, ISING, method, reference=each, sampler="gibbs", progress=False, **FEW[method])
        for each in (reference, probabilities)
    )
    assert abs(first.log_Z - exact_log_z(ISING)) < 3 * first.error
    np.testing.assert_allclose(first.log_weights, second.log_weights, atol=1e-3)


@pytest.mark.parametrize(
    ("target", "sampler"),
    [
        (ISING, None),
        *(pytest.param(each, "gibbs", marks=pytest.mark.slow) for each in repeats((GRID,), (LEVELS, GRID))),
    ],
)
def test_log_z_of_a_tempered_run_is_that_of_enumeration(target, sampler):
    found = dx.log_normaliser(KEY, target, "tempering", sampler=sampler, progress=False, **FEW["tempering"])
    assert abs(found.log_Z - exact_log_z(target)) < 3 * found.error
    assert found.error < 0.1


def test_where_totals_are_bounded_a_tempered_run_swaps():
    bounded = dx.Target.from_log_prob(lambda e: e @ jnp.arange(6.0) * 0.3, dx.Binary(6, at_most=3))
    found = dx.log_normaliser(KEY, bounded, "tempering", num_rungs=3, num_warmup=100, num_samples=300, progress=False)
    assert abs(found.log_Z - exact_log_z(bounded)) < 4 * found.error
    with pytest.raises(
        ValueError, match=r"use log_normaliser\(..., method='tempering'\), which begins at the uniform law"
    ):
        dx.log_normaliser(KEY, bounded, "annealing", progress=False)


@pytest.mark.slow
def test_a_tempered_run_does_not_know_how_many_states_are_forbidden():
    with pytest.raises(ValueError, match="use method='annealing' or 'population'"):
        dx.log_normaliser(KEY, BARRED, "tempering", sampler="gibbs", progress=False, **FEW["tempering"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["annealing", "population"])
def test_intervals_are_honest(method):
    """Of 40 intervals of 95 %, 36 to 39 hold the truth."""
    log_z, settings = exact_log_z(ISING), {"annealing": {"num_temperatures": 60}, "population": {"num_particles": 100}}
    found = [
        dx.log_normaliser(jax.random.key(seed), ISING, method, progress=False, **settings[method]) for seed in range(40)
    ]
    assert 36 <= sum(low < log_z < high for low, high in (each.interval for each in found)) <= 39
    off = np.array([(each.log_Z - log_z) / each.error for each in found])
    assert 0.7 < off.std() < 1.4
    assert abs(off.mean()) < 0.6


# --- Populations -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_particles_are_draws_of_the_target():
    result = dx.anneal_population(KEY, ISING, 1000, ess=0.8, progress=False)
    assert result.draws.shape == (8, 1000, 3, 4)
    assert result.stats["lp"][0, 5] == pytest.approx(float(log_prob(ISING, jnp.asarray(result.draws[0, 5]))), abs=1e-4)
    law = dx.exact.law(ISING)
    states = np.asarray(ISING.space.enumerate())
    exact = np.einsum("s,sij->ij", law, 2.0 * states - 1)
    np.testing.assert_allclose(result.mean(), exact, atol=0.05)  # standard errors are 0.011
    report = result.report
    assert report.betas[-1] == 1
    assert (np.diff(report.betas) > 0).all()
    assert "populations of 1,000" in str(result.summary().adaptation)
    again = dx.anneal_population(jax.random.key(1), ISING, 1000, ess=0.95, progress=False)
    assert len(again.report.betas) > len(report.betas)
    assert again.compile_seconds == 0  # more temperatures, the same programs


def test_a_resampling_that_forgets_its_weights_is_seen(monkeypatch):
    """Twins: particles that are not resampled, though weighed as if; and a mean of logarithms instead."""
    settings = {"num_particles": 400, "ess": 0.5, "steps": 1, "sampler": "gibbs", "progress": False}
    resample = population._resample

    def copy_each(*arguments, **settings):
        *others, step = arguments
        return resample(*others, 0 * step, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(population, "_resample", copy_each)
        careless = dx.log_normaliser(KEY, ISING, "population", **settings)
    assert abs(careless.log_Z - exact_log_z(ISING)) > 5 * careless.error
    with monkeypatch.context() as patch:
        patch.setattr(population, "log_mean_exp", lambda log_weights: log_weights.mean(axis=1))
        careless = dx.log_normaliser(KEY, ISING, "population", **settings)
    assert abs(careless.log_Z - exact_log_z(ISING)) > 5 * careless.error
    honest = dx.log_normaliser(KEY, ISING, "population", **settings)
    assert abs(honest.log_Z - exact_log_z(ISING)) < 3 * honest.error


@pytest.mark.slow
def test_a_kernel_with_a_scale_is_tuned_on_the_way():
    result = dx.anneal_population(KEY, ISING, 200, sampler="dmala", steps=10, progress=False)
    assert abs(result.report.acceptance[-1] - 0.574) < 0.1
    assert abs(result.report.log_Z - exact_log_z(ISING)) < 4 * result.report.error


def test_copies_are_proportional_to_weights():
    weights = np.array([[1.0, 2.0, 0.0, 5.0], [1.0, 1.0, 1.0, 1.0]])
    counts = np.zeros((2, 4))
    for u in np.linspace(0, 1, 100, endpoint=False):
        parents = systematic(jnp.full(2, u), jnp.log(jnp.asarray(weights)))
        assert (np.diff(parents, axis=1) >= 0).all()
        counts += np.stack([np.bincount(each, minlength=4) for each in np.asarray(parents)])
    np.testing.assert_allclose(counts / 100, 4 * weights / weights.sum(axis=1, keepdims=True), atol=0.03)


def test_the_next_temperature_keeps_the_share_of_the_weights():
    gaps = np.random.default_rng(0).normal(scale=30, size=(3, 500))
    b = population.next_beta(0.25, gaps, 0.8)
    weights = np.exp((b - 0.25) * gaps)
    assert np.mean(weights.sum(1) ** 2 / (weights**2).sum(1) / 500) == pytest.approx(0.8, abs=1e-3)
    assert population.next_beta(0.25, gaps / 1e6, 0.8) == 1
    barred = np.where(np.arange(500) % 2 == 0, -np.inf, gaps)  # no temperature could keep a share of those
    assert population.next_beta(0.25, barred, 0.8) == pytest.approx(b, rel=0.3)
    with pytest.raises(ValueError, match=r"Weights would overflow: log_prob differs by"):
        population.next_beta(0.25, 1e12 * gaps, 0.8)
    with pytest.raises(ValueError, match=r"b = 0.25 are NaN, infinite or all 0"):
        population.next_beta(0.25, gaps * np.nan, 0.8)


def test_families_are_counted():
    """One family has all, or each has one, or two have half each."""
    for families, expected in (([0, 0, 0, 0], 4), ([0, 1, 2, 3], 1), ([1, 1, 3, 3], 2)):
        way = object.__new__(population._Way)
        way.families, way.betas, way.acceptance = np.array([families] * 2), [0.0, 1.0], [1.0]
        way.log_Zs = np.array([1.0, 1.1])
        report = way.report()
        np.testing.assert_allclose(report.rho_t, expected)
        np.testing.assert_allclose(report.rho_s, expected)
        assert report.log_Z == pytest.approx(1.05, abs=0.01)
        assert "descend from few draws" in report.warning


@pytest.mark.slow
def test_a_population_of_few_families_says_so():
    cold = targets.Ising.lattice((6, 6), 1.0, periodic=True)
    result = dx.anneal_population(KEY, cold, 50, ess=0.5, steps=1, progress=False)
    assert result.report.warning is not None
    assert "descend from few draws" in str(result.summary())


def test_a_result_of_a_population_is_kept(tmp_path):
    result = dx.anneal_population(KEY, BARRED, 100, sampler="gibbs", num_populations=2, progress=False)
    assert (result.draws.sum(axis=-1) < 5).all()
    again = dx.load(result.save(tmp_path / "particles.nc"))
    np.testing.assert_array_equal(again.draws, result.draws)
    assert str(again.report) == str(result.report)


# --- Mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_particles": 1}, "num_particles must be at least 2, but got 1"),
        ({"num_populations": 1}, "num_populations must be at least 2, but got 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"ess": 1.0}, "ess must be greater than 0 and less than 1"),
        ({"sampler": "dula"}, "DULA does not leave its target invariant"),
        ({"reference": np.zeros((3, 4))}, "so that it misses no state of the target, but they run from 0 to 0"),
        ({"reference": np.full(12, 0.5)}, r"shape \(3, 4\), but has shape \(12,\)"),
        ({"reference": ISING}, "draws that are known"),
        ({"reference": targets.Bernoulli(np.full(12, 0.5))}, "must have the space of the target"),
    ],
)
def test_mistakes_are_sentences(settings, message):
    with pytest.raises(ValueError, match=message):
        dx.anneal_population(KEY, ISING, **settings)
    with pytest.raises(ValueError, match=message):
        dx.log_normaliser(KEY, ISING, "population", **settings)


def test_methods_and_their_settings():
    with pytest.raises(ValueError, match="method must be 'annealing' or 'population' or 'tempering'"):
        dx.log_normaliser(KEY, ISING, "guessing")
    with pytest.raises(TypeError, match="'annealing' has no setting 'num_particles', but it has num_chains"):
        dx.log_normaliser(KEY, ISING, num_particles=100)


@pytest.mark.parametrize("method", ["annealing", "population"])
@pytest.mark.parametrize(
    ("value", "message"),
    [(jnp.nan, "NaN or .inf at a draw"), (1e38, "NaN or .inf at a draw|overflow"), (-jnp.inf, "-inf at all")],
)
def test_weights_that_are_none(method, value, message):
    target = dx.Target.from_log_prob(lambda e: value * (1 + jnp.sum(e)), dx.Binary(6))
    with pytest.raises(ValueError, match=message):
        dx.log_normaliser(KEY, target, method, sampler="rwm", progress=False, **FEW[method])


def test_a_tempered_run_that_is_interrupted_ends_the_call(monkeypatch):
    """In warm-up there is no report of it yet, and nothing to estimate from."""
    module = importlib.import_module("discrax.sampling.run")

    def drive(*arguments, **settings):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(module, "drive", drive)
    with pytest.raises(KeyboardInterrupt):
        dx.log_normaliser(KEY, ISING, "tempering", **FEW["tempering"])
