"""What a run is asked for, in few words, so that a folder knows whether the same is asked again."""

import dataclasses
import hashlib
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from discrax.core import random
from discrax.core.closures import Captured
from discrax.core.devices import CHAINS, SITES, Devices
from discrax.core.target import Target, bare, embedding_of
from discrax.sampling.plan import Plan


def fingerprint(
    key: PRNGKeyArray, target: Target, init: Any, plan: Plan, num_chains: int, parts: Mapping[str, Any]
) -> dict[str, str]:
    """A word for each part of a run: its value where it is short, else a hash."""
    keep = plan.keep
    words = {
        "target": digest_of_target(target),
        "key": digest(jax.random.key_data(random.as_threefry(key))),
        "init": digest(None if init is None else np.asarray(init)),
        "keep": keep if isinstance(keep, str) else digest(_code_of(lambda x: keep(x), plan.draw_of(target))),
        "num_chains": str(num_chains),
        "precision": str(jnp.result_type(float)),
    }
    words |= {name: str(getattr(plan, name)) for name in ("num_warmup", "thinning", "keep_warmup")}
    return words | {name: digest(part) for name, part in parts.items()}


def digest_of_target(target: Target) -> str:
    """By its arrays and by the code of its law."""
    arrays, static = eqx.partition(target, eqx.is_array)
    law = _code_of(lambda arrays, e: bare(eqx.combine(arrays, static)).log_prob(e), arrays, embedding_of(target.space))
    return digest((target, law))


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What is not the same, in words."""
    said = []
    for name, now in here.items():
        was = there.get(name, "unknown")
        is_shown = max(len(was), len(now)) < _LENGTH
        said += [f"{name} {was} instead of {now}" if is_shown else f"another {name}"] if was != now else []
    return said


def surroundings(devices: Devices | None = None) -> dict[str, str]:
    """What may change the last bit of a draw beside what was asked for."""
    device = jax.devices()[0] if devices is None else devices.mesh.devices.flat[0]
    versions = {name: import_module(name).__version__ for name in ("discrax", "jax", "jaxlib")}
    counts = {} if devices is None else devices.mesh.shape
    spread = {f"devices for {axis}": str(counts.get(axis, 1)) for axis in (CHAINS, SITES)}
    return versions | {"device": f"{device.platform} ({device.device_kind})"} | spread


_LENGTH = 32  # hexadecimal digits


def digest(value: Any) -> str:
    """A word for a tree of arrays, numbers, functions and modules."""
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()[:_LENGTH]


def _feed(into: Any, value: Any) -> None:
    """Whatever tells two values apart in every process: no addresses, no order of sets."""
    into.update(f"|{type(value).__module__}.{type(value).__qualname__}:".encode())
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        array = np.ascontiguousarray(np.asarray(value))
        into.update(f"{array.dtype}{array.shape}".encode())
        into.update(array.reshape(-1).view(np.uint8).data)
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        into.update(repr(value).encode())
    elif isinstance(value, Captured):  # its code is in that of whoever calls it
        _feed(into, value.arrays)
    elif isinstance(value, dict):
        for name in value:
            _feed(into, (str(name), value[name]))
    elif isinstance(value, tuple | list):
        for part in value:
            _feed(into, part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        into.update(_source_of(type(value)).encode())
        for field in dataclasses.fields(value):
            _feed(into, (field.name, getattr(value, field.name)))
    elif callable(value):
        into.update(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".encode())
        into.update(_source_of(value).encode())


def _source_of(thing: Any) -> str:
    """Of classes and functions of the user; ours are told by the version."""
    if (getattr(thing, "__module__", "") or "").partition(".")[0] in ("discrax", "jax", "equinox", "numpy"):
        return ""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def _code_of(function: Callable, *examples: Any) -> str:
    """The lowered text of a function, which says all that it computes; "" where it cannot be traced."""
    try:
        return jax.jit(function).lower(*examples).as_text()
    except Exception:
        return ""
