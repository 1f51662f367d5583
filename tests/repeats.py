"""How often tests repeat what is more of the same: few times, or many with DISCRAX_TESTS_REPEATS=full."""

import os
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any


def repeats(few: Any, many: Any) -> Any:
    """`many` where all repetitions are asked for, else `few`."""
    return many if os.environ.get("DISCRAX_TESTS_REPEATS") == "full" else few


def cover(cases: Iterable[tuple[Hashable, ...]], times: int, first: Iterable[tuple[Hashable, ...]] = ()) -> list[tuple]:
    """Cases of a product in which every value of every column occurs `times` times, or as often as it does at all;
    `first` are among them. All cases where all repetitions are asked for.
    """
    cases, first = list(cases), list(first)
    if repeats(False, True):
        return cases
    seen: Counter = Counter()
    for case in first:
        seen.update(enumerate(case))
    kept = set(first)
    # Every seventh is looked at first, so that the last column does not change with the one before it alone.
    for case in [case for start in range(7) for case in cases[start::7]]:
        if case not in kept and any(seen[value] < times for value in enumerate(case)):
            kept.add(case)
            seen.update(enumerate(case))
    for case in [case for case in cases if case in kept and case not in first]:  # what later ones have made needless
        if all(seen[value] > times for value in enumerate(case)):
            kept.remove(case)
            seen.subtract(enumerate(case))
    return [case for case in cases if case in kept]
