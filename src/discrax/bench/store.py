"""Rows: one number each, with all that is needed to trust it, in one Parquet file a cell.

A file is written under another name and renamed, so a cell is there whole or not at all, whatever dies and whoever else
writes. A directory is a run.
"""

import json
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from discrax.bench.cell import Cell

ROWS, ABOUT = "rows", "run.json"
_PACKAGES = ("discrax", "jax", "jaxlib", "equinox", "numpy", "scipy")


class Number(NamedTuple):
    """A measured number; `x` places it in a series."""

    metric: str
    value: float | None
    std: float | None = None
    x: float | None = None


class Timing(NamedTuple):
    seconds: float = 0.0
    warmup_seconds: float = 0.0
    compile_seconds: float = 0.0


@cache
def versions() -> str:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return json.dumps(found)


def rows_of(cell: Cell, numbers: Iterable[Number], timing: Timing, error: str | None = None) -> list[dict[str, Any]]:
    """The rows of a finished cell; one that failed has a single row with its error."""
    about = {
        "cell": cell.id,
        "name": cell.name,
        "labels": json.dumps(dict(cell.labels)),
        "settings": cell.settings,
        "seed": cell.seed,
        "status": "ok" if error is None else "failed",
        "error": error,
        **timing._asdict(),
        "device": jax.devices()[0].device_kind,
        "versions": versions(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    numbers = list(numbers) if error is None else [Number("failed", None)]
    return [about | number._asdict() for number in numbers]


def _schema():
    import pyarrow as pa

    text, real = pa.string(), pa.float64()
    fields = {"cell": text, "name": text, "labels": text, "settings": text, "seed": pa.int64(), "metric": text}
    fields |= {"x": real, "value": real, "std": real, "status": text, "error": text}
    fields |= {"seconds": real, "warmup_seconds": real, "compile_seconds": real}
    return pa.schema(fields | {"device": text, "versions": text, "finished": text})


def write_rows(run: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes the rows of one cell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = run / ROWS
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{rows[0]['cell']}.parquet"
    unfinished = folder / f".{final.name}.{os.getpid()}"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=_schema()), unfinished)
    unfinished.replace(final)


def finished(run: Path) -> dict[str, str]:
    """The status of each cell that has a file."""
    return {path.stem: status_of(path) for path in sorted((run / ROWS).glob("*.parquet"))}


def status_of(path: Path) -> str:
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=["status"])["status"][0].as_py()


def read_rows(run: Path) -> list[dict[str, Any]]:
    """All rows of a run, labels as dictionaries."""
    import pyarrow.parquet as pq

    rows = [row for path in sorted((Path(run) / ROWS).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    for row in rows:
        row["labels"] = json.loads(row["labels"])
    return rows


def write_about(run: Path, about: dict[str, Any]) -> None:
    run.mkdir(parents=True, exist_ok=True)
    unfinished = run / f".{ABOUT}.{os.getpid()}"
    unfinished.write_text(json.dumps(about, indent=1))
    unfinished.replace(run / ABOUT)


def read_about(run: Path) -> dict[str, Any]:
    path = Path(run) / ABOUT
    if not path.is_file():
        raise ValueError(f"{run} is not a run: it has no {ABOUT}; `discrax bench run SUITE` makes one.")
    return json.loads(path.read_text())
