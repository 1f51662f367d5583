"""`discrax solve PROBLEM FILE`."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from discrax.core.files import UnusableFile, check_writable
from discrax.voice import Voice, is_stdout

PROBLEMS = ("mis", "clique", "maxcut", "partition", "qubo", "maxsat")


# A command: each parameter is an option of the command line.
def solve_file(
    problem: Literal["mis", "clique", "maxcut", "partition", "qubo", "maxsat"],
    file: Path,
    /,
    seconds: float | None = None,
    steps: int | None = None,
    chains: int | None = None,
    search: Literal["auto", "sites", "sets", "anneal", "temper", "population"] = "auto",
    sampler: str | None = None,
    schedule: Literal["auto", "geometric", "exponential", "linear", "linear-temperature", "tempering"] | None = None,
    betas: tuple[float, float] | None = None,
    rounds: int | None = None,
    reheat: float | None = None,
    rungs: int | None = None,
    parts: int | None = None,
    penalty: float | None = None,
    weighted: bool = False,
    seed: int = 0,
    out: Path | None = None,
    plot: Path | None = None,
    folder: Path | None = None,
    voice: Voice = Voice(),  # noqa: B008
) -> None:
    """Solves a problem on a graph from a file. Ctrl-C and SIGTERM end the search with the best so far.

    Args:
        problem: Maximum independent set, maximum clique, maximum cut, balanced partition, a QUBO, or MAX-SAT.
        file: An edge list, Gset/rudy, DIMACS (.clq, .col, .cnf), METIS, GraphML; a .coo, .cnf or .wcnf file.
        seconds: How long to search, from when the file is read, compilation counted in; ten seconds if nothing is said.
        steps: Steps of every chain instead (sweeps, where the search goes site by site).
        chains: How many searches at a time.
        search: Site by site; sets, for independent sets and cliques; annealing, tempering, population annealing.
        sampler: For annealing and tempering; `discrax samplers` lists them.
        schedule: How the inverse temperature grows; tempering is for the search site by site.
        betas: The inverse temperatures at the beginning and at the end.
        rounds: Anneals one after another.
        reheat: The share of the schedule that is skipped in all rounds but the first.
        rungs: Of the ladder of parallel tempering.
        parts: Of a partition; 3 if nothing is said.
        penalty: What an edge inside an independent set costs, above 1, or a hard clause that is violated.
        weighted: Nodes count by their weights.
        seed: Of the random numbers.
        out: Where to write the solution, as JSON; "-" is standard output.
        plot: Where to draw the objective against steps and seconds.
        folder: Where the best so far is kept. The same command goes on with a search that ended early.
        voice: What is printed.
    """
    from discrax.core.interrupts import Interrupts
    from discrax.core.seeds import key_of
    from discrax.solving.solver import solve

    made = make_problem(problem, file, parts, penalty, weighted)
    settings = {
        "num_chains": chains, "sampler": sampler, "schedule": schedule, "betas": betas, "num_rounds": rounds,
        "reheat": reheat, "num_rungs": rungs,
    }  # fmt: skip
    how = make_search(search, made, {name: value for name, value in settings.items() if value is not None})
    key = key_of(seed)
    if is_stdout(out):
        out, voice = None, replace(voice, json=True)
    if out is not None:
        check_writable(out)
    if plot is not None:
        _check_plot(plot)
    # From here on a signal ends what it must, and what was found is printed and written all the same.
    with Interrupts():
        solution = solve(key, made, how, seconds=seconds, num_steps=steps, counts_compilation=True, folder=folder)
        failures = [
            _failure(lambda: _say(voice, _summarise(made, solution))),
            None if out is None else _failure(lambda: _say(voice, str(solution.save(out)))),
            None if plot is None else _failure(lambda: _say(voice, _draw(solution, plot))),
            None if solution.bound is None else _failure(lambda: _say(voice, _judge(solution))),
            _failure(lambda: _print(solution.to_json().rstrip())) if voice.json else None,
        ]
        if failures[1] is not None:  # better there than nowhere
            failures.append(_failure(lambda: _print(solution.to_json().rstrip())))
    said = [failure for failure in failures if failure is not None]
    if said:
        sys.exit("\n".join(f"discrax: {sentence}" for sentence in said))


def make_search(name: str, problem: Any, settings: dict[str, Any]) -> Any:
    """The search that the command line names, with its settings; those that it does not have are refused."""
    from dataclasses import fields

    from discrax.solving.searches import SEARCHES, choose_search

    if name == "auto" and "num_rungs" in settings:
        name = "temper"
    if name == "auto" and "sampler" in settings:
        name = "anneal"
    kind = type(choose_search(problem, False)) if name == "auto" else SEARCHES[name]
    known = [each.name for each in fields(kind)]
    for setting in settings:
        if setting not in known:
            option = {"num_chains": "chains", "num_rounds": "rounds", "num_rungs": "rungs"}.get(setting, setting)
            others = [each for each, its in SEARCHES.items() if setting in [field.name for field in fields(its)]]
            raise ValueError(f"--{option} is for --search {' and '.join(others)}, but the search here is {kind.name}.")
    return kind(**settings)


def _summarise(problem: Any, solution: Any) -> str:
    feasible = "feasible" if solution.is_feasible else "not feasible"
    how = (
        "sweeps, site by site,"
        if solution.search == "sites"
        else "exchanges a node,"
        if solution.search == "sets"
        else f"steps of {solution.sampler}, {solution.search},"
    )
    interrupted = "" if solution.is_complete else "; interrupted"
    return (
        f"{problem!r}: objective {solution.objective:g}, {feasible}\n"
        f"{solution.num_steps:,} {how} of {solution.num_chains} chains in {solution.seconds:.1f} s{interrupted}"
    )


def _judge(solution: Any) -> str:
    """The bound, and whether it is met."""
    return f"bound {solution.bound:g}{', met: nothing is better' if solution.is_proved_optimal else ''}"


def _say(voice: Voice, text: str) -> None:
    if voice.speaks:
        _print(text)


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError:
        print(text, file=sys.stderr)
        raise


def _draw(solution: Any, plot: Path) -> str:
    if not len(solution.history):
        return f"{plot} is not drawn: the search made no step"
    solution.history.plot(plot)
    return str(plot)


def _failure(work: Callable[[], None]) -> str | None:
    """Does something; what the system says if it cannot."""
    try:
        work()
    except OSError as error:
        if sys.stdout.closed or not isinstance(error, UnusableFile):
            with suppress(OSError, ValueError):  # or Python tries once more at the end, and says so at length
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return f"the output cannot be written: {error.strerror or error}."
        return str(error)
    return None


def _check_plot(plot: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install 'discrax[plot]'.") from None
    check_writable(plot)
    known = Figure().canvas.get_supported_filetypes()
    if plot.suffix.lower().lstrip(".") not in known:
        raise ValueError(f"--plot draws {', '.join(sorted(known))}, but got {plot.name!r}.")


def make_problem(name: str, file: Path, parts: int | None, penalty: float | None, weighted: bool) -> Any:
    """The problem that the command line names; options of other problems are refused."""
    from discrax import problems

    if penalty is not None and name not in ("mis", "clique", "maxsat"):
        raise ValueError(f"A penalty belongs to mis, clique and maxsat, but the problem is {name}.")
    if parts is not None and name != "partition":
        raise ValueError(f"--parts are those of a partition, but the problem is {name}.")
    if weighted and name not in ("mis", "clique"):
        raise ValueError(f"--weighted is about the nodes of mis and clique, but the problem is {name}.")
    if name in ("mis", "clique"):
        kind = problems.MIS if name == "mis" else problems.MaxClique
        return kind(file, weighted=weighted, **({} if penalty is None else {"penalty": penalty}))
    if name == "maxsat":
        return problems.MaxSAT(file, penalty=penalty)
    if name == "maxcut":
        return problems.MaxCut(file)
    if name == "partition":
        return problems.Partition(file, 3 if parts is None else parts)
    return problems.QUBO(file)
