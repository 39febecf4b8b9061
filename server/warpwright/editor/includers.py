"""The file with which a header is compiled: one that includes it, open in the editor or near it on disk.

A header's kernels are launched by who includes it. Alone it would be judged by launches that are assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from warpwright.files import read_start
from warpwright.syntax.encoding import shown_bytes
from warpwright.syntax.source import Source, SourceError, is_file, read_source
from warpwright.syntax.stamp import Stamp, stamp_of

SUFFIXES = (".cuh", ".h", ".hpp", ".hh", ".inl")
_DEVICE_CODE = (b"__global__", b"__device__")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_BESIDE = ("src", "source", "csrc", "kernels")
"""Folders beside an `include/` whose files include what lies there."""
_MOST_FILES = 64
"""Files that are looked into, and the bytes of each: an #include stands at the top."""
_MOST_BYTES = 64 << 10


def includer_of(header: Source, opened: Mapping[str, Source]) -> Source | None:
    """A .cu file that includes a header with device code: one of those `opened`, by path, else one in the header's
    folder, the folder above it, or `src` and the like beside it. None for what is no header, or where there is none."""
    path = Path(header.path)
    if path.suffix not in SUFFIXES or not path.is_absolute() or not any(word in header.data for word in _DEVICE_CODE):
        return None
    for name, source in opened.items():
        if name.endswith(".cu") and path.name in _included(source.data[:_MOST_BYTES]):
            return source
    for near in _near(path):
        if str(near) not in opened and path.name in _included_on_disk(str(near), stamp_of(near)):
            try:
                return read_source(near)
            except SourceError:
                continue
    return None


def included_by(source: Source) -> Path | None:
    """The .cu file beside a file that includes it, as a part of which it is compiled; None where there is none."""
    path = Path(source.path).absolute()
    others = (file for file in sorted(_files(path.parent)) if file.name != path.name)
    return next((file for file in others if path.name in _included_on_disk(str(file), stamp_of(file))), None)


def _near(header: Path) -> list[Path]:
    folder = header.parent
    beside = (folder.parent / name for name in _BESIDE) if folder.parent != folder else ()
    found = [file for each in dict.fromkeys((folder, folder.parent, *beside)) for file in _files(each)]
    return sorted(found, key=lambda file: (file.parent != folder, file.stem != header.stem, file))[:_MOST_FILES]


def _files(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.suffix == ".cu" and is_file(entry)]
    except OSError:
        return []


@lru_cache(maxsize=1024)
def _included_on_disk(path: str, _stamp: Stamp | None) -> frozenset[str]:
    try:
        return _included(read_start(path, _MOST_BYTES))
    except OSError:
        return frozenset()


def _included(text: bytes) -> frozenset[str]:
    """The names of the files that a text includes, without their folders."""
    return frozenset(re.split(r"[/\\]", shown_bytes(name))[-1] for name in _INCLUDE.findall(text))
