"""Annealing and tempering site by site, compiled for CPUs: the search for models whose flips are cheap one at a time.

A sweep offers every site a Metropolis move at inverse temperature beta, which leaves the law proportional to
exp(beta v) invariant, where v is the model's value. An anneal takes beta from hot to cold along a straight line. Where
`betas` are not given,

    hot = 1 / sqrt(mean g_i^2),   the gains g_i of flips at uniform states,
    cold solves  sum_i |g_i| exp(-beta |g_i|) = median |g_i| / 4   over nonzero gains at a local maximum,

so that at the end next to nothing is left to gain by cooling on. How a budget is spent is `drive.py`'s affair. The
rungs of a ladder are at equal steps of sqrt(dv / dbeta) dbeta, which makes neighbours exchange equally often.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Integer

from discrax.core.memory import num_cores
from discrax.problems.problem import BoundedQuadratic, Labelling, LinearlyConstrained, PlainModel
from discrax.problems.products import Products
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.drive import check_size, plan_phases, search_with
from discrax.solving.engine import Report
from discrax.solving.schedules import KINDS, check_betas
from discrax.solving.sites_chains import BinaryChains, Chains, LabelChains

SCHEDULES = ("auto", *KINDS, "tempering")


# A door of its own to this search: what `solve` passes on, and what only this search has.
def search_by_sites(
    model: PlainModel,
    *,
    num_chains: int,
    seed: int,
    init: Integer[np.ndarray, "*chains n"] | None,
    budget: SearchBudget,
    betas: tuple[float, float] | None = None,
    schedule: str = "auto",
    num_rounds: int | None = None,
    reheat: float = 0.0,
    num_threads: int | None = None,
    clock: Clock | None = None,
) -> Iterator[Report]:
    """Reports about every 0.2 s and at the end. A step is a sweep; a round of tempering is one for each rung.

    Chains are independent, and the best use of a time budget is one for each core. With a budget of steps, results
    depend on the seed only. The states of `init` are kept if nothing better is found, and the first anneal
    begins half way to the cold end. `num_rounds` makes so many equal anneals of the budget instead, each but the first
    from where the chains are and with the share `reheat` of the schedule done. Local maxima at the end of an anneal,
    the scale of temperatures and compilation cost no steps; compilation costs no seconds either. `clock` is that of a
    search of which this is a part.
    """
    schedule = "geometric" if schedule == "exponential" else schedule
    _check(model, num_chains, init, budget, betas, schedule, num_threads)
    is_open = betas is None and schedule == "auto" and num_rounds is None
    chains = make_chains(model, num_chains, seed, is_open)
    num_threads = min(num_chains, num_threads or num_cores())
    plan = plan_phases(schedule, num_rounds, reheat)
    return search_with(chains, init, clock or Clock(budget), betas, plan, num_threads)


def make_chains(model: PlainModel, num_chains: int, seed: int, is_open: bool = False) -> Chains:
    """The chains of a kind of model; `is_open`: nobody asked for a schedule or for temperatures."""
    if isinstance(model, Labelling):
        return LabelChains(model, num_chains, seed)
    if isinstance(model, BoundedQuadratic):
        from discrax.solving.sites_swaps import SwapChains  # its loops are compiled when they are needed

        return SwapChains(model, num_chains, seed)
    if isinstance(model, LinearlyConstrained):
        from discrax.solving.sites_constrained import ConstrainedChains

        return ConstrainedChains(model, num_chains, seed)
    if isinstance(model, Products):
        from discrax.solving.polynomial_chains import PolynomialChains

        return PolynomialChains(model, num_chains, seed, may_walk=is_open)
    return BinaryChains(model, num_chains, seed)


def _check(
    model: PlainModel,
    num_chains: int,
    init: Integer[np.ndarray, "..."] | None,
    budget: SearchBudget,
    betas: tuple[float, float] | None,
    schedule: str,
    num_threads: int | None,
) -> None:
    num_sites, num_levels = (
        (model.num_nodes, model.num_labels) if isinstance(model, Labelling) else (model.num_sites, 2)
    )
    if num_sites == 0:
        raise ValueError("The model has no sites, so there is nothing to search. Give it at least one.")
    if num_levels < 1:
        raise ValueError(f"A labelling has at least one label, but got {num_levels}.")
    if init is not None:
        if init.shape not in ((num_sites,), (num_chains, num_sites)):
            raise ValueError(
                f"init has shape ({num_sites},) or ({num_chains}, {num_sites}), but got shape {init.shape}."
            )
        if init.min() < 0 or init.max() >= num_levels:
            raise ValueError(f"init has codes 0 to {num_levels - 1}, but got {init.min()} to {init.max()}.")
    check_size(num_chains, num_threads, budget)
    if betas is not None:
        check_betas(betas, may_be_equal=True)
    if schedule not in SCHEDULES:
        raise ValueError(f"The schedule is one of {', '.join(SCHEDULES)}, but got {schedule!r}.")
