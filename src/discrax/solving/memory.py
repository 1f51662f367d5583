"""Searches that cannot fit are told so before they begin."""

import os
from contextlib import suppress
from pathlib import Path

import jax

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(what: str, num_bytes: float, way_out: str) -> None:
    """Raises a ValueError if this is more than the memory there is."""
    there = host_bytes() if jax.default_backend() == "cpu" else device_bytes()
    if num_bytes > there:
        raise ValueError(
            f"{what} would take about {_in_words(num_bytes)}, but there are {_in_words(there)}; {way_out}."
        )


def host_bytes() -> float:
    """The memory of this machine, or of the container that this runs in."""
    found = float("inf")
    with suppress(AttributeError, ValueError, OSError):
        found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ValueError, OSError):  # "max" where there is no limit
        found = min(found, float(_CGROUP.read_text()))
    return found


def device_bytes() -> float:
    stats = jax.devices()[0].memory_stats() or {}
    return float(stats.get("bytes_limit", float("inf")))


def _in_words(num_bytes: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.0f} {unit}"
    return f"{num_bytes:,.0f} bytes"
