"""The instructions of PTX as text, with the source lines that each comes from: for people to read.

What PTX means is read by the emulator. This takes a text apart at its statements, of whatever version, and passes over
what it does not know. Source of the directives: PTX ISA 9.0, chapter 11 (`.file`, `.loc`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from warpwright.toolchain.file_names import unescaped

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:\\.|[^"\\\n])*)"', re.MULTILINE | re.ASCII)
_HEAD = re.compile(r"^[ \t]*(?:\.(?:visible|weak|extern)[ \t]+)*\.(?P<kind>entry|func)\b", re.MULTILINE | re.ASCII)
_NAME = re.compile(r"\s*(?:\([^()]*\))?\s*([\w$]+)", re.ASCII)
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+[^,\n]+)?(?:\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?",
    re.ASCII,
)
_LABEL = re.compile(r"([\w$]+)\s*:(?!:)", re.ASCII)
_SPACE = re.compile(r"\s+")
_CALLED = re.compile(r"^(?:@!?%\w+\s+)?call(?:\.uni)?\s*(?:\([^()]*\)\s*,\s*)?([\w$]+)", re.ASCII)
_MOST_PLACES = 64


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction, `@%p1 ld.global.f32 %f1, [%rd4+8]`. `row` is its 1-based line in the text.

    `places`, `function` and `label` are as in `MachineInstruction`.
    """

    row: int
    text: str
    places: tuple[tuple[str, int], ...] = ()
    function: str = ""
    label: str = ""


def parse_ptx_lines(text: str) -> dict[str, tuple[PtxInstruction, ...]]:
    """The instructions of each kernel by mangled name, and behind them those of the functions that it calls.

    >>> text = '''.visible .entry k(.param .u64 k_0)
    ... {
    ...     .reg .b32 %r<3>;
    ...     .loc 1 3 5
    ...     .loc 1 1 9, function_name $L__info_string0, inlined_at 1 3 5
    ... $L__BB0_1:
    ...     @%p1 add.s32 %r1, %r2, 1;
    ...     ret;
    ... }
    ... .file 1 "/a.cu"'''
    >>> [(each.row, each.text, each.places, each.label) for each in parse_ptx_lines(text)["k"]][:1]
    [(7, '@%p1 add.s32 %r1, %r2, 1', (('/a.cu', 1), ('/a.cu', 3)), '$L__BB0_1')]
    """
    plain = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    files = {int(number): unescaped(path) for number, path in _FILE.findall(plain)}
    kernels: list[str] = []
    bodies: dict[str, tuple[PtxInstruction, ...]] = {}
    at = 0
    while head := _HEAD.search(plain, at):
        at = head.end()
        name = _NAME.match(plain, at)
        start = plain.find("{", at)
        declared = plain.find(";", at)
        if name is None or start < 0:
            continue
        if 0 <= declared < start and ")" in plain[at:declared]:
            continue  # a prototype
        bodies[name[1]], at = _body(plain, start, files)
        if head["kind"] == "entry":
            kernels.append(name[1])
    return {kernel: _with_called(kernel, bodies) for kernel in kernels}


def _with_called(kernel: str, bodies: Mapping[str, tuple[PtxInstruction, ...]]) -> tuple[PtxInstruction, ...]:
    """A kernel's instructions and those of what it calls, however deep, each function once."""
    order = [kernel]
    for name in order:
        for each in bodies[name]:
            called = _CALLED.match(each.text)
            if called and called[1] in bodies and called[1] not in order:
                order.append(called[1])
    found = list(bodies[kernel])
    for name in order[1:]:
        found += [replace(each, function=name) for each in bodies[name]]
    return tuple(found)


def _body(text: str, start: int, files: Mapping[int, str]) -> tuple[tuple[PtxInstruction, ...], int]:
    """The instructions between the brace at `start` and its partner, and where the text goes on."""
    found: list[PtxInstruction] = []
    chains: dict[tuple[str, str, str], tuple[tuple[str, int], ...]] = {}
    places: tuple[tuple[str, int], ...] = ()
    label = ""
    depth, at, row, counted = 0, start, text.count("\n", 0, start) + 1, start
    while at < len(text):
        character = text[at]
        if character.isspace() or character == ";":
            at += 1
        elif character == "{":
            depth, at = depth + 1, at + 1
        elif character == "}":
            depth, at = depth - 1, at + 1
            if depth == 0:
                break
        elif loc := _LOC.match(text, at):
            places, at = _places(loc, files, chains), loc.end()
        elif named := _LABEL.match(text, at):
            label, at = named[1], named.end()
        else:
            end = text.find(";", at)
            end = len(text) if end < 0 else end
            if character != ".":
                row, counted = row + text.count("\n", counted, at), at
                statement = _SPACE.sub(" ", text[at:end]).strip()
                found.append(PtxInstruction(row, statement, places, label=label))
                label = ""
            at = end
    return tuple(found), at


def _places(
    loc: re.Match[str], files: Mapping[int, str], chains: dict[tuple[str, str, str], tuple[tuple[str, int], ...]]
) -> tuple[tuple[str, int], ...]:
    """The chain of places that a `.loc` gives. Where its code is inlined has been a place of its own before.

    Line 0 is code that belongs to no line.
    """
    file, line, column, caller_file, caller_line, caller_column = loc.groups()
    own = _place(file, line, files)
    callers: tuple[tuple[str, int], ...] = ()
    if caller_file is not None:
        known = chains.get((caller_file, caller_line, caller_column))
        callers = _place(caller_file, caller_line, files) if known is None else known
    chain = (own + callers)[:_MOST_PLACES]
    chains[file, line, column] = chain
    return chain if int(line) else ()


def _place(file: str, line: str, files: Mapping[int, str]) -> tuple[tuple[str, int], ...]:
    path = files.get(int(file))
    return () if path is None else ((path, int(line)),)
