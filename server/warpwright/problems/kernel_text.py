"""A kernel as the facts read it: its parameters' types with typedefs, structs and templates resolved, and its body."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from warpwright.facts import ir
from warpwright.facts.launches import LaunchSite
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Kernel, Program
from warpwright.facts.overloads import by_kernel
from warpwright.facts.steps import OutOfStepsError, file_steps
from warpwright.facts.types import CType
from warpwright.facts.unit import FunctionText, IncludeReader, Unit, collect, live_text
from warpwright.facts.unit_launches import UnitLaunches
from warpwright.problems.types import element_type
from warpwright.syntax.source import Source

_MOST_PARTS = 4096
"""Numbers in a struct that is passed by value."""


@dataclass(frozen=True, slots=True)
class KernelText:
    """`site` is the launch that is followed, None where there is none; `open_types` are template parameters that
    nothing binds."""

    unit: Unit
    text: FunctionText
    function: ir.Function
    site: LaunchSite | None
    open_types: tuple[str, ...]

    @property
    def types(self) -> Mapping[str, CType]:
        return {p.name: p.type for p in self.function.parameters}


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a program, equal to themselves only, as every edit makes new ones."""

    sources: tuple[Source, ...]
    assume: str
    program: Program = field(compare=False)


def read_unit(program: Program) -> tuple[Unit, Mapping[FunctionText, list[LaunchSite]]]:
    """The names of the program's files and its launches, read again from the sources that it holds; with a share of
    steps of its own for each reader."""
    unit, sites = _read_unit(_Files(tuple(program.sources.values()), repr(program.assume), program))
    return unit.reading(file_steps(unit.lines)), sites


def live(program: Program) -> Program:
    """The program with blanks in place of what the preprocessor leaves out of its files, which keep their offsets.

    Its kernels stay those of the text as it is.
    """
    return _live(_Files(tuple(program.sources.values()), repr(program.assume), program))


@lru_cache(maxsize=2)
def _live(files: _Files) -> Program:
    unit = collect(files.program.source, _reader(files.program), files.program.assume)
    texts = {path: live_text(unit, source) for path, source in files.program.sources.items()}
    sources = {
        path: source if texts[path] == source.data else Source(path, texts[path])
        for path, source in files.program.sources.items()
    }
    return replace(files.program, source=sources[files.program.source.path], sources=sources)


@lru_cache(maxsize=2)
def _read_unit(files: _Files) -> tuple[Unit, Mapping[FunctionText, list[LaunchSite]]]:
    unit = collect(files.program.source, _reader(files.program), files.program.assume)
    return unit, by_kernel(unit.kernels(), UnitLaunches(None).of(unit))


def _reader(program: Program) -> IncludeReader:
    """Reads what the program holds."""

    def include(path: str, name: str) -> Source | None:
        wanted = os.path.normpath(Path(path).parent / name)
        exact = next((s for p, s in program.sources.items() if os.path.normpath(p) == wanted), None)
        tail = f"/{name.strip('<>')}"
        return exact or next((s for p, s in program.sources.items() if p.endswith(tail)), None)

    return include


def kernel_text(
    program: Program, kernel: Kernel, call_start: int | None, types: Mapping[str, str]
) -> KernelText | None:
    """The kernel's own text; the launch whose call starts at `call_start` binds its template, then `types` by name."""
    unit, sites = read_unit(program)
    for text, launched in sites.items():
        if text.node.start_byte != getattr(kernel.node, "start_byte", None) or text.source.path != kernel.source.path:
            continue
        chosen = [s for s in launched if s.launch.span is not None and s.launch.span.start == call_start]
        site = chosen[0] if chosen else launched[0] if launched else None
        bindings: dict[str, CType | int] = {}
        reader = Lowerer(unit, text.source)
        for place, (name, is_type, _) in enumerate(text.template):
            given = site.template_arguments[place] if site and place < len(site.template_arguments) else None
            if given is None and is_type and name in types:
                given = reader.type_of_text(types[name])
            if given is not None and is_type == isinstance(given, CType):
                bindings[name] = given
        macros = dict(unit.macros)
        try:
            function = Lowerer(unit, text.source, bindings).function(text)
        except OutOfStepsError:
            return None
        unit.macros = macros
        unbound = tuple(p.name for p in text.template if p.is_type and p.name not in bindings and p.default is None)
        return KernelText(unit, text, function, site, unbound)
    return None


def template_arguments_at(program: Program, kernel: Kernel, call_start: int) -> tuple[CType | int | None, ...]:
    """What the launch whose call starts there binds the kernel's template parameters to, as far as that is known."""
    _, sites = read_unit(program)
    for text, launched in sites.items():
        if text.node.start_byte == getattr(kernel.node, "start_byte", None) and text.source.path == kernel.source.path:
            for site in launched:
                if site.launch.span is not None and site.launch.span.start == call_start:
                    return tuple(site.template_arguments)
    return ()


def filled_type(kind: CType) -> str | None:
    """The element type that an array of these is filled as; None where it holds addresses or is not known.

    A struct of numbers of one kind is so many of that; another is filled as whole numbers, as many as fit.
    """
    if element_type(kind.name) is not None and element_type(kind.name).bytes == kind.size:  # type: ignore[union-attr]
        return kind.name
    if kind.size is None or kind.size <= 0 or kind.assumed or kind.kind in ("pointer", "void", "other"):
        return None
    if kind.kind != "struct":
        return {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}.get(kind.size)
    parts = [part for _, _, part in scalar_parts(kind)]
    if any(part.kind == "pointer" for part in parts):
        return None
    one = parts[0] if parts else None
    if one is not None and all(part == one for part in parts) and one.size and one.size * len(parts) == kind.size:
        return f"{one.name}[{len(parts)}]" if element_type(one.name) is not None else None
    if any(part.is_integer and part.size == 8 for part in parts) and kind.size % 8 == 0:
        return f"unsigned long[{kind.size // 8}]"
    return f"unsigned int[{kind.size // 4}]" if kind.size % 4 == 0 else f"unsigned char[{kind.size}]"


def is_mixed(kind: CType) -> bool:
    """Whether a struct holds numbers of several kinds, or ones that are not known."""
    parts = [part for _, _, part in scalar_parts(kind)] if kind.kind == "struct" else [kind]
    return len({part.name for part in parts}) != 1


def scalar_parts(kind: CType, name: str = "", offset: int = 0) -> Iterator[tuple[str, int, CType]]:
    """(name, byte offset, type) of the numbers and addresses that a value consists of; `.x` and `[2]` are appended."""
    if kind.kind == "struct":
        for member, at, inner in kind.fields:
            if member:
                yield from scalar_parts(inner, f"{name}.{member}", offset + at)
    elif kind.kind == "array" and kind.to is not None and kind.extent is not None and kind.to.size is not None:
        for place in range(min(kind.extent, _MOST_PARTS)):
            yield from scalar_parts(kind.to, f"{name}[{place}]", offset + place * kind.to.size)
    else:
        yield name, offset, kind
