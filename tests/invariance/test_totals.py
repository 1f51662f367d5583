"""Swaps keep totals and the law: on random targets, with fixed paths and tuned as a user would."""

import zlib

import jax
import numpy as np
import pytest
from jaxtyping import Array

import discrax as dx
from discrax.core.kernel import replaced
from discrax.samplers.swap import Swap
from repeats import repeats

from .exactness import THRESHOLD, selected
from .kernels import WEIGHTS, AnyWeight
from .small_targets import cubic

SPACES = {
    "exactly": lambda: dx.Binary(6, exactly=2),
    "one-hot": lambda: dx.Binary(7, groups=[0, 0, 0, 1, 1, 1, -1], at_most=1),
    "spins": lambda: dx.Spin(5, at_least=-1, at_most=3),
    "ordinal": lambda: dx.Ordinal(4, [-1.0, -0.5, 0.0, 0.5], exactly=-1.0),
    "ordinal-groups": lambda: dx.Ordinal(5, [0.0, 1.0, 2.0], groups=[0, 1, 0, 1, 0], exactly=[3, 2]),
    "frozen": lambda: dx.Ordinal(5, [-1, 0, 1], groups=[0, 0, 0, 1, 1], at_least=[0, -1], **FROZEN),
    "no totals": lambda: dx.Binary(4),
}
FROZEN = {"frozen": np.arange(5) == 1, "frozen_codes": 2 * (np.arange(5) == 1)}


def check(kernel: dx.Kernel, target: dx.Target, key: Array, num_steps: int = 100) -> dx.exact.Verdict:
    return dx.exact.check_kernel(
        kernel, target, key=key, num_chains=20_000, num_convergence_steps=num_steps, threshold=THRESHOLD
    )


def assert_exact(kernel: dx.Kernel, target: dx.Target, key: Array) -> None:
    verdict = check(kernel, target, key)
    assert verdict, str(verdict)


def quadratic(space: dx.Space, strength: float = 0.7) -> dx.Target:
    rng = np.random.default_rng(zlib.crc32(repr(space.shape).encode()))
    matrix = strength * np.triu(rng.normal(size=(space.num_sites,) * 2), 1)
    return dx.targets.Quadratic(space, matrix + matrix.T, rng.normal(size=space.num_sites) / 2)


FAMILIES = {"cubic": cubic, "quadratic": quadratic}  # first-order log-ratios, and exact ones
KERNELS = {
    "swap-1": lambda: dx.samplers.swap(1.0, AnyWeight("sqrt")),
    "swap-2.5": lambda: dx.samplers.swap(2.5, AnyWeight("sqrt")),
    "uniform-1.5": lambda: dx.samplers.swap_uniform(1.5),
}
QUICK = {("exactly", "quadratic", "swap-2.5"), ("one-hot", "cubic", "swap-2.5")}
PAIRS = [(family, kernel) for family in FAMILIES for kernel in KERNELS]
CASES = [(space, *pair) for space in SPACES for pair in PAIRS]


@pytest.mark.parametrize(("space", "family", "kernel"), selected(CASES, lambda *case: case in QUICK))
def test_swaps_are_exact(space, family, kernel, key):
    target = dx.Tempered(FAMILIES[family](SPACES[space]()), 1.3)
    assert_exact(KERNELS[kernel](), target, key)


@pytest.mark.slow
@pytest.mark.parametrize("weight", repeats(["ratio"], [name for name in WEIGHTS if name != "sqrt"]))
def test_swaps_are_exact_with_every_weight_function(weight, key):
    assert_exact(dx.samplers.swap(2.5, AnyWeight(weight)), cubic(SPACES["one-hot"]()), key)


TURNS = [("exactly", "swap_uniform"), ("one-hot", "swap"), ("ordinal-groups", "auto")]
TUNED = repeats(TURNS, [(space, sampler) for space, _ in TURNS for _, sampler in TURNS])


@pytest.mark.slow
@pytest.mark.parametrize(("space", "sampler"), TUNED)
def test_a_tuned_sampler_keeps_the_law(space, sampler, key):
    target = quadratic(SPACES[space]())
    settings = {"num_chains": 64, "num_warmup": 400, "num_samples": 400, "progress": False}  # one program
    result = dx.sample(key, target, sampler, **settings)
    target.space.check(result.draws)
    assert_exact(result.kernel, target, key)


class StaleSwap(Swap):
    """A twin that weighs the way back by the log-ratios of the state it came from."""

    def move_to(self, target, state, y, sites):
        return super().move_to(target, state, y, sites)._replace(cache=state.cache)


@pytest.mark.parametrize("space", ["exactly", pytest.param("one-hot", marks=pytest.mark.slow)])
def test_a_twin_with_stale_weights_is_found(space, key):
    verdict = check(StaleSwap(2.5, AnyWeight("sqrt")), quadratic(SPACES[space]()), key, num_steps=2)
    assert not verdict
    assert verdict.invariance_p_value < 1e-6


class Careless(Swap):
    """A twin that lets every total change as it likes."""

    def step(self, key, target, state):
        return super().step(key, replaced(target, space=dx.Binary(target.space.shape)), state)


def test_a_twin_that_breaks_totals_is_found(key):
    with pytest.raises(ValueError, match="must total 2"):
        check(Careless(1.0), quadratic(SPACES["exactly"]()), key, num_steps=2)


def test_many_groups_of_different_size_are_kept():
    groups = np.repeat(np.arange(7), [1, 2, 3, 5, 8, 13, 8])
    high = np.array([1, 1, 2, 3, 4, 6, 8])
    space = dx.Binary(40, groups=groups, at_least=np.minimum(high, 2) // 2, at_most=high)
    target = quadratic(space, strength=0.1)
    result = dx.sample(jax.random.key(0), target, "swap", num_chains=8, num_warmup=100, num_samples=100, progress=False)
    space.check(result.draws)
    totals = np.add.reduceat(result.draws, np.searchsorted(groups, np.arange(7)), axis=-1)
    assert (np.ptp(totals, axis=(0, 1)) > 0).all()  # those that may change do
    assert 0.3 < result.stats["accept_prob"].mean() < 0.9
