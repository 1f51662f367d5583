"""Cells: what is measured, as plain values that can be hashed, sent to another machine and written down.

A cell names its target, sampler, tuning and measurement by *calls*: the address of a function and its arguments. Two
cells with the same content have the same id wherever and whenever they are made, which is how a run knows what it has
done.
"""

import hashlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from discrax.core import checks


@dataclass(frozen=True)
class Call:
    """A function by its address, "package.module:name" or "/path/to/file.py:name", with keyword arguments."""

    address: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *positional: Any) -> Any:
        return resolve(self.address)(*positional, **dict(self.arguments))

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.address.rpartition(':')[2]}({inside})"


def call(address: str, **arguments: Any) -> Call:
    """A call of the function at an address with keyword arguments, to be made later."""
    return Call(address, tuple(arguments.items()))


def resolve(address: str) -> Any:
    """The object at an address; a missing one is a sentence."""
    place, separator, name = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not separator:
        raise ValueError(f"An address is 'package.module:name' or 'file.py:name', but got {address!r}.")
    module: Any = load_file(Path(place)) if place.endswith(".py") else _module(place)
    for part in name.split("."):
        if not hasattr(module, part):
            raise ValueError(f"{place} has no {part!r}; check the name after the colon.")
        module = getattr(module, part)
    return module


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # something that the module itself lacks
            raise
        raise ValueError(f"There is no module {name!r}; check what stands before the colon.") from error
    except (ValueError, TypeError) as error:  # an empty name, or one that begins with a dot
        raise ValueError(f"A module is named like 'package.module', but got {name!r}.") from error


_USER = "discrax_user_"  # names of modules that are made of files


def load_file(path: Path) -> Any:
    """A Python file as a module, once a process. While it is read it finds the files beside it too."""
    path = path.resolve()
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    name = f"{_USER}{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _folder_on_path(path.parent):
                spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if isinstance(error, SyntaxError) and error.filename == str(path):
                raise ValueError(f"{path} is not Python: {error.msg} in line {error.lineno}.") from error
            raise
    return sys.modules[name]


@contextmanager
def _folder_on_path(folder: Path) -> Iterator[None]:
    """What is imported from there meanwhile is forgotten after: another folder may have a file of that name."""
    if str(folder) in sys.path:
        yield
        return
    before = set(sys.modules)
    sys.path.append(str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder) and not name.startswith(_USER):
                del sys.modules[name]


@dataclass(frozen=True)
class Budget:
    """Per chain: steps of warm-up, draws, and steps a draw."""

    num_chains: int
    num_warmup: int
    num_samples: int
    thinning: int = 1

    def __post_init__(self) -> None:
        for name, least in (("num_chains", 0), ("num_warmup", 0), ("num_samples", 0), ("thinning", 1)):
            checks.whole(name, getattr(self, name), least=least, most=2**62)

    def __str__(self) -> str:
        thinning = f" of {self.thinning} steps" if self.thinning > 1 else ""
        return f"{self.num_chains} chains, {self.num_warmup} steps of warm-up, {self.num_samples} draws{thinning}"

    @property
    def num_steps(self) -> int:
        """Steps of all chains, warm-up too."""
        return self.num_chains * (self.num_warmup + self.num_samples * self.thinning)


@dataclass(frozen=True)
class Cell:
    """One measurement. `labels` say where it stands in tables and figures."""

    labels: tuple[tuple[str, str], ...]
    target: Call
    sampler: Call
    budget: Budget
    seed: int = 0
    adaptation: Call | str | None = "auto"
    measure: Call = Call("discrax.bench.experiments.ess:mixing")
    init: Call | None = None  # of (target, seed, num_chains): where the chains begin; None: uniformly random
    is_timed: bool = False  # its seconds are compared: those of a step are measured apart, by itself

    @cached_property
    def id(self) -> str:
        """A hash of the settings."""
        return hashlib.sha256(self.settings.encode()).hexdigest()[:16]

    @cached_property
    def settings(self) -> str:
        """The whole cell as canonical JSON."""
        return json.dumps(_fields_of(self), sort_keys=True, default=_fields_of)

    @property
    def name(self) -> str:
        """The labels in one line."""
        return " ".join(value if name in _BARE else f"{name}={value}" for name, value in self.labels if value)

    @property
    def task(self) -> tuple[tuple[str, str], ...]:
        """The labels that say what is sampled; the others say how."""
        return tuple((name, value) for name, value in self.labels if name not in OF_SAMPLER)

    def label(self, name: str) -> str | None:
        """The value of a label; None where the cell has none of that name."""
        return dict(self.labels).get(name)

    def make_adapter(self) -> Any:
        """What tunes the sampler, as `sample` takes it."""
        return self.adaptation() if isinstance(self.adaptation, Call) else self.adaptation

    def make_init(self, target: Any) -> Any:
        """The first states of the chains; None for random ones."""
        return None if self.init is None else self.init(target, self.seed, self.budget.num_chains)


OF_SAMPLER = ("sampler", "family", "scaling", "weight_fn", "variant", "rate", "sigma", "alpha")  # how, not what
_BARE = ("task", "config", "sampler", "weight_fn")  # labels whose values speak for themselves


def _fields_of(part: Any) -> dict[str, Any]:
    """What `asdict` says of a cell or a part of it, but for the copies, which cost most of it."""
    return {each.name: getattr(part, each.name) for each in fields(part)}
