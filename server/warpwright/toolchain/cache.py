"""Compilations kept on disk: one folder per result, found by hash, never changed after it appears.

`manifests/<key>.json` says, for one text with its flags and compiler, which files it included, their hashes, and the
result; it holds only while all of those files are unchanged. `results/<id>/` holds the cubin or the PTX, and what the
compiler or the disassembler printed. Both appear by a rename, so that a reader sees a whole entry or none, and two
writers of one entry do no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from warpwright.directories import cache_dir, write_whole
from warpwright.files import read_file
from warpwright.progress import CancelledError, IsCancelled
from warpwright.syntax.encoding import encoded

MOST_RESULTS = 1000
_MOST_INCLUDED_BYTES = 1 << 30
ABANDONED_SECONDS = 6 * 3600  # no compilation runs that long


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished compilation: the file that was asked for, the compiler's whole output, and the files included."""

    product: Path
    output: str
    includes: tuple[str, ...] = ()


def key_of(*parts: object) -> str:
    """A hash of all that decides a compilation, other than the included files.

    >>> key_of("a", b"b") == key_of("a", b"b"), key_of("ab", b"") == key_of("a", b"b")
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else encoded(repr(part))
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _folder(name: str) -> Path:
    return cache_dir() / "compilations" / name


def lookup(key: str, product: str) -> Entry | None:
    """The kept result with its file `product`, or None where there is none or a file that it included has changed."""
    try:
        manifest = json.loads((_folder("manifests") / f"{key}.json").read_text(encoding="utf-8"))
        if any(_hash(Path(path)) != digest for path, digest in manifest["includes"].items()):
            return None
        result = _folder("results") / manifest["result"]
        entry = Entry(
            result / product,
            (result / "compiler-output.txt").read_text("utf-8", errors="replace"),
            (*manifest["includes"],),
        )
        os.utime(result)  # the longest unused go first
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return entry if entry.product.is_file() else None


_in_work: set[str] = set()
_done = threading.Condition()


@contextmanager
def in_turn(key: str, is_cancelled: IsCancelled) -> Iterator[None]:
    """Keep this process's other threads from the same compilation: who comes second finds its result.

    Raises CancelledError.
    """
    with _done:
        while key in _in_work:
            if is_cancelled():
                raise CancelledError
            _done.wait(0.1)
        _in_work.add(key)
    try:
        yield
    finally:
        with _done:
            _in_work.discard(key)
            _done.notify_all()


@contextmanager
def building_directory() -> Iterator[Path]:
    """A new folder to compile in, on the cache's own file system; gone afterwards unless `store` took it.

    Folders that a killed process left behind go when the next one is made.

    Raises OSError where the cache cannot be written.
    """
    parent = _folder("building")
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    directory = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def store(key: str, product: str, directory: Path, includes: Iterable[Path]) -> Entry:
    """Keep the compilation in `directory` (`product`, compiler-output.txt) under `key`. Raises OSError."""
    hashes = {str(path): digest for path in includes if (digest := _hash(path))}
    output = (directory / "compiler-output.txt").read_text("utf-8", errors="replace")
    result = key_of(key, sorted(hashes.items()))
    home = _folder("results") / result
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.rename(home)
    except OSError:
        if not (home / product).is_file():
            raise
    write_whole(_folder("manifests") / f"{key}.json", json.dumps({"result": result, "includes": hashes}))
    _prune()
    return Entry(home / product, output, tuple(hashes))


def _hash(path: Path) -> str:
    """Hash of a file's bytes; empty where it cannot be read."""
    try:
        return hashlib.sha256(read_file(path, _MOST_INCLUDED_BYTES)).hexdigest()
    except OSError:
        return ""


def _prune() -> None:
    """Drop the half of the results that was unused longest, once there are more than MOST_RESULTS."""
    results = list(_folder("results").iterdir())
    if len(results) <= MOST_RESULTS:
        return
    with suppress(OSError):
        results.sort(key=lambda p: p.stat().st_mtime)
        for old in results[: MOST_RESULTS // 2]:
            shutil.rmtree(old, ignore_errors=True)
        for manifest in _folder("manifests").glob("*.json"):
            if not (_folder("results") / json.loads(manifest.read_text(encoding="utf-8"))["result"]).exists():
                manifest.unlink()
