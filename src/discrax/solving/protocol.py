"""What every search is: an object that owns its settings, checks them, and runs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Integer, PRNGKeyArray

from discrax.core.checks import number, whole
from discrax.core.devices import Devices
from discrax.problems.problem import Problem
from discrax.solving.clock import Clock, SearchBudget
from discrax.solving.engine import Report
from discrax.solving.schedules import KINDS, check_betas

_MOST_ROUNDS = 100_000
_MOST_UNITS = 2**26  # of all nodes in a search of sets
_FEWEST_UNITS = 256  # that the median of weights is to have there
SWEEPS = "sweeps"  # what stands for a sampler where replicas are swept


@runtime_checkable
class Resumable(Protocol):
    """Chains whose state can be told and taken up again, as what JSON takes and arrays."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Where they are now."""
        ...

    def restore(self, about: dict[str, Any], arrays: dict[str, np.ndarray], file: Path) -> None:
        """Takes them to where others, of the same search, were, by what a file has of these."""
        ...


class Checkpoint:
    """Where the chains of a search are: one that is killed goes on from there as if it had not been killed."""

    def __init__(self, saved: tuple[dict[str, Any], dict[str, np.ndarray], Path] | None = None):
        self._saved = saved
        self._chains: Resumable | None = None

    def follow(self, chains: Resumable) -> None:
        """Takes new chains to where an earlier part of the search has left off; `state` is theirs from now on."""
        if self._saved is not None:
            chains.restore(*self._saved)
        self._chains = chains

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Of the chains; None before there are any."""
        return None if self._chains is None else self._chains.state()


class Task(NamedTuple):
    """What a search is given."""

    key: PRNGKeyArray
    problems: Sequence[Problem]
    first_states: Sequence[Integer[np.ndarray, "chains _"]]
    is_given: bool  # whether the user gave them
    clock: Clock
    devices: Devices | None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Search(ABC):
    """How to search, whatever the problem. `num_chains`: how many searches at a time."""

    name: ClassVar[str]
    num_chains: int | None = None

    def __post_init__(self) -> None:
        if self.num_chains is not None:
            whole("num_chains", self.num_chains, least=1)

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        """Raises a sentence about what this search cannot do; the others it can."""
        return

    def group(self, problems: Sequence[Problem]) -> list[list[int]]:
        """Which problems share a program."""
        return [[i] for i in range(len(problems))]

    def sampler_for(self, problem: Problem) -> str:
        """The name of what makes the steps."""
        return SWEEPS

    def can_go_on(self, problem: Problem) -> bool:
        """Whether one of so many steps that was killed ends as if it had not been, where it has a folder."""
        return False

    @abstractmethod
    def usual_chains(self, problems: Sequence[Problem]) -> int:
        """The number of chains of problems that share a program, where it is left open."""

    @abstractmethod
    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        """About what problems that share a program take where programs run."""

    @abstractmethod
    def reports(self, task: Task) -> Iterator[list[Report]]:
        """Runs it: reports of all problems, a few times a second and at the end."""


@dataclass(frozen=True)
class Scheduled(Search):
    """`schedule`: how the inverse temperature grows, one of "auto", "geometric" (or "exponential"), "linear",
    "linear-temperature"; `betas`: where it begins and ends, by default where the problem freezes.
    """

    schedule: str = "auto"
    betas: tuple[float, float] | None = None
    _kinds: ClassVar[tuple[str, ...]] = ("auto", "exponential", *KINDS)
    _may_be_equal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.schedule, str) or self.schedule not in self._kinds:
            also = "; dx.searches.Temper tempers" if self.schedule == "tempering" else ""
            raise ValueError(f"Unknown schedule {self.schedule!r}; {self.name} knows: {', '.join(self._kinds)}{also}.")
        if self.betas is not None:
            object.__setattr__(self, "betas", check_betas(self.betas, may_be_equal=self._may_be_equal))


@dataclass(frozen=True)
class Annealed(Scheduled):
    """`num_rounds`: equal anneals one after another, each but the first from where the chains are and with the share
    `reheat` of the schedule done. By default anneals from new states, each longer than those before.
    """

    num_rounds: int | None = None
    reheat: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "tempering" and (self.num_rounds is not None or self.reheat is not None):
            raise ValueError("num_rounds and reheat are of anneals, but the schedule is 'tempering'.")
        if self.num_rounds is not None:
            whole("num_rounds", self.num_rounds, least=1, most=_MOST_ROUNDS)
        if self.reheat is not None:
            number("reheat", self.reheat, least=0, below=1)
            if (self.num_rounds or 1) < 2:
                raise ValueError(
                    "reheat is where the rounds after the first begin, so it needs num_rounds of at least 2."
                )

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        if self.num_rounds is not None and budget.num_steps is not None:
            whole("num_rounds", self.num_rounds, least=1, most=budget.num_steps)


def has_numba() -> bool:
    """Whether compiled loops can be had."""
    return find_spec("numba") is not None


def check_numba(what: str) -> None:
    """Raises a sentence where it is missing."""
    if not has_numba():
        raise ImportError(f"{what} needs numba: pip install 'discrax[solve]'.")


def unit_of(weights: Float[np.ndarray, " n"]) -> float:
    """Of nodes in a search of sets, which counts them in whole units that add up to less than a limit: one that makes
    all of them whole, if there is one.
    """
    if (weights == weights[0]).all():
        return float(weights[0])
    is_whole = (weights == np.round(weights)).all() and weights.sum() < _MOST_UNITS
    return 1.0 if is_whole else float(weights.sum()) / _MOST_UNITS


def are_told_apart(problem: Any) -> bool:
    """Whether a search of sets sees more of most weights than noughts."""
    units = problem.node_weights / unit_of(problem.node_weights)
    return bool((units == np.round(units)).all()) or float(np.median(units)) >= _FEWEST_UNITS
