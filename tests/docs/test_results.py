"""What docs/results says of its rows."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discrax.bench.papers.any_scale.readings import readings
from discrax.bench.papers.any_scale.sampling import table03
from discrax.bench.papers.enhanced_gradient_mcmc.energy_models import BETWEEN_TRUTHS

ROOT = Path(__file__).parents[2]
LEFT_OUT = {  # a truth that is a case of its own
    ("NCG", 0): "a fourth truth",
    ("PAVG", 1): "another truth",
    ("PAVG", 2): "a third truth",
    ("AVG", 3): "another truth",
}
FAILED = 3.0  # the error of a seed that does not learn, where the other seeds of its truth do


def _counting():
    spec = importlib.util.spec_from_file_location("count_results", ROOT / "tools" / "count_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_counts_are_those_of_the_committed_rows():
    counting = _counting()
    said = (counting.RESULTS / "README.md").read_text().partition(counting.BEGIN)[2].partition(counting.END)[0]
    assert said.strip() == counting.table().strip()


def test_readings_of_print_are_not_counted():
    assert _counting()._counted(readings) == []
    assert _counting()._counted(table03)


@pytest.fixture(scope="module")
def errors_of_truths():
    """By sampler and K: by truth, the errors of its seeds."""
    errors = {}
    for row in pq.read_table(ROOT / "docs" / "results" / "rows" / "enhanced-table02.parquet").to_pylist():
        if row["metric"] == "J_estimation_error":
            labels = json.loads(row["labels"])
            name, _, truth = labels["sampler"].partition(", ")
            errors.setdefault((name, int(labels["K"])), {}).setdefault(truth, []).append(row["value"])
    return errors


@pytest.mark.parametrize(("sampler", "place"), [(name, place) for name in BETWEEN_TRUTHS for place in range(4)])
def test_how_much_truths_differ_is_that_of_the_committed_rows(errors_of_truths, sampler, place):
    errors = dict(errors_of_truths[sampler, 5 * place + 5])
    errors.pop("0.08", None)
    assert len(errors) == 4
    errors.pop(LEFT_OUT.get((sampler, place)), None)
    if (sampler, place) == ("PAVG", 1):
        errors[""] = [error for error in errors[""] if error < FAILED]
    means = [np.mean(of_truth) for of_truth in errors.values()]
    assert BETWEEN_TRUTHS[sampler][place] == pytest.approx(np.std(means, ddof=1) / np.mean(means), abs=6e-4)
