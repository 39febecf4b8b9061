"""The files of a project that launch a kernel which another file defines.

They declare it, `extern __global__ void scale(...);`, or include the header in which it stands. A file that defines a
kernel of that name itself is another program, as the files of a folder of examples are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from warpwright.cuda.functions import function_name
from warpwright.cuda.sites import launch_sites
from warpwright.files import read_file
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import HEADERS, Source
from warpwright.syntax.stamp import Stamp, stamp_of

SUFFIXES = frozenset({".cu", ".cpp", ".cc", ".cxx", *HEADERS})
ROOTS = (".git", "warpwright.toml", "compile_commands.json", "pyproject.toml", "CMakeLists.txt")
"""What the folder of a project has."""

MOST_FILES, MOST_BYTES = 4000, 1 << 20
"""Of a project that are looked into, and of each."""
MOST_FOLDERS = 2000
MOST_FOUND = 16

_LEFT_OUT = frozenset({"node_modules", "build", "dist", "third_party", "site-packages", "__pycache__"})


def project_folder(file: Path) -> Path:
    """The outermost folder up to the repository that has a mark of a project; the file's own where none has."""
    found = file.parent
    for folder in file.parents:
        if any((folder / mark).exists() for mark in ROOTS):
            found = folder
        if (folder / ".git").exists():
            break
    return found


def files_that_launch(path: str, kernel: str) -> list[Source]:
    """The other files of the project that launch a kernel of the file at `path`, as they are on disk."""
    own = Path(path)
    if not own.is_absolute():
        own = own.absolute()
    name = re.compile(rb"\b" + re.escape(encoded(kernel)) + rb"\b")
    found: list[Source] = []
    for file in _files(project_folder(own)):
        if file == own or len(found) == MOST_FOUND:
            continue
        data = _text(str(file), stamp_of(file))
        if b"<<<" not in data and b"LaunchKernel" not in data:
            continue
        if not name.search(data) or not (encoded(own.name) in data or b"__global__" in data):
            continue
        source = Source(str(file), data)
        if _refers_to(source, own.name, kernel) and next(launch_sites([source], kernel), None) is not None:
            found.append(source)
    return found


def _refers_to(source: Source, file: str, kernel: str) -> bool:
    """Whether a file includes the other, or declares its kernel and does not define it."""
    for node in descendants(source.root, "function_definition"):
        if function_name(source, node) == kernel and any(child.type == "__global__" for child in node.children):
            return False
    if re.search(
        rb'^[ \t]*#[ \t]*include[ \t]*["<](?:[^">\n]*/)?' + re.escape(encoded(file)), source.data, re.MULTILINE
    ):
        return True
    return any(
        "__global__" in (text := source.node_text(node)) and re.search(rf"\b{re.escape(kernel)}\s*\(", text)
        for node in descendants(source.root, "declaration")
    )


def _files(folder: Path) -> Iterator[Path]:
    """The source files below a folder, links not followed, each folder's own first."""
    files = 0
    for folders, (here, below, names) in enumerate(os.walk(folder)):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            if os.path.splitext(name)[1] in SUFFIXES:  # noqa: PTH122
                files += 1
                yield Path(here) / name
        if files > MOST_FILES or folders > MOST_FOLDERS:
            return


@lru_cache(maxsize=MOST_FILES)
def _text(path: str, _stamp: Stamp | None) -> bytes:
    try:
        return read_file(path, MOST_BYTES)
    except OSError:
        return b""
