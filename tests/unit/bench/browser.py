"""Pages in a browser, where one is installed."""

import re
import shutil
import subprocess
import tempfile

import pytest


def open_page(path, folder):
    """The page after its self-test: what its root element says of it, and the whole as HTML."""
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    browser = next(filter(None, found), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome is installed")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    profile = tempfile.mkdtemp(dir=folder)  # of one call: the browser of the last may still hold its own (status 21)
    flags += f" --disable-component-update --disable-sync --user-data-dir={profile} --virtual-time-budget=2000"
    command = [browser, *flags.split(), "--dump-dom", f"{path.as_uri()}#selftest"]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    head = re.search(r"<html[^>]*>", page)
    assert head is not None
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', head.group())), page
