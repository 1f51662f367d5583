"""`discrax solve PROBLEM FILE`."""

from pathlib import Path
from typing import Any, Literal

PROBLEMS = ("mis", "clique", "maxcut", "partition", "qubo")


def solve_file(
    problem: Literal["mis", "clique", "maxcut", "partition", "qubo"],
    file: Path,
    /,
    seconds: float | None = None,
    steps: int | None = None,
    chains: int | None = None,
    method: Literal["auto", "sites", "anneal", "temper"] = "auto",
    sampler: str = "auto",
    schedule: Literal["auto", "geometric", "exponential", "linear", "linear-temperature", "tempering"] = "auto",
    betas: tuple[float, float] | None = None,
    rounds: int = 1,
    reheat: float = 0.0,
    parts: int = 3,
    penalty: float | None = None,
    weighted: bool = False,
    seed: int = 0,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Solves a problem on a graph from a file. Ctrl-C ends the search; the best so far is printed and written.

    Args:
        problem: Maximum independent set, maximum clique, maximum cut, balanced partition, or a QUBO.
        file: An edge list, Gset/rudy, DIMACS (.clq, .col, .cnf), METIS, GraphML, or for a QUBO a .coo file.
        seconds: How long to search; ten seconds if nothing is said.
        steps: Steps of every chain instead (sweeps, where the search goes site by site).
        chains: How many searches at a time.
        method: Annealing site by site, annealing with a sampler, or parallel tempering.
        sampler: For the last two; `discrax samplers` lists them.
        schedule: How the inverse temperature grows; tempering is for the search site by site.
        betas: The inverse temperatures at the beginning and at the end.
        rounds: Anneals one after another.
        reheat: The share of the schedule that is skipped in all rounds but the first.
        parts: Of a partition.
        penalty: What an edge inside an independent set costs, above 1.
        weighted: Nodes count by their weights.
        seed: Of the random numbers.
        out: Where to write the solution, as JSON.
        plot: Where to draw the objective against steps and seconds.
    """
    import jax

    from discrax.solving.solver import solve

    made = make_problem(problem, file, parts, penalty, weighted)
    if out is not None and out.is_dir():
        raise ValueError(f"--out is the file to write the solution to, but {out} is a folder.")
    solution = solve(
        jax.random.key(seed),
        made,
        seconds=seconds,
        num_steps=steps,
        num_chains=chains,
        method=method,
        sampler=sampler,
        schedule=schedule,
        betas=betas,
        num_rounds=rounds,
        reheat=reheat,
    )
    if out is not None:
        print(solution.save(out))
    if plot is not None and len(solution.history):
        plot.parent.mkdir(parents=True, exist_ok=True)
        solution.history.plot(plot)
        print(plot)
    bound = "" if solution.bound is None else f", bound {solution.bound:g}"
    feasible = "feasible" if solution.is_feasible else "not feasible"
    print(f"{made!r}: objective {solution.objective:g}, {feasible}{bound}")
    how = "sweeps, site by site," if solution.method == "sites" else f"steps of {solution.sampler}, {solution.method},"
    interrupted = "" if solution.is_complete else "; interrupted"
    print(f"{solution.num_steps:,} {how} of {solution.num_chains} chains in {solution.seconds:.1f} s{interrupted}")


def make_problem(name: str, file: Path, parts: int, penalty: float | None, weighted: bool) -> Any:
    from discrax import problems

    if penalty is not None and name not in ("mis", "clique"):
        raise ValueError(f"A penalty belongs to mis and clique, but the problem is {name}.")
    if weighted and name not in ("mis", "clique"):
        raise ValueError(f"--weighted is about the nodes of mis and clique, but the problem is {name}.")
    if name in ("mis", "clique"):
        kind = problems.MIS if name == "mis" else problems.MaxClique
        return kind(file, weighted=weighted, **({} if penalty is None else {"penalty": penalty}))
    if name == "maxcut":
        return problems.MaxCut(file)
    if name == "partition":
        return problems.Partition(file, parts)
    return problems.QUBO(file)
