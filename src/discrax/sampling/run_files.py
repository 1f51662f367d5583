"""The small files of a run in a folder: trees of arrays by their places, and what is said of them in JSON."""

import json
import zipfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from discrax.core.files import write_whole
from discrax.sampling.left_out import title_of
from discrax.sampling.phase import Done
from discrax.sampling.stored import CannotStore, describe_tree

_ABOUT = "about"


def _is_leaf(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree, on the host, by where they are in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, _is_leaf))
    return {
        jax.tree_util.keystr(path): np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for path, leaf in leaves
    }


def fill_leaves(tree: Any, saved: dict[str, np.ndarray], file: Path) -> Any:
    """A tree like another with arrays that were saved; those that were not stay."""
    arrays, static = eqx.partition(tree, _is_leaf)
    leaves, structure = jax.tree_util.tree_flatten_with_path(arrays)
    filled: list[Any] = []
    for path, leaf in leaves:
        values = saved.get(jax.tree_util.keystr(path))
        if values is None and not isinstance(leaf, jax.ShapeDtypeStruct):
            filled.append(leaf)
            continue
        if values is not None and _is_key(leaf):
            filled.append(jax.random.wrap_key_data(jnp.asarray(values), impl=jax.random.key_impl(leaf)))
            continue
        if values is not None and values.dtype.kind == "V":  # numpy's files know no bfloat16, but keep its bytes
            values = values.view(leaf.dtype)
        if values is None or (values.shape, values.dtype) != (leaf.shape, leaf.dtype):
            raise ValueError(
                f"{file} must hold the state of this run, but {jax.tree_util.keystr(path)[1:]} is missing or of "
                "another shape; was it begun with another version? Use another folder."
            )
        is_placed = isinstance(leaf, jax.Array) and leaf.committed
        filled.append(jax.device_put(values, leaf.sharding) if is_placed else jnp.asarray(values))
    return eqx.combine(jax.tree.unflatten(structure, filled), static)


def describe_or_name(value: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """JSON of a target or a kernel, whose arrays go to `arrays`; its name where it holds code of the user's."""
    found: dict[str, np.ndarray] = {}
    try:
        described = describe_tree(value, found, prefix)
    except CannotStore:
        return {"left_out": title_of(value)}
    arrays |= found
    return described


def describe_or_say(report: Any, arrays: dict[str, np.ndarray]) -> Any:
    """JSON of a report, or what it says where it is of a class of the user's."""
    try:
        return describe_tree(report, arrays, "report")
    except CannotStore:
        return str(report)


def write_npz(path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays and JSON as one file, which is whole or not there."""
    write_whole(path, lambda file: np.savez(file, **{_ABOUT: np.array(json.dumps(about))}, **arrays))  # ty: ignore[invalid-argument-type]


def read_npz(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `write_npz` wrote; a ValueError, in a sentence, for anything else."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = dict(file)
        return json.loads(str(arrays.pop(_ABOUT))), arrays
    except (OSError, ValueError, TypeError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} must be a file of a run, but it cannot be read as one: {error}.") from error


def read_phases(path: Path) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """What each phase that has begun says of itself, how far it is, and its arrays, those of the state last."""
    found, number = [], 0
    while (path / f"phase-{number}.npz").exists():
        about, arrays = read_npz(path / f"phase-{number}.npz")
        done: dict[str, Any] = Done()._asdict()
        if (path / f"state-{number}.npz").exists():
            done, saved = read_npz(path / f"state-{number}.npz")
            arrays |= saved
        found.append((about, done, arrays))
        number += 1
    return found
