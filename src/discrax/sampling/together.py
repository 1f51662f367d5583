"""Several runs as one compiled program: targets of one shape, kernels of one kind, each run with its own arrays.

Small problems leave a GPU idle and cost a compilation each. Here one program steps all runs; each is tuned by itself,
and its draws are those that `sample` would give it.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from discrax.core.driver import Adapter, Ensemble
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.samplers import build_kernel
from discrax.sampling.checks import chain_keys
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


@reads_user_code()
@listening()
def sample_on(
    keys: Sequence[PRNGKeyArray],
    results: Sequence[Result],
    *,
    num_done: int,
    num_samples: int,
    thinning: int = 1,
    keep: str | Callable[[Array], Any] = "draws",
    chunk_size: int | None = None,
    folder: str | Path | None = None,
) -> list[Result]:
    """More draws of each run, all in one program: from the states where they are, by their kernels as they are.

    `num_done` steps were made with these keys, those of warm-up among them; the draws are those of longer runs.
    """
    plan = Plan(0, num_samples, thinning, keep, chunk_size=chunk_size)
    for result in results:
        plan.check(result.target, result.num_chains)
    runs = [run_after(key, result, num_done) for key, result in zip(keys, results, strict=True)]
    with Interrupts() as interrupts, ExitStack() as opened:
        store = None
        if folder is not None:
            first, parts = results[0], {"num_done": num_done}
            words = fingerprint(keys[0], first.target, None, plan, first.num_chains, parts)
            store = opened.enter_context(RunFolder(folder, first.target, plan, words))
        run = runs[0] if len(runs) == 1 else Run.stack(runs)
        more = draw(run, [None] * len(runs), plan, interrupts, store)
        interrupts.raise_if_requested()
    return more


def run_after(key: PRNGKeyArray, result: Result, num_done: int) -> Run:
    """The run of a result after its last step, which was the `num_done`-th with this key."""
    states, kernel = on_device((result.states, result.kernel))
    ensemble = Ensemble(jnp.asarray(num_done, jnp.uint32), states, kernel)
    _, keys = chain_keys(key, result.num_chains)
    return Run((result.target,), result.target, keys, ensemble, states.x, ((),))


def on_device(tree: Any) -> Any:
    """With the arrays of NumPy as those of JAX."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf, tree)
