"""The other files of an extension on disk: what lies in the package of one of its files. Nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from warpwright.cuda.extension.unit import Unit, is_script, unit_of, uses_torch
from warpwright.files import read_file, read_start
from warpwright.syntax.source import HEADERS, Source
from warpwright.syntax.stamp import Stamp, stamp_of

ROOTS = ("setup.py", "pyproject.toml", ".git", "warpwright.toml")
"""What the folder of a package has."""
SUFFIXES = frozenset({".cu", ".cpp", ".cc", ".cxx", ".py", *HEADERS})
MOST_FILES, MOST_FOLDERS, MOST_BYTES = 400, 200, 256 << 10
_OF_SCRIPT = re.compile(rb"\btorch\.(?:ops\.|library\b)|\bcpp_extension\b|\bautograd\.Function\b")
_OF_CPP = re.compile(rb"\b(?:TORCH_LIBRARY|PYBIND11_MODULE)|\b(?:torch|at)::Tensor\b")
_LEFT_OUT = frozenset({"node_modules", "build", "dist", "third_party", "site-packages", "__pycache__"})


def unit_near(source: Source, opened: Mapping[str, Source] | None = None) -> Unit:
    """A file with those of its package that belong to an extension; `opened` hold over what is on disk."""
    path = Path(source.path).absolute()
    if not (uses_torch(source) or (is_script(source.path) and b"torch" in source.data)):
        return unit_of(source)
    opened = opened or {}
    found = []
    for file in _files(_package(path)):
        if file != path and (each := opened.get(str(file)) or _source(str(file), stamp_of(file))) is not None:
            found.append(each)
    return unit_of(source, tuple(found))


def is_of_extension(path: Path) -> bool:
    """Whether a C++ or Python file that is no CUDA is of a torch extension: it binds functions, or calls
    or registers them."""
    try:
        return is_of_others(str(path)) and says_extension(str(path), read_start(path, MOST_BYTES))
    except OSError:
        return False


def is_of_others(path: str) -> bool:
    """Whether the file is C++ or Python, of which other language servers say all but what extensions do wrong."""
    return Path(path).suffix in (".cpp", ".cc", ".cxx", ".py")


def says_extension(path: str, data: bytes) -> bool:
    """Whether a text binds functions of a torch extension, or calls or registers them."""
    return (_OF_SCRIPT if is_script(path) else _OF_CPP).search(data) is not None


def is_left_to_others(source: Source) -> bool:
    """Whether nothing is said of a file: it is C++ or Python, of no extension, and launches no kernel."""
    if not is_of_others(source.path) or says_extension(source.path, source.data):
        return False
    return is_script(source.path) or not (b"__global__" in source.data or b"<<<" in source.data)


def _package(path: Path) -> Path:
    """The nearest folder above a file that has the mark of a package; the file's own where none has."""
    return next((folder for folder in path.parents if any((folder / mark).exists() for mark in ROOTS)), path.parent)


def _files(folder: Path) -> Iterator[Path]:
    files = 0
    for folders, (here, below, names) in enumerate(os.walk(folder)):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            if Path(name).suffix in SUFFIXES and files < MOST_FILES:
                files += 1
                yield Path(here) / name
        if files >= MOST_FILES or folders > MOST_FOLDERS:
            return


@lru_cache(maxsize=MOST_FILES)
def _source(path: str, _stamp: Stamp | None) -> Source | None:
    """A file that uses torch, as it is on disk; None for any other."""
    try:
        source = Source(path, read_file(path, MOST_BYTES))
    except OSError:
        return None
    return source if uses_torch(source) or (is_script(path) and b"torch" in source.data) else None
