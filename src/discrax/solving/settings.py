"""What can be said of a search, checked in one place: every mistake ends in a sentence before the search begins."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Integer

from discrax.core.checks import describe, number, whole
from discrax.core.devices import Devices, find_devices
from discrax.core.memory import check_memory
from discrax.problems.problem import Problem
from discrax.solving.clock import SearchBudget
from discrax.solving.searches import Search, Sets, Sites, Temper
from discrax.solving.solution import Solution

_SECONDS = 10.0  # if nothing is said


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


def find_search_devices(search: Search, devices: Any, problems: Sequence[Problem]) -> Devices | None:
    """The devices that a user asked for; a sentence where a search cannot be spread over them."""
    if devices is None:
        return None
    if isinstance(search, Sites | Sets):
        raise ValueError(
            "devices are for searches by samplers and replicas, such as 'anneal' and 'temper'; 'sites' and 'sets' have "
            "a chain on every core of this machine."
        )
    if jax.process_count() > 1:
        raise ValueError(
            f"A search goes by a clock, and each of {jax.process_count()} processes has its own; search in one process."
        )
    return find_devices(devices, problems[0].space, search.num_chains or 0, cuts_sites=False)


def count_chains(search: Search, problems: Sequence[Problem], devices: Devices | None) -> int:
    """Of problems that share a program: what was asked for, or what is usual, as many on every device."""
    num_devices = 1 if devices is None else devices.mesh.size
    return -(-(search.num_chains or search.usual_chains(problems)) // num_devices) * num_devices


def check_search_memory(search: Search, problems: Sequence[Problem], num_chains: int) -> None:
    """Refuses a search of problems that share a program, or of one, that would not fit into memory."""
    size = max(problem.space.num_sites for problem in problems)
    of_all = f" of {len(problems):,} problems" if len(problems) > 1 else ""
    ways = ["use fewer num_chains"]
    ways += ["fewer num_rungs"] if isinstance(search, Temper) else []
    ways += ["dx.searches.Sites()"] if problems[0].model is not None and not isinstance(search, Sites | Sets) else []
    needed = search.needed_bytes(problems, num_chains)
    check_memory(f"A search of {num_chains:,} chains{of_all} on {size:,} sites", needed, ", or ".join(ways))


def check_init(
    problems: Sequence[Problem], init: Any, num_chains: Any, usual_chains: int = 1
) -> list[Integer[np.ndarray, "chains _"]] | None:
    """The first states of each problem, one a chain and as many of each; None where they are left open.

    One state is that of every chain, and those of a solution are dealt to the chains in turn.
    """
    if init is None:
        return None
    if not isinstance(init, Sequence | np.ndarray) or len(init) != len(problems):
        count = f"{len(init)} for" if hasattr(init, "__len__") else f"{describe(init)} for"
        raise ValueError(f"init has an array of states for each problem, but got {count} {len(problems)} problems.")
    checked = []
    for problem, given in zip(problems, init, strict=True):
        states, space = _array(given.states if isinstance(given, Solution) else given), problem.space
        if isinstance(given, Solution) or states.shape == (space.num_sites,):
            states = np.resize(states, (num_chains or usual_chains, states.shape[-1]))
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
