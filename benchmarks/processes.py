"""Two processes with a core each against one process with one core: how many more chains a second.

The same run, DMALA on a dense Ising model with its chains spread over the processes by `jax.distributed`, is made by
one process and by two. All three are started and compile first; then one and two take turns, so that both meet the same
load of the machine. Steps of warm-up, of which every one is told to both, and draws, which nobody waits for, are timed
apart; both say something only where nothing else runs. The processor time of a whole call, that of the process which
took most, is what is left of other load: its ratio is what two cores of one's own could reach if nobody had to wait.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

import numpy as np

PARTS = ("warm-up", "draws", "processor time")


def serve(arguments: argparse.Namespace) -> None:
    """One of the processes: makes the run once, says so, and makes it again for every line that it is sent."""
    os.sched_setaffinity(0, {arguments.core})  # before JAX counts the cores
    import jax

    if arguments.number is not None:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            f"localhost:{arguments.port}", num_processes=arguments.processes, process_id=arguments.number
        )

    import discrax as dx

    couplings = np.triu(np.random.default_rng(0).normal(size=(arguments.sites, arguments.sites)), 1)
    target = dx.targets.Ising.dense((couplings + couplings.T) * 0.5 / np.sqrt(arguments.sites))
    steps, devices = arguments.steps, None if arguments.number is None else len(jax.devices())

    def run() -> str:
        begin = time.process_time()
        result = dx.sample(
            jax.random.key(0), target, "dmala", num_chains=arguments.chains, num_warmup=steps // 5,
            num_samples=steps - steps // 5, keep="moments", devices=devices, progress=False,
        )  # fmt: skip
        assert result.is_complete
        return f"{result.warmup_seconds} {result.seconds} {time.process_time() - begin}"

    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(run(), flush=True)


def start(core: int, number: int | None, port: int, given: list[str]) -> subprocess.Popen:
    command = [sys.executable, __file__, *given, "--core", str(core), "--port", str(port)]
    command += [] if number is None else ["--number", str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answers(processes: list[subprocess.Popen]) -> list[str]:
    """The next line of each that is no message of the library that joins them."""
    said = []
    for process in processes:
        assert process.stdout is not None
        said.append(next(line for line in process.stdout if not line.startswith("[Gloo]")))
    return said


def seconds(processes: list[subprocess.Popen]) -> np.ndarray:
    """Of warm-up, of drawing, and of processor time, of the process that took most."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return np.array([list(map(float, said.split())) for said in answers(processes)]).max(axis=0)


def compare(arguments: argparse.Namespace) -> None:
    cores, count = sorted(os.sched_getaffinity(0)), arguments.processes
    if len(cores) < count:
        raise SystemExit(f"{count} processes need a core each, but there are {len(cores)}.")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    alone = [start(cores[0], None, port, sys.argv[1:])]
    together = [start(cores[number], number, port, sys.argv[1:]) for number in range(count)]
    answers(alone + together)
    print(f"{arguments.chains} chains, {arguments.sites} sites; steps of a chain a second", flush=True)
    steps, times = arguments.steps, []
    work = arguments.chains * np.array([steps // 5, steps - steps // 5, steps])
    for _ in range(arguments.repeats):
        one, several = seconds(alone), seconds(together)
        times.append((one, several))
        for i, name in enumerate(PARTS):
            print(
                f"{name:14} one process {work[i] / one[i]:8,.0f}   {count} processes {work[i] / several[i]:8,.0f}   "
                f"ratio {one[i] / several[i]:.2f}   load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    times = np.array(times)  # (repeats, one or several, part)
    ratios, fastest = times[:, 0] / times[:, 1], times.min(axis=0)
    for i, name in enumerate(PARTS):
        print(
            f"{name}: ratio {fastest[0, i] / fastest[1, i]:.2f} of the fastest runs of each, "
            f"median {np.median(ratios[:, i]):.2f}, from {ratios[:, i].min():.2f} to {ratios[:, i].max():.2f}"
        )
    for process in alone + together:
        assert process.stdin is not None
        process.stdin.close()  # of all, before any is waited for: they end together
    for process in alone + together:
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=256)
    parser.add_argument("--steps", type=int, default=800, help="of every chain; a fifth of them is warm-up")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    for name in ("--core", "--number", "--port"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    (compare if arguments.core is None else serve)(arguments)


if __name__ == "__main__":
    main()
