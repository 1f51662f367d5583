"""`discrax train` and `discrax sample`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discrax.voice import Voice


@dataclass(frozen=True)
class DataOptions:
    """What to learn from."""

    data: str = "digits"  # digits, mnist, dynamic_mnist, fashion_mnist, omniglot, caltech or usps.
    data_folder: Path | None = None  # Where the data sets lie; by default DISCRAX_DATA.
    levels: int = 2  # Greys are cut into so many levels; 2 is black and white.


@dataclass(frozen=True)
class ModelOptions:
    """What to train."""

    model: Literal["rbm", "ising", "potts", "resnet", "convnet", "quadratic-convnet"] = "resnet"  # The family.
    hidden: int = 200  # Units of an rbm.
    width: int = 64  # Channels of a resnet.
    blocks: int = 8  # Of a resnet.


@dataclass(frozen=True)
class SamplerOptions:
    """What moves the chains."""

    sampler: str = "pas"  # `discrax samplers` lists them.
    steps: int = 20  # Of the sampler per update.
    buffer: int = 1000  # Chains in all. With too many each moves too seldom to follow a network that learns.


@dataclass(frozen=True)
class OptimiserOptions:
    """How parameters change."""

    updates: int | None = None  # Of the parameters; 2,000 by default, or as many as a resumed run was to have.
    batch: int = 100  # Images and chains per update.
    # Of Adam; by default 1e-3 for rbm, ising and potts, 1e-4 for networks, after a linear warm-up.
    rate: float | None = None
    ema: float = 0.999  # Decay of the mean of the parameters.
    l1: float = 0.0  # Weight of the sum of absolute parameters.
    weight_decay: float = 0.0  # Weight of half the sum of their squares.


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    out: Path = Path("run")  # The folder of the run.
    every: int = 50  # Updates between two reports.
    save_every: int = 500  # Updates between two checkpoints and pictures.
    resume: bool = False  # Go on with the run in that folder, with the settings it was started with.


def train(
    data: DataOptions = DataOptions(),
    model: ModelOptions = ModelOptions(),
    sampler: SamplerOptions = SamplerOptions(),
    optimiser: OptimiserOptions = OptimiserOptions(),
    output: OutputOptions = OutputOptions(),
    seed: int = 0,
    voice: Voice = Voice(),  # noqa: B008
) -> None:
    """Trains an energy model by contrastive divergence with persistent chains. Ctrl-C keeps what was learnt.

    Args:
        seed: Of the random numbers.
        voice: What is printed.
    """
    from discrax.learn.runs import train_model

    settings = {**vars(data), **vars(model), **vars(sampler), **vars(optimiser), "every": output.every, "seed": seed}
    trained = train_model(settings, output.out, save_every=output.save_every, resume=output.resume)
    if len(trained.curves["gap"]):
        last = {name: values[-1] for name, values in trained.curves.items()}
        voice.give({"updates": trained.num_updates, "out": output.out, **last})
        voice.say(
            f"{trained.num_updates:,} updates in {last['seconds']:.0f} s: energy gap {last['gap']:.3g}, "
            f"acceptance {last['acceptance']:.2f}, jump {last['jump']:.3g}, gradient {last['gradient_norm']:.3g}"
        )
    if (output.out / "curves.png").exists():
        voice.say(f"{output.out}/curves.png, {output.out}/samples/, {output.out}/checkpoints/")
    if trained.stopped is not None:
        raise SystemExit(f"discrax: {trained.stopped}")


def sample_model(
    model: Path,
    sampler: str = "pas",
    chains: int = 100,
    warmup: int = 500,
    steps: int = 5000,
    snapshots: int = 5,
    seed: int = 0,
    out: Path | None = None,
    voice: Voice = Voice(),  # noqa: B008
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
        voice: What is printed.
    """
    from discrax.learn.runs import draw_pictures

    result, picture = draw_pictures(
        model, sampler, num_chains=chains, num_warmup=warmup, num_steps=steps, num_snapshots=snapshots, seed=seed,
        out=out,
    )  # fmt: skip
    accepted, jump = result.mean_stats["accept_prob"].mean(), result.mean_stats["jump"].mean()
    made = result.num_draws * result.thinning
    states = picture.with_suffix(".npz")
    voice.give({"steps": made, "acceptance": accepted, "jump": jump, "picture": picture, "states": states})
    voice.say(
        f"{chains} chains, {made:,} steps of {sampler}: acceptance {accepted:.2f}, {jump:.3g} sites changed a step"
    )
    voice.say(f"{picture}, {states}")
    if not result.is_complete:
        raise SystemExit(
            f"discrax: interrupted after {made:,} of {steps:,} steps; the chains are where they were then."
        )
