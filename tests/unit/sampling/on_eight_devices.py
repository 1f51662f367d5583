"""Run by `test_devices.py` in a process of its own, as JAX counts its devices once: python on_eight_devices.py CASE"""

import sys
from contextlib import suppress
from tempfile import TemporaryDirectory

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import discrax as dx
from discrax.sampling.folder import FolderPlace

SHAPE = (8, 4)
SAMPLERS = {"dmala": "dmala", "pas": "pas", "chromatic": dx.samplers.gibbs("chromatic")}


def draw(sampler, devices, coupling=0.4, **settings):
    target = dx.targets.Ising.lattice(SHAPE, coupling, field=0.25, periodic=True)
    settings = {"num_chains": 8, "num_warmup": 60, "num_samples": 40} | settings
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


def chains(sampler, numbers=(8, 2)):
    one = draw(sampler, None)
    for devices in numbers:
        spread = draw(sampler, devices)
        same(one, spread)
        assert len(spread.states.x.sharding.device_set) == devices
        arrays = jax.tree.leaves(eqx.filter(spread.kernel, eqx.is_array))
        assert all(len(leaf.devices()) == 1 for leaf in arrays)  # it serves anywhere
        assert repr(one.summary().scalars) == repr(spread.summary().scalars)


def quick():
    one, eight = draw("dmala", None), draw("dmala", 8)
    same(one, eight)
    assert len(eight.states.x.sharding.device_set) == 8
    for devices, chains in ((4, 6), (jax.devices()[:3], 8)):
        with pytest.raises(ValueError, match="cannot be spread over"):
            draw("dmala", devices, num_chains=chains)


def moments():
    same(draw("dmala", None, keep="moments", thinning=2), draw("dmala", jax.devices()[4:], keep="moments", thinning=2))


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
        chains(case) if case in SAMPLERS else globals()[case]()
