"""Where the jobs of a run are worked on: in this process, in a pool of processes, on Slurm, on Ray.

An executor takes a function and a sequence of jobs and yields a `Done` for each, in order of completion. A job that
raises, or whose worker dies, is a `Done` with an error; the others go on. Closing the iterator, or a KeyboardInterrupt,
cancels the jobs that have not started, and ends workers in processes of ours: no process stays behind.

Workers in other processes take over what changes numbers here: the settings of JAX named in `SETTINGS`, and the
folders of `sys.path`. Work and jobs travel as pickles and are read after that.
"""

import importlib
import logging
import multiprocessing
import os
import pickle
import re
import signal
import socket
import sys
import textwrap
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

from discrax.core import checks
from discrax.core.interrupts import Interrupts

Job = Any
Work = Callable[[Job], Any]

SETTINGS = (
    "jax_enable_x64",
    "jax_platforms",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)


class Done(NamedTuple):
    """A job that is over: with the outcome of its work, or with a sentence on how it was lost."""

    job: Job
    outcome: Any | None
    error: str | None


@runtime_checkable
class Executor(Protocol):
    name: str

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        """Works on the jobs; yields each when it is over. Nothing starts before the first is asked for."""
        ...


class InProcess:
    """Works in this process: one job after the other, or several at a time in threads.

    XLA compiles and runs without the interpreter's lock, and threads share compiled programs. But jobs that run at
    the same time disturb each other's timings: use one worker, or a pool, where seconds are reported.
    """

    name = "in-process"

    def __init__(self, workers: int = 1):
        self.workers = workers

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        if self.workers == 1:
            for job in jobs:
                yield Done(job, *_attempt(work, job))
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


class Pool:
    """Works in processes of this machine, each with its share of the cores.

    Every worker is a `ProcessPoolExecutor` of one spawned process: when the system kills a worker, the job it was
    working on is lost and no other, and a new process takes its place. Whatever ends this process, be it SIGKILL, ends
    the workers at once. A script that uses a pool needs the guard `if __name__ == "__main__":`.
    """

    name = "pool"

    def __init__(self, workers: int = 1):
        self.workers = workers

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        serve = partial(_serve, _settings(XLA_PYTHON_CLIENT_PREALLOCATE="false"))  # the workers share one GPU
        waiting = deque(jobs)
        idle = list(range(min(self.workers, len(jobs))))
        pools = {worker: self._start(worker) for worker in idle}
        running: dict[Future[bytes], tuple[int, Job]] = {}
        try:
            while waiting or running:
                while waiting and idle:
                    job = waiting.popleft()
                    parcel = _pack(work, job)
                    if isinstance(parcel, Done):
                        yield parcel
                        continue
                    worker = idle.pop()
                    try:
                        future = pools[worker].submit(serve, parcel)
                    except BrokenProcessPool:  # died, idle, since its last job
                        pools[worker].shutdown()
                        pools[worker] = self._start(worker)
                        future = pools[worker].submit(serve, parcel)
                    running[future] = (worker, job)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, job = running.pop(future)
                    idle.append(worker)
                    try:
                        done = _unpack(job, future.result())
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
        return ProcessPoolExecutor(1, context, _start_worker, (worker, self.workers))


class Slurm:
    """Works on a Slurm cluster: job arrays through submitit, which keeps its files in `folder / "slurm"`.

    Options are parameters of submitit: `timeout_min` (240 unless given), `slurm_partition`, `gpus_per_node`, `mem_gb`,
    `cpus_per_task`, ... More than one worker limits how many jobs of an array run at a time. The folder must be seen
    by all nodes. Closing the iterator cancels every unfinished job, running or not: left alone it would meet the run
    that takes up the rest. A platform that is set here (`JAX_PLATFORMS`) is also set on the nodes.

    The option `cluster` is for trying things out: "local" starts one process per job, all at once; "debug" works in
    this process.
    """

    name = "slurm"

    def __init__(self, folder: Path, workers: int = 1, options: Mapping[str, Any] = MappingProxyType({})):
        submitit = _package("submitit", extra=self.name, executor=self.name)
        parameters = {"name": "discrax", "timeout_min": 240, **options}
        self.cluster = parameters.pop("cluster", "slurm")
        if workers > 1:
            parameters.setdefault("slurm_array_parallelism", workers)
        try:
            self.executor = submitit.AutoExecutor(folder.resolve() / "slurm", cluster=self.cluster)
            self.executor.update_parameters(**parameters)
        except (RuntimeError, ValueError, NameError, AssertionError) as error:
            raise ValueError(f"The slurm executor cannot be set up. {_words(error)}") from error

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        from submitit.helpers import as_completed

        parcels = [(job, _pack(work, job)) for job in jobs]
        yield from (parcel for _, parcel in parcels if isinstance(parcel, Done))
        sent = [(job, parcel) for job, parcel in parcels if not isinstance(parcel, Done)]
        serve = partial(_serve, _settings())
        handles: list[Any] = []
        unfinished: dict[str, tuple[Any, Job]] = {}
        try:
            for start in range(0, len(sent), 1000):  # Slurm takes arrays of up to 1001 jobs unless set up otherwise
                some = sent[start : start + 1000]
                array = self.executor.map_array(serve, [parcel for _, parcel in some])
                unfinished |= {handle.job_id: (handle, job) for handle, (job, _) in zip(array, some, strict=True)}
                handles += array
            for handle in as_completed(handles, poll_frequency=0.1 if self.cluster == "local" else 2.0):
                _, job = unfinished.pop(handle.job_id)
                yield self._done(handle, job)
        finally:
            for handle, _ in unfinished.values():
                handle.cancel(check=False)

    @staticmethod
    def _done(handle: Any, job: Job) -> Done:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        handle._results_timeout_s = 2  # the default of 15 would be waited for each lost job in turn
        try:
            return _unpack(job, handle.result())
        except (FailedJobError, UncompletedJobError):
            lost = f"Job {handle.job_id} ended without a result, in state {handle.state}"
            return Done(job, None, f"{lost}; its log is {handle.paths.stderr}.")


class Ray:
    """Works on Ray: on the cluster at `address` ("127.0.0.1:6379", or "auto"), or on a local one of `workers` cores.

    Options are those of a Ray task, such as `num_cpus`, `num_gpus` and `max_retries` (0 unless given). They, and not
    `workers`, decide how many jobs run at a time on a cluster. Its nodes need discrax and the same version of Python.
    What was started or connected here is shut down here; a connection that was there before is used and left.
    """

    name = "ray"

    def __init__(self, workers: int = 1, address: str | None = None, options: Mapping[str, Any] = MappingProxyType({})):
        with _quiet():
            ray = _package("ray", extra=self.name, executor=self.name)
            self.serve = ray.remote(_serve).options(**{"max_retries": 0, **options})
        self.workers = workers
        self.address = address

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        import ray
        from ray.exceptions import RayError

        started = not ray.is_initialized()
        if started:
            self._connect()
        running: dict[Any, Job] = {}
        try:
            settings = ray.put(_settings(XLA_PYTHON_CLIENT_PREALLOCATE="false"))
            for job in jobs:
                parcel = _pack(work, job)
                if isinstance(parcel, Done):
                    yield parcel
                else:
                    running[self.serve.remote(settings, parcel)] = job
            while running:
                (reference,), _ = ray.wait(list(running), num_returns=1)
                job = running.pop(reference)
                try:
                    done = _unpack(job, ray.get(reference))
                except RayError as error:
                    done = Done(job, None, f"Ray lost the job. {_words(getattr(error, 'cause', None) or error)}")
                yield done
        finally:
            for reference in running:
                ray.cancel(reference)
            if started:
                ray.shutdown()

    def _connect(self) -> None:
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        with _quiet(), _own_handlers():
            if self.address is None:
                # Without an address Ray looks for a cluster of someone else's first.
                ray.init(address="local", num_cpus=self.workers, include_dashboard=False, **quiet)
                return
            try:
                if re.fullmatch(r"[\w.-]+:\d+", self.address):  # Ray itself tries for more than a minute
                    host, port = self.address.split(":")
                    socket.create_connection((host, int(port)), timeout=10).close()
                ray.init(address=self.address, **quiet)
            except (OSError, ValueError) as error:
                advice = "Start one with `ray start --head`, or leave out the address to work on this machine"
                token = "if the cluster asks for a token, set RAY_AUTH_MODE=token here too"
                raise ConnectionError(f"No Ray cluster let us in at {self.address}. {advice}; {token}.") from error


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
        options: Of Slurm or Ray, see `Slurm` and `Ray`.
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
    if options:
        raise ValueError(f"The {name} executor takes no options, got {', '.join(options)}.")
    return InProcess(workers) if name == InProcess.name else Pool(workers)


class _Settings(NamedTuple):
    """What a worker takes over."""

    jax: dict[str, Any]
    path: tuple[str, ...]
    environment: dict[str, str]  # where the worker has not its own value


def _settings(**environment: str) -> _Settings:
    path = tuple(os.path.abspath(folder) for folder in sys.path)
    return _Settings({name: getattr(jax.config, name) for name in SETTINGS}, path, environment)


def _adopt(settings: _Settings) -> None:
    for name, value in settings.environment.items():
        os.environ.setdefault(name, value)
    sys.path.extend(folder for folder in settings.path if folder not in sys.path)
    for name, value in settings.jax.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)


def _start_worker(worker: int, workers: int) -> None:
    """A worker of a pool keeps to every `workers`-th core: XLA makes no more threads than it may use cores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))[worker::workers]
        if cores:
            os.sched_setaffinity(0, cores)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt(work: Work, job: Job) -> tuple[Any, str | None]:
    """The outcome of the work and nothing, or nothing and a sentence."""
    try:
        return work(job), None
    except (Exception, SystemExit) as error:
        return None, f"The job failed. {_words(error)}"


def _attempt_in_thread(x64: bool, work: Work, job: Job) -> tuple[Any, str | None]:
    with jax.enable_x64(x64):  # may be set for the calling thread alone
        return _attempt(work, job)


def _pack(work: Work, job: Job) -> bytes | Done:
    try:
        return pickle.dumps((work, job))
    except Exception as error:
        return Done(job, None, f"The job cannot be sent to a worker. {_words(error)}")


def _serve(settings: _Settings, parcel: bytes) -> bytes:
    """What a worker does with a job. Exceptions are sentences here already: not every one survives a pickle."""
    try:
        _adopt(settings)
        work, job = pickle.loads(parcel)
    except Exception as error:
        return pickle.dumps((None, f"The worker cannot take the job. {_words(error)}"))
    try:
        outcome = _attempt(work, job)
    except KeyboardInterrupt:
        outcome = None, "The worker was told to stop."
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        return pickle.dumps((None, f"The outcome cannot be sent back. {_words(error)}"))


def _unpack(job: Job, answer: bytes) -> Done:
    try:
        return Done(job, *pickle.loads(answer))
    except Exception as error:
        return Done(job, None, f"The outcome cannot be read. {_words(error)}")


def _words(error: BaseException) -> str:
    """The kind of an error and the beginning of its message, on one line."""
    message = textwrap.shorten(str(error), 500, placeholder=" ...")
    return f"{type(error).__name__}: {message}".rstrip(".: ") + "."


def _package(package: str, *, extra: str, executor: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        sentence = f"The {executor} executor needs {package}: pip install 'discrax[{extra}]'."
        raise ImportError(sentence) from error


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Ray exits at SIGTERM, wherever the program is; the handler that was there before knows better."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without JAX's warning of forks (Ray forks only to run another program) and Ray's of its own changes to come."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        warnings.filterwarnings("ignore", "Tip: In future versions of Ray", FutureWarning)
        yield
