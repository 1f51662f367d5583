"""Terms by name: a dict `{(i, j): w}` of pairs, `{i: w}` of single names, or both, names of any hashable kind.

A tuple of two is a pair, whatever it holds. A name that is such a tuple itself stands in a pair with itself, as in
dimod: `{((0, 1), (0, 1)): w}`. `{(): w}` is a constant.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from discrax.core.checks import describe, real_array


class Terms(NamedTuple):
    """Terms of variables 0..n-1, as they were given: nothing is added up."""

    names: tuple[Hashable, ...] | None  # of the variables; None where they are 0..n-1
    num_names: int
    sites: Int[np.ndarray, " singles"]  # of the single names
    linear: Float[np.ndarray, " singles"]
    edges: Int[np.ndarray, "m 2"]  # loops and both directions as they come
    weights: Float[np.ndarray, " m"]
    constant: float


def read_terms(what: str, terms: Mapping[Any, Any], names: Sequence[Hashable] | None = None) -> Terms:
    """The terms of a dict; `what` they are of is for the sentences.

    Whole numbers are put in order, other names come as they appear, and `names` puts them in an order of its own, in
    which there may be names without a term.
    """
    keys = [key if isinstance(key, tuple) else (key,) for key in terms]
    return terms_of(what, keys, list(terms.values()), names)


def terms_of(what: str, keys: Sequence[tuple], values: Sequence[Any], names: Sequence[Hashable] | None) -> Terms:
    """The terms whose keys are tuples of at most two names."""
    weights = real_array(f"The terms of {what}", values) if len(values) else np.zeros(0)
    if weights.ndim != 1:
        raise ValueError(f"The terms of {what} must be one number each, but got arrays of shape {weights.shape[1:]}.")
    sizes = np.fromiter(map(len, keys), np.int64, len(keys))
    if (sizes > 2).any():
        key = keys[int(np.argmax(sizes > 2))]
        raise ValueError(
            f"The terms of {what} are of one name or of a pair of them, but one is of {len(key)}, {describe(key)}; a "
            "name that is a tuple stands in a pair with itself."
        )
    mentioned = dict.fromkeys(name for key in keys for name in key)
    order = _order(mentioned) if names is None else tuple(names)
    place = {name: i for i, name in enumerate(order)}
    if len(place) < len(order):
        raise ValueError(f"The names of {what} must differ, but {len(order) - len(place)} come twice.")
    for name in mentioned:
        if name not in place:
            raise ValueError(f"The terms of {what} must be of its {len(order)} names, but one is of {describe(name)}.")
    is_pair, is_single = sizes == 2, sizes == 1
    singles = _places(place, (key for key in keys if len(key) == 1))
    pairs = _places(place, (key for key in keys if len(key) == 2)).reshape(-1, 2)
    has_numbers = names is None and all(map(_is_whole, order)) and order == tuple(range(len(order)))
    return Terms(
        None if has_numbers else order,
        len(order),
        singles,
        weights[is_single],
        pairs,
        weights[is_pair],
        float(weights[sizes == 0].sum()),
    )


def _places(place: Mapping[Hashable, int], keys: Iterable[tuple]) -> Int[np.ndarray, " places"]:
    return np.fromiter((place[name] for key in keys for name in key), np.int64)


def _order(names: Iterable[Hashable]) -> tuple[Hashable, ...]:
    names = tuple(names)
    return tuple(sorted(names)) if all(map(_is_whole, names)) else names  # ty: ignore[invalid-argument-type]


def _is_whole(name: Hashable) -> bool:
    return isinstance(name, int | np.integer) and not isinstance(name, bool)
