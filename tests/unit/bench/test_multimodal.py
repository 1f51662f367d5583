"""Laws with many modes as cells: what they are held against."""

import numpy as np
import pytest

from discrax.bench.execute.cells import run_cell
from discrax.bench.experiments.digits import Digits, features_of, fit_teller, follow
from discrax.bench.experiments.multimodal import known_marginals
from discrax.bench.papers.multimodal.digits import digits
from discrax.bench.papers.multimodal.laws import (
    clusters,
    cost,
    duplicated_columns,
    glass,
    in_one_mode,
    modes,
    tall_columns,
)
from discrax.bench.plan.suite import Size
from discrax.exact import law
from discrax.targets import RBM, PolynomialMixture
from repeats import repeats


def test_marginals_of_a_mixture_are_those_of_enumeration():
    mixture = PolynomialMixture([-6.0, -2.0, 0.0], [0.0, 1.0, 2.0], np.linspace(-1.5, 3.0, 7), 3)
    states, p = mixture.space.enumerate().reshape(-1, 3), law(mixture)
    enumerated = np.stack([p @ (states == level) for level in range(7)], axis=-1)
    assert known_marginals(mixture) == pytest.approx(enumerated, abs=1e-5)
    assert known_marginals(mixture) != pytest.approx(np.full((3, 7), 1 / 7), abs=1e-2)


def test_copies_of_a_column_are_as_likely():
    target = duplicated_columns(num_columns=2, num_copies=2, num_rows=50)
    p = known_marginals(target)[:, 1]
    assert p[:2] == pytest.approx(p[2:], abs=1e-5)


def test_all_chains_begin_in_one_mode():
    starts = np.asarray(in_one_mode(PolynomialMixture.poly2(dimension=4), 0, 3))
    assert len(np.unique(starts)) == 1
    assert 0 < starts[0, 0] < 49


def test_the_law_of_tall_columns_is_that_of_its_enumeration():
    target = tall_columns(num_rows=60, num_distinct=3)
    on = law(target) @ target.space.enumerate()
    assert known_marginals(target)[:, 1] == pytest.approx(on, abs=1e-4)
    assert on != pytest.approx(np.full(6, 0.5), abs=1e-2)


def test_every_local_sampler_of_the_registry_is_beside_clusters():
    names = {cell.label("sampler") for cell in clusters.cells(Size.DEFAULT)}
    assert {"swendsen_wang", "wolff", "rwm", "gibbs", "pas", "dmala", "dlmc", "ab_trace", "hamming_ball"} <= names
    assert not names & {"dula", "swap", "global_flip", "sgdld", "mh_uniform"}


def test_classes_are_told_and_their_changes_counted():
    """Two kinds of pictures, of which a machine without weights knows nothing: pixels tell them."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 400)
    rows = (rng.random((400, 12)) < np.where(classes[:, None] == 1, 0.9, 0.1)).astype(np.int8)
    machine = RBM(np.zeros((2, 12)), np.zeros(12), np.zeros(2))
    teller = fit_teller(machine, Digits(rows, classes, 0))
    assert teller.accuracy > 0.95
    assert list(teller(features_of(machine, np.array([[0] * 12, [1] * 12, [0, 1] * 6])))) == [0, 1, -1]
    changes, seen = follow(np.array([[0, -1, 0, 1, 1], [2, -1, 2, 2, 2], [0, 1, 0, 1, -1]]))
    assert list(changes) == [1, 0, 3]
    assert list(seen) == [2, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "some", "those"),  # the ladder below has cells of all kinds of the modes
    [
        (glass, "8 x 8", [0, -1]),
        *repeats([], [(digits, "16 hidden", [0, -1]), (modes, "quartic mixture", [-1]), (cost, "4", [-1])]),
    ],
)
def test_the_quick_size_runs(suite, some, those):
    cells = [cell for cell in suite.cells(Size.QUICK) if any(some in label for label in dict(cell.labels).values())]
    for cell in (cells[each] for each in those):
        assert {row["status"] for row in run_cell(cell)} == {"ok"}


@pytest.mark.slow
def test_a_ladder_has_the_marginals_of_tall_columns_and_a_sampler_alone_has_not():
    errors = {
        cell.label("sampler"): next(
            row["value"] for row in run_cell(cell) if row["metric"] == "marginal_error_of_a_chain"
        )
        for cell in modes.cells(Size.QUICK)
        if cell.label("law") == "tall columns" and cell.label("sampler") in ("PAS", "PAS, ladder")
    }
    assert errors["PAS"] > 0.4 > 0.3 > errors["PAS, ladder"]


@pytest.mark.slow
def test_chains_of_a_local_sampler_are_too_short_and_those_of_clusters_are_not():
    for cell in clusters.cells(Size.QUICK):
        if cell.label("sampler") in ("swendsen_wang", "RWM"):
            values = {row["metric"]: row["value"] for row in run_cell(cell)}
            assert values["is_long_enough"] == (cell.label("sampler") == "swendsen_wang")
