"""Which program made a row: a hash of the sources that its cell ran, and of the versions they ran on.

A run in two parts is one run only if the same program made both. The program of a cell is written "engine-own":

    engine   what all cells run: the sampling loop and all that it uses, and the versions of the packages that compute
    own      the cell's kernel, target, adapter, first states and measure, with all that these use

so editing a kernel changes the program of its cells and of no others, and editing the page changes none. What a kernel
uses is followed from the classes that it is made of, not through the registry of samplers.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from discrax.bench.execute import sources
from discrax.bench.plan.cell import Call, Cell

_NOTHING_COMPUTED = (  # what only plans, keeps or shows
    "__init__.py", "cli.py", "demo.py", "bench/__init__.py", "bench/commands.py", "bench/report/",
    "bench/plan/cell.py", "bench/plan/suite.py", "bench/plan/rows.py", "bench/plan/printed.py",
    "bench/execute/program.py", "bench/execute/sources.py", "bench/execute/store.py",
    "samplers/__init__.py", "samplers/registry.py",
)  # fmt: skip
_NO_KERNEL = (*_NOTHING_COMPUTED, "samplers/")  # a cell's kernel is followed by itself
_VERSIONS = ("discrax", "jax", "jaxlib")


def program_of(cell: Cell) -> str:
    """The identity of the program that runs a cell now."""
    kernel = sources.digest(_kernel_files(cell.sampler), _NOTHING_COMPUTED)
    others = [each for each in (cell.target, cell.adaptation, cell.measure, cell.init) if isinstance(each, Call)]
    rest = sources.digest({path for each in others for path in _files_at(each.address)}, _NO_KERNEL)
    return f"{_of_engine()[:12]}-{hashlib.sha256((kernel + rest).encode()).hexdigest()[:12]}"


@cache
def _of_engine() -> str:
    made = hashlib.sha256(sources.digest([Path(__file__).with_name("cells.py")], _NO_KERNEL).encode())
    for package, its_version in versions_of(_VERSIONS).items():
        made.update(f"{package} {its_version}".encode())
    return made.hexdigest()


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _files_at(address: str) -> list[Path]:
    place, _, name = address.rpartition(":")
    path = Path(place) if place.endswith(".py") else sources.definition(place, tuple(name.split(".")))
    return [] if path is None else [path]


@lru_cache(maxsize=1024)
def _kernel_files(sampler: Call) -> frozenset[Path]:
    """The file of the function that makes a kernel, and those of the classes that the kernel is made of."""
    files = set(_files_at(sampler.address))
    try:
        made = sampler()
    except Exception:  # its cells will say it
        return frozenset(files)
    if isinstance(made, str):  # the search chooses for itself
        return frozenset(files | set((sources.PACKAGE / "samplers").glob("*.py")))
    for each in {cls for part in _parts(made) for cls in type(part).__mro__}:
        path = sources.file_of(each.__module__)
        if path is not None:
            files.add(path)
    return frozenset(files)


def _parts(made: Any) -> Iterator[Any]:
    """An object and the dataclasses that it holds."""
    if isinstance(made, tuple | list):
        for each in made:
            yield from _parts(each)
    elif is_dataclass(made) and not isinstance(made, type):
        yield made
        for field in fields(made):
            yield from _parts(getattr(made, field.name, None))
