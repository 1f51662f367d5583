"""A `dimod.Sampler` with the arguments of dwave-samplers' simulated annealing, to stand in its place.

    from discrax.interop.dimod import DiscraxSampler

    samples = DiscraxSampler().sample(bqm, num_reads=10, num_sweeps=1000)
    samples = DiscraxSampler().sample_cqm(cqm, time_limit=5)

Some things are not as there. A read returns the best state that its chain met, not the last one. With `time_limit` the
reads end after so many seconds, and where `num_sweeps` is not given, the schedule is as long as they allow. Where
initial states are given and `beta_range` is not, reads begin half way to the cold end, so as not to lose what they were
given. Ctrl-C and SIGTERM end a search with what it has found.
"""

import inspect
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter, perf_counter_ns
from typing import Any, NamedTuple

import dimod
import numpy as np
from jaxtyping import Float, Int8, Integer

from discrax.core.checks import describe, number, real_array, whole
from discrax.core.interrupts import Interrupts
from discrax.core.memory import check_memory, num_cores
from discrax.interop.dimod_cqm import problem, search, values_of
from discrax.problems.problem import BinaryQuadratic
from discrax.problems.qubo import QUBO
from discrax.solving.clock import SearchBudget
from discrax.solving.sites_chains import BinaryChains, Chains

__all__ = ["DiscraxSampler", "problem", "quadratic_of"]

_KINDS = ("linear", "geometric", "custom")
_SLICE = 0.03  # seconds between looks at the clock


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
        beta_schedule: Sequence[float] | None = None,
        initial_states: Any = None,
        initial_states_generator: str = "random",
        randomize_order: bool = False,
        proposal_acceptance_criteria: str = "Metropolis",
        time_limit: float | None = None,
        **kwargs: Any,
    ) -> dimod.SampleSet:
        """States of low energy, a read each, in no order. Energies, labels and vartype are those of `bqm`.

        Args:
            beta_range: the first and the last inverse temperature; by default, chosen to suit the biases. The samples'
                `info` has what was used.
            num_reads: by default, as many as there are initial states, or 1.
            num_sweeps: visits to every variable in a read, 1000 by default if there is no `time_limit`.
            num_sweeps_per_beta: at each inverse temperature of the schedule.
            beta_schedule_type: "geometric", "linear" or, with `beta_schedule`, "custom".
            beta_schedule: the inverse temperatures themselves, one after another.
            seed: the same seed gives the same samples. By default, a random one.
            interrupt_function: asked now and then; once it says True, what has been found so far is returned.
            initial_states: where reads begin; see `dimod.Initialized` for what is accepted.
            initial_states_generator: "random", "tile" or "none": where further initial states come from.
            time_limit: seconds for all reads together, which are annealed side by side.
            randomize_order, proposal_acceptance_criteria: as they are by default, or not at all.
        """
        began = perf_counter_ns()
        self.remove_unknown_kwargs(**kwargs)
        if randomize_order or proposal_acceptance_criteria != "Metropolis":
            raise ValueError(
                "DiscraxSampler goes through the variables in order and accepts by Metropolis, so leave out "
                "randomize_order and proposal_acceptance_criteria."
            )
        if interrupt_function is not None and not callable(interrupt_function):
            raise TypeError(f"interrupt_function is a function, but got {interrupt_function!r}.")
        schedule = _check_schedule(
            num_sweeps, num_sweeps_per_beta, beta_range, beta_schedule_type, beta_schedule, time_limit
        )
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        seed = whole("seed", seed, least=0, most=2**32 - 1)
        states = self._first_states(bqm, num_reads, initial_states, initial_states_generator, seed)
        searching = perf_counter_ns()
        if bqm.num_variables and schedule.num_sweeps != 0:
            chains = BinaryChains(quadratic_of(bqm)[0], len(states), seed)
            schedule = schedule.suit(chains, begins_half_way=initial_states is not None)
            init = None if initial_states is None else states
            states = _search(chains, schedule, init, interrupt_function)
        times = began, searching, perf_counter_ns()
        values = 2 * states - 1 if bqm.vartype is dimod.SPIN else states
        samples = dimod.SampleSet.from_samples_bqm((values, tuple(bqm.variables)), bqm)
        samples.info.update(beta_range=schedule.ends, beta_schedule_type=beta_schedule_type)
        parts = ("preprocessing_ns", "sampling_ns", "postprocessing_ns")
        samples.info["timing"] = dict(zip(parts, np.diff([*times, perf_counter_ns()]).tolist(), strict=True))
        return samples

    def sample_cqm(
        self,
        cqm: dimod.ConstrainedQuadraticModel,
        *,
        time_limit: float | None = None,
        num_reads: int = 1,
        num_sweeps: int | None = None,
        seed: int | None = None,
    ) -> dimod.SampleSet:
        """States of low energy within the constraints of a model, a read each; `is_feasible` says which ones are.

        Args:
            cqm: with a quadratic objective and linear constraints over binary variables and spins.
            time_limit: seconds for all reads together, which are searched side by side.
            num_sweeps: visits to every variable in a read instead, 1000 by default.
            seed: with sweeps, the same seed gives the same samples. By default, a random one.
        """
        if time_limit is not None and num_sweeps is not None:
            raise ValueError("Say how long to search by time_limit or by num_sweeps, not by both.")
        seconds = None if time_limit is None else number("time_limit", time_limit, above=0)
        sweeps = (
            None if seconds is not None else whole("num_sweeps", 1000 if num_sweeps is None else num_sweeps, least=1)
        )
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        reads, seed = whole("num_reads", num_reads, least=1), whole("seed", seed, least=0, most=2**32 - 1)
        states = search(cqm, SearchBudget(seconds, sweeps, counts_compilation=True), reads, seed)
        return dimod.SampleSet.from_samples_cqm(values_of(cqm, states), cqm)

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


class _Schedule(NamedTuple):
    """Inverse temperatures: between `ends`, or the ones that are given."""

    kind: str
    ends: tuple[float, float] | None
    given: Float[np.ndarray, " betas"] | None
    num_sweeps: int | None  # or as many as the seconds allow
    sweeps_per_beta: int
    seconds: float | None

    def suit(self, chains: Chains, begins_half_way: bool) -> "_Schedule":
        """With ends for the chains' model, if they are left open."""
        if self.ends is not None:
            return self
        hot, cold = chains.temperatures()
        return self._replace(ends=((hot + cold) / 2 if begins_half_way else hot, cold))

    def betas(self, first: int, count: int, seconds: float, per_sweep: float) -> Float[np.ndarray, " count"]:
        """Of the sweeps from the `first` on, which begin after so many seconds and take `per_sweep` each."""
        assert self.ends is not None
        hot, cold = self.ends
        if self.num_sweeps is None:
            assert self.seconds is not None
            p = np.minimum(1.0, (seconds + per_sweep * np.arange(count)) / max(self.seconds, 1e-9))
        else:
            place, last = (
                (first + np.arange(count)) // self.sweeps_per_beta,
                self.num_sweeps // self.sweeps_per_beta - 1,
            )
            if self.given is not None:
                return self.given[place]
            p = place / last if last else np.ones(count)
        return hot + (cold - hot) * p if self.kind == "linear" else hot * (cold / hot) ** p


def _search(
    chains: Chains,
    schedule: _Schedule,
    init: Integer[np.ndarray, "reads n"] | None,
    interrupt_function: Callable[[], bool] | None,
) -> Integer[np.ndarray, "reads n"]:
    """The best state that each read meets, as codes 0 and 1."""
    chains.compile()
    begin, done, per_sweep = perf_counter(), 0, 0.0
    num_threads = min(chains.num_chains, num_cores())
    bounds = np.linspace(0, chains.num_chains, num_threads + 1).astype(int).tolist()
    with Interrupts() as interrupts, ThreadPoolExecutor(num_threads) as pool:

        def everywhere(work: Callable[[int, int], None]) -> None:
            list(pool.map(work, bounds[:-1], bounds[1:]))

        everywhere(partial(chains.begin, init))
        while done != schedule.num_sweeps:
            spent = perf_counter() - begin
            left = np.inf if schedule.seconds is None else schedule.seconds - spent
            if left <= 0 or interrupts.requested or (interrupt_function is not None and interrupt_function()):
                break
            count = max(1, int(min(_SLICE, left) / per_sweep)) if per_sweep else 1
            count = count if schedule.num_sweeps is None else min(count, schedule.num_sweeps - done)
            everywhere(partial(chains.anneal, schedule.betas(done, count, spent, per_sweep)))
            done += count
            per_sweep = max(1e-9, (perf_counter() - begin - spent) / count)
        everywhere(chains.polish)
    return chains.report(done, 1.0, 0.0).best_states


def _check_schedule(
    num_sweeps: int | None,
    num_sweeps_per_beta: int,
    beta_range: Sequence[float] | None,
    kind: str,
    beta_schedule: Sequence[float] | None,
    time_limit: float | None,
) -> _Schedule:
    """The schedule that is asked for; its ends may be left open."""
    if kind not in _KINDS:
        raise ValueError(f"beta_schedule_type is one of {', '.join(_KINDS)}, but got {kind!r}.")
    seconds = None if time_limit is None else number("time_limit", time_limit, above=0)
    each = whole("num_sweeps_per_beta", num_sweeps_per_beta, least=1)
    if num_sweeps is not None and (whole("num_sweeps", num_sweeps) < 0 or num_sweeps % each):
        raise ValueError(
            f"num_sweeps is not negative and a multiple of num_sweeps_per_beta = {each}, but got {num_sweeps}."
        )
    ends = None if beta_range is None else _check_ends(beta_range, kind)
    if (kind == "custom") != (beta_schedule is not None):
        raise ValueError("beta_schedule and beta_schedule_type='custom' go together, but one of them is missing.")
    if beta_schedule is None:
        num_sweeps = 1000 if num_sweeps is None and seconds is None else num_sweeps
        return _Schedule(kind, ends, None, num_sweeps, each, seconds)
    given = real_array("beta_schedule", beta_schedule)
    if given.ndim != 1 or not len(given) or (given < 0).any():
        raise ValueError("beta_schedule is one inverse temperature after another, none negative, but got others.")
    if num_sweeps not in (None, len(given) * each):
        raise ValueError(
            f"A beta_schedule of {len(given)} has {len(given) * each} sweeps, but num_sweeps is {num_sweeps}."
        )
    if ends not in (None, (given[0], given[-1])):
        raise ValueError(
            f"A beta_schedule has its own ends, {given[0]:g} and {given[-1]:g}, but beta_range has others."
        )
    return _Schedule(kind, (float(given[0]), float(given[-1])), given, len(given) * each, each, seconds)


def _check_ends(beta_range: Sequence[float], kind: str) -> tuple[float, float]:
    """Two inverse temperatures; a geometric schedule cannot begin or end at 0."""
    try:
        first, last = real_array("beta_range", beta_range).tolist()
    except (TypeError, ValueError):
        first = last = -1.0
    if min(first, last) < 0 or (kind == "geometric" and min(first, last) == 0):
        above = "greater than 0" if kind == "geometric" else "not negative"
        raise ValueError(f"beta_range is two inverse temperatures, {above}, but got {describe(beta_range)}.")
    return first, last
