"""The folder of a training run: checkpoints (orbax), curves and pictures of the chains.

config.json          what was trained on what, where the command line made the model
checkpoints/N/       the state after N updates; the last three are kept
curves.csv, .png     energy gap, acceptance, jump and gradient norm against updates
samples/N.png        a part of the chains after N updates
"""

import csv
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from discrax.core.kernel import Sized, replaced

State = TypeVar("State")
_KEPT = 3
_SHOWN = 100  # chains in a picture


class Run:
    """Writes and reads the folder of one run. A checkpoint that was being written when the run died does not count."""

    def __init__(self, folder: Path, key: PRNGKeyArray, resume: bool):
        self.folder = folder
        self._key = np.asarray(jax.random.key_data(key))
        self._checkpoints = manager(folder)
        self._rows: list[dict[str, float]] = []
        latest = self._checkpoints.latest_step()
        if latest is not None and not resume:
            raise ValueError(
                f"{folder} already holds a run of {latest:,} updates; resume it, or give another folder as `out`."
            )
        if latest is None and resume:
            raise ValueError(f"There is no checkpoint to resume from in {folder}; leave out `resume`.")

    def restored(self, state: Any) -> Any:
        """The state of the last checkpoint; `state` is one like it, from the same model, sampler and optimiser."""
        saved, about = read(self._checkpoints, self.folder)
        if about["key"] != self._key.tolist():
            raise ValueError(f"The run in {self.folder} was started with another key; resume it with the same one.")
        if isinstance(state.kernel, Sized):
            state = state._replace(kernel=replaced(state.kernel, capacity=about["capacity"]))
        update = about["update"]
        self._rows = [row for row in _read_curves(self.folder / "curves.csv") if row["update"] <= update]
        return filled(state, saved, self.folder)

    def curves(self) -> list[dict[str, float]]:
        return list(self._rows)

    def save(self, state: Any, curves: list[dict[str, float]]) -> None:
        update = int(state.update)
        if self._checkpoints.latest_step() == update:
            return
        self._write_curves(curves)
        write(self._checkpoints, update, state, {
            "key": self._key.tolist(), "capacity": getattr(state.kernel, "capacity", None), "update": update,
        })  # fmt: skip
        self._picture(state, update)

    def _write_curves(self, curves: list[dict[str, float]]) -> None:
        if not curves:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / "curves.csv.part"
        with unfinished.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(curves[0]))
            writer.writeheader()
            writer.writerows(curves)
        unfinished.replace(self.folder / "curves.csv")

    def _picture(self, state: Any, update: int) -> None:
        space = state.model.space
        if len(space.shape) == 2:
            from discrax.learn.pictures import image_grid

            folder = self.folder / "samples"
            folder.mkdir(exist_ok=True)
            last = update * _SHOWN % len(state.buffer)  # any will do; these change from picture to picture
            chains = np.roll(np.asarray(state.buffer), -last, axis=0)[:_SHOWN]
            image_grid(chains, folder / f"{update:06d}.png", num_levels=space.num_levels)

    def finish(self) -> None:
        self._checkpoints.wait_until_finished()
        self._checkpoints.close()
        rows = _read_curves(self.folder / "curves.csv")
        if rows:
            from discrax.learn.pictures import curves_picture

            curves_picture(
                {name: np.array([row[name] for row in rows]) for name in rows[0]}, self.folder / "curves.png"
            )


def manager(folder: Path) -> Any:
    try:
        import orbax.checkpoint as orbax
    except ImportError as error:
        raise ImportError('Checkpoints need orbax, which is missing: pip install "discrax[learn]".') from error
    options = orbax.CheckpointManagerOptions(max_to_keep=_KEPT, create=True)
    return orbax.CheckpointManager((folder / "checkpoints").absolute(), options=options)


def write(checkpoints: Any, update: int, state: Any, about: dict[str, Any]) -> None:
    import orbax.checkpoint as orbax

    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
    arrays = {f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    checkpoints.save(
        update, args=orbax.args.Composite(state=orbax.args.StandardSave(arrays), about=orbax.args.JsonSave(about))
    )


def read(checkpoints: Any, folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    import orbax.checkpoint as orbax

    update = checkpoints.latest_step()
    if update is None:
        raise ValueError(f"There is no checkpoint in {folder}.")
    found = checkpoints.restore(
        update, args=orbax.args.Composite(state=orbax.args.StandardRestore(), about=orbax.args.JsonRestore())
    )
    return found["state"], found["about"]


def filled(like: State, saved: dict[str, np.ndarray], folder: Path) -> State:
    """A tree like another with the arrays of a checkpoint."""
    arrays, static = eqx.partition(like, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    found = [saved[name] for name in sorted(saved)]
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
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def write_config(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        raise ValueError(f"{folder} is not the folder of a run: it has no config.json; `discrax train` makes one.")
    return json.loads(path.read_text())
