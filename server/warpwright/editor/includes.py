"""Quoted includes as the user sees them: what is open in the editor first, then what is on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from warpwright.facts.unit import IncludeReader
from warpwright.syntax.source import Source, read_include

_KEPT = 256
_on_disk: dict[str, tuple[tuple[int, int], Source]] = {}


def open_first(opened: Mapping[str, Source]) -> IncludeReader:
    """A reader that prefers the sources in `opened`, by path, to the disk.

    A file read from disk stays parsed until it changes. A document without a file includes nothing.
    """

    def read(from_path: str, name: str) -> Source | None:
        if not Path(from_path).is_absolute():
            return None
        beside = os.path.normpath(Path(from_path).parent / name)
        return opened[beside] if beside in opened else _from_disk(from_path, name)

    return read


def _from_disk(from_path: str, name: str) -> Source | None:
    source = read_include(from_path, name)
    if source is None:
        return None
    try:
        status = Path(source.path).stat()
    except OSError:
        return source
    stamp = (status.st_mtime_ns, status.st_size)
    kept = _on_disk.get(source.path)
    if kept is not None and kept[0] == stamp:
        return kept[1]
    if len(_on_disk) >= _KEPT:
        _on_disk.clear()
    _on_disk[source.path] = (stamp, source)
    return source
