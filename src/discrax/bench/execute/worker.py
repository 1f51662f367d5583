"""What passes between a run, its executor and a worker in another process: settings, a job, and its outcome.

Work and jobs travel as pickles, and are read after the settings are taken over.
"""

import os
import pickle
import sys
import textwrap
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

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
    """What works on jobs."""

    name: str

    def run(self, work: Work, jobs: Sequence[Job]) -> Generator[Done, None, None]:
        """Works on the jobs; yields each when it is over. Nothing starts before the first is asked for."""
        ...


class Settings(NamedTuple):
    """What a worker takes over."""

    jax: dict[str, Any]
    path: tuple[str, ...]
    environment: dict[str, str]  # where the worker has not its own value


def settings_here(**environment: str) -> Settings:
    """What a worker has to take over from this process."""
    path = tuple(os.path.abspath(folder) for folder in sys.path)
    return Settings({name: getattr(jax.config, name) for name in SETTINGS}, path, environment)


def _adopt(settings: Settings) -> None:
    for name, value in settings.environment.items():
        os.environ.setdefault(name, value)
    sys.path.extend(folder for folder in settings.path if folder not in sys.path)
    for name, value in settings.jax.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)


def device_works() -> bool:
    """Whether anything can still be computed: after a fault a GPU does nothing more for the process that made it."""
    try:
        jax.block_until_ready(jax.numpy.arange(2) + 1)
    except RuntimeError:
        return False
    return True


def attempt(work: Work, job: Job) -> tuple[Any, str | None]:
    """The outcome of the work and nothing, or nothing and a sentence."""
    try:
        return work(job), None
    except (Exception, SystemExit) as error:
        return None, f"The job failed. {in_one_line(error)}"


def pack(work: Work, job: Job) -> bytes | Done:
    """Work and a job as bytes, or what became of a job that cannot travel."""
    try:
        return pickle.dumps((work, job))
    except Exception as error:
        return Done(job, None, f"The job cannot be sent to a worker. {in_one_line(error)}")


def serve(settings: Settings, parcel: bytes) -> bytes:
    """What a worker does with a job. Exceptions are sentences here already: not every one survives a pickle."""
    try:
        _adopt(settings)
        work, job = pickle.loads(parcel)
    except Exception as error:
        return pickle.dumps((None, f"The worker cannot take the job. {in_one_line(error)}"))
    try:
        outcome = attempt(work, job)
    except KeyboardInterrupt:
        outcome = None, "The worker was told to stop."
    if outcome[1] is not None and not device_works():
        os._exit(1)  # a new process takes its place; here every job to come would fail
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        return pickle.dumps((None, f"The outcome cannot be sent back. {in_one_line(error)}"))


def unpack(job: Job, answer: bytes) -> Done:
    """The outcome of a job from a worker's answer."""
    try:
        return Done(job, *pickle.loads(answer))
    except Exception as error:
        return Done(job, None, f"The outcome cannot be read. {in_one_line(error)}")


def in_one_line(error: BaseException) -> str:
    """The kind of an error and the beginning of its message, on one line."""
    message = textwrap.shorten(str(error), 500, placeholder=" ...")
    return f"{type(error).__name__}: {message}".rstrip(".: ") + "."
