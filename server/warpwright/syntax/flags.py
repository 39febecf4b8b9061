"""What a file is compiled with: the macros, folders and architecture of its entry in compile_commands.json."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

log = logging.getLogger(__name__)

DATABASE = "compile_commands.json"
"""As CMake, Bear and others write it (Clang's "JSON Compilation Database Format Specification")."""
_FOLDERS = ("", "build", "out", "cmake-build-debug", "cmake-build-release")
_STANDARDS = {"11": "201103L", "14": "201402L", "17": "201703L", "20": "202002L", "23": "202302L"}
_JOINED = ("-D", "-U", "-I", "-std", "--std", "-arch", "--gpu-architecture", "-gencode", "--generate-code")
_LONG = {
    "--define-macro": "-D", "--undefine-macro": "-U", "--include-path": "-I", "-isystem": "-I",
    "--system-include": "-I",
    "--gpu-architecture": "-arch", "--generate-code": "-gencode", "--std": "-std",
    "-optf": "--options-file",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flags:
    """`defines` by name, None for a macro that is taken away; `folders` in the order of the search for includes;
    `arch` is the newest architecture that is compiled for, as "sm_90"."""

    defines: Mapping[str, str | None] = field(default_factory=lambda: {})
    folders: tuple[str, ...] = ()
    arch: str | None = None


def flags_of(path: str) -> Flags:
    """The flags of a file; of a header, which has no entry, those of a file beside it. Empty where there are none.

    The database is looked for in the file's folder, in a `build` or `out` in it, and then in each folder further up.
    """
    file = Path(path).absolute()
    for folder in file.parents:
        for name in _FOLDERS:
            database = folder / name / DATABASE
            try:
                stamp = database.stat().st_mtime_ns
            except OSError:
                continue
            entries = _entries(str(database), stamp)
            return entries.get(str(file)) or entries.get(str(file.parent)) or Flags()
    return Flags()


def parse_flags(arguments: Sequence[str], folder: Path) -> Flags:
    """What a command line of nvcc, clang or gcc says; relative names count from `folder`.

    >>> flags = parse_flags(["nvcc", "-DN=4", "-U", "M", "-Iinc", "-gencode", "arch=compute_80,code=sm_80"], Path("/a"))
    >>> flags.defines, flags.folders, flags.arch
    ({'N': '4', 'M': None}, ('/a/inc',), 'sm_80')
    """
    defines: dict[str, str | None] = {}
    folders: list[str] = []
    architectures: list[str] = []
    for option, value in _options(arguments, folder, 0):
        if option == "-D":
            name, _, body = value.partition("=")
            defines[re.sub(r"\(.*", "", name)] = body if "=" in value else "1"
        elif option == "-U":
            defines[value] = None
        elif option == "-I":
            folders.append(str(folder / value))
        elif option == "-std" and (standard := _STANDARDS.get(value[-2:])):
            defines["__cplusplus"] = standard
        elif option in ("-arch", "-gencode"):
            architectures += re.findall(r"(?:sm|compute)_(\d{2,3}[af]?)", value)
    newest = max(architectures, key=lambda name: int(name.rstrip("af")), default=None)
    return Flags(defines, tuple(dict.fromkeys(folders)), f"sm_{newest}" if newest else None)


def _options(arguments: Sequence[str], folder: Path, depth: int) -> Iterator[tuple[str, str]]:
    """The options that matter, in one spelling, each with its value; files of options are read."""
    left = list(arguments)[::-1]
    while left:
        argument = left.pop()
        joined = next((o for o in _JOINED if argument.startswith(o) and argument != o), None)
        option, equals, value = argument.partition("=")
        if equals and option in (*_LONG, "-std", "-arch", "-gencode", "--options-file"):
            option = _LONG.get(option, option)
        elif joined is not None and len(joined) == 2:
            option, value = joined, argument[2:]
        elif argument in (*_LONG, *_JOINED, "--options-file"):
            option, value = _LONG.get(argument, argument), left.pop() if left else ""
        else:
            continue
        if option == "--options-file":
            if depth < 4:
                yield from _options(_listed(folder / value), folder, depth + 1)
        else:
            yield option, value


def _listed(file: Path) -> list[str]:
    try:
        return _words(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


@lru_cache(maxsize=8)
def _entries(database: str, _stamp: int) -> Mapping[str, Flags]:
    """By file, and by folder for the headers in it. A database that cannot be read is as good as none."""
    try:
        entries = json.loads(Path(database).read_bytes())
    except (OSError, ValueError) as error:
        log.warning("%s is not used: %s", database, error)
        return {}
    found: dict[str, Flags] = {}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        folder = Path(database).parent / str(entry.get("directory", ""))
        given = entry.get("arguments")
        arguments = [str(a) for a in given] if isinstance(given, list) else _words(str(entry.get("command", "")))
        file = (folder / entry["file"]).resolve()
        flags = parse_flags(arguments, folder)
        for name in {str(file), str((folder / entry["file"]).absolute())}:
            found.setdefault(name, flags)
        if file.suffix in (".cu", ".cuh") or str(file.parent) not in found:
            found.setdefault(str(file.parent), flags)
    return found
