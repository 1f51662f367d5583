"""Forked programs, of which `kills` kills some."""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

PATIENCE = 90.0  # seconds after a signal: a compilation cannot be left, and on a busy machine it takes long
_BEGUN = -1  # where a child says that what is to be killed has begun


def begin() -> None:
    """What is to be killed begins, with JAX's backend up: its start swallows signals, and has nothing to keep."""
    import jax

    jax.devices()
    os.write(_BEGUN, b".")


class Child:
    """A forked program; its output goes to files beside its folder."""

    def __init__(self, pid: int, out: Path, begun: int):
        self.pid, self._out, self._begun, self.status = pid, out, begun, None

    def wait_for_begin(self) -> None:
        """Until the program says that it begins, or is dead."""
        os.read(self._begun, 1)
        os.close(self._begun)

    def wait(self, seconds: float) -> int | None:
        """The exit code, negative if a signal ended it, or None if it still runs after so many seconds."""
        end = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                return None
            else:
                time.sleep(0.01)
        return self.status

    def send(self, number: int) -> None:
        if self.status is None:
            os.kill(self.pid, number)

    @property
    def said(self) -> str:
        return self._out.read_text(errors="replace")


_CHILDREN = 0


def start(run: Callable[[], None]) -> Child:
    """Forks a child that runs in the current folder."""
    global _CHILDREN, _BEGUN
    _CHILDREN += 1
    out = Path(tempfile.gettempdir()) / f"discrax-kill-{os.getpid()}-{_CHILDREN}.txt"
    out.touch()
    begun, _BEGUN = os.pipe()
    pid = os.fork()
    if pid:
        os.close(_BEGUN)
        child = Child(pid, out, begun)
        child.wait_for_begin()
        return child
    code = 1
    try:
        os.close(begun)
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        code = _as_the_interpreter(run)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _as_the_interpreter(run: Callable[[], None]) -> int:
    """Runs, and ends as the interpreter would."""
    try:
        run()
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
