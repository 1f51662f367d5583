"""Every task that a newcomer has is a program that finds what it says. Tutorials have a form; `make docs` runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
TASKS = sorted((ROOT / "tests" / "docs" / "tasks").glob("*.py"))
QUICK = ("temperature_scan.py",)
RUNNING = [path if path.name in QUICK else pytest.param(path, marks=pytest.mark.slow) for path in TASKS]
pytestmark = pytest.mark.runs_long


def test_none_is_missing():
    assert [path.name[0] for path in TUTORIALS] == list("1234567")
    assert len(TASKS) == 5


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.name)
def test_a_program_of_the_docs_runs(path, tmp_path):
    asked = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.name)
def test_a_tutorial_is_a_notebook_that_ends_with_what_to_try_next(path):
    text = path.read_text()
    cells = text.split("# %%")
    assert text.startswith("# %% [markdown]\n# # ")
    assert "?" in cells[1], "It begins with a question."
    assert "# ## What to try next" in cells[-1]
    assert text.count("plt.show()") >= 2
