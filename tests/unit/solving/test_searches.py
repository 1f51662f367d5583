"""Searches as objects: what each finds, what it refuses, and what all of them have in common."""

from itertools import pairwise

import jax
import networkx as nx
import numpy as np
import pytest

import discrax as dx
from discrax.problems import MIS, QUBO, MaxCut
from discrax.solving import protocol, replica_chains, sites_chains
from discrax.solving.engine import Report
from discrax.solving.searches import SEARCHES, Anneal, Population, Sites, Temper

from .instances import KEY, PLANTED, PROBLEM, PROBLEMS

# A torus whose spins can all have their way, in units of a quarter and with an offset.
_SITE = np.arange(144).reshape(12, 12)
_EDGES = np.concatenate([np.stack([_SITE, np.roll(_SITE, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
_SIGNS = np.random.default_rng(0).choice([-1, 1], 144)
_WEIGHTS = np.random.default_rng(1).integers(1, 4, len(_EDGES)) / 4
TORUS = QUBO(np.zeros(144), _EDGES, -_WEIGHTS * _SIGNS[_EDGES].prod(1), offset=3.0, vartype="SPIN")
BEST = 3.0 - _WEIGHTS.sum()
EACH = [Sites(2), Anneal(8), Temper(16, num_rungs=8), Population(16)]


@pytest.fixture(autouse=True)
def clocks_stand_still(hands):
    """Reports come when a search ends."""


def assert_solves(search, num_steps):
    solution = dx.solve(KEY, TORUS, search, num_steps=num_steps)
    assert solution.objective == BEST == TORUS.objective(solution.state)
    assert solution.search == search.name
    assert solution.num_steps == num_steps
    assert solution.history.best[-1] == solution.objective  # the offset counts once
    assert solution.history.mean[-1] >= solution.objective


@pytest.mark.parametrize("search", EACH, ids=lambda search: search.name)
def test_each_solves_what_is_planted(search):
    assert_solves(search, 1600)


@pytest.mark.parametrize("search", EACH, ids=lambda search: search.name)
def test_each_fails_if_its_sweeps_do_nothing(search, monkeypatch):
    monkeypatch.setattr(sites_chains.BinaryChains, "anneal", lambda *_: None)
    for name in ("anneal", "temper"):
        monkeypatch.setattr(replica_chains.ReplicaChains, name, lambda *_: None)
    with pytest.raises(AssertionError):
        assert_solves(search, 1600)


BY_SAMPLER = [
    pytest.param(search, marks=pytest.mark.slow)
    for search in (Anneal(8, sampler="pas"), Temper(8, num_rungs=4, sampler="pas"))
]


@pytest.mark.parametrize("search", [*EACH, *BY_SAMPLER], ids=repr)
def test_of_so_many_steps_each_finds_the_same_however_fast_the_machine_is(search, hands):
    """The first two searches look at the clock all the time, and the third hardly ever."""
    found = []
    for hands.tick in (0.3, 0.05, 0.0):
        found.append(dx.solve(KEY, TORUS, search, num_steps=77))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].state, other.state)
        assert found[0].history.mean[-1] == other.history.mean[-1]


@pytest.mark.parametrize("search", [*EACH, *BY_SAMPLER], ids=repr)
def test_the_beginning_of_so_many_steps_is_told_however_fast_the_machine_is(search):
    steps = dx.solve(KEY, TORUS, search, num_steps=320).history.num_steps
    assert steps[0] <= 8
    assert steps[-1] == 320
    assert all(later <= 2 * earlier + 8 for earlier, later in pairwise(steps))


@pytest.mark.parametrize("name", SEARCHES)
def test_names_stand_for_searches_with_their_defaults(name):
    assert dx.solving.searches.find_search(name) == SEARCHES[name]()
    assert SEARCHES[name].name == name
    problem = dx.problems.MIS(nx.path_graph(5))
    solution = dx.solve(KEY, problem, name, seconds=0)
    assert solution.search == name
    assert solution.num_chains == SEARCHES[name]().usual_chains([problem])


def test_what_is_left_open_is_chosen(monkeypatch):
    chosen = lambda problem, **settings: dx.solve(KEY, problem, seconds=0, **settings).search  # noqa: E731
    assert chosen(PROBLEMS["maxcut"][0]) == chosen(PROBLEMS["partition"][0]) == "sites"
    assert chosen(PROBLEMS["custom"][0]) == "anneal"
    assert chosen(dx.problems.MIS(nx.path_graph(5))) == "sets"
    assert chosen(dx.problems.MIS(nx.path_graph(5_001))) == "sites"
    assert chosen(PROBLEM, devices=1) == "anneal"
    for module in (dx.solving.searches, dx.solving.protocol):
        monkeypatch.setattr(module, "has_numba", lambda: False)
    assert chosen(PROBLEM) == "anneal"
    with pytest.raises(ImportError, match=r"needs numba: pip install 'discrax\[solve\]'"):
        dx.solve(KEY, PROBLEM, "sites", seconds=0)


@pytest.mark.parametrize(
    ("search", "sampler"),
    [
        (Sites(), "site by site"),
        (Anneal(), "sweeps"),
        (Anneal(sampler="chromatic"), "sweeps"),
        (Anneal(sampler="pas"), "pas"),
        (Anneal(sampler=dx.samplers.pas()), "PAS"),
        (Temper(), "sweeps"),
        (Population(), "sweeps"),
    ],
    ids=str,
)
def test_solutions_name_what_made_the_steps(search, sampler):
    assert dx.solve(KEY, PROBLEM, search, seconds=0).sampler == sampler
    if isinstance(search, Anneal | Temper) and sampler == "sweeps":
        assert search.sampler_for(PROBLEMS["custom"][0]) != "sweeps"


# --- what is refused ---


@pytest.mark.parametrize(
    ("search", "settings", "message"),
    [
        *((kind, {setting: 2}, f"unexpected keyword argument '{setting}'")
          for kind, others in (
              (Sites, ("sampler", "num_rungs", "clusters")), (Anneal, ("num_rungs", "clusters", "num_threads")),
              (Temper, ("num_rounds", "reheat", "num_threads")),
              (Population, ("sampler", "num_rungs", "clusters", "num_rounds", "reheat", "num_threads")))
          for setting in others),
        *((kind, {"num_chains": value}, message) for kind in (Sites, Anneal, Temper, Population)
          for value, message in ((0, "num_chains must be at least 1"), (True, "num_chains must be a whole number"))),
        *((kind, {"schedule": value}, f"Unknown schedule {value!r}; {kind.name} knows: auto, exponential")
          for kind in (Sites, Anneal, Temper, Population) for value in ("slow", None)),
        *((kind, {"schedule": "tempering"}, "Unknown schedule 'tempering'; .* dx.searches.Temper tempers")
          for kind in (Anneal, Temper, Population)),
        *((kind, {"betas": betas}, "betas are two inverse temperatures, 0 < hot <=? cold, but got")
          for kind in (Sites, Population)
          for betas in ((2.0, 1.0), (np.nan, 1.0), (1.0, np.inf), (0.0, 1.0), (1.0,), 3.0, "ab", (1j, 2))),
        *((kind, *case) for kind in (Sites, Anneal) for case in (
            ({"num_rounds": 0}, "num_rounds must be at least 1"),
            ({"reheat": 0.5}, "reheat is where the rounds after the first begin, so it needs num_rounds"),
            ({"reheat": 1.0, "num_rounds": 2}, "reheat must be at least 0 and less than 1"),
            ({"reheat": np.nan, "num_rounds": 2}, "reheat must be finite"))),
        (Sites, {"num_rounds": 2, "schedule": "tempering"}, "num_rounds and reheat are of anneals"),
        (Sites, {"num_threads": 0}, "num_threads must be at least 1"),
        (Anneal, {"sampler": 3}, "sampler must be a name or a kernel"),
        (Temper, {"sampler": None}, "sampler must be a name or a kernel"),
        (Temper, {"num_rungs": 1}, "num_rungs must be at least 2"),
        (Temper, {"clusters": "yes"}, "clusters must be True, False or None"),
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_are_wrong_or_of_others_are_refused(search, settings, message, as_a_user):
    with pytest.raises((ValueError, TypeError), match=message):
        search(**settings)


@pytest.mark.parametrize(
    ("search", "name", "message"),
    [
        (Sites(), "custom", "Only a problem with a plain model can be searched site by site"),
        (Population(), "custom", "Population annealing is for plain binary problems, but got"),
        (Population(), "partition", "Population annealing is for plain binary problems, but got"),
        (Temper(clusters=True), "custom", "Clusters are exchanged between replicas that are swept, but .* by 'pas'"),
        (Temper(clusters=True, sampler="gibbs"), "mis", "Clusters are exchanged between replicas .* by 'gibbs'"),
        (Temper(schedule="linear"), "mis", "so they have no schedule, but got 'linear'"),
    ],
    ids=str,
)
def test_problems_of_the_wrong_kind_are_refused(search, name, message, as_a_user):
    with pytest.raises(ValueError, match=message):
        dx.solve(KEY, PROBLEMS[name][0], search, num_steps=1)


# --- many, and how they end ---


@pytest.mark.slow
def test_many_of_all_kinds_are_returned_in_order():
    problems = [PROBLEMS["custom"][0], MaxCut(_EDGES), PROBLEMS["partition"][0], MIS(PLANTED), TORUS]
    seen = []
    found = dx.solve_many(KEY, problems, Anneal(4), num_steps=40, callback=lambda number, _: seen.append(number))
    assert [solution.problem for solution in found] == problems
    for problem, solution in zip(problems, found, strict=True):
        assert solution.objective == pytest.approx(float(problem.objective(solution.state)))
        assert solution.sampler == ("sweeps" if problem in (problems[1], *problems[3:]) else "pas")
    assert set(seen) == set(range(5))
    assert Anneal().group(problems) == [[0], [1, 3, 4], [2]]


def test_replicas_of_many_problems_are_those_of_each_best():
    """Problems of one program are solved each, the small beside the large."""
    sizes = [5, 8]
    problems = [MIS(dx.problems.generators.rb_model(size, 4, 0.25, seed=1, is_planted=True)) for size in sizes]
    found = dx.solve_many(KEY, problems, Anneal(8), num_steps=400)
    assert [solution.objective for solution in found] == sizes


@pytest.mark.parametrize("search", [Sites(2), Anneal(2), Population(2)], ids=str)
def test_a_callback_ends_a_search(search, reports_often):
    reports = []

    def enough(report):
        reports.append(report)
        return len(reports) == 2

    solution = dx.solve(KEY, PROBLEM, search, num_steps=100_000, callback=enough)
    assert len(reports) == 2
    assert solution.num_steps == reports[-1].num_steps < 100_000
    assert not solution.is_complete
    assert solution.is_feasible


@pytest.mark.parametrize(
    "search", [Anneal(4), Anneal(4, sampler="pas"), Temper(4, num_rungs=2), Population(4)], ids=str
)
def test_given_states_are_kept_if_nothing_is_better(search):
    best = (_SIGNS > 0).astype(np.int8)
    solution = dx.solve(KEY, TORUS, search, num_steps=2, init=best)
    assert solution.objective == BEST
    assert np.isfinite(solution.history.mean).all()


def test_rounds_of_replicas_go_on_where_they_are(monkeypatch):
    along, restarts, none = [], [], np.zeros((0, PROBLEM.space.num_sites), np.int8)
    report = Report(0, 0.0, 0.0, np.zeros(0), np.zeros(0), none)
    chains = replica_chains.ReplicaChains
    monkeypatch.setattr(chains, "anneal", lambda self, betas, *_: along.extend(betas.tolist()))
    monkeypatch.setattr(chains, "restart", lambda *_: restarts.append(1))
    monkeypatch.setattr(chains, "polish", lambda *_: None)
    monkeypatch.setattr(chains, "report", lambda *_: [report])
    search = Anneal(2, schedule="linear", betas=(1.0, 3.0), num_rounds=3, reheat=0.5)
    list(search.reports(_task(search, 300)))
    first, second, third = np.array(along).reshape(3, 100)
    assert 1 < first[0] < 1.05
    assert 2 < second[0] < 2.05
    assert first[-1] > 2.95 < third[-1]
    np.testing.assert_allclose(second, third)
    assert len(restarts) == 1


def _task(search, num_steps):
    clock = dx.solving.clock.Clock(dx.solving.clock.SearchBudget(num_steps=num_steps))
    states = PROBLEM.init(np.random.default_rng(0), search.num_chains)
    return protocol.Task(jax.random.key(0), [PROBLEM], [states], False, clock, None)
