"""`solve`: from a problem to a solution that can be checked."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe
from discrax.core.interrupts import Interrupts, listening
from discrax.core.programs import reads_user_code
from discrax.problems.problem import Problem
from discrax.solving.clock import Clock
from discrax.solving.engine import Report
from discrax.solving.folder import Files, SearchFolder, word_of_search
from discrax.solving.search import SearchRun
from discrax.solving.searches import Search, choose_search, find_search
from discrax.solving.settings import (
    check_budget,
    check_init,
    check_problems,
    check_search_memory,
    count_chains,
    find_search_devices,
)
from discrax.solving.solution import Solution


# The verb: its parameters are what a user may say of a search, and all but two have defaults.
@listening()
def solve(
    key: PRNGKeyArray,
    problem: Problem,
    search: str | Search | None = None,
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    init: Integer[np.ndarray, "..."] | Solution | None = None,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    counts_compilation: bool = False,
    callback: Callable[[Report], Any] | None = None,
    progress: bool | None = None,
    folder: str | Path | None = None,
) -> Solution:
    """Searches for the best state of a problem. Ctrl-C or SIGTERM ends the search and returns the best so far.

    - `search`: one of `discrax.searches` with settings of its own, such as `dx.searches.Temper(num_rungs=32)`, or the
      name of one: "sites", "sets", "anneal", "temper", "population". What is chosen by default is told in
      `discrax.solving.searches.choose_search`.
    - `seconds` or `num_steps`: how long; ten seconds if nothing is said. Seconds are those of the whole call, repair in
      the end and all, compilation apart unless `counts_compilation`. A search that meets the problem's bound ends
      there.
    - `init`: states to begin with: one a chain, one for all, or a solution.
    - `devices`: over which chains are spread, as in `discrax.sample`; not for "sites".
    - `callback`: a function that hears of every report, a few times a second; the search ends if it returns something
      true.
    - `folder`: the best so far is kept there, every two seconds and at the end, in a file that is whole at any time;
      `Solution.load(folder, problem)` reads it. If the search ends early, however that comes, the same call goes on.
      One by a sampler ("anneal", "temper") of `num_steps` finds bit for bit what it would have found. In others every
      chain begins at the best state it had found, what is left of the budget is spent, and what is returned is no worse
      than what was there. A longer budget extends a search that was done.
    """
    if isinstance(problem, Sequence) and not isinstance(problem, str):
        raise TypeError("solve takes one problem, but got several; use solve_many.")
    _check_callback(callback)
    return solve_many(
        key, [problem], search, seconds=seconds, num_steps=num_steps, init=None if init is None else [init],
        devices=devices, counts_compilation=counts_compilation, progress=progress, folder=folder,
        callback=None if callback is None else lambda _, report: callback(report),
    )[0]  # fmt: skip


# The verb: its parameters are what a user may say of a search, and all but two have defaults.
@reads_user_code()
@listening()
def solve_many(
    key: PRNGKeyArray,
    problems: Sequence[Problem],
    search: str | Search | None = None,
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    init: Sequence[Integer[np.ndarray, "..."] | Solution] | None = None,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    counts_compilation: bool = False,
    callback: Callable[[int, Report], Any] | None = None,
    progress: bool | None = None,
    folder: str | Path | None = None,
) -> list[Solution]:
    """`solve` for several problems, of any kinds and sizes. Binary ones that are annealed share one program and all of
    the budget; others are solved one after the other, each with its share of `seconds`. A folder has a file of each.
    `callback` is handed the number of a problem and its report.
    """
    key, problems = random.as_threefry(key), check_problems(problems)
    budget, asked = check_budget(seconds, num_steps, counts_compilation), find_search(search)
    _check_callback(callback)
    searches = [asked or choose_search(problem, devices is not None) for problem in problems]
    if asked is not None:
        asked.check(problems, budget)
    groups = _groups(problems, searches)
    usual = groups[0][0].usual_chains([problems[j] for j in groups[0][1]]) if groups and init is not None else 1
    given = check_init(problems, init, None if asked is None else asked.num_chains, usual)
    plans = []
    for its, group in groups:
        together = [problems[j] for j in group]
        its_devices = find_search_devices(its, devices, together)
        num_chains = count_chains(its, together, its_devices) if given is None else len(given[0])
        check_search_memory(its, together, num_chains)
        plans.append((its, group, its_devices, num_chains))
    found: dict[int, Solution] = {}
    with Interrupts() as interrupts, ExitStack() as opened:
        clock = Clock(budget)
        store = None if folder is None else opened.enter_context(SearchFolder(folder, problems, budget))
        files = []
        for i, (its, group, its_devices, num_chains) in enumerate(plans):
            asked = (random.fold_in(key, i), [problems[j] for j in group], its, num_chains)
            init = None if given is None else [given[j] for j in group]
            word = None if store is None else word_of_search(*asked, init, budget, its_devices)
            files.append(Files(store, group, word))
        for i, (its, group, its_devices, num_chains) in enumerate(plans):
            if files[i].done:
                found.update(zip(group, files[i].done, strict=True))
                continue
            share, its_key = budget, random.fold_in(key, i)
            if budget.num_steps is not None:
                share = budget._replace(num_steps=max(0, budget.num_steps - files[i].num_steps))
            if budget.seconds is not None:
                # Each problem has an equal part of what those before it have left, and has spent some of it already.
                left = clock.seconds_left() - sum(each.seconds for each in files[:i])
                part = len(group) / sum(len(other) for _, other in groups[i:])
                share = budget._replace(seconds=max(0.0, part * left - files[i].seconds))
            begins = files[i].init(num_chains) or (None if given is None else [given[j] for j in group])
            if files[i].num_steps:  # other random numbers than before
                its_key = random.fold_in(its_key, files[i].num_steps)
            own_clock = Clock(share, is_asked_to_stop=lambda: interrupts.requested)
            together = [problems[j] for j in group]
            run = SearchRun(
                its_key, together, its, num_chains, its_devices, begins, own_clock, interrupts, files[i], callback
            )
            found.update(zip(group, run.run(progress), strict=True))
    return [found[j] for j in range(len(problems))]


def _groups(problems: Sequence[Problem], searches: Sequence[Search]) -> list[tuple[Search, list[int]]]:
    """Which problems share a program, and how they are searched."""
    groups = []
    for search in {its.name: its for its in searches}.values():  # one that was asked for, or the usual ones
        mine = [j for j, its in enumerate(searches) if its.name == search.name]
        groups += [(search, [mine[k] for k in group]) for group in search.group([problems[j] for j in mine])]
    return sorted(groups, key=lambda pair: pair[1])


def _check_callback(callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a report, but got {describe(callback)}.")
