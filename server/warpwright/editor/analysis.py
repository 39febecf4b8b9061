"""What the editor's answers are read from: the facts and the findings of one version of one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.cuda.extension.near import is_left_to_others, unit_near
from warpwright.cuda.extension.unit import is_script
from warpwright.editor.build import Build
from warpwright.editor.includes import with_folders
from warpwright.editor.profile.store import load_profiles
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze
from warpwright.facts.cache import KernelCache
from warpwright.facts.compiled import with_compiled
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.facts.unit import IncludeReader
from warpwright.rules.base import Finding
from warpwright.rules.folding import gathered
from warpwright.rules.registry import run_rules
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source
from warpwright.timeline.kept import TracedLine, traced
from warpwright.toolchain.compile_commands import CompileFlags, compile_flags, merged
from warpwright.toolchain.included import folders_found
from warpwright.toolchain.nvcc_options import NvccOptions
from warpwright.toolchain.rights import why_not_included

if TYPE_CHECKING:
    from warpwright.facts.profile import Profile

MAX_BYTES = 1_000_000
"""Some 25,000 lines, for which the parser holds the interpreter, and with it all answers, for a quarter of a second."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of one document. `program` is of the document, or of a file that includes it.

    `findings` are those in the document itself and in what it includes; `skipped` says why nothing was analysed.
    `profiles` are the kept ones of this very text, whose numbers the program's kernels carry. `build` is the last that
    the compiler made; where it is of this text the kernels carry its numbers too. `traced` is what the last trace of a
    script said of its lines."""

    source: Source
    program: Program
    findings: tuple[Finding, ...] = ()
    skipped: str = ""
    profiles: tuple[Profile, ...] = ()
    build: Build | None = None
    traced: tuple[TracedLine, ...] = ()

    @property
    def build_is_current(self) -> bool:
        return self.build is not None and self.build.is_of(self.source.data)

    def findings_here(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.span.path == self.source.path)

    def kernels_here(self) -> tuple[Kernel, ...]:
        """The kernels that are defined in the document itself."""
        return tuple(k for k in self.program.defined_kernels if k.span.path == self.source.path)

    def kernel_at(self, offset: int) -> Kernel | None:
        """The kernel whose definition covers a byte offset of the document."""
        return next((k for k in self.kernels_here() if k.span.contains(offset)), None)


def analyse(
    source: Source,
    include: IncludeReader,
    settings: Settings,
    cache: KernelCache | None = None,
    build: Build | None = None,
    unit: Source | None = None,
    opened: Mapping[str, Source] | None = None,
) -> Analysis:
    """Facts and findings of a document; of one that is not text, or too large to follow as one types, the reason.

    With a `cache` the kernels that nothing changed for since the last time keep their facts. Findings are judged by the
    numbers of `build` where it is of this text, for the architecture that is analysed, else for its first. A header is
    read as a part of `unit`, which includes it, where that is given and reads this very text. A torch extension is read
    with the other files of its package, of which `opened`, by path, hold over what is on disk.
    """
    reason = unreadable(source.data)
    if reason:
        return skipped(source, reason)
    lines = traced(source.path, source.text()) if is_script(source.path) else ()
    if is_left_to_others(source):
        return Analysis(source, Program(source, {source.path: source}, ()), traced=lines)
    program = _program(unit or source, include, settings, cache)
    if unit is not None and program.sources.get(source.path) is not source:
        program = _program(source, include, settings, cache)
    assume = program.assume
    profiles = load_profiles(program, assume.defines, assume.arch)
    if profiles:
        from warpwright.facts.profiled import with_profiles

        program = with_profiles(program, profiles)
    if build is not None and build.is_of(source.data) and build.kernels:
        resources = build.kernels.get(assume.arch) or next(iter(build.kernels.values()))
        program = with_compiled(program, resources.values())
    near = unit_near(source, opened)
    findings = tuple(gathered(run_rules(program, settings.select, settings.ignore, settings.severities, near)))
    return Analysis(source, program, findings, profiles=profiles, build=build, traced=lines)


def _program(source: Source, include: IncludeReader, settings: Settings, cache: KernelCache | None) -> Program:
    assume, folders = compiled_as(source.path, settings)
    if is_script(source.path):
        return Program(source, {source.path: source}, (), assume)
    return analyze(source, with_folders(include, folders) if folders else include, assume, cache)


def compiled_as(path: str, settings: Settings) -> tuple[Assumptions, tuple[str, ...]]:
    """What a file is taken to be compiled with, and the folders in which its includes are looked for."""
    assume = settings.assumptions
    if not Path(path).is_absolute():
        return assume, ()
    flags = _found(path, settings).flags
    arch = settings.arch or flags.arch or assume.arch
    return replace(assume.compiled_with(flags), arch=arch), (*settings.folders, *flags.folders)


def compiler_options(path: str, settings: Settings) -> tuple[str, ...]:
    """nvcc's options for a file, in any folder, without the architecture: the settings hold over the project's."""
    return _options(path, settings).taken


def options_refused(path: str, settings: Settings) -> tuple[str, ...]:
    """A sentence on each option of the project, or of the settings, that is not given to nvcc for safety's sake."""
    found = _found(path, settings).refused if Path(path).is_absolute() else ()
    return tuple(dict.fromkeys((*found, *_options(path, settings).refused)))


def options_trouble(path: str, settings: Settings) -> str:
    """Why what says how a file is compiled is not used, as a sentence; "" where it is."""
    return _found(path, settings).trouble if Path(path).is_absolute() else ""


def _options(path: str, settings: Settings) -> NvccOptions:
    is_saved = Path(path).is_absolute()
    found = _found(path, settings).options if is_saved else ()
    defined = (f"-D{name}={body}" for name, body in settings.defines.items())
    given = (*settings.flags, *defined, *(f"-I{folder}" for folder in settings.include_folders))
    if not is_saved:
        return merged(found, given)
    why_not = why_not_included(path)
    told = merged(found, given, why_not)
    folders = [*parse_flags(told.taken, Path(path).parent).folders, *settings.folders]
    guessed = [f"-I{folder}" for folder in folders_found(path, folders) if not why_not(Path(folder))]
    return merged(found, (*given, *guessed), why_not) if guessed else told


def options_origin(path: str, settings: Settings) -> str:
    """Where the project's options for a file are from and which are not taken, for people; "" where it has none."""
    return _found(path, settings).words if Path(path).is_absolute() else ""


def _found(path: str, settings: Settings) -> CompileFlags:
    return compile_flags(path, arch=settings.arch or None, database=settings.compile_commands)


def skipped(source: Source, reason: str) -> Analysis:
    """The analysis of a document of which nothing is said."""
    return Analysis(source, Program(source, {source.path: source}, ()), skipped=reason)


def unreadable(data: bytes) -> str:
    """Why a document is not analysed; "" where it is."""
    if b"\0" in data:
        return "it holds binary data"
    if len(data) > MAX_BYTES:
        return f"it is larger than {MAX_BYTES // 1_000_000} MB"
    return ""
