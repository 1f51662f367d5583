"""`python -m tests.hostile.kills --kills 500 --workers 2`: signals at random times into every long command and verb.

A server imports the library once and forks a child for every kill; what is compiled is kept in a folder that all
children share. A child runs one of `PROGRAMS` in a folder of its own, gets SIGINT, SIGTERM or SIGKILL at a time that is
uniform over how long the program takes, and is judged by what it left.
"""

import argparse
import contextlib
import csv
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 90.0  # seconds after a signal: a compilation cannot be left, and on a busy machine it takes long
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Program:
    """Something long. `again` goes on after a kill, in the folder that the kill left."""

    name: str
    run: Callable[[], None]
    again: Callable[[], None] | None = None
    prepare: Callable[[Path], None] | None = None  # in the server, once: files that every run finds in its folder


def _command(words: str) -> Callable[[], None]:
    def run() -> None:
        from discrax import cli

        _begin()
        sys.argv = ["discrax", *words.split()]
        cli.main()

    return run


def _graph(folder: Path) -> None:
    generator = random.Random(0)
    edges = {(i, generator.randrange(i)) for i in range(1, 800) for _ in range(4)}
    (folder / "graph.txt").write_text("".join(f"{a} {b}\n" for a, b in sorted(edges)))


def _suite(folder: Path) -> None:
    (folder / "suite.py").write_text(_SUITE)


_SUITE = """from discrax.bench import Budget, Cell, Size, call, suite

@suite("tiny/bits", "a sampler on a few bits")
def bits(effort: Size):
    for name in ("RWM-1", "RWM-2", "RWM-3"):
        yield Cell(
            labels=(("task", "bernoulli"), ("N", "100"), ("sampler", name)),
            target=call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=0.25),
            sampler=call("discrax.samplers:rwm", path_length=float(name[-1])),
            adaptation=None,
            budget=Budget(4, 500, 10000),
            is_timed=True,
        )
"""


def _trained(folder: Path) -> None:
    """A finished run of `discrax train`, made by a child so that the server initialises no backend."""
    with contextlib.chdir(folder):
        child = start(_command(f"{_TRAIN} --updates 10 --out trained"))
        status = child.wait(PATIENCE * 4)
        if status != 0:
            raise RuntimeError(f"The model to sample from could not be trained:\n{child.said}")


_TRAIN = "train --model rbm --sampler rwm --steps 5 --batch 20 --buffer 100 --every 10 --save-every 50 --hidden 8"


def _sample() -> None:
    import jax

    import discrax as dx

    target = dx.targets.Ising.lattice((16, 16), 0.3)
    result = _or_nothing(
        lambda: dx.sample(
            jax.random.key(0), target, "pas", num_chains=4, num_warmup=3000, num_samples=6000, chunk_size=200,
            progress=False,
        )
    )  # fmt: skip
    if result is not None:
        _say(is_complete=result.is_complete, num_draws=result.num_draws, summary=str(result.summary()))
        if hasattr(result, "save"):
            result.save("run.nc")


def _solve(search: str) -> Callable[[], None]:
    def run() -> None:
        import jax

        import discrax as dx

        problem = dx.problems.MaxCut("graph.txt")
        solution = _or_nothing(lambda: dx.solve(jax.random.key(0), problem, search, seconds=2, progress=False))
        if solution is not None:
            solution.save("solution.json")
            _say(is_complete=solution.is_complete, objective=solution.objective)

    return run


def _solve_many() -> None:
    import jax

    import discrax as dx

    problems = [dx.problems.MaxCut("graph.txt"), dx.problems.MaxCut("graph.txt")]
    solutions = _or_nothing(lambda: dx.solve_many(jax.random.key(0), problems, seconds=2, progress=False))
    if solutions is not None:
        _say(is_complete=all(each.is_complete for each in solutions), objective=[each.objective for each in solutions])


def _minimise() -> None:
    import jax

    import discrax as dx
    from discrax.solving import minimise_expected

    target = dx.problems.FacilityLocation.simulated(0, 3, 4)
    found = _or_nothing(lambda: minimise_expected(jax.random.key(0), target, "sgdld", num_chains=20, num_steps=5_000))
    if found is not None:
        _say(is_complete=getattr(found, "is_complete", True), cost=found.cost)


def _pcd(resume: bool) -> Callable[[], None]:
    def run() -> None:
        import jax
        import numpy as np

        import discrax as dx

        rng = np.random.default_rng(0)
        rows = rng.integers(0, 2, (100, 16))
        model = dx.targets.RBM(rng.normal(size=(8, 16)) / 10, np.zeros(16), np.zeros(8))
        trained = _or_nothing(
            lambda: dx.learn.pcd(
                jax.random.key(0), model, rows, sampler="rwm", num_steps=5, num_updates=600, batch_size=10,
                buffer_size=20, every=50, save_every=100, out="run", progress=False,
                resume=resume and Path("run", "checkpoints").exists(),
            )
        )  # fmt: skip
        if trained is not None:
            _say(is_complete=trained.stopped is None, num_updates=trained.num_updates)

    return run


def _or_nothing(verb):
    """What a verb returns. One that was interrupted before it had anything says so by a KeyboardInterrupt.

    Signals that come after it are not its concern: a program that wants to keep what it got turns them off.
    """
    _begin()
    try:
        return verb()
    except KeyboardInterrupt:
        _say(is_complete=False, nothing=True)
        return None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


_BEGUN = -1  # where a child says that what is to be killed has begun


def _begin() -> None:
    """What is to be killed begins, with JAX's backend up: its start swallows signals, and has nothing to keep."""
    import jax

    jax.devices()
    os.write(_BEGUN, b".")


def _say(**facts) -> None:
    print(json.dumps(facts), flush=True)


_BENCH = "bench run suite.py --quick --out bench --workers 1"
_TRAIN_LONG = f"{_TRAIN} --updates 300 --out run"
_SAMPLE_MODEL = "sample --model trained --sampler rwm --chains 20 --warmup 1000 --steps 8000 --snapshots 40"
_SOLVE = "solve maxcut graph.txt --seconds 2 --out solution.json"
_FACILITIES = "stochastic facilities --facilities 3 --customers 4 --steps 2000 --chains 10 --seconds 1"


def _train_again() -> None:
    has_begun = Path("run", "checkpoints").exists()
    _command("train --resume --out run" if has_begun else _TRAIN_LONG)()


PROGRAMS = (
    Program("discrax solve", _command(_SOLVE), prepare=_graph),
    Program("discrax solve --search anneal", _command(f"{_SOLVE} --search anneal --plot plot.png"), prepare=_graph),
    Program("discrax train", _command(_TRAIN_LONG), _train_again),
    Program("discrax bench run", _command(_BENCH), _command(_BENCH), _suite),
    Program("discrax sample", _command(f"{_SAMPLE_MODEL} --out picture.png"), prepare=_trained),
    Program("discrax stochastic law", _command("stochastic law --chains 50 --draws 8000")),
    Program("discrax stochastic regression", _command("stochastic regression --rows 2000 --draws 1500")),
    Program("discrax stochastic facilities", _command(_FACILITIES)),
    Program("discrax stochastic circuit", _command("stochastic circuit --steps 3000")),
    Program("discrax stochastic prompt", _command("stochastic prompt --length 2 --steps 100 --chains 2")),
    Program("dx.sample", _sample),
    Program("dx.solve, site by site", _solve("sites"), prepare=_graph),
    Program("dx.solve, tempering", _solve("temper"), prepare=_graph),
    Program("dx.solve_many", _solve_many, prepare=_graph),
    Program("minimise_expected", _minimise),
    Program("learn.pcd", _pcd(False), _pcd(True)),
)


# --- children ---


class Child:
    """A forked program; its output goes to files beside its folder."""

    def __init__(self, pid: int, out: Path, begun: int):
        self.pid, self._out, self._begun, self.status = pid, out, begun, None

    def wait_for_begin(self) -> None:
        """Until the program says that it begins, or is dead."""
        os.read(self._begun, 1)
        os.close(self._begun)

    def wait(self, seconds: float) -> int | None:
        """The exit code, negative if a signal ended it, or None if it still runs after so many seconds."""
        end = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                return None
            else:
                time.sleep(0.01)
        return self.status

    def send(self, number: int) -> None:
        if self.status is None:
            os.kill(self.pid, number)

    @property
    def said(self) -> str:
        return self._out.read_text(errors="replace")


_CHILDREN = 0


def start(run: Callable[[], None]) -> Child:
    """Forks a child that runs in the current folder."""
    global _CHILDREN, _BEGUN
    _CHILDREN += 1
    out = Path(tempfile.gettempdir()) / f"discrax-kill-{os.getpid()}-{_CHILDREN}.txt"
    out.touch()
    begun, _BEGUN = os.pipe()
    pid = os.fork()
    if pid:
        os.close(_BEGUN)
        child = Child(pid, out, begun)
        child.wait_for_begin()
        return child
    code = 1
    try:
        os.close(begun)
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        code = _as_the_interpreter(run)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _as_the_interpreter(run: Callable[[], None]) -> int:
    """Runs, and ends as the interpreter would."""
    try:
        run()
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


# --- judging ---


def judge_ended(code: int | None, said: str, folder: Path) -> str | None:
    """What is wrong with a program that was asked to end; None if nothing is."""
    if code is None:
        return f"did not end within {PATIENCE:.0f} s"
    if "Traceback (most recent call last)" in said:
        return "ended in a traceback"
    if code < 0:
        return f"died of signal {-code}"
    if code not in (0, 1, 130, 143):
        return f"ended with exit code {code}"
    if not said.strip():
        return "ended without a word"
    return judge_files(folder, after_kill=False)


def judge_files(folder: Path, after_kill: bool) -> str | None:
    """What is wrong with the files: each is whole or not there."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == ".lock":
            continue
        if path.name.endswith((".part", ".tmp")):
            if not after_kill:
                return f"left {path.relative_to(folder)}"
            continue
        try:
            _read(path)
        except Exception as error:
            return f"left {path.relative_to(folder)} half written: {type(error).__name__}: {error}"
    return None


def _read(path: Path) -> None:
    import numpy as np

    match path.suffix:
        case ".json":
            json.loads(path.read_text())
        case ".jsonl":
            for line in path.read_text().splitlines():
                json.loads(line)
        case ".csv":
            with path.open() as file:
                rows = list(csv.reader(file))
            if any(len(row) != len(rows[0]) for row in rows):
                raise ValueError("rows of different lengths")
        case ".npz":
            with np.load(path) as arrays:
                for name in arrays.files:
                    arrays[name]
        case ".npy":
            np.load(path)
        case ".png":
            if not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
                raise ValueError("no end of a picture")
        case ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.read_table(path)
        case ".nc":
            import xarray

            xarray.open_datatree(path).close()
        case ".html":
            if "</html>" not in path.read_text():
                raise ValueError("no end of a page")


@dataclass(frozen=True)
class Kill:
    program: str
    signal: str
    after: float  # seconds
    took: float  # seconds from the signal to the end
    wrong: str | None
    was_over: bool  # the program had ended before the signal came
    said: str

    @property
    def had_nothing(self) -> bool:
        """The verb was interrupted before it had anything."""
        return '"nothing": true' in self.said or "discrax: interrupted" in self.said


def kill_once(program: Program, number: signal.Signals, after: float, folder: Path) -> Kill:
    """Runs a program, sends a signal, and judges."""
    with contextlib.chdir(folder):
        child = start(program.run)
        was_over = child.wait(after) is not None
        sent = time.monotonic()
        child.send(number)
        code = child.wait(PATIENCE)
        took = time.monotonic() - sent
        if code is None:
            child.send(signal.SIGKILL)
            child.wait(PATIENCE)
        wrong, said = None, child.said
        if number != signal.SIGKILL or was_over:
            wrong = judge_ended(code, said, folder)
        else:
            wrong = judge_files(folder, after_kill=True)
        if wrong is None and program.again is not None:
            again = start(program.again)
            ended = again.wait(PATIENCE * 4)
            said += f"\n--- again ---\n{again.said}"
            if ended is None:
                again.send(signal.SIGKILL)
                again.wait(PATIENCE)
            if ended != 0 or "Traceback" in again.said:
                wrong = f"cannot go on: exit code {ended}"
            else:
                wrong = judge_files(folder, after_kill=True)
    return Kill(program.name, number.name, after, took, wrong, was_over, said[-3000:])


def serve(
    number: int, workers: int, kills: int, seed: int, only: str, base: str, seconds: float | None, signals, out
) -> None:
    """A server of its own process: programs in turn, signals and times at random."""
    import jax

    import discrax.bench.commands
    import discrax.cli
    import discrax.learn.commands
    import discrax.solving.commands  # noqa: F401

    with contextlib.suppress(ImportError):
        import matplotlib.pyplot  # noqa: F401
        import numba  # noqa: F401
        import sklearn.datasets  # noqa: F401
    jax.config.update("jax_compilation_cache_dir", f"{base}/compiled")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    generator = random.Random(f"{seed} {number}")
    chosen = [program for program in PROGRAMS if only in program.name]
    lengths: dict[str, float] = {}
    scenes: dict[str, Path] = {}
    for i in range(number, kills, workers):
        program = chosen[i % len(chosen)]
        if program.name not in lengths:
            scenes[program.name] = scene = Path(base) / f"scene-{number}-{len(scenes)}"
            scene.mkdir()
            if program.prepare is not None:
                program.prepare(scene)
            if seconds is None:
                for which in ("compiling", "compiled"):
                    lengths[program.name] = _length(program, scene, Path(base) / f"{which}-{number}-{len(scenes)}")
            else:
                lengths[program.name] = seconds
        folder = Path(base) / f"kill-{number}-{i}"
        _copy(scenes[program.name], folder)
        kill = kill_once(program, generator.choice(signals), generator.uniform(0, lengths[program.name]), folder)
        out.send(kill)
    out.send(None)


def _length(program: Program, scene: Path, folder: Path) -> float:
    """How long a program takes when nobody disturbs it."""
    _copy(scene, folder)
    with contextlib.chdir(folder):
        child = start(program.run)
        began = time.monotonic()
        code = child.wait(PATIENCE * 4)
    if code != 0:
        raise RuntimeError(f"{program.name} ended with {code} when nobody disturbed it:\n{child.said}")
    return time.monotonic() - began


def _copy(scene: Path, folder: Path) -> None:
    import shutil

    shutil.copytree(scene, folder)


def run(
    kills: int, workers: int, seed: int, only: str = "", seconds: float | None = None, signals: Sequence = SIGNALS
) -> Iterator[Kill]:
    """Kills as they come. Signals come within `seconds`; by default, within what a program takes."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="discrax-kills-") as base:
        os.environ["TMPDIR"] = base
        pipes = []
        for number in range(workers):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(
                target=serve, args=(number, workers, kills, seed, only, base, seconds, signals, send)
            )
            process.start()
            send.close()
            pipes.append(receive)
        while pipes:
            for pipe in multiprocessing.connection.wait(pipes):
                try:
                    kill = pipe.recv()
                except EOFError:
                    pipes.remove(pipe)
                    continue
                if kill is not None:
                    yield kill


def report(kills: list[Kill]) -> str:
    lines = [
        "| program | SIGINT | SIGTERM | SIGKILL | over before the signal | nothing to keep yet | failures |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sorted({kill.program for kill in kills}):
        own = [kill for kill in kills if kill.program == name]
        hit = Counter(kill.signal for kill in own if not kill.was_over)
        counts = [hit[number.name] for number in SIGNALS]
        over = sum(kill.was_over for kill in own)
        nothing, wrong = sum(kill.had_nothing for kill in own), sum(kill.wrong is not None for kill in own)
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {over} | {nothing} | {wrong} |")
    slowest = max((kill.took for kill in kills if not kill.was_over), default=0)
    wrong = Counter(kill.wrong for kill in kills if kill.wrong is not None)
    lines.append(f"\n{len(kills)} kills, {sum(wrong.values())} failures; the slowest end took {slowest:.1f} s")
    lines += [f"- {count} x {what}" for what, count in wrong.most_common()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument(
        "--failures", type=Path, default=Path(tempfile.gettempdir(), "kill-failures.jsonl"), help="written anew"
    )
    arguments = parser.parse_args()
    arguments.failures.unlink(missing_ok=True)
    kills = []
    for kill in run(arguments.kills, arguments.workers, arguments.seed, arguments.only):
        kills.append(kill)
        if kill.wrong is not None:
            with arguments.failures.open("a") as file:
                file.write(json.dumps(vars(kill)) + "\n")
    print(report(kills))
    sys.exit(any(kill.wrong is not None for kill in kills))


if __name__ == "__main__":
    main()
