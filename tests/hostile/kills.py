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
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .kill_children import PATIENCE, start
from .kill_programs import PROGRAMS, Program

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


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
    number: int, workers: int, kills: int, seed: int, only: str, base: str, seconds: float | None, signals, in_turn, out
) -> None:
    """A server of its own process: programs in turn, times at random, and signals at random or in turn."""
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
        sent = signals[i % len(signals)] if in_turn else generator.choice(signals)
        out.send(kill_once(program, sent, generator.uniform(0, lengths[program.name]), folder))
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
    kills: int,
    workers: int,
    seed: int,
    only: str = "",
    seconds: float | None = None,
    signals: Sequence = SIGNALS,
    in_turn: bool = False,
) -> Iterator[Kill]:
    """Kills as they come. Signals come within `seconds`; by default, within what a program takes."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="discrax-kills-") as base:
        os.environ["TMPDIR"] = base
        pipes = []
        for number in range(workers):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(
                target=serve, args=(number, workers, kills, seed, only, base, seconds, signals, in_turn, send)
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
