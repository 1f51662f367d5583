"""What can be said of a search, checked in one place: every mistake ends in a sentence before the search begins."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Integer

from discrax.core.checks import describe, number, whole
from discrax.core.devices import Devices, find_devices
from discrax.core.kernel import Kernel
from discrax.core.memory import check_memory, num_cores
from discrax.problems.problem import BinaryQuadratic, Labelling, Problem
from discrax.solving.clock import SearchBudget
from discrax.solving.schedules import KINDS, check_betas

METHODS = ("auto", "sites", "anneal", "temper")
_SECONDS = 10.0  # if nothing is said
_NUM_RUNGS = 16
_MOST_ROUNDS = 100_000
_BYTES_PER_LEVEL = 40  # of a site of a chain of a sampler: codes, log-ratios, and what a step makes of them


class Settings(NamedTuple):
    """How to search, whatever the problem: see `discrax.solve` for what each of them means."""

    method: str  # "sites", "anneal" or "temper"
    sampler: str | Kernel
    num_chains: int | None
    schedule: str
    betas: tuple[float, float] | None
    num_rounds: int | None
    reheat: float
    num_rungs: int
    devices: Devices | None = None  # over which the chains are spread

    @property
    def default_chains(self) -> int:
        """The number of chains where it is left open and the objective is cheap."""
        if self.method == "sites":
            return num_cores()
        return self.even(32 if jax.default_backend() == "cpu" else 256)

    def even(self, num_chains: int) -> int:
        """At least so many chains, as many on every device."""
        num_devices = 1 if self.devices is None else self.devices.mesh.size
        return -(-num_chains // num_devices) * num_devices

    def group(self, problems: Sequence[Problem]) -> list[list[int]]:
        """Which problems share a program: all, if they are binary and annealed, else each has its own."""
        shares = self.method == "anneal" and all(isinstance(problem.model, BinaryQuadratic) for problem in problems)
        return [list(range(len(problems)))] if shares else [[i] for i in range(len(problems))]

    def check_memory(self, problems: Sequence[Problem]) -> None:
        """Refuses a search of problems that share a program, or of one, that would not fit into memory."""
        num_chains = self.num_chains or self.default_chains
        places = self.num_rungs if self.method == "temper" else len(problems)
        space = problems[0].space
        size = max(problem.space.num_sites for problem in problems)
        num_levels = 1 if space.has_two_levels else space.num_levels
        model = problems[0].model
        if self.method == "sites":
            needed = num_chains * size * (10 + (8 * num_levels if isinstance(model, Labelling) else 0))
            way_out = "use fewer num_chains"
        else:
            needed = places * num_chains * size * num_levels * _BYTES_PER_LEVEL
            if model is not None:
                needed += len(problems) * max(_coupling_bytes(problem.model, size) for problem in problems)
            way_out = f"use fewer num_chains{' or num_rungs' if self.method == 'temper' else ''}" + (
                "" if model is None else ", or method='sites'"
            )
        of_rungs = f" on {places:,} rungs" if self.method == "temper" else ""
        of_all = f" of {len(problems):,} problems" if len(problems) > 1 else ""
        check_memory(f"A search of {num_chains:,} chains{of_rungs}{of_all} on {size:,} sites", needed, way_out)


def check_problems(problems: Any) -> list[Problem]:
    """Several problems, as a list."""
    if isinstance(problems, Problem):
        raise TypeError("solve_many takes several problems, but got one; use solve.")
    if not isinstance(problems, Sequence):
        raise TypeError(f"solve_many takes a list of problems, but got {describe(problems)}.")
    for problem in problems:
        if not isinstance(problem, Problem):
            raise TypeError(
                "What to solve must be a problem, such as discrax.problems.MIS(graph) or discrax.problems.QUBO(Q), "
                f"but got {describe(problem)}."
            )
    return list(problems)


def check_budget(seconds: Any, num_steps: Any, counts_compilation: bool) -> SearchBudget:
    """Seconds or steps; ten seconds if nothing is said."""
    if seconds is not None and num_steps is not None:
        raise ValueError("Say how long to search by seconds or by num_steps, not by both.")
    if num_steps is not None:
        return SearchBudget(num_steps=whole("num_steps", num_steps, least=1))
    seconds = _SECONDS if seconds is None else number("seconds", seconds, least=0)
    return SearchBudget(seconds, None, bool(counts_compilation))


def check_settings(
    problems: Sequence[Problem],
    budget: SearchBudget,
    *,
    method: Any,
    sampler: Any,
    num_chains: Any,
    schedule: Any,
    betas: Any,
    num_rounds: Any,
    reheat: Any,
    num_rungs: Any,
) -> Settings:
    """The settings of a method; those that it has no use for are refused."""
    method, sampler = _choose_method(method, sampler, problems)
    kinds = ("auto", "exponential", *KINDS) + (("tempering",) if method == "sites" else ())
    if not isinstance(schedule, str) or schedule not in kinds:
        if isinstance(schedule, str) and schedule == "tempering":
            raise ValueError(
                "schedule='tempering' is for method='sites'; method='temper' tempers with a sampler. "
                f"The method here is {method!r}."
            )
        raise ValueError(f"Unknown schedule {schedule!r}; known: {', '.join(kinds)}.")
    if betas is not None:
        betas = check_betas(betas, may_be_equal=method == "sites")
    if num_rungs is not None and method != "temper":
        raise ValueError(f"num_rungs is for method='temper', but the method here is {method!r}.")
    if num_rounds is not None or reheat is not None:
        if method == "temper" or schedule == "tempering":
            raise ValueError(
                "num_rounds and reheat are for annealing, methods 'sites' and 'anneal', not for tempering."
            )
        most = min(_MOST_ROUNDS, budget.num_steps or _MOST_ROUNDS)
        num_rounds = None if num_rounds is None else whole("num_rounds", num_rounds, least=1, most=most)
        if reheat is not None and (num_rounds or 1) < 2:
            raise ValueError("reheat is where the rounds after the first begin, so it needs num_rounds of at least 2.")
    num_chains = None if num_chains is None else whole("num_chains", num_chains, least=1)
    reheat = 0.0 if reheat is None else number("reheat", reheat, least=0, below=1)
    num_rungs = _NUM_RUNGS if num_rungs is None else whole("num_rungs", num_rungs, least=2)
    return Settings(method, sampler, num_chains, schedule, betas, num_rounds, reheat, num_rungs)


def _choose_method(method: Any, sampler: Any, problems: Sequence[Problem]) -> tuple[str, str | Kernel]:
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; known: {', '.join(METHODS)}.")
    if not isinstance(sampler, str | Kernel):
        raise TypeError(f"sampler must be a name or a kernel, such as 'pas', but got {describe(sampler)}.")
    is_open = isinstance(sampler, str) and sampler == "auto"
    has_model = all(problem.model is not None for problem in problems)
    if method == "auto":
        method = "sites" if is_open and has_model and jax.default_backend() == "cpu" and _has_numba() else "anneal"
    if method == "sites":
        if not has_model:
            raise ValueError("Only a problem with a quadratic or labelling model can be searched site by site.")
        if not _has_numba():
            raise ImportError("Searching site by site needs numba: pip install 'discrax[solve]'.")
        if not is_open:
            raise ValueError(f"A search site by site has no sampler, but got {sampler!r}; use method='anneal'.")
        return method, "site by site"
    return method, ("swap" if any(p.space.totals is not None for p in problems) else "pas") if is_open else sampler


def _has_numba() -> bool:
    return find_spec("numba") is not None


def spread_chains(settings: Settings, devices: Any, problems: Sequence[Problem]) -> Settings:
    """The settings with the devices that a user asked for; a sentence where a search cannot be spread over them."""
    if devices is None:
        return settings
    if settings.method == "sites":
        raise ValueError(
            "devices are for methods 'anneal' and 'temper'; 'sites' has a chain on every core of this machine."
        )
    if jax.process_count() > 1:
        raise ValueError(
            f"A search goes by a clock, and each of {jax.process_count()} processes has its own; search in one process."
        )
    found = find_devices(devices, problems[0].space, settings.num_chains or 0, cuts_sites=False)
    return settings._replace(devices=found)


def check_init(problems: Sequence[Problem], init: Any, num_chains: Any) -> list[Integer[np.ndarray, "chains _"]] | None:
    """The first states of each problem, one a chain and as many of each; None where they are left open."""
    if init is None:
        return None
    if not isinstance(init, Sequence | np.ndarray) or len(init) != len(problems):
        count = f"{len(init)} for" if hasattr(init, "__len__") else f"{describe(init)} for"
        raise ValueError(f"init has an array of states for each problem, but got {count} {len(problems)} problems.")
    checked = []
    for problem, given in zip(problems, init, strict=True):
        states, space = _array(given), problem.space
        wanted = (states.shape[0] if states.ndim and num_chains is None else num_chains, space.num_sites)
        if states.ndim != 2 or states.shape != wanted or not len(states):
            wanted = f"({'chains' if num_chains is None else num_chains}, {space.num_sites})"
            raise ValueError(f"init has one state a chain, shape {wanted}, but its shape is {states.shape}.")
        try:
            space.check(states.reshape(-1, *space.shape))
        except ValueError as error:
            raise ValueError(f"init holds states of the problem, but: {error}") from None
        checked.append(states.astype(space.dtype))
    if len({len(states) for states in checked}) > 1:
        raise ValueError("init has as many states for each problem, one a chain, but their numbers differ.")
    return checked


def _array(states: Any) -> np.ndarray:
    try:
        return np.asarray(states)
    except ValueError:
        raise ValueError("init has one state a chain, but got rows of different lengths.") from None


def _coupling_bytes(model: Any, size: int) -> float:
    """Of a matrix, or of neighbour lists that are as long as the longest."""
    longest = int(np.bincount(model.edges.ravel(), minlength=1).max()) if len(model.edges) else 0
    return size * min(4.0 * size, 8.0 * longest) if longest else 0.0
