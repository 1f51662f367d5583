"""Errors against a law that is known: after equal seconds, after equal steps, and the traces of chains that burn in."""

import math
from itertools import product

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.bench.execute import cells as measure
from discrax.bench.papers.enhanced_gradient_mcmc import errors, sampling
from discrax.bench.papers.enhanced_gradient_mcmc.kernels import PrintedPAVG, near_level_eleven
from discrax.bench.papers.rules import GammaRule
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.printed import printed_rows
from discrax.bench.plan.suite import Size

from .fake_rows import cell as fake_cell
from .fake_rows import rows as fake_rows

ERRORS = "discrax.bench.papers.enhanced_gradient_mcmc.errors"


def cubic(name, measured, budget, strength=0.3):
    return sampling._cubic(name, strength, "t", budget, measured)


def test_pavg_as_printed_changes_its_step_once_it_has_its_matrix():
    target, kernel = dx.targets.PolynomialMixture.poly4(), PrintedPAVG(first_step=0.02, step_size=0.06)
    assert not kernel.is_prepared
    assert kernel.knobs(target) == {}  # so that nothing tunes the burn-in

    def run(kernel, **how):
        shared = {"num_chains": 8, "init": near_level_eleven(target, 0, 8), "progress": False}
        return dx.sample(jax.random.key(0), target, kernel, **shared, **how)

    adapted = {"num_warmup": 900, "num_samples": 20, "adaptation": GammaRule(window=50), "keep_warmup": True}
    result, still = run(kernel, **adapted), run(dx.samplers.avg(0.02), num_warmup=0, num_samples=300)
    assert float(result.kernel.step_size) == pytest.approx(0.06)
    assert set(result.report.chosen) == {"gamma"}
    burn_in = np.asarray(result.warmup_stats["jump"])[:, :300]
    assert burn_in.mean() == pytest.approx(still.stats["jump"].mean(), rel=0.1)  # at 0.06 it is a third of this


def test_equal_seconds_end_with_the_fastest_sampler():
    fast = fake_rows({"marginal_error": {1.0: 0.5, 2.0: 0.3}}, fake_cell("Gibbs", "", task="a"))
    slow = fake_rows({"marginal_error": {1.5: 0.4, 3.0: 0.2}}, fake_cell("NCG", "", task="a"))
    other = fake_rows({"marginal_error": {0.1: 0.4}}, fake_cell("NCG", "", task="b"))
    kept = errors.equal_seconds("marginal_error", task="a")(fast + slow + other)
    assert [row["x"] for row in kept] == [1.0, 2.0, 1.5]
    assert errors.equal_seconds("pairwise_error")(fast) == []


def test_equal_steps_have_the_names_of_their_metrics():
    rows = fake_rows({"marginal_error": {1.0: 0.5}, "marginal_error_at_step": {40.0: 0.5}})
    (kept,) = errors.equal_steps("marginal_error")(rows)
    assert (kept["metric"], kept["x"]) == ("marginal_error", 40.0)


def test_errors_fall_and_stand_against_seconds_and_steps():
    rows = measure.run_cell(cubic("PAVG", "enumerated_errors", Budget(8, 200, 400, 2), strength=0.0))
    assert {row["status"] for row in rows} == {"ok"}, rows[0]["error"]
    found = {(row["metric"], row["x"]): row["value"] for row in rows}
    steps = sorted(x for metric, x in found if metric == "pairwise_error_at_step")
    assert (steps[0], steps[-1]) == (16, 800)  # a fiftieth, and all
    assert found["pairwise_error_at_step", 800] == found["pairwise_error_end", None]
    assert found["pairwise_error_at_step", 800] < 0.7 * found["pairwise_error_at_step", 16]
    assert len(steps) == len({x for metric, x in found if metric == "pairwise_error" and x is not None})


def test_a_trace_has_every_step_once():
    rows = measure.run_cell(cubic("AVG", "jump_trace", Budget(8, 0, 300)))
    trace = [(row["x"], row["value"]) for row in rows if row["metric"] == "jump"]
    (mean,) = (row["value"] for row in rows if row["metric"] == "EJD")
    edges = np.unique(np.round(np.geomspace(1, 301, 41)).astype(int))
    assert np.average([value for _, value in trace], weights=np.diff(edges)) == pytest.approx(mean, rel=1e-4)
    assert trace[0][0] == 1.0


def test_strengths_of_triples_are_those_of_print():
    cells = [cell for cell in sampling.figure11.cells(Size.DEFAULT) if cell.label("task") == "cubic-ising"]
    assert sorted({float(cell.label("strength")) for cell in cells}) == [i / 10 for i in range(-5, 6)]
    assert {dict(cell.sampler.arguments)["step_size"] for cell in cells} == {1000.0}
    assert {cell.budget.num_warmup + cell.budget.num_samples * cell.budget.thinning for cell in cells} == {60_000}


@pytest.mark.parametrize(("d", "radius"), [(5, 0), (5, 2), (6, 6)])
def test_a_ball_is_counted(d, radius):
    cell = Cell(
        (), call("discrax:Binary", shape=d), call("discrax.samplers:gwg"), Budget(1, 0, 0),
        measure=call(f"{ERRORS}:ball_size", radius=radius),
    )  # fmt: skip
    row, exact = measure.run_cell(cell)
    assert row["status"] == "ok", row["error"]
    assert (exact["metric"], exact["value"]) == ("is_exact", 1)
    assert row["value"] == sum(sum(flips) <= radius for flips in product((0, 1), repeat=d))


def test_balls_are_as_large_as_printed():
    cells = {(cell.label("d"), cell.label("radius")): cell for cell in sampling.table03.cells(Size.PAPER)}
    printed = printed_rows("enhanced-gradient-mcmc", 3)
    assert len(printed) == len(cells)
    for row in printed:
        ours, _ = measure.run_cell(cells[row["d"], row["radius"]])
        assert math.isclose(ours["value"], row["value"], rel_tol=0)
