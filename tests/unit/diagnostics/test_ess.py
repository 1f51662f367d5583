"""ESS against theory and against its formulas written out."""

import sys

import numpy as np
import pytest

from discrax.diagnostics import autocorrelation, ess, is_constant


def autoregressive(phi: float, num_chains: int, num_draws: int, seed: int = 0) -> np.ndarray:
    """Stationary AR(1) chains; their ESS is N (1 - phi) / (1 + phi)."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num_draws, num_chains)) * np.sqrt(1 - phi**2)
    values = np.empty((num_draws, num_chains))
    values[0] = rng.normal(size=num_chains)
    for t in range(1, num_draws):
        values[t] = phi * values[t - 1] + noise[t]
    return values.T


def written_out(chain: np.ndarray, rule: str) -> float:
    """ESS = N / (-1 + 2 sum of (1 - k/N) rho_k over the kept lags), lag by lag."""
    n = len(chain)
    s = chain - chain.mean()
    c = [np.sum(s[: n - k] * s[k:]) / (n - k) for k in range(n)]
    rho = np.array(c) / c[0]
    total = -1.0
    if rule == "first_negative":
        for k in range(n):
            if rho[k] < 0:
                break
            total += 2 * (1 - k / n) * rho[k]
    else:
        for k in range(0, n - 1, 2):
            if rho[k] + rho[k + 1] < 0:
                break
            total += 2 * ((1 - k / n) * rho[k] + (1 - (k + 1) / n) * rho[k + 1])
    return n / total


@pytest.mark.parametrize("rule", ["first_negative", "positive_pairs"])
@pytest.mark.parametrize("num_draws", [150, 151])
@pytest.mark.parametrize("phi", [-0.1, 0.0, 0.5, 0.95])
def test_formulas(rule, num_draws, phi):
    chains = autoregressive(phi, 5, num_draws, seed=3)
    np.testing.assert_allclose(ess(chains, rule), [written_out(chain, rule) for chain in chains], rtol=1e-9)


@pytest.mark.parametrize("rule", ["first_negative", "positive_pairs"])
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autoregressive_chains_have_their_theoretical_ess(rule, phi):
    """The mean over 100 chains of 4,000 draws is within 8% (the estimate of one chain scatters by 10%)."""
    chains = autoregressive(phi, 100, 4000)
    assert ess(chains, rule).mean() == pytest.approx(4000 * (1 - phi) / (1 + phi), rel=0.08)


def test_only_pairs_see_that_alternating_chains_are_better_than_independent():
    chains = autoregressive(-0.5, 100, 4000)
    assert ess(chains, "first_negative").mean() == pytest.approx(4000, rel=0.01)
    assert ess(chains, "positive_pairs").mean() == pytest.approx(12_000, rel=0.1)


def test_an_alternating_chain_is_not_worth_its_draws_squared():
    """Where the sum over pairs is negative the formula has no answer, and N^2 is none (Stan stops at N log10 N)."""
    chains = autoregressive(-0.6, 5, 150, seed=3)
    worth = ess(chains, "positive_pairs")
    assert min(written_out(chain, "positive_pairs") for chain in chains) < 0  # the case in question is among them
    assert worth.max() <= 150 * 30


@pytest.mark.parametrize("rule", ["first_negative", "positive_pairs"])
def test_a_constant_chain_has_no_effective_draws(rule):
    chains = np.stack([np.full(500, 0.1), np.random.default_rng(0).normal(size=500), np.zeros(500)])
    out = ess(chains, rule)
    assert (out[0], out[2]) == (0, 0)
    assert out[1] > 100
    np.testing.assert_array_equal(is_constant(chains), [True, False, True])


def test_one_move_in_the_whole_chain_is_little():
    chain = np.r_[np.zeros(500), np.ones(500)]
    assert 0 < ess(chain[None])[0] < 5


def test_a_few_draws_are_too_few():
    assert ess(np.array([[1.0, 2.0, 3.0]])).tolist() == [0.0]


def test_scale_and_offset_do_not_matter():
    chains = autoregressive(0.7, 4, 1000)
    np.testing.assert_allclose(ess(1e3 * chains - 5e5), ess(chains), rtol=1e-6)


def test_autocorrelation():
    chains = autoregressive(0.8, 1, 300)
    s = chains[0] - chains[0].mean()
    direct = [np.mean(s[: 300 - k] * s[k:]) / np.mean(s * s) for k in range(300)]
    np.testing.assert_allclose(autocorrelation(chains)[0], direct, atol=1e-10)
    assert np.isnan(autocorrelation(np.ones((1, 10)))).all()


def test_unknown_rule():
    with pytest.raises(ValueError, match="Unknown truncation rule 'geyer'; known: first_negative, positive_pairs"):
        ess(np.zeros((1, 10)), "geyer")


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros((0, 0)), np.zeros((3, 0))])
def test_chains_without_draws_are_neither_constant_nor_not(values):
    with pytest.raises(ValueError, match="an axis of draws, at least one"):
        is_constant(values)


@pytest.mark.parametrize("rule", ["first_negative", "positive_pairs"])
def test_many_draws_are_judged_chain_by_chain(monkeypatch, rule):
    values = autoregressive(0.5, 6, 200).reshape(2, 3, 200)
    expected = ess(values, rule)
    monkeypatch.setattr(sys.modules[ess.__module__], "_MOST_AT_ONCE", 10)
    np.testing.assert_allclose(ess(values, rule), expected, rtol=1e-12)
