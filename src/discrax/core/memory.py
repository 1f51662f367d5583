"""What cannot fit into memory is told so before it begins, with how many bytes it would take."""

import os
from contextlib import suppress
from pathlib import Path

import jax

_CGROUP = Path("/sys/fs/cgroup/memory.max")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def host_bytes() -> float:
    """The memory of this machine, or of the container that this runs in."""
    found = float("inf")
    with suppress(AttributeError, ValueError, OSError):
        found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ValueError, OSError):  # "max" where there is no limit
        found = min(found, float(_CGROUP.read_text()))
    return found


def device_bytes() -> float:
    """The memory of the first device, in bytes; infinite where it does not tell."""
    stats = jax.devices()[0].memory_stats() or {}
    return float(stats.get("bytes_limit", float("inf")))


def in_bytes(num_bytes: float, largest: str = "TiB") -> str:
    """In the unit that suits it, up to the largest."""
    for unit in _UNITS:
        if num_bytes < 1024 or unit == largest:
            break
        num_bytes /= 1024
    return f"{num_bytes:.2g} {unit}" if num_bytes < 10 else f"{num_bytes:,.0f} {unit}"


def check_host_memory(who: str, what: str, num_bytes: float, way_out: str = "") -> None:
    """Raises a ValueError if what is kept on the host is more than it has."""
    if num_bytes > host_bytes():
        raise ValueError(
            f"{who} must fit into the machine's {in_bytes(host_bytes())} of memory, but {what} need "
            f"{in_bytes(num_bytes)}{way_out and '; '}{way_out}."
        )


def check_memory(what: str, num_bytes: float, way_out: str) -> None:
    """Raises a ValueError if this is more than the memory there is where programs run."""
    there = host_bytes() if jax.default_backend() == "cpu" else device_bytes()
    if num_bytes > there:
        takes, has = (in_bytes(count, "GiB") for count in (num_bytes, there))
        raise ValueError(f"{what} would take about {takes}, but there are {has}; {way_out}.")


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
