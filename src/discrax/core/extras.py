"""Packages that not every user has: imported where they are needed, with a sentence where they are missing."""

from importlib import import_module
from typing import Any


def import_extra(module: str, what: str, extra: str) -> Any:
    """A module of an extra of this package; `what` begins the sentence, such as "Pictures need"."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(f'{what} {package}, which is missing: pip install "discrax[{extra}]".') from error
