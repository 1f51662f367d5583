"""The result: its summary, its scalars and its export."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from arviz_stats.base.array import array_stats

import discrax
from discrax import Spin, Target, samplers, targets
from discrax.diagnostics import ess

from ..helpers import OneFlip

KEY = jax.random.key(2)
TARGET = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
SHORT = {"num_chains": 3, "num_warmup": 0, "num_samples": 30, "chunk_size": 10}


def sample(kernel=None, target=TARGET, **changes):
    return discrax.sample(KEY, target, OneFlip() if kernel is None else kernel, **SHORT | changes)


@pytest.fixture(scope="module")
def result():
    return sample()


# --- the summary ---


def test_summary_adds_up(result):
    summary = result.summary()
    assert (summary.num_chains, summary.num_draws) == (3, 30)
    assert summary.acceptance == pytest.approx(result.stats["accept_prob"].mean(), rel=1e-5)
    assert summary.jump == pytest.approx(result.stats["jump"].mean(), rel=1e-5)
    assert summary.evaluations == 90
    assert [scalar.name for scalar in summary.scalars] == ["lp", "distance"]
    assert summary.scalars[0].ess == pytest.approx(ess(result.stats["lp"]).sum())
    assert summary.scalars[1].mean == pytest.approx(result.distance.mean())
    assert summary.title == "OneFlip on Ising"
    assert summary.adaptation is None


def test_thinned_runs_count_all_their_steps():
    summary = sample(num_samples=10, thinning=3).summary()
    assert summary.evaluations == 90
    assert summary.num_draws == 10


def test_moments_give_the_same_summary_but_for_the_scalars(result):
    ours, full = sample(keep="moments").summary(), result.summary()
    assert ours.scalars == ()
    assert ours.ess is None
    assert ours.acceptance == pytest.approx(full.acceptance, rel=1e-4)
    assert ours.evaluations == pytest.approx(full.evaluations)
    assert ours.jump == pytest.approx(full.jump, rel=1e-4)
    assert "3 x 30" in str(ours)


def test_distance_is_the_l1_distance_of_codes_to_one_reference(result):
    """Whatever the reference is, distances at 0..n and one flip apart by one give it away."""
    steps = np.abs(np.diff(result.distance, axis=1))
    moved = (np.diff(result.draws, axis=1) != 0).sum(-1)
    np.testing.assert_array_equal(steps, moved)
    for site in range(4):  # the distance is linear in every site, with slope +1 or -1
        others = np.delete(np.arange(4), site)
        same = {}
        for x, d in zip(result.draws.reshape(-1, 4), result.distance.reshape(-1), strict=True):
            same.setdefault(tuple(x[others]), {})[x[site]] = d
        slopes = {pair[1] - pair[0] for pair in same.values() if len(pair) == 2}
        assert len(slopes) == 1
        assert slopes <= {1.0, -1.0}
    assert sample(keep="moments").distance is None


def test_distance_of_many_levels_does_not_overflow():
    space = discrax.Categorical(50, 200)
    target = targets.Quadratic(space, targets.Uncoupled((50,)))
    result = discrax.sample(KEY, target, "gibbs", **SHORT | {"num_samples": 10})
    assert result.draws.dtype == np.uint8
    assert result.distance.min() > 1000  # about 67 a site


def test_stuck_chains_are_named_and_have_no_ess():
    """One of three chains cannot move: from all ones, every flip is forbidden."""

    def all_ones_is_a_trap(e):
        return jnp.where(
            e.sum() > 3.5, 0.0, jnp.where(e.sum() < -3.5, -jnp.inf, jnp.where(e.sum() > 1.5, -jnp.inf, 0.0))
        )

    target = Target.from_log_prob(all_ones_is_a_trap, Spin(4))
    result = sample(target=target, init=np.array([[0, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0]]))
    summary = result.summary()
    assert summary.stuck_chains == (1,)
    assert "1 of 3 chains never moved (ESS 0): 1." in summary.warnings()
    assert "1 of 3 chains never moved (ESS 0): 1." in str(summary)
    distance = {scalar.name: scalar for scalar in summary.scalars}["distance"]
    assert distance.ess == pytest.approx(ess(result.distance[[0, 2]]).sum())
    assert distance.rhat is None


@pytest.mark.parametrize("keep", ["draws", "moments"])
def test_sites_that_never_moved_are_counted_but_not_the_frozen(keep):
    """A strong field holds two sites, and one is frozen."""
    space = Spin(4, frozen=np.array([True, False, False, False]))
    target = targets.Quadratic(space, targets.Uncoupled((4,)), np.array([0.0, 200.0, 0.0, -200.0]))
    result = discrax.sample(KEY, target, "gibbs", **SHORT | {"num_samples": 40}, keep=keep, init=np.array([0, 1, 0, 0]))
    assert result.summary().never_moved == 2
    assert "2 free sites have the same code in every draw." in str(result.summary())


def test_a_rate_that_was_missed_is_said():
    """Every proposal is accepted, whatever the step size."""
    target = targets.Bernoulli(np.full(4, 0.5))
    result = discrax.sample(KEY, target, "dmala", num_chains=3, num_warmup=20, num_samples=10, chunk_size=10)
    assert "Warm-up asked for acceptance 0.574 but ended at 1.000." in result.summary().warnings()
    assert "asked for acceptance 0.574, reached 1.000 in 20 steps" in str(result.summary()).replace("\n", " ")


# --- bad log-probabilities at proposals ---


class Hole(eqx.Module):
    """Defined up to three ones; beyond, it is what the test says (a leaf, so that the programs are shared)."""

    bad: jax.Array

    def __call__(self, e):
        return jnp.where(e.sum() > 3.5, self.bad, 0.2 * e.sum())


def with_hole(bad: float):
    return Target.from_log_prob(Hole(jnp.float32(bad)), discrax.Binary(6))


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=["nan", "inf"])
@pytest.mark.parametrize("sampler", ["rwm", "dmala", "gibbs"])
def test_bad_proposals_are_rejected_counted_and_reported(sampler, bad):
    result = discrax.sample(KEY, with_hole(bad), sampler, **SHORT, init=np.zeros(6, int))
    assert (result.draws.sum(-1) <= 3).all()
    assert np.isfinite(result.stats["lp"]).all()
    assert np.isfinite(result.stats["accept_prob"]).all()
    count = int(result.stats["is_invalid"].sum())
    assert count > 0
    if sampler != "gibbs":
        assert not (result.stats["is_invalid"] & result.stats["is_accepted"]).any()
    summary = result.summary()
    assert summary.invalid == count
    assert f"{count} proposals had a NaN or +inf log-probability and were rejected." in str(summary)


def test_bad_proposals_are_counted_in_warm_up_in_thinned_runs_and_with_moments():
    target, init = with_hole(np.nan), np.zeros(6, int)
    settings = {"num_chains": 3, "init": init, "chunk_size": 10}
    every = discrax.sample(KEY, target, OneFlip(), num_warmup=0, num_samples=30, **settings)
    count = int(every.stats["is_invalid"].sum())
    assert every.summary().invalid == count > 0
    for changes in (
        {"num_warmup": 0, "num_samples": 10, "thinning": 3},
        {"num_warmup": 10, "num_samples": 20},
        {"num_warmup": 0, "num_samples": 30, "keep": "moments"},
    ):
        assert discrax.sample(KEY, target, OneFlip(), **settings, **changes).summary().invalid == count


def test_impossible_proposals_are_ordinary_rejections():
    result = sample(target=with_hole(-np.inf), init=np.zeros(6, int))
    assert (result.draws.sum(-1) <= 3).all()
    assert result.summary().invalid == 0


# --- ArviZ ---


def test_arviz_holds_draws_and_statistics(result):
    tree = result.to_arviz()
    assert isinstance(tree, xarray.DataTree)
    assert set(tree.children) == {"posterior", "sample_stats"}
    assert tree.posterior["x"].dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(tree.posterior["x"].values, result.draws)
    np.testing.assert_array_equal(tree.sample_stats["lp"].values, result.stats["lp"])
    assert set(tree.sample_stats.data_vars) == set(result.stats)
    assert tree.attrs["inference_library"] == "discrax"
    assert (tree.attrs["sampler"], tree.attrs["is_complete"]) == ("OneFlip", 1)


def test_arviz_holds_warm_up_in_groups_of_its_own():
    tuned = discrax.sample(
        KEY, TARGET, samplers.dmala(), num_chains=3, num_warmup=20, num_samples=10, chunk_size=10, keep_warmup=True
    )
    tree = tuned.to_arviz()
    assert set(tree.children) == {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    np.testing.assert_array_equal(tree.warmup_posterior["x"].values, tuned.warmup_draws)
    assert tree.warmup_sample_stats.sizes["draw"] == 20
    assert tree.posterior.sizes["draw"] == 10
    assert tree.attrs["step_size"] == pytest.approx(tuned.report.value)


def two_numbers(x):
    return {"total": jnp.sum(x), "first": x[0]}


def one_number(x):
    return jnp.sum(x)


def a_pair(x):
    return jnp.sum(x), x[0]


def test_arviz_holds_statistics_by_their_names():
    assert set(sample(keep=two_numbers).to_arviz().posterior.data_vars) == {"total", "first"}
    kept = sample(keep=one_number)
    np.testing.assert_array_equal(kept.to_arviz().posterior["statistic"].values, kept.kept)


def test_arviz_holds_a_statistic_of_several_parts():
    posterior = sample(keep=a_pair).to_arviz().posterior
    assert len(posterior.data_vars) == 2


def test_moments_have_nothing_to_export():
    with pytest.raises(
        ValueError, match="running moments only has no draws to export; use keep='draws' or a statistic"
    ):
        sample(keep="moments").to_arviz()


def test_arviz_reads_the_tree(result):
    """A rank-normalised ESS of every site, by ArviZ from the tree, is finite."""
    posterior = result.to_arviz().posterior
    per_site = [array_stats.ess(posterior["x"].values[..., site], chain_axis=0, draw_axis=1) for site in range(4)]
    assert np.isfinite(per_site).all()
    assert posterior["x"].mean(("chain", "draw")).shape == (4,)
