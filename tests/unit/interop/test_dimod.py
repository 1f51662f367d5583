"""`DiscraxSampler`: what dimod asks of a sampler, and what code written for neal expects."""

import itertools
import unittest

import dimod
import dimod.testing
import numpy as np
import pytest

from discrax.interop.dimod import DiscraxSampler, quadratic_of
from discrax.solving.sites_chains import BinaryChains

CUSTOM = {"beta_schedule_type": "custom", "beta_schedule": [0.1, 1.0]}


@dimod.testing.load_sampler_bqm_tests(DiscraxSampler)
class TestAsDimodAsks(unittest.TestCase):
    def test_api(self):
        dimod.testing.assert_sampler_api(DiscraxSampler())


def random_model(vartype: str, num_variables: int = 12, seed: int = 0) -> dimod.BinaryQuadraticModel:
    model = dimod.generators.gnp_random_bqm(num_variables, 0.5, vartype, random_state=seed)
    model.offset = 3.25
    return model.relabel_variables({i: ("node", i) for i in range(num_variables)}, inplace=False)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_quadratic_of_is_the_negative_energy(vartype):
    bqm = random_model(vartype, 6)
    model, variables = quadratic_of(bqm)
    states = np.array(list(itertools.product([0, 1], repeat=6)))
    values = states if vartype == "BINARY" else 2 * states - 1
    np.testing.assert_allclose(model.value(states), -bqm.energies((values, variables)))


def assert_finds_the_least_energy(vartype: str) -> None:
    """Of spins on a torus that can all have their way."""
    generator, site = np.random.default_rng(1), np.arange(144).reshape(12, 12)
    edges = np.concatenate([np.stack([site, np.roll(site, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    weights, signs = generator.uniform(0.5, 1.5, len(edges)), generator.choice([-1.0, 1.0], 144)
    couplings = dict(zip(map(tuple, edges.tolist()), -weights * signs[edges].prod(1), strict=True))
    bqm = dimod.BinaryQuadraticModel.from_ising({}, couplings).change_vartype(vartype, inplace=False)
    found = DiscraxSampler().sample(bqm, num_reads=4, num_sweeps=2000, seed=0)
    dimod.testing.assert_response_energies(found, bqm)
    assert found.first.energy == pytest.approx(-weights.sum())


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_finds_the_least_energy(vartype):
    assert_finds_the_least_energy(vartype)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_idle_sweeps_do_not_find_the_least_energy(vartype, monkeypatch):
    """What is left are local minima below random states."""
    monkeypatch.setattr(BinaryChains, "anneal", lambda *_: None)
    with pytest.raises(AssertionError, match="comparison failed"):
        assert_finds_the_least_energy(vartype)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_in_the_place_of_neal(vartype):
    bqm = random_model(vartype)
    neal = pytest.importorskip("dwave.samplers").SimulatedAnnealingSampler()
    arguments = {
        "beta_range": [0.1, 10.0],
        "num_reads": 7,
        "num_sweeps": 200,
        "num_sweeps_per_beta": 2,
        "beta_schedule_type": "geometric",
        "seed": 1234,
        "initial_states_generator": "random",
        "randomize_order": False,
    }
    theirs = neal.sample(bqm, **arguments)
    ours = DiscraxSampler().sample(bqm, **arguments)
    dimod.testing.assert_response_energies(ours, bqm)
    assert ours.vartype is theirs.vartype
    assert set(DiscraxSampler().parameters) == set(neal.parameters) | {"time_limit"}
    assert set(ours.variables) == set(theirs.variables)
    assert len(ours) == len(theirs)
    assert set(ours.info) == set(theirs.info)
    assert set(ours.info["timing"]) == set(theirs.info["timing"])
    best = dimod.ExactSolver().sample(bqm).first.energy
    assert ours.first.energy == pytest.approx(best)


def test_dictionaries_as_neal_takes_them():
    triangle = {("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 1.0}
    assert DiscraxSampler().sample_ising({}, triangle, num_reads=5, seed=1).first.energy == -1
    assert DiscraxSampler().sample_qubo({("a", "a"): -1, ("a", "b"): 2, ("b", "b"): -1}, seed=1).first.energy == -1


def test_a_seed_decides_and_reads_differ():
    bqm = random_model("SPIN", 40)
    sampler = DiscraxSampler()

    def states(seed):
        return sampler.sample(bqm, num_reads=8, num_sweeps=3, seed=seed).record.sample

    np.testing.assert_array_equal(states(5), states(5))
    assert (states(5) != states(6)).any()
    assert len(np.unique(states(5), axis=0)) > 1


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_initial_states(vartype):
    bqm = random_model(vartype)
    low = 0 if vartype == "BINARY" else -1
    given = [{variable: 1 if i % 3 else low for i, variable in enumerate(reversed(bqm.variables))}]
    sampler = DiscraxSampler()
    same = sampler.sample(bqm, num_sweeps=0, initial_states=given)
    assert len(same) == 1
    assert dict(same.first.sample) == given[0]
    assert len(sampler.sample(bqm, num_sweeps=1, num_reads=4, initial_states=given)) == 4
    with pytest.raises(ValueError):
        sampler.sample(bqm, num_reads=4, initial_states=given, initial_states_generator="none")
    # What a chain meets first is where it begins: it can only get better.
    at_once = sampler.sample(bqm, num_sweeps=1, initial_states=given, beta_range=[1e-9, 1e-9])
    assert at_once.first.energy <= bqm.energy(given[0])


def test_an_interrupted_search_returns_what_it_has():
    calls = []
    bqm = random_model("SPIN", 30)
    found = DiscraxSampler().sample(
        bqm, num_reads=3, num_sweeps=200_000_000, seed=1, interrupt_function=lambda: calls.append(1) or True
    )
    assert len(calls) == 1
    assert len(found) == 3


def test_an_interrupt_function_is_asked_until_it_says_so():
    calls = []
    bqm = random_model("SPIN", 30)
    DiscraxSampler().sample(
        bqm, num_reads=2, num_sweeps=200_000_000, seed=1, interrupt_function=lambda: calls.append(1) or len(calls) == 5
    )
    assert len(calls) == 5
    found = DiscraxSampler().sample(bqm, num_reads=2, num_sweeps=20, seed=1, interrupt_function=lambda: False)
    whole = DiscraxSampler().sample(bqm, num_reads=2, num_sweeps=20, seed=1)
    np.testing.assert_array_equal(found.record.sample, whole.record.sample)
    dimod.testing.assert_response_energies(found, bqm)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"num_sweeps": -1}, ValueError, "but got -1"),
        ({"num_sweeps": 10, "num_sweeps_per_beta": 3}, ValueError, "multiple of num_sweeps_per_beta = 3"),
        ({"num_sweeps_per_beta": 0}, ValueError, "at least 1, but got 0"),
        ({"beta_range": [1.0]}, ValueError, "two inverse temperatures"),
        ({"beta_range": [-1.0, 2.0]}, ValueError, "two inverse temperatures"),
        ({"beta_range": [0.0, 2.0]}, ValueError, "two inverse temperatures, greater than 0"),
        ({"beta_schedule_type": "steep"}, ValueError, "linear, geometric, custom, but got 'steep'"),
        ({"beta_schedule_type": "custom"}, ValueError, "go together"),
        ({"beta_schedule": [0.1, 1.0]}, ValueError, "go together"),
        ({**CUSTOM, "beta_schedule": [0.1, -1.0]}, ValueError, "none negative"),
        ({**CUSTOM, "beta_schedule": "abc"}, TypeError, "beta_schedule must be real numbers"),
        ({**CUSTOM, "num_sweeps": 3}, ValueError, "A beta_schedule of 2 has 2 sweeps, but num_sweeps is 3"),
        ({**CUSTOM, "beta_range": [0.1, 2.0]}, ValueError, "its own ends, 0.1 and 1, but"),
        ({"time_limit": 0}, ValueError, "time_limit must be greater than 0"),
        ({"time_limit": "long"}, TypeError, "time_limit must be real numbers"),
        ({"proposal_acceptance_criteria": "Gibbs"}, ValueError, "by Metropolis"),
        ({"randomize_order": True}, ValueError, "in order"),
        ({"seed": 1.5}, TypeError, "but got 1.5"),
        ({"seed": -1}, ValueError, "but got -1"),
        ({"interrupt_function": 3}, TypeError, "a function, but got 3"),
        ({"num_reads": 0}, ValueError, "num_reads"),
    ],
)
@pytest.mark.usefixtures("as_a_user")
def test_bad_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        DiscraxSampler().sample(random_model("SPIN"), **arguments)


def test_an_argument_of_other_samplers_is_left_out_with_a_warning():
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="annealing_time"):
        DiscraxSampler().sample(random_model("SPIN"), num_sweeps=1, annealing_time=20)


def betas_of(monkeypatch, **arguments):
    """The inverse temperatures that a read sees, one a sweep."""
    seen, anneal = [], BinaryChains.anneal

    def watched(self, betas, low, high):
        seen.extend(betas.tolist())
        anneal(self, betas, low, high)

    monkeypatch.setattr(BinaryChains, "anneal", watched)
    samples = DiscraxSampler().sample(random_model("SPIN"), num_reads=1, seed=0, **arguments)
    return seen, samples.info["beta_range"]


def test_schedules_are_followed(monkeypatch):
    seen, ends = betas_of(monkeypatch, num_sweeps=3, beta_range=[1.0, 4.0])
    np.testing.assert_allclose(seen, [1, 2, 4])
    assert ends == (1.0, 4.0)
    seen, _ = betas_of(monkeypatch, num_sweeps=6, num_sweeps_per_beta=2, beta_range=(0, 4), beta_schedule_type="linear")
    np.testing.assert_allclose(seen, [0, 0, 2, 2, 4, 4])
    given = {"beta_schedule_type": "custom", "beta_schedule": [3.0, 0.0, 5.0], "num_sweeps_per_beta": 2}
    seen, ends = betas_of(monkeypatch, **given)
    np.testing.assert_array_equal(seen, [3, 3, 0, 0, 5, 5])
    assert ends == (3.0, 5.0)
    seen, ends = betas_of(monkeypatch)
    assert len(seen) == 1000
    np.testing.assert_allclose([seen[0], seen[-1]], ends)


def test_a_time_limit_ends_the_reads_or_sets_their_length(monkeypatch):
    """By a clock that goes a tenth of a second at every look."""
    looks = iter(range(10**6))
    monkeypatch.setattr("discrax.interop.dimod.perf_counter", lambda: 0.1 * next(looks))
    seen, ends = betas_of(monkeypatch, time_limit=2.0)
    assert 5 < len(seen) < 20
    assert seen[0] < 1.3 * ends[0]
    assert seen[-1] > 0.7 * ends[-1]
    assert (np.diff(seen) >= 0).all()
    seen, ends = betas_of(monkeypatch, time_limit=2.0, num_sweeps=1000)
    assert 5 < len(seen) < 20
    assert seen[-1] < 1.3 * ends[0]
