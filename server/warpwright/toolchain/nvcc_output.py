"""What a run of nvcc said of a text: its messages at the user's own lines, and a failure in a sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from warpwright.syntax.source import Source
from warpwright.toolchain.file_names import unescaped
from warpwright.toolchain.messages import CompilerMessage, parse_messages
from warpwright.toolchain.process import Finished

_PTX_LINE = re.compile(r" \(line (\d+) of the PTX\)$")
_DENIED = re.compile(r"^[\w+.-]+: fatal error: (.+): Permission denied$", re.MULTILINE)
_LOC = re.compile(r"^[ \t]*\.loc[ \t]+(\d+) (\d+) ", re.MULTILINE)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+) "([^"\n]+)"', re.MULTILINE)


def messages_of(output: str, source: Source) -> tuple[CompilerMessage, ...]:
    """What the compiler said, of the user's file under the path that the caller gave it."""
    absolute = str(Path(source.path).absolute())

    def shown(path: str) -> str:
        return source.path if path == absolute else path

    return tuple(
        replace(m, path=shown(m.path), notes=tuple(replace(note, path=shown(note.path)) for note in m.notes))
        for m in parse_messages(output, source.path)
    )


def denied(output: str) -> tuple[CompilerMessage, ...]:
    """An error for each file that the compiler may not read, as the host compiler says it, without a place.

    >>> [each.text for each in denied("cc1plus: fatal error: /home/a/x.h: Permission denied\\ncompilation terminated.")]
    ['/home/a/x.h lies outside of what this text may read: its project and the folders of includes that are used']
    """
    reason = "lies outside of what this text may read: its project and the folders of includes that are used"
    names = dict.fromkeys(_DENIED.findall(output))
    return tuple(CompilerMessage("", 0, "error", f"{name} {reason}") for name in names)


def with_place(message: CompilerMessage, ptx: Path | None, source: Source) -> CompilerMessage:
    """What ptxas says of a line of the PTX, at the source line that the PTX names for it: such as inline assembly's."""
    at = _PTX_LINE.search(message.text)
    if message.line or at is None:
        return message
    text = ptx.read_text(encoding="utf-8", errors="replace") if ptx is not None else ""
    above = "\n".join(text.split("\n")[: int(at[1])])
    place = next(iter(_LOC.findall(above)[-1:]), None)
    names = {number: unescaped(name) for number, name in _FILE.findall(text)}
    if place is None or names.get(place[0]) != str(Path(source.path).absolute()):
        return message
    return replace(message, line=int(place[1]), text=message.text.removesuffix(at[0]).rstrip())


def errors_sentence(errors: list[CompilerMessage]) -> str:
    """How many errors, and the first with its place."""
    first = errors[0]
    place = f"{Path(first.path).name}:{first.line}: " if first.line else ""
    if len(errors) == 1:
        return f"nvcc found an error: {place}{first.text}."
    return f"nvcc found {len(errors)} errors; the first: {place}{first.text}."


def exit_sentence(nvcc: Path, finished: Finished) -> str:
    """For a compiler that failed and named no error."""
    lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
    said = f'its last words were "{printable(lines[-1])}"' if lines else "it printed nothing"
    return f"{nvcc} failed with exit status {finished.returncode} and named no error; {said}."


def killed_sentence(nvcc: Path) -> str:
    return f"{nvcc} was killed twice, probably for lack of memory; free some of it and try again."


def printable(text: str, limit: int = 120) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
