"""The site: its nav names pages that exist, pages show or run something, and the reference has every public name."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.utils import yaml_load

import discrax as dx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOOKS_SPEC = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
hooks = importlib.util.module_from_spec(HOOKS_SPEC)
HOOKS_SPEC.loader.exec_module(hooks)


def pages(nav) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for entry in (nav.values() if isinstance(nav, dict) else nav) for page in pages(entry)]


NAV = pages(hooks.filled(yaml_load((ROOT / "mkdocs.yml").read_text())["nav"]))


def test_the_nav_names_every_page_once():
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    there |= {str(path.relative_to(DOCS)) for path in DOCS.glob("tutorials/*.py")}
    assert sorted(NAV) == sorted(there)


@pytest.mark.parametrize("page", NAV)
def test_every_page_has_a_picture_or_a_runnable_block(page):
    text = (DOCS / page).read_text()
    assert page.endswith(".py") or re.search(r"!\[|^```(python|sh)$", text, re.MULTILINE) or hooks.FIGURE.search(text)


def test_every_public_name_is_in_the_reference():
    described = hooks.described()
    rooms = [getattr(dx, name) for name in dx.__all__ if hasattr(getattr(dx, name), "__path__")] + [dx, dx.extend]
    public = {f"{room.__name__}.{name}": getattr(room, name) for room in rooms for name in getattr(room, "__all__", ())}
    missing = [
        name for name, thing in public.items() if not hasattr(thing, "__loader__") and id(thing) not in described
    ]
    assert len(public) > 200
    assert missing == []


def test_pictures_are_small_and_used():
    used = "".join((DOCS / page).read_text() for page in NAV)
    for picture in DOCS.glob("pictures/*"):
        assert picture.stat().st_size < 100_000, picture.name
        assert f"pictures/{picture.name}" in used, picture.name


def test_figures_of_results_are_those_of_the_html_page_beside_them():
    assert hooks.with_figures("one\nA figure, drawn on the HTML page.\ntwo", ["<svg></svg>"]).count("<svg>") == 1
    with pytest.raises(ValueError, match="speaks of 1 figures, and the HTML page beside it has 2"):
        hooks.with_figures("A figure; it is on the HTML page.", ["<svg></svg>"] * 2)


def test_formulas_become_mathml_outside_of_code():
    html = hooks.with_formulas("<p>$a &lt; b$ and <code>$HOME or $PATH</code></p> $$x^2$$")
    assert html.count("<math") == 2
    assert "<code>$HOME or $PATH</code>" in html
    assert 'display="block"' in html


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quick = {"NO_MKDOCS_2_WARNING": "1", "DISCRAX_DOCS_EXECUTE": "false"}  # tutorials have tests of their own
    environment = {**os.environ, **quick, "PYTHONPATH": str(ROOT / "src")}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    fetched = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?https?:[^"'> ]+""")
    found = [(page.name, each) for page in tmp_path.rglob("*.html") for each in fetched.findall(page.read_text())]
    assert [each for each in found if 'rel="canonical"' not in each[1]] == []
