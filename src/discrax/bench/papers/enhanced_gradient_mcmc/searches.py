"""The search for step sizes and radii of appendix H: short runs with one setting each, the longest mean jump wins.

Five values are tried first, then nine around the best of them (`rules.StepSearch` says which). Every value has a run of
its own from the same first states, with the same random numbers, and the jump is the mean over all of its steps and
chains, so those on the way to the mass of the target count too. PAVG is given its M first: that of the data, or what
one such run at its own step size estimates, from where its chains then begin; its gamma is tuned anew for every value,
by default in as many steps before those that count.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from discrax import targets
from discrax.adaptation.windows import turn
from discrax.bench.papers.enhanced_gradient_mcmc.convolutional import convolutional
from discrax.bench.papers.enhanced_gradient_mcmc.couplings import ising_lattice, lattice_couplings, pavg_of_data
from discrax.bench.papers.rules import StepSearch
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, Timing, check_complete, experiment, kernel_of, target_of
from discrax.core.kernel import Kernel
from discrax.sampling import Result, sample
from discrax.sampling.checks import NothingMovedError

_RESAMPLES = 400


@experiment
def longest_jumps(
    cell: Cell, knob: str, values: tuple[float, ...], metric: str, unit: float = 1.0, num_before: int | None = None
) -> Measured:
    """The value of a knob with the longest mean jump, in units of `unit`, as the metric; and the jump of each value.

    `num_before`: steps with each value before those that count; without it, as many where these tune, else none.
    The std of the choice is that of `_choice_std`, so that over the root of the number of chains it is how much another
    search would differ.
    """
    target = target_of(cell.target)
    kernel, states = kernel_of(cell, target), cell.make_init(target)
    num_steps, adapter, seconds = cell.budget.num_samples, cell.make_adapter(), 0.0
    if num_before is None:
        num_before = 0 if adapter is None else num_steps

    def run(kernel: Kernel, num_warmup: int, num_samples: int, adaptation: Any) -> Result:
        nonlocal seconds
        result = sample(
            jax.random.key(cell.seed), target, kernel, num_chains=cell.budget.num_chains, num_warmup=num_warmup,
            num_samples=num_samples, init=states, keep="moments", adaptation=adaptation, progress=False,
        )  # fmt: skip
        check_complete(result)
        seconds += result.seconds + result.warmup_seconds
        return result

    if not kernel.is_prepared:
        learnt = run(kernel, num_steps, 1, None)
        kernel, states = learnt.kernel, learnt.states.x
    search = StepSearch((knob,), values=values)
    plan, no_limits = search.first_plan(jnp.zeros(1)), jnp.array([[0.0], [jnp.inf]])
    tried, jumps = [], []
    for _ in range(len(values) + 9):
        value = search.trial(plan)
        turned = turn(target, kernel, (knob,), value * unit)
        try:
            made = run(turned, num_before, num_steps, adapter)
        except NothingMovedError as error:  # nor would it after warm-up
            jump, is_idle = np.zeros(cell.budget.num_chains), error.is_idle
        else:
            jump, is_idle = made.mean_stats["jump"], made.mean_stats["accept_prob"].mean() > 0.5
        tried.append(float(f"{float(value[0]):.6g}"))
        jumps.append(jump)
        plan = search.judge(plan, jnp.float32(jumps[-1].mean()), jnp.asarray(is_idle), no_limits)
    best = float(f"{float(search.best(plan)[0]):.6g}")
    numbers = [Number(metric, best, _choice_std(np.array(tried), np.array(jumps)))]
    for value, of_chains in sorted(dict(zip(tried, jumps, strict=True)).items()):
        numbers.append(Number("jump", float(of_chains.mean()), float(of_chains.std()), x=value))
    return numbers, Timing(seconds)


def _choice_std(values: np.ndarray, jumps: np.ndarray) -> float:
    """The spread of the choice between searches by other chains, times the root of their number.

    The chains of `jumps` (value, chain) are drawn again with replacement, the same ones for every value.
    """
    num_chains = jumps.shape[1]
    drawn = np.random.default_rng(0).integers(0, num_chains, (_RESAMPLES, num_chains))
    means = jumps[:, drawn].mean(axis=2)
    return float(values[means.argmax(axis=0)].std() * math.sqrt(num_chains))


def true_lattice() -> targets.Ising:
    """The model of table 1 whose couplings are to be learnt."""
    return targets.Ising.dense(2 * lattice_couplings(10, 0.2))


def pavg_of_lattice(step_size: float) -> Kernel:
    """PAVG with the covariance of the samples that the couplings of table 1 are learnt from."""
    return pavg_of_data(step_size).kernel(ising_lattice())


def pavg_of_network(step_size: float, **training_settings: Any) -> Kernel:
    """PAVG with the covariance of the samples that the couplings of table 2 are learnt from."""
    return pavg_of_data(step_size).kernel(convolutional(**training_settings))
