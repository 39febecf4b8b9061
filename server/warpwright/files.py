"""Files that a project names: regular ones of limited size, read without waiting.

A project may name anything: a pipe that nobody writes to, a terminal, a device without an end, a link that leads to
itself. Whoever reads a file that the user did not name reads it here, so that none of these stops a process.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))


class NotAFileError(OSError):
    """What a name leads to has no text of an end: a device, a pipe, a socket."""


def read_file(path: str | Path, most_bytes: int) -> bytes:
    """The bytes of a regular file. Raises OSError, also for what is no file, and for one of more than `most_bytes`."""
    data = read_start(path, most_bytes + 1)
    if len(data) > most_bytes:
        limit = f"{most_bytes >> 20} MB" if most_bytes >= 1 << 20 else f"{most_bytes >> 10} KB"
        raise OSError(errno.EFBIG, f"it is larger than {limit}", str(path))
    return data


def read_start(path: str | Path, most_bytes: int) -> bytes:
    """The first bytes of a regular file. Raises OSError."""
    try:
        _demand_regular(os.stat(path), path)  # to open a device can do harm by itself  # noqa: PTH116
        handle = os.open(path, _FLAGS)
    except ValueError:  # a name that cannot be one, such as with a null byte
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    try:
        _demand_regular(os.fstat(handle), path)  # it may be another by now
        parts: list[bytes] = []
        left = most_bytes
        while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def _demand_regular(status: os.stat_result, path: str | Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(errno.EINVAL, "it is a device, a pipe or a socket", str(path))
