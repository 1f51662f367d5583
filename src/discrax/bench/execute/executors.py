"""Where the jobs of a run are worked on: in this process, in a pool of processes, on Slurm, on Ray.

An executor takes a function and a sequence of jobs and yields a `Done` for each, in order of completion. A job that
raises, or whose worker dies, is a `Done` with an error; the others go on. Closing the iterator, or a KeyboardInterrupt,
cancels the jobs that have not started, and ends workers in processes of ours: no process stays behind.

Workers in other processes take over what changes numbers here: settings of JAX, and the folders of `sys.path` (see
`worker`).
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax

from discrax.bench.execute.clusters import Ray, Slurm
from discrax.bench.execute.worker import Done, Executor, Job, Work, attempt, pack, serve, settings_here, unpack
from discrax.core import checks
from discrax.core.interrupts import Interrupts


class InProcess(Executor):
    """Works in this process: one job after the other, or several at a time in threads.

    XLA compiles and runs without the interpreter's lock, and threads share compiled programs. But jobs that run at
    the same time disturb each other's timings: use one worker, or a pool, where seconds are reported.
    """

    name = "in-process"

    def __init__(self, workers: int = 1):
        self.workers = self.num_sharing = workers  # jobs that one device works on at a time

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        if self.workers == 1:
            for job in jobs:
                yield Done(job, *attempt(work, job))
            return
        x64 = jax.config.read("jax_enable_x64")
        threads = ThreadPoolExecutor(self.workers)
        try:
            with Interrupts() as interrupts:  # a thread that is half started would be joined by nobody
                futures = {threads.submit(_attempt_in_thread, x64, work, job): job for job in jobs}
            interrupts.raise_if_requested()
            for future in as_completed(futures):
                yield Done(futures[future], *future.result())
        finally:
            threads.shutdown(cancel_futures=True)


class Pool(Executor):
    """Works in processes of this machine, each with its share of the cores.

    Every worker is a `ProcessPoolExecutor` of one spawned process: when the system kills a worker, the job it was
    working on is lost and no other, and a new process takes its place. Whatever ends this process, be it SIGKILL, ends
    the workers at once. A script that uses a pool needs the guard `if __name__ == "__main__":`.

    With `gpus` each worker sees one GPU of the machine and no other; otherwise all share what there is.
    """

    name = "pool"

    def __init__(self, workers: int = 1, gpus: Sequence[str] = ()):
        self.workers, self.gpus = workers, tuple(gpus)
        self.num_sharing = 1 if self.gpus else workers
        if self.gpus:
            self.workers = len(self.gpus)
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # this process plans, and needs little

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        do = partial(serve, settings_here(XLA_PYTHON_CLIENT_PREALLOCATE="false"))  # the workers share one GPU
        waiting = deque(jobs)
        idle = list(range(min(self.workers, len(jobs))))
        pools = {worker: self._start(worker) for worker in idle}
        running: dict[Future[bytes], tuple[int, Job]] = {}
        try:
            while waiting or running:
                while waiting and idle:
                    job = waiting.popleft()
                    parcel = pack(work, job)
                    if isinstance(parcel, Done):
                        yield parcel
                        continue
                    worker = idle.pop()
                    with _threads_of_numpy(self._cores(worker)):  # submitting starts the process
                        try:
                            future = pools[worker].submit(do, parcel)
                        except BrokenProcessPool:  # died, idle, since its last job
                            pools[worker].shutdown()
                            pools[worker] = self._start(worker)
                            future = pools[worker].submit(do, parcel)
                    running[future] = (worker, job)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, job = running.pop(future)
                    idle.append(worker)
                    try:
                        done = unpack(job, future.result())
                    except BrokenProcessPool:
                        lost = "The worker process died during the job: killed by the system, out of memory, or crashed"
                        done = Done(job, None, f"{lost}.")
                    yield done
        finally:
            for pool in pools.values():
                if running:  # given up: nobody waits for what they are at
                    for process in list(pool._processes.values()):
                        process.kill()
                pool.shutdown(cancel_futures=True)

    def _start(self, worker: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        gpu = self.gpus[worker] if self.gpus else None
        return ProcessPoolExecutor(1, context, _start_worker, (self._cores(worker), gpu))

    def _cores(self, worker: int) -> list[int]:
        """Every `workers`-th core; none where there are too few, or where the system does not tell."""
        if not hasattr(os, "sched_setaffinity"):
            return []
        return sorted(os.sched_getaffinity(0))[worker :: self.workers]


@contextmanager
def _threads_of_numpy(cores: Sequence[int]) -> Iterator[None]:
    """A process that starts meanwhile has as many threads for matrices as it has cores.

    NumPy makes them when it is imported, before the process can be told to which cores to keep. Sixteen that wait for
    each other on a few cores take many times as long. What the user has set stays.
    """
    names = [name for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if cores and name not in os.environ]
    os.environ.update(dict.fromkeys(names, str(len(cores))))
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)


NAMES = (InProcess.name, Pool.name, Slurm.name, Ray.name)


def get_executor(
    name: str,
    *,
    workers: int = 1,
    address: str | None = None,
    folder: Path | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Executor:
    """The executor of that name: "in-process", "pool", "slurm" or "ray".

    Args:
        name: Of the executor.
        workers: How many jobs are worked on at a time.
        address: Of a Ray cluster.
        folder: The folder of the run; Slurm's files go to its subfolder "slurm".
        options: Of Slurm or Ray, see `Slurm` and `Ray`; of a pool `gpus`, how many or which ("0,2"), one a worker.
    """
    if name not in NAMES:
        raise ValueError(f"There is no executor {name!r}; there are {', '.join(NAMES)}.")
    if checks.whole("workers", workers) < 1:
        raise ValueError(f"An executor needs at least one worker, got {workers}.")
    if address is not None and name != Ray.name:
        raise ValueError(f"Only the ray executor takes an address; the {name} executor got {address!r}.")
    if name == Slurm.name:
        if folder is None:
            raise ValueError("The slurm executor needs the folder of the run, for the files of its jobs.")
        return Slurm(folder, workers, options)
    if name == Ray.name:
        return Ray(workers, address, options)
    known = ("gpus",) if name == Pool.name else ()
    if set(options) - set(known):
        takes = f"the options {', '.join(known)}" if known else "no options"
        raise ValueError(f"The {name} executor takes {takes}, but got {', '.join(options)}.")
    return InProcess(workers) if name == InProcess.name else Pool(workers, _gpus(options.get("gpus", ())))


def _gpus(given: int | str | Sequence[Any]) -> tuple[str, ...]:
    """3 is "0", "1", "2"; "0,2" and (0, 2) are "0" and "2"."""
    if isinstance(given, str):
        given = given.split(",")
    elif isinstance(given, int):
        given = range(checks.whole("gpus", given, least=1))
    return tuple(str(each).strip() for each in given)


def _start_worker(cores: Sequence[int], gpu: str | None = None) -> None:
    """A worker of a pool keeps to its cores: XLA makes no more threads than it may use cores."""
    if gpu is not None:  # before JAX looks for devices
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if cores:
        os.sched_setaffinity(0, cores)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt_in_thread(x64: bool, work: Work, job: Job) -> tuple[Any, str | None]:
    with jax.enable_x64(x64):  # may be set for the calling thread alone
        return attempt(work, job)
