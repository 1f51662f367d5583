"""How commands speak: what was found goes to standard output, progress and errors to the error stream.

Every command has the options of `Voice`, and these mean the same everywhere:

    --seed N     of all random numbers of the command
    --out PATH   where to write what is made; of commands that make one file of text, "-" is standard output
    --json       what was found as JSON, in place of tables and sentences; `--out -` is the same
    --quiet      no progress, no tables, no sentences: errors, and what --json asks for
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_silent = False  # of this process: whether progress is not shown


@dataclass(frozen=True)
class Voice:
    """What is printed."""

    json: bool = False  # Print what was found as JSON, in place of tables and sentences.
    quiet: bool = False  # Print no progress, no tables and no sentences.

    @property
    def speaks(self) -> bool:
        """Whether tables and sentences are printed."""
        return not (self.json or self.quiet)

    def say(self, text: object) -> None:
        """Prints a sentence."""
        if self.speaks:
            print(text, flush=True)

    def show(self, headings: Sequence[str], rows: Sequence[Sequence[str]], **looks: Any) -> None:
        """Prints a table; `looks` are those of rich's."""
        if self.speaks:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            table = Table(*headings, **looks)
            for row in rows:
                table.add_row(*map(Text, row))
            Console().print(table)

    def give(self, found: Any) -> None:
        """Prints what was found, if it is asked for as JSON."""
        if self.json:
            print(as_json(found), flush=True)


def is_stdout(out: Path | None) -> bool:
    """Whether --out asks for standard output."""
    return out is not None and str(out) == "-"


def as_json(found: Any) -> str:
    """As JSON that every reader takes: arrays are lists, and what is no number is null."""
    return json.dumps(_plain(found), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # of numpy and jax
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


@contextmanager
def silenced(is_wanted: bool) -> Iterator[None]:
    """No progress is shown meanwhile, unless a call asks for it."""
    global _silent
    before, _silent = _silent, _silent or is_wanted
    try:
        yield
    finally:
        _silent = before


def is_silent() -> bool:
    """Whether progress that nobody asked for is kept back."""
    return _silent
