"""Compiled programs are kept in the user's cache folder, within bounds, unless the user declines."""

import os
import subprocess
import sys

import pytest

from discrax.core.program_cache import shrink

PROGRAM = """
from discrax.core.program_cache import keep_programs
keep_programs()
import jax
print(jax.config.jax_compilation_cache_dir)
"""


def folder_of(tmp_path, **variables):
    names = ("JAX_COMPILATION_CACHE_DIR", "DISCRAX_PROGRAM_CACHE")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=clean | {"XDG_CACHE_HOME": str(tmp_path / "home")} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder of other systems is elsewhere")
def test_they_lie_in_the_users_cache(tmp_path):
    found = folder_of(tmp_path)
    assert found.startswith(str(tmp_path / "home" / "discrax" / "programs-"))
    assert os.path.isdir(found)


@pytest.mark.parametrize("chosen", ["off", "0"])
def test_they_can_be_declined(tmp_path, chosen):
    assert folder_of(tmp_path, DISCRAX_PROGRAM_CACHE=chosen) == "None"


def test_another_folder(tmp_path):
    assert folder_of(tmp_path, DISCRAX_PROGRAM_CACHE=str(tmp_path / "mine")).startswith(str(tmp_path / "mine"))


def test_the_users_own_setting_stays(tmp_path):
    assert folder_of(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax")) == str(tmp_path / "jax")


def test_a_home_that_cannot_be_written_to_is_no_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    assert folder_of(tmp_path, DISCRAX_PROGRAM_CACHE=str(tmp_path / "file")) == "None"


def test_the_oldest_go_first(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(b"0" * 10)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    shrink(tmp_path, most=25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
