"""From the paths on a command line to sources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from warpwright.cli.terminal import CannotRun, say_note, say_warning
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, SourceError, invalid_utf8_offset, read_include, read_source

SUFFIXES = (".cu", ".cuh")
FAILING = (Severity.ERROR, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Inputs:
    """`named` were given by name and are read whatever their suffix; `walked` were found in a directory."""

    named: tuple[Path, ...]
    walked: tuple[Path, ...]
    failures: tuple[str, ...]


def find_inputs(paths: Iterable[str]) -> Inputs:
    """Files as they are named, directories walked for .cu and .cuh. Hidden directories are left out."""
    named: list[Path] = []
    walked: list[Path] = []
    failures: list[str] = []
    for path in map(Path, paths):
        if not path.is_dir():
            named.append(path)
            continue
        found = sorted(
            file
            for file in path.rglob("*")
            if file.suffix in SUFFIXES
            and file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        )
        if not found:
            failures.append(f"{path}: no .cu or .cuh file in this directory")
        walked += found
    return Inputs(tuple(dict.fromkeys(named)), tuple(dict.fromkeys(walked)), tuple(failures))


def encoding_warning(source: Source) -> str | None:
    """Names the first byte that is not UTF-8; such a file is analysed as it is."""
    at = invalid_utf8_offset(source.data)
    if at is None:
        return None
    line, column = source.position(at)
    return f"{source.path}:{line}:{column}: byte 0x{source.data[at]:02x} is not UTF-8; the file is read as it is"


def read_program(path: str | Path, assume: Assumptions | None = None) -> Program:
    """Read and analyse one file. Raises CannotRun for one that cannot be read."""
    try:
        source = read_source(path)
    except SourceError as error:
        raise CannotRun(str(error)) from None
    warning = encoding_warning(source)
    if warning:
        say_warning(warning)
    return analyze(source, read_include, assume or Assumptions())


def choose_kernel(program: Program, name: str | None) -> Kernel:
    """The kernel that is named; without a name the one with the most findings, and a note names the others."""
    defined = program.defined_kernels
    names = ", ".join(kernel.name for kernel in defined)
    if not defined:
        raise CannotRun(f"{program.source.path}: no kernel (__global__ function) in this file")
    if name is not None:
        found = next((kernel for kernel in defined if kernel.name == name), None)
        if found is None:
            raise CannotRun(f"{program.source.path}: no kernel '{name}'; it has: {names}")
        return found
    if len(defined) == 1:
        return defined[0]
    findings = Counter(finding.kernel for finding in run_rules(program) if finding.severity in FAILING)
    chosen = max(defined, key=lambda kernel: findings[kernel.name])
    say_note(f"of the kernels {names}, '{chosen.name}' is taken: it has the most findings. --kernel names another.")
    return chosen


def parse_arch(_ctx: click.Context | None, _param: click.Parameter | None, value: str) -> str:
    """A compute architecture as nvcc names it.

    >>> parse_arch(None, None, "90")
    'sm_90'
    """
    number = re.fullmatch(r"(?:sm_)?([1-9]\d{1,2}[af]?)", value)
    if not number:
        raise click.BadParameter(f"'{value}' is not an architecture; write it as sm_90")
    return f"sm_{number[1]}"


arch_option = click.option(
    "--arch",
    callback=parse_arch,
    default="sm_90",
    show_default=True,
    metavar="sm_XX",
    help="The GPU architecture to look at the code for.",
)
