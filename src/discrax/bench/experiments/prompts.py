"""Prompt tuning as cells: prompts that are like a set of images, and how like them the best of every run is.

A cell's target has the images. With the folder of a CLIP checkpoint and a file of image embeddings they are those;
without, they are made up by a random tower: directions of hidden prompts whose first half, the style, is the same,
plus noise. The budget counts runs (num_chains) and steps (num_samples). The sampler is a kernel, or `Relaxation`.

`clip_similarity` is the mean and the standard deviation over runs of the mean similarity to all images, of the best
prompt that a run has been at.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import jax
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, Timing, check_complete, experiment, input_of
from discrax.text import prompts
from discrax.text.clip import SMALL, read_clip

TOWER = replace(SMALL, vocab_size=1000, hidden_size=64, intermediate_size=128, projection_dim=64)
_NUM_IMAGES, _HIDDEN_LENGTH, _NOISE = 32, 16, 2.0


def images_in_one_style(
    length: int, seed: int = 0, checkpoint: str | None = None, images: str | None = None
) -> prompts.PromptTarget:
    """The target of prompts of a length; with a checkpoint alone, images are made up by its tower."""
    if images is not None and checkpoint is None:
        raise ValueError("Embeddings of images were given without the folder of the CLIP that made them.")
    if checkpoint is None:
        prompt, allowed = prompts.random_prompt(seed, TOWER)
    else:
        clip = read_clip(checkpoint)
        prompt = prompts.ClipPrompt(clip.tower, clip.tokenizer.start, clip.tokenizer.end)
        allowed = clip.tokenizer.is_word
    if images is None:
        made = prompts.made_up_images(seed, prompt, allowed, count=_NUM_IMAGES, length=_HIDDEN_LENGTH, noise=_NOISE)
    else:
        made = prompts.read_embeddings(Path(images))
    return prompts.PromptTarget(prompt, made, length, len(allowed), allowed=allowed)


@dataclass(frozen=True)
class Relaxation:
    """The continuous relaxation, in a sampler's place."""

    learning_rate: float = 0.1
    weight_decay: float = 0.1


@experiment
def tuning(cell: Cell) -> Measured:
    """Runs the cell's sampler and keeps the best prompt of every run."""
    target: prompts.PromptTarget = input_of(cell.target)
    method = cell.sampler()
    key, runs, steps = jax.random.key(cell.seed), cell.budget.num_chains, cell.budget.num_samples
    if isinstance(method, Relaxation):
        found = prompts.continuous_relaxation(key, target, num_runs=runs, num_steps=steps, **asdict(method))
    else:
        found = prompts.sampled_prompts(key, target, method, num_chains=runs, num_steps=steps, progress=False)
    check_complete(found)
    # No prompt can be nearer to all images than their mean direction is.
    most = float(np.linalg.norm(np.asarray(target.directions).mean(axis=0)))
    numbers = [
        Number("clip_similarity", float(found.similarities.mean()), float(found.similarities.std())),
        Number("largest_possible", most),
        Number("time_s", found.seconds),
    ]
    return numbers, Timing(seconds=found.seconds, compile_seconds=found.compile_seconds)
