"""Counts, paper by paper, how the committed rows stand to the printed tables: `python tools/count_results.py`.

It writes the table between two marks of docs/results/README.md. Each file of rows is counted as its page shows it, with
all its seeds. A place of a printed table counts once. Where it is compared in two ways (whole chains, and the part of
them that print fits; two counts of steps) it counts as what comes first of `ORDER`: it is within if one of them is, and
has a tested cause only if both have. What is outside
"as chance has" is no more of a table's numbers, and no further outside, than normal errors leave there (`report.grid`).
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from discrax.bench.execute import store
from discrax.bench.plan.rows import OF_SECONDS, add_facts
from discrax.bench.plan.suite import Size, Suite, Table
from discrax.bench.report.grid import make_grid, markdown_table
from discrax.bench.report.write import rows_by_suite, suites_of

RESULTS = Path(__file__).parent.parent / "docs" / "results"
BEGIN, END = "<!-- counts -->\n", "<!-- end of counts -->\n"
PAPERS = {
    "any-scale": "Any-scale balanced samplers",
    "optimal-scaling": "Optimal scaling for locally balanced proposals",
    "discs": "DISCS",
    "enhanced-gradient-mcmc": "Enhanced gradient-based MCMC",
    "sgdld": "SGDLD",
}
HEADS = {
    "within": "within",
    "tested": "outside, cause tested",
    "chance": "outside, as chance has",
    "unexplained": "outside, no cause",
    "no error": "no error known",
    "too short": "chains too short",
    "failed": "failed",
    "incomparable": "not comparable",
    "quoted": "quoted from others",
    "missing": "not run",
}
# What counts first.
ORDER = (
    "within", "unexplained", "chance", "tested", "no error", "too short", "failed", "incomparable", "quoted", "missing",
)  # fmt: skip


def standings() -> dict[tuple, str]:
    """How each place of a printed table stands, by paper, number, metric, line and column."""
    found: dict[tuple, str] = {}
    for file in sorted((RESULTS / "rows").glob("*.parquet")):
        about, rows = store.read_about(file), add_facts(store.read_rows(file))
        suites = {suite.name: suite for suite in suites_of(about)}
        counted = {name: _counted(suite) for name, suite in suites.items()}
        planned = {
            name: {cell.id: cell for cell in suites[name].cells(Size(about["size"])) if counted[name]}
            for name in suites
        }
        by_suite = rows_by_suite(planned, rows)
        for name, tables in counted.items():
            for table in tables:
                for place, standing in _of_table(table, by_suite[name]):
                    found[place] = min(standing, found.get(place, "missing"), key=ORDER.index)
    return found


def _counted(suite: Suite) -> list[Table]:
    tables = [each for each in suite.exhibits if isinstance(each, Table) and each.paper in PAPERS]
    return [each for each in tables if not each.is_reading and each.metric not in OF_SECONDS]


def _of_table(table: Table, rows: list) -> Iterator[tuple[tuple, str]]:
    grid = make_grid(table, rows)
    for line in grid.lines:
        for column, entry in zip(grid.columns, line.entries, strict=True):
            if entry.paper is not None:
                standing = entry.verdict or "incomparable" if entry.status == "ok" else entry.status
                yield (table.paper, table.number, table.metric, line.head, column), standing


def table() -> str:
    """The counts, as Markdown."""
    counts = {paper: Counter() for paper in PAPERS}
    for place, standing in standings().items():
        counts[place[0]][standing] += 1
    lines = [(name, *(str(counts[paper][each]) for each in HEADS)) for paper, name in PAPERS.items()]
    return markdown_table(("paper", *HEADS.values()), lines) + "\n"


def main() -> int:
    """Writes the table; says whether it has changed."""
    page = RESULTS / "README.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = before + BEGIN + "\n" + table() + "\n" + END + after
    is_new = text != page.read_text()
    page.write_text(text)
    print(f"{page.name} {'has other numbers now' if is_new else 'is as it was'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
