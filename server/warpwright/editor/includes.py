"""Quoted includes as the user sees them: what is open in the editor first, then what is on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from warpwright.facts.unit import IncludeReader
from warpwright.syntax.source import Source, include_reader, read_include

_KEPT = 256
_on_disk: dict[str, Source] = {}


def open_first(opened: Mapping[str, Source]) -> IncludeReader:
    """A reader that prefers the sources in `opened`, by path, to the disk.

    A file from disk stays parsed until it changes. A document that is in no file includes nothing.
    """

    read_first = include_reader(opened)

    def read(from_path: str, name: str) -> Source | None:
        found = read_first(from_path, name) if Path(from_path).is_absolute() else None
        if found is None or opened.get(found.path) is found:
            return found
        return _parsed_once(os.path.normpath(found.path), found)

    return read


def with_folders(reader: IncludeReader, folders: Sequence[str]) -> IncludeReader:
    """A reader that looks in the compiler's folders for what the first one does not find."""

    def read(from_path: str, name: str) -> Source | None:
        found = reader(from_path, name)
        if found is not None or not folders:
            return found
        found = read_include(from_path, name, folders)
        return None if found is None else reader(found.path, Path(found.path).name) or found

    return read


def _parsed_once(path: str, found: Source) -> Source:
    kept = _on_disk.get(path)
    if kept is None or kept.data != found.data:
        if len(_on_disk) >= _KEPT:
            _on_disk.clear()
        kept = _on_disk[path] = Source(path, found.data)
    return kept
