"""Factor graphs from files and from other packages: exact laws beside pgmpy's, and a sentence for what is wrong."""

import gzip
import itertools
import re
import warnings

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.interop.bif import read_bif
from discrax.interop.factor_files import read_uai

BIF = """network small { property author none; }
variable rain { type discrete [ 2 ] { no, yes }; } // a comment
variable wind { type discrete [ 3 ] { calm, fresh, gale }; property x 1; }
variable wet { type discrete [ 2 ] { no, yes }; }
variable out {
  type discrete [ 2 ] { no, yes };
}
probability ( rain ) { table 0.7, 0.3; }
probability ( wind | rain ) {
  (no) 0.5, 0.4, 0.1;
  (yes) 0.2, 0.5, 0.3;
}
probability ( wet | rain, wind ) {
  (yes, calm) 0.0, 1.0;
  (yes, fresh) 0.0, 1.0;
  (yes, gale) 0.0, 1.0;
  default 1.0, 0.0;
}
probability ( out | wet ) { table 0.2, 0.9, 0.8, 0.1; }
"""
UAI = "BAYES\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 0.4 0.6\n\n6\n 0.2 0.3 0.5\n 0.6 0.4 0.0\n"


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_a_network_in_bif_has_the_law_that_is_written_there(tmp_path):
    graph = read_bif(write(tmp_path, "small.bif", BIF))
    assert graph.names == ("rain", "wind", "wet", "out")
    assert graph.labels[1] == ("calm", "fresh", "gale")
    law = dx.exact.law(graph).reshape(2, 3, 2, 2)
    rain, wind = np.array([0.7, 0.3]), np.array([[0.5, 0.4, 0.1], [0.2, 0.5, 0.3]])
    out = np.array([[0.2, 0.8], [0.9, 0.1]])
    expected = np.einsum("r,rw,rt,to->rwto", rain, wind, np.eye(2), out)
    np.testing.assert_allclose(law, expected, atol=1e-6)
    packed = tmp_path / "small.bif.gz"
    packed.write_bytes(gzip.compress(BIF.encode()))
    given = read_bif(packed, evidence={"out": "yes"})
    np.testing.assert_allclose(dx.exact.law(given), expected[..., 1].ravel() / expected[..., 1].sum(), atol=1e-6)


def test_sampling_a_network_with_zeros_gives_its_marginals(tmp_path):
    with pytest.raises(TypeError, match="Evidence is a dict of names and levels, but got 'out=yes'"):
        read_bif(write(tmp_path, "small.bif", BIF), evidence="out=yes")
    graph = read_bif(write(tmp_path, "small.bif", BIF), evidence={"out": "yes"})
    result = dx.sample(jax.random.key(0), graph, "auto", num_chains=100, num_warmup=5, num_samples=200)
    assert "auto chose gibbs, elimination without a pilot" in str(result.report)
    rain = np.array([0.7 * 0.8, 0.3 * 0.1])
    np.testing.assert_allclose(graph.marginals(result.draws)["rain"], rain / rain.sum(), atol=0.01)
    one_by_one = dx.sample(jax.random.key(0), graph, "gibbs", num_chains=4, num_warmup=0, num_samples=5)
    assert "those of rain, wind, wet fall into 2 parts" in one_by_one.reports[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("(no) 0.5, 0.4, 0.1;", "(no) 0.5, 0.5;"), "line 10: 3 probabilities of wind were expected, but there are 2"),
        (("(no) 0.5, 0.4, 0.1;", "(no) 0.5, 0.4, 0.3;"), "line 10: .* add up to 1, but here to 1.2"),
        (("(no) 0.5, 0.4, 0.1;", "(no) 1.5, -0.4, -0.1;"), "line 10: .* not negative, but got '-0.4'"),
        (("(no) 0.5, 0.4, 0.1;", "(no) nan, 0.4, 0.1;"), "line 10: .* but got 'nan'"),
        (("(no) 0.5, 0.4, 0.1;", ""), r"The table of wind has no row for \(no\)"),
        (("(no) 0.5, 0.4, 0.1;", "(maybe) 0.5, 0.4, 0.1;"), "line 10: rain has the levels no, yes, but got 'maybe'"),
        (("( out | wet )", "( out | snow )"), "line 19: There is no variable 'snow' above this line"),
        (("[ 3 ]", "[ 4 ]"), "line 3: wind has 4 different levels, but 3 are named"),
        (("probability ( rain ) { table 0.7, 0.3; }", ""), "The variable rain has no table"),
        (
            ("( rain ) { table 0.7, 0.3; }", "( rain | out ) { default 0.7, 0.3; }"),
            "A Bayesian network has no cycles, but here is .* <- ",
        ),
        (("variable wet", "node wet"), "line 4: Expected network, variable or probability, but got 'node'"),
        (("0.8, 0.1; }", "0.8, 0.1"), "The file ends where"),
    ],
)
def test_what_is_wrong_in_a_bif_file_is_said_with_its_line(tmp_path, change, sentence):
    assert change[0] in BIF
    path = write(tmp_path, "bad.bif", BIF.replace(*change))
    with pytest.raises(ValueError, match=sentence) as caught:
        read_bif(path)
    assert str(path) in str(caught.value)


def test_a_network_in_uai_and_its_evidence(tmp_path):
    path = write(tmp_path, "two.uai", UAI)
    expected = np.array([[0.4], [0.6]]) * [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]
    np.testing.assert_allclose(dx.exact.law(read_uai(path)), expected.ravel(), atol=1e-6)
    for text in ("1 1 1\n", "1\n1 1 1\n"):
        given = read_uai(path, write(tmp_path, "two.uai.evid", text))
        np.testing.assert_allclose(dx.exact.law(given), expected[:, 1] / expected[:, 1].sum(), atol=1e-6)
    alone = read_uai(write(tmp_path, "one.uai", "MARKOV 2 1 2 1 2 0 1 2 1 3"))
    np.testing.assert_allclose(dx.exact.law(alone), [0.25, 0.75], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "evidence", "sentence"),
    [
        (("6\n", "4\n"), None, "line 11: Table 1 has 6 entries by the levels of its variables, but got 4"),
        (("0.5", "-0.5"), None, "line 12: .* not negative, but got '-0.5'"),
        (("0.5", "nan"), None, "line 12: .* but got 'nan'"),
        (("2 0 1", "2 0 7"), None, "line 6: A scope has different variables below 2"),
        (("BAYES", "GRAPH"), None, "line 1: A UAI file begins with MARKOV or BAYES, but got 'GRAPH'"),
        ((" 0.4 0.0", " 0.4"), None, "The file ends where an entry of a table was expected"),
        ((" 0.4 0.0", " 0.4 0.0 1"), None, "line 13: Nothing was expected after the last table"),
        (("", ""), "1 5 0", "evid, line 1: The network has the variables 0..1, but evidence is of 5"),
        (("", ""), "1 0 2", "evid, line 1: Variable 0 has the codes 0..1, but evidence says 2"),
        (("", ""), "2 0 1", "evid, line 1: 2 observed variables are 4 numbers, but 2 follow"),
    ],
)
def test_what_is_wrong_in_a_uai_file_is_said_with_its_line(tmp_path, change, evidence, sentence):
    path = write(tmp_path, "bad.uai", UAI.replace(*change))
    observed = None if evidence is None else write(tmp_path, "bad.uai.evid", evidence)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path)) + ".*" + sentence):
        read_uai(path, observed)


def test_models_of_pgmpy_have_the_answers_of_its_elimination():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pgmpy")
        from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

        from discrax.interop.pgmpy import from_pgmpy

        names = {"rain": ["no", "yes"], "wind": ["calm", "fresh", "gale"], "out": ["no", "yes"]}
        model = DiscreteBayesianNetwork([("rain", "wind"), ("rain", "out"), ("wind", "out")])
        model.add_cpds(
            TabularCPD("rain", 2, [[0.7], [0.3]], state_names=names),
            TabularCPD("wind", 3, [[0.5, 0.2], [0.4, 0.5], [0.1, 0.3]], ["rain"], [2], state_names=names),
            TabularCPD(
                "out", 2, [[0.2, 0, 0.4, 1, 0.3, 0.9], [0.8, 1, 0.6, 0, 0.7, 0.1]], ["rain", "wind"], [2, 3],
                state_names=names,
            ),
        )  # fmt: skip
        graph = from_pgmpy(model, evidence={"out": "yes"})
        answers = VariableElimination(model).query(["wind"], {"out": "yes"}, show_progress=False)
        rng, edges = np.random.default_rng(0), [("a", "b"), ("b", "c"), ("c", "a")]
        network = DiscreteMarkovNetwork(edges)
        network.add_factors(*(DiscreteFactor(edge, [2, 2], rng.gamma(1.0, size=4)) for edge in edges))
        field = from_pgmpy(network)
        wanted = VariableElimination(network).query(["b"], show_progress=False).values
    states, law = graph.space.enumerate(), dx.exact.law(graph)
    wind = [
        law[states[:, graph.site("wind")] == graph.code("wind", name)].sum() for name in answers.state_names["wind"]
    ]
    np.testing.assert_allclose(wind, answers.values, atol=1e-6)
    found = [dx.exact.law(field)[field.space.enumerate()[:, field.site("b")] == code].sum() for code in (0, 1)]
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-6)  # theirs of a Markov network add up to Z
    with pytest.raises(TypeError, match="A model is a discrete network or factor graph of pgmpy, but got"):
        from_pgmpy([1, 2])


def test_models_of_dimod_have_the_law_of_their_energies():
    dimod = pytest.importorskip("dimod")
    from discrax.interop.dimod_factors import from_dimod

    rng, dqm = np.random.default_rng(0), dimod.DiscreteQuadraticModel()
    for name, cases in {"a": 3, "b": 2, "c": 4}.items():
        dqm.add_variable(cases, label=name)
        dqm.set_linear(name, rng.normal(size=cases))
    for (u, i), (v, j) in itertools.product([("a", 2), ("a", 0)], [("b", 1), ("c", 3)]):
        dqm.set_quadratic_case(u, i, v, j, rng.normal())
    graph = from_dimod(dqm)
    states = graph.space.enumerate()
    weights = np.exp(-dqm.energies((states, list(graph.names))))
    np.testing.assert_allclose(dx.exact.law(graph), weights / weights.sum(), atol=1e-6)
    for vartype in ("SPIN", "BINARY"):
        terms = {("a", "b", "c"): 0.7, ("a",): -0.4, ("b", "d"): 1.0, (): 2.0}
        polynomial = dimod.BinaryPolynomial(terms, vartype)
        graph = from_dimod(polynomial)
        states = graph.space.enumerate()
        values = 2 * states - 1 if vartype == "SPIN" else states
        weights = np.exp(-polynomial.energies((values, list(graph.names))))
        np.testing.assert_allclose(dx.exact.law(graph), weights / weights.sum(), atol=1e-6)
    with pytest.raises(TypeError, match="A model is a dimod DiscreteQuadraticModel or BinaryPolynomial, but got"):
        from_dimod({})
