"""Site by site: optima of small models, exact budgets, the same results in any number of threads, the law of sweeps."""

import itertools

import numpy as np
import pytest

from discrax.problems import QUBO
from discrax.problems.problem import BinaryQuadratic, Labelling
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.engine import Report
from discrax.solving.sites import search_by_sites
from discrax.solving.sites_chains import BinaryChains, LabelChains

from ..helpers import P_VALUE
from .clocks import Hands
from .laws import all_states, p_value_of_the_law, random_model


def random_labelling(num_nodes: int, num_labels: int, seed: int) -> Labelling:
    generator = np.random.default_rng(seed)
    edges = np.array([pair for pair in itertools.combinations(range(num_nodes), 2) if generator.random() < 0.4])
    return Labelling(num_nodes, num_labels, edges, generator.uniform(0.5, 1.5, len(edges)), 1.5, 0.4)


def value_of_labels(model: Labelling, x: np.ndarray) -> float:
    cut = sum(w for (i, j), w in zip(model.edges, model.weights, strict=True) if x[i] != x[j])
    counts = np.bincount(x, minlength=model.num_labels)
    return -model.cut_cost * cut - model.size_cost * ((model.num_nodes / model.num_labels - counts) ** 2).sum()


def last(model: BinaryQuadratic | Labelling, budget: SearchBudget, **options) -> Report:
    given = {"num_chains": 4, "seed": 0, "init": None} | options
    *_, report = search_by_sites(model, budget=budget, **given)
    return report


def planted_model(scale: float | None) -> tuple[BinaryQuadratic, float]:
    """Spins on a torus of 12 x 12 that can all have their way, and what that is worth."""
    generator, site = np.random.default_rng(1), np.arange(144).reshape(12, 12)
    edges = np.concatenate([np.stack([site, np.roll(site, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    weights = generator.uniform(0.5, 1.5, len(edges)) if scale is None else generator.integers(1, scale + 1, len(edges))
    signs = generator.choice([-1.0, 1.0], 144)
    return QUBO(np.zeros(144), edges, -weights * signs[edges].prod(1), vartype="SPIN").model, float(weights.sum())


def strip(num_labels: int) -> tuple[Labelling, float]:
    """A grid five nodes high that is best cut into squares, and what that is worth."""
    site = np.arange(25 * num_labels).reshape(5, -1)
    pairs = [(site[1:], site[:-1]), (site[:, 1:], site[:, :-1])]
    edges = np.concatenate([np.stack(pair, -1).reshape(-1, 2) for pair in pairs])
    return Labelling(site.size, num_labels, edges, np.ones(len(edges)), 1.5, 0.4), -1.5 * 5 * (num_labels - 1)


def assert_optimum_of_a_model(schedule, scale):
    model, optimum = planted_model(scale)
    report = last(model, SearchBudget(num_steps=2000), schedule=schedule)
    assert (model.value(report.best_states) == report.best_values).all()
    assert np.isclose(report.best_values.max(), optimum)


def assert_optimum_of_a_labelling(num_labels):
    model, optimum = strip(num_labels)
    report = last(model, SearchBudget(num_steps=600))
    assert np.allclose([value_of_labels(model, x) for x in report.best_states], report.best_values)
    assert np.isclose(report.best_values.max(), optimum)


@pytest.fixture
def idle(monkeypatch):
    """Sweeps that do nothing: what is left are the local maxima above random states."""
    for chains in (BinaryChains, LabelChains):
        monkeypatch.setattr(chains, "anneal", lambda *_: None)
    monkeypatch.setattr(BinaryChains, "temper", lambda *_: None)


MODELS = [(schedule, scale) for schedule in ("auto", "linear", "geometric", "tempering") for scale in (None, 3)]


@pytest.mark.parametrize(("schedule", "scale"), MODELS)
def test_finds_the_optimum_of_models(schedule, scale):
    assert_optimum_of_a_model(schedule, scale)


@pytest.mark.parametrize(("schedule", "scale"), MODELS)
def test_idle_sweeps_do_not_find_the_optimum_of_models(schedule, scale, idle):
    with pytest.raises(AssertionError):
        assert_optimum_of_a_model(schedule, scale)


@pytest.mark.parametrize("num_labels", [3, 4])
def test_finds_the_optimum_of_labellings(num_labels):
    assert_optimum_of_a_labelling(num_labels)


@pytest.mark.parametrize("num_labels", [3, 4])
def test_idle_sweeps_do_not_find_the_optimum_of_labellings(num_labels, idle):
    with pytest.raises(AssertionError):
        assert_optimum_of_a_labelling(num_labels)


@pytest.mark.parametrize("schedule", ["auto", "tempering"])
@pytest.mark.parametrize("scale", [None, 3])
def test_tracked_values_are_those_of_the_states(schedule, scale):
    model = random_model(40, 7, scale=scale)
    chains = BinaryChains(model, 3, 0)
    chains.begin(None, 0, 3)
    chains.anneal(np.linspace(0.1, 2, 300), 0, 3)
    if schedule == "tempering":
        ladder = np.linspace(0.1, 2, 5)
        chains.begin_tempering(ladder)
        chains.temper(ladder, 0, 50, 0, 3)
    assert np.allclose(chains.current_values(), model.value(chains.codes(chains.states)))
    tracked = model.offset + chains.unit * chains.best_values
    assert np.allclose(tracked, model.value(chains.codes(chains.best)))


def test_tracked_values_of_labels_are_those_of_the_states():
    model = random_labelling(30, 4, 1)
    chains = LabelChains(model, 3, 0)
    chains.begin(None, 0, 3)
    chains.anneal(np.linspace(0.1, 2, 200), 0, 3)
    assert np.allclose(chains.values, [value_of_labels(model, x) for x in chains.states])


@pytest.mark.parametrize("scale", [None, 3, 300])  # floats; losses in the table; losses beyond the table
def test_sweeps_leave_the_law_invariant(scale):
    num_sites, num_chains, beta = 5, 20_000, 1.2 / (scale or 1)
    model = random_model(num_sites, 3, scale=scale)
    chains = BinaryChains(model, num_chains, 1)
    assert chains.has_table == (scale is not None)
    chains.begin(None, 0, num_chains)
    chains.anneal(np.full(60, beta), 0, num_chains)
    values = model.value(all_states(2, num_sites))
    assert p_value_of_the_law(chains.codes(chains.states), values, 2, beta) > P_VALUE
    assert p_value_of_the_law(chains.codes(chains.states), values, 2, 1.3 * beta) < P_VALUE


def test_tempering_leaves_the_law_invariant():
    num_sites, num_chains = 5, 10_000
    model = random_model(num_sites, 3)
    ladder = np.array([0.3, 0.6, 1.0])
    chains = BinaryChains(model, num_chains, 1)
    chains.begin(None, 0, num_chains)
    chains.begin_tempering(ladder)
    chains.temper(ladder, 0, 60, 0, num_chains)
    values = model.value(all_states(2, num_sites))
    for rung, beta in enumerate(ladder):
        for team in range(chains.rungs.shape[1]):
            states = chains.replicas[np.arange(num_chains), chains.rungs[:, team, rung]]
            assert p_value_of_the_law(chains.codes(states), values, 2, beta) > P_VALUE
    assert (chains.rungs[:, 0] != np.arange(3)).mean() > 0.3


def test_sweeps_of_labels_leave_the_law_invariant():
    num_nodes, num_labels, num_chains, beta = 4, 3, 20_000, 0.5
    model = random_labelling(num_nodes, num_labels, 2)
    chains = LabelChains(model, num_chains, 1)
    chains.begin(None, 0, num_chains)
    chains.anneal(np.full(40, beta), 0, num_chains)
    values = np.array([value_of_labels(model, x) for x in all_states(num_labels, num_nodes)])
    assert p_value_of_the_law(chains.states, values, num_labels, beta) > P_VALUE
    assert p_value_of_the_law(chains.states, values, num_labels, 1.3 * beta) < P_VALUE


@pytest.mark.parametrize("model", [random_model(60, 0), random_model(60, 0, scale=3), random_labelling(40, 3, 0)])
def test_results_depend_on_the_seed_but_not_on_threads(model):
    for schedule in ("linear", "tempering"):
        one, two = (
            last(model, SearchBudget(num_steps=3001), seed=5, num_threads=threads, schedule=schedule)
            for threads in (1, 3)
        )
        for field in ("values", "best_values", "best_states"):
            assert (getattr(one, field) == getattr(two, field)).all()
    held = [last(model, SearchBudget(num_steps=5), seed=seed, betas=(0.01, 0.01)) for seed in (5, 6)]
    assert (held[0].values != held[1].values).any()


def test_the_first_chains_are_the_same_among_more():
    model = random_model(60, 0)
    few, many = (last(model, SearchBudget(num_steps=500), num_chains=chains) for chains in (2, 5))
    assert (few.best_states == many.best_states[:2]).all()


@pytest.mark.parametrize("num_steps", [0, 1, 7, 1000, 40_001])  # the last is enough to temper by default
@pytest.mark.parametrize("schedule", ["auto", "tempering"])
def test_budgets_of_steps_are_exact(num_steps, schedule):
    report = last(random_model(20, 0), SearchBudget(num_steps=num_steps), schedule=schedule)
    assert report.num_steps == num_steps
    assert report.fraction == 1


@pytest.fixture
def hands(monkeypatch):
    """A sweep takes a millisecond of a time that the test turns, and nothing else takes any."""
    hands = Hands()

    def slowly(anneal):
        def slow(self, betas, low, high):
            hands.time += 1e-3 * len(betas) * (low == 0)
            anneal(self, betas, low, high)

        return slow

    for chains in (BinaryChains, LabelChains):
        monkeypatch.setattr(chains, "anneal", slowly(chains.anneal))
    return hands


def search_for(seconds, hands, model):
    clock = hands.clock(seconds)
    return search_by_sites(model, num_chains=2, seed=0, init=None, budget=clock.budget, clock=clock, num_threads=1)


@pytest.mark.parametrize("model", [random_model(100, 0, scale=3), random_labelling(100, 4, 0)])
@pytest.mark.parametrize("seconds", [0.0, 0.7])
def test_budgets_of_seconds_are_kept(hands, model, seconds):
    reports = list(search_for(seconds, hands, model))
    assert seconds - 0.01 < hands.time < seconds + 0.01
    assert [report.fraction for report in reports] == sorted(report.fraction for report in reports)
    assert len(reports) >= 3 or seconds == 0
    best = np.array([report.best_values for report in reports])
    assert (np.diff(best, axis=0) >= 0).all()


def test_reports_are_not_changed_by_what_follows(hands):
    search = search_for(0.6, hands, random_model(200, 0))
    first = next(search)
    copy = first.best_states.copy(), first.values.copy()
    assert any((later.values != first.values).any() for later in search)
    assert (first.best_states == copy[0]).all()
    assert (first.values == copy[1]).all()


def test_a_search_may_be_left_early(hands):
    search = search_for(60.0, hands, random_model(200, 0))
    next(search)
    search.close()
    assert hands.time < 1
    assert list(search) == []


def test_given_states_are_kept_if_nothing_is_better():
    model = random_model(16, 5)
    states = all_states(2, 16)
    optimum = states[model.value(states).argmax()]
    report = last(model, SearchBudget(num_steps=1), init=optimum)
    assert (report.best_states == optimum).all()


def test_one_temperature_is_held():
    report = last(random_model(30, 0), SearchBudget(num_steps=50), betas=(0.01, 0.01))
    assert report.beta == 0.01
    assert (report.values < report.best_values).all()


def test_models_without_edges_and_of_one_site():
    nothing = np.zeros((0, 2), np.int64)
    linear = np.array([2.0, -1.0, 0.0, 3.0])
    for schedule in ("auto", "tempering"):
        report = last(BinaryQuadratic(linear, nothing, np.zeros(0)), SearchBudget(num_steps=40), schedule=schedule)
        assert (report.best_values == 5).all()
        assert (
            last(BinaryQuadratic(np.zeros(3), nothing, np.zeros(0)), SearchBudget(num_steps=9)).best_values == 0
        ).all()
        assert (
            last(BinaryQuadratic(np.array([-1.5]), nothing, np.zeros(0)), SearchBudget(num_steps=9)).best_values == 0
        ).all()
    assert (last(Labelling(6, 3, nothing, np.zeros(0), 1.0, 1.0), SearchBudget(num_steps=30)).best_values == 0).all()
    assert (last(Labelling(1, 1, nothing, np.zeros(0), 1.0, 1.0), SearchBudget(num_steps=3)).best_values == 0).all()


def test_what_cannot_be_searched_is_refused():
    nothing = np.zeros((0, 2), np.int64)
    empty = BinaryQuadratic(np.zeros(0), nothing, np.zeros(0))
    with pytest.raises(ValueError, match="no sites"):
        last(empty, SearchBudget(num_steps=1))
    with pytest.raises(ValueError, match="no sites"):
        last(Labelling(0, 2, nothing, np.zeros(0), 1.0, 1.0), SearchBudget(num_steps=1))
    model = random_model(4, 0)
    with pytest.raises(ValueError, match="budget of seconds or of steps"):
        last(model, SearchBudget())
    with pytest.raises(ValueError, match="not negative"):
        last(model, SearchBudget(seconds=-1))
    with pytest.raises(ValueError, match="one of auto"):
        last(model, SearchBudget(num_steps=1), schedule="cubic")
    with pytest.raises(ValueError, match="0 < hot < cold"):
        last(model, SearchBudget(num_steps=1), betas=(2.0, 1.0))
    with pytest.raises(ValueError, match="at least one chain"):
        last(model, SearchBudget(num_steps=1), num_chains=0)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        last(model, SearchBudget(num_steps=1), init=np.zeros(3, int))
    with pytest.raises(ValueError, match="0 to 1"):
        last(model, SearchBudget(num_steps=1), init=np.array([0, 1, -1, 0]))
    with pytest.raises(ValueError, match="at least one label"):
        last(Labelling(200, 0, nothing, np.zeros(0), 1.0, 1.0), SearchBudget(num_steps=1))


def test_rounds_go_on_where_they_are_and_reheat_as_told(monkeypatch):
    along, restarts = [], []
    anneal, restart = BinaryChains.anneal, BinaryChains.restart

    def told(self, betas, low, high):
        along.extend(betas.tolist())
        anneal(self, betas, low, high)

    def counted(self, low, high):
        restarts.append(low)
        restart(self, low, high)

    monkeypatch.setattr(BinaryChains, "anneal", told)
    monkeypatch.setattr(BinaryChains, "restart", counted)
    model, settings = random_model(10, 0), {"betas": (1.0, 3.0), "schedule": "linear", "num_chains": 1}
    last(model, SearchBudget(num_steps=300), num_rounds=3, reheat=0.5, **settings)
    first, second, third = np.array(along).reshape(3, 100)
    assert 1 < first[0] < 1.05
    assert 2 < second[0] < 2.05
    assert first[-1] > 2.95 < third[-1]
    np.testing.assert_allclose(second, third)
    assert len(restarts) == 1


def test_all_kinds_of_schedules_go_from_hot_to_cold():
    for kind in ("linear", "geometric", "exponential", "linear-temperature"):
        report = last(random_model(10, 0), SearchBudget(num_steps=400), schedule=kind, betas=(0.5, 5.0), num_rounds=1)
        assert 4.5 < report.beta <= 5.0


def test_a_search_that_is_asked_to_stop_stops():
    budget = SearchBudget(seconds=60.0)
    clock = Clock(budget, is_asked_to_stop=lambda: True)
    reports = list(search_by_sites(random_model(20, 0), num_chains=2, seed=0, init=None, budget=budget, clock=clock))
    assert [report.num_steps for report in reports] == [0]
