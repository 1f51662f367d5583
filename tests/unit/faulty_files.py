"""Files that fail: from the n-th change of a folder on, the disk is full, permission is denied, or the process is dead.

    with faulty_files(folder) as faults:              # counts only
        work()
    for n in range(1, faults.count + 1):
        with faulty_files(folder, "full", at=n):
            work()

A change is whatever a program asks of the system: to open for writing, write, synchronise, rename, remove, make a
folder. Only Python's own calls are seen; libraries that write by themselves (tensorstore) are not.
"""

import builtins
import errno
import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KINDS = {
    "full": errno.ENOSPC,
    "denied": errno.EACCES,
    "dead": errno.EIO,  # the n-th write leaves half of its bytes, then nothing changes any more: as after SIGKILL
    "killed": None,  # SIGKILL, for a process of its own
}
_NEEDS_NO_ROOM = ("unlink", "rmdir", "remove")


class Faults:
    """Counts the changes below a folder, and makes them fail from the `at`-th on."""

    def __init__(self, folder: str | Path, kind: str | None, at: int | None):
        assert kind is None or kind in KINDS
        self.folder, self.kind, self.at = os.path.realpath(folder), kind, at
        self.count, self.calls = 0, []
        self._lock = threading.Lock()

    def concerns(self, path: Any, dir_fd: int | None = None) -> bool:
        if isinstance(path, int):
            path = _path_of(path)
        path = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(path):
            path = os.path.join(_path_of(dir_fd), path)
        path = os.path.realpath(path)
        return path == self.folder or path.startswith(self.folder + os.sep)

    def meets(self, call: str) -> bool:
        """Counts a change, and says whether it is to fail."""
        with self._lock:
            if self.kind == "full" and call in _NEEDS_NO_ROOM:
                return False
            self.count += 1
            self.calls.append(call)
            if self.at is None or self.count < self.at:
                return False
            if self.kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            return True

    def error(self, path: Any) -> OSError:
        number = KINDS[self.kind]
        return OSError(number, os.strerror(number), os.fsdecode(path) if not isinstance(path, int) else None)

    @property
    def writes_half(self) -> bool:
        return self.kind == "dead" and self.count == self.at


def _path_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


@contextmanager
def faulty_files(folder: str | Path, kind: str | None = None, at: int | None = None) -> Iterator[Faults]:
    """For the time of the block changes below the folder are counted and, from the `at`-th on, fail."""
    faults, before = Faults(folder, kind, at), {}

    def patch(module: Any, name: str, make: Any) -> None:
        before[module, name] = getattr(module, name)
        setattr(module, name, make(getattr(module, name)))

    def of_path(name: str):
        def make(original):
            def changed(path, *arguments, **settings):
                if faults.concerns(path, settings.get("dir_fd")) and faults.meets(name):
                    raise faults.error(path)
                return original(path, *arguments, **settings)

            return changed

        return make

    def opening(original):
        def changed(path, flags, *arguments, **settings):
            is_for_writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if is_for_writing and faults.concerns(path, settings.get("dir_fd")) and faults.meets("open"):
                raise faults.error(path)
            return original(path, flags, *arguments, **settings)

        return changed

    def writing(original):
        def changed(fd, data):
            if faults.concerns(fd) and faults.meets("write"):
                if faults.writes_half:
                    original(fd, bytes(data)[: len(data) // 2])
                raise faults.error(fd)
            return original(fd, data)

        return changed

    def of_files(original):
        def changed(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
            if not set(mode) & set("wax+") or not faults.concerns(file):
                return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not isinstance(file, int) and faults.meets("open"):
                raise faults.error(file)
            raw = _File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            raw.faults = faults
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

        return changed

    try:
        for name in ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "truncate", "fsync"):
            patch(os, name, of_path(name))
        patch(os, "open", opening)
        patch(os, "write", writing)
        for module in (builtins, io):
            patch(module, "open", of_files)
        yield faults
    finally:
        for (module, name), original in before.items():
            setattr(module, name, original)


class _File(io.FileIO):
    faults: Faults

    def write(self, data):
        if self.faults.meets("write"):
            if self.faults.writes_half:
                super().write(bytes(data)[: len(data) // 2])
            raise self.faults.error(self.name)
        return super().write(data)
