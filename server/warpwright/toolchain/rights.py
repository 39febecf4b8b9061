"""What a compiler may read: everything for the user's own text, and for a text that others wrote only what it needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from warpwright.sandbox.confine import Policy, system_folders
from warpwright.toolchain.find import Toolchain

_MARKS = (".git", ".hg", "compile_commands.json")
_TAKES_PATH = ("-I", "-isystem", "-include", "--include-path", "--system-include", "-iquote", "-ccbin", "-L")
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_CCBIN")
Reads = tuple[str, ...] | None
"""Folders that can be read beside the system's and the compiler's own; None for the whole file system."""


def project_folders(paths: Iterable[str], flags: Iterable[str]) -> tuple[str, ...]:
    """What belongs to the project of these files: its root, their own folders, and those that the flags name.

    The root is the nearest folder above the first file with version control or compile_commands.json in it, but never
    the user's home or above.
    """
    folders: list[Path] = []
    for number, path in enumerate(paths):
        folder = Path(path).resolve().parent
        folders.append(_root(folder) if number == 0 else folder)
    given = list(flags)
    for at, flag in enumerate(given):
        for option in _TAKES_PATH:
            if flag == option and at + 1 < len(given):
                folders.append(Path(given[at + 1]))
            elif flag.startswith(option) and flag != option:
                folders.append(Path(flag.removeprefix(option).removeprefix("=")))
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in folders if not _holds_home(folder)))


def _root(folder: Path) -> Path:
    for above in (folder, *folder.parents):
        if _holds_home(above):
            break
        if any((above / mark).exists() for mark in _MARKS):
            return above
    return folder


def _holds_home(folder: Path) -> bool:
    return folder.resolve() in (Path.home().resolve(), *Path.home().resolve().parents)


def compiler_policy(reads: Reads, toolchain: Toolchain, environment: Mapping[str, str]) -> Policy:
    """No network, nothing written but in the compiler's own folder, and nothing read but `reads` and what it needs."""
    if reads is None:
        return Policy()
    needed = [toolchain.nvcc.parent, toolchain.nvcc.resolve().parent.parent]
    needed += [folder.parent for folder in toolchain.include_dirs]
    for variable in _VARIABLES:
        needed += [Path(part) for part in environment.get(variable, "").split(os.pathsep) if part]
    for name in ("gcc", "g++", "clang++"):
        if found := shutil.which(name, path=environment.get("PATH")):
            needed.append(Path(found).resolve().parent.parent)
    folders = [str(each.absolute()) for each in needed if not _holds_home(each)]
    return Policy(reads=tuple(dict.fromkeys([*system_folders(), *folders, *reads])))
