"""Pages in a browser, where one is installed."""

import re
import shutil
import subprocess
import tempfile

import pytest

PROFILE_IN_USE = 21  # which Chromium says of a new profile too, once in some runs on a busy machine


def open_page(path, folder):
    """The page after its self-test: what its root element says of it, and the whole as HTML."""
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    browser = next(filter(None, found), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome is installed")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --virtual-time-budget=2000"
    for _ in range(3):
        profile = tempfile.mkdtemp(dir=folder)  # of one call: the browser of the last may still hold its own
        command = [browser, *flags.split(), f"--user-data-dir={profile}", "--dump-dom", f"{path.as_uri()}#selftest"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if ended.returncode != PROFILE_IN_USE:
            break
    assert ended.returncode == 0, ended.stderr
    page = ended.stdout
    head = re.search(r"<html[^>]*>", page)
    assert head is not None
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', head.group())), page
