"""Factor graphs against tables that are looked up in numpy, at every state of small spaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax as dx
from discrax.core.supports import tables_of
from discrax.samplers.conditionals import conditional_ratios
from discrax.targets import FactorGraph

from ..helpers import brute_force_ratios

LEVELS = {"mixed": (2, 3, 4, 2), "bits": (2, 2, 2, 2, 2), "threes": (3, 3, 3)}
kinds = pytest.mark.parametrize("kind", LEVELS)


def random_graph(kind: str, zeros: bool = False) -> tuple[FactorGraph, list, list]:
    rng, levels = np.random.default_rng(len(kind)), LEVELS[kind]
    scopes = [rng.permutation(len(levels))[: 1 + f % 3].tolist() for f in range(6)] + [[]]
    tables = [rng.gamma(1.0, size=[levels[site] for site in scope]) for scope in scopes]
    if zeros:
        tables[2][..., 0] = 0
    return FactorGraph(levels, scopes, tables), scopes, tables


def plain_value(scopes, tables, x) -> float:
    with np.errstate(divide="ignore"):
        return float(sum(np.log(table[tuple(x[scope])]) for scope, table in zip(scopes, tables, strict=True)))


@kinds
@pytest.mark.parametrize("zeros", [False, True])
def test_values_ratios_and_changes_are_exact(kind, zeros):
    target, scopes, tables = random_graph(kind, zeros)
    levels, n = np.array(LEVELS[kind]), len(LEVELS[kind])
    states = target.space.enumerate()
    expected = np.array([plain_value(scopes, tables, x) for x in states])
    assert np.isneginf(expected).any() == zeros
    states, expected = states[np.isfinite(expected)], expected[np.isfinite(expected)]

    def value(x):
        return plain_value(scopes, tables, x) if (x < levels).all() else -np.inf

    ratios = np.array([brute_force_ratios(value, x, max(levels)) for x in states])
    found = jax.vmap(target.evaluate)(jnp.asarray(states))
    np.testing.assert_allclose(found.log_prob, expected, atol=1e-5)
    np.testing.assert_allclose(found.ratios, ratios, atol=1e-5)
    plain = jax.vmap(lambda x: target.log_prob(target.space.embed(x)))(jnp.asarray(states))
    np.testing.assert_allclose(plain, expected, atol=1e-5)
    sites = jnp.arange(n)
    local = jax.vmap(lambda x: jax.vmap(lambda i: conditional_ratios(target, x, i))(sites))(jnp.asarray(states))
    np.testing.assert_allclose(local, ratios, atol=1e-5)
    pair, other = jnp.array([0, n - 1]), states[np.random.default_rng(0).permutation(len(states))]
    codes = jnp.asarray(other[:, [0, n - 1]])
    changes = jax.vmap(lambda x, c: target.change(x, pair, c))(jnp.asarray(states), codes)
    after = np.array(states)
    after[:, [0, n - 1]] = other[:, [0, n - 1]]
    np.testing.assert_allclose(changes, [value(y) - value(x) for x, y in zip(states, after, strict=True)], atol=1e-5)


@kinds
def test_sites_of_a_table_have_different_colours_and_tables_are_as_they_came(kind):
    target, scopes, tables = random_graph(kind)
    colours = target.colours()
    assert all(len(set(colours[scope])) == len(scope) for scope in scopes)
    for (scope, log_table), wanted, table in zip(tables_of(target), scopes, tables, strict=True):
        assert list(scope) == wanted
        np.testing.assert_allclose(log_table, np.log(table), rtol=1e-5)


def test_evidence_freezes_sites_by_name_and_label():
    graph = FactorGraph(
        [2, 3], [[0, 1]], [np.arange(1, 7)], names=["rain", "wind"], labels=[("no", "yes"), ("calm", "fresh", "gale")]
    )
    given = graph.given({"wind": "gale"})
    np.testing.assert_allclose(dx.exact.law(given), np.array([3, 6]) / 9, rtol=1e-5)
    draws = np.array([[[0, 2], [1, 2]], [[1, 2], [1, 1]]])
    marginals = graph.marginals(draws)
    np.testing.assert_allclose(marginals["rain"], [0.25, 0.75])
    np.testing.assert_allclose(marginals["wind"], [0, 0.25, 0.75])
    with pytest.raises(ValueError, match="There is no variable 'snow', but there are rain, wind"):
        graph.given({"snow": 1})
    with pytest.raises(ValueError, match="wind has the levels calm, fresh, gale, but got 'storm'"):
        graph.given({"wind": "storm"})
    with pytest.raises(ValueError, match="wind has the levels calm, fresh, gale, but got 3"):
        graph.given({"wind": 3})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tables": [np.ones((3, 2))]}, r"Table 0, of 0, 1, has shape \(2, 3\) .* but got an array of shape \(3, 2\)"),
        ({"tables": [-np.ones((2, 3))]}, "Table 0, of 0, 1, has no negative entries, but got -1.0"),
        ({"tables": [np.full((2, 3), np.nan)]}, "Table 0, of 0, 1, must be finite, but holds nan"),
        ({"tables": []}, "there are 1 scopes and 0 tables"),
        ({"scopes": [[0, 2]]}, "Scope 0 has sites below 2"),
        ({"scopes": [[0, 0]]}, "Scope 0 has no site twice"),
        ({"names": ["a", "a"]}, "names are 2 different ones"),
        ({"labels": [("a", "b"), ("a", "b")]}, "1 has 3 levels with a label"),
        ({"evidence": {5: 0}}, "There is no variable 5"),
    ],
)
def test_bad_input_is_a_sentence(change, sentence):
    good = {"num_levels": [2, 3], "scopes": [[0, 1]], "tables": [np.ones((2, 3))]}
    FactorGraph(**good)
    with pytest.raises(ValueError, match=sentence):
        FactorGraph(**(good | change))


def test_logarithms_may_bar_and_must_be_numbers():
    graph = FactorGraph([2], [[0]], [[0.0, -np.inf]], in_logs=True)
    np.testing.assert_allclose(dx.exact.law(graph), [1, 0])
    with pytest.raises(ValueError, match="must be finite, but holds inf"):
        FactorGraph([2], [[0]], [[0.0, np.inf]], in_logs=True)


@pytest.mark.parametrize("kind", ["mixed", "bits"])
def test_gibbs_by_colours_leaves_the_law(kind):
    target, *_ = random_graph(kind)
    assert dx.exact.check_kernel(dx.samplers.gibbs("chromatic"), target, num_chains=20_000, num_convergence_steps=20)


@pytest.mark.parametrize("constants", [[], [1.0]])
def test_variables_of_no_table_are_uniform(constants):
    graph = FactorGraph([2, 3], [[] for _ in constants], constants)
    np.testing.assert_allclose(dx.exact.law(graph), np.full(6, 1 / 6), rtol=1e-6)
    for sampler in ("auto", "gibbs", "pas"):
        draws = dx.sample(
            jax.random.key(0), graph, sampler, num_chains=4, num_warmup=20, num_samples=500, progress=False
        ).draws
        np.testing.assert_allclose(np.bincount(draws[..., 1].ravel()) / draws[..., 1].size, 1 / 3, atol=0.06)


def test_tables_and_arviz_call_sites_by_their_names():
    pytest.importorskip("arviz_base")
    key, parts = jax.random.key(0), ((2, 3), [(0, 1)], [np.ones((2, 3))])
    graph = FactorGraph(*parts, names=("rain", "wind"))
    result = dx.sample(key, dx.Tempered(graph, 0.5), "gibbs", num_chains=2, num_warmup=0, num_samples=8)
    assert list(result.to_dataframe().columns[:2]) == ["rain", "wind"]
    assert list(result.sites().to_dataframe().index) == ["rain", "wind"]
    x = result.to_arviz()["posterior"]["x"]
    np.testing.assert_array_equal(x.sel(x_site="wind"), result.draws[..., 1])
    unnamed = dx.sample(key, FactorGraph(*parts), "gibbs", num_chains=2, num_warmup=0, num_samples=8)
    assert list(unnamed.to_dataframe().columns[:2]) == ["x[0]", "x[1]"]
    assert unnamed.to_arviz()["posterior"]["x"].shape == (2, 8, 2)
