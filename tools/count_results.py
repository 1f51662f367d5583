"""Counts, paper by paper, how the committed rows stand to the printed tables: `python tools/count_results.py`.

It writes the table between two marks of docs/results/README.md. A place of a printed table counts once: where it is
compared in two ways (whole chains, and the part of them that print fits), or in two runs, by the better of them.
"""

import sys
from collections import Counter
from pathlib import Path

from discrax.bench.execute import store
from discrax.bench.plan.rows import add_facts
from discrax.bench.plan.suite import Size, Table, shipped_suites
from discrax.bench.report.grid import make_grid, markdown_table

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
    "unexplained": "outside, no cause",
    "no error": "no error known",
    "too short": "chains too short",
    "failed": "failed",
    "missing": "not run",
}
ORDER = list(HEADS)


def standings() -> dict[tuple, str]:
    """How each place of a printed table stands, by paper, number, metric, line and column."""
    rows = add_facts([row for file in sorted((RESULTS / "rows").glob("*.parquet")) for row in store.read_rows(file)])
    found: dict[tuple, str] = {}
    for suite in shipped_suites().values():
        compared = [
            each for each in suite.exhibits if isinstance(each, Table) and each.compares and each.paper in PAPERS
        ]
        if not compared:  # some have tens of thousands of cells
            continue
        ids = {cell.id for size in (Size.DEFAULT, Size.PAPER) for cell in suite.cells(size)}
        mine = [row for row in rows if row["cell"] in ids]
        for table in compared:
            grid = make_grid(table, mine)
            for line in grid.lines:
                for column, entry in zip(grid.columns, line.entries, strict=True):
                    if entry.paper is not None:
                        place = (table.paper, table.number, table.metric, line.head, column)
                        standing = entry.verdict if entry.status == "ok" else entry.status
                        found[place] = min(standing, found.get(place, "missing"), key=ORDER.index)
    return found


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
