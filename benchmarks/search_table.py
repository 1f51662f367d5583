"""What the scripts search_*.py share: their options, the file of rows, and the page that is made from it.

A script says what its instances are and which searches it compares:

    python benchmarks/search_maxcut.py --data DATA --seconds 60 --out rows.jsonl      # goes on where it was stopped
    python benchmarks/search_maxcut.py --out rows.jsonl --page docs/results/search-maxcut.md

A row is a line of JSON, written as soon as a search has ended: what was asked, what came, the machine and the
versions. Two processes on different cores (`--cores 2,3`) may write to one file. A page takes the rows of one budget
and machine.
"""

import argparse
import json
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import peers
from discrax.data import use_data
from discrax.problems import Problem
from search_page import Row, number_text, write_page


class Instance(NamedTuple):
    """A problem by name. `problem` makes it; `best` is the value to compare with, and `mark` says what that is."""

    name: str
    family: str
    problem: Callable[[], Problem]
    best: float | None = None
    mark: str = "best known"


class Script(NamedTuple):
    """What differs from one script to another."""

    name: str  # of the rows and the page
    title: str
    text: str  # of the page, below its title
    instances: Callable[[argparse.Namespace], Iterator[Instance]]
    tiny: Callable[[], Problem]  # a small problem of the same kind
    searches: tuple[str, ...]
    seconds: float
    is_fresh: bool = False  # a new process for each search, so that its memory can be told
    families: Mapping[str, str] = MappingProxyType({})  # what they are, for the pages that have them
    tells_time: bool = False  # the page has the time until the reference was found
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def main(script: Script, doc: str | None) -> None:
    """The command of a script."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seconds", type=float, help=f"for each search; {script.seconds:g}, for a page the most frequent"
    )
    parser.add_argument("--seeds", type=int, default=5, help="how many; %(default)s")
    parser.add_argument("--first-seed", type=int, default=0, help="the seeds before it are left out; %(default)s")
    parser.add_argument("--instances", nargs="+", help="names of instances or families; all if not given")
    parser.add_argument("--count", type=int, help="at most so many of each family")
    parser.add_argument("--solvers", nargs="+", default=list(script.searches), help="%(default)s")
    parser.add_argument("--data", type=Path, help="folder of the data sets, else DISCRAX_DATA")
    parser.add_argument("--cores", default="0,1", help="that everything is held to; %(default)s")
    parser.add_argument("--out", type=Path, default=Path(f"{script.name}.jsonl"), help="file of rows; %(default)s")
    parser.add_argument("--until-best", action="store_true", help="ours ends a search where it meets the reference")
    parser.add_argument("--machine", help="its name in the rows; the processor's if not given")
    parser.add_argument("--page", type=Path, help="write this page from the rows; nothing is run")
    parser.add_argument("--title", default=script.title, help="of the page; %(default)s")
    script.options(parser)
    arguments = parser.parse_args()
    if arguments.data is not None:
        use_data(arguments.data)
    if arguments.page is None:
        arguments.seconds = script.seconds if arguments.seconds is None else arguments.seconds
        run(script, arguments)
    else:
        write_page(script, read_rows(arguments.out), arguments)


def run(script: Script, arguments: argparse.Namespace) -> None:
    """All searches that the file has no row of yet: seed after seed, so that a run that is stopped has whole seeds."""
    solvers = []
    for name in arguments.solvers:
        package = peers.missing(name)
        print(f"{name} is left out: there is no {package} here." if package else f"{name} {peers.versions(name)}")
        solvers += [] if package else [name]
    instances = chosen(script.instances(arguments), arguments.instances, arguments.count)
    cores = tuple(map(int, arguments.cores.split(",")))
    done = {_key(row) for row in read_rows(arguments.out)} if arguments.out.exists() else set()
    about = {
        "script": script.name,
        "asked": arguments.seconds,
        "machine": arguments.machine or machine_name(),
        "cores": len(cores),
        "python": platform.python_version(),
    }
    made: dict[str, Problem] = {}
    with peers.Machine(cores, is_fresh=script.is_fresh) as machine:
        for seed in range(arguments.first_seed, arguments.seeds):
            for instance in instances:
                for solver in solvers:
                    row = about | {"instance": instance.name, "family": instance.family, "solver": solver, "seed": seed}
                    if _key(row) in done:
                        continue
                    if instance.name not in made:
                        made = {instance.name: instance.problem()}  # one at a time: all of them may be much
                    problem = made[instance.name]
                    if not peers.peer(solver).takes(problem):
                        continue
                    until = instance.best if arguments.until_best else None
                    found = machine.measure(solver, problem, arguments.seconds, seed, script.tiny(), until)
                    form: Any = problem.model
                    row |= {
                        "n": form.num_sites, "m": len(form.edges), "sense": problem.sense, "best": instance.best,
                        "mark": instance.mark, "value": found.value, "seconds": round(found.seconds, 3),
                        "cpu_seconds": round(found.cpu_seconds, 2), "start_mib": round(found.start_mib),
                        "peak_mib": round(found.peak_mib), "error": found.error, "notes": found.notes,
                        "versions": peers.versions(solver),
                    }  # fmt: skip
                    append(arguments.out, row)
                    print(
                        f"{instance.name:24} {solver:14} seed {seed}: {number_text(found.value):>10} of "
                        f"{number_text(instance.best)} in {found.seconds:.1f} s {found.error or ''}",
                        flush=True,
                    )


def chosen(instances: Iterator[Instance], names: list[str] | None, count: int | None) -> list[Instance]:
    """Those of the names or families that are asked for, at most `count` of each family."""
    kept, numbers, known = [], defaultdict(int), set()
    for instance in instances:
        known |= {instance.name, instance.family}
        if names is not None and instance.name not in names and instance.family not in names:
            continue
        numbers[instance.family] += 1
        if count is None or numbers[instance.family] <= count:
            kept.append(instance)
    unknown = sorted(set(names or ()) - known)
    if unknown:
        sys.exit(f"There is no instance or family {', '.join(unknown)}; known: {', '.join(sorted(known))}.")
    return kept


def append(path: Path, row: Row) -> None:
    """Adds a line to the file of rows; a row is whole or not there."""
    with path.open("ab", buffering=0) as file:
        file.write((json.dumps(row) + "\n").encode())


def read_rows(path: Path) -> list[Row]:
    """All whole lines; the last may have been cut."""
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def machine_name() -> str:
    """The processor, in its own words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _key(row: Row) -> tuple:
    return tuple(row[name] for name in ("script", "asked", "machine", "cores", "instance", "solver", "seed"))


# ------------------------------------------------------------------------------------------------------ page
