"""What a compiler may read: the project of the text, what that text includes, and what a compiler consists of.

A candidate, which others wrote, may read less: of the project only what it and the original include.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from warpwright.sandbox.confine import NEEDED, Policy
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import HEADERS, Source
from warpwright.toolchain.find import Toolchain
from warpwright.toolchain.included import included_files, names_by_macro
from warpwright.toolchain.nvcc_options import WhyNot
from warpwright.trust import is_trusted

_CCBIN = re.compile(r"(?:-ccbin|--compiler-bindir)[= ]+(\S+)")
_REPOSITORIES = (".git", ".hg")
_MARKS = ("warpwright.toml", "compile_commands.json", "build/compile_commands.json")
_TAKES_PATH = ("-I", "-isystem", "-include", "-L")
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")
_SYSTEM = tuple(f"/{name}" for name in ("usr", "lib", "lib32", "lib64", "bin", "sbin", "opt", "nix", "gnu"))
"""Where systems keep programs and libraries."""
_PRIVATE = tuple(f"/{name}" for name in ("etc", "proc", "sys", "dev", "run", "boot"))
"""Where nobody keeps source text."""
_SOURCES = frozenset({".cu", *HEADERS, ".h++", ".impl", ".def", ".c", ".cc", ".cpp", ".cxx", ".ptx"})
Reads = tuple[str, ...] | None
"""Folders and files that can be read beside the system's and the compiler's own; None for those of the text's own
project (`own_reads`)."""


def project_root(path: str | Path) -> Path:
    """The folder of the project that a file belongs to: the nearest above it with version control, else the nearest
    with warpwright.toml or compile_commands.json, but never the user's home or above; else the file's own."""
    folder = Path(path).resolve().parent
    above = [each for each in (folder, *folder.parents) if not _holds_home(each)]
    for marks in (_REPOSITORIES, _MARKS):
        for each in above:
            if any((each / mark).exists() for mark in marks):
                return each
    return folder


def why_not_included(path: str) -> WhyNot:
    """For the file at `path`: why a folder that its project names for includes is not used.

    Those of the project, of the system and of Python's environment are; others only where the user allowed the project.
    """
    root = project_root(path)

    def why_not(folder: Path) -> str:
        real = Path(os.path.realpath(folder))
        if _lies_in(real, (root, Path(path).resolve().parent)):
            return ""
        if _holds_home(real) or _lies_in(real, _PRIVATE):
            return "it is not an include folder"
        if _lies_in(real, (*_SYSTEM, *_environments())) or is_trusted(path):
            return ""
        return f"it lies outside of the project, which nobody has allowed; `warpwright trust {root}` does"

    return why_not


def project_folders(paths: Iterable[str], flags: Iterable[str]) -> tuple[str, ...]:
    """What belongs to the project of these files: the first's root, their own folders, and those that the flags
    name."""
    folders = [project_root(path) if number == 0 else Path(path).resolve().parent for number, path in enumerate(paths)]
    folders += _named(flags)
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in folders if not _holds_home(folder)))


def own_reads(source: Source, flags: Iterable[str]) -> tuple[str, ...]:
    """What the user's own text may read: its project, the folders that the flags name, and, outside of these, each
    source file that it includes by a name relative to it."""
    folders = project_folders((source.path, *(each.path for each in source.changed)), flags)
    beyond = [path for path in included_files(source, ()) if not _lies_in(Path(path), folders)]
    return (*folders, *(path for path in beyond if _is_source(path)))


def candidate_reads(
    original: Source, candidate: Source, flags: Iterable[str], project_flags: Iterable[str]
) -> tuple[str, ...]:
    """What a candidate may read: what the original includes, what it includes itself of their project, and the folders
    of libraries. Where a macro names what the original includes, all of the project.

    `project_flags` are those of `flags` that the project has set: what a library's headers include in their turn is not
    looked up (torch's are 4,500 files).
    """
    flags, folders = tuple(flags), parse_flags(tuple(project_flags), Path()).folders
    project = project_folders((original.path, candidate.path), project_flags)
    used = included_files(original, folders)
    if names_by_macro((original, *original.changed), used):
        return project_folders((original.path, candidate.path, *used), flags)
    new = [path for path in included_files(candidate, folders) if _is_source(path) and _lies_in(Path(path), project)]
    root = project_root(original.path)
    libraries = [str(each) for each in _named(flags) if not _lies_in(each, (root,)) and not _holds_home(each)]
    read = [path for path in used if _is_source(path) or _lies_in(Path(path), project)]
    return tuple(dict.fromkeys((*read, *new, *libraries)))


def compiler_policy(
    reads: tuple[str, ...], toolchain: Toolchain, environment: Mapping[str, str], *, may_be_unconfined: bool
) -> Policy:
    """No network, nothing written but in the compiler's own folder, and nothing read but `reads` and what it needs.

    Where the system cannot confine it so, it is started only if it `may_be_unconfined`.
    """
    needed = _installation(toolchain.nvcc)
    needed += [folder.parent for folder in toolchain.include_dirs]
    for variable in _VARIABLES:
        needed += [Path(part) for part in environment.get(variable, "").split(os.pathsep) if part]
    for name in ("gcc", "g++", "clang++", *_host_compilers(environment)):
        if found := shutil.which(name, path=environment.get("PATH")):
            needed += _installation(Path(found))
            top = Path(*Path(found).resolve().parts[:2])
            needed += [] if _lies_in(top, ("/home", "/root", "/tmp", "/var", *_PRIVATE)) else [top]
    folders = [str(each.absolute()) for each in needed if not _holds_home(each)]
    allowed = tuple(dict.fromkeys([*_SYSTEM, *NEEDED, *folders, *reads]))
    return Policy(reads=allowed, must_confine=not may_be_unconfined)


def _host_compilers(environment: Mapping[str, str]) -> list[str]:
    """Those that the user chose, whole or by their folder.

    >>> _host_compilers({"NVCC_CCBIN": "g++-12", "NVCC_PREPEND_FLAGS": "-O2 -ccbin /opt/a/bin/c++"})
    ['g++-12', '/opt/a/bin/c++']
    """
    flags = " ".join(environment.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"))
    chosen = [environment.get("NVCC_CCBIN", ""), *_CCBIN.findall(flags)]
    return [str(Path(each) / "g++") if os.path.isdir(each) else each for each in chosen if each]  # noqa: PTH112


def _installation(program: Path) -> list[Path]:
    """The folders into which a program was installed, with its libraries, and the program's own: by its name, and by
    what that leads to."""
    folders = (program.parent, program.resolve().parent)
    return [each for folder in folders for each in ((folder.parent, folder) if folder.name == "bin" else (folder,))]


def _named(flags: Iterable[str]) -> list[Path]:
    """The folders and files that options of nvcc name."""
    found: list[Path] = []
    given = list(flags)
    for at, flag in enumerate(given):
        for option in _TAKES_PATH:
            if flag == option and at + 1 < len(given):
                found.append(Path(given[at + 1]))
            elif flag.startswith(option) and flag != option:
                found.append(Path(flag.removeprefix(option).removeprefix("=")))
    return [Path(os.path.realpath(each)) for each in found]


def _environments() -> tuple[str, ...]:
    """Where this Python, and the environment that the user is in, keep libraries."""
    given = (os.environ.get(name, "") for name in ("CONDA_PREFIX", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH"))
    return tuple(os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, *given) if os.path.isabs(each))  # noqa: PTH117


def _is_source(path: str) -> bool:
    """Whether a file is source text by its name, in a folder in which people keep some."""
    return Path(path).suffix.lower() in _SOURCES and not _lies_in(Path(path), _PRIVATE)


def _lies_in(path: Path, folders: Iterable[str | Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _holds_home(folder: Path) -> bool:
    return folder.resolve() in (Path.home().resolve(), *Path.home().resolve().parents)
