"""What the tables of Sun et al. (2022) are made of: chains of one stated length, and the ESS that they have."""

import numpy as np

from discrax.bench.experiments.ess import ess_numbers, mix, movement, scalars
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measure, Number
from discrax.core.checks import number
from discrax.exact import scaling_at
from discrax.samplers.locally_balanced import PAS
from discrax.samplers.random_walk import RandomWalk
from discrax.sampling import Result

_REFERENCES = 10
_RULE = "first_negative"


def as_printed(statistic: str = "distance", share: float = 1.0) -> Measure:
    """All of the budget is run. `ESS` is that of a chain as long as it is, `ESS_shorter` of the last `share` of it.

    The ESS of a chain that is short beside its autocorrelation time depends on its length, so nothing is extrapolated,
    and a short one is comparable with print, which has the same length. Per second and per query it is not: those are
    given where chains are long enough only.
    """
    share = number("share", share, above=0, most=1)

    def keep(target):
        return scalars(statistic, target.space.shape, target.space.num_levels, _REFERENCES)

    def numbers(cell: Cell, result: Result) -> list[Number]:
        found = mix(result, result.kept, _RULE)
        length = result.num_draws * result.thinning
        part = result.kept[:, -max(4, round(share * result.num_draws)) :]
        shorter = found if share == 1 else mix(result, part, _RULE)
        of_references = found.per_step.mean(axis=0)
        made = movement(cell, result) + theory_numbers(result)
        made += [_effective("ESS", length * found.of_chains), _effective("ESS_shorter", length * shorter.of_chains)]
        made.append(Number("autocorrelation_times", found.autocorrelation_times))
        if found.is_long_enough:
            made += ess_numbers(result, found, per_chain=False)
        else:
            made.append(Number("ESS_per_step", float(found.of_chains.mean()), float(found.of_chains.std())))
        if len(of_references) > 1:
            made.append(Number("ESS_reference_std", float(of_references.std(ddof=1))))
            made.append(Number("num_references", len(of_references)))
        return made

    return Measure(keep, numbers)


def acceptance() -> Measure:
    """How often steps are accepted, and how far they go."""
    return Measure(lambda target: "moments", movement)


def _effective(metric: str, of_chains: np.ndarray) -> Number:
    return Number(metric, float(of_chains.mean()), float(of_chains.std()))


def theory_numbers(result: Result) -> list[Number]:
    """The unit of `discrax.exact.Scaling`, from lambda_1 of paths and lambda_2 of random walks at the last states."""
    kernel, states = result.kernel, result.states.x
    if isinstance(kernel, RandomWalk):
        return [Number("rwm_unit", scaling_at(result.target, states).unit)]
    if isinstance(kernel, PAS):
        return [Number("lbp_unit", scaling_at(result.target, states, kernel.balancing).unit)]
    return []
