"""Rows: one number each, with all that is needed to trust it, in one Parquet file a cell.

A cell's file is there whole or not at all, whatever dies and whoever else writes. A directory is a run; so is one
Parquet file with all its rows (`export`), which is small enough to be kept beside a page.
"""

import json
import platform
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import jax

from discrax.bench.execute.program import program_of, versions_of
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Number, Timing
from discrax.core.files import write_whole

ROWS, ABOUT = "rows", "run.json"
_PACKAGES = ("discrax", "jax", "jaxlib", "equinox", "numpy", "scipy")


@cache
def versions() -> str:
    """Of Python and the packages that compute, as JSON."""
    return json.dumps({"python": platform.python_version(), **versions_of(_PACKAGES)})


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
        "program": program_of(cell),
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
    return pa.schema(fields | {"device": text, "versions": text, "program": text, "batch": text, "finished": text})


def write_rows(run: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes the rows of one cell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list(rows), schema=_schema())
    write_whole(run / ROWS / f"{rows[0]['cell']}.parquet", lambda file: pq.write_table(table, file))


def remove_unfinished(run: Path) -> None:
    """Parts of files that a process left when it was killed; for the one who has the lock of the folder."""
    for folder in (run, run / ROWS):
        for path in folder.glob(".*.part"):
            with suppress(OSError):
                path.unlink()


class Standing(NamedTuple):
    """Of a cell that has a file."""

    status: str
    program: str | None  # None: of a time when rows did not say
    written: int  # when, in nanoseconds
    batch: str | None = None  # of the cells that ran as one program with it

    @property
    def is_failed(self) -> bool:
        """Whether the cell failed."""
        return self.status == "failed"


def read_standings(run: Path) -> dict[str, Standing]:
    """The cells that have a file. One that is damaged does not count: its cell is run again."""
    found = {path.stem: read_standing(path) for path in sorted((run / ROWS).glob("*.parquet"))}
    return {key: standing for key, standing in found.items() if standing is not None}


def read_standing(path: Path) -> Standing | None:
    """How the cell of a file stands; None where the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            wanted = [name for name in ("status", "program", "batch") if name in file.schema_arrow.names]
            rows = file.read(columns=wanted).to_pylist()
        written = path.stat().st_mtime_ns
    except (OSError, pa.ArrowException):
        return None
    if not rows or "status" not in rows[0]:
        return None
    return Standing(rows[0]["status"], rows[0].get("program"), written, rows[0].get("batch"))


def read_rows(run: str | Path) -> list[dict[str, Any]]:
    """All rows of a run, labels as dictionaries; a folder that is no run is a sentence."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    read_about(run)
    files = [Path(run)] if Path(run).is_file() else sorted((Path(run) / ROWS).glob("*.parquet"))
    rows: list[dict[str, Any]] = []
    for path in files:
        try:
            of_file = pq.ParquetFile(path).read().to_pylist()
            rows += [row | {"labels": json.loads(row["labels"])} for row in of_file]
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged; `discrax bench run` again makes its cell anew.") from error
    return rows


def calls_of(settings: str) -> str:
    """What a cell calls, out of its settings: addresses, and how its kernel is made."""
    found = json.loads(settings)
    parts = [found.get(name) for name in ("target", "adaptation", "measure", "init")]
    addresses = [part["address"] if isinstance(part, dict) else part for part in parts]
    return json.dumps([*addresses, found.get("sampler")])


def export(
    run: str | Path, out: str | Path, about: dict[str, Any] | None = None, cells: Container[str] | None = None
) -> Path:
    """Writes the rows of a run to one file: Parquet, which is read as a run, or CSV, for others to read.

    All of them, or those of `cells` (their ids), of which the run.json would be `about`.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    out, about = Path(out), about or read_about(run)
    rows = [
        row | {"labels": json.dumps(row["labels"])} for row in read_rows(run) if cells is None or row["cell"] in cells
    ]
    if not rows:
        raise ValueError(f"{run} has no row of {', '.join(about['suites'])}.")
    table = pa.Table.from_pylist(rows, schema=_schema())
    if out.suffix == ".csv":
        return write_whole(out, lambda file: pyarrow.csv.write_csv(table, file))
    if out.suffix != ".parquet":
        raise ValueError(f"Rows are exported to a .parquet or a .csv file, but got {out.name!r}.")
    table = table.replace_schema_metadata({ABOUT: json.dumps(about)})
    return write_whole(out, lambda file: pq.write_table(table, file, compression="zstd", compression_level=19))


def write_about(run: Path, about: dict[str, Any]) -> None:
    """Writes what a run is: its suites, its size, when it began."""
    write_whole(run / ABOUT, json.dumps(about, indent=1))


def read_about(run: str | Path) -> dict[str, Any]:
    """What a run is; a folder or file that is none is a sentence."""
    if not isinstance(run, str | PathLike):
        raise TypeError(f"A run is a folder, but got {run!r}.")
    run = Path(run)
    path = run / ABOUT
    try:
        is_folder = run.is_dir()
    except OSError as error:
        raise ValueError(f"{str(run)[:60]} cannot be a folder, but: {(error.strerror or '').lower()}.") from error
    if run.suffix == ".parquet" and run.is_file():
        path, read = run, _about_in
    elif not is_folder:
        what = "is a file, and the folder of a run was expected" if run.exists() else "does not exist"
        raise ValueError(f"{run} {what}; `discrax bench run SUITE` makes one.")
    elif not path.is_file():
        raise ValueError(f"{run} is not a run: it has no {ABOUT}; `discrax bench run SUITE` makes one.")
    else:
        read = Path.read_text
    try:
        about = json.loads(read(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    if not isinstance(about, dict) or "suites" not in about:
        raise ValueError(f"{path} does not describe a run; choose another folder, or delete it.")
    return about


def _about_in(path: Path) -> str:
    """The run.json that a Parquet file of `export` carries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except pa.ArrowException as error:
        raise ValueError(f"it is damaged ({error})") from error
    return metadata.get(ABOUT.encode(), b"{}").decode()
