"""What docs/results says of its rows."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
