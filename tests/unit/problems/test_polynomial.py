"""Polynomials and formulas: against plain sums at every state, names, dimod, files, and sentences about mistakes."""

import itertools
import json

import dimod
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dimod.higherorder.polynomial import BinaryPolynomial
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discrax as dx
from discrax.problems import MaxSAT, Polynomial
from discrax.problems.readers import read_formula, read_graph

from ..helpers import brute_force_ratios

quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = ["a", "b", 3, ("c", 1), 2.5]
terms_of_names = st.dictionaries(
    st.lists(st.sampled_from(NAMES), max_size=4).map(tuple), st.sampled_from([-2, -1, 0, 0.5, 1, 3]), max_size=8
)
formulas = st.lists(
    st.lists(st.integers(-5, 5).filter(bool), min_size=1, max_size=4), min_size=1, max_size=12
)  # with doubled literals and tautologies


def states(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)), np.int8)


def plain_value(terms: dict, sample: dict) -> float:
    return sum(weight * np.prod([sample[name] for name in term]) for term, weight in terms.items())


@quickly
@given(terms=terms_of_names, vartype=st.sampled_from(["BINARY", "SPIN"]), sense=st.sampled_from(["min", "max"]))
def test_polynomials_by_brute_force(terms, vartype, sense):
    if not any(terms):
        with pytest.raises(ValueError, match="at least one variable"):
            Polynomial(terms)
        return
    problem = Polynomial(terms, vartype=vartype, sense=sense)
    x = states(len(problem.names))
    values = x if vartype == "BINARY" else 2 * x - 1
    expected = np.array([plain_value(terms, dict(zip(problem.names, row.tolist(), strict=True))) for row in values])
    np.testing.assert_allclose(problem.objective(x), expected)
    sign = 1 if sense == "max" else -1
    np.testing.assert_allclose(problem.model.value(x), sign * expected)
    best = (sign * expected).max()
    assert sign * problem.bound() >= best - 1e-12
    assert problem.is_feasible(x).all()
    powers = 2 ** np.arange(len(problem.names))[::-1]
    value = lambda state: sign * expected[state @ powers]  # noqa: E731
    for state in x[:: max(1, len(x) // 4)]:
        ratios = brute_force_ratios(value, state, 2)
        np.testing.assert_allclose(problem.model.gains(state), ratios, atol=1e-12)
        repaired = problem.repair(state)
        assert (problem.model.gains(repaired) <= 1e-9).all()
        assert value(repaired) >= value(state)


@quickly
@given(terms=terms_of_names, vartype=st.sampled_from(["BINARY", "SPIN"]))
def test_dimod_polynomials_go_in_and_out(terms, vartype):
    theirs = BinaryPolynomial(terms, vartype)
    if not theirs.variables:
        return
    problem = Polynomial.from_dimod(theirs)
    assert set(problem.names) == theirs.variables
    values = states(len(problem.names)) if vartype == "BINARY" else 2 * states(len(problem.names)) - 1
    np.testing.assert_allclose(problem.objective(states(len(problem.names))), theirs.energies((values, problem.names)))
    assert problem.to_dimod() == theirs


@quickly
@given(clauses=formulas, num_hard=st.integers(0, 3), seed=st.integers(0, 1000))
def test_formulas_by_brute_force(clauses, num_hard, seed):
    soft, hard = clauses[num_hard:], clauses[:num_hard]
    weights = np.random.default_rng(seed).integers(1, 5, len(soft)).astype(float)
    problem = MaxSAT(soft, weights, hard=hard)
    x = states(max(abs(literal) for clause in clauses for literal in clause))

    def holds(clause: list[int], state: np.ndarray) -> bool:
        return any(bool(state[abs(literal) - 1]) == (literal > 0) for literal in clause)

    satisfied = np.array([sum(w for c, w in zip(soft, weights, strict=True) if holds(c, state)) for state in x])
    broken = np.array([sum(not holds(clause, state) for clause in hard) for state in x])
    np.testing.assert_array_equal(problem.objective(x), satisfied)
    np.testing.assert_array_equal(problem.violations(x), broken)
    np.testing.assert_allclose(problem.model.value(x), satisfied - problem.penalty * broken)
    assert problem.bound() >= satisfied.max()
    best = problem.model.strict().value(x).argmax()
    assert broken[best] == broken.min()  # what is best in the end is feasible, if anything is
    if broken.min() == 0:
        assert satisfied[best] == satisfied[broken == 0].max()
    for state in x[:: max(1, len(x) // 4)]:
        repaired = problem.repair(state)
        assert problem.violations(repaired) <= problem.violations(state)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_the_target_is_what_is_climbed(vartype):
    problem = Polynomial({(0, 1, 2): 1.5, (1, 3): -2.0, (3,): 1.0, (): 7.0}, vartype=vartype)
    x = states(4)
    found = jax.vmap(lambda x: problem.target.evaluate(x))(jnp.asarray(x))
    np.testing.assert_allclose(found.log_prob + problem.model.offset, -problem.objective(x), atol=1e-5)
    np.testing.assert_allclose(found.ratios, [problem.model.gains(state) for state in x], atol=1e-5)


def test_solutions_are_in_the_words_of_the_problem():
    terms = {("a", "b", "c"): 2.0, ("a",): -1.0, ("b", "c"): -1.5, (): 10.0}
    problem = Polynomial(terms)
    solution = dx.solve(jax.random.key(0), problem, num_steps=20)
    assert solution.objective == 8.5
    assert solution.history.best[-1] == 8.5
    assert problem.describe(solution.state) == {"sample": {"a": 0, "b": 1, "c": 1}, "value": 8.5}
    assert json.loads(solution.to_json())["objective"] == 8.5
    spins = Polynomial({(0, 1, 2): 1.0}, vartype="SPIN", sense="max")
    found = dx.solve(jax.random.key(0), spins, num_steps=20)
    assert found.objective == found.bound == 1
    assert np.prod([*spins.describe(found.state)["sample"].values()]) == 1
    assert "order 3, spins, max" in repr(spins)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["anneal", "temper"])
def test_samplers_search_polynomials_and_formulas(method):
    problem = MaxSAT([[1, -2], [2, 3], [-1], [1, 2]], [1, 2, 3, 4], hard=[[-3, -1]])
    solution = dx.solve(jax.random.key(0), problem, method, num_steps=100)
    x = states(3)
    assert solution.objective == problem.objective(x[problem.is_feasible(x)]).max()
    assert solution.history.best[-1] == solution.objective


def test_a_formula_that_cannot_be_satisfied_is_not_feasible():
    solution = dx.solve(jax.random.key(0), MaxSAT([[1, 2]], hard=[[1], [-1]]), num_steps=20)
    assert not solution.is_feasible
    assert solution.objective == 1


def test_describe_a_formula():
    problem = MaxSAT([[1, 2], [-1], [3]], [1.0, 2.0, 4.0], hard=[[1, 3]])
    assert problem.describe(np.array([1, 0, 1])) == {
        "literals": [1, -2, 3], "satisfied": 5.0, "violated": 2.0, "violated_clauses": [2],
    }  # fmt: skip
    assert repr(problem) == "MaxSAT(3 variables, 4 clauses, 1 of them hard)"


FORMULAS = {
    "f.cnf": ("c a formula\np cnf 3 3\n1 -2 0\n2\n3 0 -1 0\n%\n0\n", [1, 1, 1], []),
    "old.wcnf": ("c\np wcnf 3 3 10\n5 1 -2 0\n10 2 3 0\n2.5 -1 0\n", [5, 0, 2.5], [1]),
    "tabs.wcnf": ("p wcnf 3 3 9223372036854775807\n5\t1 -2 0\n9223372036854775807 2 3 0\n0\t-1 0\n", [5, 0, 0], [1]),
    "without_top.wcnf": ("p wcnf 3 3\n5 1 -2 0\n10 2 3 0\n2 -1 0\n", [5, 10, 2], []),
    "new.wcnf": ("c new\n5 1 -2 0\n\nh 2 3 0\n2 -1 0\n", [5, 0, 2], [1]),
    "named.txt": ("p wcnf 3 3 10\n5 1 -2 0\n12 2 3 0\n2 -1 0\n", [5, 0, 2], [1]),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_from_files(tmp_path, name):
    text, weights, hard = FORMULAS[name]
    (tmp_path / name).write_text(text)
    formula = read_formula(tmp_path / name)
    assert formula.num_variables == 3
    np.testing.assert_array_equal(formula.start, [0, 2, 4, 5])
    np.testing.assert_array_equal(formula.literals, [1, -2, 2, 3, -1])
    np.testing.assert_array_equal(formula.weights, weights)
    np.testing.assert_array_equal(np.flatnonzero(formula.is_hard), hard)
    assert MaxSAT(str(tmp_path / name)).objective(np.array([0, 0, 1])) == sum(weights)


FAULTS = [
    ("f.cnf", "p cnf 2 1\n1 3 0\n", 2, "literal 3"),
    ("f.cnf", "1 2 0\n", 1, "before the clauses"),
    ("f.wcnf", "p wcnf 2 2 9\n3 1 0\n", 1, "2 clauses, but there are 1"),
    ("f.wcnf", "p wcnf 2\n", 1, "`p wcnf n m`"),
    ("f.wcnf", "3 1 0\np wcnf 2 1 9\n", 2, "before the clauses"),
    ("f.wcnf", "p wcnf 2 1 9\nh 1 0\n", 2, "a weight of 0 or more, but got 'h'"),
    ("f.wcnf", "3 1 0\nx 1 0\n", 2, "`h` or a weight of 0 or more, but got 'x'"),
    ("f.wcnf", "3 1 0\n-1 1 0\n", 2, "0 or more"),
    ("f.wcnf", "3 1 0\n2 1 2\n", 2, "ends with 0"),
    ("f.wcnf", "3 1 0\n2 1 0 2 0\n", 2, "one clause"),
    ("f.wcnf", "3 1 0\n2 1 b 0\n", 2, "'b'"),
    ("f.wcnf", "p wcnf 2 1 9\n3 1 -3 0\n", 2, "literal -3"),
    ("f.wcnf", "h 1 0\nh 0\n", 2, "empty"),
    ("f.wcnf", "c nothing\n", 1, "no clauses"),
    ("f.wcnf", "3 1 999999999999 0\n", 1, "number the nodes"),
]


@pytest.mark.parametrize(("name", "text", "line", "words"), FAULTS)
def test_faults_of_formulas_have_a_line(tmp_path, name, text, line, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as raised:
        MaxSAT(tmp_path / name)
    assert f"line {line}" in str(raised.value)
    assert words in str(raised.value)


def test_a_soft_clause_may_be_empty(tmp_path):
    (tmp_path / "f.wcnf").write_text("3 0\n2 1 0\n")
    problem = MaxSAT(tmp_path / "f.wcnf")
    assert problem.bound() == problem.objective(np.ones(1, int)) == 2
    assert problem.model.value(np.ones(1, int)) == 2


def test_a_weighted_formula_is_no_graph(tmp_path):
    (tmp_path / "f.wcnf").write_text("3 1 0\n")
    with pytest.raises(ValueError, match=r"Use problems\.MaxSAT"):
        read_graph(tmp_path / "f.wcnf")


def test_bad_polynomials(as_a_user):
    for wrong in ([1, 2], "f.cnf", 3, np.eye(3), dimod.BinaryQuadraticModel("SPIN")):
        with pytest.raises(TypeError, match="dict of tuples"):
            Polynomial(wrong)
    with pytest.raises(TypeError, match=r"tuple of names, such as .*, but got 'ab'"):
        Polynomial({"ab": 1.0})
    with pytest.raises(ValueError, match="finite"):
        Polynomial({("a",): np.nan})
    with pytest.raises(TypeError, match="real numbers"):
        Polynomial({("a",): "heavy"})
    with pytest.raises(ValueError, match='"min" or "max", but got'):
        Polynomial({("a",): 1.0}, sense="least")
    with pytest.raises(ValueError, match='"min" or "max", but got an array'):
        Polynomial({("a",): 1.0}, sense=np.zeros(2))
    with pytest.raises(ValueError, match='"BINARY" or "SPIN"'):
        Polynomial({("a",): 1.0}, vartype="TERNARY")
    with pytest.raises(ValueError, match="its own vartype"):
        Polynomial(BinaryPolynomial({"a": 1.0}, "SPIN"), vartype="SPIN")
    with pytest.raises(TypeError, match=r"dimod\.BinaryPolynomial"):
        Polynomial.from_dimod({("a",): 1.0})


def test_bad_formulas(as_a_user, tmp_path):
    with pytest.raises(TypeError, match="lists of literals"):
        MaxSAT(3)
    with pytest.raises(TypeError, match="whole number"):
        MaxSAT([[1, 0.5]])
    with pytest.raises(ValueError, match="but got 0"):
        MaxSAT([[1, 0]])
    with pytest.raises(ValueError, match="2 weights, one per soft clause"):
        MaxSAT([[1], [2]], [1.0])
    with pytest.raises(ValueError, match="more than 0, but one weighs -1"):
        MaxSAT([[1], [2]], [1.0, -1.0])
    with pytest.raises(ValueError, match="at least one variable"):
        MaxSAT([])
    with pytest.raises(ValueError, match="at least one literal"):
        MaxSAT([[1]], hard=[[]])
    with pytest.raises(ValueError, match="penalty must be greater than 0"):
        MaxSAT([[1]], penalty=0)
    with pytest.raises(ValueError, match="its own weights"):
        MaxSAT(tmp_path / "f.cnf", [1.0])
    with pytest.raises(ValueError, match="There is no file"):
        MaxSAT(tmp_path / "f.cnf")
