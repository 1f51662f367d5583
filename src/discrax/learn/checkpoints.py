"""The folder of a training run: checkpoints, curves and pictures of the chains.

config.json          what was trained on what, where the command line made the model
checkpoints/N.npz    the state after N updates; the last three are kept
curves.csv, .png     energy gap, acceptance, jump and gradient norm against updates
samples/N.png        a part of the chains after N updates

A checkpoint is one file, the arrays of the state in their order, and every file is there whole or not at all: whatever
dies, and wherever, the run goes on from the last one.
"""

import csv
import io
import json
import zipfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from discrax.core import random
from discrax.core.files import FolderLock, write_whole

State = TypeVar("State")
_KEPT = 3
_SHOWN = 100  # chains in a picture
_ABOUT = "about"


class TrainingFolder:
    """Writes and reads the folder of one run, which has no other writer for the time of the `with` block.

    What cannot be written is an `UnusableFile`.
    """

    def __init__(self, folder: Path, key: PRNGKeyArray, resume: bool):
        self.folder = folder
        self._key = np.asarray(jax.random.key_data(random.as_threefry(key)))
        self._resume = resume
        self._rows: list[dict[str, float]] = []

    def __enter__(self) -> "TrainingFolder":
        with ExitStack() as stack:
            stack.enter_context(FolderLock(self.folder))
            last = self.last_saved
            if last is not None and not self._resume:
                raise ValueError(
                    f"{self.folder} already holds a run of {last:,} updates; go on with it by `resume` (--resume), or "
                    "give another folder as `out` (--out)."
                )
            if last is None and self._resume:
                raise ValueError(f"There is no checkpoint to resume from in {self.folder}; leave out `resume`.")
            for folder in (self.folder, self.folder / "checkpoints", self.folder / "samples"):
                for path in folder.glob(".*.part"):  # what a process left of a file when it was killed
                    with suppress(OSError):
                        path.unlink()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()

    @property
    def last_saved(self) -> int | None:
        """The update of the last checkpoint."""
        return max(_saved(self.folder), default=None)

    def restored(self, state: Any) -> Any:
        """The state of the last checkpoint; `state` is one like it, from the same model, sampler and optimiser."""
        saved, about = read(self.folder)
        if about["key"] != self._key.tolist():
            raise ValueError(f"The run in {self.folder} was started with another key; resume it with the same one.")
        if state.kernel.capacity is not None:
            state = state._replace(kernel=state.kernel.with_capacity(about["capacity"]))
        update = about["update"]
        self._rows = [row for row in _read_curves(self.folder / "curves.csv") if row["update"] <= update]
        return filled(state, saved, self.folder)

    def curves(self) -> list[dict[str, float]]:
        """The rows of `curves.csv` up to the last checkpoint."""
        return list(self._rows)

    def save(self, state: Any, curves: list[dict[str, float]]) -> None:
        """Writes a checkpoint, the curves and a picture, unless this update has them."""
        update = int(state.update)
        if self.last_saved == update:
            return
        self._write_curves(curves)
        about = {"key": self._key.tolist(), "capacity": state.kernel.capacity, "update": update}
        write(self.folder, state, about)
        self._picture(state, update)

    def _write_curves(self, curves: list[dict[str, float]]) -> None:
        if not curves:
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, list(curves[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(curves)
        write_whole(self.folder / "curves.csv", text.getvalue())

    def _picture(self, state: Any, update: int) -> None:
        space = state.model.space
        if len(space.shape) == 2:
            from discrax.learn.pictures import image_grid

            last = update * _SHOWN % len(state.buffer)  # any will do; these change from picture to picture
            chains = np.roll(np.asarray(state.buffer), -last, axis=0)[:_SHOWN]
            image_grid(chains, self.folder / "samples" / f"{update:06d}.png", num_levels=space.num_levels)

    def finish(self) -> None:
        """Draws the curves."""
        rows = _read_curves(self.folder / "curves.csv")
        if rows:
            from discrax.learn.pictures import curves_picture

            columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
            curves_picture(columns, self.folder / "curves.png")


def _saved(folder: Path) -> dict[int, Path]:
    """The checkpoints there are, by their updates."""
    return {int(path.stem): path for path in (folder / "checkpoints").glob("*.npz") if path.stem.isdigit()}


def write(folder: Path, state: Any, about: dict[str, Any]) -> None:
    """Writes a checkpoint whole, or not at all."""
    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
    arrays: dict[str, Any] = {f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays[_ABOUT] = np.array(json.dumps(about))
    write_whole(folder / "checkpoints" / f"{about['update']}.npz", lambda file: np.savez(file, **arrays))
    found = _saved(folder)
    for update in sorted(found)[:-_KEPT]:
        with suppress(OSError):
            found[update].unlink()


def read(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of the last checkpoint, and what it says of itself."""
    found = _saved(folder)
    if not found:
        raise ValueError(f"There is no checkpoint in {folder}.")
    path = found[max(found)]
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = dict(file)
        return arrays, json.loads(str(arrays.pop(_ABOUT)))
    except (OSError, ValueError, TypeError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"The checkpoint {path} is damaged; delete it to go on from the one before.") from error


def filled(like: State, saved: dict[str, np.ndarray], folder: Path) -> State:
    """A tree like another with the arrays of a checkpoint."""
    arrays, static = eqx.partition(like, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    found = [saved[name] for name in sorted(saved)]
    if len(found) == len(leaves):  # numpy's files know no bfloat16 and the like, but keep their bytes
        found = [a.view(b.dtype) if a.dtype.kind == "V" else a for a, b in zip(found, leaves, strict=True)]
    expected = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if expected != [(leaf.shape, leaf.dtype) for leaf in found]:
        raise ValueError(
            f"The checkpoint in {folder} is of another model, sampler, optimiser or buffer size: it holds "
            f"{len(found)} arrays, and {len(leaves)} of certain shapes were expected; resume with the same settings."
        )
    return eqx.combine(jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in found]), static)


def _read_curves(path: Path) -> list[dict[str, float]]:
    if not path.exists():
        return []
    try:
        with path.open(newline="") as file:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"{path} is damaged: {error}; delete it to go on without the curves so far.") from error


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Writes how a model was trained."""
    write_whole(folder / "config.json", json.dumps(config, indent=2) + "\n")


def read_config(folder: Path) -> dict[str, Any]:
    """Reads how a model was trained."""
    path = folder / "config.json"
    if not path.exists():
        raise ValueError(f"{folder} is not the folder of a run: it has no config.json; `discrax train` makes one.")
    try:
        found = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} should hold the settings of a run, but holds a {type(found).__name__}.")
    return found
