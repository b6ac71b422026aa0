"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_atomically(path: str | Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` beside `path`, flush it to the disk, then move it there in one step.

    A reader, or a crash half-way, sees the old file or the new one; once this returns, the new one also survives the
    loss of power. A file that existed keeps its mode. A new one has the user's (`_mode`), or is its owner's alone if
    it is `private`. A link stays, and its target is replaced. OSError where the folder cannot be written, and for a
    device or a pipe, which would be gone.
    """
    target = os.fspath(path)
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        raise OSError(errno.EINVAL, "that is no regular file", target)
    path = Path(os.path.realpath(target))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=path.name + ".", suffix=".tmp", dir=path.parent)
    except OSError as error:
        if error.errno is not None:
            error.filename = target  # the path that was passed, not one that the user has never heard of
        raise
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.chmod(temporary, _mode(path, private, temporary))
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = target, None  # a full disk names no file
        raise
    _flush_folder(path.parent)


def _mode(path: Path, private: bool, temporary: str) -> int:
    """The mode of a file that exists; of a new one, what the user's umask leaves for others, or nothing."""
    with suppress(FileNotFoundError):
        return path.stat().st_mode & 0o777
    if private:
        return 0o600
    # To read the umask one has to set it, for all threads, and two that do may leave the wrong one. A file shows it.
    shown = temporary.removesuffix(".tmp") + ".mode.tmp"
    descriptor = os.open(shown, os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return os.fstat(descriptor).st_mode & 0o777
    finally:
        os.close(descriptor)
        os.unlink(shown)


def _flush_folder(folder: Path) -> None:
    """Put the move itself on the disk, where the system can: some file systems, and Windows, flush no folders."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
