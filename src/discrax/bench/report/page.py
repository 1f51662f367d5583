"""The page: one HTML file that needs nothing else; the templates, styles and script are in the folder `template`."""

import io
import re
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import groupby
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.figure import Figure

from discrax.bench.report.axes import Point
from discrax.bench.report.grid import VERDICTS, Grid, number_text, ratio_text
from discrax.bench.report.looks import INK, RULE
from discrax.bench.report.numbers import PointTable, grid_csv, point_tables, points_csv


@dataclass(frozen=True)
class Plot:
    """A figure, drawn, and the points that it shows."""

    title: str
    svg: str
    points: tuple[Point, ...] = ()

    @property
    def csv(self) -> str:
        """All points as CSV."""
        return points_csv(self.points)

    @property
    def tables(self) -> list[PointTable]:
        """The points as tables, a panel each."""
        return point_tables(self.points)


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
    commands: tuple[str, ...] = ()  # that make such a run

    @property
    def grids(self) -> list[Grid]:
        """The tables of all sections."""
        return [exhibit for section in self.sections for exhibit in section.exhibits if isinstance(exhibit, Grid)]


def csv_of(exhibit: Grid | Plot) -> str:
    """The numbers of a table or a figure as CSV."""
    return grid_csv(exhibit) if isinstance(exhibit, Grid) else exhibit.csv


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
    return environment().get_template("page.html").render(document=document, verdicts=VERDICTS)


def data_link(text: str) -> str:
    """A CSV as a link that holds it, so that the page stays one file."""
    return f"data:text/csv;charset=utf-8,{quote(text, safe=' ,;:=()+-_.[]/')}"


@cache
def environment() -> Environment:
    """The templates, and what they call."""
    made = Environment(
        loader=PackageLoader("discrax.bench.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["grid"] = lambda exhibit: isinstance(exhibit, Grid)  # ty: ignore[invalid-assignment]
    made.filters |= {
        "anchor": anchor,
        "number_text": number_text,
        "ratio_text": lambda ratio: "-" if ratio is None else ratio_text(ratio),
        "csv_link": lambda exhibit: data_link(csv_of(exhibit)),
        "label_value": _label_value,
        "join_columns": _join_columns,
    }
    return made


def _label_value(value: str, label: str) -> str:
    """C1 speaks for itself; 100 does not."""
    return f"{label} = {value}" if re.fullmatch(r"[-+.\deE]+", value) else value


def _join_columns(grid: Grid, depth: int) -> list[tuple[str, int]]:
    """Neighbouring columns whose first `depth` labels are equal, as one: the last of these labels, and how many."""
    groups = groupby(grid.columns, key=lambda column: column[:depth])
    return [(prefix[-1], len(list(group))) for prefix, group in groups]
