"""Executors: all jobs come back, a lost one is a sentence, and workers have the settings of the parent."""

import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from discrax.bench.execute import executors, worker
from discrax.bench.execute.executors import Done, Executor, get_executor


class OddError(Exception):
    """Cannot be read back from its pickle."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}\nand more.")


class Unreadable:
    def __reduce__(self):
        return _raise, ()


def _raise():
    raise ValueError("broken pickle")


def work(job):
    match job:
        case "raise":
            raise OddError("this", "that")
        case "exit":
            sys.exit("enough")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fault":
            worker.device_works = lambda: False  # as after a fault of a GPU
            raise OddError("this", "that")
        case "sleep":
            time.sleep(0.5)
            return "slept"
        case "unreadable":
            return Unreadable()
        case "lambda":
            return lambda: None
        case "settings":
            return _numbers()
        case "gpu", _:
            time.sleep(0.5)  # so that the other one has the next
            return os.environ["CUDA_VISIBLE_DEVICES"]
        case "cores":
            return len(os.sched_getaffinity(0)), os.environ.get("OPENBLAS_NUM_THREADS")
    return job**2


def _numbers():
    x = jax.random.normal(jax.random.key(0), (2,))
    return str(x.dtype), jax.devices()[0].platform, os.getpid(), os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE")


def first_started_last_finished(seconds):
    time.sleep(seconds)
    return threading.current_thread().name


def note(folder, job):
    (folder / str(job)).touch()
    time.sleep(0.2)


def outcomes(executor, jobs) -> dict[Any, Any]:
    """Job to outcome, or to its error."""
    all_done = list(executor.run(work, jobs))
    assert len(all_done) == len(jobs)
    assert all(isinstance(done, Done) and (done.error is None or "\n" not in done.error) for done in all_done)
    return {done.job: done.outcome if done.error is None else done.error for done in all_done}


def test_one_after_the_other():
    executor = get_executor("in-process")
    assert isinstance(executor, Executor)
    all_done = list(executor.run(work, [3, "raise", "exit", 1]))
    assert [done.job for done in all_done] == [3, "raise", "exit", 1]
    assert all_done[0] == Done(3, 9, None)
    assert all_done[1].error == "The job failed. OddError: this and that and more."
    assert all_done[2].error == "The job failed. SystemExit: enough."


def test_nothing_starts_before_it_is_asked_for(tmp_path):
    run = get_executor("in-process").run(lambda job: note(tmp_path, job), [1, 2])
    assert not list(tmp_path.iterdir())
    next(run)
    run.close()
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_threads():
    executor = get_executor("in-process", workers=2)
    assert outcomes(executor, [3, "raise", 1]) == {
        3: 9,
        "raise": "The job failed. OddError: this and that and more.",
        1: 1,
    }
    all_done = list(executor.run(first_started_last_finished, [0.3, 0.0]))
    assert [done.job for done in all_done] == [0.0, 0.3]
    assert len({done.outcome for done in all_done}) == 2
    with jax.enable_x64(True):
        assert outcomes(executor, ["settings"])["settings"][:3] == ("float64", jax.devices()[0].platform, os.getpid())


def test_threads_that_are_closed_start_nothing_more(tmp_path):
    run = get_executor("in-process", workers=2).run(lambda job: note(tmp_path, job), range(20))
    next(run)
    run.close()
    assert len(list(tmp_path.iterdir())) <= 6


def test_a_pool_survives_its_workers():
    jnp.zeros(1).block_until_ready()
    executor = get_executor("pool", workers=1)
    jobs = [3, "raise", "exit", "kill", 4, "sleep", "lambda", "unreadable", lambda: None, "fault", 5]
    with jax.enable_x64(True):
        found = outcomes(executor, [*jobs, "settings"])
    assert (found[3], found[4], found["sleep"], found[5]) == (9, 16, "slept", 25)
    assert found["raise"] == "The job failed. OddError: this and that and more."
    assert found["exit"] == "The job failed. SystemExit: enough."
    for lost in ("kill", "fault"):
        assert found[lost].startswith("The worker process died during the job")
    assert found["lambda"].startswith("The outcome cannot be sent back. ")
    assert found["unreadable"] == "The outcome cannot be read. ValueError: broken pickle."
    assert found[jobs[8]].startswith("The job cannot be sent to a worker. ")
    dtype, platform, process, preallocate = found["settings"]
    assert (dtype, platform, preallocate) == ("float64", jax.devices()[0].platform, "false")
    assert process != os.getpid()


def test_a_pool_gives_each_worker_a_gpu(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert get_executor("pool", options={"gpus": 2}).gpus == ("0", "1")
    executor = get_executor("pool", options={"gpus": "5,7"})
    assert set(outcomes(executor, [("gpu", 1), ("gpu", 2)]).values()) == {"5", "7"}


def test_a_pool_that_is_closed_starts_nothing_more(tmp_path):
    run = get_executor("pool", workers=1).run(partial(note, tmp_path), range(20))
    next(run)
    run.close()
    assert len(list(tmp_path.iterdir())) <= 2


def test_a_worker_of_a_pool_keeps_to_its_cores(monkeypatch):
    kept = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 1, 3, 5, 2}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: kept.append(cores), raising=False)
    for pool, place in ((executors.Pool(2), 0), (executors.Pool(2), 1), (executors.Pool(7), 6)):
        executors._start_worker(pool._cores(place))
    assert kept == [[1, 3, 7], [2, 5]]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not tell cores")
def test_a_worker_of_a_pool_has_no_more_threads_for_matrices_than_cores(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    num_cores = len(os.sched_getaffinity(0))
    workers = min(2, num_cores)
    share = len(range(workers - 1, num_cores, workers))  # of the last worker, which has the first job
    assert outcomes(get_executor("pool"), ["cores"])["cores"] == (num_cores, str(num_cores))
    assert outcomes(get_executor("pool", workers=workers), ["cores", 2])["cores"] == (share, str(share))
    assert "OPENBLAS_NUM_THREADS" not in os.environ  # nothing is left behind
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert outcomes(get_executor("pool", workers=workers), ["cores"])["cores"][1] == "7"


def test_slurm_on_this_machine(tmp_path):
    executor = get_executor("slurm", workers=2, folder=tmp_path, options={"cluster": "local", "timeout_min": 1})
    assert isinstance(executor, Executor)
    with jax.enable_x64(True):
        found = outcomes(executor, ["kill", "settings"])
    assert "ended without a result" in found["kill"]
    assert str(tmp_path / "slurm") in found["kill"]
    assert found["settings"][0] == "float64"
    assert found["settings"][2] != os.getpid()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # submitit's own logs
def test_slurm_that_is_closed_starts_nothing_more(tmp_path):
    executor = get_executor("slurm", folder=tmp_path, options={"cluster": "debug"})
    run = executor.run(partial(note, tmp_path), range(5))
    next(run)
    run.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "slurm"]


@pytest.mark.slow
def test_ray_on_a_cluster(cluster):
    import ray

    jnp.zeros(1).block_until_ready()
    executor = get_executor("ray", address=cluster)
    assert isinstance(executor, Executor)
    jobs = [3, "raise", "exit", "kill", lambda: None, 4]
    with jax.enable_x64(True):
        found = outcomes(executor, [*jobs, "settings"])
    assert (found[3], found[4]) == (9, 16)
    assert found["raise"] == "The job failed. OddError: this and that and more."
    assert found["exit"] == "The job failed. SystemExit: enough."
    assert found["kill"].startswith("Ray lost the job. WorkerCrashedError: ")
    assert found[jobs[4]].startswith("The job cannot be sent to a worker. ")
    assert found["settings"][0] == "float64"
    assert found["settings"][2] != os.getpid()
    assert not ray.is_initialized()


@pytest.mark.slow
def test_ray_leaves_a_connection_that_is_not_its_own(cluster, tmp_path):
    import ray

    before = signal.getsignal(signal.SIGTERM)  # Ray sets its own
    ray.init(address=cluster, log_to_driver=False, logging_level=logging.ERROR)
    try:
        run = get_executor("ray", options={"num_cpus": 2}).run(partial(note, tmp_path), range(20))
        next(run)
        run.close()
        assert ray.is_initialized()
        time.sleep(0.5)
        assert len(list(tmp_path.iterdir())) <= 3
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)


def test_no_cluster_is_a_sentence():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"No Ray cluster let us in at {address}. Start one with"):
            list(get_executor("ray", address=address).run(work, [1]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "pol"}, "There is no executor 'pol'; there are in-process, pool, slurm, ray."),
        ({"name": "pool", "workers": 0}, "An executor needs at least one worker, got 0."),
        ({"name": "pool", "address": "auto"}, "Only the ray executor takes an address; the pool executor got 'auto'."),
        ({"name": "pool", "options": {"mem_gb": 1}}, "The pool executor takes the options gpus, but got mem_gb."),
        ({"name": "slurm"}, "The slurm executor needs the folder of the run, for the files of its jobs."),
        ({"name": "slurm", "folder": Path(), "options": {"cluster": "moon"}}, "AutoExecutor doesn't know"),
    ],
)
def test_wrong_arguments_are_sentences(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        get_executor(**arguments)


@pytest.mark.slow
def test_unknown_options_of_ray_are_a_sentence():
    with pytest.raises(ValueError, match=r"The ray executor cannot be set up\. ValueError: "):
        get_executor("ray", options={"colour": "red"})


def test_unknown_options_of_slurm_are_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"The slurm executor cannot be set up\. NameError: .*'colour'"):
        get_executor("slurm", folder=tmp_path, options={"cluster": "debug", "colour": "red"})


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_package_is_a_sentence(name, package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    sentence = f'The {name} executor needs {package}, which is missing: pip install "discrax[{name}]".'
    with pytest.raises(ImportError, match=re.escape(sentence)):
        get_executor(name, folder=tmp_path)
