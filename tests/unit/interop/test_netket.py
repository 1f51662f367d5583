"""The tests of NetKet's rule, in a process of their own: with NetKet, JAX traces some of our programs twice."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).with_name("netket_laws.py")


@pytest.mark.slow  # to import NetKet takes eight seconds
def test_netket():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "failed" not in done.stdout
