"""The file with which a header, or a .cu file that another includes, is compiled: open in the editor or near on disk.

Its kernels are launched by who includes it. Alone it would be judged by assumed launches, and need not compile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from warpwright.files import read_start
from warpwright.syntax.encoding import shown_bytes
from warpwright.syntax.source import HEADERS, Source, SourceError, is_file, read_source
from warpwright.syntax.stamp import Stamp, stamp_of

_DEVICE_CODE = (b"__global__", b"__device__")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_BESIDE = ("src", "source", "csrc", "kernels")
"""Folders beside an `include/` whose files include what lies there."""
_MOST_FILES = 64
"""Files that are looked into, and the bytes of each: an #include stands at the top."""
_MOST_BYTES = 64 << 10


def includer_of(part: Source, opened: Mapping[str, Source]) -> Source | None:
    """A .cu file that includes a file with device code: one of those `opened`, by path, else one in its folder, the
    folder above it, or `src` and the like beside it. None where there is none."""
    path = Path(part.path)
    if (
        path.suffix not in (*HEADERS, ".cu")
        or not path.is_absolute()
        or not any(word in part.data for word in _DEVICE_CODE)
    ):
        return None
    for name, source in opened.items():
        if name.endswith(".cu") and name != part.path and _names(path, _included(source.data[:_MOST_BYTES])):
            return source
    for near in _near(path):
        if near != path and str(near) not in opened and _names(path, _included_on_disk(str(near), stamp_of(near))):
            try:
                return read_source(near)
            except SourceError:
                continue
    return None


def _near(part: Path) -> list[Path]:
    folder = part.parent
    beside = (folder.parent / name for name in _BESIDE) if folder.parent != folder else ()
    found = [file for each in dict.fromkeys((folder, folder.parent, *beside)) for file in _files(each)]
    return sorted(found, key=lambda file: (file.parent != folder, file.stem != part.stem, file))[:_MOST_FILES]


def _files(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.suffix == ".cu" and is_file(entry)]
    except OSError:
        return []


@lru_cache(maxsize=1024)
def _included_on_disk(path: str, _stamp: Stamp | None) -> frozenset[tuple[str, ...]]:
    try:
        return _included(read_start(path, _MOST_BYTES))
    except OSError:
        return frozenset()


def _included(text: bytes) -> frozenset[tuple[str, ...]]:
    """The files that a text includes, as parts of their paths without what leads upwards."""
    spelt = (re.split(r"[/\\]+", shown_bytes(name)) for name in _INCLUDE.findall(text))
    return frozenset(tuple(part for part in parts if part not in ("", ".", "..")) for parts in spelt)


def _names(path: Path, included: frozenset[tuple[str, ...]]) -> bool:
    """Whether one of them may be the file.

    >>> _names(Path("/p/lib/k.cuh"), _included(b'#include "../lib/k.cuh"'))
    True
    """
    return any(parts == path.parts[-len(parts) :] for parts in included if parts)
