"""Writing a file so that no reader, crash or full disk ever leaves half of it."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step. Follows a link to its target and keeps the permissions.

    Raises OSError; the file is then what it was.
    """
    path = path.resolve()
    if path.exists() and not os.access(path, os.W_OK):  # a rename would get past the file's own permissions
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
