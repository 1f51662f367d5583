"""Kinds of hostile calls: a callable or a command, one of its arguments, and a class of hostility."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from hypothesis import strategies as st

from .table import COMMANDS, PYTHON
from .values import COMMAND_KINDS, KINDS, NONE, Class


@dataclass(frozen=True)
class Argument:
    name: str
    kind: str
    honest: str
    is_positional: bool


@dataclass(frozen=True)
class Honest:
    """A callable or a command with arguments that it takes."""

    function: str
    arguments: tuple[Argument, ...]
    around: str | None = None
    accepts: frozenset[tuple[str, str]] = frozenset()
    is_command: bool = False

    @property
    def is_accepted(self) -> bool:
        """Whether it ends in a result, and soon: some need a file that cannot be made here, and the demo is long."""
        return self.function != "demo" and not any("missing" in argument.honest for argument in self.arguments)

    def source(self, **hostile: str) -> str:
        """The call as source text, with some arguments replaced."""
        if self.is_command:
            return self._command(hostile)
        given = []
        for argument in self.arguments:
            value = hostile.get(argument.name, argument.honest)
            given.append(value if argument.is_positional else f"{argument.name}={value}")
        call = f"{self.function}({', '.join(given)})"
        return call if self.around is None else f"{self.around}({call})"

    def _command(self, hostile: dict[str, str]) -> str:
        words = self.function.split()
        for argument in self.arguments:
            value = hostile.get(argument.name, argument.honest)
            values = [value] if argument.name in hostile else value.split("^")
            if argument.honest.count("^") and argument.name in hostile:
                values = [value, argument.honest.split("^")[1]]  # one of two numbers is hostile
            if argument.kind == "sentence":
                values = [value.replace("^", " ")]
            words += values if argument.is_positional else [argument.name, *values]
        return f"command([{', '.join(_word(word) for word in words)}])"


def _word(word: str) -> str:
    """A word of a command; `{name}` in it is a file of the scene."""
    parts = [part for part in re.split(r"(\{\w+\})", word) if part]
    if not parts:
        return "''"
    return "+".join(part[1:-1] if re.fullmatch(r"\{\w+\}", part) else repr(part) for part in parts)


@dataclass(frozen=True)
class Kind:
    honest: Honest
    argument: Argument
    hostility: Class

    @cached_property
    def name(self) -> str:
        return f"{self.honest.function} {self.argument.name}: {self.hostility.name}"

    @property
    def is_refused(self) -> bool:
        return self.hostility.refused and (self.argument.name, self.hostility.name) not in self.honest.accepts

    def value(self, random: Random) -> str:
        return self.hostility.values(random).replace("{honest}", self.argument.honest)


@dataclass(frozen=True)
class HostileCall:
    """What is run: `source` is evaluated in the scene."""

    kinds: tuple[Kind, ...]
    source: str

    @property
    def is_refused(self) -> bool:
        return any(kind.is_refused for kind in self.kinds)


_ARGUMENT = re.compile(r"(?P<name>[\w-]+)(?P<positional>!?):(?P<kind>\w+)(?P<optional>\??)=(?P<honest>\S+)")


def _parse(line: str, is_command: bool) -> Honest:
    line, _, accepted = line.partition(" -- ")
    words = line.split()
    function = [word for word in words if _ARGUMENT.fullmatch(word) is None]
    arguments, accepts = [], set()
    for word in words:
        if (found := _ARGUMENT.fullmatch(word)) is not None:
            name = found["name"]
            arguments.append(Argument(name, found["kind"], found["honest"], bool(found["positional"])))
            if found["optional"]:
                accepts.add((name, NONE.name))
    for each in accepted.split():
        name, _, hostility = each.partition("/")
        accepts.add((name, hostility.replace("-", " ")))
    around, colon, name = function[0].partition(":") if not is_command else ("", "", "")
    called = " ".join(function) if is_command else name if colon else function[0]
    return Honest(called, tuple(arguments), around if colon else None, frozenset(accepts), is_command)


@lru_cache
def honest_calls() -> tuple[Honest, ...]:
    return tuple(
        _parse(line, is_command)
        for table, is_command in ((PYTHON, False), (COMMANDS, True))
        for line in table.replace("\n    ", " ").splitlines()
        if line
    )


@lru_cache
def kinds() -> tuple[Kind, ...]:
    """Every class of hostility for every argument of every honest call."""
    return tuple(
        Kind(honest, argument, hostility)
        for honest in honest_calls()
        for argument in honest.arguments
        for hostility in (COMMAND_KINDS if honest.is_command else KINDS)[argument.kind]
    )


@st.composite
def hostile_calls(draw, among: tuple[Kind, ...]) -> HostileCall:
    """A call of one of these kinds, all equally likely; one in ten has a second hostile argument."""
    random = draw(st.randoms(use_true_random=True))
    kind = random.choice(among)
    chosen = [kind]
    others = [other for other in kinds() if other.honest == kind.honest and other.argument != kind.argument]
    if others and random.random() < 0.1:
        chosen.append(random.choice(others))
    hostile = {each.argument.name: each.value(random) for each in chosen}
    return HostileCall(tuple(chosen), kind.honest.source(**hostile))
