"""Chains and sites over several devices and processes: the draws of one, and sentences for what cannot be spread."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import discrax as dx
from discrax.core.devices import find_devices
from repeats import repeats

HERE = Path(__file__).parent
SPACE = dx.Spin((8, 4))


def environment(count: int) -> dict[str, str]:
    """Of a process with so many devices, which finds the programs that others have compiled."""
    own = {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": os.environ["DISCRAX_TESTS_COMPILED"],
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return os.environ | own


@pytest.mark.slow
def test_eight_devices_give_what_one_gives():
    """Draws, tuning and moments; other verbs; sites that are cut; runs that survive. All cases in one process."""
    cases = ["eight", "moments", "pas", "chromatic", "sparse", "ais", "pcd", "solve", "sites", "folder"]
    command = [sys.executable, str(HERE / "on_eight_devices.py"), *cases, *repeats([], ["gwg", "counts"])]
    done = subprocess.run(command, env=environment(8), capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_two_processes_give_the_draws_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    files = [tmp_path / f"{number}.npz" for number in range(3)]
    script = str(HERE / "in_two_processes.py")
    started = [
        subprocess.Popen(
            [sys.executable, script, str(port), str(number), str(path)],
            env=environment(1),
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, path in enumerate(files)
    ]
    for process in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    first, second, alone = map(np.load, files)
    for name in alone:
        np.testing.assert_array_equal(first[name], alone[name])
        np.testing.assert_array_equal(second[name], alone[name])


@pytest.mark.parametrize(
    ("devices", "kind", "says"),
    [
        (1000, ValueError, "at most"),
        (0, ValueError, "devices must be"),
        (True, TypeError, "a number of devices"),
        ("gpu", TypeError, "a number of devices"),
        ([], TypeError, "a number of devices"),
        ([0], TypeError, "a number of devices"),
        (np.array(2), TypeError, "a number of devices"),
        (2.0, TypeError, "a number of devices"),
    ],
)
def test_unknown_devices_get_a_sentence(devices, kind, says):
    with pytest.raises(kind, match=says):
        find_devices(devices, SPACE, 4)


def test_a_mesh_of_other_axes_gets_a_sentence():
    with pytest.raises(ValueError, match='axes "chains", "sites" or both, but has'):
        find_devices(Mesh(np.asarray(jax.devices()[:1]), ("batch",)), SPACE, 4)


def test_chains_and_sites_that_do_not_divide_get_a_sentence(monkeypatch):
    there = np.asarray([jax.devices()[0]] * 3)
    monkeypatch.setattr("discrax.core.devices._mesh_of", lambda axis: Mesh(there, (axis,)))
    with pytest.raises(ValueError, match="4 chains cannot be spread over 3 devices"):
        find_devices("chains", SPACE, 4)
    with pytest.raises(ValueError, match="8 rows of sites cannot be cut into 3 slabs"):
        find_devices("sites", SPACE, 4)


def test_sites_are_not_cut_where_only_chains_are_spread():
    with pytest.raises(ValueError, match='the one axis "chains"'):
        find_devices(Mesh(np.asarray(jax.devices()[:1]), ("sites",)), SPACE, 4, cuts_sites=False)


def test_a_search_site_by_site_has_no_devices():
    problem = dx.problems.MaxCut(np.array([(0, 1), (1, 2)]))
    with pytest.raises(ValueError, match="'sites' and 'sets' have a chain on every core"):
        dx.solve(jax.random.key(0), problem, "sites", devices=1, num_steps=1)


def test_a_list_of_one_device_is_a_mesh_of_chains():
    found = find_devices(jax.devices()[:1], SPACE, 4)
    assert dict(found.mesh.shape) == {"chains": 1}
    assert find_devices(None, SPACE, 4) is None


def test_a_mesh_that_others_set_for_all_of_jax_changes_nothing():
    """As NetKet does when it is imported; first, so that the program is not there already."""
    given = {"num_chains": 2, "num_warmup": 5, "num_samples": 5, "devices": jax.devices()[:1]}
    target = dx.targets.Ising.lattice((2, 2), coupling=0.3)
    with jax.set_mesh(jax.make_mesh((1,), ("S",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])):
        beside = dx.sample(jax.random.key(0), target, "rwm", **given)
    alone = dx.sample(jax.random.key(0), target, "rwm", **given)
    assert np.array_equal(alone.draws, beside.draws)
