"""The fields of a result as a file: NetCDF that xarray and ArviZ open, with all that is needed to have them again.

Draws and statistics are in the groups of ArviZ (`posterior`, `sample_stats`, and those of warm-up), as they were drawn
and with their weights. The group `discrax` has the rest: a description in JSON, and the arrays that it names. Objects
are described by their class and their fields, and only classes of this library are made again, without running any
code of the file's.
"""

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from discrax.core.closures import Captured
from discrax.core.extras import import_extra
from discrax.core.files import whole_file
from discrax.core.kernel import State
from discrax.sampling.left_out import LeftOut, LeftOutKernel, title_of

_FORMAT = 1
_ELSEWHERE = ("draws", "warmup_draws", "stats", "warmup_stats", "target", "kernel", "states")


class CannotStore(Exception):
    """Says why, in words that follow a colon."""


def write_fields(fields: Mapping[str, Any], path: str | Path) -> Path:
    """Writes the fields of a result; a file that is there is replaced when the new one is whole."""
    xarray = _xarray()
    arrays: dict[str, np.ndarray] = {}
    description, notes = _description(fields, arrays)
    groups = {
        "posterior": None if fields["draws"] is None else {"x": fields["draws"]},
        "sample_stats": fields["stats"],
        "warmup_posterior": None if fields["warmup_draws"] is None else {"x": fields["warmup_draws"]},
        "warmup_sample_stats": fields["warmup_stats"],
    }
    datasets = {
        group: xarray.Dataset({name: (_axes(array), np.asarray(array)) for name, array in values.items()})
        for group, values in groups.items()
        if values
    }
    named = {name: ([f"{name}_{axis}" for axis in range(array.ndim)], array) for name, array in arrays.items()}
    attributes = {"description": json.dumps(description), "notes": " ".join(notes)}
    tree = xarray.DataTree.from_dict(datasets | {"discrax": xarray.Dataset(named, attrs=attributes)})
    tree.attrs.update({"inference_library": "discrax", "sampler": title_of(fields["kernel"])})
    with whole_file(path) as partial:
        try:
            tree.to_netcdf(partial, engine="h5netcdf")
        except RuntimeError as error:  # what HDF5 says of a disk that is full
            raise OSError(str(error).splitlines()[0]) from error
    return Path(path)


def _description(fields: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], list[str]]:
    """JSON of what is not draws or statistics, and notes of what was left out; arrays go to `arrays`."""
    made: dict[str, Any] = {"format": _FORMAT, "space": describe_tree(fields["target"].space, arrays, "space")}
    notes: list[str] = []
    for name in ("target", "kernel"):
        found: dict[str, np.ndarray] = {}
        try:
            made[name] = describe_tree(fields[name], found, name)
            arrays |= found
        except CannotStore as why:
            made[name] = {"left_out": title_of(fields[name])}
            notes.append(f"The {name} was left out: {why}.")
    rest = {name: value for name, value in fields.items() if name not in _ELSEWHERE}
    try:
        made["rest"] = {name: describe_tree(value, arrays, name) for name, value in rest.items()}
    except CannotStore as why:
        raise ValueError(
            f"Only arrays in lists, tuples and dictionaries can be stored, but of what was kept {why}."
        ) from why
    made["states"] = describe_tree([fields["states"].x, fields["states"].log_prob], arrays, "states")
    return made, notes


def read_fields(path: str | Path) -> dict[str, Any]:
    """What `write_fields` wrote. What could not be stored is named in its place."""
    xarray, path = _xarray(), Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"A result must be a file, but there is none at {path}.")
    try:
        with xarray.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
        description = json.loads(tree["discrax"].attrs["description"])
    except (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{path} must be a file that Result.save wrote, but it cannot be read as one: {error}."
        ) from error
    if description.get("format") != _FORMAT:
        raise ValueError(f"{path} must have format {_FORMAT}, but has {description.get('format')}.")
    arrays = {str(name): np.asarray(values) for name, values in tree["discrax"].data_vars.items()}

    def group(name: str) -> dict[str, np.ndarray]:
        return {str(key): np.asarray(values) for key, values in tree[name].data_vars.items()} if name in tree else {}

    space = rebuild_tree(description["space"], arrays)
    target, kernel = (rebuild_tree(description[name], arrays) for name in ("target", "kernel"))
    x, log_prob = rebuild_tree(description["states"], arrays)
    rest = {name: rebuild_tree(value, arrays) for name, value in description["rest"].items()}
    return dict(
        target=LeftOut(space, description["target"]["left_out"]) if target is None else target,
        kernel=LeftOutKernel(description["kernel"]["left_out"]) if kernel is None else kernel,
        draws=group("posterior").get("x"),
        warmup_draws=group("warmup_posterior").get("x"),
        stats=group("sample_stats"),
        warmup_stats=group("warmup_sample_stats"),
        states=State(x, log_prob, None),
        **rest,
    )


def _xarray() -> Any:
    import_extra("h5netcdf", "Results are stored by xarray and", "arviz")
    return import_extra("xarray", "Results are stored by h5netcdf and", "arviz")


def _axes(array: np.ndarray) -> tuple[str, ...]:
    return ("chain", "draw", *(f"axis_{i}" for i in range(np.ndim(array) - 2)))


def describe_tree(value: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """JSON of a tree, whose arrays go to `arrays`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            raise CannotStore("it holds a random key")
        name = f"{prefix}_{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"array": name, "jax": isinstance(value, jax.Array)}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: describe_tree(part, arrays, prefix) for key, part in value.items()}}
    if isinstance(value, tuple | list):
        parts = [describe_tree(part, arrays, prefix) for part in value]
        if hasattr(value, "_fields") and type(value).__module__.startswith("discrax."):
            return {"named": f"{type(value).__module__}:{type(value).__qualname__}", "parts": parts}
        return {"list" if isinstance(value, list) else "tuple": parts}
    kind = type(value) if isinstance(value, eqx.Module) else value
    if isinstance(value, Captured) or not callable(kind):
        raise CannotStore(
            "it holds a function" if isinstance(value, Captured) else f"it holds a {type(value).__name__}"
        )
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__qualname__", "<unnamed>")
    if not module.startswith("discrax.") or "<" in name:
        raise CannotStore(f"it holds {name.split('.')[-1]}, which is code of yours")
    if kind is value:
        return {"function": f"{module}:{name}"}
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    described = {name: describe_tree(part, arrays, prefix) for name, part in fields.items()}
    return {"class": f"{module}:{name}", "fields": described}


def rebuild_tree(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `describe_tree` described; None for what was left out."""
    if not isinstance(value, dict) or "left_out" in value:
        return None if isinstance(value, dict) else value
    if "array" in value:
        array = arrays[value["array"]]
        return jnp.asarray(array) if value["jax"] else array
    if "dict" in value:
        return {key: rebuild_tree(part, arrays) for key, part in value["dict"].items()}
    for kind in (list, tuple):
        if kind.__name__ in value:
            return kind(rebuild_tree(part, arrays) for part in value[kind.__name__])
    if "named" in value:
        return _ours(value["named"])(*(rebuild_tree(part, arrays) for part in value["parts"]))
    if "function" in value:
        return _ours(value["function"])
    found = _ours(value["class"])
    if not (isinstance(found, type) and issubclass(found, eqx.Module)):
        raise ValueError(f"A stored object must be of a class of discrax, but got {value['class']}.")
    made = object.__new__(found)
    for field, part in value["fields"].items():
        object.__setattr__(made, field, rebuild_tree(part, arrays))
    return made


def _ours(place: str) -> Any:
    """A class or a function of this library by its name; nothing else is looked up."""
    module, _, name = place.partition(":")
    if not module.startswith("discrax."):
        raise ValueError(f"A stored object must come from discrax, but got {place}.")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise ValueError(f"{place} must be known to this version of discrax, but it is not.") from None
    return found
