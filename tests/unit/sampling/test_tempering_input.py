"""Ladders that cannot be: one sentence, before anything is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx

from .test_bad_input import by_name, nothing_is_sampled, says  # noqa: F401

pytestmark = pytest.mark.usefixtures("as_a_user")

SPINS = dx.targets.Ising.lattice((2, 2), coupling=0.4)
BITS = dx.targets.Bernoulli(np.full(4, 0.4))


def temper(target=BITS, sampler="rwm", tempering=None, **ladder):
    tempering = dx.Ladder(**ladder) if tempering is None else tempering
    return dx.sample(jax.random.key(0), target, sampler, num_chains=2, num_samples=5, tempering=tempering)


def function(log_prob):
    return dx.Target.from_log_prob(log_prob, dx.Binary(4))


def not_a_number():
    return function(lambda e: jnp.log(jnp.sum(e) - 1.5))


def first_is_off():
    return function(lambda e: jnp.where(e[0] > 0, -jnp.inf, 0.0) + 0 * jnp.sum(e))


def by_batches():
    data = (np.ones((6, 4)), np.array([0, 1, 0, 1, 1, 0]))
    return dx.targets.TallLogisticRegression(data, batch_size=2)


REFUSED = {
    "one rung": (lambda: temper(num_rungs=1), ["two rungs or more", "is 1"]),
    "an unknown word": (lambda: temper(num_rungs="many"), ['"auto"', "many"]),
    "one beta": (lambda: temper(betas=[1.0]), ["two or more", "(1,)"]),
    "betas out of order": (lambda: temper(betas=[0.5, 0.2, 1.0]), ["increase", "0.2"]),
    "equal betas": (lambda: temper(betas=[0.5, 0.5, 1.0]), ["increase"]),
    "betas that miss the target": (lambda: temper(betas=[0.1, 0.9]), ["end at 1", "0.9"]),
    "a negative beta": (lambda: temper(betas=[-0.5, 1.0]), ["between 0 and 1", "-0.5"]),
    "a beta that is no number": (lambda: temper(betas=[0.1, np.nan, 1.0]), ["betas"]),
    "betas and rungs": (lambda: temper(betas=[0.1, 1.0], num_rungs=3), ["num_rungs is 3", "2 betas"]),
    "no steps": (lambda: temper(num_steps=0), ["num_steps", "at least 1"]),
    "a reference elsewhere": (lambda: temper(reference=SPINS), ["space of the target", "Spin(2, 2)"]),
    "a reference that forbids": (lambda: temper(reference=first_is_off()), ["allow every state", "forbids"]),
    "a reference with NaN": (lambda: temper(reference=not_a_number()), ["log_prob of the reference", "NaN"]),
    "a target with NaN": (lambda: temper(not_a_number()), ["log_prob of the target", "NaN"]),
    "clusters without couplings": (lambda: temper(function(jnp.sum), clusters=True), ["pairwise", "clusters=False"]),
    "mini-batches": (lambda: temper(by_batches(), "sgdld"), ["mini-batches"]),
    "a sampler that is not exact": (lambda: temper(sampler="dula"), ["DULA", "invariant"]),
    "two rules": (
        lambda: dx.sample(jax.random.key(0), BITS, "pas", tempering=dx.Ladder(3), adaptation=[dx.AcceptanceRate()] * 2),
        ["one rule", "has 2"],
    ),
}


@by_name(REFUSED)
def test_a_ladder_that_cannot_be_is_refused(build, parts):
    says(build, *parts)


WRONG_TYPES = {
    "a word": (lambda: temper(tempering="auto"), ["tempering must be a ladder"]),
    "the class": (lambda: temper(tempering=dx.Ladder), ["the class Ladder"]),
    "a fraction of a rung": (lambda: temper(num_rungs=2.5), ["whole number"]),
    "a reference that is no law": (lambda: temper(reference=0.5), ["reference must be", "0.5"]),
    "a cluster by number": (lambda: temper(clusters=3), ["clusters"]),
}


@by_name(WRONG_TYPES)
def test_a_ladder_of_the_wrong_type_is_refused(build, parts):
    says(build, *parts, error=TypeError)
