"""Every Python example of the README and the docs runs, in the order of its page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = {page: re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL) for page in PAGES}


QUICK = ("README.md", "exactness.md")  # the examples of the others run in `make test-slow`
RUNNING = [
    page if page.name in QUICK else pytest.param(page, marks=pytest.mark.slow) for page in PAGES if EXAMPLES[page]
]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_examples_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for number, example in enumerate(EXAMPLES[page], 1):
        exec(compile(example, f"{page.name}, example {number}", "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
