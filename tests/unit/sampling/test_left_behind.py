"""Chains that refuse everything at the scale that suits the others do not stay where warm-up has left them."""

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.sampling import left_behind
from discrax.sampling.left_behind import is_left_behind
from discrax.sampling.together import sample_together

pytestmark = pytest.mark.runs_long


def frozen_lattice(coupling):
    """In a strong field of random signs; without couplings nothing holds a chain back."""
    rng = np.random.default_rng(0)
    return dx.targets.Ising.lattice((16, 16), coupling, rng.uniform(-3, 3, (16, 16)) + 1.0)


def settings(**more):
    return {"num_chains": 32, "num_warmup": 300, "num_samples": 100} | more


SAMPLER = dx.samplers.dlmcf(per_rate=False)  # a time that is the same number at all states


def test_who_is_left_behind():
    rates = np.full((4, 200), 0.5)
    rates[1, 100:] = 0.06
    rates[2, :100] = 0.0  # it came along later
    assert is_left_behind(rates).tolist() == [False, True, False, False]
    assert not is_left_behind(rates[:, 60:140]).any(), "Forty steps are too few to tell."
    assert not is_left_behind(np.zeros((4, 200))).any(), "Where none moves, none is behind the others."


def test_no_chain_is_left_behind(monkeypatch):
    target = frozen_lattice(1.0)
    freed = dx.sample(jax.random.key(1), target, SAMPLER, **settings())
    count = int(is_left_behind(np.asarray(freed.warmup_stats["accept_prob"])).sum())
    assert count > 2  # more than a twentieth
    tuned, said, again = map(str, freed.reports)
    assert said == f"{count} chains left behind in warm-up, brought along by 400 shorter steps"
    assert tuned.startswith("step_size")
    assert again.startswith("step_size")
    assert freed.report.value > 1.2 * freed.reports[0].value, "The scale was tuned to chains that stood still."
    # A twin that leaves them where they are has another law.
    monkeypatch.setattr(left_behind, "is_left_behind", lambda rates: np.zeros(len(rates), bool))
    left = dx.sample(jax.random.key(1), target, SAMPLER, **settings())
    jumps = [(np.asarray(each.stats["jump"]) == 0).all(axis=1).sum() for each in (freed, left)]
    assert jumps[0] == 0
    assert jumps[1] >= count
    means = [np.asarray(each.stats["lp"]).mean() for each in (freed, left)]
    reference = dx.sample(jax.random.key(2), target, dx.samplers.gibbs("chromatic"), **settings())
    assert abs(means[0] - (exact := np.asarray(reference.stats["lp"]).mean())) < 5 < exact - means[1]


@pytest.mark.slow
def test_few_of_many_leave_the_scale_as_it_is(monkeypatch):
    monkeypatch.setattr(left_behind, "_MANY", 1.0)
    result = dx.sample(jax.random.key(1), frozen_lattice(1.0), SAMPLER, **settings())
    assert [str(each).split()[1] for each in result.reports] == ["chains", "="]
    assert result.report is result.reports[1]
    assert ((np.asarray(result.stats["jump"]) == 0).all(axis=1)).sum() == 0


@pytest.mark.slow
def test_runs_beside_one_that_left_chains_behind_are_as_they_are_alone():
    targets = [frozen_lattice(coupling) for coupling in (1.0, 0.0)]
    keys = list(jax.random.split(jax.random.key(1)))
    together = sample_together(keys, targets, [SAMPLER, SAMPLER], **settings())
    assert [len(result.reports) for result in together] == [3, 1]
    alone = [dx.sample(key, target, SAMPLER, **settings()) for key, target in zip(keys, targets, strict=True)]
    for ours, theirs in zip(together, alone, strict=True):
        assert list(map(str, ours.reports)) == list(map(str, theirs.reports))
        np.testing.assert_array_equal(np.asarray(ours.draws), np.asarray(theirs.draws))


@pytest.mark.slow
def test_a_run_in_a_folder_goes_on_as_if_nothing_had_been(tmp_path):
    target, key = frozen_lattice(1.0), jax.random.key(1)
    whole = dx.sample(key, target, SAMPLER, folder=tmp_path / "whole", **settings(num_samples=200))
    dx.sample(key, target, SAMPLER, folder=tmp_path / "parts", **settings(num_samples=100))
    parts = dx.sample(key, target, SAMPLER, folder=tmp_path / "parts", **settings(num_samples=200))
    np.testing.assert_array_equal(np.asarray(parts.draws), np.asarray(whole.draws))
    assert list(map(str, parts.reports)) == list(map(str, whole.reports))


@pytest.mark.slow
def test_a_signal_meanwhile_loses_nothing(tmp_path, monkeypatch):
    target, key = frozen_lattice(1.0), jax.random.key(1)
    whole = dx.sample(key, target, SAMPLER, folder=tmp_path / "whole", **settings())

    def interrupted(chunks, run, interrupts):
        interrupts.requested = True
        return run

    with monkeypatch.context() as patched:
        patched.setattr(left_behind, "_walk", interrupted)
        begun = dx.sample(key, target, SAMPLER, folder=tmp_path / "parts", **settings())
    assert not begun.is_complete
    assert begun.num_draws == 0
    parts = dx.sample(key, target, SAMPLER, folder=tmp_path / "parts", **settings())
    np.testing.assert_array_equal(np.asarray(parts.draws), np.asarray(whole.draws))
