"""A disk that is full, denies or dies at any write: what was there stays whole, and the error is a sentence."""

import functools
import json

import jax
import numpy as np
import pytest

import discrax as dx
from hostile.kills import judge_files
from hostile.verdict import _is_raised_by_us, _of_message
from unit.faulty_files import faulty_files


@functools.cache
def solution() -> dx.Solution:
    graph = np.array([[0, 1], [1, 2], [2, 3]])
    search = dx.searches.Sites(num_chains=2)
    return dx.solve(jax.random.key(0), dx.problems.MaxCut(graph), search, num_steps=4, progress=False)


@functools.cache
def result() -> dx.Result:
    target = dx.targets.Bernoulli(np.full(4, 0.5))
    return dx.sample(jax.random.key(0), target, "rwm", num_chains=2, num_warmup=0, num_samples=2, progress=False)


SAVERS = {
    "solution.json": lambda path: solution().save(path),
    "run.nc": lambda path: result().save(path),
}


def _error_of(save, path) -> OSError | None:
    try:
        save(path)
    except OSError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["full", "denied", "dead"])
@pytest.mark.parametrize("name", list(SAVERS))
def test_a_file_that_cannot_be_written_leaves_the_one_that_was_there(tmp_path, name, kind):
    path, save = tmp_path / name, SAVERS[name]
    save(path)
    with faulty_files(tmp_path) as faults:
        save(path)
    assert faults.count > 0
    before = path.read_bytes()
    for n in np.unique(np.linspace(1, faults.count, 6).astype(int)):
        with faulty_files(tmp_path, kind, at=n):
            error = _error_of(save, path)
        if error is None:  # the fault met something that does no harm, such as a file that need not be removed
            assert path.stat().st_size > 0
        else:
            assert _is_raised_by_us(error.__traceback__), repr(error)
            assert _of_message(str(error))[0] == "sentence", str(error)
            assert path.read_bytes() == before
        # Where nothing may be removed any more, what lies beside the file stays there.
        assert judge_files(tmp_path, after_kill=kind != "full") is None
        save(path)  # and the next attempt succeeds
        before = path.read_bytes()


def test_a_solution_that_was_saved_can_be_read(tmp_path):
    SAVERS["solution.json"](tmp_path / "solution.json")
    assert json.loads((tmp_path / "solution.json").read_text())["objective"] == solution().objective
