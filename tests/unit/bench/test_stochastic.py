"""Measures of samplers that see mini-batches, on draws that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest

from discrax import samplers
from discrax.bench.execute.cells import run_cell
from discrax.bench.experiments import stochastic_costs, stochastic_sampling
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.problems.circuits import ApproximateCircuit
from discrax.samplers.schedules import Exponential


def test_the_largest_rhat_is_that_of_the_site_that_mixes_worst():
    generator = np.random.default_rng(0)
    draws = (generator.random((4, 500, 3)) < 0.5).astype(np.int8)
    weights = np.full((4, 500), 1 / 500)
    largest, num_infinite = stochastic_sampling._largest_rhat(draws, weights)
    assert largest == pytest.approx(1, abs=0.02)
    assert num_infinite == 0
    draws[..., 2] = generator.random((4, 500)) < np.array([0.1, 0.1, 0.9, 0.9])[:, None]
    largest, num_infinite = stochastic_sampling._largest_rhat(draws, weights)
    assert 1.5 < largest < stochastic_sampling.LARGEST_RHAT
    assert num_infinite == 0
    draws[:2, :, 1], draws[2:, :, 1] = 0, 1
    frozen = stochastic_sampling._largest_rhat(draws, weights)  # chains that froze, at both levels: it is shown
    assert frozen == (stochastic_sampling.LARGEST_RHAT, 1)
    assert stochastic_sampling._largest_rhat(np.zeros((4, 500, 3), np.int8), weights) == (None, 0)


def test_total_variation_counts_weights():
    target = call("discrax.targets:GaussianBernoulli", batch_size=1)
    cell = Cell((("sampler", "s"),), target, call("discrax.samplers:sgdld"), Budget(2, 0, 4))
    law = target().probabilities
    states = np.tile(np.arange(len(law)), (2, 1))
    result = SimpleNamespace(num_chains=2, kept=states, stats={"weight": np.tile(law, (2, 1)), "jump": np.ones(2)})
    numbers = {each.metric: each.value for each in stochastic_sampling.total_variation().numbers(cell, result)}
    assert numbers["total_variation"] == pytest.approx(0, abs=1e-6)
    result.stats["weight"] = np.ones_like(result.stats["weight"])
    numbers = {each.metric: each.value for each in stochastic_sampling.total_variation().numbers(cell, result)}
    assert numbers["total_variation"] == pytest.approx(0.5 * np.abs(law - 1 / len(law)).sum())


def test_a_tree_may_come_in_any_order():
    parents = np.array([8, 9, 10, 11, 8, 9, 10, 11, 13, 12, 13, 12, 14, 14, -1])
    order = stochastic_costs.side_by_side(parents)
    assert sorted(order) == list(range(15))
    for first, above in ((0, 8), (8, 12), (12, 14)):  # where a layer begins, and the one above it
        for place in range(first, above):
            assert parents[order[place]] == order[above + (place - first) // 2]
    assert not np.array_equal(order, np.arange(15))


@pytest.mark.slow
def test_a_fixed_time_jumps_as_far_as_sgdld_in_all():
    target = stochastic_sampling.regression(0, 500, 4, 50)
    cell = Cell((("sampler", "noP"),), call("x:y"), call("discrax.samplers:sgdld"), Budget(20, 0, 300))
    kernel = stochastic_sampling._fixed_time(cell, target, 0.3)
    jump = stochastic_sampling._run(cell, target, kernel, 5).stats["jump"].mean()
    assert jump == pytest.approx(0.3, rel=0.25)
    late = samplers.sgdld(Exponential(float(kernel.schedule.log_value) + 3), polyak=False, moves="one")
    assert stochastic_sampling._run(cell, target, late, 5).stats["jump"].mean() > 1.2 * jump


def test_the_error_of_a_pooled_distance_is_that_of_runs_repeated():
    target = call("discrax.targets:GaussianBernoulli", batch_size=1)
    cell = Cell((("sampler", "s"),), target, call("discrax.samplers:sgdld"), Budget(2, 0, 4))
    num_levels, num_chains, rng = len(target().probabilities), 60, np.random.default_rng(0)
    found = []
    for _ in range(60):
        states = rng.integers(0, num_levels, (num_chains, 20))
        result = SimpleNamespace(
            num_chains=num_chains, kept=states, stats={"weight": np.ones_like(states, float), "jump": np.ones(2)}
        )
        numbers = stochastic_sampling.total_variation().numbers(cell, result)
        found.append(next(each for each in numbers if each.metric == "total_variation"))
    scatter = np.std([each.value for each in found])
    error = np.mean([each.std for each in found]) / np.sqrt(num_chains)  # as pages make it of a deviation
    assert error == pytest.approx(scatter, rel=0.3)


def two_circuits():
    return tuple(ApproximateCircuit.simulated(seed, num_units=3, batch_size=16) for seed in (0, 1))


@pytest.mark.slow
def test_the_heaviest_state_of_a_chain_is_a_better_placement_than_its_last():
    """The Polyak step leaves the best placement as often as any other: where a chain ends says little."""
    costs = "discrax.bench.experiments.stochastic_costs"
    found = {}
    for solution in ("last", "heaviest", "none"):
        steps = 1 if solution == "none" else 200
        asked = {} if solution == "none" else {"solution": solution}
        cell = Cell(
            (("sampler", "s"),), call(f"{__name__}:two_circuits"), call(f"{costs}:placement_sampler"),
            Budget(1, 0, steps), adaptation=None, measure=call(f"{costs}:place", **asked),
        )  # fmt: skip
        found[solution] = next(row["value"] for row in run_cell(cell) if row["metric"] == "relative_error")
    best = np.mean([circuit.optimum(4_096)[1] for circuit in two_circuits()])
    assert found["heaviest"] == pytest.approx(best, rel=0.05)
    assert found["heaviest"] <= found["last"] < found["none"]


def test_a_misspelt_solution_is_a_sentence():
    costs = "discrax.bench.experiments.stochastic_costs"
    place = call(f"{costs}:place", solution="heavy")
    cell = Cell((("sampler", "s"),), call(f"{__name__}:two_circuits"), call(f"{costs}:placement_sampler"),
                Budget(1, 0, 1), adaptation=None, measure=place)  # fmt: skip
    (row,) = run_cell(cell)
    assert "'last' state or the 'heaviest', but got 'heavy'" in row["error"]
