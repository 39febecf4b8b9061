"""What tells a file from the one that it was before, without reading it."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int]
"""When a file was changed, in nanoseconds, its bytes, and its inode."""


def stamp_of(file: str | Path) -> Stamp | None:
    """The stamp of a file; None of one that is not there, or that cannot be."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
