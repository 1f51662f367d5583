"""The suites of Sun et al. (2022): lengths, rules of tuning, and the order in which a way back is scored."""

from dataclasses import replace
from math import comb

import jax
import numpy as np
import pytest

import discrax as dx
from discrax.bench.execute import cells as measure
from discrax.bench.papers.optimal_scaling.kernels import ForwardOrder
from discrax.bench.papers.optimal_scaling.sampling import table05, table06, table12
from discrax.bench.papers.optimal_scaling.sites_needed import sites_needed, table03, table04
from discrax.bench.papers.optimal_scaling.tasks import TASKS, fixed_and_tuned, grid, instance_spread, jump_spread
from discrax.bench.plan.cell import Budget, call
from discrax.bench.plan.printed import printed_rows
from discrax.bench.plan.suite import Size, find
from discrax.bench.report.grid import make_grid

from .fake_rows import CHAINS, bernoulli, entry, rows
from .fake_rows import cell as labelled

STATED = {"bernoulli": (10_000, 40_000, 100_000), "ising": (10_000, 40_000, 100_000),
          "fhmm": (10_000, 40_000, 100_000), "rbm": (40_000, 40_000, 40_000)}  # fmt: skip


@pytest.mark.parametrize("size", [Size.DEFAULT, Size.PAPER])
@pytest.mark.parametrize("task", TASKS)
def test_chains_are_as_long_as_stated_and_half_of_that_is_kept(task, size):
    its = TASKS[task]
    for cell in (*fixed_and_tuned(task, size), *grid(task, size)):
        place = its.sizes.index(int(cell.label(its.size_label)))
        half = STATED[task][place] // 2
        assert (cell.budget.num_warmup, cell.budget.num_samples, cell.budget.thinning) == (half, half, 1)
        assert size is Size.DEFAULT or cell.budget.num_chains == 100


def test_printed_rows_are_tuned_by_the_papers_rule_and_ours_stand_beside_them():
    tuning = {cell.label("sampler"): cell.adaptation for cell in table05.cells(Size.QUICK)}
    for family in ("RWM", "GWG", "LBP"):
        assert tuning[f"{family}-1"] is None
        assert tuning[f"A{family}"] == call("discrax.bench.papers.rules:PaperRate")
        assert tuning[f"A{family} (our rule)"] == "auto"
        assert tuning[f"G{family}"].address == "discrax.bench.papers.rules:PaperRate"
    assert tuning["ALBP (forward order)"] == tuning["ALBP"]


def test_every_exhibit_with_numbers_has_a_suite():
    names = {each.name.partition("/")[2] for each in find("optimal-scaling")}
    assert names >= {f"table{k:02}" for k in range(1, 17)} | {f"figure{k:02}" for k in range(1, 11)}


def small_cell(share, num_samples=100):
    cell = next(cell for cell in table05.cells(Size.QUICK) if cell.label("sampler") == "ARWM")
    how = call("discrax.bench.papers.optimal_scaling.measures:as_printed", statistic="distance", share=share)
    return replace(cell, budget=Budget(4, 50, num_samples), measure=how, is_timed=False)


@pytest.mark.slow
def test_ess_is_of_the_chain_that_was_run():
    found = {row["metric"]: row["value"] for row in measure.run_cell(small_cell(0.25))}
    assert (found["num_steps"], found["num_chains"]) == (100, 4)
    assert found["ESS"] == pytest.approx(100 * found["ESS_per_step"])
    assert 0 < found["ESS_shorter"] < found["ESS"]
    assert found["rwm_unit"] > 0
    assert "is_long_enough" not in found  # as short as print is comparable with it
    assert ("ESS_t" in found) == (found["autocorrelation_times"] >= 50)
    whole = {row["metric"]: row["value"] for row in measure.run_cell(small_cell(1.0))}
    assert whole["ESS_shorter"] == whole["ESS"] == found["ESS"]


def test_where_print_fits_shorter_chains_both_lengths_are_compared():
    for suite, metric in ((table06, "ESS"), (table12, "ESS")):
        stated, shorter = suite.exhibits
        assert (stated.metric, shorter.metric, stated.factor, shorter.factor) == (metric, metric, None, None)
        assert (stated.ours, shorter.ours) == ("ESS", "ESS_shorter")
    assert "5,000 steps at 800" in table06.exhibits[1].title
    where = {dict(each.where).get("L") for each in table12.exhibits[0].notes if "shorter than" in each.text}
    assert where == {"1000", "4000"}  # at 200 print fits the length that it states


def test_a_table_says_how_long_its_chains_are():
    found = rows({"EJD": (24.0, 0.5), "num_steps": 5000, "num_chains": 100}, bernoulli("ALBP", "sqrt(t)"))
    found += rows({"EJD": (3.0, 0.5), "num_steps": 2000, "num_chains": 100}, bernoulli("ARWM"))
    table = table05.exhibits[0]
    grid = make_grid(table, found)
    assert entry(grid, ("ALBP", "sqrt(t)"), "100", "C1").ours == 24.0
    assert dict(zip(grid.columns, grid.lengths, strict=True))["100", "C1"] == "2,000-5,000 × 100"
    assert make_grid(table, [row for row in found if row["metric"] == "EJD"]).lengths == ()


def test_seconds_are_of_rows_that_are_timed():
    (seconds,) = find("optimal-scaling/table07")[0].exhibits
    timed = replace(bernoulli("RWM-1"), is_timed=True)
    best_of_rates = labelled("GRWM", "", task="bernoulli", N="100", config="C1", rate="0.25")
    made = [row for of in (timed, best_of_rates) for row in rows({"microseconds_per_step": 100.0}, of)]
    shown = make_grid(seconds, made)
    assert entry(shown, ("RWM-1", ""), "100", "C1").ours == pytest.approx(100e-6 * 5_000)
    assert entry(shown, ("GRWM", ""), "100", "C1").status == "missing"


def test_one_random_instance_has_the_error_of_being_one():
    """By theory tuned walks differ by 3 % between draws of 800 probabilities, and single flips of LBP not at all."""
    assert jump_spread(800, "C2", "ARWM") == pytest.approx(0.031, abs=0.006)
    assert jump_spread(800, "C2", "ALBP") == pytest.approx(0.0135, abs=0.003)
    assert jump_spread(800, "C2", "RWM-1") == pytest.approx(0.7 / np.sqrt(12) / 0.65 / np.sqrt(800), rel=0.2)
    assert jump_spread(800, "C2", "LBP-1") == 0
    assert instance_spread("bernoulli", 800, "C2", "ALBP") == jump_spread(800, "C2", "ALBP")
    assert instance_spread("ising", 50, "C3", "GGWG") == pytest.approx(0.024 * 20 / 50)
    assert instance_spread("fhmm", 800, "C1", "ALBP (forward order)") == pytest.approx(0.0093 / 2)
    assert instance_spread("rbm", 400, "C2", "ALBP") == 0.092
    assert instance_spread("rbm", 100, "C1", "RWM-1") == 0.017
    assert instance_spread("rbm", 400, "C2", "LBP-1") == instance_spread("ising", 50, "C2", "RWM-1") == 0
    table = table05.exhibits[0]
    found = rows({"EJD": (1.70 * 1.06, 0.05)}, bernoulli("ARWM", size="800", config="C2"))
    assert entry(make_grid(table, found), ("ARWM", ""), "800", "C2").verdict == "within"
    strict = make_grid(replace(table, instance_spread=None), found)
    assert entry(strict, ("ARWM", ""), "800", "C2").verdict == "unexplained"


@pytest.mark.slow
def test_the_other_order_leaves_the_target_as_it_is_and_accepts_less():
    target = dx.targets.Ising.lattice((2, 3), 0.4, 0.2)
    assert dx.exact.check_kernel(ForwardOrder(path_length=3.0), target, num_chains=20_000)
    probs = np.random.default_rng(0).uniform(0.25, 0.75, 400)
    rates = {}
    for kernel in (ForwardOrder, dx.samplers.pas):
        how = {"num_chains": 32, "num_warmup": 0, "num_samples": 100, "keep": "moments", "adaptation": None}
        states = (np.random.default_rng(1).random((32, 400)) < probs).astype(np.int8)
        made = dx.sample(jax.random.key(0), dx.targets.Bernoulli(probs), kernel(path_length=110.0), init=states, **how)
        rates[kernel] = made.summary().acceptance
    assert rates[ForwardOrder] < rates[dx.samplers.pas] - 0.02


def accepted(rates, eps="0.05", regime="p=0.5-eps"):
    """Rows of the acceptance at several N: N -> rate."""
    labels = {"task": "bernoulli-iid", "regime": regime, "eps": eps}
    return [
        row for N, rate in rates.items() for row in rows({"acceptance": (rate, 0.1)}, labelled("LBP", N=N, **labels))
    ]


def test_sites_needed_lie_where_the_rate_is_crossed_in_either_direction():
    (falling,) = sites_needed(accepted({10: 0.9, 20: 0.674, 40: 0.474, 80: 0.2}))
    assert falling["value"] == pytest.approx(20 * np.sqrt(2))
    assert falling["std"] == pytest.approx(falling["value"] * 0.1 * np.log(2) / 0.2)
    (rising,) = sites_needed(accepted({40: 0.374, 80: 0.674}))
    assert rising["value"] == pytest.approx(40 * 2 ** (2 / 3))
    assert sites_needed(accepted({10: 0.9, 20: 0.8})) == sites_needed(accepted({10: 0.3})) == []
    (failed,) = sites_needed(rows({}, labelled("LBP", N=7, eps="0.05"), error="no"))
    assert (failed["status"], "N" in failed["labels"]) == ("failed", False)


@pytest.mark.parametrize(("suite", "regime"), [(table03, "p=0.5-eps"), (table04, "p=eps")])
def test_sites_needed_are_judged_beside_print_where_they_are_measured(suite, regime):
    table = suite.exhibits[0]
    for printed in printed_rows("optimal-scaling", table.number):
        measured = [int(each.label("N")) for each in suite.cells(Size.QUICK) if each.label("eps") == printed["eps"]]
        assert printed["value"] in measured
        below, above = (round(factor * printed["value"]) for factor in (0.5, 2))
        verdicts = []
        for around in (below, above):  # too few and too many sites are both outside
            rates = {0.9 * around: 0.674, 1.1 * around: 0.474}
            found = accepted({round(N): rate for N, rate in rates.items()}, printed["eps"], regime)
            found = [row | {"std": 1e-3 * np.sqrt(CHAINS)} if row["std"] else row for row in found]
            verdicts.append(entry(make_grid(table, found), ("LBP", "sqrt(t)"), printed["eps"]).side)
        assert verdicts == ["below", "above"]


def one_site_accepted(n, p):
    """By the number k of bits that are on, from which a step goes to k - 1 or k + 1."""
    up, down = np.sqrt(p / (1 - p)), np.sqrt((1 - p) / p)
    total = [k * down + (n - k) * up for k in range(n + 1)]
    rate = 0.0
    for k in range(n + 1):
        chance = comb(n, k) * p**k * (1 - p) ** (n - k)
        if k:
            rate += chance * k * down / total[k] * min(1, total[k] / total[k - 1])
        if k < n:
            rate += chance * (n - k) * up / total[k] * min(1, total[k] / total[k + 1])
    return rate


@pytest.mark.slow
def test_one_site_is_accepted_as_often_as_the_sum_over_states_says():
    of_table = next(each for each in table04.cells(Size.QUICK) if each.label("N") == "50")
    found = {row["metric"]: row for row in measure.run_cell(of_table)}["acceptance"]
    error = found["std"] / np.sqrt(of_table.budget.num_chains)
    assert abs(found["value"] - one_site_accepted(50, 0.01)) < 4 * error
    assert abs(found["value"] - one_site_accepted(50, 0.005)) > 4 * error
