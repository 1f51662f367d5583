"""Laws with many modes as cells: what they are held against."""

import numpy as np
import pytest

from discrax.bench.execute.cells import run_cell
from discrax.bench.experiments.multimodal import known_marginals
from discrax.bench.papers.multimodal.laws import clusters, duplicated_columns, in_one_mode
from discrax.bench.plan.suite import Size
from discrax.exact import law
from discrax.targets import PolynomialMixture


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


@pytest.mark.slow
def test_chains_of_a_local_sampler_are_too_short_and_those_of_clusters_are_not():
    for cell in clusters.cells(Size.QUICK):
        if cell.label("sampler") in ("swendsen_wang", "RWM"):
            values = {row["metric"]: row["value"] for row in run_cell(cell)}
            assert values["is_long_enough"] == (cell.label("sampler") == "swendsen_wang")
