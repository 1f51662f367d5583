"""Compiled programs in the user's cache folder, so that a second run of a command or a notebook need not compile them.

JAX keeps them, found by their code, the versions and the flags. Commands and notebooks do so; scripts decide by
themselves, by JAX's own `jax_compilation_cache_dir`. The environment variable DISCRAX_PROGRAM_CACHE names another
folder, or is "off". What was not used for longest goes when the folder has more than a gigabyte.
"""

import hashlib
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

VARIABLE = "DISCRAX_PROGRAM_CACHE"
_MOST_BYTES = 2**30
_LEAST_SECONDS = 0.1  # of compilation that are worth a file


def keep_programs() -> None:
    """From now on compiled programs are kept, unless the user has decided otherwise."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() in ("off", "0", "false", "no") or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = (Path(chosen) if chosen else _user_cache() / "discrax") / f"programs-{_processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shrink(folder)
    except OSError:
        return  # a home that cannot be written to is no reason not to compute
    if "jax" not in sys.modules:  # importing it takes a second, which `--help` need not wait for
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(_LEAST_SECONDS))
        return
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # ty: ignore[missing-attribute]
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _processor() -> str:
    """Stands for the processor: a program for another one may have instructions that this one lacks."""
    said = platform.machine() + platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        said += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def shrink(folder: Path, most: int = _MOST_BYTES) -> None:
    """Removes what was not used for longest, until at most `most` bytes are there."""
    found = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process may do the same
            stat = path.stat()
            found.append((max(stat.st_mtime, stat.st_atime), stat.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size
