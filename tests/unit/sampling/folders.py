"""A short run in a folder, what is the same in two of them, and how one dies."""

from contextlib import contextmanager, suppress

import jax
import numpy as np

import discrax as dx
from discrax import targets
from discrax.sampling.folder import FolderPlace

from ..helpers import OneFlip

KEY = jax.random.key(0)
TARGET = targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)
# One length of chunks for all tests, so that they share their programs.
SHORT = {"num_chains": 3, "num_warmup": 20, "num_samples": 30, "chunk_size": 10}


def sample(folder=None, sampler=None, target=TARGET, key=KEY, **changes):
    return dx.sample(key, target, OneFlip() if sampler is None else sampler, folder=folder, **SHORT | changes)


def assert_same(one, other):
    for name in ("draws", "warmup_draws"):
        before, after = getattr(one, name), getattr(other, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
    for name in ("stats", "warmup_stats"):
        before, after = getattr(one, name), getattr(other, name)
        assert set(before) == set(after)
        for key, values in before.items():
            np.testing.assert_array_equal(values, after[key], err_msg=key)
    np.testing.assert_array_equal(one.states.x, other.states.x)
    assert (one.is_complete, one.num_draws) == (other.is_complete, other.num_draws)
    assert list(map(str, one.reports)) == list(map(str, other.reports))


class Killed(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@contextmanager
def dying(monkeypatch, method: str, number: int):
    """The n-th call of a method of the place where chunks are stored is the end of the process."""
    original, left = getattr(FolderPlace, method), [number]

    def die(self, *arguments):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return original(self, *arguments)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(FolderPlace, method, die)
        yield
