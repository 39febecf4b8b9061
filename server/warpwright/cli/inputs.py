"""From the paths on a command line to sources."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path

import click

from warpwright.cli.terminal import CannotRun, say_note, say_warning
from warpwright.cuda.extension.near import is_of_extension
from warpwright.cuda.extension.unit import is_script
from warpwright.editor.analysis import compiled_as, compiler_options, options_refused
from warpwright.editor.includers import includer_of
from warpwright.editor.project import project_of
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze
from warpwright.facts.cache import PROCESS_CACHE
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.facts.resources import KernelResources
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.encoding import invalid_utf8_offset
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source, SourceError, include_reader, read_include, read_source
from warpwright.toolchain.compile_commands import CompileFlags, compile_flags, merged

SUFFIXES = (".cu", ".cuh")
FAILING = (Severity.ERROR, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Inputs:
    """`named` were given by name and are read whatever their suffix; `walked` were found in a directory."""

    named: tuple[Path, ...]
    walked: tuple[Path, ...]
    failures: tuple[str, ...]


def find_inputs(paths: Iterable[str]) -> Inputs:
    """Files as they are named, directories walked for .cu and .cuh and for the C++ and Python of torch extensions.
    Hidden directories are left out."""
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
            if not any(part.startswith(".") for part in file.relative_to(path).parts)
            and file.is_file()
            and (file.suffix in SUFFIXES or is_of_extension(file))
        )
        if not found:
            failures.append(f"{path}: no .cu or .cuh file in this directory")
        walked += found
    return Inputs(tuple(dict.fromkeys(named)), tuple(dict.fromkeys(walked)), tuple(failures))


def _encoding_warnings(source: Source) -> Iterator[str]:
    """Names the first byte that is not UTF-8; such a file is analysed as it is."""
    at = invalid_utf8_offset(source.data)
    if at is not None:
        line, column = source.position(at)
        yield f"{source.path}:{line}:{column}: byte 0x{source.data[at]:02x} is not UTF-8; the file is read as it is"


Resources = Mapping[str, tuple[KernelResources, ...]]
"""What the compiled kernels of each file take, by the file's path."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """How the command line says that files are compiled: an architecture, macros, folders of includes.

    What it does not say comes from the project's settings, and what those do not say from the file's entry in
    compile_commands.json.
    """

    arch: str | None = None
    defines: tuple[tuple[str, str | None], ...] = ()
    folders: tuple[str, ...] = ()

    def program(self, source: Source) -> Program:
        if is_script(source.path):
            return Program(source, {source.path: source}, (), self.assumptions(source))
        reader = partial(read_include, folders=self.include_folders(source))
        return analyze(source, reader, self.assumptions(source), PROCESS_CACHE)

    def unit(self, source: Source) -> Program:
        """The program of the file that includes this one, where there is one: as a part of that it is compiled."""
        found = includer_of(Source(_absolute(source), source.data), {})
        if found is None:
            return self.program(source)
        path = found.path if Path(source.path).is_absolute() else os.path.relpath(found.path)
        whole = Source(path, found.data)
        reader = include_reader({_absolute(source): source, source.path: source}, self.include_folders(whole))
        program = analyze(whole, reader, self.assumptions(whole), PROCESS_CACHE)
        return program if program.sources.get(source.path) is source else self.program(source)

    def settings(self, source: Source) -> Settings:
        """The settings of the project that the file is in, for the architecture of the command line."""
        settings = project_of(source.path).over(Settings())
        return replace(settings, arch=self.arch) if self.arch else settings

    def found(self, source: Source) -> CompileFlags:
        """What the project's compile_commands.json says of the file."""
        settings = self.settings(source)
        return compile_flags(source.path, arch=settings.arch or None, database=settings.compile_commands)

    def warnings(self, source: Source) -> tuple[str, ...]:
        """What is odd about the file or about what says how it is compiled, one sentence each."""
        trouble = self.found(source).trouble
        problems = map(str, project_of(source.path).problems)
        return (*_encoding_warnings(source), *problems, *([trouble] if trouble else []))

    def include_folders(self, source: Source) -> tuple[str, ...]:
        return (*self.folders, *compiled_as(_absolute(source), self.settings(source))[1])

    def flags(self, source: Source) -> tuple[str, ...]:
        """nvcc's options, in any folder, without the architecture."""
        defined = [f"-U{name}" if body is None else f"-D{name}={body}" for name, body in self.defines]
        folders = [f"-I{Path(folder).absolute()}" for folder in self.folders]
        return merged(compiler_options(_absolute(source), self.settings(source)), (*defined, *folders)).taken

    def assumptions(self, source: Source) -> Assumptions:
        assume = compiled_as(_absolute(source), self.settings(source))[0]
        return replace(assume, defines={**assume.defines, **dict(self.defines)})


def nvcc_flags(compiled: Compiled, source: Source) -> tuple[str, ...]:
    """`Compiled.flags` for a compilation, with a note on each option of the project that is left out for safety's
    sake."""
    for sentence in options_refused(_absolute(source), compiled.settings(source)):
        say_note(sentence)
    return compiled.flags(source)


def _absolute(source: Source) -> str:
    return str(Path(source.path).absolute())


def read_program(path: str | Path, compiled: Compiled | None = None) -> Program:
    """Read and analyse one file as it is compiled. Raises CannotRun for one that cannot be read."""
    compiled = compiled or Compiled()
    return compiled.program(_read(path, compiled))


def read_unit(path: str | Path, compiled: Compiled | None = None) -> Program:
    """The same, of a file as a part of the file that includes it, where there is one."""
    compiled = compiled or Compiled()
    return compiled.unit(_read(path, compiled))


def _read(path: str | Path, compiled: Compiled) -> Source:
    try:
        source = read_source(path)
    except SourceError as error:
        raise CannotRun(str(error)) from None
    for warning in compiled.warnings(source):
        say_warning(warning)
    return source


def choose_kernel(program: Program, name: str | None, path: str | None = None) -> Kernel:
    """The kernel that is named; without a name the one whose findings have the largest estimated gain, and a note names
    the others. Where the program is of a file that includes the one at `path`, it is one of the latter."""
    whole = path is None or path == program.source.path
    defined = tuple(kernel for kernel in program.defined_kernels if whole or kernel.span.path == path)
    path = path or program.source.path
    names = ", ".join(kernel.name for kernel in defined)
    if not defined:
        raise CannotRun(f"{path}: no kernel (__global__ function) in this file")
    if name is not None:
        found = next((kernel for kernel in defined if kernel.name == name), None)
        if found is None:
            raise CannotRun(f"{path}: no kernel '{name}'; it has: {names}")
        return found
    if len(defined) == 1:
        return defined[0]
    gains: dict[str, float] = defaultdict(float)
    warned = Counter[str]()
    for finding in run_rules(program):
        gains[finding.kernel] = max(gains[finding.kernel], finding.gain or 0.0)
        warned[finding.kernel] += finding.severity in FAILING
    chosen = max(defined, key=lambda kernel: (gains[kernel.name], warned[kernel.name]))
    gain = gains[chosen.name]
    why = f"the largest estimated gain, {gain:.0%}" if gain else "the most findings"
    say_note(f"of the kernels {names}, '{chosen.name}' is taken: it has {why}. --kernel names another.")
    return chosen


def parse_arch(_ctx: click.Context | None, _param: click.Parameter | None, value: str | None) -> str | None:
    """A compute architecture as nvcc names it; None where none is given.

    >>> parse_arch(None, None, "90")
    'sm_90'
    """
    if value is None:
        return None
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


compile_option = click.option(
    "--compile",
    "build",
    is_flag=True,
    help="Run nvcc on the files, and judge by the registers, spills and shared memory that it reports.",
)


model_option = click.option(
    "--model",
    "spec",
    metavar="MODEL",
    help="The model to ask: a GGUF file, a Hugging Face name that was pulled, or http://HOST:PORT/v1#MODEL.",
)

program_option = click.option(
    "--program/--no-program",
    "with_program",
    default=True,
    help="At the end, build and run the program's own test where the project's file has [program] and its folder is "
    "allowed. [default: --program]",
)


def compile_options(command: Callable[..., int]) -> Callable[..., int]:
    """--arch, -D, -U and -I; the command takes them as one `compiled`."""

    @wraps(command)
    def wrapped(
        arch: str | None, defines: tuple[str, ...], undefines: tuple[str, ...], folders: tuple[str, ...], **rest: object
    ) -> int:
        options = [*(f"-D{define}" for define in defines), *(f"-U{name}" for name in undefines)]
        given = parse_flags(options, Path()).defines
        return command(compiled=Compiled(arch, tuple(given.items()), folders), **rest)

    for option in (
        click.option(
            "-I",
            "folders",
            multiple=True,
            type=click.Path(),
            metavar="DIR",
            help="A folder to look for includes in.",
        ),
        click.option("-U", "undefines", multiple=True, metavar="NAME", help="A macro that is not defined."),
        click.option(
            "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro, as the compiler is given it."
        ),
        click.option(
            "--arch",
            callback=parse_arch,
            metavar="sm_XX",
            help="The GPU architecture to look at the code for. [default: of compile_commands.json, else sm_90; what "
            "is run is compiled for the GPU, else for sm_90]",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped
