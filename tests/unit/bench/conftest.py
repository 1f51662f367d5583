"""Files as users write them, and a Ray cluster on the loopback, for the tests that want them."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from .own_files import OWN, SUITE

# A token of its own: nothing of the user's is read, and nobody else can use the cluster. Ray reads the mode once, when
# it is imported, so it is set before any test imports it.
os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})


@pytest.fixture
def files(tmp_path):
    """A folder with a suite and kernels and targets of one's own."""
    (tmp_path / "suite.py").write_text(SUITE)
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


@pytest.fixture(scope="package")
def cluster():
    """A Ray cluster of one node on the loopback; its address. It works while it waits, so it goes with this folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    ray = str(Path(sys.executable).with_name("ray"))
    command = [ray, "start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", address.split(":")[1]]
    command += ["--num-cpus", "2", "--include-dashboard=false", "--disable-usage-stats"]
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        command += ["--temp-dir", folder]  # short, as sockets want it, and not where another cluster is looked up
        node = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(address)
            yield address
        finally:
            node.terminate()
            node.wait(10)


def _wait_for(address):
    host, port = address.split(":")
    for _ in range(150):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.1)
    pytest.fail(f"No Ray cluster came up at {address}.")
