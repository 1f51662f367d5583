"""Training runs by their settings, as `discrax train` keeps them in config.json: train, go on, load, draw."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from discrax import targets
from discrax.core import checks, random
from discrax.core.files import check_writable, write_whole
from discrax.core.kernel import Kernel
from discrax.core.seeds import checked_seed, key_of
from discrax.core.target import Target
from discrax.data import Images, load_images
from discrax.learn import models
from discrax.learn.checkpoints import TrainingFolder, filled, read, read_config, write_config
from discrax.learn.inputs import adam
from discrax.learn.pictures import checked_picture, image_grid
from discrax.learn.training import Trained, pcd
from discrax.samplers import build_kernel
from discrax.sampling import Result, sample

MODELS = ("rbm", "ising", "potts", "resnet", "convnet", "quadratic-convnet")
_COUNTS = ("steps", "updates", "batch", "buffer", "hidden", "width", "blocks", "every", "save_every")


def train_model(settings: dict[str, Any], folder: Path, *, save_every: int, resume: bool) -> Trained:
    """Trains a model and keeps the run in a folder; with `resume` goes on with the settings of the run that is there.

    `settings` are the options of `discrax train` by their names; `updates` and `rate` may be None, their defaults.
    """
    _check(settings | {"save_every": save_every})
    updates = settings["updates"]
    if resume:
        settings = read_config(folder)
        settings |= {} if updates is None else {"updates": updates}
    else:
        settings = _with_defaults(settings)
    levels = None if settings["levels"] == 2 else settings["levels"]
    images = load_images(settings["data"], settings["data_folder"], levels=levels)
    settings["shape"] = list(images.train.shape[1:])
    model = build_model(settings, images)
    build_kernel(settings["sampler"], model)  # a typo is found before anything is written
    key = key_of(settings["seed"])
    with TrainingFolder(folder, key, resume) as run:
        if not resume or updates is not None:  # not before it is sure that the folder has no run, or has one
            write_config(folder, settings)
        same = {name: settings[name] for name in ("sampler", "ema", "l1", "weight_decay", "every")}
        return pcd(
            key, model, images, num_steps=settings["steps"], num_updates=settings["updates"],
            batch_size=settings["batch"], buffer_size=settings["buffer"], save_every=save_every, out=run, resume=resume,
            optimiser=adam(settings["rate"], settings["warmup"]), **same,
        )  # fmt: skip


def _check(settings: dict[str, Any]) -> None:
    """Settings that make no sense are named as on the command line."""
    for name in _COUNTS:
        if settings[name] is not None:
            checks.whole(f"--{name.replace('_', '-')}", settings[name], least=1)
    checks.whole("--levels", settings["levels"], least=2)
    checks.number("--l1", settings["l1"], least=0)
    checks.number("--weight-decay", settings["weight_decay"], least=0)
    checks.number("--ema", settings["ema"], least=0, below=1)
    if settings["rate"] is not None:
        checks.number("--rate", settings["rate"], above=0)
    checked_seed(settings["seed"])


def _with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a new run, with the values of those that depend on others."""
    updates, rate, folder = settings["updates"], settings["rate"], settings["data_folder"]
    updates = 2000 if updates is None else updates
    if rate is None:
        rate = 1e-3 if settings["model"] in ("rbm", "ising", "potts") else 1e-4
    folder = None if folder is None else str(folder.resolve())
    return settings | {"updates": updates, "rate": rate, "data_folder": folder, "warmup": max(1, updates // 5)}


def build_model(config: dict[str, Any], images: Images | None = None) -> Any:
    """The untrained model of a run's settings; the data's frequencies are its start where `images` are given."""
    name, shape, levels = config["model"], tuple(config["shape"]), config["levels"]
    key = random.fold_in(jax.random.key(config["seed"]), 1)
    frequencies = np.full(shape if levels == 2 else (*shape, levels), 1 / levels) if images is None else images.mean
    space = models.image_space(shape, levels)
    logits, num_sites = models.log_odds(frequencies, space), space.num_sites
    if name == "resnet":
        return models.resnet(
            key, shape, num_levels=levels, width=config["width"], num_blocks=config["blocks"], frequencies=frequencies
        )
    if name in ("convnet", "quadratic-convnet"):
        return models.convnet(key, shape, num_levels=levels, quadratic=name == "quadratic-convnet")
    if name == "rbm":
        hidden = config["hidden"]
        flat = logits.reshape(num_sites) if levels == 2 else logits.reshape(num_sites, levels)
        bound = 1 / np.sqrt(num_sites)
        weights = np.random.default_rng(config["seed"]).uniform(-bound, bound, (hidden, *flat.shape))
        family = targets.RBM if levels == 2 else targets.CategoricalRBM
        return family(weights, flat, np.zeros(hidden), shape=shape)
    if name == "ising":
        if levels != 2:
            raise ValueError(f"An ising model has two levels, but levels is {levels}; train potts.")
        return targets.Quadratic(space, np.asarray(models.random_couplings(key, num_sites)), logits)
    if name == "potts":
        if num_sites * levels > 4000:
            raise ValueError(
                f"potts has a number for each pair of {num_sites} x {levels} levels: at most 4,000 of them, such as "
                "digits with 8 levels."
            )
        p = np.asarray(frequencies).reshape(num_sites, -1)
        return models.PairwisePotts.untrained(np.hstack([1 - p, p]) if levels == 2 else p)
    raise ValueError(f"There is no model {name!r}; known: {', '.join(MODELS)}.")


def load_model(folder: Path) -> tuple[Target, dict[str, Any]]:
    """The model of a run with its averaged parameters, and the settings of the run."""
    config = read_config(folder)
    model = build_model(config)
    saved, _ = read(folder)
    # A checkpoint holds, in this order: the count of updates, the model, the mean of its trained parameters, and more.
    parameters = eqx.filter(model, models.trained_parts(model))
    num_model = len(jax.tree.leaves(eqx.filter(model, eqx.is_array)))
    num_trained = len(jax.tree.leaves(parameters))
    names = sorted(saved)
    model = filled(model, {name: saved[name] for name in names[1 : 1 + num_model]}, folder)
    averaged = {name: saved[name] for name in names[1 + num_model : 1 + num_model + num_trained]}
    mean = filled(parameters, averaged, folder)
    return eqx.combine(mean, model), config


def draw_pictures(
    folder: Path,
    sampler: str | Kernel,
    *,
    num_chains: int,
    num_warmup: int,
    num_steps: int,
    num_snapshots: int,
    seed: int,
    out: Path | None,
) -> tuple[Result, Path]:
    """Draws from the model of a run; writes the chains' last states as a picture, and all snapshots beside it (.npz).

    The result's draws are the snapshots, (chains, snapshots, *sites); the path is that of the picture.
    """  # fmt: skip
    key = key_of(seed)
    if not 1 <= num_snapshots <= num_steps:
        raise ValueError(f"snapshots lies between 1 and the {num_steps} steps, but is {num_snapshots}.")
    target, config = load_model(folder)
    out = checked_picture(folder / "samples.png" if out is None else out)
    check_writable(out.with_suffix(".npz"))
    counts: dict[str, Any] = {
        "num_warmup": num_warmup,
        "num_samples": num_snapshots,
        "thinning": num_steps // num_snapshots,
    }
    result = sample(key, target, sampler, num_chains=num_chains, **counts)
    if not result.num_draws:
        raise KeyboardInterrupt
    assert result.draws is not None
    states = result.draws.reshape(*result.draws.shape[:2], *config["shape"])
    image_grid(states[:, -1], out, num_levels=target.space.num_levels)
    arrays: dict[str, Any] = {"states": states, "log_prob": result.stats["lp"]}
    write_whole(out.with_suffix(".npz"), lambda file: np.savez_compressed(file, **arrays))
    return result, out
