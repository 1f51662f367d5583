"""Polynomials site by site: planted optima, counts that stay exact, the law of sweeps, walks of formulas."""

from itertools import pairwise

import numpy as np
import pytest

from discrax.problems import MaxSAT, Polynomial
from discrax.problems.products import Products, make_products
from discrax.solving import sites_polynomial as kernels
from discrax.solving.clock import SearchBudget
from discrax.solving.engine import Report
from discrax.solving.polynomial_chains import PolynomialChains
from discrax.solving.sites import search_by_sites

from ..helpers import P_VALUE
from .test_sites import all_states, p_value_of_the_law


def random_products(num_sites: int, num_terms: int, seed: int, *, kind: str, scale: float | None = None) -> Products:
    """Terms of one to four factors: literals, spins, or costs, which are literals whose weights are negative."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, num_terms)
    sites = np.concatenate([rng.permutation(num_sites)[:size] for size in sizes])
    codes = np.ones(len(sites), np.int8) if kind == "spins" else rng.integers(0, 2, len(sites), dtype=np.int8)
    weights = rng.normal(size=num_terms) if scale is None else np.round(scale * rng.normal(size=num_terms)) + 0.0
    weights = -np.abs(weights) if kind == "costs" else weights
    terms = np.repeat(np.arange(num_terms), sizes)
    surcharges = rng.choice([0.0, 3.0], num_terms) if kind == "costs" else None
    return make_products(num_sites, terms, sites, codes, weights, 0.25, surcharges=surcharges, is_spin=kind == "spins")


def planted_formula(num_variables: int = 60, num_clauses: int = 240, seed: int = 0) -> MaxSAT:
    """Three literals a clause, all of which a hidden assignment satisfies."""
    rng = np.random.default_rng(seed)
    hidden = rng.choice([-1, 1], num_variables)
    clauses = []
    while len(clauses) < num_clauses:
        variables = rng.permutation(num_variables)[:3]
        signs = rng.choice([-1, 1], 3)
        if (signs == hidden[variables]).any():
            clauses.append((signs * (variables + 1)).tolist())
    return MaxSAT(clauses)


def planted_spins(num_spins: int = 40, seed: int = 0) -> Polynomial:
    """Products of three spins that can all have their way."""
    rng = np.random.default_rng(seed)
    hidden = rng.choice([-1, 1], num_spins)
    triples = np.stack([rng.permutation(num_spins)[:3] for _ in range(60)])
    weights = -rng.uniform(0.5, 1.5, len(triples)) * hidden[triples].prod(1)
    return Polynomial(dict(zip(map(tuple, triples.tolist()), weights.tolist(), strict=True)), vartype="SPIN")


PLANTED = {"formula": planted_formula, "spins": planted_spins}


def last(model: Products, budget: SearchBudget, **options) -> Report:
    *_, report = search_by_sites(model, budget=budget, **({"num_chains": 2, "seed": 0, "init": None} | options))
    return report


def assert_finds_what_is_planted(name: str) -> None:
    problem = PLANTED[name]()
    report = last(problem.model, SearchBudget(num_steps=2000))
    best = report.best_states[report.best_values.argmax()]
    np.testing.assert_allclose(problem.model.value(report.best_states), report.best_values)
    assert problem.objective(best) == pytest.approx(problem.bound())


@pytest.fixture
def idle(monkeypatch):
    """Sweeps and walks that do nothing: what is left are the local maxima above random states."""
    monkeypatch.setattr(PolynomialChains, "anneal", lambda *_: None)


@pytest.mark.parametrize("name", PLANTED)
def test_finds_what_is_planted(name):
    assert_finds_what_is_planted(name)


@pytest.mark.parametrize("name", PLANTED)
def test_idle_sweeps_do_not_find_what_is_planted(name, idle):
    with pytest.raises(AssertionError):
        assert_finds_what_is_planted(name)


@pytest.mark.parametrize("is_walking", [False, True], ids=["sweeps", "walks"])
def test_sweeps_alone_and_walks_alone_find_what_is_planted(is_walking, monkeypatch):
    monkeypatch.setattr(PolynomialChains, "_walks", lambda self, chain: is_walking)
    assert_finds_what_is_planted("formula")


def assert_exact(chains: PolynomialChains) -> None:
    """All that chains keep is what follows from their codes."""
    model, places = chains.model, chains.places
    for chain, x in enumerate(chains.states):
        np.testing.assert_array_equal(places.counts[chain], model.counts(x))
        np.testing.assert_allclose(chains.unit * places.gains[chain], model.gains(x), atol=1e-9)
        others = [model.sites[a:b][x[model.sites[a:b]] != model.codes[a:b]] for a, b in pairwise(model.start)]
        np.testing.assert_array_equal(places.lone[chain], [np.bitwise_xor.reduce(each, initial=0) for each in others])
    np.testing.assert_allclose(chains.current_values(), model.value(chains.states), atol=1e-9)
    tracked = chains.unit * chains.best_values
    np.testing.assert_allclose(tracked, model.strict().value(chains.best) - model.offset, atol=1e-9)
    owed = model.value(chains.states) - model.strict().value(chains.states)
    np.testing.assert_allclose(chains.unit * chains.bests.surcharges, owed, atol=1e-9)


@pytest.mark.parametrize("scale", [None, 3])
@pytest.mark.parametrize("kind", ["literals", "spins", "costs"])
def test_what_chains_keep_stays_exact(kind, scale):
    model = random_products(15, 40, 1, kind=kind, scale=scale)
    chains = PolynomialChains(model, 4, 0, may_walk=True)
    assert chains.may_walk == (kind == "costs")
    chains.begin(None, 0, 4)
    assert_exact(chains)
    for _ in range(3):
        chains.anneal(np.linspace(0.1, 2, 100), 0, 4)
        assert_exact(chains)
        chains.polish(0, 4)
        assert_exact(chains)
        chains.restart(0, 4)


def gain_by_the_book(model: Products, x: np.ndarray, site: int) -> float:
    y = x.copy()
    y[site] ^= 1
    return float(model.value(y) - model.value(x))


@pytest.mark.parametrize("kind", ["literals", "spins"])
def test_flips_back_and_forth_change_nothing(kind):
    model = random_products(8, 30, 2, kind=kind)
    chains = PolynomialChains(model, 1, 0)
    chains.restart(0, 1)
    place = kernels.place_of(chains.places, 0)
    before = [array.copy() for array in place]
    for i in range(8):
        assert chains.unit * place.gains[i] == pytest.approx(gain_by_the_book(model, place.x, i))
        for _ in range(200):
            kernels.flip(chains.form, place, i)
        for now, then in zip(place, before, strict=True):
            np.testing.assert_allclose(now, then, atol=1e-12)
        kernels.flip(chains.form, place, i)  # and once more, so that the next one begins elsewhere
        before = [array.copy() for array in place]
        np.testing.assert_allclose(chains.unit * place.gains, model.gains(place.x), atol=1e-9)


@pytest.mark.parametrize("scale", [None, 3])
@pytest.mark.parametrize("kind", ["literals", "spins"])
def test_sweeps_leave_the_law_invariant(kind, scale):
    num_sites, num_chains, beta = 5, 20_000, 0.7 / (scale or 1)
    model = random_products(num_sites, 12, 3, kind=kind, scale=scale)
    chains = PolynomialChains(model, num_chains, 1)
    assert chains.has_table == (scale is not None)
    chains.begin(None, 0, num_chains)
    chains.anneal(np.full(60, beta), 0, num_chains)
    values = model.value(all_states(2, num_sites))
    assert p_value_of_the_law(chains.states, values, 2, beta) > P_VALUE
    assert p_value_of_the_law(chains.states, values, 2, 1.3 * beta) < P_VALUE


def test_temperatures_that_are_asked_for_are_kept_by_all_chains():
    """No chain walks where the law at one temperature is wanted."""
    model = random_products(5, 12, 3, kind="costs")
    report = last(model, SearchBudget(num_steps=60), num_chains=4000, betas=(0.7, 0.7))
    values = model.value(all_states(2, 5))
    probabilities = np.exp(0.7 * values) / np.exp(0.7 * values).sum()
    spread = np.sqrt(probabilities @ values**2 - (probabilities @ values) ** 2)
    assert abs(report.values.mean() - probabilities @ values) < 6 * spread / np.sqrt(4000)


@pytest.mark.parametrize("kind", ["literals", "spins", "costs"])
def test_results_depend_on_the_seed_but_not_on_threads(kind):
    model = random_products(40, 120, 4, kind=kind)
    one, two, other = (
        last(model, SearchBudget(num_steps=500), num_chains=4, seed=seed, num_threads=threads)
        for seed, threads in ((5, 1), (5, 3), (6, 1))
    )
    for field in ("values", "best_values", "best_states"):
        assert (getattr(one, field) == getattr(two, field)).all()
    assert (one.values != other.values).any()
    assert one.num_steps == 500


def test_a_given_state_is_kept_if_nothing_is_better():
    problem = planted_formula(12, 40)
    states = all_states(2, 12).astype(np.int8)
    best = states[problem.model.value(states).argmax()]
    report = last(problem.model, SearchBudget(num_steps=3), init=best)
    assert (report.best_values == problem.model.value(best)).all()


def test_a_feasible_state_is_kept_though_others_are_worth_more_on_the_way():
    problem = MaxSAT([[1], [2], [3]], hard=[[-1], [-2], [-3]], penalty=0.1)
    report = last(problem.model, SearchBudget(num_steps=200))
    assert report.values.max() == pytest.approx(2.7)  # where all hard clauses are violated
    assert report.best_values.max() == 0
    assert not report.best_states[report.best_values.argmax()].any()


def test_nothing_to_gain():
    model = make_products(3, np.zeros(0, int), np.zeros(0, int), np.zeros(0, np.int8), np.zeros(0), 2.0)
    assert (last(model, SearchBudget(num_steps=5)).best_values == 2).all()
