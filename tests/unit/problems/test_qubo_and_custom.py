"""QUBO in every form that is taken, and problems of the user's own."""

import dimod
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import discrax as dx
from discrax.problems import QUBO, Custom, Partition, Problem

from .test_problems import states


def random_qubo(seed: int, n: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.rint(4 * rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.7))


@pytest.mark.parametrize(
    "form", [np.asarray, np.triu, np.ndarray.tolist, scipy.sparse.csr_array, scipy.sparse.coo_array]
)
def test_qubo_of_a_matrix(form):
    Q = random_qubo(1)
    problem, x = QUBO(form(Q)), states(5)
    if form is np.triu:
        Q = np.triu(Q)
    np.testing.assert_array_equal(problem.objective(x), np.einsum("si,ij,sj->s", x, Q, x))


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_qubo_of_a_dimod_model(vartype):
    linear = {"a": 1.5, ("b", 1): -2.0, 3: 0.0, "d": 1.0}
    quadratic = {("a", ("b", 1)): 2.0, (3, "a"): -1.0, ("d", 3): 0.5}
    bqm = dimod.BQM(linear, quadratic, -3.25, vartype)
    problem, x = QUBO(bqm), states(4)
    samples = 2 * x.astype(int) - 1 if vartype == "SPIN" else x.astype(int)
    energies = bqm.energies((samples, list(bqm.variables)))
    np.testing.assert_array_equal(problem.objective(x), energies)
    described = problem.describe(x[5])
    assert described["energy"] == energies[5]
    assert list(described["sample"].values()) == samples[5].tolist()
    assert list(described["sample"]) == ["a", "('b', 1)", 3, "d"]
    best = problem.repair(x[energies.argmin()])
    assert problem.objective(best) == energies.min() == dimod.ExactSolver().sample(bqm).first.energy


def test_pairs_given_twice_add_up_and_loops_are_linear_in_bits_and_constant_in_spins():
    pairs, weights, x = [[0, 1], [1, 0], [1, 1]], [1.0, 2.0, 4.0], states(2)
    np.testing.assert_array_equal(QUBO(np.zeros(2), pairs, weights).objective(x), [0, 4, 0, 7])
    np.testing.assert_array_equal(QUBO(np.zeros(2), pairs, weights, vartype="SPIN").objective(x), [7, 1, 1, 7])


def test_bounds_in_bits_and_in_spins():
    assert QUBO(np.diag([-1.0, 2.0])).bound() == -1
    assert QUBO(np.array([[0.0, 3.0], [0.0, 0.0]])).bound() == 0
    assert QUBO(np.zeros(2), [[0, 1]], [-3.0], vartype="SPIN").bound() == -3
    assert QUBO(np.zeros(2), [[0, 1]], [3.0], vartype="SPIN", offset=1.0).bound() == -2


def test_qubo_of_a_file(tmp_path):
    path = tmp_path / "small.coo"
    path.write_text("# vartype=SPIN\n0 0 1.0\n0 1 -2.0\n")
    np.testing.assert_array_equal(QUBO(path).objective(states(2)), [-3, 1, 3, -1])


# Custom


def test_a_custom_problem_is_repaired_by_its_function_or_by_single_changes():
    at_most_two = {"violations": lambda e: jnp.maximum(jnp.sum(e) - 2, 0), "penalty": 10.0}
    first_two = Custom(jnp.sum, dx.Binary(5), **at_most_two, repair=lambda x: np.where(np.arange(5) < 2, x, 0))
    np.testing.assert_array_equal(first_two.repair(np.ones(5, np.int8)), [1, 1, 0, 0, 0])
    np.testing.assert_array_equal(first_two.repair(np.array([0, 0, 0, 1, 1])), [0, 0, 0, 1, 1])
    on_its_own = Custom(jnp.sum, dx.Binary(5), **at_most_two)
    repaired = on_its_own.repair(np.ones(5, np.int8))
    assert on_its_own.is_feasible(repaired)
    assert repaired.sum() == 2


def test_a_custom_problem_on_labels_with_frozen_sites():
    """No neighbour on a path of five may have the same of three labels; the ends are given."""
    frozen = np.array([True, False, False, False, True])
    space = dx.Categorical(5, 3, frozen=frozen, frozen_codes=np.array([2, 0, 0, 0, 1]))
    problem = Custom(
        lambda e: jnp.sum(e[:, 0]), space, violations=lambda e: jnp.sum(e[1:] * e[:-1]), sense="min", penalty=2.0
    )
    x = problem.init(np.random.default_rng(0), 8)
    space.check(x)
    repaired = [problem.repair(state) for state in x]
    space.check(np.stack(repaired))
    assert problem.is_feasible(np.stack(repaired)).all()
    state = np.array([2, 2, 0, 1, 1])
    value = problem.target.log_prob(space.embed(jnp.asarray(state)))
    assert float(value) == -1 - 2 * 2


def test_a_custom_repair_that_returns_no_state_meets_a_sentence(as_a_user):
    problem = Custom(jnp.sum, dx.Binary(2), violations=jnp.sum, repair=lambda x: x + 5)
    with pytest.raises(ValueError, match=r"Codes must lie in 0\.\.1"):
        problem.repair(np.array([1, 1]))


def test_a_custom_problem_stays_as_it_was_stated():
    """Whatever the function reads later: program and objective are of the same moment."""
    weight = 1.0
    first = Custom(lambda e: weight * e.sum(), dx.Binary(3))
    weight = -1.0
    second = Custom(first.function, dx.Binary(3))
    ones = np.ones(3, np.int8)
    assert (first.objective(ones), second.objective(ones)) == (3, -3)
    assert [float(p.target.log_prob(jnp.ones(3))) for p in (first, second)] == [3, -3]


def test_a_callable_that_cannot_be_hashed_is_an_objective():
    class Score:
        __hash__ = None

        def __call__(self, e):
            return e.sum()

    assert Custom(Score(), dx.Binary(3)).objective(np.ones(3, np.int8)) == 3


def test_a_repair_that_returns_no_state_is_told_so():
    problem = Custom(jnp.sum, dx.Binary(3), violations=lambda e: e[0], repair=lambda x: np.full(3, 7))
    with pytest.raises(ValueError, match=r"repair must return the codes of a state, but: Codes must lie in 0\.\.1"):
        problem.repair(np.ones(3, np.int8))


def test_first_states_have_the_type_of_the_space():
    graph = nx.path_graph(300)
    assert Problem.init(Partition(graph, 200), np.random.default_rng(0), 4).max() > 127
