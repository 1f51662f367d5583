"""What a tempered run returns and says, and where its rungs are placed. `test_tempering.py` has its law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.target import log_prob
from discrax.sampling.ladder import Ladder
from discrax.sampling.ladder_tuning import gap_barriers, place_rungs
from unit.sampling.test_tempering import far_modes, short


def test_what_a_tempered_run_returns(tmp_path):
    result = short(tempering=dx.Ladder(4))
    assert result.draws.shape == (3, 150, 3, 3)
    assert result.stats["log_ratio"].shape == (3, 150, 4)
    values = jax.vmap(jax.vmap(lambda x: log_prob(far_modes(), x)))(result.draws)
    np.testing.assert_allclose(result.stats["lp"], values, rtol=1e-5)
    np.testing.assert_allclose(result.stats["log_ratio"][..., -1], values, rtol=1e-5)
    assert len(result.to_dataframe()) == 450
    assert "exchange rates" in str(result.tempering)
    assert "barrier" in str(result.report)
    loaded = dx.load(result.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(loaded.tempering.exchange_rates, result.tempering.exchange_rates)
    assert loaded.tempering.log_normaliser == result.tempering.log_normaliser


@pytest.mark.slow
def test_a_run_of_moments_has_the_report_of_its_warm_up():
    report = short(tempering=dx.Ladder(4), keep="moments").tempering
    assert len(report.exchange_rates) == 3
    assert report.log_normaliser is None


@pytest.mark.slow
def test_a_short_ladder_says_so():
    target = dx.targets.Ising.lattice((16, 16), coupling=0.6)
    settings = {"num_chains": 2, "num_warmup": 100, "num_samples": 100, "progress": False}
    result = dx.sample(jax.random.key(0), target, "gibbs", tempering=dx.Ladder(3), **settings)
    assert "too short" in result.tempering.warning
    assert result.tempering.warning in result.summary().notes


def test_rungs_are_placed_by_the_barrier():
    betas = jnp.asarray([0.0, 0.25, 0.5, 1.0])
    rates = jnp.asarray([0.1, 0.9, 0.9])  # the first gap is too wide
    placed = np.asarray(place_rungs(betas, rates, 4))
    assert placed[0] == 0
    assert placed[-1] == 1
    assert (np.diff(placed) > 0).all()
    assert placed[2] < 0.25  # two rungs where the barrier is
    np.testing.assert_allclose(gap_barriers(np.asarray(rates)), np.asarray(gap_barriers(rates)), rtol=1e-3)
    near = np.array([0.98])
    np.testing.assert_allclose(gap_barriers(near), 1 - near, rtol=1e-3)  # the rate of rejection


@pytest.mark.slow
def test_warm_up_evens_the_exchange_rates_and_auto_takes_as_many_rungs_as_the_barrier_wants():
    target = dx.targets.Ising.lattice((6, 6), coupling=0.5)
    result = dx.sample(jax.random.key(0), target, "dmala", tempering=dx.Ladder(), progress=False)
    report = result.tempering
    assert report.exchange_rates.min() > 0.4
    assert np.ptp(report.exchange_rates) < 0.2
    assert abs(len(report.betas) - (2 * report.barrier + 1)) <= 2
    even = Ladder(betas=np.geomspace(1e-3, 1, len(report.betas)))  # the twin: nothing is placed
    rates = dx.sample(jax.random.key(0), target, "dmala", tempering=even, progress=False).tempering.exchange_rates
    assert np.ptp(rates) > 0.3
