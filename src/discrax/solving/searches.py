"""How to search: each of these owns its settings, `solve(key, problem, Temper(num_rungs=32))`, and refuses no other's.

- `Sites`: annealing and tempering site by site, a chain on every core. The search for CPUs.
- `Sets`: independent sets and cliques, by reductions and moves of their own. For CPUs too.
- `Anneal`: many chains whose temperature falls together, by a sampler. Of plain binary problems they are replicas that
  are swept colour by colour (`discrax.solving.replicas`), thousands on an accelerator.
- `Temper`: parallel tempering with a ladder that tunes itself, by a sampler or by such replicas, which also exchange
  clusters of sites where graphs are sparse.
- `Population`: population annealing: replicas of plain binary problems that are copied or dropped as they cool.

All but the first take `num_chains` of all of them; what is left open is chosen for the problem and the machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from discrax.core import random
from discrax.core.checks import describe, whole
from discrax.core.kernel import Kernel
from discrax.core.memory import num_cores
from discrax.problems.problem import BinaryQuadratic, Labelling, Problem
from discrax.solving.clock import SearchBudget
from discrax.solving.drive import plan_phases, search_with
from discrax.solving.eliminations import search_remainders
from discrax.solving.engine import Report
from discrax.solving.protocol import SWEEPS, Annealed, Scheduled, Search, Task, are_told_apart, check_numba, has_numba
from discrax.solving.schedules import KINDS, make_schedule

_MOST_NODES_FOR_SETS = 5_000  # on 10^5 nodes the search of sets stands still where others do not
_MOST_SITES_TO_TEMPER = 10_000  # where tempering and annealing were as good as each other on an accelerator
_NUM_RUNGS = 16  # of a sampler's ladder
_BYTES_PER_LEVEL = 40  # of a site of a chain of a sampler: codes, log-ratios, and what a step makes of them


@dataclass(frozen=True)
class Sites(Annealed):
    """Annealing site by site on the CPU, a chain a thread; also `schedule="tempering"`. See `discrax.solving.sites`.

    `num_threads`: as many as there are cores by default.
    """

    name: ClassVar[str] = "sites"
    num_threads: int | None = None
    _kinds: ClassVar[tuple[str, ...]] = ("auto", "exponential", *KINDS, "tempering")
    _may_be_equal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_threads is not None:
            whole("num_threads", self.num_threads, least=1)

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        super().check(problems, budget)
        for problem in problems:
            if problem.model is None:
                raise ValueError(
                    f"Only a problem with a plain model can be searched site by site, but {problem!r} has none; use "
                    "dx.searches.Anneal()."
                )
        check_numba("Searching site by site")

    def sampler_for(self, problem: Problem) -> str:
        return "site by site"

    def usual_chains(self, problems: Sequence[Problem]) -> int:
        return num_cores()

    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        space, model = problems[0].space, problems[0].model
        labels = 8 * space.num_levels if isinstance(model, Labelling) else 0
        return float(num_chains * space.num_sites * (10 + labels))

    def reports(self, task: Task) -> Iterator[list[Report]]:
        with task.clock.compiling():  # its module loads a compiler
            from discrax.solving.sites import search_by_sites

        def search(models: list[Any], init: Any) -> Iterator[list[Report]]:
            reports = search_by_sites(
                models[0], num_chains=len(task.first_states[0]), seed=random.seed_of(task.key),
                budget=task.clock.budget, clock=task.clock, init=None if init is None else init[0], betas=self.betas,
                schedule=self.schedule, num_rounds=self.num_rounds, reheat=self.reheat or 0.0,
                num_threads=self.num_threads,
            )  # fmt: skip
            return ([report] for report in reports)

        return search_remainders(task, self.betas, search)


@dataclass(frozen=True)
class Sets(Search):
    """Independent sets and cliques on the CPU, a chain a thread: exact reductions, then edge weights and tabu swaps.
    See `discrax.solving.covers`.
    """

    name: ClassVar[str] = "sets"
    num_threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_threads is not None:
            whole("num_threads", self.num_threads, least=1)

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        check_numba("A search of sets")
        for problem in problems:
            if not _is_of_sets(problem):
                raise ValueError(
                    f"A search of sets is for MIS and MaxClique whose conflicts cost at least a node, but got "
                    f"{problem!r}; use dx.searches.Sites()."
                )

    def sampler_for(self, problem: Problem) -> str:
        return "edge weights and swaps"

    def usual_chains(self, problems: Sequence[Problem]) -> int:
        return num_cores()

    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        model: Any = problems[0].model
        return float(num_chains * (64 * model.num_sites + 24 * len(model.edges)))

    def reports(self, task: Task) -> Iterator[list[Report]]:
        with task.clock.compiling():  # its module loads a compiler
            from discrax.solving.covers import search_sets
        model, clock = task.problems[0].model, task.clock
        assert isinstance(model, BinaryQuadratic)
        init, num_chains = task.first_states[0] if task.is_given else None, len(task.first_states[0])
        reports = search_sets(
            model, num_chains=num_chains, seed=random.seed_of(task.key), init=init, budget=clock.budget, clock=clock,
            num_threads=self.num_threads,
        )  # fmt: skip
        return ([report] for report in reports)


class _BySampler(Search):
    """What searches share that have a sampler: a name, a kernel, or "auto"."""

    sampler: str | Kernel

    def _check_sampler(self) -> None:
        if not isinstance(self.sampler, str | Kernel):
            raise TypeError(f"sampler must be a name or a kernel, such as 'pas', but got {describe(self.sampler)}.")

    def _sweeps(self, problem: Problem) -> bool:
        """Whether replicas are swept: of plain binary problems, where nothing else is asked for."""
        is_open = isinstance(self.sampler, str) and self.sampler in ("auto", "chromatic")
        return is_open and isinstance(problem.model, BinaryQuadratic)

    def _kernel(self, problem: Problem) -> str | Kernel:
        if not isinstance(self.sampler, str) or self.sampler != "auto":
            return self.sampler
        return "pas" if problem.space.totals is None else "swap"

    def sampler_for(self, problem: Problem) -> str:
        if self._sweeps(problem):
            return SWEEPS
        kernel = self._kernel(problem)
        return kernel if isinstance(kernel, str) else type(kernel).__name__

    def can_go_on(self, problem: Problem) -> bool:
        return not self._sweeps(problem)

    def usual_chains(self, problems: Sequence[Problem]) -> int:
        if self._sweeps(problems[0]):
            from discrax.solving.replica_chains import suitable_number

            return suitable_number(_models(problems))
        return 32 if jax.default_backend() == "cpu" else 256

    def _needed(self, problems: Sequence[Problem], num_chains: int, places: int) -> float:
        """Of as many chains at each of some places, or of replicas, of which each place has one at least."""
        if self._sweeps(problems[0]):
            from discrax.solving.replica_chains import needed_bytes

            return needed_bytes(_models(problems), max(num_chains, places))
        space, size = problems[0].space, max(problem.space.num_sites for problem in problems)
        num_levels = 1 if space.has_two_levels else space.num_levels
        needed = places * num_chains * size * num_levels * _BYTES_PER_LEVEL
        if problems[0].model is not None:
            needed += len(problems) * max(_coupling_bytes(problem.model, size) for problem in problems)
        return float(needed)


@dataclass(frozen=True)
class Anneal(Annealed, _BySampler):
    """Annealing by a sampler, many chains at a time; see the module, and `discrax.solving.annealing`.

    `sampler`: any of `discrax.samplers`. With "auto", replicas of plain binary problems are swept, and others are
    sampled by "pas".
    """

    name: ClassVar[str] = "anneal"
    sampler: str | Kernel = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_sampler()

    def group(self, problems: Sequence[Problem]) -> list[list[int]]:
        """All binary ones share a program, whatever their sizes."""
        binary = [i for i, problem in enumerate(problems) if isinstance(problem.model, BinaryQuadratic)]
        others = [[i] for i in range(len(problems)) if i not in set(binary)]
        return sorted(([binary] if binary else []) + others)

    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        return self._needed(problems, num_chains, 1 if self._sweeps(problems[0]) else len(problems))

    def reports(self, task: Task) -> Iterator[list[Report]]:
        if self._sweeps(task.problems[0]):
            kind = "linear" if self.schedule == "auto" else _plain(self.schedule)
            return _search_replicas(task, self.betas, plan_phases(kind, self.num_rounds, self.reheat or 0.0))
        return self._by_sampler(task)

    def _by_sampler(self, task: Task) -> Iterator[list[Report]]:
        from discrax.solving.annealing import anneal

        problems, x = task.problems, task.first_states[0][None]
        schedules = [make_schedule(problem, self.schedule, self.betas, task.clock) for problem in problems]
        targets: list[Any] = [problem.target for problem in problems[:1]]
        if len(problems) > 1:
            from discrax.solving.padding import pad

            targets, x = pad(problems, task.first_states)
        rounds = {"num_rounds": self.num_rounds or 1, "reheat": self.reheat or 0.0, "devices": task.devices}
        rounds["checkpoint"] = task.checkpoint
        offsets = [_offset(problem) for problem in problems]
        for reports in anneal(task.key, targets, self._kernel(problems[0]), x, schedules, task.clock, **rounds):
            yield [report.shift(offset) for report, offset in zip(reports, offsets, strict=True)]


@dataclass(frozen=True)
class Temper(Scheduled, _BySampler):
    """Parallel tempering by a sampler; see the module, and `discrax.solving.tempering`.

    - `num_rungs`: of the ladder of temperatures; by default 16, or of replicas what a short anneal finds.
    - `schedule` and `betas` say where the rungs are in the beginning.
    - `clusters`: whether replicas at one temperature exchange clusters; by default where a site has few neighbours.
    """

    name: ClassVar[str] = "temper"
    sampler: str | Kernel = "auto"
    num_rungs: int | None = None
    clusters: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_sampler()
        if self.num_rungs is not None:
            whole("num_rungs", self.num_rungs, least=2)
        if self.clusters is not None and not isinstance(self.clusters, bool):
            raise TypeError(f"clusters must be True, False or None, but got {describe(self.clusters)}.")

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        for problem in problems:
            if self.clusters and not self._sweeps(problem):
                raise ValueError(
                    f"Clusters are exchanged between replicas that are swept, but {problem!r} is sampled by "
                    f"{self.sampler_for(problem)!r}; leave out clusters."
                )
            if self.schedule != "auto" and self._sweeps(problem):
                raise ValueError(
                    f"The rungs of replicas are found by a short anneal, so they have no schedule, but got "
                    f"{self.schedule!r}; leave it out, or name a sampler."
                )

    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        return self._needed(problems, num_chains, self.num_rungs or _NUM_RUNGS)

    def reports(self, task: Task) -> Iterator[list[Report]]:
        if self._sweeps(task.problems[0]):
            settings = {"num_rungs": self.num_rungs, "clusters": self.clusters}
            return _search_replicas(task, self.betas, plan_phases("tempering", None, 0.0), **settings)
        return self._by_sampler(task)

    def _by_sampler(self, task: Task) -> Iterator[list[Report]]:
        from discrax.solving.tempering import temper

        (problem,), (first,) = task.problems, task.first_states
        schedule = make_schedule(problem, self.schedule, self.betas, task.clock)
        x = np.stack([first] * (self.num_rungs or _NUM_RUNGS))  # hot rungs soon leave them
        reports = temper(
            task.key, problem.target, self._kernel(problem), x, schedule, task.clock, task.devices, task.checkpoint
        )
        for report in reports:
            yield [report.shift(_offset(problem))]


@dataclass(frozen=True)
class Population(Scheduled):
    """Population annealing of plain binary problems: replicas are swept, and copied or dropped as beta grows, so that
    they stay a sample of the law at each temperature. `num_chains` is the size of the population.
    """

    name: ClassVar[str] = "population"

    def check(self, problems: Sequence[Problem], budget: SearchBudget) -> None:
        for problem in problems:
            if not isinstance(problem.model, BinaryQuadratic):
                raise ValueError(
                    f"Population annealing is for plain binary problems, but got {problem!r}; use dx.searches.Anneal()."
                )

    def group(self, problems: Sequence[Problem]) -> list[list[int]]:
        return [list(range(len(problems)))]

    def usual_chains(self, problems: Sequence[Problem]) -> int:
        from discrax.solving.replica_chains import suitable_number

        return suitable_number(_models(problems))

    def needed_bytes(self, problems: Sequence[Problem], num_chains: int) -> float:
        from discrax.solving.replica_chains import needed_bytes

        return needed_bytes(_models(problems), num_chains)

    def reports(self, task: Task) -> Iterator[list[Report]]:
        kind = "linear" if self.schedule == "auto" else _plain(self.schedule)
        return _search_replicas(task, self.betas, plan_phases(kind, None, 0.0), kind="population")


SEARCHES: dict[str, type[Search]] = {each.name: each for each in (Sites, Sets, Anneal, Temper, Population)}


def find_search(search: Any) -> Search | None:
    """A search by its name or as it is; None where the problem is to choose."""
    if search is None or (isinstance(search, str) and search == "auto"):
        return None
    if isinstance(search, Search):
        return search
    if isinstance(search, type) and issubclass(search, Search):
        raise TypeError(f"search must be an object, so write {search.__name__}() instead of {search.__name__}.")
    if not isinstance(search, str) or search not in SEARCHES:
        raise ValueError(
            f"search must be one of auto, {', '.join(SEARCHES)}, or of dx.searches, but got {describe(search)}."
        )
    return SEARCHES[search]()


def choose_search(problem: Problem, is_spread: bool) -> Search:
    """Where it is left open: sets by a search of their own, large ones site by site, wherever there is a CPU. Other
    problems of a plain form are searched site by site on a CPU; on an accelerator replicas of binary ones are tempered,
    or annealed where there are many sites. All others are annealed.
    """
    if has_numba() and not is_spread:
        is_of_sets = _is_of_sets(problem)
        if is_of_sets and problem.space.num_sites <= _MOST_NODES_FOR_SETS and are_told_apart(problem):
            return Sets()
        if problem.model is not None and (is_of_sets or jax.default_backend() == "cpu"):
            return Sites()
    is_small = problem.space.num_sites <= _MOST_SITES_TO_TEMPER and jax.default_backend() != "cpu"
    return Temper() if is_small and isinstance(problem.model, BinaryQuadratic) else Anneal()


def _is_of_sets(problem: Problem) -> bool:
    from discrax.problems.independent_set import MIS, MaxClique

    return isinstance(problem, MIS | MaxClique) and bool((problem.node_weights > 0).all())


def _search_replicas(
    task: Task, betas: tuple[float, float] | None, plan: Any, **settings: Any
) -> Iterator[list[Report]]:
    from discrax.solving.replica_chains import ReplicaChains

    def search(models: list[Any], init: Any) -> Iterator[list[Report]]:
        num_chains = len(task.first_states[0])
        chains = ReplicaChains(task.key, models, num_chains, devices=task.devices, **settings)
        return search_with(chains, init, task.clock, betas, plan)

    return search_remainders(task, betas, search)


def _models(problems: Sequence[Problem]) -> list[Any]:
    return [problem.model for problem in problems]


def _offset(problem: Problem) -> float:
    """What the value of a model has beyond the target's."""
    model: Any = problem.model
    return float(getattr(getattr(model, "form", model), "offset", 0.0))


def _plain(schedule: str) -> str:
    return "geometric" if schedule == "exponential" else schedule


def _coupling_bytes(model: Any, size: int) -> float:
    """Of a matrix, or of neighbour lists that are as long as the longest."""
    longest = int(np.bincount(model.edges.ravel(), minlength=1).max()) if len(model.edges) else 0
    return size * min(4.0 * size, 8.0 * longest) if longest else 0.0


__all__ = ["Anneal", "Population", "Search", "Sets", "Sites", "Temper"]
