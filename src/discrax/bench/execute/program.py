"""Which program made a row: a hash of its sources and of the versions it ran on.

A run in two parts is one run only if the same program made both. What counts is every source file of the package but
those that only show results, the user's files that a cell names, and the versions of the packages that compute.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from discrax.bench.plan.cell import Call, Cell

_PACKAGE = Path(__file__).parents[2]
_ONLY_SHOW = ("cli.py", "demo.py", "bench/commands.py", "bench/plan/printed.py", "bench/report/")
_VERSIONS = ("discrax", "jax", "jaxlib")


def program_of(cell: Cell) -> str:
    """The identity of the program that runs a cell now."""
    digest = hashlib.sha256(_of_package().encode())
    for path in sorted(_user_files(cell)):
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]


@cache  # what is imported does not change any more
def _of_package() -> str:
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(_ONLY_SHOW):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    for package, its_version in versions_of(_VERSIONS).items():
        digest.update(f"{package} {its_version}".encode())
    return digest.hexdigest()


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _user_files(cell: Cell) -> set[Path]:
    calls = (cell.target, cell.sampler, cell.adaptation, cell.measure, cell.init)
    places = (each.address.rpartition(":")[0] for each in calls if isinstance(each, Call))
    return {Path(place) for place in places if place.endswith(".py")}
