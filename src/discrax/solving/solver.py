"""`solve`: from a problem to a solution that can be checked."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Kernel
from discrax.core.programs import reads_user_code
from discrax.problems.problem import Problem
from discrax.solving.clock import Clock
from discrax.solving.folder import Files, SearchFolder
from discrax.solving.search import Search
from discrax.solving.settings import check_budget, check_init, check_problems, check_settings, spread_chains
from discrax.solving.solution import Solution


# The verb: its parameters are what a user may say of a search, and all but two have defaults.
@listening()
def solve(
    key: PRNGKeyArray,
    problem: Problem,
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    method: str = "auto",
    sampler: str | Kernel = "auto",
    num_chains: int | None = None,
    schedule: str = "auto",
    betas: tuple[float, float] | None = None,
    num_rounds: int | None = None,
    reheat: float | None = None,
    num_rungs: int | None = None,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    init: Integer[np.ndarray, "*chains n"] | Solution | None = None,
    counts_compilation: bool = False,
    progress: bool | None = None,
    folder: str | Path | None = None,
) -> Solution:
    """Searches for the best state of a problem. Ctrl-C or SIGTERM ends the search and returns the best so far.

    - `seconds` or `num_steps`: how long; ten seconds if nothing is said. Seconds are those of the whole call, repair in
      the end and all, compilation apart unless `counts_compilation`.
    - `method`: "sites" (annealing site by site on the CPU), "anneal" (annealing with a sampler), "temper" (parallel
      tempering with a sampler), or "auto": "sites" on a CPU where the problem has a plain form, else "anneal".
    - `sampler`: any of `discrax.samplers`, for the last two.
    - `num_chains`: by default one a core for "sites", else 32, or 256 on an accelerator; fewer if the objective is a
      function that takes long.
    - `schedule`, `betas`: see `discrax.solving.schedules`, and for "sites" `discrax.solving.sites`; by default between
      the temperatures where the problem freezes. For "temper" they say where the ladder begins and ends.
    - `num_rounds`, `reheat`: for "sites" and "anneal", annealing several times over, see `discrax.solving.annealing`.
    - `num_rungs`: for "temper", of the ladder of temperatures; 16 by default.
    - `devices`: for "anneal" and "temper", over which the chains are spread, as in `discrax.sample`.
    - `init`: states to begin with, one a chain; or one state for all of them; or a `Solution`, whose states are dealt.
    - `folder`: the best so far is kept there, every two seconds and at the end, in a file that is whole at any time;
      `Solution.load(folder, problem)` reads it. If the search ends early, however that comes, the same call goes on:
      every chain begins at the best state it had found, what is left of the budget is spent, and what is returned is no
      worse than what was there. A longer budget extends a search that was done.
    """
    if isinstance(problem, Sequence) and not isinstance(problem, str):
        raise TypeError("solve takes one problem, but got several; use solve_many.")
    return solve_many(
        key, [problem], seconds=seconds, num_steps=num_steps, method=method, sampler=sampler, num_chains=num_chains,
        schedule=schedule, betas=betas, num_rounds=num_rounds, reheat=reheat, num_rungs=num_rungs, devices=devices,
        init=None if init is None else [init], counts_compilation=counts_compilation, progress=progress, folder=folder,
    )[0]  # fmt: skip


# The verb: its parameters are what a user may say of a search, and all but two have defaults.
@reads_user_code()
@listening()
def solve_many(
    key: PRNGKeyArray,
    problems: Sequence[Problem],
    *,
    seconds: float | None = None,
    num_steps: int | None = None,
    method: str = "auto",
    sampler: str | Kernel = "auto",
    num_chains: int | None = None,
    schedule: str = "auto",
    betas: tuple[float, float] | None = None,
    num_rounds: int | None = None,
    reheat: float | None = None,
    num_rungs: int | None = None,
    devices: int | Sequence[jax.Device] | Mesh | None = None,
    init: Sequence[Integer[np.ndarray, "..."] | Solution] | None = None,
    counts_compilation: bool = False,
    progress: bool | None = None,
    folder: str | Path | None = None,
) -> list[Solution]:
    """`solve` for several problems. If all are binary and annealed, they share one program, whatever their sizes, and
    all of the budget; else they are solved one after the other, each with an equal share of `seconds`. A folder has a
    file of each.
    """
    key = random.as_threefry(key)
    problems = check_problems(problems)
    budget = check_budget(seconds, num_steps, counts_compilation)
    if devices is not None and method == "auto":
        method = "anneal"
    settings = check_settings(
        problems, budget, method=method, sampler=sampler, num_chains=num_chains, schedule=schedule, betas=betas,
        num_rounds=num_rounds, reheat=reheat, num_rungs=num_rungs,
    )  # fmt: skip
    given = check_init(problems, init, num_chains, settings.default_chains)
    if not problems:
        return []
    if given is not None:
        settings = settings._replace(num_chains=len(given[0]))
    settings = spread_chains(settings, devices, problems)
    groups = settings.group(problems)
    for group in groups:
        settings.check_memory([problems[j] for j in group])
    solutions, clock = [], Clock(budget)
    with Interrupts() as interrupts, ExitStack() as opened:
        store = None if folder is None else opened.enter_context(SearchFolder(folder, problems, budget))
        files = [Files(store, group) for group in groups]
        for i, group in enumerate(groups):
            done = [best.solution for best in files[i].before if best is not None and best.is_enough(budget)]
            if len(done) == len(group):
                solutions += done
                continue
            share, its_key = budget, random.fold_in(key, i)
            if budget.num_steps is not None:
                share = budget._replace(num_steps=max(0, budget.num_steps - files[i].num_steps))
            if budget.seconds is not None:
                # Each group has an equal part of what those before it have left, and has spent some of it already.
                left = clock.seconds_left() - sum(each.seconds for each in files[:i])
                share = budget._replace(seconds=max(0.0, left / (len(groups) - i) - files[i].seconds))
            together, begins = [problems[j] for j in group], None if given is None else [given[j] for j in group]
            begins = files[i].init(settings.num_chains) or begins
            if files[i].num_steps:  # other random numbers than before
                its_key = random.fold_in(its_key, files[i].num_steps)
            own_clock = Clock(share, is_asked_to_stop=lambda: interrupts.requested)
            search = Search(its_key, together, settings, begins, own_clock, interrupts, files[i])
            solutions += search.run(progress)
    return solutions
