"""Runs in a folder that die while they are tuned, or by SIGKILL: they end as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import jax
import numpy as np
import pytest

import discrax as dx
from discrax import targets
from discrax.sampling.run_files import read_npz
from repeats import repeats

from .folders import KEY, assert_same, dying, sample

pytestmark = pytest.mark.optimised  # chunks of other lengths are other programs, compared bit for bit


@pytest.mark.parametrize(
    "sampler", ["pas", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dmala", *repeats((), ("gibbs",))))]
)
def test_tuning_goes_on_where_it_was(tmp_path, monkeypatch, sampler):
    """The capacity of `pas` grows in warm-up, at borders of chunks that the clock has no say in."""
    target = targets.Ising.lattice((10, 10), 0.1)
    settings = {"target": target, "num_warmup": 150, "sampler": sampler}
    with dying(monkeypatch, "commit", 3):
        sample(tmp_path, **settings)
    if sampler == "pas":
        first = dx.samplers.pas().prepare(target, tuning=True)[0].capacity
        assert read_npz(tmp_path / "state-0.npz")[0]["capacity"] > first
    with dying(monkeypatch, "write", 3):
        sample(tmp_path, **settings)
    result, expected = sample(tmp_path, **settings), sample(**settings)
    assert_same(expected, result)
    for one, other in zip(jax.tree.leaves(expected.kernel), jax.tree.leaves(result.kernel), strict=True):
        np.testing.assert_array_equal(one, other)


LATTICE, LONG = ((6, 6), 0.2), {"num_chains": 4, "num_warmup": 300, "num_samples": 1000, "keep_warmup": True}
SERVER = """
    import os, sys
    import jax
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    import zarr.codecs
    import discrax as dx
    from discrax.sampling.folder import FolderPlace
    sample, lattice = dx.sample, dx.targets.Ising.lattice  # all is imported here, once

    for method in ("write", "commit"):
        def announce(self, *arguments, original=getattr(FolderPlace, method)):
            print("now", flush=True)
            return original(self, *arguments)
        setattr(FolderPlace, method, announce)
    for folder in sys.stdin:
        child = os.fork()
        if not child:
            sample(jax.random.key(0), lattice(*LATTICE), sys.argv[2], chunk_size=50, folder=folder.strip(), **LONG)
            os._exit(0)
        print("child", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "sampler"), repeats([(3, "pas")], [(2, "dmala"), (50, "pas")]))
def test_kills_change_nothing(tmp_path, count, sampler):
    """SIGKILL in or soon after a write of one of the next chunks, each time; runs that end are followed by others.

    A server imports the library once and forks a child for every kill.
    """
    rng, kills, finished = random.Random(0), 0, 0
    code = textwrap.dedent(SERVER).replace("*LATTICE", f"*{LATTICE}").replace("**LONG", f"**{LONG}")
    command = [sys.executable, "-W", "ignore", "-c", code, os.environ["DISCRAX_TESTS_COMPILED"], sampler]
    is_running = True
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        while kills < count or is_running:
            print(tmp_path / str(finished), file=server.stdin, flush=True)
            _, child = server.stdout.readline().split()
            left = rng.randrange(1, 8) if kills < count else 10**6
            while not (said := server.stdout.readline()).startswith("ended"):
                assert said == "now\n"
                left -= 1
                if left == 0:
                    time.sleep(rng.uniform(0, 0.02))
                    with suppress(ProcessLookupError):  # it has ended
                        os.kill(int(child), signal.SIGKILL)
            code = int(said.split()[1])
            assert code in (0, -signal.SIGKILL)
            kills, finished, is_running = kills + (code != 0), finished + (code == 0), code != 0
        server.stdin.close()
    expected = dx.sample(KEY, targets.Ising.lattice(*LATTICE), sampler, **LONG)
    for number in range(finished):
        assert_same(expected, dx.load(tmp_path / str(number)))
