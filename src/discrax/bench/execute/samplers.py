"""Samplers that are put beside those of a suite: named on the command line, with settings, and swept over them.

    my_file.py:MyKernel                a class or function of yours that makes a kernel
    dmala(step_size=0.2)               one of `discrax samplers`, with a setting
    dmala(step_size=0.1,0.2,0.4)       three rows
    pas(balancing=sqrt,ratio)          two rows

Each is tuned as the suite's own are ("auto"), unless a setting is what tuning would turn: that stays as it was given.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from discrax.bench.execute.small_targets import small_target
from discrax.bench.plan.cell import Call, resolve
from discrax.core.kernel import Kernel
from discrax.core.space import Binary, Categorical, Ordinal, Spin
from discrax.samplers import get_sampler


@dataclass(frozen=True)
class Beside:
    """A sampler that is put beside those of a suite."""

    name: str
    sampler: Call
    is_tuned: bool = True

    @property
    def is_foreign(self) -> bool:
        """Whether it is none of the package's own, which its tests have proved."""
        return not self.sampler.address.startswith("discrax.")


def parse_samplers(text: str) -> list[Beside]:
    """The samplers that a text names: one, or one for each combination of the settings it sweeps over."""
    if isinstance(text, str) and text.strip().startswith(("cycle(", "mixture(")):
        return [Beside(get_sampler(text).name, Call(f"{__name__}:composed", (("name", text.strip()),)))]
    found = re.fullmatch(r"([^()]+?)\s*(?:\((.*)\))?", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"A sampler is 'file.py:Kernel', 'dmala' or 'dmala(step_size=0.1,0.2)', but got {text!r}.")
    address, sweep = _whole_address(found[1]), _sweep(text, found[2] or "")
    stem = found[1].rpartition(":")[2]
    made = []
    for values in product(*sweep.values()):
        settings = dict(zip(sweep, values, strict=True))
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        call = Call(address, tuple(settings.items()))
        kernel = _make_kernel(call)
        is_tuned = not any(name in settings for name in _knobs(kernel)) if settings else True
        made.append(Beside(f"{stem}({shown})" if shown else stem, call, is_tuned))
    return made


def composed(name: str) -> Kernel:
    """The kernel of a name such as "cycle(swendsen_wang,dmala)"."""
    return get_sampler(name).build()


def _whole_address(place: str) -> str:
    """The address of a sampler: with the whole path of its file, or that of a name in the registry."""
    where, separator, name = place.rpartition(":")
    if not separator:
        return f"discrax.samplers:{get_sampler(place).name}"
    return f"{Path(where).resolve()}:{name}" if where.endswith(".py") else place


def _sweep(text: str, inside: str) -> dict[str, list[Any]]:
    """Settings and the values that each takes: "a=1,2,b=3" is {"a": [1, 2], "b": [3]}."""
    found: dict[str, list[Any]] = {}
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name, separator, value = part.rpartition("=")
        if separator:
            found[name.strip()] = [parse_value(value)]
        elif found:
            found[list(found)[-1]].append(parse_value(part))
        else:
            raise ValueError(f"Settings of a sampler are name=value or name=value,value,..., but got {text!r}.")
    return found


def parse_value(text: str) -> Any:
    """A number, True, False or None; else the text itself."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()


def _make_kernel(call: Call) -> Kernel:
    made = resolve(call.address)
    if callable(made):
        try:
            made = call()
        except TypeError as error:
            how = "with these settings" if call.arguments else "without arguments"
            raise ValueError(f"{call.address} must make a kernel {how}, but: {error}.") from error
    if not isinstance(made, Kernel):
        raise ValueError(f"{call.address} makes a {type(made).__name__}, but a sampler is a discrax.Kernel.")
    return made


def _knobs(kernel: Kernel) -> Iterator[str]:
    """The names of what tuning may turn."""
    for space in (Binary(4), Spin(4), Ordinal(4, [0.0, 1.0, 2.0]), Categorical(4, 3)):
        if isinstance(space, kernel.spaces):
            with suppress(Exception):  # a kernel that needs more than a small target has
                yield from kernel.knobs(small_target(space))
