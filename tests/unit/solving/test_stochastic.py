import itertools
import signal
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.bench.execute.cells import run_cell
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import Size, Table, find
from discrax.bench.report.grid import make_grid
from discrax.core import random
from discrax.problems.circuits import ApproximateCircuit
from discrax.problems.facility import FacilityLocation
from discrax.samplers.schedules import Geometric, Power
from discrax.solving import stochastic
from discrax.solving.stochastic import expected_costs, minimise_expected, sample_average
from discrax.targets import Bernoulli

KERNEL = dx.samplers.sgdld(step_size=Power(100.0, 10.0, 0.3), temperature=Geometric(200.0, 0.99))


def small_problem():
    return FacilityLocation.simulated(0, 3, 4)


def legal_states(problem):
    I, J = problem.num_facilities, problem.num_customers  # noqa: E741
    codes = [range(2)] * I + [range(I)] * J
    return np.array(list(itertools.product(*codes)), problem.space.dtype)


def assert_the_best_is_found():
    problem = small_problem()
    states = legal_states(problem)
    costs, errors, _ = expected_costs(jax.random.key(5), problem, states, 2000)
    found = minimise_expected(
        jax.random.key(0), problem, KERNEL, num_chains=16, num_steps=500, num_rescoring=1000, num_evaluation=1000
    )
    place = int(np.flatnonzero((states == found.x).all(axis=1))[0])
    assert costs[place] <= costs.min() + 4 * errors[place]
    assert found.cost == pytest.approx(costs[place], abs=5 * (errors[place] + found.standard_error))
    assert found.scores.shape == (16,)
    assert found.scores.min() == pytest.approx(found.cost, rel=0.1)
    assert found.seconds > 0


def test_the_best_of_a_small_problem_is_found():
    assert_the_best_is_found()


def test_the_best_is_not_found_by_a_search_that_does_nothing(monkeypatch):
    def idle(key, target, *_, num_chains, **__):
        x = jax.vmap(target.space.random)(jax.random.split(key, num_chains))
        return SimpleNamespace(states=SimpleNamespace(x=x), seconds=1.0, compile_seconds=0.0, is_complete=True)

    monkeypatch.setattr(stochastic, "sample", idle)
    with pytest.raises(AssertionError):
        assert_the_best_is_found()


def test_costs_are_means_over_the_same_batches_in_pieces(monkeypatch):
    problem = small_problem()
    states = np.asarray(jax.vmap(problem.space.random)(jax.random.split(jax.random.key(0), 3)))
    together = expected_costs(jax.random.key(1), problem, states, 100)
    monkeypatch.setattr("discrax.solving.stochastic._MOST_AT_ONCE", 30)
    pieces = expected_costs(jax.random.key(1), problem, states, 100)
    np.testing.assert_allclose(together[0], pieces[0], rtol=1e-6)
    alone = expected_costs(jax.random.key(1), problem, states[1:2], 100)
    assert alone[0][0] == pytest.approx(together[0][1], rel=1e-6)
    other = expected_costs(jax.random.key(2), problem, states, 100)[0]
    assert (other != together[0]).all()
    assert np.all(np.abs(other - together[0]) < 6 * 2**0.5 * together[1])


@pytest.mark.slow
def test_one_chain_is_not_scored():
    found = minimise_expected(jax.random.key(0), small_problem(), KERNEL, num_chains=1, num_steps=30, num_evaluation=64)
    assert np.isnan(found.scores).all()
    assert (found.x[:3] <= 1).all()
    assert found.cost > 0


def test_highs_solves_the_sample_average():
    problem = small_problem()
    found = sample_average(problem, 16, 20.0, num_evaluation=500)
    # Its own objective is the least mean over its scenarios, of all states.
    d = problem._demands(random.split(random.as_threefry(jax.random.key(0)), 3)[0], 16)
    costs = np.asarray(jax.jit(jax.vmap(lambda x: problem.cost(x, d).mean()))(legal_states(problem)))
    place = int(np.flatnonzero((legal_states(problem) == found.x).all(axis=1))[0])
    assert found.scores[0] == pytest.approx(costs.min(), rel=1e-3)
    assert costs[place] == pytest.approx(costs.min(), rel=1e-3)


def test_no_solution_in_time_is_a_sentence():
    with pytest.raises(TimeoutError, match="HiGHS has found no solution with 20 scenarios in 1e-06 seconds"):
        sample_average(FacilityLocation.simulated(0, 5, 8), 20, 1e-6)


def test_bad_input_is_a_sentence(as_a_user):
    problem = small_problem()
    with pytest.raises(TypeError, match="that of a StochasticTarget, whose psi is minus a cost, but got a Bernoulli"):
        minimise_expected(jax.random.key(0), Bernoulli([0.5]), "sgdld")
    with pytest.raises(ValueError, match="num_rescoring must be at least 1, but got 0"):
        minimise_expected(jax.random.key(0), problem, KERNEL, num_rescoring=0)
    with pytest.raises(ValueError, match="num_steps must be at least 1, but got 0"):
        minimise_expected(jax.random.key(0), problem, KERNEL, num_steps=0)
    with pytest.raises(ValueError, match="seconds must be greater than 0, but got 0"):
        sample_average(problem, 8, 0)
    with pytest.raises(TypeError, match="target must be of type FacilityLocation, but got ApproximateCircuit"):
        sample_average(ApproximateCircuit.simulated(0), 8, 1.0)


def test_a_signal_ends_the_search_with_what_it_has(monkeypatch):
    """In the search, in scoring, and in the evaluation of the best."""
    sampled = stochastic.sample
    settings = {"num_chains": 16, "num_steps": 500, "num_rescoring": 1000, "num_evaluation": 1000}

    def interrupted(*arguments, **options):
        return replace(sampled(*arguments, **options), is_complete=False)

    with monkeypatch.context() as patched:
        patched.setattr(stochastic, "sample", interrupted)
        found = minimise_expected(jax.random.key(0), small_problem(), KERNEL, **settings)
        assert not found.is_complete
        assert np.isfinite(found.cost)
        assert found.standard_error > 0

    def compiled_with_a_signal(function, arguments, options):
        program, seconds = compiled(function, arguments, options)

        def run(arguments):
            seen.append(len(arguments[2]))
            if seen.count(len(arguments[2])) == 2 and len(arguments[2]) == size:
                signal.raise_signal(signal.SIGTERM)
            return program(arguments)

        return run, seconds

    compiled = stochastic.compiled
    monkeypatch.setattr(stochastic, "compiled", compiled_with_a_signal)
    for size in (16, 1):  # in scoring, in the evaluation
        seen = []
        found = minimise_expected(jax.random.key(0), small_problem(), KERNEL, **settings)
        assert not found.is_complete
        assert np.isfinite(found.cost)
        assert len(seen) == (3 if size == 16 else 6)


@pytest.mark.parametrize("key", [0, 1.5, None])
def test_keys_of_the_wrong_kind(key, as_a_user):
    with pytest.raises(TypeError, match="key must be one JAX key"):
        minimise_expected(key, small_problem(), KERNEL)


# --- Cells -----------------------------------------------------------------------------------------------------------


def numbers_of(cell):
    rows = run_cell(cell)
    assert {row["status"] for row in rows} == {"ok"}, rows[0]["error"]
    return {row["metric"]: row["value"] for row in rows if row["x"] is None}


@pytest.mark.slow
def test_cells_of_facilities():
    target = call("discrax.problems.facility:FacilityLocation.simulated", seed=0, num_facilities=3, num_customers=4)
    sampler = call("discrax.bench.experiments.stochastic_costs:facility_sampler", hot=200.0, num_steps=300)
    measure = call("discrax.bench.experiments.stochastic_costs:search", num_rescoring=300, num_evaluation=500)
    cell = Cell((("sampler", "SGDLD"),), target, sampler, Budget(8, 0, 300), measure=measure, adaptation=None)
    found = numbers_of(cell)
    measure = call(
        "discrax.bench.experiments.stochastic_costs:integer_program", num_scenarios=32, seconds=10.0, num_evaluation=500
    )
    nobody = call("discrax.bench.experiments.stochastic_costs:no_sampler")
    exact = numbers_of(Cell((("sampler", "HiGHS"),), target, nobody, Budget(8, 0, 300), measure=measure))
    assert found["cost"] == pytest.approx(exact["cost"], rel=0.1)
    assert 1 <= found["num_open"] <= 3


def few_circuits():
    return tuple(ApproximateCircuit.simulated(seed, 2, batch_size=16) for seed in range(4))


@pytest.mark.slow
def test_cells_of_circuits():
    target = call(f"{__name__}:few_circuits")
    found = {}
    for name in ("place", "best_placements", "random_placements"):
        sampler = call(
            "discrax.bench.experiments.stochastic_costs:" + ("placement_sampler" if name == "place" else "no_sampler")
        )
        measure = call(f"discrax.bench.experiments.stochastic_costs:{name}")
        found[name] = numbers_of(Cell((("sampler", name),), target, sampler, Budget(1, 0, 200), measure=measure))
    best, placed, mean = (found[name]["relative_error"] for name in ("best_placements", "place", "random_placements"))
    assert best <= placed < 1.3 * best
    assert mean > 1.6 * best
    assert found["place"]["instances"] == 4


def test_highs_stands_in_the_lines_of_gurobi():
    (suite,) = find("sgdld/table01")
    cells = [cell for cell in suite.cells(Size.DEFAULT) if cell.label("size") == "15x30"]
    assert len(cells) == 4 * 5 * 6  # laws of demands, instances and methods
    rows = [
        {"labels": dict(cell.labels), "metric": "cost", "value": 9000.0 + 100 * cell.seed, "seed": cell.seed}
        | {"cell": cell.id, "x": None, "std": None, "status": "ok", "error": None}
        for cell in cells
    ]
    for row in rows:
        row["value"] *= 1.05 if row["labels"]["sampler"] == "SLS" else 1.0
        row["value"] *= 1.0 if row["labels"]["demands"] == "Bernoulli 0.5" else 2.0  # is not beside print
    costs, beside, *_ = (make_grid(each, rows) for each in suite.exhibits if isinstance(each, Table))
    entries = {line.head: line.entries[0] for line in costs.lines}
    assert entries[("Gurobi(8)",)].ours == pytest.approx(9200)
    assert entries[("Gurobi(8)",)].paper == 10418
    assert entries[("SGDLD",)].std == pytest.approx(np.std([9000, 9100, 9200, 9300, 9400], ddof=1))
    excess = {line.head: line.entries[0].ours for line in beside.lines}
    assert excess == {
        ("SGDLD",): 0,
        ("SGDLD-noC",): 0,
        ("SLS",): pytest.approx(5),
        ("HiGHS(8)",): 0,
        ("HiGHS(1024)",): 0,
        ("SGDLD, more jumps",): 0,
    }
