"""A `dimod.Sampler` with the arguments of dwave-samplers' simulated annealing, to stand in its place.

    from discrax.interop.dimod import DiscraxSampler

    samples = DiscraxSampler().sample(bqm, num_reads=10, num_sweeps=1000)

Some things are not as there. A read returns the best state that its chain met, not the last one. Beta changes after
every sweep, so that `num_sweeps_per_beta` must divide `num_sweeps` but has no further effect. Where initial states are
given, reads begin half way between the ends of `beta_range`, so as not to lose what they were given. Ctrl-C and SIGTERM
end a search with what it has found.
"""

import inspect
from collections.abc import Callable, Hashable, Sequence
from time import perf_counter_ns
from typing import Any

import dimod
import numpy as np
from jaxtyping import Int8, Integer

from discrax.core.checks import describe, whole
from discrax.core.interrupts import Interrupts
from discrax.core.memory import check_memory
from discrax.problems.problem import BinaryQuadratic
from discrax.problems.qubo import QUBO
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.schedules import check_betas
from discrax.solving.sites import search_by_sites

_KINDS = ("linear", "geometric")


def quadratic_of(bqm: dimod.BinaryQuadraticModel) -> tuple[BinaryQuadratic, tuple[Hashable, ...]]:
    """The negative energy, which is to be made large, as a function of x in {0, 1}^n, and the names of the variables.

    A spin is s = 2 x - 1.
    """
    model = QUBO(bqm).model
    assert isinstance(model, BinaryQuadratic)
    return model, tuple(bqm.variables)


class DiscraxSampler(dimod.Sampler, dimod.Initialized):
    """Simulated annealing, one chain for each read."""

    def __init__(self):
        _, *names, _ = inspect.signature(self.sample).parameters  # between the model and what is unknown
        self._parameters = {name: [] for name in names} | {"beta_schedule_type": ["beta_schedule_options"]}
        self._properties = {"beta_schedule_options": _KINDS}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """What `sample` takes, as dimod asks, and which properties say more about it."""
        return self._parameters

    @property
    def properties(self) -> dict[str, Any]:
        """The schedules there are."""
        return self._properties

    # More than ten parameters: they are those of dwave-samplers.
    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        beta_range: Sequence[float] | None = None,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        num_sweeps_per_beta: int = 1,
        beta_schedule_type: str = "geometric",
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        beta_schedule: None = None,
        initial_states: Any = None,
        initial_states_generator: str = "random",
        randomize_order: bool = False,
        proposal_acceptance_criteria: str = "Metropolis",
        **kwargs: Any,
    ) -> dimod.SampleSet:
        """States of low energy, a read each, in no order. Energies, labels and vartype are those of `bqm`.

        Args:
            beta_range: the first and the last inverse temperature; by default, chosen to suit the biases (and None in
                the samples' `info`).
            num_reads: by default, as many as there are initial states, or 1.
            num_sweeps: visits to every variable in a read, 1000 by default.
            beta_schedule_type: "geometric" or "linear".
            seed: the same seed gives the same samples. By default, a random one.
            interrupt_function: asked now and then; once it says True, what has been found so far is returned.
            initial_states: where reads begin; see `dimod.Initialized` for what is accepted.
            initial_states_generator: "random", "tile" or "none": where further initial states come from.
            beta_schedule, randomize_order, proposal_acceptance_criteria: as they are by default, or not at all.
        """
        began = perf_counter_ns()
        self.remove_unknown_kwargs(**kwargs)
        if beta_schedule is not None or randomize_order or proposal_acceptance_criteria != "Metropolis":
            raise ValueError(
                "DiscraxSampler goes through the variables in order, accepts by Metropolis, and follows a schedule by "
                "its name, so leave out beta_schedule, randomize_order and proposal_acceptance_criteria."
            )
        if interrupt_function is not None and not callable(interrupt_function):
            raise TypeError(f"interrupt_function is a function, but got {interrupt_function!r}.")
        num_sweeps = 1000 if num_sweeps is None else num_sweeps
        betas = _check_schedule(num_sweeps, num_sweeps_per_beta, beta_range, beta_schedule_type)
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        seed = whole("seed", seed, least=0, most=2**32 - 1)
        states = self._first_states(bqm, num_reads, initial_states, initial_states_generator, seed)
        searching = perf_counter_ns()
        if bqm.num_variables and num_sweeps:
            init, budget = None if initial_states is None else states, SearchBudget(num_steps=int(num_sweeps))
            settings = {"num_chains": len(states), "init": init, "betas": betas, "schedule": beta_schedule_type}
            states = _search(bqm, budget, seed, interrupt_function, settings)
        times = began, searching, perf_counter_ns()
        values = 2 * states - 1 if bqm.vartype is dimod.SPIN else states
        samples = dimod.SampleSet.from_samples_bqm((values, tuple(bqm.variables)), bqm)
        samples.info.update(beta_range=betas, beta_schedule_type=beta_schedule_type)
        parts = ("preprocessing_ns", "sampling_ns", "postprocessing_ns")
        samples.info["timing"] = dict(zip(parts, np.diff([*times, perf_counter_ns()]).tolist(), strict=True))
        return samples

    def _first_states(
        self, bqm: Any, num_reads: int | None, initial_states: Any, generator: str, seed: int
    ) -> Int8[np.ndarray, "reads n"]:
        """Codes 0 and 1, a row a read, in the order of the model's variables."""
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise TypeError(f"What to sample is a dimod.BinaryQuadraticModel, but got {describe(bqm)}.")
        if num_reads is not None:
            whole("num_reads", num_reads, least=1)
            check_memory(f"{num_reads:,} reads", 40.0 * num_reads * bqm.num_variables, "use fewer num_reads")
        try:
            given: Any = {"initial_states": initial_states, "initial_states_generator": generator}
            parsed = self.parse_initial_states(bqm, num_reads=num_reads, seed=seed, **given)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "initial_states are states of the model's variables, and their generator is 'random', 'tile' or "
                f"'none', but: {error}."
            ) from error
        order = [parsed.initial_states.variables.index(variable) for variable in bqm.variables]
        return (parsed.initial_states.record.sample[:, order] > 0).astype(np.int8)


def _search(
    bqm: dimod.BinaryQuadraticModel,
    budget: SearchBudget,
    seed: int,
    interrupt_function: Callable[[], bool] | None,
    settings: dict[str, Any],
) -> Integer[np.ndarray, "reads n"]:
    """The best state that each read meets, as codes 0 and 1."""
    with Interrupts() as interrupts:

        def is_asked_to_stop() -> bool:
            interrupts.requested = interrupts.requested or (interrupt_function is not None and interrupt_function())
            return interrupts.requested

        clock = Clock(budget, is_asked_to_stop=is_asked_to_stop)
        model, _ = quadratic_of(bqm)
        *_, last = search_by_sites(model, budget=budget, seed=seed, num_rounds=1, clock=clock, **settings)
    return last.best_states


def _check_schedule(
    num_sweeps: int, num_sweeps_per_beta: int, beta_range: Sequence[float] | None, kind: str
) -> tuple[float, float] | None:
    """The inverse temperatures at both ends; None where they are left open."""
    if kind not in _KINDS:
        raise ValueError(f"beta_schedule_type is one of {', '.join(_KINDS)}, but got {kind!r}.")
    whole("num_sweeps_per_beta", num_sweeps_per_beta, least=1)
    whole("num_sweeps", num_sweeps)
    if num_sweeps < 0 or num_sweeps % num_sweeps_per_beta:
        raise ValueError(
            f"num_sweeps is not negative and a multiple of num_sweeps_per_beta = {num_sweeps_per_beta}, "
            f"but got {num_sweeps}."
        )
    if beta_range is None:
        return None
    try:
        return check_betas(beta_range, may_be_equal=True)
    except ValueError:
        raise ValueError(
            f"beta_range is two inverse temperatures, 0 < first <= last, but got {describe(beta_range)}."
        ) from None
