"""Edits for a text that its user edited while they were made: moved to the present text, or dropped with a sentence.

What was verified is a text. Edits are moved only where the present text with them is, in all that matters to the
kernel, that very text: what differs are comments, blanks, and functions that the kernel cannot reach and that have
nothing to do with its launches. All else of a file matters: macros, types, variables, includes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath

from warpwright.editor.text import edit_between
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source

Texts = Mapping[str, bytes]
Edits = Mapping[str, Sequence[TextEdit]]

_NAME = re.compile(r"\b[A-Za-z_]\w*")
_REACHES_OUT = re.compile(r"^[ \t]*#|\boperator\b", re.MULTILINE)
"""A directive in a function holds for what stands behind it; an operator is used without its name."""
_SPEAKS_TO_US = b"warpwright:"
"""A comment with it is a directive: it says how a kernel is run, or what is not to be said of it."""
_MOST_LINES = 4000
"""Between the first and the last that changed; more of them are one change."""


@dataclass(frozen=True, slots=True)
class _Function:
    """One function definition: byte offsets, with `template <...>` before it. `called` are the names in its own, as of
    `ns::f<T>`; `always` where it may matter to code that does not name it."""

    path: str
    start: int
    end: int
    called: frozenset[str]
    names: frozenset[str]
    always: bool
    on_device: bool
    on_host: bool


def rebased(kernel: str, before: Texts, now: Texts, edits: Edits) -> Edits | str:
    """`edits` of the texts `before` as edits of the texts `now`, or one sentence that says why they are dropped.

    Both hold every file that the kernel was read from, by path. Text is UTF-8.

    >>> before = {"a.cu": b"__global__ void k(float *a) { a[0] = 2.0; }"}
    >>> now = {"a.cu": b"// mine" + bytes([10]) + before["a.cu"]}
    >>> rebased("k", before, now, {"a.cu": [TextEdit(37, 40, "2.0f")]})
    {'a.cu': (TextEdit(start=45, end=48, new_text='2.0f'),)}
    >>> rebased("k", before, {"a.cu": before["a.cu"].replace(b"[0]", b"[1]")}, {"a.cu": [TextEdit(37, 40, "2.0f")]})
    'k, or code that it depends on, was edited meanwhile: run it again.'
    """
    if gone := [path for path in before if path not in now]:
        return f"{PurePath(gone[0]).name} is no longer there: run it again."
    if all(now[path] == text for path, text in before.items()):
        return {path: tuple(made) for path, made in edits.items()}
    moved: dict[str, tuple[TextEdit, ...]] = {}
    for path, made in edits.items():
        placed = _moved(made, line_edits(before[path], now[path]))
        if placed is None:
            return f"Your edits to {PurePath(path).name} lie where it would have been changed: run it again."
        moved[path] = placed
    touched = {name for path, made in edits.items() for edit in made for name in _names_at(before[path], edit)}
    verified = {path: apply_edits(text, edits.get(path, ())) for path, text in before.items()}
    merged = {path: apply_edits(now[path], moved.get(path, ())) for path in before}
    present = {path: now[path] for path in before}
    if any(
        _what_matters(kernel, touched, mine) != _what_matters(kernel, touched, theirs)
        for mine, theirs in ((before, present), (verified, merged))
    ):
        return f"{kernel}, or code that it depends on, was edited meanwhile: run it again."
    return moved


def line_edits(old: bytes, new: bytes) -> tuple[TextEdit, ...]:
    """The edits that turn `old` into `new`, each within the lines that it changes, in their order.

    >>> line_edits(b"int a;\\nint b;\\nint c;\\n", b"int d;\\nint b;\\nint cc;\\n")
    (TextEdit(start=4, end=5, new_text='d'), TextEdit(start=19, end=19, new_text='c'))
    """
    whole = edit_between(old, new)
    if whole is None:
        return ()
    start = old.rfind(b"\n", 0, whole.start) + 1
    end = old.find(b"\n", whole.end) + 1 or len(old)
    a = old[start:end].splitlines(keepends=True)
    b = new[start : len(new) - (len(old) - end)].splitlines(keepends=True)
    if max(len(a), len(b)) > _MOST_LINES:
        return (whole,)
    return tuple(_within_lines(a, b, start))


def _within_lines(a: list[bytes], b: list[bytes], at: int) -> Iterator[TextEdit]:
    starts = [at]
    for line in a:
        starts.append(starts[-1] + len(line))
    for tag, a_start, a_end, b_start, b_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        edit = edit_between(b"".join(a[a_start:a_end]), b"".join(b[b_start:b_end]))
        if edit is not None:
            yield TextEdit(starts[a_start] + edit.start, starts[a_start] + edit.end, edit.new_text)


def _moved(edits: Iterable[TextEdit], changes: Sequence[TextEdit]) -> tuple[TextEdit, ...] | None:
    """The edits where `changes` have put their places; None where a change touches one of them."""
    out: list[TextEdit] = []
    for edit in edits:
        shift = 0
        for change in changes:
            if change.start <= edit.end and edit.start <= change.end:
                return None
            if change.end < edit.start:
                shift += len(encoded(change.new_text)) - (change.end - change.start)
        out.append(TextEdit(edit.start + shift, edit.end + shift, edit.new_text))
    return tuple(out)


def _names_at(text: bytes, edit: TextEdit) -> set[str]:
    """The names in what an edit writes and in the lines that it changes."""
    start = text.rfind(b"\n", 0, edit.start) + 1
    end = text.find(b"\n", edit.end)
    lines = decoded(text[start : end if end >= 0 else len(text)])
    return set(_NAME.findall(lines)) | set(_NAME.findall(edit.new_text))


def _what_matters(kernel: str, touched: set[str], texts: Texts) -> dict[str, str]:
    """Each file's text without what cannot matter to the kernel; `touched` are names that do."""
    sources = {path: Source(path, data) for path, data in texts.items()}
    functions = [function for source in sources.values() for function in _functions(source)]
    kept: set[str] = {kernel} | touched
    for path, source in sources.items():
        kept |= set(_NAME.findall(_without(source, [f for f in functions if f.path == path])))
    mattering = _mattering(functions, kernel, kept)
    return {
        path: _without(source, [f for f in functions if f.path == path and f not in mattering])
        for path, source in sources.items()
    }


def _mattering(functions: Sequence[_Function], kernel: str, kept: set[str]) -> set[_Function]:
    """The functions that the kernel reaches or an edit or a file's other text names, and the host code about its
    launches: what names the kernel, what that calls, and what calls it."""
    found = {f for f in functions if f.always}
    names = {kernel} | kept | {name for f in found for name in f.names}
    hosts = set(names)
    while True:
        more = {f for f in functions if f not in found and f.on_device and f.called & names}
        more |= {f for f in functions if f not in found and f.on_host and (f.called & hosts or kernel in f.names)}
        callers = {name for f in found if f.on_host for name in f.called}
        more |= {f for f in functions if f not in found and f.on_host and f.names & callers}
        if not more:
            return found
        found |= more
        names |= {name for f in more if f.on_device for name in f.names}
        hosts |= {name for f in more if f.on_host for name in f.names}


def _functions(source: Source) -> Iterator[_Function]:
    """The functions that are defined outside classes and other functions."""
    pending = [source.closed_root]
    while pending:
        node = pending.pop()
        if node.type in ("class_specifier", "struct_specifier", "union_specifier", "lambda_expression"):
            continue
        if node.type != "function_definition":
            pending.extend(node.children)
            continue
        body, declarator = node.child_by_field_name("body"), node.child_by_field_name("declarator")
        if body is None or declarator is None:
            continue
        whole = node.parent if node.parent is not None and node.parent.type == "template_declaration" else node
        head = source.text(whole.start_byte, body.start_byte)
        on_device = "__global__" in head or "__device__" in head
        yield _Function(
            source.path,
            whole.start_byte,
            whole.end_byte,
            frozenset(_NAME.findall(source.node_text(declarator).partition("(")[0])),
            frozenset(_NAME.findall(source.node_text(whole))),
            bool(_REACHES_OUT.search(source.node_text(whole))),
            on_device,
            not on_device or "__host__" in head,
        )


def _without(source: Source, functions: Iterable[_Function]) -> str:
    """The text without those functions, comments and blank lines, each line's blanks as one."""
    left_out = [(f.start, f.end) for f in functions]
    left_out += [
        (node.start_byte, node.end_byte)
        for node in walk(source.root)
        if node.type == "comment" and _SPEAKS_TO_US not in source.data[node.start_byte : node.end_byte]
    ]
    out = bytearray(source.data)
    for start, end in left_out:
        out[start:end] = bytes(byte if byte == 10 else 32 for byte in out[start:end])
    lines = (" ".join(line.split()) for line in decoded(out).split("\n"))
    return "\n".join(line for line in lines if line)
