"""Sun et al. (2023), on stochastic gradient discrete Langevin dynamics, against their figures 1 and 3 and table 2.

Figure 1 prints jump rates that differ by 10^30 between mini-batches. That is the noise of 2,500 rows in mini-batches of
100, or of 6,250 in 625; with the 100,000 rows that are stated, or a fourth of them, they differ by far more. In that
noise figure 3's claim holds: with the cache the error of the marginals is much smaller.

Table 2 is a mean over circuits. Print does not say over which: here they are the first of the 499 of the public set,
and print's are taken for as many others of the same law, so that both means have the error that circuits cause. That is
wide: two of it are 17 % of print with 5 units and 10 % with 8. If print's circuits are the same 499, then its numbers
lie at what the best of all placements have, and ours 5 % above: `test_placements_are_near_the_best` holds them there,
on shared circuits, where the error is small.
"""

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discrax.bench.experiments import stochastic_sampling
from discrax.bench.papers.sgdld.tall_data import Data
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.measure import Experiment
from discrax.bench.plan.printed import find_printed, printed_rows

pytestmark = [pytest.mark.slow, pytest.mark.runs_long]

PRINTED_POWERS = 30  # of ten, between the smallest jump rate and the largest
PAPERS_NOISE = Data(2_500, 9, 100)


def numbers_of(data: Data, measure: Experiment, sampler: Call, budget: Budget) -> dict[str, float]:
    cell = Cell(data.labels("SGDLD"), data.target(0), sampler, budget)
    numbers, _ = measure.run(cell)
    return {each.metric: each.value for each in numbers if each.x is None}


@pytest.mark.parametrize("data", [PAPERS_NOISE, Data(6_250, 9, 625)])
def test_jump_rates_differ_as_printed(data):
    found = numbers_of(data, stochastic_sampling.jump_rates(), call("discrax.samplers:sgdld"), Budget(1, 0, 1))
    assert abs(found["spread_of_log10_jump_rate"] - PRINTED_POWERS) < 8
    assert found["spread_of_log10_gradient_norm"] < 1.5


def test_with_more_rows_they_differ_by_far_more():
    data = Data(25_000, 9, 625)
    found = numbers_of(data, stochastic_sampling.jump_rates(), call("discrax.samplers:sgdld"), Budget(1, 0, 1))
    assert found["spread_of_log10_jump_rate"] > 3 * PRINTED_POWERS


def test_the_cache_lowers_the_error_in_the_papers_noise():
    measure = stochastic_sampling.selection(data_seed=0, num_rows=PAPERS_NOISE.rows, num_distinct=9)
    errors = {
        cache: numbers_of(
            PAPERS_NOISE, measure, call("discrax.samplers:sgdld", step_size=0.3, cache=cache), Budget(100, 0, 2_000)
        )["final_error"]
        for cache in (True, False)
    }
    assert errors[True] < 0.2 < 0.3 < errors[False]


NUM_CIRCUITS, PUBLIC_SET = 100, 499
COSTS = "discrax.bench.experiments.stochastic_costs"
SAMPLER = call(f"{COSTS}:placement_sampler")
BROKEN = {
    "never moves": call("discrax.samplers:sgdld", step_size=1e-9),
    "always hot": call("discrax.samplers:sgdld", step_size=0.5, temperature=100.0),
}


def circuits_file() -> Path:
    path = Path(os.environ.get("DISCRAX_DATA", "")) / "circuits" / "circuits.npz"
    if not path.is_file():
        pytest.skip("DISCRAX_DATA has no circuits/circuits.npz")
    return path


@cache
def placed(
    units: int, sampler: Call, measure: str = "place", count: int = NUM_CIRCUITS, **settings: Any
) -> tuple[float, float]:
    """The mean error over the first circuits, and its standard deviation between them."""
    circuits_file()
    target = call(f"{COSTS}:circuits", count=count, num_units=units, batch_size=16)
    measured = call(f"{COSTS}:{measure}", **settings)()
    numbers, _ = measured.run(Cell((("task", "approximate-computing"),), target, sampler, Budget(1, 0, 200)))
    (error,) = (each for each in numbers if each.metric == "relative_error")
    assert error.std is not None
    return error.value, error.std


def errors_from_print(units: int, sampler: Call, **settings: Any) -> float:
    """How many standard errors of the difference our mean is above print's."""
    labels = {"num_axc_units": str(units), "sampler": "SGDLD"}
    printed = find_printed("sgdld", 2, "relative_error", labels)["value"]
    mean, std = placed(units, sampler, **settings)
    return (mean - printed) / (std * math.sqrt(1 / NUM_CIRCUITS + 1 / PUBLIC_SET))


@pytest.mark.parametrize("units", [5, 8])
def test_placements_have_the_printed_error(units):
    assert abs(errors_from_print(units, SAMPLER)) < 2


def test_the_heaviest_states_have_the_printed_error():
    """With 3 units, where the last states of chains have not."""
    assert abs(errors_from_print(3, SAMPLER, solution="heaviest")) < 2


@pytest.mark.parametrize(
    ("units", "broken"), [(3, "never moves"), (5, "never moves"), (8, "never moves"), (5, "always hot")]
)
def test_those_of_a_broken_sampler_have_not(units, broken):
    assert errors_from_print(units, BROKEN[broken]) > 6


def test_placements_are_near_the_best_and_only_with_the_cache():
    """Over the same circuits: 5 % above the best of all placements with the cache, 18 % without."""
    few = 40
    best, _ = placed(5, call(f"{COSTS}:no_sampler"), "best_placements", few)
    with_cache, _ = placed(5, SAMPLER, count=few)
    without, _ = placed(5, call(f"{COSTS}:placement_sampler", cache=False), count=few)
    assert 1 <= with_cache / best < 1.1 < without / best


def test_stored_optima_of_circuits_are_the_printed_ones():
    with np.load(circuits_file()) as arrays:
        means = dict(zip(("3", "5", "8"), 100 * arrays["score"].mean(axis=0), strict=True))
    printed = {row["num_axc_units"]: row["value"] for row in printed_rows("sgdld", 2) if row["sampler"] == "OPT"}
    assert set(printed) == set(means)
    for units, value in printed.items():
        assert means[units] == pytest.approx(value, rel=0.015)
