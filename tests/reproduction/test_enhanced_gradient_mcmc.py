"""Couplings of a lattice, learnt as in the released code, against table 1 of Rhodes and Gutmann (2022); one seed each.

A cell may be as far from print as seeds and sets of samples differ: sets differ by up to 1 % where a sampler fails,
seeds of NCG at K = 1 by 0.05 in print and 0.06 here.
"""

from dataclasses import replace

import pytest

from discrax.bench.execute.cells import run_cell
from discrax.bench.papers.enhanced_gradient_mcmc.energy_models import ising
from discrax.bench.plan.printed import find_printed
from repeats import repeats

pytestmark = [pytest.mark.slow, pytest.mark.optimised]  # runs for long

MARGINS = {
    ("PAVG model-specific", 1): 0.008,
    ("Gibbs", 5): 0.06,
    ("NCG", 10): 0.004,
    **repeats({}, {("NCG", 1): 0.15}),  # whose seeds differ most
}


def error(cell) -> float:
    rows = run_cell(cell)
    assert {row["status"] for row in rows} == {"ok"}, rows[0]["error"]
    return next(row["value"] for row in rows if row["metric"] == "J_estimation_error")


def printed(cell) -> float:
    found = find_printed("enhanced-gradient-mcmc", 1, "J_estimation_error", dict(cell.labels))
    assert found is not None
    return found["value"]


@pytest.mark.parametrize(("name", "K"), MARGINS)
def test_learnt_couplings_are_as_far_from_the_truth_as_printed(name, K):
    cell = ising(name, K, seed=0)
    assert error(cell) == pytest.approx(printed(cell), abs=MARGINS[name, K])


def test_batches_of_another_size_are_not_the_printed_ones():
    cell = ising("Gibbs", 5, seed=0)
    larger = replace(cell, budget=replace(cell.budget, num_chains=100))
    assert error(larger) < printed(cell) - 3 * MARGINS["Gibbs", 5]
