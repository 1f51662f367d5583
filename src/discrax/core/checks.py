"""Numbers from users, checked: what is not a number of the kind that was asked for ends in a sentence."""

import functools
import inspect
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

_LARGEST_WHOLE = 2**62  # whatever a whole number counts, more than this is a mistake


def real_array(name: str, value: Any) -> Float[np.ndarray, "..."]:
    """Finite real numbers in double precision, none of which overflows in the precision that is used."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{name} must be numbers that are known when the target is built, but got a traced array; build it "
            "outside of jit and change its leaves inside, with equinox.tree_at."
        )
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and not _are_numbers(array)):
            raise TypeError
        array = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be numbers that fit a float, but one of them is too large.") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be real numbers, but got {describe(value)}.") from None
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(f"{name} must be finite, but holds {array[~finite].reshape(-1)[0]}.")
    largest = float(jnp.finfo(jnp.result_type(float)).max)
    if array.size and np.abs(array).max() > largest:
        raise ValueError(
            f"{name} must fit {jnp.result_type(float)}, but holds {array.reshape(-1)[np.abs(array).argmax()]}."
        )
    return array


def as_array(name: str, value: Any) -> np.ndarray:
    """Whatever numpy makes of it, if it does."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array, but got {describe(value)}.") from None


def _are_numbers(objects: np.ndarray) -> bool:
    """Python's integers of any size are objects to numpy, and so is everything else."""
    return bool(objects.size) and all(isinstance(value, int | float | np.number) for value in objects.reshape(-1))


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """One finite real number, strictly or not between bounds."""
    array = real_array(name, value)
    if array.shape != ():
        raise TypeError(f"{name} must be one number, but got {describe(value)}.")
    found = float(array)
    bounds = [
        (above, lambda bound: found > bound, "greater than"),
        (least, lambda bound: found >= bound, "at least"),
        (below, lambda bound: found < bound, "less than"),
        (most, lambda bound: found <= bound, "at most"),
    ]
    asked = [(bound, holds, words) for bound, holds, words in bounds if bound is not None]
    if not all(holds(bound) for bound, holds, _ in asked):
        wanted = " and ".join(f"{words} {bound:g}" for bound, _, words in asked)
        raise ValueError(f"{name} must be {wanted}, but got {value}.")
    return found


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """One whole number between bounds, and of at most 62 bits; 3.0 is not one, and True neither."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, but got {describe(value)}.")
    if most is None and value > _LARGEST_WHOLE:
        most = _LARGEST_WHOLE
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, but got {_short(value)}.")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, but got {_short(value)}.")
    return int(value)


def leaf_number(name: str, value: Any, **bounds: float | None) -> Float[Array, ""]:
    """One number as a leaf: checked where it is known, and of the right shape where it is traced."""
    if isinstance(value, Tracer):
        if value.shape != ():
            raise TypeError(f"{name} must be one number, but got an array of shape {value.shape}.")
        return value.astype(jnp.result_type(float))
    return jnp.asarray(number(name, value, **bounds), jnp.result_type(float))


def describe(value: Any) -> str:
    """What came, in a few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray | jax.Array) and value.ndim:
        return f"an array of {value.dtype} of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return _short(value)
    if isinstance(value, list | tuple) and len(value) < 20 and len(repr(value)) <= 60:
        return repr(value)
    return type(value).__name__


def in_words(error: Exception) -> str:
    """What somebody else's error says, in one line that ends like a sentence."""
    said = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return f"{type(error).__name__}: {said}." if said else f"{type(error).__name__}."


def _short(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:  # its digits are too many
        return f"about {'-' if value < 0 else ''}10^{int(math.log10(abs(value)))}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def checked_arguments(function: Callable) -> Callable:
    """Decorates what users call: arguments annotated as numbers, names, paths or classes of ours are of that kind.

    Whole numbers are counts or seeds, and others finite; what else they must be, the function says.
    """
    signature = inspect.signature(function)
    checks = {name: check for name, it in signature.parameters.items() if (check := _check_of(it.annotation))}

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        try:
            given = signature.bind(*arguments, **named).arguments
        except TypeError:  # too few, too many, or an unknown name: Python's own words are good
            return function(*arguments, **named)
        for name, value in given.items():
            if name in checks:
                checks[name](name, value)
        return function(*arguments, **named)

    return wrapped


def _check_of(annotation: Any) -> Callable[[str, Any], Any] | None:
    if isinstance(annotation, type) and annotation.__module__.startswith("discrax."):
        return functools.partial(_instance, annotation)
    return _CHECKS.get(annotation)


def _instance(kind: type, name: str, value: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, but got {describe(value)}.")


def path(name: str, value: Any) -> None:
    """Raises a TypeError if this is no path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, but got {describe(value)}.")


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a name, but got {describe(value)}.")


def yes_or_no(name: str, value: Any) -> None:
    """Raises a TypeError if this is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, but got {describe(value)}.")


def _pair(name: str, value: Any) -> None:
    if real_array(name, value).shape != (2,):
        raise TypeError(f"{name} must be two numbers, but got {describe(value)}.")


def _or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


def _number(name: str, value: Any) -> None:
    if not isinstance(value, Tracer):
        number(name, value)


def _count(name: str, value: Any) -> None:
    whole(name, value, least=0, most=2**62 if name == "seed" else 10**9)


_CHECKS: dict[Any, Callable[[str, Any], Any]] = {
    int: _count,
    float: _number,
    str: _text,
    bool: yes_or_no,
    tuple[float, float]: _pair,
    str | Path: path,
    bool | None: _or_none(yes_or_no),
    int | None: _or_none(_count),
    float | None: _or_none(_number),
}
