"""What the site is made of besides its pages: names of the package, figures of the results, formulas of the tutorials.

- A nav entry that is the name of a folder lists the pages of that folder, the index first.
- `<!-- names: discrax.room -->` on a page becomes the reference of all public names of that module.
- "A figure, drawn on the HTML page." in a page of results becomes the figure, taken from the HTML page beside it. That
  page is kept as NAME.page.html, since NAME.html is the Markdown's.
- `$...$` and `$$...$$` in a tutorial become MathML, which browsers show without any script.
- A site that would fetch anything from elsewhere when it is read is not built.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

from latex2mathml.converter import convert
from mkdocs.structure.files import File, InclusionLevel

NAMES = re.compile(r"^<!-- names: ([\w.]+) -->$", re.MULTILINE)
FIGURE = re.compile(r"A figure[^.\n]* on the HTML page\.")
FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?https?:[^"'> ]+""")
DOCS = Path(__file__).parent
SHOWN = ("discrax", "discrax.extend")


def pages_of(folder: str) -> list[str]:
    """The pages of a folder as a nav lists them: the index, then the others by name."""
    found = [path for path in (DOCS / folder).glob("*") if path.suffix in (".md", ".py")]
    found.sort(key=lambda path: (path.name not in ("index.md", "README.md"), path.name))
    return [f"{folder}/{path.name}" for path in found]


def filled(nav: list) -> list:
    """A nav whose folders are lists of pages; a folder without pages is left out."""
    full = []
    for entry in nav:
        ((title, value),) = entry.items() if isinstance(entry, dict) else ((None, entry),)
        if isinstance(value, str) and "." not in value:
            if pages := pages_of(value):
                full.append({title: [_named(page) for page in pages]})
        else:
            full.append(entry)
    return full


def _named(page: str) -> str | dict[str, str]:
    """Pages of the benchmark by their files: several have the name of a paper in their titles, and no more."""
    return {Path(page).stem: page} if (DOCS / page).read_text().startswith("# Benchmark: ") else page


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__` without modules, or what `discrax` and `discrax.extend` offer of it."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    offered = (getattr(room, name) for room in map(importlib.import_module, SHOWN) for name in room.__all__)
    of_it = [thing for thing in offered if getattr(thing, "__module__", None) == module.__name__]
    return list(dict.fromkeys(thing.__name__ for thing in of_it))


def described() -> dict[int, tuple[str, str]]:
    """By the identity of a thing, the module and the name of its entry in the reference: `extend` has the rest."""
    pages = [page for page in pages_of("reference") if not page.endswith("extend.md")]
    modules = [name for page in pages for name in NAMES.findall((DOCS / page).read_text())]
    things = {}
    for name in [*modules, "discrax.extend"]:
        module = importlib.import_module(name)
        for each in public_names(module):
            things.setdefault(id(getattr(module, each)), (name, each))
    return things


def reference(name: str) -> str:
    """The names of a module, those of one file together, below what the file says of their maths."""
    module, homes = importlib.import_module(name), described()
    groups: dict[str, list[str]] = {}
    elsewhere = []
    for each in public_names(module):
        thing = getattr(module, each)
        home = getattr(thing, "__module__", None) or name
        if homes[id(thing)] == (name, each):
            groups.setdefault(home if home.startswith("discrax") else name, []).append(each)
        else:
            elsewhere.append(f"[`{each}`][{'.'.join(homes[id(thing)])}]")
    parts = [f"Described elsewhere: {', '.join(elsewhere)}.\n"] if elsewhere else []
    for home, names in groups.items():
        title, _, rest = (inspect.getdoc(importlib.import_module(home)) or "").partition("\n")
        if home != name:
            parts.append(f"## {title.rstrip('.:')}\n\n{rest.strip()}\n")
        elif len(groups) > 1:
            parts.append("## Of the module itself\n")
        parts += [entry(name, each) for each in names]
    return "\n".join(parts)


def entry(module: str, name: str) -> str:
    """One name: its signature and text, and for a sampler what the registry says of it."""
    registry = importlib.import_module("discrax.samplers").REGISTRY if module == "discrax.samplers" else {}
    said = ""
    if name in registry:
        spaces = ", ".join(f"`{space.__name__}`" for space in registry[name].spaces)
        said = f'\n`dx.sample(key, target, "{name}")`: {registry[name].about}. Spaces: {spaces}.\n'
    return f"::: {module}.{name}\n    options:\n      heading: {name}\n{said}"


def figures(page: Path) -> list[str]:
    """The figures of a results page, as SVG."""
    return re.findall(r"<svg role=\"img\".*?</svg>", page.read_text(), re.DOTALL) if page.exists() else []


def with_figures(markdown: str, drawn: list[str]) -> str:
    """A page of results with its figures in place of the sentence that says where they are."""
    parts = FIGURE.split(markdown)
    if len(parts) - 1 != len(drawn):
        raise ValueError(f"The page speaks of {len(parts) - 1} figures, and the HTML page beside it has {len(drawn)}.")
    shown = [f'\n<div class="figure">{svg}</div>\n'.replace("\n\n", "\n") for svg in drawn]
    return parts[0] + "".join(svg + part for svg, part in zip(shown, parts[1:], strict=True))


def with_formulas(html: str) -> str:
    """Formulas outside of code as MathML."""
    parts = re.split(r"(<(pre|code|script|style)\b.*?</\2>)", html, flags=re.DOTALL)
    for i in range(0, len(parts), 3):  # text, code, name of the code's tag, text, ...
        text = re.sub(r"\$\$(.+?)\$\$", lambda found: mathml(found[1], "block"), parts[i], flags=re.DOTALL)
        parts[i] = re.sub(r"(?<!\\)\$([^$\n]+?)\$", lambda found: mathml(found[1], "inline"), text)
    return "".join(part for i, part in enumerate(parts) if i % 3 != 2)


def mathml(latex: str, display: str) -> str:
    """One formula."""
    for mark, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        latex = latex.replace(mark, sign)
    return convert(latex, display=display)


def fetched(html: str) -> list[str]:
    """What a browser would fetch from elsewhere to show a page."""
    return [each for each in FETCHED.findall(html) if 'rel="canonical"' not in each]


def on_config(config):
    config.nav = filled(config.nav)
    return config


def on_files(files, config):
    for path in sorted(DOCS.glob("results/*.html")):
        place = path.relative_to(DOCS).as_posix()
        to = place.removesuffix(".html") + ".page.html"
        given = {"dest_uri": to, "inclusion": InclusionLevel.INCLUDED}
        files.append(File(place, config.docs_dir, config.site_dir, False, **given))
    return files


def on_page_markdown(markdown, page, **_):
    if FIGURE.search(markdown):
        markdown = with_figures(markdown, figures((DOCS / page.file.src_uri).with_suffix(".html")))
    return NAMES.sub(lambda found: reference(found[1]), markdown)


def on_page_content(html, page, **_):
    return with_formulas(html) if page.file.src_uri.endswith(".py") else html


def on_post_build(config, **_):
    for page in Path(config["site_dir"]).rglob("*.html"):
        if found := fetched(page.read_text()):
            raise ValueError(f"{page} would fetch {found[0]}; put the file into docs/.")
