"""How a file is compiled: what the project's compile_commands.json says of it.

CMake, Bear and others write it (Clang's "JSON Compilation Database Format Specification"). Nothing here raises: a file
that cannot be read is as good as none, and one sentence says so.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from warpwright.files import read_file, read_start
from warpwright.syntax.encoding import shown_bytes
from warpwright.syntax.flags import Flags, flags_of_options, read_options
from warpwright.syntax.stamp import Stamp, stamp_of
from warpwright.toolchain.nvcc_options import NvccOptions, WhyNot, nvcc_options, shell_words, with_option_files

DATABASE = "compile_commands.json"
MOST_BYTES = 256 << 20
_FOLDERS = ("", "build", "out", ".vscode")
_NAMED_FOLDERS = re.compile(r"cmake-build-|build[-_.]")
_CUDA = (".cu", ".cuh")
_MOST_READ = 64
"""Files that are looked into for one that includes a header, and the bytes of each: an #include stands at the top."""
_MOST_READ_BYTES = 64 << 10
_MOST_OPTION_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class CompileFlags:
    """How one file is compiled.

    `flags` is for analysis. `options` are nvcc's, in any folder, without the architecture; `left_out` those that change
    device code and are not taken; `refused` sentences on those that a project may not choose. `origin` says for people
    where they are from, "" where there is no entry; `trouble` is one sentence where something could not be read.
    """

    flags: Flags = field(default_factory=Flags)
    options: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    origin: str = ""
    trouble: str = ""

    @property
    def words(self) -> str:
        """Where they are from, and what of them is not taken, for reports; "" where there is no entry."""
        return f"{self.origin}, without its {' '.join(self.left_out)}" if self.left_out else self.origin


def compile_flags(
    path: str, *, arch: str | None = None, database: str = "", workspace: Sequence[str] = ()
) -> CompileFlags:
    """How the file at `path` is compiled; empty where nothing says it.

    `database` (a compile_commands.json, or its folder) is used where it is given. Else it is looked for in the file's
    folder and those above it, then in the `workspace` folders: in each beside what is there, in build/, out/, .vscode/
    and cmake-build-*/. Of several entries the first that compiles for `arch` is taken, else the first. A file without
    an entry, such as a header, takes that of a file that includes it, else of one beside it, else of the nearest.
    """
    file = Path(path).absolute()
    found = _given(database) if database else _search(file, workspace)
    if isinstance(found, str):
        return CompileFlags(trouble=found)
    if found is None:
        return CompileFlags()
    return _flags_in(str(found[0]), found[1], str(file), arch)


Found = tuple[Path, Stamp]
"""A database, and the stamp by which a change of it is noticed."""


def _given(database: str) -> Found | str:
    named = Path(database).expanduser().absolute()
    named = named / DATABASE if named.is_dir() else named
    stamp = stamp_of(named)
    return (named, stamp) if stamp else f"{named} is not there; it is to say how files are compiled."


def _search(file: Path, workspace: Sequence[str]) -> Found | None:
    for folder in dict.fromkeys((*file.parents, *(Path(each).absolute() for each in workspace))):
        for candidate in _candidates(folder):
            if stamp := stamp_of(candidate):
                return candidate, stamp
    return None


def _candidates(folder: Path) -> Iterator[Path]:
    yield from (folder / name / DATABASE for name in _FOLDERS)
    if folder.parent == folder:  # nobody builds in the root of a disk
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _NAMED_FOLDERS.match(entry.name))
    except OSError:
        return
    yield from (folder / name / DATABASE for name in names)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One command: the file that it compiles, where, and its words or the line that a shell takes apart."""

    file: str
    directory: str
    command: str | tuple[str, ...]

    def words(self) -> tuple[list[str], str]:
        """The command's words, options in files among them, and what could not be read."""
        windows = bool(re.match(r"[A-Za-z]:[\\/]|\\\\", self.directory)) or os.name == "nt"
        given = self.command
        words = list(given) if isinstance(given, tuple) else shell_words(given, windows=windows)
        return with_option_files(words, _option_text, Path(self.directory), windows=windows)


@dataclass(frozen=True, slots=True)
class _Database:
    """The entries by file, the files by folder, and the files by name without a folder."""

    entries: Mapping[str, tuple[_Entry, ...]] = field(default_factory=lambda: {})
    folders: Mapping[str, Sequence[str]] = field(default_factory=lambda: {})
    names: Mapping[str, Sequence[str]] = field(default_factory=lambda: {})
    trouble: str = ""


@lru_cache(maxsize=1024)
def _flags_in(database: str, stamp: Stamp, file: str, arch: str | None) -> CompileFlags:
    read = _read(database, stamp)
    if read.trouble:
        return CompileFlags(trouble=read.trouble)
    entries, why = read.entries.get(_key(file), ()), ""
    if not entries:
        entries, why = _stand_in(read, Path(file))
    if not entries:
        return CompileFlags()
    made = [_made(entry, f"{_shown(database)}{why}") for entry in entries]
    return next((one for one in made if arch in one.flags.architectures), made[0])


def _made(entry: _Entry, origin: str) -> CompileFlags:
    words, trouble = entry.words()
    options = read_options(words)
    folder = Path(entry.directory)
    nvcc = nvcc_options(options, folder)
    return CompileFlags(flags_of_options(options, folder), nvcc.taken, nvcc.left_out, nvcc.refused, origin, trouble)


@lru_cache(maxsize=4)
def _read(database: str, stamp: Stamp) -> _Database:
    """The entries by file. `stamp` makes a changed database another question."""
    if stamp[1] > MOST_BYTES:
        return _Database(trouble=f"{database} is not used: it is larger than {MOST_BYTES >> 20} MB.")
    try:
        listed = json.loads(read_file(database, MOST_BYTES))
    except OSError as error:
        return _Database(trouble=f"{database} is not used: it cannot be read ({error.strerror}).")
    except (ValueError, RecursionError) as error:
        return _Database(trouble=f"{database} is not used: it is not valid JSON ({error}).")
    if not isinstance(listed, list):
        return _Database(trouble=f"{database} is not used: it is not a list of commands.")
    entries: dict[str, tuple[_Entry, ...]] = {}
    folder = str(Path(database).parent)
    for given in listed:
        if entry := _entry(given, folder):
            key = _key(entry.file)
            entries[key] = (*entries.get(key, ()), entry)
    if listed and not entries:
        return _Database(trouble=f"{database} is not used: no entry in it names a file and its command.")
    folders: dict[str, list[str]] = {}
    names: dict[str, list[str]] = {}
    for file in entries:
        parent, _, name = file.rpartition(os.sep)
        folders.setdefault(parent, []).append(file)
        names.setdefault(name, []).append(file)
    return _Database(entries, folders, names)


def _entry(given: Any, folder: str) -> _Entry | None:
    if not isinstance(given, dict):
        return None
    file, directory, arguments = given.get("file"), given.get("directory", ""), given.get("arguments")
    if not isinstance(file, str) or not isinstance(directory, str) or "\0" in file + directory:
        return None
    at = os.path.join(folder, directory)  # noqa: PTH118 - a hundred thousand entries: a Path takes five times as long
    path = os.path.join(at, file)  # noqa: PTH118
    if isinstance(arguments, list) and all(isinstance(word, str) for word in arguments):
        return _Entry(path, at, tuple(arguments))
    command = given.get("command")
    return _Entry(path, at, command) if isinstance(command, str) else None


def _key(file: str) -> str:
    return os.path.normcase(os.path.normpath(file))


def _stand_in(database: _Database, file: Path) -> tuple[tuple[_Entry, ...], str]:
    """The entries of another file that may stand for those of `file`, and in words why."""
    for linked in database.names.get(_key(file.name), ()):
        if _is_same(file, linked):
            return database.entries[linked], ""
    nearest = _nearest(database, file)
    for other in nearest:
        if _includes(other, file.name):
            return database.entries[other], f", as for {Path(other).name}, which includes it"
    if not nearest:
        return (), ""
    chosen = Path(nearest[0])
    where = "beside it" if str(chosen.parent) == _key(str(file.parent)) else "the nearest file"
    return database.entries[nearest[0]], f", as for {chosen.name}, {where}"


def _is_same(file: Path, other: str) -> bool:
    """Whether two names lead to one file."""
    try:
        return file.samefile(other)
    except (OSError, ValueError):
        return False


def _nearest(database: _Database, file: Path) -> list[str]:
    """Files of the database with the fewest folders between, CUDA's and those of the same stem first."""
    ours = Path(_key(str(file.parent))).parts

    def between(folder: str) -> int:
        theirs = Path(folder).parts
        apart = (at for at, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
        return len(ours) + len(theirs) - 2 * next(apart, min(len(ours), len(theirs)))

    found: list[str] = []
    for folder in sorted(database.folders, key=between):
        if len(found) >= _MOST_READ:
            break
        found += sorted(database.folders[folder], key=lambda other: _rank(other, file.stem))
    return found[:_MOST_READ]


def _rank(file: str, stem: str) -> tuple[bool, bool, str]:
    return not file.endswith(_CUDA), Path(file).stem != stem, file


def _includes(path: str, name: str) -> bool:
    """Whether a file includes another of this name, in whichever folder."""
    try:
        text = read_start(path, _MOST_READ_BYTES)
    except OSError:
        return False
    pattern = rb'^[ \t]*#[ \t]*include[ \t]*["<](?:[^">\n]*[/\\])?%s[">]' % re.escape(os.fsencode(name))
    return re.search(pattern, text, re.MULTILINE) is not None


def _option_text(file: Path) -> str | None:
    try:
        return shown_bytes(read_file(file, _MOST_OPTION_BYTES))
    except OSError:
        return None


def _shown(database: str) -> str:
    """The database's name for people: from the working directory where it lies below it."""
    try:
        return str(Path(database).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return database


def merged(found: Iterable[str], given: Iterable[str], why_not: WhyNot = lambda _path: "") -> NvccOptions:
    """nvcc's options with those that a person gave: they hold, and their folders are looked into first.

    >>> merged(["-I/a", "-DN=4", "-DM", "-std=c++17"], ["-DN=8", "-I/b", "-std=c++20"]).taken
    ('-I/b', '-I/a', '-DM', '-DN=8', '-std=c++20')
    """
    found, given = tuple(found), tuple(given)
    ours = [option for option in given if option.startswith("-I")]
    both = read_options([*ours, *found, *(option for option in given if option not in ours)])
    return nvcc_options(both, Path(), why_not)
