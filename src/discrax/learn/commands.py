"""`discrax train` and `discrax sample`."""

from functools import cache
from pathlib import Path
from typing import Any, Literal

from discrax.core import checks, random

MODELS = ("rbm", "ising", "potts", "resnet", "convnet", "quadratic-convnet")
Model = Literal["rbm", "ising", "potts", "resnet", "convnet", "quadratic-convnet"]


def train(
    data: str = "digits",
    model: Model = "resnet",
    sampler: str = "pas",
    steps: int = 20,
    updates: int | None = None,
    batch: int = 100,
    buffer: int = 1000,
    rate: float | None = None,
    hidden: int = 200,
    width: int = 64,
    blocks: int = 8,
    levels: int = 2,
    ema: float = 0.999,
    l1: float = 0.0,
    weight_decay: float = 0.0,
    seed: int = 0,
    every: int = 50,
    save_every: int = 500,
    data_folder: Path | None = None,
    out: Path = Path("run"),
    resume: bool = False,
) -> None:
    """Trains an energy model by contrastive divergence with persistent chains. Ctrl-C keeps what was learnt.

    Args:
        data: digits, mnist, dynamic_mnist, fashion_mnist, omniglot, caltech or usps.
        model: What to train.
        sampler: That moves the chains; `discrax samplers` lists them.
        steps: Of the sampler per update.
        updates: Of the parameters; 2,000 by default, or as many as a resumed run was to have.
        batch: Images and chains per update.
        buffer: Chains in all. With too many each moves too seldom to follow a network that learns.
        rate: Of Adam; by default 1e-3 for rbm, ising and potts, 1e-4 for networks, after a linear warm-up.
        hidden: Units of an rbm.
        width: Channels of a resnet.
        blocks: Of a resnet.
        levels: Greys are cut into so many levels; 2 is black and white.
        ema: Decay of the mean of the parameters.
        l1: Weight of the sum of absolute parameters.
        weight_decay: Weight of half the sum of their squares.
        seed: Of the random numbers.
        every: Updates between two reports.
        save_every: Updates between two checkpoints and pictures.
        data_folder: Where the data sets lie; by default DISCRAX_DATA.
        out: The folder of the run.
        resume: Go on with the run in that folder, with the settings it was started with.
    """
    from discrax.core.seeds import checked_seed, key_of
    from discrax.data import load_images
    from discrax.learn.checkpoints import TrainingFolder, read_config, write_config
    from discrax.learn.training import pcd
    from discrax.samplers import build_kernel

    counts = {"steps": steps, "updates": updates, "batch": batch, "buffer": buffer, "hidden": hidden, "width": width}
    counts |= {"blocks": blocks, "every": every, "save_every": save_every}
    for name, count in counts.items():
        if count is not None:
            checks.whole(f"--{name.replace('_', '-')}", count, least=1)
    checks.whole("--levels", levels, least=2)
    checks.number("--l1", l1, least=0)
    checks.number("--weight-decay", weight_decay, least=0)
    checks.number("--ema", ema, least=0, below=1)
    if rate is not None:
        checks.number("--rate", rate, above=0)
    checked_seed(seed)
    if resume:
        config = read_config(out)
        config["updates"] = config["updates"] if updates is None else updates
    else:
        updates = 2000 if updates is None else updates
        if rate is None:
            rate = 1e-3 if model in ("rbm", "ising", "potts") else 1e-4
        config: dict[str, Any] = {
            "data": data, "model": model, "sampler": sampler, "steps": steps, "updates": updates,
            "warmup": max(1, updates // 5), "batch": batch, "buffer": buffer, "rate": rate, "hidden": hidden,
            "width": width, "blocks": blocks, "levels": levels, "ema": ema, "l1": l1, "weight_decay": weight_decay,
            "seed": seed, "every": every, "data_folder": None if data_folder is None else str(data_folder.resolve()),
        }  # fmt: skip
    folder = config["data_folder"]
    levels_of_greys = None if config["levels"] == 2 else config["levels"]
    images = load_images(config["data"], folder, levels=levels_of_greys)
    config["shape"] = list(images.train.shape[1:])
    made = build(config, images)
    build_kernel(config["sampler"], made)  # a typo is found before anything is written
    key = key_of(config["seed"])
    with TrainingFolder(out, key, resume) as run:
        if not resume:  # not before it is sure that the folder has no run
            write_config(out, config)
        trained = pcd(
            key,
            made,
            images,
            sampler=config["sampler"],
            num_steps=config["steps"],
            num_updates=config["updates"],
            batch_size=config["batch"],
            buffer_size=config["buffer"],
            optimiser=warmed_adam(config["rate"], config["warmup"]),
            ema=config["ema"],
            l1=config["l1"],
            weight_decay=config["weight_decay"],
            every=config["every"],
            save_every=save_every,
            out=run,
            resume=resume,
        )
    last = {name: values[-1] for name, values in trained.curves.items()} if len(trained.curves["gap"]) else None
    if last is not None:
        print(
            f"{trained.num_updates:,} updates in {last['seconds']:.0f} s: energy gap {last['gap']:.3g}, "
            f"acceptance {last['acceptance']:.2f}, jump {last['jump']:.3g}, gradient {last['gradient_norm']:.3g}"
        )
    if (out / "curves.png").exists():
        print(f"{out}/curves.png, {out}/samples/, {out}/checkpoints/")
    if trained.stopped is not None:
        raise SystemExit(f"discrax: {trained.stopped}")


@cache  # the same object for the same numbers, so that programs are shared
def warmed_adam(rate: float, num_updates: int) -> Any:
    """Adam whose rate grows linearly over the first updates, as in the papers."""
    try:
        import optax
    except ImportError as error:
        raise ImportError('Training needs optax, which is missing: pip install "discrax[learn]".') from error
    rate = checks.number("The learning rate", rate, above=0)
    return optax.adam(optax.schedules.linear_schedule(rate / 100, rate, num_updates))


def build(config: dict[str, Any], images: Any = None) -> Any:
    """The untrained model of a run's settings; the data's frequencies are its start where `images` are given."""
    import jax
    import numpy as np

    from discrax import targets
    from discrax.learn import models

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
        return targets.Quadratic(
            models.image_space(shape, 2), np.asarray(models.random_couplings(key, num_sites)), logits
        )
    if name == "potts":
        if num_sites * levels > 4000:
            raise ValueError(
                f"potts has a number for each pair of {num_sites} x {levels} levels: at most 4,000 of them, such as "
                "digits with 8 levels."
            )
        p = np.asarray(frequencies).reshape(num_sites, -1)
        return models.PairwisePotts.untrained(np.hstack([1 - p, p]) if levels == 2 else p)
    raise ValueError(f"There is no model {name!r}; known: {', '.join(MODELS)}.")


def load(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The model of a run with its averaged parameters, and the settings of the run."""
    import equinox as eqx
    import jax

    from discrax.learn.checkpoints import filled, read, read_config
    from discrax.learn.models import trained_parts

    config = read_config(folder)
    model = build(config)
    saved, _ = read(folder)
    # A checkpoint holds, in this order: the count of updates, the model, the mean of its trained parameters, and more.
    parameters = eqx.filter(model, trained_parts(model))
    num_model = len(jax.tree.leaves(eqx.filter(model, eqx.is_array)))
    num_trained = len(jax.tree.leaves(parameters))
    names = sorted(saved)
    model = filled(model, {name: saved[name] for name in names[1 : 1 + num_model]}, folder)
    averaged = {name: saved[name] for name in names[1 + num_model : 1 + num_model + num_trained]}
    mean = filled(parameters, averaged, folder)
    return eqx.combine(mean, model), config


def sample_model(
    model: Path,
    sampler: str = "pas",
    chains: int = 100,
    warmup: int = 500,
    steps: int = 5000,
    snapshots: int = 5,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Draws from a trained model and saves the pictures.

    Args:
        model: The folder of a run of `discrax train`.
        sampler: `discrax samplers` lists them.
        chains: One picture each.
        warmup: Steps in which the sampler is tuned.
        steps: After that.
        snapshots: The chains are kept so many times on the way.
        seed: Of the random numbers.
        out: The picture; by default samples.png in the folder of the run. The states are written beside it (.npz).
    """
    import numpy as np

    from discrax.core.files import check_writable, write_whole
    from discrax.core.seeds import key_of
    from discrax.learn.pictures import checked_picture, image_grid
    from discrax.sampling import sample

    key = key_of(seed)
    if not 1 <= snapshots <= steps:
        raise ValueError(f"snapshots lies between 1 and the {steps} steps, but is {snapshots}.")
    target, config = load(model)
    out = checked_picture(model / "samples.png" if out is None else out)
    check_writable(out.with_suffix(".npz"))
    result = sample(
        key,
        target,
        sampler,
        num_chains=chains,
        num_warmup=warmup,
        num_samples=snapshots,
        thinning=steps // snapshots,
    )
    if not result.num_draws:
        raise KeyboardInterrupt
    assert result.draws is not None
    states = result.draws.reshape(*result.draws.shape[:2], *config["shape"])
    image_grid(states[:, -1], out, num_levels=target.space.num_levels)
    arrays: dict[str, Any] = {"states": states, "log_prob": result.stats["lp"]}
    write_whole(out.with_suffix(".npz"), lambda file: np.savez_compressed(file, **arrays))
    accepted, jump = result.mean_stats["accept_prob"].mean(), result.mean_stats["jump"].mean()
    made = result.num_draws * result.thinning
    print(f"{chains} chains, {made:,} steps of {sampler}: acceptance {accepted:.2f}, {jump:.3g} sites changed a step")
    print(f"{out}, {out.with_suffix('.npz')}")
    if not result.is_complete:
        raise SystemExit(
            f"discrax: interrupted after {made:,} of {steps:,} steps; the chains are where they were then."
        )
