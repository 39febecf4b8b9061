"""Names that a program uses and nothing declares or defines, as in a file that is compiled with a macro of its
Makefile, as a part of another, or to be linked with others: nvcc would refuse it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from warpwright.facts.model import Program
from warpwright.syntax.code import code_of
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import descendants, walk
from warpwright.syntax.source import Source

_MACRO = re.compile(rb"[A-Z][A-Z0-9_]+")
_IMPLICIT = "cuda_runtime.h"
"""What nvcc includes before the text."""
_INCLUDE = re.compile(rb'#[ \t]*include(?:_next)?[ \t]*[<"]([^>"\n]+)')
_WORD = re.compile(rb"[A-Za-z_]\w*")
_DECLARED = re.compile(
    rb"\benum\b([^;{}]*(?:\{[^}]*\})?)"
    rb"|\btypedef\b([^;{}]*)"
    rb"|\b(?:struct|class|union|typename|using|namespace|concept)\b([^;{}()=]*)"
    rb"|\}\s*([\w\s,*]+);"
    rb"|#[ \t]*define[ \t]+(\w+)"
    rb"|(\b[A-Z][A-Z0-9_]+)\s*(?:\[[^;\n]*?\]\s*)*(?:=(?!=)|\{)"
)
"""What may declare a type or a name in capitals: more than does."""
_DEVICE = re.compile(rb"\b__device__\b[^;{}()]*?\b(\w+)[ \t]*\([^;{}]*\)[ \t]*;")
_MOST_HEADERS = 4000
_MOST_TEXTS, _MOST_WORDS = 1024, 256
"""Headers of which the bytes are kept, and the words: those of CUDA and of C++ are 600, and few are read by words."""


def undeclared_name(program: Program, folders: tuple[Path, ...]) -> str:
    """The first type, or name in capitals, that neither the program's files nor the headers that it includes say, as
    `BINS (a.cu:12)`; "" for none. `folders` are those of headers."""
    sources = program.sources.values()
    known = {encoded(each) for each in program.assume.defines} | {
        word for source in sources for found in _DECLARED.finditer(source.code) for part in found.groups() if part
        for word in _WORD.findall(part)
    }  # fmt: skip
    known |= {name for source in sources for name in _declarators(source)}
    used: dict[bytes, tuple[Source, int]] = {}
    for source in sources:
        for name, at in _used(source):
            if name not in known:
                used.setdefault(name, (source, at))
    if not used:
        return ""
    roots = (_IMPLICIT, *(name for _, name in program.unread_includes))
    left = set(used)
    for header in _closure(roots, folders):
        text = header_text(header)
        if any(name in text for name in left):  # most headers say none of them, and need not be read word by word
            left -= _words(header)
        if not left:
            return ""
    name, (source, at) = next(each for each in used.items() if each[0] in left)
    return f"{decoded(name)} ({source.path}:{source.position(at)[0]})"


def undefined_function(program: Program) -> str:
    """The first function of the device that is declared, called and not defined, as `reduce (a.cu:3)`; "" for none."""
    for source in program.sources.values():
        for found in _DEVICE.finditer(source.code):
            name, head = found[1], source.code[: found.start()].rpartition(b";")[2] + found[0]
            if b"__host__" in head.rpartition(b"}")[2]:  # the host's half may be all that is called
                continue
            defined = re.compile(rb"\b%s\s*\([^;{}]*\)[^;{}]*\{" % name)
            called = re.compile(rb"\b%s\s*\(" % name)
            if any(defined.search(each.code) for each in program.sources.values()):
                continue
            if sum(len(called.findall(each.code)) for each in program.sources.values()) > 1:
                return f"{decoded(name)} ({source.path}:{source.position(found.start())[0]})"
    return ""


def _declarators(source: Source) -> Iterator[bytes]:
    """The names of variables, parameters and functions that it declares, or may declare where it does not parse."""
    for node in descendants(source.root, "identifier", "field_identifier"):
        parent = node.parent
        if parent is not None and (parent.type == "ERROR" or parent.child_by_field_name("declarator") == node):
            yield source.code[node.start_byte : node.end_byte]


def _used(source: Source) -> Iterator[tuple[bytes, int]]:
    """Types and names in capitals that stand in code without a scope before them."""
    values = {source.code[node.start_byte : node.end_byte] for node in descendants(source.root, "identifier")}
    for node in walk(source.root):
        if node.type not in ("type_identifier", "identifier") or node.parent is None:
            continue
        if node.parent.type == "qualified_identifier" or node.parent.type.startswith("preproc"):
            continue
        if node.parent.type == "parameter_declaration" and node.parent.child_by_field_name("declarator") is None:
            continue  # `dim3 grid(nx);` and a macro's arguments read like types of parameters
        name = source.code[node.start_byte : node.end_byte]
        is_type = node.type == "type_identifier" and name not in values and not name.startswith(b"_")
        if is_type or _MACRO.fullmatch(name):
            yield name, node.start_byte


def _closure(roots: Iterable[str], folders: tuple[Path, ...]) -> Iterator[Path]:
    """The headers of those names, and all that they include, the nearest first."""
    pending = deque(path for name in roots if (path := _resolved(name, folders)) is not None)
    met: set[Path] = set()
    while pending and len(met) < _MOST_HEADERS:
        header = pending.popleft()
        if header not in met:
            met.add(header)
            yield header
            pending.extend(_included(header, folders))


@lru_cache(maxsize=_MOST_HEADERS)
def _included(header: Path, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    found = (_resolved(decoded(name), (header.parent, *folders)) for name in _INCLUDE.findall(header_text(header)))
    return tuple(path for path in found if path is not None)


def _resolved(name: str, folders: tuple[Path, ...]) -> Path | None:
    return next((path for folder in folders if (path := folder / name).is_file()), None)


@lru_cache(maxsize=_MOST_TEXTS)
def header_text(header: Path) -> bytes:
    """The bytes of a header; none where it is not there."""
    return header.read_bytes() if header.is_file() else b""


@lru_cache(maxsize=_MOST_WORDS)
def _words(header: Path) -> frozenset[bytes]:
    """The words of its code."""
    return frozenset(_WORD.findall(code_of(header_text(header))))
