"""`discrax bench list | run | report | compare | leaderboard | export`."""

import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from discrax.bench.plan.suite import Size, aliases, shipped_suites
from discrax.voice import Voice, is_stdout


def list_suites(size: Size = Size.DEFAULT, /, voice: Voice = Voice()) -> None:  # noqa: B008
    """Lists the suites: what each is, and how many cells it has.

    Args:
        size: Of the runs whose cells are counted.
        voice: What is printed.
    """
    rows = [(each.name, each.title, len(list(each.cells(size)))) for each in shipped_suites().values()]
    voice.give([dict(zip(("suite", "title", "cells"), row, strict=True)) for row in rows])
    shown = [(name, title, str(cells)) for name, title, cells in rows]
    shown += [(name, f"another name for {' and '.join(names)}", "") for name, names in aliases().items()]
    voice.show(("suite", "what it shows", "cells"), shown, title=f"{size} size", title_justify="left")


# As many as the command has options.
def run(
    suites: Annotated[tuple[str, ...], tyro.conf.Positional],
    /,
    quick: bool = False,
    paper: bool = False,
    out: Path | None = None,
    sampler: tuple[str, ...] = (),
    task: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    set: tuple[str, ...] = (),
    seeds: int = 1,
    unchecked: bool = False,
    executor: Literal["in-process", "pool", "slurm", "ray"] = "in-process",
    workers: int | None = None,
    address: str | None = None,
    option: tuple[str, ...] = (),
    together: bool = True,
    retry_failed: bool = False,
    if_changed: Literal["refuse", "again", "keep"] = "refuse",
    data: Path | None = None,
    voice: Voice = Voice(),  # noqa: B008
) -> None:
    """Runs suites and writes their report. The same command again goes on where it stopped, be it by Ctrl-C.

    Args:
        suites: Names such as optimal-scaling/table05, papers such as any-scale, or files such as my_suite.py.
        quick: Fewer chains and steps, the same tasks: minutes on two cores.
        paper: The chains and steps of the paper.
        out: The folder of the run; by default runs/SUITE-SIZE. One that is there is completed, or added to.
        sampler: Samplers to put beside the others: file.py:Kernel of your own, or one of `discrax samplers`; with
            settings, dmala(step_size=0.2), of which several make a row each, "dmala(step_size=0.1,0.2,0.4)".
        task: Targets of your own, file.py:function, for all samplers.
        only: Of the suites' own rows those of these samplers and labels: pas,dmala task=ising.
        set: Of all cells alike: steps=20000, chains=50, warmup=1000.
        seeds: How many of each cell.
        unchecked: Do not prove kernels of your own on small targets first.
        executor: Where cells are run.
        workers: How many at a time; by default one, so that nothing disturbs its seconds, but two with --quick.
        address: Of a Ray cluster; without it one is started here.
        option: Of the executor: slurm_partition=gpu timeout_min=60 gpus_per_node=1 (Slurm, as submitit names them),
            num_gpus=1 (Ray), gpus=4 (pool: one worker a GPU of this machine).
        together: Run cells of one shape as one program.
        retry_failed: Run failed cells again.
        if_changed: Whether to refuse to go on with cells that another version of their code made, to run them again,
            or to keep them beside the new ones.
        data: The folder with data sets such as MNIST; by default the environment variable DISCRAX_DATA.
        voice: What is printed.
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
    budget = _assignments("--set", set)
    folder = default_folder(suites, size, budget) if out is None else out
    if workers is None:
        workers = 2 if quick else 1  # a quick run compiles more than it samples
    options = _assignments("--option", option)
    chosen = get_executor(executor, workers=workers, address=address, folder=folder, options=options)
    asked = {"samplers": sampler, "tasks": task, "only": only, "budget": budget, "seeds": seeds, "check": not unchecked}
    how = {"together": together, "retry_failed": retry_failed, "if_changed": if_changed}
    report = run_suites(suites, size, out=folder, executor=chosen, **asked, **how)
    voice.say(report)
    pages = write_report(folder) if report.ok + report.failed else ()
    for path in pages:
        voice.say(path)
    voice.give(report._asdict() | {"pages": list(pages)})
    if not report.is_complete or (report.failed and not report.ok):
        raise SystemExit(1)


def _assignments(name: str, texts: tuple[str, ...]) -> dict[str, Any]:
    """name=value of each text; a value that reads as a number is one."""
    from discrax.bench.execute.samplers import parse_value

    found = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise ValueError(f"{name} takes name=value, but got {text!r}.")
        found[key] = parse_value(value)
    return found


def report(folder: Path, /, out: Path | None = None, voice: Voice = Voice()) -> None:  # noqa: B008
    """Writes the HTML page and the Markdown tables of a run.

    Args:
        folder: Of the run, or its rows in one file (`discrax bench export`).
        out: Where to write them; by default into the run.
        voice: What is printed.
    """
    from discrax.bench.report.write import write_report

    _name_files(write_report(folder, out), voice)


def _name_files(paths: Iterable[Path], voice: Voice) -> None:
    written = list(paths)
    voice.give(written)
    for path in written:
        voice.say(path)


def compare(first: Path, second: Path, /, voice: Voice = Voice()) -> None:  # noqa: B008
    """Compares two runs, cell by cell.

    Args:
        first: A run: a folder, or its rows in one file (`discrax bench export`).
        second: Another.
        voice: What is printed.
    """
    from rich.console import Console

    from discrax.bench.report.compare import compare_runs

    found = compare_runs(first, second)
    voice.give(asdict(found))
    if voice.speaks:
        Console().print(found)


def export(folder: Path, out: Path, /, suites: tuple[str, ...] = (), voice: Voice = Voice()) -> None:  # noqa: B008
    """Writes the rows of a run to one small file, which `report` and `compare` read as a run.

    Args:
        folder: Of the run.
        out: A .parquet file; a .csv file is for others to read, and "-" prints such a one.
        suites: Of the run those to write; all by default.
        voice: What is printed.
    """
    from discrax.bench.execute import store
    from discrax.bench.execute.request import part_of

    about, cells = part_of(store.read_about(folder), suites) if suites else (None, None)
    if is_stdout(out):
        with tempfile.TemporaryDirectory() as place:
            sys.stdout.write(store.export(folder, Path(place) / "rows.csv", about, cells).read_text())
        return
    path = store.export(folder, out, about, cells)
    voice.give({"path": path, "bytes": path.stat().st_size})
    voice.say(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def leaderboard(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    /,
    out: Path = Path("leaderboard"),
    voice: Voice = Voice(),  # noqa: B008
) -> None:
    """Ranks all samplers over all tasks of one or more runs: a page with filters, Markdown and CSV.

    Args:
        runs: Folders of runs.
        out: The folder to write to.
        voice: What is printed.
    """
    from discrax.bench.report.leaderboard import write_leaderboard

    _name_files(write_leaderboard(runs, out), voice)


def commands() -> dict[str, Callable[..., None]]:
    """The commands of `discrax bench`."""
    first: dict[str, Callable[..., None]] = {"list": list_suites, "run": run, "report": report, "compare": compare}
    return first | {"leaderboard": leaderboard, "export": export}


def main(arguments: list[str]) -> None:
    """Runs the command that the arguments name."""
    plain = (tyro.conf.OmitArgPrefixes,)
    tyro.extras.subcommand_cli_from_dict(commands(), prog="discrax bench", args=arguments, config=plain)
