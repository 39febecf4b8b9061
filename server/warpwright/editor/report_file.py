"""What a user is shown as a file of its own: where it is written, in the user's cache."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

from warpwright.directories import cache_dir


def report_file(path: str, kernel: str, what: str) -> Path:
    """Of a kernel of the file at `path`: one for what was done, the last one written. Files of one name in different
    folders have their own.

    >>> report_file("/p/a b.cu", "scale", "results.html").name
    'a-b-scale-e1ce9b77-results.html'
    """
    return cache_dir() / "reports" / f"{_plain(Path(path).stem)}-{_plain(kernel)}-{crc32(path.encode()):08x}-{what}"


def _plain(name: str) -> str:
    return re.sub(r"\W+", "-", name)
