"""Tables beside print: which number stands where, and whether it agrees."""

from dataclasses import replace

import numpy as np
import pytest

from discrax.bench.papers.optimal_scaling.sampling import best_of_grid
from discrax.bench.plan.printed import find_printed
from discrax.bench.plan.rows import Spread, add_facts, mean_of, standard_error
from discrax.bench.plan.suite import Table, note
from discrax.bench.report.grid import make_grid, number_text, ratio_text

from .fake_rows import EJD, ESS, SECONDS, bernoulli, cell, entry, rows


def test_a_ratio_is_ours_over_print():
    grid = make_grid(EJD, rows({"EJD": (23.4 * 1.05, 0.5), "acceptance": 0.57}, bernoulli("ALBP", "sqrt(t)")))
    found = entry(grid, ("ALBP", "sqrt(t)"), "100", "C1")
    assert found.paper == 23.40
    assert found.ours == pytest.approx(24.57)
    assert found.std == 0.5
    assert found.error == pytest.approx(0.5 / 4)  # of sixteen chains
    assert found.ratio == pytest.approx(1.05)
    assert grid.median_ratio == pytest.approx(1.05)


def test_print_gives_the_shape_of_a_grid():
    grid = make_grid(EJD, [])
    assert len(grid.lines) == 15
    assert grid.lines[0].head == ("RWM-1", "")
    assert grid.columns[:4] == (("100", "C1"), ("100", "C2"), ("100", "C3"), ("800", "C1"))
    assert {found.status for found in grid.entries} == {"missing"}
    assert all(found.paper is not None for found in grid.entries)
    assert grid.median_ratio is None


def test_ours_is_multiplied_by_the_factor():
    grid = make_grid(ESS, rows({"ESS_per_step": (0.01, 0.002)}, bernoulli("RWM-1")))
    found = entry(grid, ("RWM-1", ""), "100", "C1")
    assert found.ours == pytest.approx(20.0)
    assert found.std == pytest.approx(4.0)
    assert found.ratio == pytest.approx(20.0 / 18.85)


def test_a_failed_cell_keeps_its_error():
    grid = make_grid(EJD, rows({}, bernoulli("ARWM"), error="ValueError: no."))
    found = entry(grid, ("ARWM", ""), "100", "C1")
    assert (found.status, found.failure, found.ours, found.paper) == ("failed", "ValueError: no.", None, 3.85)


def test_what_a_paper_quotes_from_others_is_not_missing():
    grid = make_grid(Table("Circuits", "sgdld", 2, "relative_error", "relative_error", ("num_axc_units",)), [])
    found = {line.head[0]: {each.status for each in line.entries} for line in grid.lines}
    assert found["RL"] == found["AFF"] == {"quoted"}
    assert found["SGDLD"] == found["SGDLD-noC"] == {"missing"}


def test_seconds_are_shown_and_not_judged():
    grid = make_grid(SECONDS, rows({"time_s": (0.6, 0.01)}, bernoulli("RWM-1")))
    found = entry(grid, ("RWM-1", ""), "100", "C1")
    assert found.ratio == pytest.approx(0.6 / 6.26)
    assert found.verdict == ""
    assert grid.count_verdict("unexplained") is None


def test_seconds_of_several_devices_say_which():
    walk, path = (rows({"time_s": 0.6}, bernoulli(*each)) for each in (("RWM-1",), ("ALBP", "sqrt(t)")))
    (device,) = {row["device"] for row in walk}
    assert {found.device for found in make_grid(SECONDS, walk + path).entries} == {""}
    elsewhere = [row | {"device": "another"} for row in path]
    grid = make_grid(SECONDS, walk + elsewhere)
    assert entry(grid, ("RWM-1", ""), "100", "C1").device == device
    assert entry(grid, ("ALBP", "sqrt(t)"), "100", "C1").device == "another"


def test_a_sampler_that_is_not_in_print_is_a_further_line():
    grid = make_grid(EJD, rows({"EJD": (30.0, 1.0)}, bernoulli("mine")) + rows({"EJD": 1.0}, bernoulli("ARWM")))
    assert grid.lines[-1].head == ("mine", "")
    assert [line.is_printed for line in grid.lines] == [True] * 15 + [False]
    found = entry(grid, ("mine", ""), "100", "C1")
    assert (found.ours, found.ratio, found.verdict) == (30.0, None, "")


def test_rows_of_other_tasks_and_settings():
    other = rows({"EJD": 5.0}, cell("ARWM", "", task="ising", N=100, config="C1"))
    assert all(found.status == "missing" for found in make_grid(EJD, other).entries)
    grid = make_grid(EJD, rows({"EJD": 5.0}, bernoulli("ARWM", size="50")))
    assert grid.columns[-1] == ("50", "C1")
    assert entry(grid, ("ARWM", ""), "50", "C1").ours == 5.0


def test_seeds_are_averaged_and_the_newest_of_a_seed_counts():
    def measured(value, seed, finished):
        return [row | {"seed": seed, "finished": finished} for row in rows({"EJD": value}, bernoulli("ARWM"))]

    grid = make_grid(
        EJD, measured(9.0, 0, "2026-01-01") + measured(3.0, 0, "2026-01-02") + measured(5.0, 1, "2026-01-01")
    )
    assert entry(grid, ("ARWM", ""), "100", "C1").ours == 4.0


def test_derived_rows_replace_those_they_come_from():
    def best(found):
        top = max(found, key=lambda row: row["value"])
        return [*found, top | {"labels": {name: text for name, text in top["labels"].items() if name != "rate"}}]

    runs = [
        row
        for rate, value in (("0.3", 20.0), ("0.6", 25.0))
        for row in rows({"EJD": value}, cell("GLBP", "sqrt(t)", task="bernoulli", N=100, config="C1", rate=rate))
    ]
    grid = make_grid(replace(EJD, derive=best), runs)
    assert entry(grid, ("GLBP", "sqrt(t)"), "100", "C1").ours == 25.0
    assert len(grid.lines) == 15
    apart = make_grid(EJD, runs)
    assert [line.head for line in apart.lines[15:]] == [
        ("GLBP", "sqrt(t)", "rate=0.3"),
        ("GLBP", "sqrt(t)", "rate=0.6"),
    ]


def test_a_table_without_print():
    table = Table("Ours alone", "", 0, "EJD", "EJD", ("N",), notes=(note("Never seen."),))
    grid = make_grid(table, rows({"EJD": 2.0}, bernoulli("ARWM")))
    assert (grid.has_print, grid.columns, grid.lines[0].head) == (False, (("100",),), ("ARWM", ""))


def test_numbers_as_text():
    assert [number_text(x) for x in (None, 0.0, 0.0123, 1.234, 123.45, 12345.6, 1e-5)] == [
        "-", "0.000", "0.012", "1.234", "123.5", "12,346", "1.00e-05",
    ]  # fmt: skip
    assert [ratio_text(x) for x in (1.234, 0.0985, 123.4)] == ["1.23", "0.099", "123"]


# --- Verdicts --------------------------------------------------------------------------------------------------------

# ALBP with sqrt(t) on 100 bits of C1 prints 23.40; AGWG prints 17.46
PRINT, ROUNDING, CHAINS = 23.40, 0.005, 16


def judged(value, std, sampler="ALBP"):
    grid = make_grid(EJD, rows({"EJD": (value, std)}, bernoulli(sampler, "sqrt(t)")))
    return entry(grid, (sampler, "sqrt(t)"), "100", "C1"), grid


@pytest.mark.parametrize("sign", [-1, 1])
def test_within_two_standard_errors_of_the_difference_on_both_sides(sign):
    error = np.hypot(0.5 / np.sqrt(CHAINS), ROUNDING)
    inside, _ = judged(PRINT + sign * 1.99 * error, 0.5)
    assert (inside.verdict, inside.side) == ("within", "within")
    assert inside.z == pytest.approx(1.99 * sign)
    outside, grid = judged(PRINT + sign * 2.01 * error, 0.5)
    assert (outside.verdict, outside.side) == ("unexplained", "above" if sign > 0 else "below")
    assert [grid.count_verdict(each) for each in ("within", "tested", "unexplained", "no error")] == [0, 0, 1, 0]


def verdicts_at(*z):
    """Of numbers that are so many standard errors from print, at the first printed places."""
    places = [(*line.head, *column) for line in make_grid(EJD, []).lines for column in make_grid(EJD, []).columns]
    found = []
    for place, each in zip(places, z, strict=False):
        sampler, weight, sites, config = place
        labels = {"N": sites, "config": config, "sampler": sampler} | ({"weight_fn": weight} if weight else {})
        printed = find_printed("optimal-scaling", 5, "EJD", labels)
        value = printed["value"] + each * np.hypot(0.4 / np.sqrt(CHAINS), printed["error"])
        found += rows({"EJD": (value, 0.4)}, bernoulli(sampler, weight, sites, config))
    grid = make_grid(replace(EJD, notes=()), found)
    return [each.verdict for each in grid.entries if each.verdict], grid


def test_of_many_numbers_some_are_outside_by_chance():
    verdicts, grid = verdicts_at(2.3, -2.1, *[0.5] * 38)
    assert (verdicts.count("chance"), verdicts.count("within")) == (2, 38)
    assert grid.footnotes == (
        "No more than chance has: 2 of 40 numbers without a tested cause are outside, 1.8 are to be expected, and the "
        "furthest, at 2.3 standard errors, is as far in 58% of such tables.",
    )  # fmt: skip
    assert {each.side for each in grid.entries if each.verdict == "chance"} == {"above", "below"}


@pytest.mark.parametrize("z", [
    (2.3, *[0.5] * 10),  # too few to tell
    (4.0, *[0.5] * 39),  # too far
    (*[2.1] * 6, *[0.5] * 34),  # too many
])  # fmt: skip
def test_what_chance_has_not_is_unexplained(z):
    verdicts, grid = verdicts_at(*z)
    assert verdicts.count("unexplained") == sum(each > 2 for each in z)
    assert "chance" not in verdicts
    assert not grid.footnotes


def test_no_digit_of_print_is_taken_for_more_than_it_is():
    assert judged(PRINT + 0.009, 0.0)[0].verdict == "within"
    assert judged(PRINT + 0.011, 0.0)[0].verdict == "unexplained"


def test_without_an_error_of_ours_there_is_no_verdict():
    found, grid = judged(40.0, None)
    assert (found.verdict, found.side, found.z) == ("no error", "", None)
    assert grid.count_verdict("no error") == 1


def test_only_a_cause_that_was_tested_explains():
    noted = rows({"EJD": (0.3, 0.01)}, bernoulli("LBP-1", "sqrt(t)"))
    noted += rows({"EJD": (9.0, 0.01)}, bernoulli("LBP-1", "t/(t+1)")) + rows(
        {"EJD": (9.0, 0.01)}, bernoulli("AGWG", "sqrt(t)")
    )
    grid = make_grid(EJD, noted)
    below, above = (entry(grid, ("LBP-1", weight), "100", "C1") for weight in ("sqrt(t)", "t/(t+1)"))
    assert (below.verdict, below.side, below.footnote) == ("tested", "below", 1)
    assert (above.verdict, above.side, above.footnote) == ("tested", "above", 1)
    guessed = entry(grid, ("AGWG", "sqrt(t)"), "100", "C1")
    assert (guessed.verdict, guessed.footnote) == ("unexplained", 2)
    assert grid.footnotes == (
        "One site at a time. Tested: 0.447 with two sites.", "Nobody knows. (Not tested.)",
    )  # fmt: skip
    assert make_grid(EJD, rows({"EJD": (0.75, 0.5)}, bernoulli("LBP-1", "sqrt(t)"))).footnotes == ()


def test_of_several_causes_the_tested_one_is_named():
    table = replace(EJD, notes=(note("A guess.", sampler="ALBP"), note("A cause.", tested="30 so", sampler="ALBP")))
    grid = make_grid(table, rows({"EJD": (30.0, 0.1)}, bernoulli("ALBP", "sqrt(t)")))
    assert grid.footnotes == ("A cause. Tested: 30 so.",)
    as_sentence = replace(EJD, notes=(note("A cause.", tested="It had 30 so.", sampler="ALBP"),))
    grid = make_grid(as_sentence, rows({"EJD": (30.0, 0.1)}, bernoulli("ALBP", "sqrt(t)")))
    assert grid.footnotes == ("A cause. Tested: It had 30 so.",)


def test_the_error_of_print_is_over_its_instances():
    labels = {"graph_set": "ER[700-800]", "sampler": "PAS", "weight_fn": "sqrt(t)"}
    for density, count in (("0.05", 32), ("0.15", 128)):
        found = find_printed("discs", 5, "set_size_lower_bound", labels | {"density": density})
        assert found is not None
        assert found["error"] == pytest.approx(np.hypot(found["std"] / np.sqrt(count), 0.0005))
    first = find_printed("discs", 1, "set_size_lower_bound", labels | {"density": "0.05"})
    same = find_printed("discs", 5, "set_size_lower_bound", labels | {"density": "0.05"})
    assert first is not None
    assert same is not None
    assert (first["value"], first["error"]) == (same["value"], same["error"])


def test_the_error_of_ours_is_over_instances_where_a_cell_has_them():
    of_chains, of_instances = {"ratio": (0.9, 0.2)}, {"ratio": (0.9, 0.2), "instances": 100}
    assert standard_error(add_facts(rows(of_chains, cell()))[0]) == pytest.approx(0.2 / 4)
    assert standard_error(add_facts(rows(of_instances, cell()))[0]) == pytest.approx(0.2 / 10)
    assert standard_error(rows({"ratio": 0.9}, cell())[0]) is None
    one = add_facts(rows({"ratio": (0.9, 0.0), "instances": 1}, cell()))[0]
    assert standard_error(one) is None  # the spread of one number is not 0 but unknown


def test_print_has_one_reference_state():
    """On 100 bits RWM-1 prints an ESS of 18.85, and ours is 2,000 times that of a step."""
    numbers = {"ESS_per_step": (0.0085, 0.0001), "ESS_reference_std": 0.001}
    for found, verdict in ((numbers, "within"), ({"ESS_per_step": (0.0085, 0.0001)}, "unexplained")):
        place = entry(make_grid(ESS, add_facts(rows(found, bernoulli("RWM-1")))), ("RWM-1", ""), "100", "C1")
        assert place.error == pytest.approx(2000 * 0.0001 / 4)
        assert place.verdict == verdict
    jump = rows({"EJD": (0.77, 0.01), "ESS_per_step": 0.01, "ESS_reference_std": 0.001}, bernoulli("RWM-1"))
    place = entry(make_grid(EJD, add_facts(jump)), ("RWM-1", ""), "100", "C1")
    assert place.paper_error == pytest.approx(0.005)  # a jump distance has no reference


def test_what_is_exact_has_no_error_and_is_judged():
    exact = {"EJD": (PRINT, None), "is_exact": 1.0}
    found = entry(
        make_grid(EJD, add_facts(rows(exact, bernoulli("ALBP", "sqrt(t)")))), ("ALBP", "sqrt(t)"), "100", "C1"
    )
    assert (found.error, found.verdict) == (0.0, "within")
    exact["EJD"] = (1.1 * PRINT, None)
    found = entry(
        make_grid(EJD, add_facts(rows(exact, bernoulli("ALBP", "sqrt(t)")))), ("ALBP", "sqrt(t)"), "100", "C1"
    )
    assert found.verdict == "unexplained"


def of_seeds(values, std, **facts):
    return [row | {"seed": seed} | facts for seed, value in enumerate(values) for row in rows({"EJD": (value, std)})]


def test_seeds_are_one_entry_with_the_error_over_seeds():
    mean = mean_of(of_seeds((10.0, 13.0, 16.0), 0.4))
    assert (mean.value, mean.count, mean.std) == (13.0, 3, 3.0)
    assert mean.error == pytest.approx(3.0 / np.sqrt(3))
    # Seeds that agree by chance do not make the error vanish: chains are theirs, instances are shared.
    assert mean_of(of_seeds((10.0, 10.0), 0.4)).error == pytest.approx(0.1 / np.sqrt(2))
    assert mean_of(of_seeds((10.0, 10.0), 0.4, spread=Spread("instances", 16))).error == pytest.approx(0.1)
    assert mean_of(of_seeds((10.0, 12.0), None)).error == pytest.approx(1.0)


def test_chains_that_are_too_short_stand_beside_print_and_are_not_judged():
    short = {"EJD": (90.0, 0.1), "is_long_enough": 0.0, "autocorrelation_times": 3.0}
    of = bernoulli("ALBP", "sqrt(t)")
    grid = make_grid(EJD, add_facts(rows(short, of)))
    found = entry(grid, ("ALBP", "sqrt(t)"), "100", "C1")
    assert (found.status, found.ours, found.times) == ("too short", 90.0, 3.0)
    assert (found.verdict, found.ratio) == ("", pytest.approx(90.0 / PRINT))
    assert (grid.count("too short"), grid.median_ratio) == (1, None)
    # another seed that is long enough does not hide it
    other = [row | {"seed": 1, "cell": "other"} for row in rows({"EJD": (PRINT, 0.1), "is_long_enough": 1.0}, of)]
    found = entry(make_grid(EJD, add_facts(rows(short, of) + other)), ("ALBP", "sqrt(t)"), "100", "C1")
    assert (found.status, found.ours, found.times) == ("too short", (90.0 + PRINT) / 2, 3.0)


def test_chains_as_long_as_those_of_print_are_judged_short_or_not():
    short = {"EJD": (PRINT, 0.1), "is_long_enough": 0.0, "autocorrelation_times": 3.0}
    of = bernoulli("ALBP", "sqrt(t)")  # 20 draws
    for steps, expected in ((20, ("ok", "within")), (21, ("too short", ""))):
        grid = make_grid(replace(EJD, print_steps=steps), add_facts(rows(short, of)))
        found = entry(grid, ("ALBP", "sqrt(t)"), "100", "C1")
        assert (found.status, found.verdict) == expected


def test_the_best_of_a_grid_is_not_of_chains_that_are_too_short():
    def at(rate, value, is_long):
        of = cell("GLBP", "sqrt(t)", task="bernoulli", N=100, config="C1", rate=rate)
        return rows({"EJD": value, "is_long_enough": is_long, "autocorrelation_times": 3.0}, of)

    found = add_facts(at("0.3", 90.0, 0.0) + at("0.5", 20.0, 1.0) + at("0.7", 10.0, 1.0))
    assert [row["value"] for row in best_of_grid(found) if row["metric"] == "EJD"] == [20.0]
