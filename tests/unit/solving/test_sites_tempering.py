"""Clusters that replicas of one temperature exchange: they keep the law of both, and their values."""

import numpy as np
import pytest

from discrax.problems import BinaryQuadratic
from discrax.solving import sites_tempering
from discrax.solving.sites_chains import BinaryChains
from discrax.solving.sites_kernels import streams

from ..helpers import P_VALUE
from .laws import all_states, p_value_of_the_law

LADDER = np.array([0.4, 1.0])


def ring(n: int, *, has_field: bool) -> BinaryQuadratic:
    generator = np.random.default_rng(n)
    edges = np.array([(i, (i + 1) % n) for i in range(n)])
    weights = generator.integers(1, 4, n) * generator.choice([-1.0, 1.0], n)
    linear = -np.bincount(edges.ravel(), np.repeat(weights, 2)) / 2
    return BinaryQuadratic(linear + (generator.integers(-2, 3, n) if has_field else 0), edges, weights)


def joint_p_value(model, chains):
    """Of the pairs of replicas at the coldest rung: were the move to fail, each alone could still look right."""
    one, other = (chains.codes(chains.replicas[np.arange(chains.num_chains), chains.rungs[:, t, -1]]) for t in (0, 1))
    states = all_states(2, model.num_sites)
    pairs = model.value(states)[:, None] + model.value(states)[None]
    return p_value_of_the_law(np.concatenate([one, other], axis=1), pairs.ravel(), 2, LADDER[-1])


def temper(model, num_chains, rounds):
    chains = BinaryChains(model, num_chains, 1)
    chains.begin(None, 0, num_chains)
    chains.begin_tempering(LADDER)
    chains.temper(LADDER, 0, rounds, 0, num_chains)
    return chains


@pytest.mark.parametrize("has_field", [False, True])
def test_clusters_leave_the_law_of_pairs_alone(has_field):
    model = ring(5, has_field=has_field)
    chains = temper(model, 20_000, 30)
    assert chains.rungs.shape[1] == 2
    assert chains._is_symmetric is not has_field
    assert joint_p_value(model, chains) > P_VALUE


def test_a_cluster_that_is_cut_short_is_found():
    """Pairs of exact draws after one move, and after that of a twin that sees no neighbours and flips a single site."""
    whole = sites_tempering.exchange_cluster
    model = ring(5, has_field=True)
    states = all_states(2, 5)
    chains = BinaryChains(model, 1, 1)
    start, others, weights = chains.rows
    energies, generator = model.value(states), np.random.default_rng(0)
    chance = np.exp(energies - energies.max())
    drawn = generator.choice(len(states), (2, 4000), p=chance / chance.sum())
    after = {"whole": [], "cut": []}
    for name, rows in (("whole", start), ("cut", np.zeros_like(start))):
        for (one, other), (a, b) in zip(drawn.T, streams(3, 4000), strict=True):
            spins = chains.from_codes(states[[one, other]])
            fields = np.array([_fields(chains, row) for row in spins])
            whole(
                rows, others, weights, spins[0], fields[0], spins[1], fields[1], False,
                np.empty(5, np.int32), np.zeros(5, np.bool_), a, b,
            )  # fmt: skip
            after[name].append(np.concatenate(chains.codes(spins)))
    pairs = (energies[:, None] + energies[None]).ravel()
    assert p_value_of_the_law(np.array(after["whole"]), pairs, 2, 1.0) > P_VALUE
    assert p_value_of_the_law(np.array(after["cut"]), pairs, 2, 1.0) < P_VALUE


def _fields(chains: BinaryChains, spins: np.ndarray) -> np.ndarray:
    chains.put(spins[None], 0, 1)
    return chains.fields[0].copy()


def test_values_and_fields_stay_those_of_the_states():
    generator = np.random.default_rng(0)
    edges = np.array([(i, (i + d) % 36) for i in range(36) for d in (1, 6)])
    model = BinaryQuadratic(np.zeros(36), edges, generator.choice([-2.0, 2.0], len(edges)))
    chains = temper(model, 3, 40)
    assert len({tuple(replica) for replica in chains.replicas[0]}) > 2
    for chain in range(3):
        for replica in range(chains.replicas.shape[1]):
            spins = chains.replicas[chain, replica]
            assert np.array_equal(_fields(chains, spins), chains.replica_fields[chain, replica])
            assert chains.values[0] == chains.replica_values[chain, replica]
