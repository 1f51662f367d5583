"""Instances of different size in one program: what is added is frozen, and changes nothing."""

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.problems import QUBO
from discrax.solving.padding import pad

RNG = np.random.default_rng(0)
DENSE = [RNG.normal(size=(n, n)) for n in (3, 5)]


def sparse(n: int) -> QUBO:
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return QUBO(RNG.normal(size=n), edges, RNG.normal(size=n - 1))


@pytest.mark.parametrize("problems", [[QUBO(Q) for Q in DENSE], [sparse(3), sparse(40)]], ids=["dense", "sparse"])
def test_a_padded_instance_has_the_law_of_the_instance(problems):
    starts = [problem.init(RNG, 2) for problem in problems]
    targets, x = pad(problems, starts)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *targets)  # they differ in the values of arrays only
    assert stacked.space.frozen.mask.shape == (2, problems[1].space.num_sites)
    assert [int(target.space.num_free) for target in targets] == [problem.space.num_sites for problem in problems]
    for target, states in zip(targets, x, strict=True):
        target.space.check(states)
    np.testing.assert_allclose(dx.exact.law(targets[0]), dx.exact.law(problems[0].target), rtol=1e-5)
    assert float(np.abs(targets[0].linear).max()) < 100


def test_instances_of_one_size_have_no_frozen_sites():
    targets, _ = pad([QUBO(DENSE[0]), QUBO(2 * DENSE[0])], [np.zeros((1, 3), np.int8)] * 2)
    assert all(target.space.frozen is None for target in targets)
