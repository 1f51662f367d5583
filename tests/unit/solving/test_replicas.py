"""Replicas: the law of sweeps in every arrangement and of all that replicas do to each other, by enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.core import programs
from discrax.problems.problem import BinaryQuadratic
from discrax.solving import replica_chains, replica_moves, replica_program, replicas
from discrax.solving.replica_chains import ReplicaChains
from discrax.solving.replica_moves import descendants

from ..helpers import P_VALUE
from .laws import all_states, p_value_of_the_law, random_model

KEY = jax.random.key(3)
COUNT = 12_000  # replicas
NO_EDGES = np.zeros((0, 2), np.int64)


def ring(num_sites, seed=0):
    """Where clusters are more than one site and less than all."""
    generator, site = np.random.default_rng(seed), np.arange(num_sites)
    edges = np.stack([site, (site + 1) % num_sites], 1)
    return BinaryQuadratic(generator.normal(size=num_sites), edges, 2 * generator.normal(size=num_sites), 0.25)


def dense_model(num_sites, seed=0):
    generator, edges = np.random.default_rng(seed), np.stack(np.triu_indices(num_sites, 1), 1)
    return BinaryQuadratic(generator.normal(size=num_sites), edges, generator.normal(size=len(edges)) / 2, 0.25)


def force(monkeypatch, kind):
    """Makes `arrange` choose blocks in a list, equal ones in a loop, or blocks of dense rows."""
    monkeypatch.setattr(replicas, "_MOST_BLOCKS_ON_A_CPU", 100 if kind == "listed" else 0)
    if kind == "dense":
        monkeypatch.setattr(replicas, "_FEW_COLOURS", 0)
        monkeypatch.setattr(replicas, "_MOST_COLOURS", 0)
        monkeypatch.setattr(replicas, "_ROWS_OF_A_BLOCK", 4)


def kind_of(chains):
    arrangement = chains._plan.arrangement
    if arrangement.matrix is not None:
        return "dense"
    return "listed" if isinstance(arrangement.blocks, tuple) else "equal"


def states_of(chains):
    return chains._plan.leave(np.asarray(chains._state.x))


def p_value(model, states, beta):
    return p_value_of_the_law(states, model.value(all_states(2, model.num_sites)), 2, beta)


def assert_numbers_are_of_states(chains):
    """Values are those of the states, best values those of the best states."""
    best = chains._plan.leave(np.asarray(chains._state.best_x))
    for i, model in enumerate(chains.models):
        np.testing.assert_allclose(chains._state.value[i] + model.offset, model.value(states_of(chains)[i]), atol=1e-4)
        np.testing.assert_allclose(chains._state.best_value[i] + model.offset, model.value(best[i]), atol=1e-4)
        assert (np.asarray(chains._state.best_value[i]) >= np.asarray(chains._state.value[i])).all()


@pytest.mark.parametrize(
    ("kind", "models"),
    [
        ("listed", [ring(7)]),
        ("equal", [random_model(6, 3)]),
        ("dense", [random_model(6, 3)]),
        ("listed", [ring(7), random_model(6, 3), BinaryQuadratic(np.array([0.5, -1.0]), NO_EDGES, np.zeros(0))]),
        pytest.param("equal", [ring(7), random_model(6, 3)], marks=pytest.mark.slow),
    ],
    ids=["listed", "equal", "dense", "union, listed", "union, equal"],
)
def test_sweeps_leave_the_law_invariant(monkeypatch, kind, models):
    force(monkeypatch, kind)
    chains = ReplicaChains(KEY, models, COUNT)
    assert kind_of(chains) == kind
    chains.begin(None, 0, COUNT)
    betas = np.linspace(1.0, 0.6, len(models))  # each model has its own
    chains.anneal(np.tile(betas, (40, 1)), 0, COUNT)
    for model, states, beta in zip(models, states_of(chains), betas, strict=True):
        assert p_value(model, states, beta) > P_VALUE
        assert p_value(model, states, 1.4 * beta) < P_VALUE
    assert_numbers_are_of_states(chains)


def test_dense_models_go_by_rows_and_sparse_ones_by_colours(monkeypatch):
    assert kind_of(ReplicaChains(KEY, [dense_model(40)], 2)) == "dense"
    assert kind_of(ReplicaChains(KEY, [ring(40)], 2)) == "listed"
    monkeypatch.setattr(replicas, "_MOST_BLOCKS_ON_A_CPU", 1)
    assert kind_of(ReplicaChains(KEY, [ring(40)], 2)) == "equal"


def test_words_do_not_depend_on_the_number_of_replicas():
    few, many = (ReplicaChains(KEY, [ring(7)], count) for count in (3, 8))
    for chains in (few, many):
        chains.begin(None, 0, 0)
        chains.anneal(np.full(9, 0.3), 0, 0)
    (first,), (more,) = states_of(few), states_of(many)
    np.testing.assert_array_equal(first, more[:3])
    assert len(np.unique(more, axis=0)) > 3


# --- what replicas do to each other ---


def temper(models, ladder, rounds=6, **settings):
    chains = ReplicaChains(KEY, models, COUNT, **settings)
    chains._state = chains._start(COUNT)
    ladder = np.tile(ladder, (len(models), 1))
    chains.begin_tempering(ladder)
    chains.temper(ladder, 0, rounds, 0, COUNT)
    return chains


def p_values_of_rungs(chains, ladder):
    found, at = [], np.asarray(chains._state.replica_at)
    for i, (model, states) in enumerate(zip(chains.models, states_of(chains), strict=True)):
        found += [p_value(model, states[at[i, rung]], beta) for rung, beta in enumerate(ladder)]
    return found


@pytest.fixture
def anew(monkeypatch):
    """What is patched inside of programs is compiled, and forgotten afterwards. Clusters go in every round."""
    monkeypatch.setattr(replica_chains, "_ROUNDS_BETWEEN_CLUSTERS", 1)
    _forget()
    yield
    _forget()


def _forget():
    jax.clear_caches()  # the branches of a program are traced once for all of them
    programs._programs.clear()


LADDER = [0.3, 0.7, 1.2]


@pytest.mark.parametrize("models", [[ring(6)], [ring(6), random_model(5, 3)]], ids=["one", "two"])
def test_exchanges_leave_the_law_of_every_rung_alone(models):
    chains = temper(models, LADDER, clusters=False)
    assert min(p_values_of_rungs(chains, LADDER)) > P_VALUE
    assert (np.asarray(chains._state.replica_at)[0, 0] >= COUNT // 3).mean() > 0.2  # they travel
    assert_numbers_are_of_states(chains)


def test_exchanges_that_ask_for_nothing_do_not(monkeypatch, anew):
    whole = replica_program.exchange

    def careless(key, turn, replica_at, ladder, value):
        return whole(key, turn, replica_at, ladder, 0 * value)

    monkeypatch.setattr(replica_program, "exchange", careless)
    assert min(p_values_of_rungs(temper([ring(6)], LADDER, clusters=False), LADDER)) < P_VALUE


def temper_with_clusters():
    chains = temper([ring(7)], [0.3, 1.0], clusters=True)
    assert chains._kind == "clusters"
    return chains


def test_exchanges_of_clusters_leave_the_law_alone(monkeypatch, anew):
    moved, whole = [], replica_moves.exchange_clusters

    def watched(arrangement, key, turn, at, x):
        new = whole(arrangement, key, turn, at, x)
        jax.debug.callback(lambda share: moved.append(float(share)), (new != x).any(axis=0).mean())
        return new

    monkeypatch.setattr(replica_program, "exchange_clusters", watched)
    chains = temper_with_clusters()
    assert min(p_values_of_rungs(chains, [0.3, 1.0])) > P_VALUE
    assert_numbers_are_of_states(chains)
    jax.effects_barrier()
    assert max(moved) > 0.5


@pytest.mark.slow
def test_clusters_that_leave_out_neighbours_do_not(monkeypatch, anew):
    alone = lambda rows, cluster: 0 * cluster[: len(rows.weights)] > 0  # noqa: E731
    monkeypatch.setattr(replica_moves, "_any_neighbour", alone)
    assert min(p_values_of_rungs(temper_with_clusters(), [0.3, 1.0])) < P_VALUE


@pytest.mark.slow
def test_clusters_that_take_long_are_left(monkeypatch, anew):
    monkeypatch.setattr(replica_moves, "_MOST_SPREADS", 0)  # then none is known to be whole
    plain = temper([ring(7)], [0.3, 1.0], clusters=False)
    np.testing.assert_array_equal(states_of(plain)[0], states_of(temper_with_clusters())[0])


def cool_a_population(num_sweeps):
    """From infinite temperature to 1 in three steps, with hardly a sweep to repair what resampling breaks."""
    models = [ring(6), random_model(5, 3)]
    chains = ReplicaChains(KEY, models, 2 * COUNT, kind="population")
    chains.begin(None, 0, 0)
    for beta in (0.3, 0.6, 1.0):
        chains._rounds("population", np.full((1, 2, 1), beta), num_sweeps)
    return chains


def deviation(chains):
    """Of the mean of every site and of the value from those of the law at beta 1, the largest."""
    found = []
    for model, states in zip(chains.models, states_of(chains), strict=True):
        every = all_states(2, model.num_sites)
        law = np.exp(model.value(every) - model.value(every).max())
        law /= law.sum()
        found += [
            *np.abs(states.mean(axis=0) - law @ every),
            np.abs(model.value(states).mean() - law @ model.value(every)),
        ]
    return max(found)


@pytest.mark.slow
def test_resampling_keeps_the_law_of_a_population():
    chains = cool_a_population(1)
    assert deviation(chains) < 0.05
    assert deviation(cool_a_population(0)) < 0.05  # by weights alone
    assert_numbers_are_of_states(chains)


@pytest.mark.slow
def test_a_population_that_is_not_resampled_does_not(monkeypatch, anew):
    same = np.tile(np.arange(2 * COUNT, dtype=np.int32), (2, 1))
    monkeypatch.setattr(replica_program, "descendants", lambda *_: jnp.asarray(same))
    assert deviation(cool_a_population(0)) > 0.1


def test_descendants_are_as_many_as_weights_say():
    value = jnp.log(jnp.array([[1.0, 2.0, 4.0, 1.0], [1.0, 1.0, 1.0, 1.0]]))
    for turn in range(3):
        source = jax.jit(descendants)(jax.random.key_data(KEY), jnp.uint32(turn), jnp.ones(2), value)
        counts = np.bincount(np.asarray(source)[0], minlength=4)
        assert (np.abs(counts - np.array([0.5, 1, 2, 0.5])) < 1).all()
        np.testing.assert_array_equal(source[1], np.arange(4))


def test_a_population_may_begin_at_given_states():
    """Their values are known before the first of them are copied."""
    model = ring(6)
    every = all_states(2, 6).astype(np.int8)
    chains = ReplicaChains(KEY, [model], len(every), kind="population")
    chains.begin([every], 0, 0)
    np.testing.assert_allclose(chains._state.value[0] + model.offset, model.value(every), atol=1e-4)
    chains._rounds("population", np.full((1, 1, 1), 0.1), 0)
    assert 32 < len(np.unique(states_of(chains)[0], axis=0)) < 64
