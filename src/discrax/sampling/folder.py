"""Runs that survive: a folder has the draws as Zarr, and beside them all that the same call needs to go on.

run.npz           what was asked for, the target, the versions
arrays/           Zarr groups `warmup` and `draws`: an array of each statistic, and the codes `x` (bits are packed where
                  every site has two levels) or what a function kept; of runs in one program `draws-1` and so on too
phase-N.npz       the kernel and the reports when the N-th phase began (parts of warm-up, then drawing)
state-N.npz       the run after the last chunk of it that counts

A chunk is written first, and then the state, which is whole or not there: what lies beyond the draws that it counts is
nobody's, and is written again. Between phases a run goes on as it did the first time, since what is frozen or learnt
there follows from the last state of the phase.
"""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from discrax.core.devices import Devices
from discrax.core.driver import Ensemble
from discrax.core.files import FolderLock, check_unused
from discrax.core.kernel import State
from discrax.core.observers import STATS, Draws, Observer
from discrax.core.statistics import RunningMoments
from discrax.core.stochastic import steps_per_block
from discrax.core.target import Target
from discrax.sampling.fingerprint import differences, surroundings
from discrax.sampling.left_out import LeftOut, LeftOutKernel
from discrax.sampling.phase import Done
from discrax.sampling.plan import Plan
from discrax.sampling.run import Progress, Run
from discrax.sampling.run_files import (
    describe_or_name,
    describe_or_say,
    fill_leaves,
    named_leaves,
    read_npz,
    read_phases,
    write_npz,
)
from discrax.sampling.stored import CannotStore, describe_tree, rebuild_tree
from discrax.sampling.stored_array import StoredArray, import_zarr, mean_over_draws, with_weights, write_draws

_FORMAT = 1
DRAWING = "sampling"  # the title of the last phase


class RunFolder(FolderLock):
    """The folder of one run, with one writer at a time: use it in a `with` block."""

    def __init__(
        self, path: str | Path, target: Target, plan: Plan, words: dict[str, str], devices: Devices | None = None
    ):
        """`words` is the fingerprint of what is asked for."""
        if steps_per_block(target) is not None:
            raise ValueError("A run in a folder needs all its data at once, but those of this target are streamed.")
        if jax.process_count() > 1:
            raise ValueError(
                f"A folder must have one writer, but {jax.process_count()} processes share this run; leave out folder, "
                "and save the result in one of them."
            )
        import_zarr()
        super().__init__(path)
        self.target, self.plan, self._words = target, plan, words
        self.kept = _names_of_kept(target, plan)
        self._about: dict[str, Any] = {}
        self._surroundings = surroundings(devices)
        self._num_phases = self._num_steps = 0

    def open(self) -> None:
        """Takes up the run that is there, or begins one."""
        asked = {"format": _FORMAT, "words": self._words, "surroundings": self._surroundings, "chosen": None}
        self._about = asked
        if (self.path / "run.npz").exists():
            there, _ = read_npz(self.path / "run.npz")
            # One that never began, since its first call was refused, is no run yet.
            if there["words"] == self._words or (self.path / "phase-0.npz").exists():
                self._about = there
                self._check(asked)
        else:
            check_unused(self.path, "a run")
        if self._about.get("num_samples") != self.plan.num_samples:  # new, or another length
            self._write_about()

    def _check(self, asked: dict[str, Any]) -> None:
        """A sentence if another run is asked for than the one that is here."""
        different = differences(self._about["words"], asked["words"])
        if different:
            raise ValueError(
                f"The run in {self.path} must be the one that is asked for, but it has {' and '.join(different)}; call "
                "it as it was begun, or give this one a folder of its own."
            )
        if self.num_drawn > self.plan.num_samples:
            raise ValueError(
                f"The run in {self.path} has {self.num_drawn:,} draws a chain, but num_samples is "
                f"{self.plan.num_samples:,}; ask for as many or more, or read it by discrax.load."
            )
        changed = [
            f"{name} {was}, which is {asked['surroundings'].get(name)} now"
            for name, was in self._about["surroundings"].items()
            if asked["surroundings"].get(name) != was
        ]
        if changed and not self.is_complete:
            warnings.warn(
                f"The run in {self.path} was begun with {' and '.join(changed)}: its draws from here on may differ "
                "from those of a run that was never interrupted.",
                stacklevel=4,
            )

    def _write_about(self) -> None:
        arrays: dict[str, np.ndarray] = {}
        plan, keeps = self.plan, self.plan.keep
        self._about |= {
            "num_samples": int(plan.num_samples),
            "thinning": int(plan.thinning),
            "keep_warmup": bool(plan.keep_warmup),
            "keeps_moments": isinstance(keeps, str) and keeps == "moments",
            "keeps_draws": isinstance(keeps, str) and keeps == "draws",
            "kept": describe_tree(self.kept, {}, "kept"),
            "space": describe_tree(self.target.space, arrays, "space"),
            "target": describe_or_name(self.target, arrays, "target"),
        }
        write_npz(self.path / "run.npz", self._about, arrays)

    @property
    def num_drawn(self) -> int:
        """Draws a chain that count."""
        return next((done["filled"] for phase, done, _ in read_phases(self.path) if phase["title"] == DRAWING), 0)

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to draw."""
        return self.num_drawn >= self.plan.num_samples

    @property
    def chosen(self) -> Any:
        """The report of the pilot that chose the sampler, if there was one."""
        return rebuild_tree(self._about["chosen"], {})

    def choose(self, report: Any) -> None:
        """Keeps the report of the pilot: a run that goes on does not choose again."""
        self._about["chosen"] = describe_tree(report, {}, "chosen")
        self._write_about()

    def place(self, title: str, total: int) -> "FolderPlace":
        """Where the next phase is stored."""
        is_drawing = title == DRAWING
        first = 0 if is_drawing else self._num_steps
        place = FolderPlace(self, self._num_phases, title, first, self.plan.num_samples if is_drawing else 0)
        self._num_phases, self._num_steps = self._num_phases + 1, self._num_steps + total
        return place


class FolderPlace:
    """The part of a folder that a phase has: a stretch of the arrays of its group, and two files."""

    def __init__(self, folder: RunFolder, number: int, title: str, first: int, total: int):
        self._folder, self._title, self._first = folder, title, first
        self._total = total or folder.plan.num_warmup  # of the group
        self._path, self._number = folder.path, number
        self._kept: Any = None
        self._kernel: dict[str, np.ndarray] = {}  # when the phase began
        self._groups: dict[int, Any] = {}

    def resume(self, run: Run, observe: tuple[Observer, ...]) -> tuple[Run, Done]:
        """The run after the last chunk that counts."""
        if any(isinstance(each, Draws) for each in observe):
            self._kept = self._folder.kept if self._title == DRAWING else "x"
        self._kernel = named_leaves(Ensemble(None, None, run.ensemble.kernel))  # ty: ignore[invalid-argument-type]
        if not self._state.exists():
            self._begin(run)
            return run, Done()
        about, saved = read_npz(self._state)
        memories = eqx.filter_eval_shape(run.begin_watching, observe)
        kernel = run.ensemble.kernel
        if about["capacity"] is not None:
            kernel = kernel.with_capacity(about["capacity"])
        ensemble = fill_leaves(run.ensemble._replace(kernel=kernel, observed=memories), saved, self._state)
        done = Done(about["filled"], about["seconds"], about["compile_seconds"])
        return replace(run, ensemble=ensemble, observers=observe), done

    def _begin(self, run: Run) -> None:
        arrays: dict[str, np.ndarray] = {}
        states = run.ensemble.states
        about = {
            "title": self._title,
            "first": self._first,
            "kernel": describe_or_name(run.ensemble.kernel, arrays, "kernel"),
            "reports": [describe_or_say(report, arrays) for report in run.reports[0]],
            "states": describe_tree([states.x, states.log_prob], arrays, "states"),
        }
        write_npz(self._path / f"phase-{self._number}.npz", about, arrays)

    @property
    def _state(self) -> Path:
        return self._path / f"state-{self._number}.npz"

    def write(self, first: int, chunk: Progress) -> None:
        """Writes a chunk into the arrays, of which it may be the first."""
        is_packed = self._kept == "x" and self._folder.target.space.has_two_levels
        for i, handed in enumerate(chunk.handed):
            if not handed[0]:
                return  # running moments, which are part of the state
            if i not in self._groups:
                folder = self._path / "arrays" / _group_of(self._title, i)
                self._groups[i] = import_zarr().open_group(folder, mode="a")
            named = dict(handed[0])
            if len(handed) > 1:
                named |= zip(jax.tree.leaves(self._kept), jax.tree.leaves(handed[1]), strict=True)
            for name, values in named.items():
                values, place = np.moveaxis(np.asarray(values), 0, 1), self._first + first
                write_draws(self._groups[i], name, values, place, self._total, is_packed and name == "x")

    def commit(self, run: Run, done: Done) -> None:
        """Writes the state, which says how many draws count."""
        leaves = named_leaves(run.ensemble)
        same = [name for name, values in self._kernel.items() if leaves[name].tobytes() == values.tobytes()]
        about = done._asdict() | {"capacity": run.ensemble.kernel.capacity}
        write_npz(self._state, about, {name: values for name, values in leaves.items() if name not in same})

    def read(self, i: int, filled: int) -> tuple[Any, ...] | None:
        """Arrays that are read when they are indexed."""
        return _open_arrays(self._path, _group_of(self._title, i), self._first, filled, self._kept)


def _group_of(title: str, i: int) -> str:
    return ("draws" if title == DRAWING else "warmup") + (f"-{i}" if i else "")


def _open_arrays(path: Path, group: str, first: int, filled: int, kept: Any) -> tuple[Any, ...] | None:
    """Statistics and what was kept, as far as they count."""
    folder = path / "arrays" / group
    if not filled or not folder.exists():
        return None
    opened = import_zarr().open_group(folder, mode="r")
    # Not `set(opened)`: a kill may leave a half-written file, of which Zarr would warn.
    written = {part.parent.name for part in folder.glob("*/zarr.json")}
    names = sorted(written - {*jax.tree.leaves(kept), "x"})
    stats = {name: StoredArray(opened[name], first, filled) for name in names}
    return (
        (stats,) if kept is None else (stats, jax.tree.map(lambda name: StoredArray(opened[name], first, filled), kept))
    )


def _names_of_kept(target: Target, plan: Plan) -> Any:
    """The name of the array of codes, or a tree of names for what a function keeps; None for moments."""
    if not callable(plan.keep):
        return "x" if plan.keep == "draws" else None
    keep = plan.keep
    shapes = jax.eval_shape(lambda x: keep(x), plan.draw_of(target))
    leaves, structure = jax.tree.flatten(shapes)
    unknown = [leaf.dtype for leaf in leaves if np.dtype(leaf.dtype).kind not in "biufc"]
    if unknown:
        raise TypeError(f"keep must return arrays of numpy's types to be stored in a folder, but got {unknown[0]}.")
    names = jax.tree.unflatten(structure, [f"kept_{i}" for i in range(len(leaves))])
    try:
        describe_tree(names, {}, "kept")
    except CannotStore as why:
        raise ValueError(f"keep must return arrays in lists, tuples and dictionaries for a folder, but {why}.") from why
    return names


# --- Reading ----------------------------------------------------------------------------------------------------------


def load_fields(path: str | Path) -> dict[str, Any]:
    """The fields of a result from the folder of a run, which may still be written."""
    path = Path(path).expanduser()
    if not (path / "run.npz").exists():
        raise FileNotFoundError(f"A folder must hold a run, but there is none in {path}.")
    about, arrays = read_npz(path / "run.npz")
    if about.get("format") != _FORMAT:
        raise ValueError(f"{path} must have format {_FORMAT}, but has {about.get('format')}.")
    phases = read_phases(path)
    if not phases:
        raise ValueError(f"The run in {path} has not made a step yet; wait for it, or call it again.")
    last, done, found = phases[-1]
    warmup = [each for each in phases if each[0]["title"] != DRAWING]
    drawn = done["filled"] if last["title"] == DRAWING else 0
    steps = sum(each["filled"] for _, each, _ in warmup)
    tried = _open_arrays(path, "warmup", 0, steps, "x" if about["keep_warmup"] else None) or ({}, None)
    parts = _open_arrays(path, "draws", 0, drawn, rebuild_tree(about["kept"], {})) or ({}, None)
    stats = with_weights(parts[0]) if parts[0] else {}
    mean_stats, moments = {name: mean_over_draws(stats[name]) for name in STATS if stats}, None
    if about["keeps_moments"] and drawn:
        moments, scalars = (
            RunningMoments(*(found[f".observed[0][{i}].{name}"] for name in RunningMoments._fields)) for i in (0, 1)
        )
        mean_stats = dict(zip(STATS, scalars.mean.T, strict=True))
    x, log_prob = rebuild_tree(last["states"], found)
    states = State(found.get(".states.x", x), found.get(".states.log_prob", log_prob), None)
    space, target, kernel = (
        rebuild_tree(described, them)
        for described, them in ((about["space"], arrays), (about["target"], arrays), (last["kernel"], found))
    )
    return {
        "target": LeftOut(space, about["target"]["left_out"]) if target is None else target,
        "kernel": LeftOutKernel(last["kernel"]["left_out"]) if kernel is None else kernel,
        "draws": parts[1] if about["keeps_draws"] and drawn else None,
        "kept": parts[1] if not about["keeps_draws"] and not about["keeps_moments"] and drawn else None,
        "moments": moments,
        "stats": stats,
        "mean_stats": mean_stats,
        "warmup_stats": with_weights(tried[0]) if tried[0] else {},
        "warmup_draws": tried[1] if about["keep_warmup"] and steps else None,
        "reports": tuple(rebuild_tree(report, found) for report in last["reports"]),
        "seconds": done["seconds"] if last["title"] == DRAWING else 0.0,
        "warmup_seconds": sum(each["seconds"] for _, each, _ in warmup),
        "compile_seconds": sum(each["compile_seconds"] for _, each, _ in phases),
        "is_complete": drawn >= about["num_samples"],
        "thinning": about["thinning"],
        "num_draws": drawn,
        "states": states,
    }
