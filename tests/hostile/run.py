"""`python -m tests.hostile.run --calls 10000 --workers 2`: generated calls, counted by outcome and by kind."""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_HARD_SECONDS = 180  # after which a worker that hangs outside of Python is killed
_MEMORY = 12 * 2**30
GOOD = ("result", "sentence")


def work(number: int, workers: int, calls: int, seed: int, only: str, folder: str, out) -> None:
    """Draws calls of this worker's kinds, judges them, and hands each verdict over."""
    os.chdir(folder)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.stderr = open("stderr.txt", "w")  # noqa: SIM115 - until the process ends
    import hypothesis
    import jax

    from .calls import hostile_calls, kinds
    from .verdict import judge

    compiled = os.environ.get("DISCRAX_TESTS_COMPILED", str(Path(folder).parent / "compiled"))
    jax.config.update("jax_compilation_cache_dir", compiled)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    mine = tuple(kind for i, kind in enumerate(kinds()) if i % workers == number and only in kind.name)
    phases = (hypothesis.Phase.generate,)

    @hypothesis.seed(seed * 1000 + number)
    @hypothesis.settings(
        max_examples=calls, deadline=None, database=None, phases=phases,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(hostile_calls(mine))
    def all_calls(call):
        out.send(("begins", [kind.name for kind in call.kinds], call.source))
        verdict = judge(call.source, call.is_refused)
        out.send(("ends", verdict.outcome, verdict.detail, verdict.seconds))

    all_calls()
    out.send(("done",))


def run(calls: int, workers: int, seed: int, only: str = "", failures: Path | None = None) -> list[dict]:
    """The verdicts, in the order in which they came; failures are written, a line each, as they come."""
    verdicts: list[dict] = []

    def note(state: dict, outcome: str, detail: str, seconds: float) -> None:
        call = {
            "outcome": outcome,
            "source": state["call"]["source"],
            "detail": detail,
            "kinds": state["call"]["kinds"],
        }
        verdicts.append({**call, "seconds": seconds})
        if outcome not in GOOD and failures is not None:
            with failures.open("a") as file:
                file.write(json.dumps(call) + "\n")

    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="discrax-hostile-") as base:
        running = {}

        def start(number: int, calls: int, seed: int) -> None:
            folder = Path(base) / f"{number}-{seed}"
            folder.mkdir()
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(number, workers, calls, seed, only, str(folder), send))
            process.start()
            send.close()
            running[number] = {
                "process": process,
                "pipe": receive,
                "call": None,
                "left": calls,
                "seed": seed,
                "folder": folder,
            }

        for number in range(workers):
            start(number, calls // workers + (number < calls % workers), seed)
        while running:
            multiprocessing.connection.wait([each["pipe"] for each in running.values()], timeout=1)
            for number, state in list(running.items()):
                died = None
                while state["pipe"].poll():
                    try:
                        kind, *content = state["pipe"].recv()
                    except EOFError:
                        died = "process died"
                        break
                    if kind == "begins":
                        state["call"] = {"kinds": content[0], "source": content[1], "began": time.monotonic()}
                    elif kind == "ends":
                        note(state, *content)
                        state["call"], state["left"] = None, state["left"] - 1
                    else:
                        state["process"].join()
                        del running[number]
                        died = None
                        break
                if number not in running:
                    continue
                if died is None and state["call"] and time.monotonic() - state["call"]["began"] > _HARD_SECONDS:
                    state["process"].kill()
                    died = "hangs outside of Python"
                if died is not None:
                    state["process"].join()
                    if state["call"] is None:
                        said = (state["folder"] / "stderr.txt").read_text()[-2000:]
                        raise RuntimeError(f"A worker died between two calls:\n{said}")
                    seconds = time.monotonic() - state["call"]["began"]
                    detail = f"exit code {state['process'].exitcode}"
                    note(state, died, detail, seconds)
                    del running[number]
                    if state["left"] > 1:
                        start(number, state["left"] - 1, state["seed"] + 100)
    return verdicts


def honest(folder: Path, only: str = "", every: int = 1) -> list[str]:
    """The honest calls that are not answered with a result, and how they are; one in `every` is tried."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_judge_honest, (str(folder), only, every))


def _judge_honest(folder: str, only: str, every: int) -> list[str]:
    os.chdir(folder)
    from .calls import honest_calls
    from .verdict import judge

    refused = []
    for call in list(honest_calls())[::every]:
        if only in call.function and call.is_accepted:
            verdict = judge(call.source(), False)
            if verdict.outcome != "result":
                refused.append(f"{call.source()}\n    {verdict.outcome}: {verdict.detail}")
    return refused


def again(failures: Path) -> list[dict]:
    """Judges the calls of a file of failures once more."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool, tempfile.TemporaryDirectory() as folder:
        return pool.apply(_judge_again, (folder, [json.loads(line) for line in failures.read_text().splitlines()]))


def _judge_again(folder: str, calls: list[dict]) -> list[dict]:
    os.chdir(folder)
    from .calls import kinds
    from .verdict import judge

    refused = {kind.name for kind in kinds() if kind.is_refused}
    verdicts = []
    for call in calls:
        found = judge(call["source"], any(name in refused for name in call["kinds"]))
        verdicts.append({**call, "outcome": found.outcome, "detail": found.detail, "seconds": found.seconds})
    return verdicts


def report(verdicts: list[dict], by_kind: bool = False) -> str:
    outcomes = Counter(verdict["outcome"] for verdict in verdicts)
    lines = ["| outcome | calls |", "|---|---:|"]
    lines += [f"| {name} | {count:,} |" for name, count in sorted(outcomes.items(), key=lambda each: -each[1])]
    kinds = {name for verdict in verdicts for name in verdict["kinds"]}
    failed = sum(outcomes[name] for name in outcomes if name not in GOOD)
    lines.append(f"\n{len(verdicts):,} calls of {len(kinds):,} kinds, {failed} failures")
    if by_kind:
        tallies: dict[str, Counter] = {}
        for verdict in verdicts:
            tallies.setdefault(verdict["kinds"][0], Counter())[verdict["outcome"]] += 1
        lines += ["", "| kind | outcomes |", "|---|---|"]
        lines += [
            f"| {name} | {', '.join(f'{k} {v}' for k, v in tally.items())} |" for name, tally in sorted(tallies.items())
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--by-kind", action="store_true")
    parser.add_argument(
        "--failures", type=Path, default=Path(tempfile.gettempdir(), "hostile-failures.jsonl"), help="written anew"
    )
    parser.add_argument("--again", type=Path, help="a file of failures, to be judged once more")
    arguments = parser.parse_args()
    if arguments.again is not None:
        verdicts = again(arguments.again)
        failed = [verdict for verdict in verdicts if verdict["outcome"] not in GOOD]
        arguments.failures.write_text("".join(json.dumps(verdict) + "\n" for verdict in failed))
        print(report(verdicts))
        sys.exit(bool(failed))
    began = time.monotonic()
    arguments.failures.unlink(missing_ok=True)
    verdicts = run(arguments.calls, arguments.workers, arguments.seed, arguments.only, arguments.failures)
    print(report(verdicts, arguments.by_kind))
    print(f"{time.monotonic() - began:.0f} s")
    if arguments.failures.exists():
        print(f"Failures: {arguments.failures}")
        sys.exit(1)


if __name__ == "__main__":
    main()
