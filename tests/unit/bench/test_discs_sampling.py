"""The sampling suites of DISCS: equal budgets, the paper's settings, and rows of ours beside them."""

import numpy as np
import pytest

from discrax.bench.experiments.models import HALF, disc
from discrax.bench.experiments.networks import TRAINED_ALL, network
from discrax.bench.papers.discs import sampling, targets, weights
from discrax.bench.plan.measure import kernel_of, target_of
from discrax.bench.plan.suite import Size, Suite, find, shipped_suites

SUITES = [each for module in (sampling, weights) for each in vars(module).values() if isinstance(each, Suite)]


def cells_of(name: str, size: Size = Size.DEFAULT):
    return list(shipped_suites()[name].cells(size))


@pytest.mark.parametrize("size", Size)
def test_all_rows_of_a_task_have_one_budget(size):
    budgets = {}
    for suite in SUITES:
        for cell in suite.cells(size):
            task = tuple(pair for pair in cell.labels if pair[0] not in ("sampler", "weight_fn"))
            budgets.setdefault(task, set()).add(cell.budget)
    assert len(budgets) > 30
    assert {task: found for task, found in budgets.items() if len(found) > 1} == {}


def test_budgets_are_the_papers_or_a_part_of_them():
    for name, steps in (("discs/figure01", 500_000), ("discs/figure09", 50_000)):
        paper, default = (cells_of(name, size)[0].budget for size in (Size.PAPER, Size.DEFAULT))
        assert (paper.num_chains, paper.num_warmup, paper.num_samples) == (100, steps, steps)
        assert default.num_chains == 100
        assert default.num_samples == min(steps, 200_000)
    assert sampling.budget(Size.DEFAULT, 10**7, 10**6).num_samples == 1_000  # however large the target is


@pytest.mark.parametrize("name", ["discs/figure01", "discs/figure03", *(f"discs/figure{n:02}" for n in (7, 8, 9, 10))])
def test_gibbs_by_colours_stands_beside_every_task(name):
    cells = cells_of(name)
    places = {cell.labels[:-1] for cell in cells}
    beside = {cell.labels[:-1]: cell for cell in cells if cell.label("sampler") == "Gibbs (chromatic)"}
    assert places == set(beside)
    smallest = min(beside.values(), key=lambda cell: target_of(cell.target).space.num_sites)
    assert type(kernel_of(smallest, target_of(smallest.target))).__name__ == "ChromaticGibbs"


@pytest.mark.parametrize(("name", "row"), [("discs/figure02", "chromatic"), ("discs/figure11", "chromatic"),
                                           ("discs/figure16", "layers")])  # fmt: skip
def test_gibbs_fits_the_other_models(name, row):
    cell = next(cell for cell in cells_of(name) if cell.label("sampler") == f"Gibbs ({row})")
    kernel_of(cell, target_of(cell.target))  # raises where it does not


def test_the_time_of_dlmc_is_fixed_as_in_the_paper():
    cells = {cell.label("sampler"): cell for cell in cells_of("discs/figure09")}
    for name in ("DLMC", "DLMCf"):
        target = target_of(cells[name].target)
        assert kernel_of(cells[name], target).per_rate is False
        assert kernel_of(cells[f"{name} (per rate)"], target).per_rate is True


def test_the_disc_is_that_of_the_text():
    share = (disc(200, targets.RADIUS) > 0).mean()
    assert share == pytest.approx(np.pi / 8, abs=0.01)
    assert (disc(200, HALF) > 0).mean() == pytest.approx(0.5, abs=0.01)
    field = np.sign(np.asarray(targets.ising_in_field(40, 0.5, 0.5, 0.0).linear)).reshape(40, 40)
    np.testing.assert_array_equal(field, disc(40, targets.RADIUS))


def test_categorical_machines_have_a_hundred_hidden_units(monkeypatch, tmp_path):
    cells = {cell.label("kind"): cell for cell in cells_of("discs/figure16")}
    for levels in (4, 8):
        assert dict(cells[f"{levels} levels"].target.arguments) == {"num_levels": levels, "num_hidden": 100}
    assert target_of(cells["binary 25"].target).hidden_bias.shape == (25,)
    monkeypatch.delenv("DISCRAX_DATA", raising=False)
    monkeypatch.setattr("discrax.bench.experiments.models.cache_folder", lambda: tmp_path)
    with pytest.raises(ValueError, match="This needs the data set fashion_mnist"):
        cells["4 levels"].target()


def test_weight_functions_of_every_informed_sampler():
    assert [suite.name for suite in find("discs/weights")] == [f"discs/weights-{task}" for task in sampling.MODELS]
    figures = {cell.id for n in (7, 8, 9, 10, 11) for cell in cells_of(f"discs/figure{n:02}")}
    for task, (label, models) in sampling.MODELS.items():
        every = cells_of(f"discs/weights-{task}")
        cells = [cell for cell in every if cell.label("weight_fn")]
        assert len(cells) == len(models) * 5 * 4
        assert {cell.label(label) for cell in cells} == {each.label for each in models}
        assert {cell.label("weight_fn") for cell in cells} == {"sqrt(t)", "t/(t+1)", "min(1,t)", "max(1,t)"}
        gibbs = [cell for cell in every if cell not in cells]
        assert {cell.label("sampler") for cell in gibbs} == {"Gibbs (chromatic)"}
        assert len(gibbs) == len(models)
        assert {cell.id for cell in gibbs} <= figures  # which are run once
        rows = [{"labels": dict(cell.labels)} for cell in every]
        for exhibit in shipped_suites()[f"discs/weights-{task}"].exhibits:
            shown = [row["labels"] for row in exhibit.derive(rows)]
            beside = {(row[label], row["sampler"]) for row in shown if row["weight_fn"] == "Gibbs (chromatic)"}
            assert beside == {(row[label], row["sampler"]) for row in shown}
            assert len(beside) == 5 * len(models)
    cell = next(cell for cell in cells if (cell.label("sampler"), cell.label("weight_fn")) == ("DLMC", "min(1,t)"))
    assert dict(cell.sampler.arguments) == {"per_rate": False, "balancing": "min"}
    for name in ("discs/figure08", "discs/figure10"):
        tasks = {(cell.label("task"), cell.label("levels")) for cell in cells_of(name)}
        assert {levels for task, levels in tasks if task in ("categorical", "potts")} == {"4", "8"}


def test_titles_say_how_cells_are_shorter_than_in_print():
    for suite in SUITES:
        default, paper = (
            {cell.labels: cell.budget for cell in suite.cells(size)} for size in (Size.DEFAULT, Size.PAPER)
        )
        shorter = {its.num_samples for labels, its in default.items() if its.num_samples < paper[labels].num_samples}
        words = {f"{most:,}" for most in (max(shorter), min(shorter))} if shorter else set()
        words |= {f"{paper[labels].num_samples:,}" for labels in default}
        assert [each for each in words if each not in suite.title] == [], suite.name


def test_titles_say_how_networks_are_trained():
    calls = [dict(network("caltech", size).arguments) for size in (Size.DEFAULT, Size.PAPER)]
    for each in calls:
        assert f"{each['num_updates']:,} of {each['num_steps']}" in TRAINED_ALL.replace("updates of", "of")
    assert f"{calls[0]['num_growing']:,} updates, so that it ends at half" in TRAINED_ALL
    assert calls[0]["num_updates"] == calls[0]["num_growing"] / 2
    assert calls[0]["variance"] == pytest.approx(1 / 3)
    for name in ("discs/figure17", "any-scale/figure04", "any-scale/figure06", "optimal-scaling/figure06"):
        assert TRAINED_ALL in shipped_suites()[name].about
