"""Exact reductions of binary models: values stay, best states are best, and a wrong rule is found."""

import itertools

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.problems import QUBO, Graph, MaxCut
from discrax.problems.problem import BinaryQuadratic
from discrax.solving import eliminations
from discrax.solving.eliminations import reduce_model


@pytest.fixture(autouse=True)
def searches_search():
    """Here models are reduced."""


def random_model(seed: int, *, num_sites: int = 11, num_edges: int = 14, is_whole: bool = True) -> BinaryQuadratic:
    generator = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(num_sites, 1), axis=1)
    edges = pairs[generator.choice(len(pairs), num_edges, replace=False)]
    linear, weights = 3 * generator.normal(size=num_sites), 3 * generator.normal(size=num_edges)
    if is_whole:
        linear, weights = np.round(linear), np.round(weights)
    return BinaryQuadratic(linear * (generator.random(num_sites) < 0.5), edges, weights, 2.0)


def all_states(num_sites: int) -> np.ndarray:
    return (np.arange(2**num_sites)[:, None] >> np.arange(num_sites) & 1).astype(np.int8)


def is_exact(model: BinaryQuadratic) -> bool:
    """Whether lifted states have the values of what they come from, and a best one is a best one."""
    left = reduce_model(model)
    x = all_states(len(left.sites))
    lifted, values = left.lift(x), left.model.value(x)
    largest = model.value(all_states(model.num_sites)).max()
    is_same = np.allclose(model.value(lifted), values, rtol=0, atol=1e-9)
    return is_same and np.isclose(values.max(), largest, rtol=0, atol=1e-9)


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("num_edges", [6, 10, 14, 22, 40])
def test_values_stay_and_the_best_is_the_best(num_edges, is_whole):
    models = [random_model(seed, num_edges=num_edges, is_whole=is_whole) for seed in range(20)]
    assert all(map(is_exact, models))
    sizes = [len(reduce_model(model).sites) for model in models]
    assert min(sizes) < 11 or num_edges == 40


def test_strong_couplings_tie():
    generator = np.random.default_rng(0)
    i, j = np.triu_indices(12, 1)
    weights = np.round(1000 * generator.normal(size=len(i)) / (j - i) ** 3.0, 0)
    model = MaxCut(Graph.from_edges(np.stack([i, j], axis=1), weights, num_nodes=12)).model
    assert is_exact(model)
    assert len(reduce_model(model).sites) < 12


@pytest.mark.parametrize("rule", ["_eliminate", "_tie"])
def test_a_wrong_rule_is_found(rule, monkeypatch):
    right = getattr(eliminations._Graph, rule)

    def wrong(self, i):
        """Forgets one coupling that the rule makes."""
        before = {j: dict(row) for j, row in enumerate(self._rows)}
        has_gone = right(self, i)
        for j, row in enumerate(self._rows):
            more = [k for k in row if k not in before[j] or row[k] != before[j][k]]
            if has_gone and more:
                del self._rows[more[0]][j], row[more[0]]
                break
        return has_gone

    monkeypatch.setattr(eliminations._Graph, rule, wrong)
    assert not all(is_exact(random_model(seed, num_edges=22, is_whole=False)) for seed in range(20))


def test_projected_states_lift_to_states_that_are_no_worse():
    model = random_model(3)
    left, x = reduce_model(model), all_states(11)
    assert (model.value(left.lift(left.project(x))) >= model.value(x) - 1e-9).all()


@pytest.mark.parametrize("num_sites", [1, 2, 5, 11])
def test_all_best_states_are_counted(num_sites):
    num_edges = num_sites * (num_sites - 1) // 2
    model = random_model(4, num_sites=num_sites, num_edges=num_edges)
    x = all_states(num_sites)
    values = model.value(x)
    found = eliminations.Remainder(model, np.arange(num_sites), (), num_sites).best_states()
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, x[values == values.max()].tolist()))


def test_what_is_counted_through_is_the_best_of_those_that_are_near():
    """The tolerance of sums of large couplings holds many states that the small ones tell apart."""
    rng, n = np.random.default_rng(0), 18
    couplings = np.triu(rng.integers(-5, 6, (n, n)), 1).astype(float)
    heavy = np.triu_indices(5, 1)
    couplings[heavy] = 1e13 * rng.choice([-1, 1], len(heavy[0]))
    states = np.array(list(itertools.product((0, 1), repeat=n)), np.float64)
    least = ((states @ couplings) * states).sum(axis=1).min()
    problem = QUBO({(i, j): couplings[i, j] for i in range(n) for j in range(i + 1, n)})
    found = dx.solve(jax.random.key(0), problem, num_steps=1, progress=False)
    assert found.is_proved_optimal
    assert found.objective == least


def test_what_has_few_sites_left_is_proved(tmp_path):
    tree = np.array([(i, (i - 1) // 2) for i in range(1, 200)])
    weights = np.random.default_rng(0).integers(-5, 6, len(tree)).astype(float)
    problem = MaxCut(Graph.from_edges(tree, weights, num_nodes=200))
    found = dx.solve(jax.random.key(0), problem, seconds=30, folder=tmp_path)
    assert found.objective == weights[weights > 0].sum()
    assert found.is_proved_optimal
    assert dx.solving.Solution.load(tmp_path, problem).is_proved
    assert found.num_steps == 0  # nothing is left to search for


@pytest.mark.parametrize("search", ["sites", "anneal", "temper", "population"])
def test_searches_go_on_with_what_is_left(search, monkeypatch):
    monkeypatch.setattr(eliminations, "_MOST_COUNTED", 0)
    generator = np.random.default_rng(1)
    n = 24
    core = [(i, j) for i in range(12) for j in range(i + 1, 12)]
    leaves = [(i, generator.integers(i)) for i in range(12, n)]
    edges = np.array(core + leaves)
    problem = QUBO(np.zeros(n), edges, generator.integers(-9, 10, len(edges)).astype(float))
    assert len(reduce_model(problem.model).sites) <= 12
    found = dx.solve(jax.random.key(0), problem, search, num_steps=300)
    values = [np.asarray(problem.objective(state)) for state in found.states]
    assert np.allclose(values, found.objective)
    assert found.objective == pytest.approx(least_by_leaves(problem, edges[len(core) :]))


def least_by_leaves(problem: QUBO, leaves: np.ndarray) -> float:
    """By trying all states of the first twelve sites; the rest follows from them, the last first."""
    model = problem.model
    weights = {tuple(edge): weight for edge, weight in zip(model.edges.tolist(), model.weights, strict=True)}
    gain = np.zeros((24, 2))  # of a site and all that hangs on it, by its code
    gain[:, 1] = model.linear
    for i, j in leaves[::-1].tolist():
        weight = weights.get((i, j), weights.get((j, i), 0.0))
        gain[j, 0] += gain[i].max()
        gain[j, 1] += max(gain[i, 0], gain[i, 1] + weight)
    is_core = (model.edges < 12).all(axis=1)
    core = BinaryQuadratic(gain[:12, 1] - gain[:12, 0], model.edges[is_core], model.weights[is_core])
    return -float(core.value(all_states(12)).max() + gain[:12, 0].sum())


def test_the_law_at_one_temperature_is_not_reduced(monkeypatch):
    monkeypatch.setattr(eliminations, "reduce_model", None)
    problem = QUBO(np.zeros(4), np.array([(0, 1), (1, 2), (2, 3)]), np.array([1.0, -2.0, 1.0]))
    held = dx.searches.Sites(betas=(1.0, 1.0), num_chains=2)
    assert dx.solve(jax.random.key(0), problem, held, num_steps=50).num_steps == 50


def test_what_takes_long_for_the_budget_is_left_alone():
    model = random_model(0)
    assert len(reduce_model(model, seconds=1e-6).sites) == model.num_sites
    assert len(reduce_model(model, seconds=10.0).sites) < model.num_sites
