"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics": prompt tuning.

Prompts are looked for that CLIP holds to be like a set of images in one style: beta_t grows in equal steps to 300, as
0.1 t does in the paper's 3,000 steps, h = 1, one image a mini-batch, ten runs. CR is the continuous relaxation of Wen
et al. (2023) with their settings.

The model is that in the folder that the variable DISCRAX_CLIP names, with the image embeddings in the .npy file that
DISCRAX_CLIP_IMAGES names; without the file images are made up by the model, and without a model, by a small random
tower. Its similarities have nothing to do with the printed ones, and the printed order, SGDLD before CR before noC, is
not that of the random tower: there CR is best at every length. Near a good prompt a gradient tells little of what a
change of a token does (on towers of this kind its correlation with exact changes was below 0.3), which may be why.

*Print contradicts the algorithm here.* With its h = 1 algorithm 1 leaves every state at once, so that no cache ever
holds a second mini-batch: SGDLD and SGDLD-noC are one and the same chain, and their numbers are equal. Print has 0.42
and 0.37 for them, at every length far more than its errors apart. So other values of h have rows, and a variant in
which each place moves by itself ("all places"): there a chain with h = 1 stays for a step with probability 1/e or so.
"""

import os
from collections.abc import Iterator

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Size, Table, suite

VARIABLE, IMAGES_VARIABLE = "DISCRAX_CLIP", "DISCRAX_CLIP_IMAGES"
LENGTHS = {Size.QUICK: (4, 8), Size.DEFAULT: (4, 8, 16, 32), Size.PAPER: (4, 8, 16, 32)}
BUDGETS = {Size.QUICK: Budget(5, 0, 300), Size.DEFAULT: Budget(10, 0, 3000), Size.PAPER: Budget(10, 0, 3000)}
_OTHER_STEPS = (0.5, 0.2, 0.1, 0.05)


def _methods(num_steps: int) -> dict[str, Call]:
    def pair(suffix: str, step_size: float, moves: str = "one") -> dict[str, Call]:
        settings = {"num_steps": num_steps, "step_size": step_size, "moves": moves}
        return {
            f"{name}{suffix}": call("discrax.text.prompts:prompt_sampler", **settings, cache=cache)
            for name, cache in (("SGDLD", True), ("SGDLD-noC", False))
        }

    found = pair("", 1.0) | {"CR": call("discrax.bench.experiments.prompts:Relaxation")}
    for h in _OTHER_STEPS:
        found |= pair(f", h = {h:g}", h)
    return found | pair(", all places", 1.0, "all") | pair(", all places, h = 0.2", 0.2, "all")


@suite(
    "sgdld/table03",
    "prompt tuning: similarity of the best prompts to images in one style, by a random tower unless DISCRAX_CLIP "
    "names a checkpoint; with print's h = 1 SGDLD and SGDLD-noC are one chain, so other h are there",
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
