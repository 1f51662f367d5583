"""beartype as the tests use it: an int is also a float, as in Python's own annotations.

A function's check is made when the function is first called: most are never called by one worker's tests, and to make
them all took four of the six seconds before the first test.
"""

import functools
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable) -> Callable:
    """The function with its arguments and what it returns checked against its annotations."""
    for name, hint in function.__annotations__.items():
        if "typing.Self" in str(hint):  # which class that is, nobody tells beartype
            function.__annotations__[name] = Any
    made: list[Callable] = []

    @functools.wraps(function)
    def checked(*arguments, **keywords):
        if not made:
            made.append(_checked(function))
        return made[0](*arguments, **keywords)

    return checked
