"""The oracles themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from discrax import Binary, Target, Tempered, exact, samplers, targets
from discrax.core.kernel import Kernel, State, scalar_info
from discrax.core.target import log_prob

from ..helpers import P_VALUE, OneFlip, chi_square_p_value

TARGET = targets.Ising.graph(np.array([[0, 1], [1, 2], [0, 2]]), 0.5, np.array([0.3, -0.2, 0.1]))


def by_hand(target) -> np.ndarray:
    states = target.space.enumerate()
    spins = 2.0 * states - 1
    energies = 0.5 * (spins[:, 0] * spins[:, 1] + spins[:, 1] * spins[:, 2] + spins[:, 0] * spins[:, 2])
    weights = np.exp(energies + spins @ np.array([0.3, -0.2, 0.1]))
    return weights / weights.sum()


def test_law_is_the_normalised_probability_of_every_state():
    np.testing.assert_allclose(exact.law(TARGET), by_hand(TARGET), rtol=1e-6)
    assert exact.law(TARGET).sum() == pytest.approx(1)


def test_law_of_a_tempered_target():
    expected = by_hand(TARGET) ** 0.3
    np.testing.assert_allclose(exact.law(Tempered(TARGET, 0.3)), expected / expected.sum(), rtol=1e-5)


def test_law_of_forbidden_states_is_zero():
    target = Target.from_log_prob(lambda e: jnp.where(e.sum() > 1.5, -jnp.inf, 0.0), Binary(2))
    np.testing.assert_allclose(exact.law(target), [1 / 3, 1 / 3, 1 / 3, 0])


def test_large_log_probabilities_do_not_overflow():
    target = Target.from_log_prob(lambda e: 1e4 + e.sum(), Binary(2))
    np.testing.assert_allclose(exact.law(target), scipy.special.softmax([0, 1, 1, 2]), rtol=1e-3)


def test_draws_follow_the_law():
    """Chi-square on 50,000 draws, p = 1e-6."""
    x = exact.draw(jax.random.key(0), TARGET, 50_000)
    counts = np.bincount(TARGET.space.index(x), minlength=8)
    assert chi_square_p_value(counts, by_hand(TARGET)) > P_VALUE
    again = exact.draw(jax.random.key(1), TARGET, 50_000)
    assert (np.asarray(again) != np.asarray(x)).any()


@pytest.mark.parametrize(("num_states", "total"), [(2, 100), (10, 1000), (60, 5000)])
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2])
def test_chi_square_is_scipys(num_states, total, spread):
    """From likely to hopeless deviations, where no state is rare."""
    rng = np.random.default_rng(num_states)
    probabilities = rng.dirichlet(np.full(num_states, 20.0))
    counts = np.rint(total * probabilities * (1 + spread * rng.normal(size=num_states))).astype(int)
    expected = scipy.stats.chisquare(counts, probabilities * counts.sum()).pvalue
    assert exact.chi_square(counts, probabilities) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_rare_states_are_pooled():
    probabilities = np.array([0.5, 0.49, 0.004, 0.003, 0.003])
    counts = np.array([510, 480, 5, 3, 2])
    expected = scipy.stats.chisquare([510, 480, 10], np.array([0.5, 0.49, 0.01]) * 1000).pvalue
    assert exact.chi_square(counts, probabilities) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("counts", "probabilities"),
    [([50, 49, 1], [0.5, 0.5, 0.0]), ([5000, 4998, 1, 1], [0.5, 0.4998, 0.0002, 0.0])],
    ids=["alone", "beside-rare-states"],
)
def test_visiting_an_impossible_state_is_never_forgiven(counts, probabilities):
    assert exact.chi_square(np.array(counts), np.array(probabilities)) == 0


def test_too_few_draws_are_no_evidence():
    for counts, probabilities in (([7, 0], [1.0, 0.0]), ([3, 2], [0.5, 0.5]), ([0, 0], [0.5, 0.5])):
        with pytest.raises(ValueError, match="each is expected at least 10 times"):
            exact.chi_square(np.array(counts), np.array(probabilities))


def test_total_variation():
    assert exact.total_variation(np.array([0.5, 0.5, 0]), np.array([0.25, 0.25, 0.5])) == pytest.approx(0.5)
    assert exact.total_variation(np.array([1, 0]), np.array([0, 1])) == 1


class TooBold(Kernel):
    """Accepts with the square root of the right probability: a flat law, in all ways but one like `OneFlip`."""

    def init(self, target, x):
        return OneFlip().init(target, x)

    def step(self, key, target, state):
        return OneFlip().step(key, Tempered(target, 0.5), state)


class Stuck(Kernel):
    def init(self, target, x):
        return State(x, log_prob(target, x), ())

    def step(self, key, target, state):
        return state, scalar_info(0, False, 0, 1, False)


def test_a_correct_kernel_passes_where_states_are_forbidden():
    """From a state of probability 0 there may be no way out: the second walk does not begin there."""
    law = lambda e: jnp.where(e.sum() < 2, e @ jnp.arange(5.0) / 3, -jnp.inf)  # noqa: E731
    target = Target.from_log_prob(law, Binary(5))
    for seed in range(3):
        assert exact.check_kernel(samplers.gibbs(), target, num_chains=5_000, key=jax.random.key(seed))


def test_a_law_that_is_known_by_mini_batches_only_is_refused():
    def psi(e, xi):
        return jnp.sum(e * xi)

    target = targets.Expectation(psi, lambda key: jax.random.normal(key, (3,)), Binary(3))
    with pytest.raises(ValueError, match="The law of Expectation needs its exact log_prob"):
        exact.law(target)


def test_a_correct_kernel_passes():
    verdict = exact.check_kernel(OneFlip(), TARGET, num_chains=10_000)
    assert verdict
    assert verdict.p_value > 1e-6
    assert verdict.total_variation < 3 * verdict.expected_total_variation
    assert str(verdict).startswith("passed: p = ")


@pytest.mark.parametrize(
    ("kernel", "fault"), [(TooBold(), "invariance"), (Stuck(), "convergence")], ids=["wrong", "stuck"]
)
def test_a_broken_kernel_fails_in_the_part_that_it_breaks(kernel, fault):
    verdict = exact.check_kernel(kernel, TARGET, num_chains=10_000)
    assert not verdict
    assert getattr(verdict, f"{fault}_p_value") < 1e-6
    if fault == "convergence":
        assert verdict.invariance_p_value > 1e-6  # standing still keeps every law
    assert verdict.total_variation > 3 * verdict.expected_total_variation
    assert "FAILED" in str(verdict)


def test_walks_are_reproducible_and_start_where_they_are_told():
    x = jnp.zeros((5, 3), jnp.int8)
    ends = [exact.walk(jax.random.key(seed), TARGET, OneFlip(), x, 7) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (np.asarray(ends[0]) != np.asarray(ends[2])).any()
    one = exact.walk(jax.random.key(0), TARGET, OneFlip(), x, 1)
    assert (np.asarray(one).sum(axis=1) <= 1).all()


@pytest.mark.parametrize("num_chains", [0, 1, 30])
def test_a_proof_of_nothing_is_refused(num_chains, as_a_user):
    with pytest.raises(ValueError, match=f"num_chains must be at least .* but got {num_chains}"):
        exact.check_kernel(OneFlip(), TARGET, num_chains=num_chains)


def test_a_target_of_one_state_proves_nothing():
    certain = Target.from_log_prob(lambda e: jnp.where(jnp.all(e == 0), 0.0, -jnp.inf), Binary(3))
    with pytest.raises(ValueError, match="one possible state only"):
        exact.check_kernel(OneFlip(), certain)


class Leaver(OneFlip):
    """Leaves the space."""

    def step(self, key, target, state):
        after, info = super().step(key, target, state)
        return after._replace(x=after.x - 1), info


def test_a_kernel_that_leaves_its_space_is_told_so():
    with pytest.raises(ValueError, match=r"Leaver must stay in its space of codes 0..1, but it produced code -"):
        exact.check_kernel(Leaver(), TARGET, num_chains=1000)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: exact.check_kernel("pasx", TARGET), "kernel must be a kernel, .* but got 'pasx'"),
        (lambda: exact.check_kernel(OneFlip, TARGET), "but got the class OneFlip"),
        (lambda: exact.check_kernel(OneFlip(), "target"), "target must be a discrax Target"),
        (lambda: exact.check_kernel(OneFlip(), TARGET, key=3), "key must be one JAX key"),
        (
            lambda: exact.check_kernel(OneFlip(), TARGET, threshold=2.0),
            "threshold must be greater than 0 and less than 1",
        ),
        (lambda: exact.check_kernel(OneFlip(), TARGET, num_steps=0), "num_steps must be at least 1, but got 0"),
        (lambda: exact.law(Target.from_log_prob(lambda e: jnp.sum(e) * jnp.nan, Binary(2))), "but it is NaN"),
        (lambda: exact.law(Target.from_log_prob(lambda e: jnp.sum(e) - jnp.inf, Binary(2))), "-inf everywhere"),
        (lambda: exact.draw(jax.random.key(0), TARGET, 0), "num must be at least 1, but got 0"),
    ],
)
def test_bad_input_is_a_sentence(build, words, as_a_user):
    with pytest.raises((TypeError, ValueError), match=words):
        build()
