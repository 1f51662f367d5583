"""`sampler="auto"`: what it tries, what it takes, and what it says."""

import importlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core import driver
from discrax.sampling.auto import candidates_for

from ..helpers import OneFlip

ISING = dx.targets.Ising.lattice((6, 6), 0.3, 0.1)


class Hands:
    """A clock that goes on by `tick` at every look, which then grows."""

    def __init__(self):
        self.time, self.tick, self.growth = 0.0, 1e-3, 1.0

    def now(self):
        self.time += self.tick
        self.tick *= self.growth
        return self.time


@pytest.fixture(autouse=True)
def hands(monkeypatch):
    """A chunk of any candidate takes a millisecond, whatever the machine does."""
    hands = Hands()
    for module in (driver, importlib.import_module("discrax.sampling.auto")):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=hands.now))
    return hands


def sample(target, sampler="auto", **settings):
    settings = {"num_chains": 10, "num_warmup": 40, "num_samples": 20} | settings
    return dx.sample(jax.random.key(0), target, sampler, **settings)


def test_the_best_of_the_candidates_is_taken_and_the_summary_says_what_was_tried():
    result = sample(ISING, dx.auto(seconds=100, candidates=(OneFlip(), dx.samplers.gibbs("chromatic"))))
    report = result.reports[0]
    assert report.chosen == "ChromaticGibbs"
    assert type(result.kernel).__name__ == "ChromaticGibbs"
    assert [trial.name for trial in report.trials] == ["ChromaticGibbs", "OneFlip"]
    assert report.trials[0].score > report.trials[1].score
    assert "auto chose ChromaticGibbs" in str(result.summary())


@pytest.mark.parametrize(("growth", "chosen"), [(1.5, "gibbs"), (1 / 1.5, "gibbs (2)")])
def test_of_two_that_move_alike_the_faster_is_taken(growth, chosen, hands):
    """A clock that slows down makes the second one cheap, one that speeds up the first."""
    hands.growth = growth
    both = dx.auto(seconds=100, candidates=("gibbs", dx.samplers.gibbs("systematic")))
    assert sample(ISING, both).reports[0].chosen == chosen


def test_the_budget_ends_the_pilot_but_never_before_there_are_two_to_choose_from():
    result = sample(ISING, dx.auto(seconds=1e-3, candidates=("gibbs", dx.samplers.gibbs("systematic"), "pas")))
    report = result.reports[0]
    assert {trial.name for trial in report.trials} == {"gibbs", "gibbs (2)"}
    assert report.left_out == ("pas",)
    assert "not tried: pas" in str(report)


def test_by_evaluations_one_key_gives_one_choice_whatever_the_clock_says(hands):
    """With a clock that runs away every candidate is tried, and the choice is the same."""
    candidates = ("gibbs", dx.samplers.gibbs("chromatic"), dx.samplers.gibbs("systematic"))
    first = sample(ISING, dx.auto(candidates=candidates, cost="evaluations")).reports[0]
    hands.tick, hands.growth = 1e3, 1.5
    second = sample(ISING, dx.auto(candidates=candidates, cost="evaluations")).reports[0]
    assert len(first.trials) == 3
    assert [trial[:4] for trial in first.trials] == [trial[:4] for trial in second.trials]
    assert "jump per evaluation" in str(second)


class Wanderer(OneFlip):
    """Jumps far among the improbable: it accepts everything."""

    def step(self, key, target, state):
        after, info = super().step(key, dx.Tempered(target, 0.0), state)
        return after, info._replace(jump=100 * info.jump)


PEAKED = dx.targets.Ising.lattice((6, 6), 0.0, 3.5)  # shares the programs of the other lattice


def test_a_candidate_whose_chains_have_not_come_as_far_is_passed_over():
    report = sample(PEAKED, dx.auto(seconds=100, candidates=(Wanderer(), "gibbs"))).reports[0]
    assert report.trials[0].name == "Wanderer"
    assert report.chosen == "gibbs"
    assert report.behind == ("Wanderer",)
    assert "passed over, at improbable states: Wanderer" in str(report)


def test_chains_that_disagree_in_the_pilot_are_a_warning_with_a_way_out():
    """Half of the chains are in one mode, half in the other, which is less probable; within each they move."""
    modes = dx.targets.Ising.lattice((6, 6), 1.0, 0.5)
    both = np.concatenate([np.zeros((5, 6, 6), int), np.ones((5, 6, 6), int)])
    free = dx.targets.Ising.lattice((6, 6), 0.0, 0.0)
    report = sample(modes, dx.auto(seconds=100, candidates=("gibbs",)), init=both, num_warmup=0).reports[0]
    assert report.trials[0].rhat > 1.2
    assert "In the pilot the chains of gibbs did not agree" in report.warning()
    assert "try another sampler by name" in report.warning()
    assert sample(free, dx.auto(seconds=100, candidates=("gibbs",))).reports[0].warning() is None


def test_a_candidate_that_fails_is_reported_and_the_others_go_on():
    result = sample(ISING, dx.auto(seconds=100, candidates=("mh_uniform", "gibbs")))
    report = result.reports[0]
    assert report.chosen == "gibbs"
    assert report.failed[0][0] == "mh_uniform"
    assert "takes Ordinal spaces" in str(report)
    with pytest.raises(ValueError, match="No candidate could sample this target: mh_uniform"):
        sample(ISING, dx.auto(candidates=("mh_uniform",)))


def test_scores_by_effective_sample_size():
    result = sample(ISING, dx.auto(seconds=100, score="ess", candidates=(OneFlip(), dx.samplers.gibbs("chromatic"))))
    assert result.reports[0].chosen == "ChromaticGibbs"
    assert "ess per second" in str(result.reports[0])


def names(target, differentiable=True):
    return [name for name, _ in candidates_for(target, differentiable=differentiable)]


def test_candidates_suit_the_space_and_the_target():
    assert names(ISING)[0] == "gibbs, chromatic"
    assert {"pas", "dmala", "ab_trace"} <= set(names(ISING))
    function = dx.Target.from_log_prob(jnp.sum, dx.Ordinal(3, [0.0, 1.0, 2.0]))
    assert "gwg_ordinal" in names(function)
    assert "ab_trace" not in names(function)  # its Hessian would take a burn-in
    assert names(function)[0] == "gibbs"  # it sees what a gradient may miss
    assert "pas_exact" in names(function)
    assert names(function, differentiable=False) == ["gibbs", "pas_exact", "rwm", "block_gibbs"]
    dense = dx.targets.Ising.dense(0.1 * (np.ones((12, 12)) - np.eye(12)))
    assert "gibbs, chromatic" not in names(dense)  # as many colours as sites


def test_clusters_are_candidates_where_a_target_has_them():
    assert "swendsen_wang" in names(dx.targets.Ising.lattice((4, 4), 0.4))
    assert "swendsen_wang" in names(dx.targets.Potts.lattice((4, 4), 3, 0.4))
    assert "swendsen_wang" not in names(dx.targets.Ising.lattice((4, 4), -0.4))
    assert "swendsen_wang" not in names(dx.Target.from_log_prob(jnp.sum, dx.Spin(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "takes_clusters"), [(0.1, False), (0.6, True)])
def test_clusters_are_taken_where_the_chains_of_others_disagree(coupling, takes_clusters):
    """log pi is the same on both sides, so that it cannot tell: the share of sites at a level does."""
    magnet = dx.targets.Ising.lattice((12, 12), coupling, periodic=True)
    result = sample(magnet, dx.auto(cost="evaluations"), num_chains=8)
    report = result.reports[0]
    assert (report.chosen == "swendsen_wang") == takes_clusters
    assert ("swendsen_wang" in report.left_out) == (not takes_clusters)
    gibbs = next(trial for trial in report.trials if trial.name == "gibbs, chromatic")
    assert gibbs.disagrees == takes_clusters
    assert not gibbs.rhat > 1.2


@pytest.mark.slow
def test_a_target_without_a_gradient_gets_a_sampler_without_one():
    def log_prob(e):
        return jax.pure_callback(
            lambda e: np.float32(e.sum()), jax.ShapeDtypeStruct((), jnp.float32), e, vmap_method="sequential"
        )

    target = dx.Target.from_log_prob(log_prob, dx.Binary(3))
    result = sample(target, dx.auto(seconds=1e-3), num_chains=2, num_warmup=5, num_samples=5)
    assert result.reports[0].chosen in ("gibbs", "pas_exact")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dx.auto(score="speed"), "score must be 'jump' or 'ess', but got 'speed'"),
        (lambda: dx.auto(cost="money"), "cost must be 'seconds' or 'evaluations', but got 'money'"),
        (lambda: dx.auto(seconds=0), "seconds must be greater than 0, but got 0"),
        (lambda: dx.auto(seconds=np.nan), "seconds must be finite"),
        (lambda: dx.auto(candidates=()), "candidates must be a list of samplers, at least one"),
        (lambda: dx.auto(candidates="pas"), "candidates must be a list of samplers"),
        (lambda: dx.auto(candidates=("pasx",)), "Unknown sampler 'pasx'"),
        (lambda: dx.auto(candidates=(3,)), "A candidate must be a name or a kernel, but got 3"),
    ],
)
def test_bad_settings(build, words, as_a_user):
    with pytest.raises((TypeError, ValueError), match=words):
        build()


# --- Chains that stay apart ------------------------------------------------------------------------------------------


def copies():
    """Three columns that are there twice: one of the copies is in, and any will do; all chains agree on log pi."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(400, 3))
    y = rng.random(400) < 1 / (1 + np.exp(-2 * columns.sum(axis=1)))
    return dx.targets.LogisticRegression(2 * np.tile(columns, 2), y)


def test_chains_that_stay_apart_are_tempered_and_the_summary_says_why(tmp_path):
    target, settings = copies(), {"num_warmup": 500, "num_samples": 2000, "num_chains": 6}
    exact = dx.exact.law(target) @ target.space.enumerate()

    def by_chain(result):
        return np.abs(np.asarray(result.draws).mean(axis=1) - exact).max()

    spec = dx.auto(cost="evaluations", candidates=("dmala",))
    tempered = sample(target, spec, folder=tmp_path / "run", **settings)
    report = tempered.reports[0]
    assert report.apart is not None
    assert report.is_tempered
    assert tempered.tempering.round_trips.min() > 0
    assert "The run is tempered" in str(tempered.summary())
    assert "stayed apart in the pilot" in str(tempered.summary())
    assert by_chain(tempered) < 0.2
    assert by_chain(sample(target, "dmala", **settings)) > 0.4  # without
    again = sample(target, spec, folder=tmp_path / "run", **settings)  # reads what it did
    assert np.array_equal(again.draws, tempered.draws)


def test_chains_that_need_longer_are_not_tempered():
    """Independent sites, of which a pilot redraws a part: chains that begin far apart have not met yet, but will."""
    n = 6000
    target = dx.targets.Bernoulli(np.full(n, 0.5))
    starts = np.stack([np.zeros(n, int), np.ones(n, int)])
    report = sample(target, dx.auto(cost="evaluations", candidates=("gibbs",)), init=starts, num_chains=2).reports[0]
    assert report.trials[0].disagrees
    assert report.apart is None
    assert not report.is_tempered
