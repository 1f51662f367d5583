"""Every Python example of the README and the docs runs, in the order of its page."""

import re
import tomllib
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (".", "interop", "methods", "reference")
PAGES = [ROOT / "README.md", *sorted(page for room in ROOMS for page in (ROOT / "docs" / room).glob("*.md"))]
EXAMPLES = {page: re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL) for page in PAGES}


@pytest.mark.docs  # `make docs` runs them
@pytest.mark.parametrize(
    "page", [page for page in PAGES if EXAMPLES[page]], ids=lambda page: str(page.relative_to(ROOT))
)
def test_examples_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for number, example in enumerate(EXAMPLES[page], 1):
        with jax.numpy_rank_promotion("allow"):  # as it is for users
            exec(compile(example, f"{page.name}, example {number}", "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


DEVELOPMENT = ROOT / "docs" / "development.md"


def test_the_page_of_the_house_names_every_room():
    rooms = {path.name for path in (ROOT / "src" / "discrax").iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.stem for path in (ROOT / "src" / "discrax").glob("[a-z]*.py")}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", DEVELOPMENT.read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == rooms


def test_the_page_of_the_house_has_the_layers_that_are_enforced():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"discrax\.(\w+)", layer) for layer in settings[0]["layers"]]
    shown = re.search(r"^```\n(cli\n.*?)^```", DEVELOPMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert [re.split(r"\s{3,}", line)[0].split(" | ") for line in shown[1].splitlines()] == layers


def test_worked_examples_are_short():
    lengths = [example.count("\n") for example in EXAMPLES[DEVELOPMENT]]
    assert len(lengths) >= 5
    assert max(lengths) <= 120
