"""Energy models as cells: models that are trained, and models that are sampled from after they were trained.

A cell that trains counts in its budget the batch (num_chains), the updates (num_samples) and the sampler's steps per
update (thinning). Its measure is

    likelihood         a residual network is trained on images: the log-likelihood of test images by annealed
                       importance sampling, and whether training diverged

and those of a cell whose target is a trained network

    snapshots          pictures of the chains every so many steps, and their mean log-probability
    mixing_from_noise  mean log-probability against steps, from chains that begin as noise

A row of pixels is stored as one number, whose bits they are (`pixels`; `plots.pictures` reads it).

What takes long to train is kept in the cache folder for the next time.
"""

import math
import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Integer

from discrax.bench.experiments.data import cache_folder
from discrax.bench.plan.cell import Budget, Cell
from discrax.bench.plan.measure import Measured, Number, Timing, experiment, folder_of_cell, series, target_of
from discrax.core.files import FolderLock, write_whole
from discrax.core.target import Target
from discrax.data import Images, load_images
from discrax.learn import models
from discrax.learn.ais import ais
from discrax.learn.frequencies import smoothed
from discrax.learn.inputs import adam
from discrax.learn.mixing import mixing_curves
from discrax.learn.mixing import snapshots as snapshots_of
from discrax.learn.training import Trained, pcd
from discrax.sampling.normaliser import log_probs_of

Kept = TypeVar("Kept")
_LONG = 1000  # updates that are worth checkpoints


@lru_cache(maxsize=4)
def image_set(name: str) -> Images:
    """A data set of images, read once a process."""
    return load_images(name)


@experiment
def likelihood(
    cell: Cell,
    width: int,
    num_blocks: int,
    learning_rate: float,
    num_growing: int,
    variance: float,
    buffer_size: int,
    num_temperatures: int,
) -> Measured:
    """A residual network trained with the cell's sampler, and the log-likelihood of test images."""
    images = cell.target()
    trained = train_cell(
        cell,
        _network(images, width, num_blocks, cell.seed, variance),
        images,
        sampler=cell.sampler(),
        buffer_size=buffer_size,
        optimiser=adam(learning_rate, num_growing),
    )
    numbers = [Number("diverged", float(trained.stopped is not None)), *training_numbers(trained)]
    if trained.stopped is None:
        numbers += _log_likelihood(cell, trained.ema, images, num_temperatures)
    return numbers, time_training(trained)


def _log_likelihood(cell: Cell, model: Target, images: Images, num_temperatures: int) -> list[Number]:
    base = smoothed(images.mean, images.num_levels)
    found = ais(jax.random.key(cell.seed), model, reference=base, num_temperatures=num_temperatures, progress=False)
    value, error = found.log_likelihood(model, images.binarise(0).test)
    return [
        Number("log_likelihood", value),
        Number("log_likelihood_error", error),
        Number("log_Z", found.log_Z),
        Number("effective_weights", found.num_effective),
    ]


def trained_resnet(
    data: str,
    width: int,
    num_blocks: int,
    num_updates: int,
    num_steps: int,
    learning_rate: float,
    buffer_size: int,
    seed: int = 0,
    variance: float = 2.0,
    num_growing: int | None = None,
) -> Target:
    """A residual network trained on images with the path auxiliary sampler, its parameters averaged.

    The learning rate grows for `num_growing` updates, by default a fifth of them.
    """
    images = image_set(data)
    untrained = _network(images, width, num_blocks, seed, variance)

    def make() -> Target:
        trained = pcd(
            jax.random.key(seed),
            untrained,
            images,
            num_steps=num_steps,
            num_updates=num_updates,
            buffer_size=buffer_size,
            optimiser=adam(learning_rate, max(1, num_updates // 5) if num_growing is None else num_growing),
            every=max(1, num_updates // 20),
            progress=False,
        )
        check_trained(trained)
        return trained.ema

    settings = (data, width, num_blocks, num_updates, num_steps, f"{learning_rate:g}-from-0", buffer_size, seed)
    settings += () if variance == 2 else (f"{variance:.3g}",)
    settings += () if num_growing is None else (f"growing{num_growing}",)
    return keep_in_cache(f"resnet-{'-'.join(map(str, settings))}", untrained, make)


def _network(images: Images, width: int, num_blocks: int, seed: int, variance: float = 2.0) -> models.NetworkModel:
    key = jax.random.key(seed + 1)
    return models.resnet(
        key, images.shape, width=width, num_blocks=num_blocks, frequencies=images.mean, variance=variance
    )


@experiment
def snapshots(cell: Cell, num_shown: int = 16) -> Measured:
    """The chains after every `thinning` steps; the first `num_shown` of them as pictures."""
    target, budget = target_of(cell.target), cell.budget
    begin = time.perf_counter()
    shots = snapshots_of(jax.random.key(cell.seed), target, cell.sampler(), **_chain_settings(budget))
    seconds = time.perf_counter() - begin
    values = log_probs_of(target, shots.reshape(-1, *target.space.shape)).reshape(shots.shape[:2])
    numbers = [Number("time_s", seconds)]
    numbers += [
        Number("log_prob", float(at.mean()), float(at.std()), x=float(budget.thinning * (place + 1)))
        for place, at in enumerate(values)
    ]
    return numbers + pixels(shots[:, :num_shown], budget.thinning), Timing(seconds=seconds)


def _chain_settings(budget: Budget) -> dict[str, Any]:
    """Chains that are looked at every `thinning` steps, `num_samples` times."""
    num_steps, every = budget.num_samples * budget.thinning, budget.thinning
    chains = {"num_chains": budget.num_chains, "num_warmup": budget.num_warmup, "progress": False}
    return chains | {"num_steps": num_steps, "every": every}


def pixels(shots: Integer[np.ndarray, "snapshots shown height width"], every: int) -> list[Number]:
    """Black and white pictures as numbers: one a row of pixels, whose bits they are; first all rows of one picture."""
    num_snapshots, num_shown, height, width = shots.shape
    if width > 52:
        raise ValueError(
            f"A row of pixels fits into a number where there are at most 52, but pictures are {width} wide."
        )
    rows = shots.reshape(-1, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))
    shape = {"snapshots": num_snapshots, "shown": num_shown, "height": height, "width": width, "every": every}
    sizes = [Number(f"pixels_{name}", float(value)) for name, value in shape.items()]
    return sizes + series("pixels", range(len(rows)), rows)


@experiment
def mixing_from_noise(cell: Cell) -> Measured:
    """log pi of chains that begin as uniform noise, the same for all samplers, every `thinning` steps."""
    target, budget = target_of(cell.target), cell.budget
    rng = np.random.default_rng(cell.seed)
    starts = rng.integers(0, target.space.num_levels, (budget.num_chains, *target.space.shape)).astype(np.int8)
    begin = time.perf_counter()
    curve = mixing_curves(
        jax.random.key(cell.seed), target, {"sampler": cell.sampler()}, init=starts, **_chain_settings(budget)
    )["sampler"]
    seconds = time.perf_counter() - begin
    spread = curve.error * math.sqrt(budget.num_chains)
    numbers = [
        Number("log_prob", float(mean), float(std), x=float(step))
        for step, mean, std in zip(curve.steps, curve.mean, spread, strict=True)
    ]
    numbers += [Number("acceptance", curve.acceptance), Number("time_s", seconds)]
    return numbers, Timing(seconds=seconds)


# --- What they share -------------------------------------------------------------------------------------------------


def train_cell(cell: Cell, model: Target, data: Any, **settings: Any) -> Trained:
    """Trains a model with the sampler, tuning and budget of a cell; long training that was killed goes on."""
    every, out = max(1, cell.budget.num_samples // 20), folder_of_cell()
    out = out if cell.budget.num_samples >= _LONG else None
    trained = pcd(
        jax.random.key(cell.seed),
        model,
        data,
        num_steps=cell.budget.thinning,
        num_updates=cell.budget.num_samples,
        batch_size=cell.budget.num_chains,
        adaptation=cell.make_adapter(),
        every=every,
        out=out,
        save_every=5 * every,
        resume=out is not None and any((out / "checkpoints").glob("*.npz")),
        progress=False,
        **settings,
    )
    if trained.is_interrupted:
        raise KeyboardInterrupt
    return trained


def check_trained(trained: Trained) -> None:
    """A model that others are measured on is trained to the end, or not there."""
    if trained.is_interrupted:
        raise KeyboardInterrupt
    if trained.stopped is not None:
        raise RuntimeError(trained.stopped)


def training_numbers(trained: Trained) -> list[Number]:
    """What the last update says, and the gap between data and chains over the updates."""
    curves = trained.curves
    numbers = [Number("num_updates", trained.num_updates)]
    if not len(curves["update"]):
        return numbers
    numbers += [Number(name, float(curves[name][-1])) for name in ("gap", "acceptance", "jump", "gradient_norm")]
    numbers.append(Number("time_s", float(curves["seconds"][-1])))
    return numbers + series("gap_at_update", curves["update"], curves["gap"])


def time_training(trained: Trained) -> Timing:
    """The seconds of training."""
    seconds = trained.curves["seconds"]
    return Timing(seconds=float(seconds[-1]) if len(seconds) else 0.0)


def keep_in_cache(name: str, like: Kept, make: Callable[[], Kept]) -> Kept:
    """What was kept in the cache folder under this name; else it is made and kept. `like` has its structure.

    One process makes it, and others that need it wait.
    """
    path = cache_folder() / f"{name}.eqx"
    if not path.exists():
        with FolderLock(path.with_suffix(".making"), waits=True) as lock:
            if not path.exists():
                made = make()
                write_whole(path, lambda file: eqx.tree_serialise_leaves(file, made))
            shutil.rmtree(lock.path, ignore_errors=True)
    return eqx.tree_deserialise_leaves(path, like)
