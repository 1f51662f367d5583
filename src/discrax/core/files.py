"""Files that are whole or not there, paths that are checked before the work, folders with one writer.

What goes wrong with a file is an `UnusableFile`: its message is a sentence, and what was there before is still there.
"""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


class UnusableFile(OSError):
    """A file or a folder that cannot be written; says which, and why."""

    def __init__(self, path: str | Path, why: str):
        super().__init__(f"{path} cannot be written: {why}.")

    @staticmethod
    def because(path: str | Path, error: OSError) -> "UnusableFile":
        """With the reason that the system gives."""
        return UnusableFile(path, (error.strerror or str(error)).lower().rstrip("."))


def check_writable(path: str | Path) -> Path:
    """Raises an `UnusableFile` if a file could not be written there. Makes the folders that lead to it."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"A file is named by its path, but got {type(path).__name__}.")
    path = Path(path).expanduser()
    _refuse_stdout(path)
    check_folder(path.parent)
    if path.is_dir():
        raise UnusableFile(path, "it is a folder, and a file was expected")
    if path.exists() and not os.access(path, os.W_OK):
        raise UnusableFile(path, "permission denied")
    return path


def check_folder(folder: str | Path) -> Path:
    """Makes a folder where there is none, and raises an `UnusableFile` if nothing can be written into it."""
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"A folder is named by its path, but got {type(folder).__name__}.")
    folder = Path(folder).expanduser()
    _refuse_stdout(folder)
    try:
        is_file = folder.exists() and not folder.is_dir()
    except OSError as error:  # a name that is too long, or a folder on the way that may not be looked into
        raise UnusableFile.because(folder, error) from error
    if is_file:
        raise UnusableFile(folder, "it is a file, and a folder was expected")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UnusableFile.because(folder, error) from error
    except ValueError as error:  # a name that no file can have
        raise UnusableFile(repr(str(folder)), str(error)) from error
    return folder


def _refuse_stdout(path: Path) -> None:
    if str(path) == "-":
        raise UnusableFile("-", "what is made here does not go to standard output; name a file or a folder")


def check_unused(folder: Path, what: str) -> None:
    """Raises an `UnusableFile` if there are files in a folder that is to hold `what`."""
    if any(not each.name.startswith(".") for each in folder.iterdir()):
        raise UnusableFile(folder, f"it must be empty or hold {what}, but there are other files in it")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to, in a `with` block; what is there moves to `path` when it is on the disk.

    If anything fails, the file that was there is untouched and nothing is left beside it.
    """
    path = check_writable(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise UnusableFile.because(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def write_whole(path: str | Path, content: str | bytes | Callable[[IO[bytes]], Any]) -> Path:
    """Writes a file that is whole or not there; `content` may be a function that writes to the open file."""
    with whole_file(path) as partial, partial.open("wb") as file:
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
    return Path(path).expanduser()


class FolderLock:
    """One writer a folder, for the time of a `with` block; the system frees the lock of a process that died.

    Who comes while another writes is told so in a sentence or, with `waits`, waits for it.

    What is made of the folder by its one writer comes from `open`, which has the lock already.
    """

    def __init__(self, folder: str | Path, *, waits: bool = False):
        self.path, self.waits = check_folder(folder), waits
        self._file: IO[str] | None = None

    def open(self) -> None:
        """Called when the folder is locked; nothing by default."""

    def __enter__(self) -> Self:
        place = self.path / ".lock"
        try:
            file = place.open("a+")
        except OSError as error:
            raise UnusableFile.because(place, error) from error
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if self.waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                who = file.read().strip() or "another process"
                file.close()
                raise UnusableFile(self.path, f"{who} is writing there; wait for it or stop it") from None
            except OSError:  # a file system without locks: better no lock than no run
                pass
        with suppress(OSError):  # a full disk must not stop a run that only reads
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
        self._file = file
        try:
            self.open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
