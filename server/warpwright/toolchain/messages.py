"""What nvcc, its front end, the host's preprocessor and ptxas print, as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.facts.resources import KernelResources
from warpwright.toolchain.names import demangle

_MOST_LINES = 40
"""Of one diagnostic that are read."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is said beside a message: what was being instantiated, or from where a file is included. `line` is 1-based;
    `path` is "" for the message's own file."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One diagnostic. `line` is 1-based, 0 where the compiler gave no place; `severity` is "error" or "warning".

    `code` is the compiler's number or option for it, such as "177-D" or "-Wcpp", "" where it has none. `quoted` is the
    line as the compiler shows it, after the preprocessor, and `caret` the character of it (from 0) that is meant, -1
    where none is shown. `notes` are those of the first of several equal messages, the innermost first.
    """

    path: str
    line: int
    severity: str
    text: str
    code: str = ""
    quoted: str = ""
    caret: int = -1
    notes: tuple[Note, ...] = ()


_FRONT_END = re.compile(
    r"^(?P<path>[^\n]+?)\((?P<line>\d+)\): (?P<kind>(?:catastrophic |internal |command-line )?error|warning|note)"
    r"(?: #(?P<code>\d+(?:-D)?))?: (?P<text>.*)$"
)
_END_OF_SOURCE = re.compile(r"^At end of source: (?P<kind>error|warning)(?: #(?P<code>\d+(?:-D)?))?: (?P<text>.*)$")
_PREPROCESSOR = re.compile(
    r"^(?P<path>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?P<kind>fatal error|error|warning|note): (?P<text>.*?)"
    r"(?: \[(?P<code>-W[\w+=-]+)\])?$"
)
_DRIVER = re.compile(r"^(?P<tool>nvcc|ptxas|cicc|nvlink)\b[^;\n]*?(?P<kind>fatal|error|warning) *: (?P<text>.*)$")
_PTX_PLACE = re.compile(r"^ptxas (?P<path>.+), line (?P<line>\d+); (?P<kind>fatal|error|warning) *: (?P<text>.*)$")
_CARET = re.compile(r"^(?P<gutter> *\| )?(?P<blank>[ \t]*)\^[~^ ]*$")
_QUOTED = re.compile(r"^(?: *\d+ \| |  )(?P<text>.*)$")
_CONTEXT = re.compile(r"^ +(?:detected during )?(?P<text>.+?) at line (?P<line>\d+)(?: of (?P<path>.+))?$")
_INCLUDED = re.compile(r"^(?:In file included|                ) from (?P<path>[^\n]+?):(?P<line>\d+)[,:]$")


def parse_messages(output: str, path: str) -> tuple[CompilerMessage, ...]:
    """The diagnostics in a compiler's output, each once, in the order printed.

    What has no place in the source (ptxas, the driver) is filed under `path`, line 0.

    >>> (m,) = parse_messages('a.cu(3): error: identifier "x" is undefined\\n    y = x;\\n        ^\\n', "a.cu")
    >>> m.path, m.line, m.severity, m.text, m.quoted, m.caret
    ('a.cu', 3, 'error', 'identifier "x" is undefined', '  y = x;', 6)
    >>> parse_messages("ptxas error   : Entry function '_Z1kPf' uses too much shared data", "a.cu")[0].text
    "ptxas: Entry function 'k' uses too much shared data"
    >>> parse_messages('At end of source: error: expected a "}"', "a.cu")[0].text
    'at the end of the source: expected a "}"'
    """
    messages: dict[tuple[object, ...], CompilerMessage] = {}
    included: list[Note] = []
    lines = output.splitlines()
    for index, line in enumerate(lines):
        if match := _INCLUDED.match(line):
            included.append(Note(match["path"], int(match["line"]), "included here"))
            continue
        message = _message(line, path)
        if message is None:
            continue
        if message.severity == "note":
            _keep(messages, next(reversed(messages.values()), None), Note(message.path, message.line, message.text))
        else:
            message = _explained(replace(message, notes=tuple(included)), lines[index + 1 : index + _MOST_LINES])
            key = (message.path, message.line, message.severity, message.text, message.code, message.caret)
            messages.setdefault(key, message)
        included.clear()
    return tuple(messages.values())


def _message(line: str, path: str) -> CompilerMessage | None:
    """What the first line of a diagnostic says; a note is one of severity "note"."""
    if match := _FRONT_END.match(line) or _PREPROCESSOR.match(line):
        kind = _severity(match["kind"])
        return CompilerMessage(match["path"], int(match["line"]), kind, match["text"], match["code"] or "")
    if match := _END_OF_SOURCE.match(line):
        text = f"at the end of the source: {match['text']}"
        return CompilerMessage(path, 0, _severity(match["kind"]), text, match["code"] or "")
    if match := _PTX_PLACE.match(line):
        text = f"ptxas: {match['text']} (line {match['line']} of the PTX)"
        return CompilerMessage(path, 0, _severity(match["kind"]), text)
    if match := _DRIVER.match(line):
        text = re.sub(r"'(_Z\w+)'", lambda m: f"'{demangle(m[1])}'", match["text"])
        return CompilerMessage(path, 0, _severity(match["kind"]), f"{match['tool']}: {text}")
    return None


def _explained(message: CompilerMessage, below: Sequence[str]) -> CompilerMessage:
    """The message with what the lines below its first say: more words, the quoted line, what was being instantiated."""
    more: list[str] = []
    notes = list(message.notes)
    seen_caret = False
    for index, line in enumerate(below):
        if not line.startswith(" "):
            break
        caret = _CARET.match(below[index + 1]) if index + 1 < len(below) else None
        quoted = _QUOTED.match(line)
        if not seen_caret and caret is not None and quoted is not None:
            blank = caret["blank"] if caret["gutter"] else caret["blank"][2:]
            message = replace(message, quoted=quoted["text"], caret=min(len(blank), len(quoted["text"])))
            seen_caret = True
        elif seen_caret and (context := _CONTEXT.match(line)):
            notes.append(Note(context["path"] or "", int(context["line"]), context["text"]))
        elif not seen_caret and line.startswith(" " * 12):
            more.append(line.strip())
    return replace(message, text="; ".join([message.text, *more]), notes=tuple(notes))


def _keep(messages: dict[tuple[object, ...], CompilerMessage], last: CompilerMessage | None, note: Note) -> None:
    """Add a note to the message that was printed before it."""
    if last is not None:
        key = next(reversed(messages))
        messages[key] = replace(last, notes=(*last.notes, note))


def _severity(kind: str) -> str:
    return kind if kind in ("warning", "note") else "error"


_ENTRY = re.compile(r"Compiling entry function '([^']+)'(?: for '([^']+)')?")
_PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")


def parse_resources(output: str) -> dict[str, KernelResources]:
    """What `ptxas -v` says of each kernel, by mangled name.

    >>> text = '''ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'
    ... ptxas info    : Function properties for _Z1kPf
    ...     800 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
    ... ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 536 bytes cmem[0], 8 bytes cmem[2]'''
    >>> r = parse_resources(text)["_Z1kPf"]
    >>> r.name, r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes, r.shared_bytes, r.constant_bytes
    ('k', 40, 4, 8, 800, 256, 544)
    >>> r.barriers, r.arch
    (1, 'sm_90')
    """
    resources: dict[str, KernelResources] = {}
    entry = properties_of = ""
    for line in output.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
            resources[entry] = KernelResources(demangle(entry), entry, 0, 0, 0, 0, 0, 0, 0, match[2] or "")
        elif match := _PROPERTIES.search(line):
            properties_of = match[1]
        elif (match := _STACK.search(line)) and properties_of == entry and entry in resources:
            stack, stores, loads = (int(g) for g in match.groups())
            resources[entry] = replace(
                resources[entry], stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
            )
        elif (match := _USED.search(line)) and entry in resources:
            rest = match[2]
            resources[entry] = replace(
                resources[entry],
                registers=int(match[1]),
                barriers=_sum(r"used (\d+) barriers", rest),
                shared_bytes=_sum(r"(\d+) bytes smem", rest),
                constant_bytes=_sum(r"(\d+) bytes cmem\[\d+\]", rest),
            )
    return resources


def _sum(pattern: str, text: str) -> int:
    return sum(int(n) for n in re.findall(pattern, text))
