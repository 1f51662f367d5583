"""Draws of `dx.sample` depend neither on the length of chunks, nor on thinning, nor on other chains: bit for bit."""

from typing import NamedTuple

import jax
import numpy as np
import pytest

import discrax as dx
from conformance.test_conformance import KERNELS, same
from repeats import repeats

pytestmark = pytest.mark.optimised  # other lengths are other programs


class Draws(NamedTuple):
    """A short run of `dx.sample`."""

    sampler: str
    num_chains: int = 3
    num_warmup: int = 0
    num_samples: int = 20
    thinning: int = 1
    chunk_size: int | None = None

    def result(self, adaptation=None) -> dx.Result:
        target = dx.targets.Ising.lattice((3, 4), 0.3, 0.1)
        settings = self._asdict()
        kernel = KERNELS[settings.pop("sampler")](2.5)
        return dx.sample(jax.random.key(5), target, kernel, **settings, adaptation=adaptation)


@pytest.mark.parametrize("sampler", repeats(["pas"], ["gibbs-systematic", "pas"]))
def test_draws_depend_neither_on_chunks_nor_on_other_chains(sampler):
    whole = Draws(sampler).result()
    assert len(np.unique(whole.draws.reshape(-1, 12), axis=0)) > 1
    np.testing.assert_array_equal(Draws(sampler).result().draws, whole.draws)
    in_chunks = Draws(sampler, chunk_size=5).result()
    np.testing.assert_array_equal(in_chunks.draws, whole.draws)
    same(in_chunks.stats, whole.stats)
    np.testing.assert_array_equal(Draws(sampler, num_chains=2).result().draws, whole.draws[:2])


def test_thinning_keeps_every_fourth_draw():
    thinned = Draws("gibbs-systematic", num_samples=5, thinning=4).result()
    np.testing.assert_array_equal(thinned.draws, Draws("gibbs-systematic").result().draws[:, 3::4])


@pytest.mark.slow
def test_draws_after_warm_up_do_not_depend_on_chunks():
    """By default one program tunes and draws (`unit/sampling/test_one_program.py`), here two."""
    settings = {"num_warmup": 100, "num_samples": 150}
    whole = Draws("dmala", **settings).result("auto")
    in_chunks = Draws("dmala", **settings, chunk_size=50).result("auto")
    assert [str(report) for report in in_chunks.reports] == [str(report) for report in whole.reports]
    assert in_chunks.kernel.step_size == whole.kernel.step_size != 2.5
    np.testing.assert_array_equal(in_chunks.draws, whole.draws)


def test_draws_after_warm_up_do_not_depend_on_chunks_where_a_path_outgrows_its_array():
    target = dx.targets.Bernoulli(logits=np.zeros(64))  # everything is accepted, so the path grows to all sites
    whole, in_chunks = (
        dx.sample(jax.random.key(0), target, "pas", num_chains=2, num_warmup=40, num_samples=5, chunk_size=chunk_size)
        for chunk_size in (None, 10)
    )
    assert in_chunks.report.value == whole.report.value
    np.testing.assert_array_equal(in_chunks.draws, whole.draws)
