"""Jobs on clusters: Slurm, through submitit, and Ray."""

import logging
import os
import re
import signal
import socket
import threading
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discrax.bench.execute.worker import Done, Executor, Job, Work, in_one_line, pack, serve, settings_here, unpack
from discrax.core.extras import import_extra


class Slurm(Executor):
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
        submitit = import_extra("submitit", f"The {self.name} executor needs", self.name)
        parameters = {"name": "discrax", "timeout_min": 240, **options}
        self.cluster = parameters.pop("cluster", "slurm")
        if workers > 1:
            parameters.setdefault("slurm_array_parallelism", workers)
        try:
            self.executor = submitit.AutoExecutor(folder.resolve() / "slurm", cluster=self.cluster)
            self.executor.update_parameters(**parameters)
        except (RuntimeError, ValueError, NameError, AssertionError) as error:
            raise ValueError(f"The slurm executor cannot be set up. {in_one_line(error)}") from error

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        from submitit.helpers import as_completed

        parcels = [(job, pack(work, job)) for job in jobs]
        yield from (parcel for _, parcel in parcels if isinstance(parcel, Done))
        sent = [(job, parcel) for job, parcel in parcels if not isinstance(parcel, Done)]
        do = partial(serve, settings_here())
        handles: list[Any] = []
        unfinished: dict[str, tuple[Any, Job]] = {}
        try:
            for start in range(0, len(sent), 1000):  # Slurm takes arrays of up to 1001 jobs unless set up otherwise
                some = sent[start : start + 1000]
                array = self.executor.map_array(do, [parcel for _, parcel in some])
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
            return unpack(job, handle.result())
        except (FailedJobError, UncompletedJobError):
            lost = f"Job {handle.job_id} ended without a result, in state {handle.state}"
            return Done(job, None, f"{lost}; its log is {handle.paths.stderr}.")


class Ray(Executor):
    """Works on Ray: on the cluster at `address` ("127.0.0.1:6379", or "auto"), or on a local one of `workers` cores.

    Options are those of a Ray task, such as `num_cpus`, `num_gpus` and `max_retries` (0 unless given). They, and not
    `workers`, decide how many jobs run at a time on a cluster. Its nodes need discrax and the same version of Python.
    What was started or connected here is shut down here; a connection that was there before is used and left.
    """

    name = "ray"

    def __init__(self, workers: int = 1, address: str | None = None, options: Mapping[str, Any] = MappingProxyType({})):
        with _quiet():
            ray = import_extra("ray", f"The {self.name} executor needs", self.name)
            try:
                self.serve = ray.remote(serve).options(**{"max_retries": 0, **options})
            except (ValueError, TypeError) as error:
                raise ValueError(f"The ray executor cannot be set up. {in_one_line(error)}") from error
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
            settings = ray.put(settings_here(XLA_PYTHON_CLIENT_PREALLOCATE="false"))
            for job in jobs:
                parcel = pack(work, job)
                if isinstance(parcel, Done):
                    yield parcel
                else:
                    running[self.serve.remote(settings, parcel)] = job
            while running:
                (reference,), _ = ray.wait(list(running), num_returns=1)
                job = running.pop(reference)
                try:
                    done = unpack(job, ray.get(reference))
                except RayError as error:
                    done = Done(job, None, f"Ray lost the job. {in_one_line(getattr(error, 'cause', None) or error)}")
                yield done
        finally:
            for reference in running:
                ray.cancel(reference)
            if started:
                ray.shutdown()

    def _connect(self) -> None:
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
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
