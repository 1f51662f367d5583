"""log Z from a tempered run: stepping stones between its rungs (`log_normaliser_estimates.py`)."""

from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core.kernel import Kernel
from discrax.core.target import Target, check_target
from discrax.sampling.annealed import kernel_along
from discrax.sampling.ladder import Ladder
from discrax.sampling.log_normaliser_estimates import log_normaliser_of_path
from discrax.sampling.normaliser import Normaliser
from discrax.sampling.path import law_of_sites
from discrax.sampling.sample import sample


def temper_chains(
    key: PRNGKeyArray,
    target: Target,
    *,
    reference: ArrayLike | Target | None = None,
    sampler: str | Kernel | None = None,
    num_chains: int = 8,
    num_rungs: int | str = "auto",
    num_warmup: int = 1000,
    num_samples: int = 1000,
    steps: int = 1,
    progress: bool | None = None,
) -> Normaliser:
    """log Z by `sample(..., tempering=Ladder(...))`, with `steps` steps of the sampler between exchanges."""
    check_target(target)
    kernel = kernel_along(target, sampler)
    first = None if reference is None else law_of_sites(target.space, reference)
    ladder = Ladder(num_rungs=num_rungs, reference=first, num_steps=steps)
    settings: dict[str, Any] = {
        "num_chains": num_chains,
        "num_warmup": num_warmup,
        "num_samples": num_samples,
        "progress": progress,
    }
    result = sample(key, target, kernel, tempering=ladder, **settings)
    if not result.is_complete:  # a part of the draws is not what was asked for, as with the other methods
        raise KeyboardInterrupt
    report = result.tempering
    assert report is not None
    if np.isnan(report.log_first):
        raise ValueError(
            "Tempering finds log Z from that of its first law, which is not known where log_prob is -inf at some "
            "states; use method='annealing' or 'population'."
        )
    found, ratios = report.log_normaliser, np.asarray(report.log_ratios)
    assert found is not None
    each = np.array([log_normaliser_of_path(of[None], report.betas, report.log_first).log_Z for of in ratios])
    half = 1.96 * found.error
    weights = np.exp(each - each.max())
    num_effective = float(weights.sum() ** 2 / (weights**2).sum())
    interval = (found.log_Z - half, found.log_Z + half)
    states = np.asarray(result.draws).reshape(-1, *target.space.shape)
    return Normaliser(found.log_Z, found.error, interval, num_effective, each, states, report.exchange_rates)
