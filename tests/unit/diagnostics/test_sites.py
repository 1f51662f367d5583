"""Marginals of sites and their errors, where they are known."""

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.diagnostics.sites import diagnose_sites


def flips(probability, chains, draws, sites, seed=0):
    """Bits that stay with a probability from draw to draw, else are thrown anew: autocorrelation `probability`^t."""
    generator = np.random.default_rng(seed)
    fresh, stays = (
        generator.random((chains, draws, sites)) < 0.3,
        generator.random((chains, draws, sites)) < probability,
    )
    codes = fresh.copy()
    for t in range(1, draws):
        codes[:, t] = np.where(stays[:, t], codes[:, t - 1], fresh[:, t])
    return codes.astype(np.int8)


@pytest.mark.parametrize("stays", [0.0, 0.8])
def test_errors_are_honest(stays):
    """Of 400 sites with the same law the deviations have the standard error that is told, and the ESS its size."""
    found = diagnose_sites(flips(stays, 4, 2_000, 400), 2)
    deviations = (found.probabilities[:, 1] - 0.3) / found.errors[:, 1]
    assert abs(deviations.std() - 1) < 0.12
    assert np.median(found.ess) == pytest.approx(8_000 * (1 - stays) / (1 + stays), rel=0.1)
    assert np.median(found.rhat) < 1.01
    np.testing.assert_allclose(found.probabilities.sum(axis=-1), 1)


def test_the_worst_level_of_a_site_counts():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (4, 1_000, 1))
    codes[:, :, 0] = np.where(np.arange(1_000) // 250 % 2, 2, codes[:, :, 0])  # level 2 comes and goes twice
    found = diagnose_sites(codes, 3)
    assert found.ess[0] < 40
    assert found.probabilities[0, 2] == 0.5


def test_one_chain_has_no_rhat():
    found = diagnose_sites(flips(0.8, 1, 200, 3), 2)
    assert np.isnan(found.rhat).all()
    assert (found.ess > 0).all()


def test_chains_that_disagree_and_sites_that_stay():
    codes = np.zeros((2, 100, 4), np.int8)
    codes[1, :, 1] = 1  # each chain has its own
    codes[:, ::2, 2] = 1
    found = diagnose_sites(codes, 2)
    assert np.isnan(found.rhat[0])
    assert found.ess[0] == 0
    assert np.isnan(found.errors[0]).all()
    assert found.rhat[1] == np.inf
    assert found.ess[1] == 0
    assert found.rhat[2] < 1.01
    assert found.ess[2] > 100


def test_weights_count():
    codes = flips(0.0, 2, 4_000, 3)
    weights = np.where(codes[..., 0] == 1, 3.0, 1.0)
    found = diagnose_sites(codes, 2, weights)
    assert found.probabilities[0, 1] == pytest.approx(0.9 / 1.6, abs=4 * found.errors[0, 1])
    assert found.probabilities[1, 1] == pytest.approx(0.3, abs=4 * found.errors[1, 1])
    assert (found.ess < 8_000).all()


def test_a_result_tells_of_its_sites():
    target = dx.targets.Bernoulli(np.full((3, 5), 0.2))
    result = dx.sample(jax.random.key(0), target, "gibbs", num_samples=600, num_chains=4, num_warmup=0, progress=False)
    summary = result.summary(sites=True)
    assert summary.sites.probabilities.shape == (3, 5, 2)
    assert np.abs(summary.sites.probabilities[..., 1] - 0.2).max() < 5 * summary.sites.errors.max()
    assert "the 10 of 15 sites that are known least" in str(summary)
    few = dx.targets.Bernoulli(np.full((1, 2), 0.2))
    result_of_few = dx.sample(jax.random.key(0), few, "gibbs", num_samples=50, num_warmup=0, progress=False)
    assert "x[0,1]" in str(result_of_few.summary(sites=True))
    table = result.to_dataframe()
    assert table.loc[(3, 599), "x[2,4]"] == result.draws[3, 599, 2, 4]
    assert table.loc[(1, 7), "lp"] == result.stats["lp"][1, 7]
    by_site = result.sites().to_dataframe()
    assert by_site.loc["x[1,2]", "p[1]"] == summary.sites.probabilities[1, 2, 1]
    assert list(by_site.columns) == ["p[0]", "p[1]", "error[0]", "error[1]", "ess", "rhat"]


def test_without_draws_there_is_a_sentence():
    target = dx.targets.Bernoulli(np.full(3, 0.2))
    result = dx.sample(jax.random.key(0), target, "gibbs", num_samples=10, num_warmup=0, keep="moments", progress=False)
    for ask in (result.sites, result.to_dataframe, lambda: result.summary(sites=True)):
        with pytest.raises(ValueError, match=r"need.? draws, but this run kept none; use keep='draws'"):
            ask()
