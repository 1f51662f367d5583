"""The asymptotic theory of acceptance and jump distance, against simulation; each claim has a twin that it refuses."""

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.balancing import get_balancing

N = 2000
PROBS = np.random.default_rng(0).uniform(0.25, 0.75, N)


def simulate(kernel):
    target = dx.targets.Bernoulli(PROBS)
    states = (np.random.default_rng(2).random((32, N)) < PROBS).astype(np.int8)  # draws: nothing to burn in
    how = {"num_chains": 32, "num_warmup": 0, "num_samples": 60, "keep": "moments", "init": states}
    summary = dx.sample(jax.random.key(0), target, kernel, **how, adaptation=None).summary()
    return summary.acceptance, summary.jump


@pytest.mark.slow
@pytest.mark.parametrize(("balancing", "path_length"), [("sqrt", 95.0), ("ratio", 200.0), ("sqrt", 320.0)])
def test_paths_are_accepted_as_theory_says(balancing, path_length):
    """Finite n stays a little below it; with another unit it would not fit."""
    theory = dx.exact.scaling(PROBS, get_balancing(balancing))
    acceptance, jump = simulate(dx.samplers.pas(path_length=path_length, balancing=balancing))

    def fits(theory):
        return theory.acceptance(path_length) - 0.06 < acceptance < theory.acceptance(path_length) + 0.01

    assert fits(theory)
    assert not fits(theory._replace(unit=0.75 * theory.unit))
    assert not fits(theory._replace(unit=1.4 * theory.unit)) or path_length < 100
    assert jump == pytest.approx(path_length * acceptance, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("path_length", [3.0, 16.0])
def test_walks_are_accepted_as_theory_says(path_length):
    theory = dx.exact.scaling(PROBS)
    acceptance, _ = simulate(dx.samplers.rwm(path_length=path_length))
    assert acceptance == pytest.approx(theory.acceptance(path_length), abs=0.025)
    assert acceptance != pytest.approx(theory._replace(unit=2 * theory.unit).acceptance(path_length), abs=0.05)


@pytest.mark.parametrize(("power", "rate", "best"), [(3 / 2, 0.574, 1.081), (1 / 2, 0.234, 5.67)])
def test_the_best_rate_depends_on_the_power_alone(power, rate, best):
    for unit in (1.0, 300.0):
        optimum = dx.exact.Scaling(unit, power).optimum
        assert optimum.acceptance == pytest.approx(rate, abs=5e-4)
        assert optimum.path_length / unit == pytest.approx(best, rel=2e-3)
        assert optimum.jump == pytest.approx(optimum.acceptance * optimum.path_length)


def test_the_length_at_a_rate_is_the_inverse_of_the_rate_at_a_length():
    found = dx.exact.scaling(PROBS, get_balancing("sqrt"))
    rates = np.array([0.1, 0.574, 0.9])
    np.testing.assert_allclose(found.acceptance(found.path_length(rates)), rates, rtol=1e-6)
    np.testing.assert_allclose(found.jump(rates), rates * found.path_length(rates))


@pytest.mark.parametrize("balancing", ["sqrt", "ratio", None])
def test_draws_tell_what_the_probabilities_do(balancing):
    """lambda_1 and lambda_2 by means over draws are those of equations 7 and 21; of uniform states they are others."""
    g = None if balancing is None else get_balancing(balancing)
    rng = np.random.default_rng(1)
    target, exact = dx.targets.Bernoulli(PROBS), dx.exact.scaling(PROBS, g)
    draws = (rng.random((300, N)) < PROBS).astype(np.int8)
    assert dx.exact.scaling_at(target, draws, g).unit == pytest.approx(exact.unit, rel=0.02)
    uniform = rng.integers(0, 2, (300, N)).astype(np.int8)
    assert dx.exact.scaling_at(target, uniform, g).unit != pytest.approx(exact.unit, rel=0.02)


def test_equations_7_and_21():
    p, (n, g) = PROBS, (N, np.sqrt)
    w0, w1 = g(p / (1 - p)), g((1 - p) / p)
    mean = np.mean(p * w1 + (1 - p) * w0)
    lambda_1 = np.sqrt(np.sum(p * w1 * (w0 - w1) ** 2) / (4 * mean**2 * np.sum(p * w1)))
    lambda_2 = np.sqrt(2 / n * np.sum((2 * p - 1) * np.log(p / (1 - p))))
    assert dx.exact.scaling(p, get_balancing("sqrt")).unit == pytest.approx((n / lambda_1) ** (2 / 3))
    assert dx.exact.scaling(p).unit == pytest.approx(lambda_2**-2)


def test_fair_bits_are_always_accepted():
    for g in (None, get_balancing("sqrt")):
        assert dx.exact.scaling(np.full(10, 0.5), g).acceptance(7.0) == 1


def test_wrong_input_is_a_sentence():
    with pytest.raises(ValueError, match="probs must be one per site, strictly between 0 and 1"):
        dx.exact.scaling(np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match="The theory is one of binary sites, but this target has 3 levels"):
        dx.exact.scaling_at(dx.targets.Independent(np.zeros((4, 3))), np.zeros((1, 4), np.int8))
    with pytest.raises(ValueError, match="r is a ratio of scales, at least 0"):
        dx.exact.best_exponent(np.array([-1.0]))


def variance_after(alpha, r, num_steps=60, num_chains=200_000):
    """Of q(y|x) ~ (pi(y) / pi(x))^alpha exp(-(y - x)^2 / (2 sigma)), pi = N(0, 1), begun in pi and never rejected."""
    rng = np.random.default_rng(0)
    x, variance = rng.normal(size=num_chains), r / (1 + alpha * r)
    for _ in range(num_steps):
        x = x / (1 + alpha * r) + np.sqrt(variance) * rng.normal(size=num_chains)
    return x.var()


@pytest.mark.parametrize("r", [0.3, 1.0, 4.0])
def test_with_the_best_exponent_a_proposal_leaves_the_normal_law_as_it_is(r):
    best = dx.exact.best_exponent(r)
    assert variance_after(best, r) == pytest.approx(1, abs=0.015)
    for twin in (best - 0.1, min(1.0, best + 0.1)):
        assert variance_after(twin, r) != pytest.approx(1, abs=0.03)
