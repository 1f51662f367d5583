"""Run by `test_devices.py` in a process of its own, as JAX counts its devices once: python on_eight_devices.py CASE"""

import sys
from contextlib import suppress
from functools import partial
from tempfile import TemporaryDirectory

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import discrax as dx
from discrax.core import programs
from discrax.sampling.folder import FolderPlace

SHAPE = (8, 4)
EDGES = np.array([(i, (i + step) % 32) for i in range(32) for step in (1, 7)])
PROBLEMS = [dx.problems.MaxCut(EDGES), dx.problems.MaxCut(EDGES[:50])]
SAMPLERS = {"dmala": "dmala", "gwg": "gwg", "pas": "pas", "chromatic": dx.samplers.gibbs("chromatic")}


def draw(sampler, devices, coupling=0.4, target=None, **settings):
    target = dx.targets.Ising.lattice(SHAPE, coupling, field=0.25, periodic=True) if target is None else target
    settings = {"num_chains": 8, "num_warmup": 60, "num_samples": 60} | settings  # one program tunes and draws
    return dx.sample(jax.random.key(1), target, SAMPLERS[sampler], devices=devices, progress=False, **settings)


def same(one, other):
    """Draws, statistics of warm-up and drawing, tuned kernel and moments are the same numbers."""
    parts = [
        (r.draws, r.moments, r.mean_stats, r.stats, r.warmup_stats, r.kernel, r.states.x, r.reports)
        for r in (one, other)
    ]
    first, second = map(jax.tree.leaves, parts)
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def chains(sampler, target=None):
    one, spread = draw(sampler, None, target=target), draw(sampler, 2, target=target)
    same(one, spread)
    assert len(spread.states.x.sharding.device_set) == 2
    arrays = jax.tree.leaves(eqx.filter(spread.kernel, eqx.is_array))
    assert all(len(leaf.devices()) == 1 for leaf in arrays)  # it serves anywhere
    assert repr(one.summary().scalars) == repr(spread.summary().scalars)


def eight():
    one, eight = draw("dmala", None), draw("dmala", 8)
    same(one, eight)
    assert len(eight.states.x.sharding.device_set) == 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "_compile", None)  # what cannot be spread is said before anything is compiled
        for devices, chains in ((4, 6), (jax.devices()[:3], 8)):
            with pytest.raises(ValueError, match="cannot be spread over"):
                draw("dmala", devices, num_chains=chains)


def sparse():
    """Chromatic Gibbs on a graph steps in an order of the sites of its own."""
    target = dx.targets.Ising.graph(EDGES, 0.3, field=0.1)
    assert SAMPLERS["chromatic"].prepare(target, tuning=False)[0].arrange(target) is not None
    chains("chromatic", target=target)


def ais():
    target = dx.targets.Ising.lattice(SHAPE, 0.3, field=0.1)
    settings = {"num_chains": 8, "num_temperatures": 30, "sampler": "dmala", "progress": False}
    one, eight = (dx.learn.ais(jax.random.key(2), target, devices=n, **settings) for n in (None, 8))
    for a, b in zip(one, eight, strict=True):
        np.testing.assert_array_equal(a, b)


def pcd():
    model = dx.targets.Ising.lattice(SHAPE, 0.1, field=np.zeros(SHAPE))
    rows = np.random.default_rng(0).integers(0, 2, (64, *SHAPE)).astype(np.int8)
    for sampler in ("dmala", dx.samplers.gibbs("systematic")):  # of which the second has a scan of the sites
        settings = {"sampler": sampler, "num_steps": 3, "num_updates": 20, "batch_size": 16, "buffer_size": 48}
        settings |= {"every": 10, "learning_rate": 0.01, "progress": False}
        one, eight = (dx.learn.pcd(jax.random.key(3), model, rows, devices=n, **settings) for n in (None, 8))
        assert not np.array_equal(one.model.linear, model.linear)
        parts = [eqx.filter((r.model, r.ema, r.kernel, r.buffer), eqx.is_array_like) for r in (one, eight)]
        for a, b in zip(*map(jax.tree.leaves, parts), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        np.testing.assert_allclose(one.curves["acceptance"], eight.curves["acceptance"], rtol=1e-6)
    with pytest.raises(ValueError, match="batch_size must be a multiple"):
        dx.learn.pcd(jax.random.key(3), model, rows, devices=3, **settings)


def solve():
    by_sampler = {"sampler": "dmala", "num_chains": 8}
    _found(dx.searches.Anneal(**by_sampler), PROBLEMS, [8])
    _found(dx.searches.Temper(**by_sampler), PROBLEMS[:1], [8])
    _found(dx.searches.Anneal(num_chains=16), PROBLEMS, [2])  # by replicas, as those below
    _found(dx.searches.Temper(num_chains=16, num_rungs=2), PROBLEMS[:1], [8])
    _found(dx.searches.Population(num_chains=16), PROBLEMS, [8])


def counts():
    _found(dx.searches.Anneal(num_chains=16), PROBLEMS, [1, 2, 8])


def _found(search, problems, counts):
    call = partial(dx.solve_many, jax.random.key(4), problems, search, num_steps=60, progress=False)
    one = call(devices=None)
    for devices in counts:
        for a, b in zip(one, call(devices=devices), strict=True):
            assert (a.objective, a.num_steps) == (b.objective, b.num_steps)
            np.testing.assert_array_equal(a.state, b.state)
            assert a.history.mean[-1] == b.history.mean[-1]  # of the last states of all chains


def moments():
    fixed = {"keep": "moments", "thinning": 2, "num_warmup": 0, "adaptation": None}
    same(draw("dmala", None, **fixed), draw("dmala", jax.devices()[4:], **fixed))


def sites():
    """Whole couplings and fields of quarters: all sums are exact, in whatever order, but for those of proposals."""
    for axes, shape in ((("sites",), (4,)), (("chains", "sites"), (2, 4))):
        mesh = Mesh(np.asarray(jax.devices()[: np.prod(shape)]).reshape(shape), axes)
        for sampler in ("chromatic", "dmala"):
            fixed = {"coupling": 1.0, "adaptation": None, "num_warmup": 0}
            one, split = draw(sampler, None, **fixed), draw(sampler, mesh, **fixed)
            np.testing.assert_array_equal(one.draws, split.draws)
            assert split.states.x.sharding.shard_shape(split.states.x.shape)[1] == SHAPE[0] // 4


def folder():
    """Killed and taken up on as many devices a run ends as on one; on another number it goes on, and says so."""
    settings, commit = {"num_warmup": 40, "num_samples": 40, "chunk_size": 20}, FolderPlace.commit
    whole = TemporaryDirectory()
    one = draw("dmala", None, folder=whole.name, **settings)

    def die(self, run, done):
        commit(self, run, done)
        if self._title == "sampling":
            raise RuntimeError

    for then in (8, 2):
        with TemporaryDirectory() as path:
            FolderPlace.commit = die
            with suppress(RuntimeError):
                draw("dmala", 8, folder=path, **settings)
            FolderPlace.commit = commit
            assert dx.load(path).num_draws == 20
            if then == 8:
                same(one, draw("dmala", then, folder=path, **settings))
            else:
                with pytest.warns(UserWarning, match="begun with devices for chains 8, which is 2 now"):
                    assert draw("dmala", then, folder=path, **settings).num_draws == 40


if __name__ == "__main__":
    for case in sys.argv[1:]:
        print(case, flush=True)  # the last one is the one that fails
        chains(case) if case in SAMPLERS else globals()[case]()
