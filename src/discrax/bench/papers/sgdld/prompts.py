"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics": prompt tuning.

Prompts are looked for that CLIP holds to be like a set of images in one style: beta_t grows in equal steps to 300, as
0.1 t does in the paper's 3,000 steps, h = 1, one image a mini-batch, ten runs. CR is the continuous relaxation of Wen
et al. (2023) with their settings.

The model is that in the folder that the variable DISCRAX_CLIP names, with the image embeddings in the .npy file that
DISCRAX_CLIP_IMAGES names; without the file images are made up by the model, and without a model, by a small random
tower. Its similarities have nothing to do with the printed ones, and the printed order, SGDLD before CR before noC, is
not that of the random tower: there CR is best at every length. Near a good prompt a gradient tells little of what a
change of a token does (on towers of this kind its correlation with exact changes was below 0.3), which may be why.

With h = 1 most caches hold a single mini-batch, so that SGDLD and noC hardly differ. With h = 0.2 they hold about five;
these rows are not in print.
"""

import os
from collections.abc import Iterator

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Size, Table, suite

VARIABLE, IMAGES_VARIABLE = "DISCRAX_CLIP", "DISCRAX_CLIP_IMAGES"
LENGTHS = {Size.QUICK: (4, 8), Size.DEFAULT: (4, 8, 16, 32), Size.PAPER: (4, 8, 16, 32)}
BUDGETS = {Size.QUICK: Budget(5, 0, 300), Size.DEFAULT: Budget(10, 0, 1000), Size.PAPER: Budget(10, 0, 3000)}


def _methods(num_steps: int) -> dict[str, Call]:
    def sampler(step_size: float, cache: bool) -> Call:
        return call("discrax.text.prompts:prompt_sampler", num_steps=num_steps, step_size=step_size, cache=cache)

    return {
        "SGDLD": sampler(1.0, True),
        "SGDLD-noC": sampler(1.0, False),
        "CR": call("discrax.bench.experiments.prompts:Relaxation"),
        "SGDLD, h = 0.2": sampler(0.2, True),
        "SGDLD-noC, h = 0.2": sampler(0.2, False),
    }


@suite(
    "sgdld/table03",
    "prompt tuning: similarity of the best prompts to images in one style, by a random tower unless DISCRAX_CLIP "
    "names a checkpoint",
    Table(
        "Similarity of the best prompts to all images (print: another model and other images, which it does not name, "
        "so that absolute similarities cannot agree)",
        "sgdld", 3, "clip_similarity", "clip_similarity", ("prompt_length",), rows=("sampler",), compares=False,
    ),
    Table(
        "The largest similarity that anything could have", "", 0, "largest_possible", "largest_possible",
        ("prompt_length",), rows=("sampler",),
    ),
    Table("Seconds, without compilation", "", 0, "time_s", "time_s", ("prompt_length",), rows=("sampler",)),
)  # fmt: skip
def table03(size: Size) -> Iterator[Cell]:
    budget = BUDGETS[size]
    files = {"checkpoint": os.environ.get(VARIABLE), "images": os.environ.get(IMAGES_VARIABLE)}
    named = {name: value for name, value in files.items() if value is not None}
    for length in LENGTHS[size]:
        for name, sampler in _methods(budget.num_samples).items():
            yield Cell(
                labels=(("task", "prompt-tuning"), ("prompt_length", str(length)), ("sampler", name)),
                target=call("discrax.bench.experiments.prompts:images_in_one_style", length=length, **named),
                sampler=sampler,
                budget=budget,
                adaptation=None,
                measure=call("discrax.bench.experiments.prompts:tuning"),
                is_timed=True,
            )


ALIASES = {"sgdld/prompts": ("sgdld/table03",)}
