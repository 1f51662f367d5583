"""The site: its nav names pages that exist, pages show or run something, and the reference has every public name."""

import importlib
import importlib.util
import re
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


def test_a_site_that_fetches_something_is_not_built(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<link rel="canonical" href="https://here/page"><a href="https://there">there</a>')
    hooks.on_post_build({"site_dir": tmp_path})
    page.write_text(f"{page.read_text()}<script async src='https://there/a.js'></script>")
    with pytest.raises(
        ValueError, match=r"would fetch <script async src='https://there/a\.js; put the file into docs/"
    ):
        hooks.on_post_build({"site_dir": tmp_path})
