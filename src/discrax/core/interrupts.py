"""Ctrl-C and SIGTERM end long work with what it has, and never in the middle of keeping it.

A signal that raises wherever the program happens to be can fall between two lines that belong together, and after the
last one that listens: then what was drawn is lost. So the first signal only asks, and whoever runs looks between
chunks; the second raises KeyboardInterrupt at once, for work that does not look in time.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what schedulers and `timeout` send


class Interrupts:
    """Listens for the time of a `with` block: `requested` says whether a signal has come.

    Only the main thread may listen; elsewhere, and where a program has handlers of its own, `requested` stays False.
    Blocks may be nested: the innermost hears the signal, and says so in what it returns.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in _SIGNALS:
            outer = getattr(signal.getsignal(number), "__self__", None)
            if isinstance(outer, Interrupts) and outer.requested:  # what ends does not begin anything new
                self.requested = True
            if _is_ours_to_take(signal.getsignal(number)):
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def _hear(self, number: int, frame: FrameType | None) -> None:
        is_first, self.requested = not self.requested, True
        if self._raises or not is_first:
            raise KeyboardInterrupt

    def raise_if_requested(self) -> None:
        """For work that has nothing to keep yet."""
        if self.requested:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """For waiting for others, when nothing is at stake here: a signal raises KeyboardInterrupt."""
        self._raises = True
        try:
            self.raise_if_requested()
            yield
        finally:
            self._raises = False


def _is_ours_to_take(handler: Any) -> bool:
    """Python's own handlers and ours; a program that handles a signal itself knows why, and one may ignore it."""
    mine = isinstance(getattr(handler, "__self__", None), Interrupts)
    return mine or handler in (signal.default_int_handler, signal.SIG_DFL)


def terminate_as_interrupt() -> None:
    """Makes SIGTERM what Ctrl-C is for a whole command: outside of an `Interrupts` block, a KeyboardInterrupt."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
