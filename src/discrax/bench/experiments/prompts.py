"""Prompt tuning as cells: prompts that are like a set of images, and how like them the best of every run is.

A cell's target has the images. With the folder of a CLIP checkpoint and a file of image embeddings they are those;
without, they are made up by a random tower: directions of hidden prompts whose first half, the style, is the same,
plus noise. The budget counts runs (num_chains) and steps (num_samples). The sampler is a kernel, or `Relaxation`.

`clip_similarity` is the mean and the standard deviation over runs of the mean similarity to all images, of the best
prompt that a run has been at.
"""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Experiment, Number, Timing, check_complete, target_of
from discrax.text.clip import ClipConfig, read_clip
from discrax.text.prompts import (
    ClipPrompt,
    PromptTarget,
    continuous_relaxation,
    made_up_images,
    random_prompt,
    read_embeddings,
    sampled_prompts,
)

TOWER = ClipConfig(
    vocab_size=1000,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=40,
    projection_dim=64,
)
_NUM_IMAGES, _HIDDEN_LENGTH, _NOISE = 32, 16, 2.0


def images_in_one_style(
    length: int, seed: int = 0, checkpoint: str | None = None, images: str | None = None
) -> PromptTarget:
    """The target of prompts of a length; with a checkpoint alone, images are made up by its tower."""
    if images is not None and checkpoint is None:
        raise ValueError("Embeddings of images were given without the folder of the CLIP that made them.")
    if checkpoint is None:
        prompt, allowed = random_prompt(seed, TOWER)
    else:
        clip = read_clip(checkpoint)
        prompt = ClipPrompt(clip.tower, clip.tokenizer.start, clip.tokenizer.end)
        allowed = clip.tokenizer.is_word
    if images is None:
        made = made_up_images(seed, prompt, allowed, count=_NUM_IMAGES, length=_HIDDEN_LENGTH, noise=_NOISE)
    else:
        made = read_embeddings(Path(images))
    return PromptTarget(prompt, made, length, len(allowed), allowed=allowed)


@dataclass(frozen=True)
class Relaxation:
    """The continuous relaxation, in a sampler's place."""

    learning_rate: float = 0.1
    weight_decay: float = 0.1


def tuning() -> Experiment:
    """Runs the cell's sampler and keeps the best prompt of every run."""

    def run(cell: Cell) -> tuple[list[Number], Timing]:
        target, method, budget = target_of(cell.target), cell.sampler(), cell.budget
        assert isinstance(target, PromptTarget)
        key = jax.random.key(cell.seed)
        if isinstance(method, Relaxation):
            found = continuous_relaxation(
                key,
                target,
                num_runs=budget.num_chains,
                num_steps=budget.num_samples,
                learning_rate=method.learning_rate,
                weight_decay=method.weight_decay,
            )
        else:
            found = sampled_prompts(
                key, target, method, num_chains=budget.num_chains, num_steps=budget.num_samples, progress=False
            )
        check_complete(found)
        # No prompt can be nearer to all images than their mean direction is.
        most = float(np.linalg.norm(np.asarray(target.directions).mean(axis=0)))
        numbers = [
            Number("clip_similarity", float(found.similarities.mean()), float(found.similarities.std())),
            Number("largest_possible", most),
            Number("time_s", found.seconds),
        ]
        return numbers, Timing(seconds=found.seconds, compile_seconds=found.compile_seconds)

    return Experiment(run)
