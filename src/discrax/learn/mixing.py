"""How fast samplers move on an energy model: mean log-probability against steps from a common start, and snapshots.

A kernel is tuned in a warm-up whose end is thrown away: the chains that are looked at begin again where it began, so
that all samplers have the same way before them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import checks, random
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.sampling import sample
from discrax.sampling.annealed import split_key
from discrax.sampling.normaliser import log_probs_of
from discrax.sampling.result import Result


class MixingCurve(NamedTuple):
    """The mean of log pi (unnormalised) over chains after so many steps, its standard error, and the tuned kernel."""

    steps: Integer[np.ndarray, " points"]  # the first is 0
    mean: Float[np.ndarray, " points"]
    error: Float[np.ndarray, " points"]
    acceptance: float
    kernel: Kernel


@reads_user_code()
@checks.checked_arguments
@listening()
def mixing_curves(
    key: PRNGKeyArray,
    target: Target,
    samplers: Mapping[str, str | Kernel],
    *,
    init: ArrayLike,
    num_steps: int,
    num_chains: int = 100,
    num_warmup: int = 500,
    every: int = 10,
    progress: bool | None = None,
) -> dict[str, MixingCurve]:
    """A curve for each sampler, by the name it is given here.

    - `init`: codes of shape (*sites), where all chains begin, or (num_chains, *sites).
    - `num_warmup`: steps in which a kernel is tuned; 0 takes it as it is.
    - `every`: steps between the points of a curve.
    """
    key = random.as_threefry(key)
    if not isinstance(samplers, Mapping):
        raise TypeError(
            f"samplers must map names to samplers, such as {{'pas': 'pas'}}, but got {checks.describe(samplers)}."
        )
    if not samplers:
        raise ValueError("mixing_curves needs at least one sampler.")
    check_target(target)
    if checks.whole("num_chains", num_chains) < 2:
        raise ValueError(f"A standard error takes at least two chains, but num_chains is {num_chains}.")
    _check_counts(num_steps, num_warmup, every)
    curves, shared = {}, {"num_chains": num_chains, "init": np.asarray(init), "progress": progress}
    with Interrupts() as interrupts:
        target.space.check(np.asarray(init))
        first = log_probs_of(target, np.broadcast_to(np.asarray(init), (num_chains, *target.space.shape)))
        for key_of_sampler, (name, sampler) in zip(split_key(key, len(samplers)), samplers.items(), strict=True):
            result = _run(key_of_sampler, target, sampler, _nothing, num_steps, num_warmup, every, **shared)
            interrupts.raise_if_requested()
            values = np.concatenate([first[:, None], result.stats["lp"]], axis=1).astype(np.float64)
            steps, acceptance = every * np.arange(values.shape[1]), float(result.stats["accept_prob"].mean())
            error = values.std(axis=0, ddof=1) / np.sqrt(num_chains)
            curves[name] = MixingCurve(steps, values.mean(axis=0), error, acceptance, result.kernel)
    return curves


@reads_user_code()
@checks.checked_arguments
def snapshots(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel,
    *,
    num_chains: int = 100,
    num_steps: int = 10_000,
    every: int = 1000,
    num_warmup: int = 500,
    init: ArrayLike | None = None,
    progress: bool | None = None,
) -> Integer[np.ndarray, "snapshots chains *shape"]:
    """Where the chains are every so many steps, the first time after `every`; they begin at random by default."""
    key = random.as_threefry(key)
    check_target(target)
    checks.whole("num_chains", num_chains, least=1)
    _check_counts(num_steps, num_warmup, every)
    shared = {"num_chains": num_chains, "init": None if init is None else np.asarray(init), "progress": progress}
    result = _run(key, target, sampler, "draws", num_steps, num_warmup, every, **shared)
    assert result.draws is not None
    return np.moveaxis(result.draws, 1, 0)


def _run(
    key: PRNGKeyArray,
    target: Target,
    sampler: str | Kernel,
    keep: Any,
    num_steps: int,
    num_warmup: int,
    every: int,
    **shared: Any,
) -> Result:
    """The run after the kernel was tuned; its draws are `every` steps apart. Both take the `shared` settings."""
    for_tuning, for_run = split_key(key, 2)
    if num_warmup:
        tuning = {"num_warmup": num_warmup, "num_samples": 1, "keep": _nothing}
        sampler = _sample(for_tuning, target, sampler, **tuning, **shared).kernel
    settings = {"num_warmup": 0, "num_samples": num_steps // every, "thinning": every, "adaptation": None}
    return _sample(for_run, target, sampler, keep=keep, **settings, **shared)


def _check_counts(num_steps: int, num_warmup: int, every: int) -> None:
    checks.whole("num_warmup", num_warmup, least=0)
    if checks.whole("every", every) < 1 or checks.whole("num_steps", num_steps) < every:
        raise ValueError(f"num_steps must be at least `every`, but got num_steps={num_steps} and every={every}.")


def _sample(*arguments: Any, **settings: Any) -> Result:
    """`sample` returns what it has on Ctrl-C; a part of a comparison is none."""
    result = sample(*arguments, **settings)
    if not result.is_complete:
        raise KeyboardInterrupt
    return result


def _nothing(x: Array) -> Array:
    """What is kept of a draw where only its statistics are wanted."""
    return jnp.zeros((), bool)
