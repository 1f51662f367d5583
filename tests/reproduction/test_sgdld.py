"""Sun et al. (2023), on stochastic gradient discrete Langevin dynamics, against their figures 1 and 3 and table 2.

Figure 1 prints jump rates that differ by 10^30 between mini-batches. That is the noise of 2,500 rows in mini-batches of
100, or of 6,250 in 625; with the 100,000 rows that are stated, or a fourth of them, they differ by far more. In that
noise figure 3's claim holds: with the cache the error of the marginals is much smaller.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from discrax.bench.experiments import stochastic_sampling
from discrax.bench.papers.sgdld.tall_data import Data
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.measure import Experiment
from discrax.bench.plan.printed import printed_rows

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


def test_stored_optima_of_circuits_are_the_printed_ones():
    path = Path(os.environ.get("DISCRAX_DATA", "")) / "circuits" / "circuits.npz"
    if not path.is_file():
        pytest.skip("DISCRAX_DATA has no circuits/circuits.npz")
    with np.load(path) as arrays:
        means = dict(zip(("3", "5", "8"), 100 * arrays["score"].mean(axis=0), strict=True))
    printed = {row["num_axc_units"]: row["value"] for row in printed_rows("sgdld", 2) if row["sampler"] == "OPT"}
    assert set(printed) == set(means)
    for units, value in printed.items():
        assert means[units] == pytest.approx(value, rel=0.015)
