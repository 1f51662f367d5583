"""`discrax bench list | run | report | compare | leaderboard`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from discrax.bench.plan.suite import Size, aliases, shipped_suites


def list_suites(size: Size = Size.DEFAULT, /) -> None:
    """Lists the suites: what each is, and how many cells it has."""
    from rich.console import Console
    from rich.table import Table

    table = Table("suite", "what it shows", "cells", title=f"{size} size", title_justify="left")
    table.columns[2].justify = "right"
    for each in shipped_suites().values():
        table.add_row(each.name, each.about, str(len(list(each.cells(size)))))
    for name, names in aliases().items():
        table.add_row(name, f"another name for {' and '.join(names)}", "")
    Console().print(table)


# As many as the command has options.
def run(
    suites: Annotated[tuple[str, ...], tyro.conf.Positional],
    /,
    quick: bool = False,
    paper: bool = False,
    out: Path | None = None,
    sampler: tuple[str, ...] = (),
    executor: Literal["in-process", "pool", "slurm", "ray"] = "in-process",
    workers: int | None = None,
    address: str | None = None,
    together: bool = True,
    retry_failed: bool = False,
    if_changed: Literal["refuse", "again", "keep"] = "refuse",
    data: Path | None = None,
) -> None:
    """Runs suites and writes their report. The same command again goes on where it stopped, be it by Ctrl-C.

    Args:
        suites: Names such as optimal-scaling/table05, papers such as any-scale, or files such as my_suite.py.
        quick: Fewer chains and steps, the same tasks: minutes on two cores.
        paper: The chains and steps of the paper.
        out: The folder of the run; by default runs/SUITE-SIZE.
        sampler: Samplers of your own, file.py:Kernel, to put beside the others.
        executor: Where cells are run.
        workers: How many at a time; by default one, so that nothing disturbs its seconds, but two with --quick.
        address: Of a Ray cluster; without it one is started here.
        together: Run cells of one shape as one program.
        retry_failed: Run failed cells again.
        if_changed: Whether to refuse to go on with cells that another version of the program made, to run them again,
            or to keep them beside the new ones.
        data: The folder with data sets such as MNIST; by default the environment variable DISCRAX_DATA.
    """
    from discrax.bench.execute.executors import get_executor
    from discrax.bench.execute.run import default_folder, run_suites
    from discrax.bench.report.write import write_report
    from discrax.data import use_data

    if quick and paper:
        raise ValueError("A run is --quick or --paper, not both.")
    if not suites:
        raise ValueError("Say which suites to run; `discrax bench list` shows them.")
    if data is not None:
        use_data(data)
    size = Size.QUICK if quick else Size.PAPER if paper else Size.DEFAULT
    folder = default_folder(suites, size) if out is None else out
    if workers is None:
        workers = 2 if quick else 1  # a quick run compiles more than it samples
    chosen = get_executor(executor, workers=workers, address=address, folder=folder)
    how = {"together": together, "retry_failed": retry_failed, "if_changed": if_changed}
    report = run_suites(suites, size, out=folder, samplers=sampler, executor=chosen, **how)
    print(report)
    if report.ok + report.failed:
        for path in write_report(folder):
            print(path)
    if not report.is_complete:
        raise SystemExit(1)


def report(folder: Path, /, out: Path | None = None) -> None:
    """Writes the HTML page and the Markdown tables of a run.

    Args:
        folder: Of the run.
        out: Where to write them; by default into the run.
    """
    from discrax.bench.report.write import write_report

    for path in write_report(folder, out):
        print(path)


def compare(first: Path, second: Path, /) -> None:
    """Compares two runs, cell by cell.

    Args:
        first: A run.
        second: Another.
    """
    from rich.console import Console

    from discrax.bench.report.compare import compare_runs

    Console().print(compare_runs(first, second))


def leaderboard(runs: Annotated[tuple[Path, ...], tyro.conf.Positional], /, out: Path = Path("leaderboard")) -> None:
    """Ranks all samplers over all tasks of one or more runs: a page with filters, Markdown and CSV.

    Args:
        runs: Folders of runs.
        out: The folder to write to.
    """
    from discrax.bench.report.leaderboard import write_leaderboard

    for path in write_leaderboard(runs, out):
        print(path)


def main(arguments: list[str]) -> None:
    """The commands of `discrax bench`."""
    commands = {"list": list_suites, "run": run, "report": report, "compare": compare}
    commands |= {"leaderboard": leaderboard}
    tyro.extras.subcommand_cli_from_dict(commands, prog="discrax bench", args=arguments)
