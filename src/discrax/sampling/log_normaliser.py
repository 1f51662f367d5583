"""`log_normaliser`: log Z = log sum_x exp(log_prob(x)) of any target, by one of several methods."""

import inspect
from collections.abc import Callable
from typing import Any

from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core.checks import yes_or_no
from discrax.core.interrupts import listening
from discrax.core.kernel import Kernel
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.sampling.annealed import anneal_chains
from discrax.sampling.normaliser import Normaliser
from discrax.sampling.population import population_normaliser
from discrax.sampling.tempered_normaliser import temper_chains

_METHODS: dict[str, Callable[..., Normaliser]] = {
    "annealing": anneal_chains,
    "population": population_normaliser,
    "tempering": temper_chains,
}


@reads_user_code()
@listening()
def log_normaliser(
    key: PRNGKeyArray,
    target: Target,
    method: str = "annealing",
    *,
    reference: ArrayLike | Target | None = None,
    sampler: str | Kernel | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Normaliser:
    """log Z of a target, with a standard error and an interval of 95 %.

    - `method`: "annealing" weighs independent chains (annealed importance sampling). Its settings are `num_chains`
      (100), `num_temperatures` (1000), `steps` of the sampler at every temperature (1), and `devices`, as in
      `discrax.sample`. "population" also copies and drops particles on the way (`discrax.anneal_population`): it copes
      with targets at which chains fall apart into a few that count. Its settings are `num_particles` (1000),
      `num_populations` (8), `steps` (5) and `ess` (0.9). "tempering" exchanges states along a ladder
      (`discrax.Ladder`): its chains cross between modes as long as they run. Its settings are `num_chains` (8),
      `num_rungs` ("auto"), `num_warmup` (1000), `num_samples` (1000) and `steps` between exchanges (1).
    - `reference`: where both begin: the probabilities of independent sites, of 1 (or +1) for two levels, (*shape), else
      (*shape, levels), or a target of such sites; uniform by default. The nearer to the target, the better.
    - `sampler`: a registry name or a kernel. One that has a scale for an acceptance rate is tuned to it along the way;
      any other is used as it is. By default sweeps by colours where the path allows them, else "pas".
    """
    check_target(target)
    yes_or_no("progress", progress is not None and progress)
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"method must be {' or '.join(map(repr, _METHODS))}, but got {method!r}.")
    engine = _METHODS[method]
    shared = {"key", "target", "reference", "sampler", "progress"}
    known = [name for name in inspect.signature(engine).parameters if name not in shared]
    for name in settings:
        if name not in known:
            raise TypeError(f"The method {method!r} has no setting {name!r}, but it has {', '.join(known)}.")
    return engine(key, target, reference=reference, sampler=sampler, progress=progress, **settings)
