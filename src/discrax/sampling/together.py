"""Several runs as one compiled program: targets of one shape, kernels of one kind, each run with its own arrays.

Small problems leave a GPU idle and cost a compilation each. Here one program steps all runs; each is tuned by itself,
and its draws are those that `sample` would give it.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array, PRNGKeyArray

from discrax.core.driver import Adapter
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.samplers import build_kernel
from discrax.sampling.fingerprint import fingerprint
from discrax.sampling.folder import RunFolder
from discrax.sampling.plan import Plan
from discrax.sampling.result import Result
from discrax.sampling.run import Run
from discrax.sampling.sample import adapters_of, draw


# The parameters of `sample`, for several runs.
@reads_user_code()
@listening()
def sample_together(
    keys: Sequence[PRNGKeyArray],
    targets: Sequence[Target],
    samplers: Sequence[str | Kernel],
    *,
    num_chains: int,
    num_warmup: int,
    num_samples: int,
    thinning: int = 1,
    init: Sequence[Array | np.ndarray | None] | None = None,
    keep: str | Callable[[Array], Any] = "draws",
    adaptation: Sequence[Adapter | Sequence[Adapter] | str | None] | None = None,
    folder: str | Path | None = None,
) -> list[Result]:
    """`sample` for each (key, target, sampler), all in one program. They must differ in the values of arrays only.

    With a folder the same call goes on with runs that ended early; `discrax.load` reads the first of them only.
    """
    plan = Plan(num_warmup, num_samples, thinning, keep)
    for target in targets:
        check_target(target)
        plan.check(target, num_chains)
    adaptations = ["auto"] * len(targets) if adaptation is None else adaptation
    kernels = [build_kernel(*part) for part in zip(samplers, targets, strict=True)]
    for part in zip(adaptations, kernels, targets, strict=True):
        adapters_of(*part)  # what cannot tune it says so before anything is compiled
    starts = [None] * len(targets) if init is None else init
    runs = [
        Run.prepare(key, target, kernel, num_chains, x)
        for key, target, kernel, x in zip(keys, targets, kernels, starts, strict=True)
    ]
    with Interrupts() as interrupts, ExitStack() as opened:
        store = None
        if folder is not None:
            parts = {"keys": keys, "targets": targets, "samplers": kernels, "adaptation": adaptations}
            parts["init"] = [None if x is None else np.asarray(x) for x in starts]
            words = fingerprint(keys[0], targets[0], None, plan, num_chains, parts)
            store = opened.enter_context(RunFolder(folder, targets[0], plan, words))
        results = draw(Run.stack(runs), adaptations, plan, interrupts, store)
        interrupts.raise_if_requested()
    return results
