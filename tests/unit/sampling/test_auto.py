"""`sampler="auto"`: what it tries, what it takes, and what it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.sampling.auto import candidates_for

ISING = dx.targets.Ising.lattice((6, 6), 0.3, 0.1)


def sample(target, sampler="auto", **settings):
    settings = {"num_chains": 10, "num_warmup": 40, "num_samples": 20} | settings
    return dx.sample(jax.random.key(0), target, sampler, **settings)


def test_the_best_of_the_candidates_is_taken_and_the_summary_says_what_was_tried():
    result = sample(ISING, dx.auto(seconds=100, candidates=("gibbs", dx.samplers.gibbs("chromatic"))))
    report = result.reports[0]
    assert report.chosen == "ChromaticGibbs"
    assert type(result.kernel).__name__ == "ChromaticGibbs"
    assert [trial.name for trial in report.trials] == ["ChromaticGibbs", "gibbs"]
    assert report.trials[0].score > report.trials[1].score
    assert "auto chose ChromaticGibbs" in str(result.summary())


def test_the_budget_ends_the_pilot_after_the_first_candidate():
    result = sample(ISING, dx.auto(seconds=1e-3, candidates=("gibbs", "rwm", "pas")))
    report = result.reports[0]
    assert [trial.name for trial in report.trials] == ["gibbs"]
    assert report.left_out == ("rwm", "pas")
    assert "not tried for want of time: rwm, pas" in str(report)


def test_a_candidate_that_fails_is_reported_and_the_others_go_on():
    result = sample(ISING, dx.auto(seconds=100, candidates=("mh_uniform", "gibbs")))
    report = result.reports[0]
    assert report.chosen == "gibbs"
    assert report.failed[0][0] == "mh_uniform"
    assert "takes Ordinal spaces" in str(report)
    with pytest.raises(ValueError, match="No candidate could sample this target: mh_uniform"):
        sample(ISING, dx.auto(candidates=("mh_uniform",)))


def test_scores_by_effective_sample_size():
    result = sample(ISING, dx.auto(seconds=100, score="ess", candidates=("gibbs", dx.samplers.gibbs("chromatic"))))
    assert result.reports[0].chosen == "ChromaticGibbs"
    assert "ess per second" in str(result.reports[0])


def names(target, differentiable=True):
    return [name for name, _ in candidates_for(target, differentiable=differentiable)]


def test_candidates_suit_the_space_and_the_target():
    assert names(ISING)[:2] == ["gibbs, chromatic", "ab_trace"]
    assert {"pas", "dmala"} <= set(names(ISING))
    function = dx.Target.from_log_prob(jnp.sum, dx.Ordinal(3, [0.0, 1.0, 2.0]))
    assert "gwg_ordinal" in names(function)
    assert "ab_trace" not in names(function)  # its Hessian would take a burn-in
    assert names(function, differentiable=False) == ["rwm", "gibbs", "block_gibbs"]
    dense = dx.targets.Ising.dense(0.1 * (np.ones((12, 12)) - np.eye(12)))
    assert "gibbs, chromatic" not in names(dense)  # as many colours as sites


@pytest.mark.slow
def test_a_target_without_a_gradient_gets_a_sampler_without_one():
    def log_prob(e):
        return jax.pure_callback(
            lambda e: np.float32(e.sum()), jax.ShapeDtypeStruct((), jnp.float32), e, vmap_method="sequential"
        )

    target = dx.Target.from_log_prob(log_prob, dx.Binary(3))
    result = sample(target, dx.auto(seconds=0.1), num_chains=2, num_warmup=5, num_samples=5)
    assert result.reports[0].chosen == "rwm"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dx.auto(score="speed"), "auto scores by 'jump' or 'ess', but got 'speed'"),
        (lambda: dx.auto(seconds=0), "positive number of seconds, but got 0"),
        (lambda: dx.auto(candidates=()), "at least one candidate"),
    ],
)
def test_bad_settings(build, words):
    with pytest.raises(ValueError, match=words):
        build()
