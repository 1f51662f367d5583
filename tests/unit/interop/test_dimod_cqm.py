"""Constrained models of dimod: the best feasible sample of small ones, by enumeration; what is refused."""

import itertools

import dimod
import jax
import numpy as np
import pytest

import discrax as dx
from discrax.interop.dimod import DiscraxSampler, problem
from discrax.solving.sites_constrained import ConstrainedChains


def random_cqm(seed: int, num_variables: int = 8) -> dimod.ConstrainedQuadraticModel:
    """Bits and spins; one of each sense of constraint."""
    rng, cqm = np.random.default_rng(seed), dimod.ConstrainedQuadraticModel()
    v = [dimod.Spin(f"s{i}") if i % 3 == 2 else dimod.Binary(("b", i)) for i in range(num_variables)]
    cqm.set_objective(sum(rng.normal() * a * b for a, b in itertools.combinations(v, 2)) + 1.5)
    cqm.add_constraint(sum(v[0:6:2]) == 1, label="one")
    cqm.add_constraint(
        sum(float(c) * x for c, x in zip(rng.uniform(1, 5, len(v)), v, strict=True)) <= 6.5, label="sack"
    )
    cqm.add_constraint(v[1] + v[2] - v[3] + 0.5 >= -0.5, label="least")
    return cqm


def least(cqm) -> float:
    """The energy of the best feasible sample, by enumeration."""
    found = dimod.ExactCQMSolver().sample_cqm(cqm)
    return found.filter(lambda row: row.is_feasible).first.energy


@pytest.mark.parametrize("seed", range(4))
def test_samples_are_feasible_and_the_best_of_all(seed):
    cqm = random_cqm(seed)
    found = DiscraxSampler().sample_cqm(cqm, num_reads=3, num_sweeps=200, seed=seed)
    assert len(found) == 3
    assert found.record.is_feasible.all()
    assert all(cqm.check_feasible(sample) for sample in found.samples())
    assert found.first.energy == pytest.approx(least(cqm))
    assert set(found.variables) == set(cqm.variables)


def planted():
    """Exactly one of each of twelve groups of six, and a planted choice that no pair of others speaks against."""
    rng, cqm = np.random.default_rng(0), dimod.ConstrainedQuadraticModel()
    x = np.array([[dimod.Binary((g, i)) for i in range(6)] for g in range(12)])
    choice = rng.integers(0, 6, 12)
    for g in range(12):
        cqm.add_constraint(x[g].sum() == 1, label=g)
    pairs = [(g, h) for g, h in itertools.combinations(range(12), 2) if rng.random() < 0.6]
    # An energy of -1 for every pair of chosen ones; other pairs gain too, but never as many together.
    others = [(rng.integers(0, 6), rng.integers(0, 6)) for _ in pairs]
    terms = [-1.0 * x[g, choice[g]] * x[h, choice[h]] - 0.9 * x[g, i] * x[h, j] * ((i, j) != (choice[g], choice[h]))
             for (g, h), (i, j) in zip(pairs, others, strict=True)]  # fmt: skip
    cqm.set_objective(sum(terms))
    return cqm, -len(pairs)


def assert_solved():
    cqm, best = planted()
    solution = dx.solve(jax.random.key(0), problem(cqm), dx.searches.Sites(num_chains=2), num_steps=3000)
    assert solution.is_feasible
    assert solution.objective == pytest.approx(best)
    return cqm, solution


def test_a_planted_optimum_is_found_by_solve():
    cqm, solution = assert_solved()
    sample = dict(zip(cqm.variables, solution.state.tolist(), strict=True))
    assert cqm.check_feasible(sample)
    assert cqm.objective.energy(sample) == pytest.approx(solution.objective)
    described = solution.problem.describe(solution.state)
    assert described["violations"] == {}
    assert len(solution.problem.fixed_counts()) == 12


def test_idle_sweeps_do_not_find_it(monkeypatch):
    monkeypatch.setattr(ConstrainedChains, "anneal", lambda *_: None)
    with pytest.raises(AssertionError):
        assert_solved()


def test_what_is_beyond_a_limit_is_told():
    made = problem(random_cqm(0))
    state = np.ones(8, np.int8)
    assert made.describe(state)["violations"]["one"] == pytest.approx(3 - 1)
    assert made.violations(state) > 0
    cqm = random_cqm(0)
    every = np.array(list(itertools.product([0, 1], repeat=8)))
    values = np.where([cqm.vartype(name) is dimod.SPIN for name in cqm.variables], 2 * every - 1, every)
    theirs = [cqm.check_feasible(dict(zip(cqm.variables, row, strict=True))) for row in values]
    np.testing.assert_array_equal(made.is_feasible(every), theirs)
    np.testing.assert_allclose(made.objective(every), cqm.objective.energies((values, list(cqm.variables))))


def model_with(comparison, **options) -> dimod.ConstrainedQuadraticModel:
    cqm = random_cqm(0)
    cqm.add_constraint(comparison, label="c", **options)
    return cqm


a, b, n = dimod.Binary("a"), dimod.Binary("b"), dimod.Integer("n")
REFUSED = {
    "but 'n' is integer; write it as a sum of binary ones": lambda: problem(model_with(n <= 3)),
    "must be linear, but 'c' is quadratic": lambda: problem(model_with(a * b == 0)),
    "must hold, but 'c' is soft": lambda: problem(model_with(a + b == 1, weight=2.0)),
    "dimod.ConstrainedQuadraticModel, but got 3": lambda: problem(3),
    "penalty must be greater than 0": lambda: problem(random_cqm(0), penalty=0),
    "by time_limit or by num_sweeps": lambda: DiscraxSampler().sample_cqm(random_cqm(0), time_limit=1, num_sweeps=2),
    "num_reads must be at least 1": lambda: DiscraxSampler().sample_cqm(random_cqm(0), num_reads=0),
    "time_limit must be greater than 0": lambda: DiscraxSampler().sample_cqm(random_cqm(0), time_limit=0),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused_with_a_sentence(message, as_a_user):
    with pytest.raises((ValueError, TypeError)) as caught:
        REFUSED[message]()
    assert message in str(caught.value)
