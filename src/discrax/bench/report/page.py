"""The page: one HTML file that needs nothing else; the templates, styles and script are in the folder `template`."""

import io
import re
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.figure import Figure

from discrax.bench.report.grid import Grid, number_text, ratio_text
from discrax.bench.report.looks import INK, RULE


@dataclass(frozen=True)
class Plot:
    """A figure, drawn."""

    title: str
    svg: str


@dataclass(frozen=True)
class Section:
    """A suite with its exhibits."""

    name: str
    about: str
    exhibits: tuple[Grid | Plot, ...]
    num_ok: int = 0
    num_failed: int = 0
    num_missing: int = 0


@dataclass(frozen=True)
class Failure:
    """A cell that failed."""

    name: str
    error: str

    @property
    def headline(self) -> str:
        """The line of the error that says most."""
        lines = self.error.strip().splitlines() or ["no message"]
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]


@dataclass(frozen=True)
class Document:
    """All that there is to show of a run."""

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    failures: tuple[Failure, ...] = field(default=())

    @property
    def grids(self) -> list[Grid]:
        """The tables of all sections."""
        return [exhibit for section in self.sections for exhibit in section.exhibits if isinstance(exhibit, Grid)]


def anchor(*parts: object) -> str:
    """A name for links: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")


def svg_of(figure: Figure, name: str, alt: str) -> str:
    """A figure as an SVG element for a page: its ids are its own, its text is text, its ink is the page's."""
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace(INK, "var(--ink)").replace(RULE, "var(--rule)")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1).strip()


def render(document: Document) -> str:
    """The whole page."""
    return _environment().get_template("page.html").render(document=document)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("discrax.bench.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["grid"] = lambda exhibit: isinstance(exhibit, Grid)
    environment.filters |= {
        "anchor": anchor,
        "number_text": number_text,
        "ratio_text": lambda ratio: "-" if ratio is None else ratio_text(ratio),
        "label_value": _label_value,
        "join_columns": _join_columns,
    }
    return environment


def _label_value(value: str, label: str) -> str:
    """C1 speaks for itself; 100 does not."""
    return f"{label} = {value}" if re.fullmatch(r"[-+.\deE]+", value) else value


def _join_columns(grid: Grid, depth: int) -> list[tuple[str, int]]:
    """Neighbouring columns whose first `depth` labels are equal, as one: the last of these labels, and how many."""
    groups = groupby(grid.columns, key=lambda column: column[:depth])
    return [(prefix[-1], len(list(group))) for prefix, group in groups]
