"""Adaptive LBP and RWM on 800 independent sites, against table 5 of Sun et al. (2022) and their asymptotic theory.

Jump distances lie between the printed value (theirs are 8-10 % below what the same algorithm gives here, and 12-20 %
below the theory) and the asymptotic value, which finite n stays below. The success probabilities are one random
instance; the margins between the three numbers are several times its noise.
"""

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.samplers.balancing import get_balancing
from repeats import cover, repeats

pytestmark = pytest.mark.optimised  # runs for long

N = 800
RANGES = {"C1": (0.25, 0.75), "C2": (0.15, 0.85), "C3": (0.05, 0.95)}
PRINTED_LBP = {
    ("C1", "sqrt"): 96.96,
    ("C2", "sqrt"): 72.39,
    ("C3", "sqrt"): 53.28,
    ("C1", "ratio"): 100.25,
    ("C2", "ratio"): 78.63,
    ("C3", "ratio"): 64.47,
}
FIRST = [("C1", "ratio"), ("C2", "sqrt"), ("C3", "sqrt")]  # a printed jump of every range
PRINTED_RWM = {"C1": 3.63, "C2": 1.70, "C3": 0.89}


def probabilities(config: str) -> np.ndarray:
    return np.random.default_rng(0).uniform(*RANGES[config], N)


def run(config: str, sampler: dx.Kernel, num_warmup: int, num_samples: int) -> dx.diagnostics.Summary:
    target = dx.targets.Bernoulli(probabilities(config))
    result = dx.sample(
        jax.random.key(0),
        target,
        sampler,
        num_chains=repeats(40, 100),
        num_warmup=num_warmup,
        num_samples=num_samples,
        keep="moments",
    )
    return result.summary()


SLOW = [
    ("C2", "sqrt"),
    ("C2", "ratio"),
    ("C1", "sqrt"),
    ("C3", "sqrt"),
    ("C1", "ratio"),
    ("C3", "ratio"),
    "C1",
    "C2",
    "C3",
]


def cases(names):
    return [
        pytest.param(*([n] if isinstance(n, str) else n), marks=pytest.mark.slow if n in SLOW else ()) for n in names
    ]


@pytest.mark.parametrize(("config", "balancing"), cases(cover(PRINTED_LBP, times=1, first=FIRST)))
def test_adaptive_lbp_lies_between_print_and_theory(config, balancing):
    summary = run(config, dx.samplers.pas(balancing=balancing), 300, 300)
    theory = dx.exact.bernoulli_optimum(probabilities(config), get_balancing(balancing))
    assert summary.acceptance == pytest.approx(0.574, abs=0.02)
    assert PRINTED_LBP[config, balancing] < summary.jump < theory.jump


@pytest.mark.parametrize("config", cases(RANGES))
def test_adaptive_random_walk_reaches_its_rate_and_the_printed_jump(config):
    summary = run(config, dx.samplers.rwm(), 3000, 1000)
    assert summary.acceptance == pytest.approx(0.234, abs=0.02)
    assert summary.jump == pytest.approx(PRINTED_RWM[config], rel=0.1)
