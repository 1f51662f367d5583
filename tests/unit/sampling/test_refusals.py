"""Calls that were once accepted and wrong, or ended in somebody else's traceback."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax
from discrax import Binary, Target, Tempered, samplers, targets
from discrax.core.kernel import replaced, scalar_info

from ..helpers import OneFlip

pytestmark = pytest.mark.usefixtures("as_a_user")

KEY = jax.random.key(0)
TARGET = targets.Bernoulli(np.full(4, 0.4))
SETTINGS = {"num_chains": 3, "num_warmup": 0, "num_samples": 5}


def says(call, *parts: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"
    assert message.endswith("."), message


def sample(target=TARGET, sampler="gibbs", **settings):
    return discrax.sample(KEY, target, sampler, **SETTINGS | settings)


def function(log_prob):
    return Target.from_log_prob(log_prob, Binary(4))


def test_impossible_starts_are_drawn_again_a_bounded_number_of_times():
    """Where a hard constraint allows one state in 16, and where it allows none."""
    rare = function(lambda e: jnp.where(e.sum() == 4, 0.0, -jnp.inf))
    result = sample(rare, num_warmup=0)
    assert (result.draws == 1).all()
    nowhere = function(lambda e: e.sum() * 0 - jnp.inf)
    says(lambda: sample(nowhere), "after 100 draws 3 of 3 random starts still have log_prob = -inf", "`init`")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: Target.from_log_prob(jnp.sum, 4), ["space must be a discrax space", "but got int"]),
        (lambda: Target.from_log_prob(jnp.sum, Binary), ["such as Binary(...)", "but got the class itself"]),
        (lambda: Target.from_log_prob(3, Binary(2)), ["log_prob must be a function of the embedding"]),
        (lambda: sample(keep=lambda x: None), ["keep must return an array", "but it returns None"]),
        (lambda: sample(keep=lambda x: x.nothing), ["keep must be a function that JAX can trace", "AttributeError"]),
        (lambda: sample(num_samples=10**13), ["fewer than 2^32 steps"]),
        (lambda: sample(num_chains=10**11), ["memory, but 100,000,000,000 chains", "iB"]),
        (lambda: sample(num_chains=10**6, num_samples=10**6), ["memory, but", "keep='moments'"]),
        (lambda: sample(init=[[0, 1], [0]]), ["init must be an array of codes"]),
        (lambda: Tempered(TARGET, np.nan), ["beta must be finite, but holds nan"]),
        (lambda: Tempered(TARGET, np.inf), ["beta must be finite, but holds inf"]),
        (lambda: Tempered(TARGET, np.ones(3)), ["beta must be one number, but got an array of float64"]),
        (lambda: Tempered("target", 1.0), ["Tempered takes a discrax Target"]),
        (lambda: samplers.gibbs(None), ["scan must be a name", "but got None"]),
        (lambda: samplers.pas(path_length="a"), ["path_length must be real numbers, but got 'a'"]),
        (lambda: samplers.dmala(step_size=1j), ["step_size must be real numbers, but got 1j"]),
        (lambda: samplers.block_gibbs(2.5), ["block_size must be a whole number, but got 2.5"]),
        (lambda: samplers.hamming_ball(3, 4), ["radius is how many sites of a block may change", "but got 4"]),
    ],
)
def test_what_was_accepted_or_ended_in_a_traceback(call, parts):
    says(call, *parts)


class Unhashable:
    """A callable that cannot be a key of a dictionary."""

    __hash__ = None

    def __call__(self, e):
        return jnp.sum(e)


def test_an_unhashable_callable_is_a_function_like_any_other():
    result = sample(Target.from_log_prob(Unhashable(), Binary(4)), num_warmup=0)
    assert result.num_draws == SETTINGS["num_samples"]


@pytest.mark.parametrize("build", [samplers.block_gibbs, samplers.hamming_ball], ids=["block", "ball"])
def test_blocks_shrink_to_the_space(build):
    """Their default sizes are larger than this space."""
    result = sample(targets.Bernoulli(np.full(1, 0.5)), build(), num_warmup=0)
    assert set(np.unique(result.draws)) == {0, 1}


class Frozen(OneFlip):
    """Proposes nothing."""

    def step(self, key, target, state):
        return state, scalar_info(1, True, 0, 1, False)


class Rejected(OneFlip):
    def step(self, key, target, state):
        return state, scalar_info(0, False, 0, 1, False)


@pytest.mark.parametrize(
    ("kernel", "why"), [(Frozen(), "nothing was proposed"), (Rejected(), "everything was rejected")]
)
def test_a_kernel_that_never_moved_in_warm_up_ends_with_a_sentence(kernel, why):
    says(
        lambda: sample(sampler=kernel, num_warmup=50),
        f"{type(kernel).__name__} must move in warm-up, but none of 3 chains did in 50 steps: {why}",
    )
    assert sample(sampler=kernel, num_warmup=0).num_draws  # as it is


def test_a_field_with_a_typo_is_named():
    says(lambda: replaced(samplers.pas(), path_lenght=3.0), "PAS has no field 'path_lenght'", "path_length")
