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


_listening: "list[Interrupts]" = []  # the innermost last


class Interrupts:
    """Listens for the time of a `with` block: `requested` says whether a signal has come.

    Only the main thread may listen; elsewhere, and where a program has handlers of its own, `requested` stays False.
    Blocks may be nested: the innermost hears the signal, and when it has ended the block around it is asked to end as
    well: a signal that comes with the last step of the inner one, which then is complete, is not lost. A block that
    begins after a signal has come to the one around it is asked to end at once.

    With `raises` the first signal raises too: for a whole command, whose reading of files has nothing to keep. An
    exception that falls into somebody's clean-up is swallowed there, as in JAX's start; the request is not.
    """

    def __init__(self, *, raises: bool = False) -> None:
        self.requested = False
        self._has_heard = False  # `requested` may be set for other reasons
        self._raises = raises
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is not threading.main_thread():
            return self
        self.requested = bool(_listening) and _listening[-1].requested
        _listening.append(self)
        for number in _SIGNALS:
            if _is_ours_to_take(signal.getsignal(number)):
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}
        if self in _listening:
            _listening.remove(self)
        if self._has_heard and _listening:
            _listening[-1].requested = _listening[-1]._has_heard = True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        is_second, self.requested, self._has_heard = self.requested, True, True
        if is_second or self._raises:
            raise KeyboardInterrupt

    def raise_if_requested(self) -> None:
        """For work that has nothing to keep yet."""
        if self.requested:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """For waiting for others, when nothing is at stake here: a signal raises KeyboardInterrupt."""
        before, self._raises = self._raises, True
        try:
            self.raise_if_requested()
            yield
        finally:
            self._raises = before


@contextmanager
def listening() -> Iterator[None]:
    """Decorates a verb that looks for signals while it works: those that come while it checks its arguments count."""
    with Interrupts():
        yield


def _is_ours_to_take(handler: Any) -> bool:
    """Python's own handlers and ours; a program that handles a signal itself knows why, and one may ignore it."""
    mine = isinstance(getattr(handler, "__self__", None), Interrupts)
    return mine or handler in (signal.default_int_handler, signal.SIG_DFL)
