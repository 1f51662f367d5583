"""What the summary says, and what it does not hide."""

import sys

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from discrax.diagnostics import ScalarDiagnostics, Summary, diagnose, ess


def chains(seed: int = 0, shape=(4, 400)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def summary(**changes) -> Summary:
    scalars = (
        ScalarDiagnostics("lp", -1.25, 2.0, 300.0, 310.0, 290.0, 1.002),
        ScalarDiagnostics("distance", 3.0, 1.0, 120.0, 125.0, 140.0, 1.004),
    )
    fields = {
        "title": "PAS on Ising",
        "num_chains": 4,
        "num_draws": 500,
        "acceptance": 0.5741,
        "jump": 12.25,
        "evaluations": 20_000.0,
        "seconds": 2.0,
        "compile_seconds": 3.5,
        "scalars": scalars,
    }
    return Summary(**fields | changes)


def test_diagnostics_are_arviz_numbers_and_the_papers_ess():
    values = chains()
    ours = diagnose("lp", values)
    assert ours.mean == pytest.approx(values.mean())
    assert ours.sd == pytest.approx(values.std())
    assert ours.ess == pytest.approx(ess(values).sum())
    assert ours.ess_bulk == pytest.approx(float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk")))
    assert ours.rhat == pytest.approx(float(array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank")))
    assert ours.ess_tail > 100


def test_a_constant_chain_takes_the_rank_diagnostics_with_it():
    values = chains()
    values[2] = 1.5
    ours = diagnose("lp", values)
    assert (ours.ess_bulk, ours.ess_tail, ours.rhat) == (0, 0, None)
    assert ours.ess == pytest.approx(ess(values[[0, 1, 3]]).sum())


def test_one_chain_has_no_rhat():
    ours = diagnose("lp", chains(shape=(1, 200)))
    assert ours.rhat is None
    assert ours.ess_bulk > 0


def test_ess_is_that_of_the_slowest_scalar():
    assert summary().ess == 120
    assert summary(scalars=()).ess is None


EXPECTED = [
    "PAS on Ising",
    "4 x 500",
    "0.574",
    "12.25 a step",
    "20,000",
    "2.00 (+ 3.50 compiling)",
    "120, the smallest; 60 a second, 0.006 an evaluation",
    "lp",
    "-1.25",
    "300",
    "1.002",
    "distance",
]


@pytest.mark.parametrize("has_rich", [True, False], ids=["rich", "plain"])
def test_text_shows_every_number(monkeypatch, has_rich):
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    text = str(summary(adaptation="path_length = 3 (asked ...)", stuck_chains=(1, 3)))
    for part in (*EXPECTED, "path_length = 3", "2 of 4 chains never moved (ESS 0): 1, 3."):
        assert part in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_no_warnings_where_all_is_well():
    assert summary().warnings() == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"stuck_chains": (0,)}, "1 of 4 chains never moved (ESS 0): 0."),
        (
            {"stuck_chains": tuple(range(12)), "num_chains": 12},
            "12 of 12 chains never moved (ESS 0): 0, 1, 2, 3, 4, 5, 6, 7, ....",
        ),
        ({"never_moved": 7}, "7 free sites have the same code in every draw."),
        ({"invalid": 3}, "3 proposals had a NaN or +inf log-probability and were rejected."),
        (
            {"notes": ("The run was interrupted after 5 draws; what was drawn is here.",)},
            "The run was interrupted after 5 draws; what was drawn is here.",
        ),
        (
            {"scalars": (ScalarDiagnostics("lp", 0.0, 1.0, 9.0, 9.0, 9.0, 1.2),)},
            "R-hat of lp is 1.200: the chains do not agree yet; run longer.",
        ),
    ],
    ids=["stuck", "many-stuck", "never-moved", "invalid", "interrupted", "rhat"],
)
def test_warnings(changes, line):
    assert summary(**changes).warnings() == [line]
    assert line[:60] in str(summary(**changes))
