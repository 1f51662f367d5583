"""`Ladder`: how a run is tempered, checked before anything is compiled, and made into a kernel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe, real_array, whole, yes_or_no
from discrax.core.kernel import Kernel
from discrax.core.stochastic import StochasticTarget
from discrax.core.target import Target, bare
from discrax.samplers import build_kernel
from discrax.sampling.auto import default_adapter
from discrax.sampling.checks import check_gradient, check_law
from discrax.sampling.houdayer import couplings_of
from discrax.sampling.ladder_tuning import LadderReport, LadderTuning, check_rule
from discrax.sampling.run import Run
from discrax.sampling.tempering import Tempering
from discrax.targets.between import between, log_normaliser_of_sites
from discrax.targets.coupling import Uncoupled

_HOTTEST = 1e-6  # not 0: a state that the target forbids stays forbidden, since 0 times -inf is not a number
_PILOT_RUNGS, _PILOT_STEPS = 12, 200
_MOST_RUNGS = 64
_TRIED, _AT_ONCE = 256, 16  # states at which a path is looked at before it is taken


@dataclass(frozen=True)
class Ladder:
    """How `discrax.sample` tempers a run: `discrax.sample(key, target, "pas", tempering=discrax.Ladder())`.

    A chain becomes a ladder of replicas, from a law that is easy to the target, which exchange their states. Draws are
    those of the target; `result.tempering` has exchange rates, round trips and log Z.

    Every rung is tuned to its own acceptance. But where a step changes a path of sites, hot rungs have no longer paths
    than the target's, or than a sixteenth of all sites: all rungs wait for the longest.

    - `num_rungs`: laws on the path. "auto" measures the barrier Lambda in a pilot and takes 2 Lambda + 1.
    - `betas`: the rungs themselves, increasing to 1; by default warm-up places them. A first one of 0 is taken as 1e-6.
    - `reference`: a law of the same space from which the path begins, such as independent sites; it must allow what the
      target allows. By default the path is of powers of the target, from the uniform law. With a reference a step costs
      more: states are evaluated anew after exchanges.
    - `num_steps`: of the sampler between exchanges; a draw is that many.
    - `clusters`: two replicas a rung, which exchange clusters of sites at which they differ (Houdayer's move), for spin
      glasses in two dimensions and other sparse pairwise couplings. A step costs somewhat more than twice as much.
    """

    num_rungs: int | str = "auto"
    betas: Sequence[float] | Array | np.ndarray | None = None
    reference: Target | None = None
    num_steps: int = 1
    clusters: bool = False

    def __post_init__(self):
        if isinstance(self.num_rungs, str):
            if self.num_rungs != "auto":
                raise ValueError(f'num_rungs must be "auto" or a whole number, but got {describe(self.num_rungs)}.')
        else:
            whole("num_rungs", self.num_rungs, most=10_000)
            if self.num_rungs < 2:
                raise ValueError(
                    f"A ladder must have two rungs or more, but num_rungs is {self.num_rungs}; without tempering there "
                    "is one."
                )
        whole("num_steps", self.num_steps, least=1)
        yes_or_no("clusters", self.clusters)
        if self.reference is not None and not isinstance(self.reference, Target):
            raise TypeError(f"reference must be a discrax Target, but got {describe(self.reference)}.")
        if self.betas is not None:
            object.__setattr__(self, "betas", self._checked_betas(self.betas))

    def _checked_betas(self, betas: Any) -> tuple[float, ...]:
        given = real_array("betas", betas)
        if given.ndim != 1 or len(given) < 2:
            raise ValueError(f"betas must be two or more numbers, but have shape {given.shape}.")
        if not (np.diff(given) > 0).all():
            raise ValueError(f"betas must increase from rung to rung, but they are {describe(given.tolist())}.")
        if given[0] < 0 or given[-1] != 1:
            raise ValueError(
                "betas must lie between 0 and 1 and end at 1, the target, but they run from "
                f"{given[0]:.6g} to {given[-1]:.6g}."
            )
        if self.num_rungs not in ("auto", len(given)):
            raise ValueError(f"num_rungs is {self.num_rungs}, but there are {len(given)} betas; leave one of them out.")
        return tuple(float(max(beta, _HOTTEST)) for beta in given)

    # --- What it makes of a run -----------------------------------------------------------------------------------

    def check(self, target: Target) -> None:
        """A sentence where there is no path to this target."""
        if isinstance(bare(target), StochasticTarget):
            raise ValueError(
                f"Exchanges of a ladder need log_prob itself, but {type(bare(target)).__name__} is known by "
                "mini-batches; temper a target that has it whole."
            )
        if self.reference is not None:
            between(self.reference, target)
        if self.clusters:
            couplings_of(target)
        _log_first(self.reference, target)

    def kernel(self, kernel: Kernel, target: Target, num_rungs: int | None = None) -> Tempering:
        """The kernel of a ladder whose rungs all have the given one."""
        betas = self.betas if self.betas is not None else first_betas(num_rungs or int(self.num_rungs))
        betas = jnp.asarray(betas, jnp.result_type(float))
        last = target if self.reference is None else between(self.reference, target)
        kernel = build_kernel(kernel, last)
        if not kernel.is_exact or isinstance(kernel, Tempering):
            why = "is a ladder itself" if isinstance(kernel, Tempering) else "does not leave its law invariant"
            raise ValueError(
                f"The rungs of a ladder need a kernel with one exact law, but {type(kernel).__name__} {why}; use "
                "another."
            )
        check_law(last, kernel)
        check_gradient(last, kernel)
        return Tempering.of(
            [kernel] * len(betas),
            last,
            betas=betas,
            reference=self.reference,
            couplings=couplings_of(target) if self.clusters else None,
            log_first=jnp.asarray(_log_first(self.reference, target), betas.dtype),
            num_steps=int(self.num_steps),
        )

    def tuning(self, adaptation: Any, kernel: Kernel, target: Target) -> LadderTuning:
        """The adapter of a ladder, from what a user asked for the kernel of each rung."""
        is_auto = isinstance(adaptation, str) and adaptation == "auto"
        rule = default_adapter(target, kernel) if is_auto else check_rule(adaptation)
        return LadderTuning(rule, places=self.betas is None)

    def measured(self, key: PRNGKeyArray, target: Target, kernel: Kernel, num_chains: int, init: Any) -> "Ladder":
        """With a number of rungs: where it is "auto", from the barrier that a pilot finds."""
        if self.betas is not None or self.num_rungs != "auto":
            return self
        run = Run.prepare(key, target, self.kernel(kernel, target, _PILOT_RUNGS), num_chains, init)
        run = run.tune(self.tuning("auto", kernel, target), _PILOT_STEPS)
        report = next(each for each in run.reports[0] if isinstance(each, LadderReport))
        return replace(self, num_rungs=rungs_for(report.barrier))


def can_temper(sampler: str | Kernel, target: Target) -> bool:
    """Whether a ladder of this sampler can be made at all."""
    try:
        Ladder(2).check(target)
        Ladder(2).kernel(build_kernel(sampler, target), target)
    except (ValueError, TypeError):
        return False
    return True


def check_ladder(tempering: Any, target: Target) -> bool:
    """Whether a run is tempered; a sentence where it cannot be."""
    if tempering is None:
        return False
    if not isinstance(tempering, Ladder):
        raise TypeError(
            f"tempering must be a ladder, such as discrax.Ladder(), or None, but got {describe(tempering)}."
        )
    tempering.check(target)
    return True


def rungs_for(barrier: float) -> int:
    """The number of rungs that makes most round trips for its cost: exchanges then are accepted half of the time."""
    return int(np.clip(math.ceil(2 * barrier) + 1, 3, _MOST_RUNGS))


def first_betas(num_rungs: int) -> Float[np.ndarray, " rungs"]:
    """Where the rungs are before anything is measured: closer where it is hot."""
    return np.maximum(np.linspace(0, 1, num_rungs) ** 2, _HOTTEST)


def _log_first(reference: Target | None, target: Target) -> float:
    """log Z of the law at b = 0, NaN where it is not known; a sentence where there is no path.

    The path is looked at from random states: the reference must be a number at all of them and allow what the target
    allows.
    """
    space, found = target.space, _values((reference, target))
    first, last = (np.zeros(_TRIED) if each is None else np.asarray(each) for each in found)
    for what, values in (("log_prob of the reference", first), ("log_prob of the target", last)):
        is_bad = np.isnan(values) | np.isposinf(values)
        if is_bad.any():
            raise ValueError(
                f"Every law of a path must be a number or -inf, but {what} is NaN or +inf at {int(is_bad.sum())} of "
                f"{_TRIED} random states."
            )
    is_missed = np.isneginf(first) & ~np.isneginf(last)
    if is_missed.any():
        raise ValueError(
            f"A reference must allow every state that the target allows, but of {_TRIED} random states it forbids "
            f"{int(is_missed.sum())} that the target does not; use a reference with positive probabilities."
        )
    if np.isneginf(last).any():
        return float("nan")  # how many states are allowed is not known
    if reference is None:
        return float(space.log_num_states())
    is_independent = isinstance(getattr(bare(reference), "coupling", None), Uncoupled) and space.totals is None
    return log_normaliser_of_sites(reference) if is_independent else float("nan")


@eqx.filter_jit
def _values(laws: tuple[Target | None, Target]) -> list[Float[Array, " states"] | None]:
    """Of laws of one space at random states."""
    space = laws[1].space
    x = jax.vmap(space.random)(random.split(jax.random.key(0), _TRIED))
    return [
        None if law is None else jax.lax.map(lambda x, law=law: law.log_prob(space.embed(x)), x, batch_size=_AT_ONCE)
        for law in laws
    ]
