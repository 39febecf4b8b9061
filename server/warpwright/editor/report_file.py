"""What a user is shown as a file of its own: where it is written, in the user's cache."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

from warpwright.directories import cache_dir
from warpwright.syntax.encoding import encoded, shown


def report_name(path: str, kernel: str, what: str) -> str:
    """Of a kernel of the file at `path`: one for what was done, the last one written. Files of one name in different
    folders have their own.

    >>> report_name("/p/a b.cu", "scale", "results.html")
    'a-b-scale-e1ce9b77-results.html'
    """
    return f"{_plain(Path(path).stem)}-{_plain(kernel)}-{crc32(encoded(path)):08x}-{what}"


def written_text(name: str, page: str) -> Path | None:
    """A page for its user as a file of that name in the user's cache; None where it cannot be written."""
    target = cache_dir() / "reports" / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(shown(page), encoding="utf-8")
    except OSError:
        return None
    return target


def _plain(name: str) -> str:
    return re.sub(r"\W+", "-", name)
