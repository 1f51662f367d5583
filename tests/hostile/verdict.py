"""The verdict on a call: a result, a sentence of ours, or a failure and which."""

import builtins
import contextlib
import dis
import io
import re
import signal
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import discrax

from .scene import LIBRARIES
from .things import Scene

SOURCE = str(Path(discrax.__file__).parent)
SECONDS = 60  # a call has this long
_OURS = (ValueError, TypeError, ImportError, OSError, MemoryError, RuntimeError)
_NOT_OURS = (NotImplementedError, RecursionError, UnicodeError)
_MOST_WARNINGS = 3


class OutOfTime(BaseException):
    """A BaseException, so that nothing of ours takes it for an error of a candidate."""


@dataclass(frozen=True)
class Verdict:
    outcome: str  # "result", "sentence", or what is wrong
    detail: str
    seconds: float

    @property
    def is_failure(self) -> bool:
        return self.outcome not in ("result", "sentence")


def spoilt(array, place: int, value):
    """An honest array with one bad entry."""
    import numpy as np

    array = np.array(array)
    if isinstance(value, complex):
        array = array.astype(complex)
    elif isinstance(value, float):
        array = array.astype(float)
    elif isinstance(value, int):
        array = array.astype(np.int64)
    array.reshape(-1)[place % max(array.size, 1)] = value
    return array


_GLOBALS = {**vars(builtins), **LIBRARIES, "spoilt": spoilt}


def evaluate(source: str):
    return eval(compile(source, "<hostile call>", "eval"), dict(_GLOBALS), Scene())


def judge(source: str, must_refuse: bool) -> Verdict:
    began = time.monotonic()
    out, err = io.StringIO(), io.StringIO()
    is_command = source.startswith("command(")

    def late(number, frame):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 5)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            try:
                evaluate(source)
                outcome, detail = ("accepted", "The call was accepted.") if must_refuse else ("result", "")
            except OutOfTime:
                outcome, detail = "out of time", f"more than {SECONDS} s"
            except SystemExit as exit_:
                outcome, detail = (
                    _of_exit(exit_, err.getvalue(), must_refuse) if is_command else ("SystemExit", str(exit_))
                )
            except KeyboardInterrupt:
                outcome, detail = "KeyboardInterrupt", ""
            except BaseException as error:
                outcome, detail = ("traceback", _last(error)) if is_command else _of_error(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    foreign = [
        w for w in warned if not issubclass(w.category, UserWarning) and not issubclass(w.category, DeprecationWarning)
    ]
    if outcome in ("result", "sentence") and len(foreign) > _MOST_WARNINGS:
        outcome, detail = (
            "warnings",
            f"{len(foreign)} warnings, such as {foreign[0].category.__name__}: {foreign[0].message}",
        )
    return Verdict(outcome, detail, time.monotonic() - began)


def _of_exit(exit_: SystemExit, stderr: str, must_refuse: bool) -> tuple[str, str]:
    if exit_.code in (0, None):
        return ("accepted", "The command was accepted.") if must_refuse else ("result", "")
    if exit_.code == 2 and stderr.strip():  # the parser of the command line says what it expected
        return "sentence", " ".join(stderr.split())
    message = exit_.code if isinstance(exit_.code, str) else stderr
    return _of_message(message.removeprefix("discrax: ").strip())


def _of_error(error: BaseException) -> tuple[str, str]:
    if not isinstance(error, _OURS) or isinstance(error, _NOT_OURS):
        return type(error).__name__, _last(error)
    if not _is_raised_by_us(error.__traceback__):
        return f"{type(error).__name__} not raised by us", _last(error)
    return _of_message(str(error))


def _is_raised_by_us(tb: TracebackType | None) -> bool:
    """Whether the innermost frame is a `raise` in discrax's source."""
    if tb is None:
        return False
    while tb.tb_next is not None:
        tb = tb.tb_next
    code = tb.tb_frame.f_code
    return code.co_filename.startswith(SOURCE) and code.co_code[tb.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _of_message(message: str) -> tuple[str, str]:
    """A sentence says what was expected and what came."""
    words = message.split()
    quotes = re.search(r"\b\w*(Error|Exception): ", message) is not None  # what it says ends with the words of another
    starts = bool(re.match(r"[A-Z\d'\"`/\[(]|--\w|[a-z_]\w*", message))
    if not starts or len(words) < 5 or not (message[-1:] in ".)" or quotes):
        return "no sentence", message
    contrast = r"\b(but|not|no|cannot|never|without|missing|unknown|already|needs?|only|at most|at least|all)\b|got|;|:"
    if re.search(contrast, message, re.IGNORECASE) is None:
        return "does not say what came", message
    return "sentence", message


def _last(error: BaseException) -> str:
    """The error and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(SOURCE)]
    where = f" from {Path(ours[-1].filename).relative_to(SOURCE)}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {str(error).strip()[:300]}{where}"
